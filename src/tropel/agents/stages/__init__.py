"""Stages: what agents are doing, as lists of verbs that the stage `decide` of a step moves them through.

`stage` has the contracts of verbs and conditions, `verbs` and `conditions` have tropel's own, `agendas` keeps the lists
and moves agents on, `happened` remembers events that somebody may wait for, `spots` finds places to wait at.
"""
