"""Squads: groups with a commander, a mission, a formation, and an eye on their enemies.

In reading order: `squad` (what a group is told), `columns` (what each agent has), `sight` and `floor` (what can be seen
and where one can walk), `formations`, `verbs` (missions are lists of stages), `rooms` (who searches which room),
`threat` (attack or retreat), `combat` (who is put out of action), `squads` (all of it in a run).
"""
