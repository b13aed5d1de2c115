"""Encounters: who came near whom, left, touched, and when.

`search` finds the pairs that may come near each other during a step, `passing` computes when a pair does, `watch`
follows pairs from step to step, and `table` holds the results.
"""

from tropel.encounters.table import EncounterEvents, EncounterTable, read_encounters
from tropel.encounters.watch import EncounterWatch

__all__ = ["EncounterEvents", "EncounterTable", "EncounterWatch", "read_encounters"]
