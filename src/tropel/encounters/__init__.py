"""Encounters: who came near whom, left, touched, and when.

`search` finds the pairs that may come near each other during a step, `passing` computes when a pair does, `watch`
follows pairs from step to step, and `happenings` are what subscribers are told. The table and its files are in
`recording/encounter_table.py`.
"""

from tropel.encounters.happenings import EncounterEvents
from tropel.encounters.watch import EncounterWatch
from tropel.recording.encounter_table import EncounterTable, read_encounters

__all__ = ["EncounterEvents", "EncounterTable", "EncounterWatch", "read_encounters"]
