"""OMPL's PRM beside our builder, for information: only where the package `ompl` is installed.

OMPL grows a roadmap for a given time, so it is grown bit by bit until it has as many nodes. It asks a function of
Python whether a body can be at a place, as everybody does who uses it from Python; ours tests segments in kernels. So
this compares what a user of Python gets, not the two algorithms.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tropel.bench.result import Row
from tropel.world import World

#: OMPL is asked to grow for so long at a time, and for no longer altogether [s].
_AT_A_TIME, _LONGEST = 0.25, 20.0

MISSING = "OMPL is not installed, so its PRM is not beside ours; pip install ompl brings it."


def build_with_ompl(world: World, radius: float, nodes: int, neighbours: int) -> Row | None:
    """A roadmap of a field with obstacles that stand still; None if OMPL is not installed."""
    try:
        from ompl import base, geometric, util  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return None
    util.noOutputHandler()
    util.RNG.setSeed(1)
    low, high = world.bounds
    places, apart = world.obstacles.position, world.obstacles.radius + radius

    def is_free(state: Any) -> bool:
        x, y = state[0], state[1]
        inside = low[0] + radius <= x <= high[0] - radius and low[1] + radius <= y <= high[1] - radius
        return bool(inside and ((places[:, 0] - x) ** 2 + (places[:, 1] - y) ** 2 >= apart**2).all())

    space = base.RealVectorStateSpace(2)
    bounds = base.RealVectorBounds(2)
    for axis in range(2):
        bounds.setLow(axis, float(low[axis]))
        bounds.setHigh(axis, float(high[axis]))
    space.setBounds(bounds)
    about = base.SpaceInformation(space)
    about.setStateValidityChecker(is_free)
    about.setStateValidityCheckingResolution(0.5 * radius / float(np.linalg.norm(high - low)))
    about.setup()
    planner = geometric.PRM(about)
    planner.setMaxNearestNeighbors(neighbours)
    planner.setProblemDefinition(base.ProblemDefinition(about))
    planner.setup()
    begun = time.process_time()
    while planner.milestoneCount() < nodes and time.process_time() - begun < _LONGEST:
        planner.growRoadmap(_AT_A_TIME)
    seconds = time.process_time() - begun
    made = planner.milestoneCount()
    return {"nodes": made, "edges": planner.edgeCount(), "seconds": seconds, "per_10k_s": 1e4 * seconds / max(made, 1)}
