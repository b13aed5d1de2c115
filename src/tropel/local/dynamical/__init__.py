"""Dynamical: steering by nonlinear dynamical systems (GAME, LAYERS)."""

from tropel.local.dynamical.model import Dynamical

__all__ = ["Dynamical"]
