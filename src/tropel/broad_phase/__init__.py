"""The broad phase: the engine's list of all agents by cell, shared by contact, collisions and environments."""

from tropel.broad_phase.cell_grid import CellGrid

__all__ = ["CellGrid"]
