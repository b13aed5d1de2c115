"""Who and what is near each agent."""

from tropel.environment.grid import Grid

__all__ = ["Grid"]
