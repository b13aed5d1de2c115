"""Harmonic planning: the planner (`model.py`) and the field that it follows (`field.py`), solved for on a grid."""

from tropel.planning.harmonic.field import solve_harmonic
from tropel.planning.harmonic.model import Harmonic

__all__ = ["Harmonic", "solve_harmonic"]
