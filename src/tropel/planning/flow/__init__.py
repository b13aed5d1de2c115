"""FlowField: the shortest path to a goal from everywhere, solved in one pass and repaired after changes."""

from tropel.planning.flow.model import FlowField

__all__ = ["FlowField"]
