"""The basic roadmap (GROUPS section 4.3.1): the world as it stands, with doors, and nothing that moves."""

from __future__ import annotations

from tropel.foundation.arguments import PositiveCount, checked_arguments
from tropel.planning.roadmap.planner import Clearance, RoadmapPlanner
from tropel.planning.roadmap.sampling import Sampling


class Roadmap(RoadmapPlanner):
    """Follow the shortest path over a probabilistic roadmap to the goal in the agents' `goal` column.

    The roadmap has `samples` nodes, each joined to its nearest `neighbours` where a body fits through with a
    `clearance` [m]. `sampling` is "uniform", "obstacles", "bridge" or "mixed". With `smooth`, paths are cut short.
    `budget` is the work per agent and step, in tests of segments. What moves is not avoided: see `AdaptiveRoadmap`.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        samples: PositiveCount = 300,
        neighbours: PositiveCount = 6,
        sampling: Sampling = "mixed",
        clearance: Clearance = 0.1,
        smooth: bool = True,
        budget: PositiveCount = 2000,
    ) -> None:
        super().__init__(samples=samples, neighbours=neighbours, sampling=sampling, clearance=clearance, smooth=smooth,
                         budget=budget)  # fmt: skip
