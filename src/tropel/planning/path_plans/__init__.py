"""PathPlans: the ground that a lattice crowd reads: a path plan per goal, bottlenecks, congestion (CROWD)."""

from tropel.planning.path_plans.model import PathPlans

__all__ = ["PathPlans"]
