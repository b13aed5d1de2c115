"""PathPlans: what a lattice crowd reads off the ground: a path plan per goal, bottlenecks, congestion (CROWD)."""

from tropel.planning.path_plans.model import PathPlans

__all__ = ["PathPlans"]
