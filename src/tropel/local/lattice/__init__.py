"""Lattice: agents on square cells, one each (CROWD)."""

from tropel.local.lattice.model import Lattice

__all__ = ["Lattice"]
