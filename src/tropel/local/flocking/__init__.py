"""Flocking: boids with leaders, predators and prey, and obstacles (GROUPS)."""

from tropel.local.flocking.model import Flocking

__all__ = ["Flocking"]
