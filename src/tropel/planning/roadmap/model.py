"""The basic roadmap (GROUPS section 4.3.1): the world as it stands, with doors, and nothing that moves."""

from __future__ import annotations

from typing import Any

from tropel.planning.roadmap.parameters import RoadmapParameters
from tropel.planning.roadmap.planner import RoadmapPlanner


class Roadmap(RoadmapPlanner):
    """Follow the shortest path over a probabilistic roadmap to the goal in the agents' `goal` column.

    The roadmap has `samples` nodes, each joined to its nearest `neighbours` where a body fits through with a
    `clearance` [m]. `sampling` is "uniform", "obstacles", "bridge" or "mixed". With `smooth`, paths are cut short.
    `budget` is the work per agent and step, in tests of segments. What moves is not avoided: see `AdaptiveRoadmap`.
    """

    def __init__(self, **parameters: Any) -> None:
        super().__init__(RoadmapParameters(**parameters))
