"""Who and what is near each agent."""

from tropel.environment.grid import Grid
from tropel.environment.near import Near

__all__ = ["Grid", "Near"]
