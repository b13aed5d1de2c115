"""Parameters of roadmap planners; each kind adds its own to those of the simpler one."""

from __future__ import annotations

from dataclasses import dataclass

from tropel.errors import named_parameters
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.foundation.quantities import number
from tropel.planning.roadmap.chart import LEAST_BUDGET
from tropel.planning.roadmap.sampling import Sampling


@named_parameters
@dataclass(frozen=True, kw_only=True)
class RoadmapParameters:
    """Parameters of `Roadmap`."""

    samples: int = number(300, whole=True, low=1, about="nodes of a roadmap")
    neighbours: int = number(6, whole=True, low=1, about="nearest nodes that each node is joined to")
    sampling: Sampling = "mixed"
    clearance: float = number(0.1, low=0.0, high=LARGEST_LENGTH, unit="m", about="distance kept to walls")
    smooth: bool = True  #: whether paths are cut short
    budget: int = number(
        2000, whole=True, low=LEAST_BUDGET, about="work per agent and step, in tests of segments and the like"
    )


@named_parameters
@dataclass(frozen=True, kw_only=True)
class AdaptiveRoadmapParameters(RoadmapParameters):
    """Parameters of `AdaptiveRoadmap`."""

    predict: bool = True  #: whether what moves is expected to go on; otherwise it counts where it is
    horizon: float = number(
        3.0, low=0.0, high=1e6, unit="s", about="paths are tested as far as they are walked in this time"
    )
    patience: float = number(
        4.0, low=0.0, high=1e6, unit="s", about="how much longer than the walk a subgoal may take; 0 means for ever"
    )
