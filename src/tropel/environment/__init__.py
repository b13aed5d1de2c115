"""The environment layer: which agents, walls and obstacles are near each agent."""

from tropel.environment.grid import Grid

__all__ = ["Grid"]
