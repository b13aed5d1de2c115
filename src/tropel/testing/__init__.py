"""Contract checks for your own layers, one line each in your tests, on built-in scenes in 2D and 3D.

    from tropel.testing import check_decision, check_planner, check_neighbours, check_steering

    check_decision(MyRule())
    check_planner(MyPlanner())
    check_neighbours(MyNeighbourhood(), dims=(2,))
    check_steering(MyModel(strength=2.0))

A layer that breaks a promise raises `ContractViolation`, which names the promise and the agent, and tells what to do.
tropel's own layers pass the same checks.
"""

from tropel.testing.decision import check_decision
from tropel.testing.neighbours import check_neighbours
from tropel.testing.planner import check_planner
from tropel.testing.steering import check_steering
from tropel.testing.violation import ContractViolation

__all__ = ["ContractViolation", "check_decision", "check_neighbours", "check_planner", "check_steering"]
