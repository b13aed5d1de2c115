"""The engine's own list of everybody by cell: who may be near whom, for contact, collisions and environments alike."""

from tropel.broad_phase.cell_grid import CellGrid

__all__ = ["CellGrid"]
