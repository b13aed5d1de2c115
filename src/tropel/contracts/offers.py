"""What layers offer for display, so that overlays and pictures need not know their classes.

A layer that has something to show has a method `offers()`, which returns a tuple of such objects. Making them costs
nothing: everything that takes time is a function, called only when something is displayed. A planner that contains
others passes on their offers (`inner_offers`). This module knows no layers; layers and displays meet here.

Two offers of the same layer are equal, because their functions are methods of the layer. So duplicates are shown once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tropel.world import World
    from tropel.world.ground import Filter
    from tropel.world.raster import Raster

_T = TypeVar("_T")
Floats = NDArray[np.float64]
Point = tuple[float, float]


# Paths to a goal ------------------------------------------------------------------------------------------------


class Described(Protocol):
    """Something with a name and parameters, such as a planner."""

    def describe(self) -> str: ...


class FieldOnRaster(Protocol):
    """The field to one goal, with a value and a vector per cell; see `planning/fields/field.py` for their meaning."""

    @property
    def raster(self) -> Raster: ...
    @property
    def goal(self) -> NDArray[np.bool_]: ...
    @property
    def value(self) -> Floats: ...
    @property
    def vectors(self) -> Floats: ...
    @property
    def metres_per_value(self) -> float: ...
    @property
    def reachable(self) -> NDArray[np.bool_]: ...
    @property
    def length(self) -> Floats | None: ...
    def directions(self) -> NDArray[np.floating[Any]]: ...
    def unreachable(self) -> Any: ...


@dataclass(frozen=True, kw_only=True)
class OfferedField:
    """A field on a raster for each goal."""

    planner: Described = field(compare=False)  #: the planner that owns the field, for its name and parameters
    goals: Callable[[], Sequence[str]]  #: names of the goals that have a field so far
    field: Callable[[str], FieldOnRaster]  #: the field to a goal by name; it is solved if it does not exist yet
    draw: Callable[[World], Raster]  #: the cells of a world as it is now
    alone: bool = True  #: agents follow only this; it is not part of a blend or a fallback


@dataclass(frozen=True, kw_only=True)
class OfferedPainting:
    """Directions that the user has painted."""

    at: Callable[[Floats], Floats]  #: vectors at points (N, dim), zero where nothing is painted
    alone: bool = True  #: as in `OfferedField`; a fallback where nothing is painted does not count


# The ground of a crowd on cells ---------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class OfferedOccupancy:
    """Which cells are occupied, as a crowd on cells reads it."""

    raster: Callable[[], Raster]
    occupied: Callable[[], NDArray[np.bool_]]  #: (ny, nx), after the last step


class BottleneckPlace(Protocol):
    """Where a path narrows."""

    @property
    def position(self) -> Point: ...
    @property
    def width(self) -> float: ...
    @property
    def passage(self) -> tuple[Point, Point] | None: ...


@dataclass(frozen=True, kw_only=True)
class OfferedBottlenecks:
    """Bottlenecks of the paths to all goals."""

    version: Callable[[], object]  #: changes when the bottlenecks may have changed
    find: Callable[[], Sequence[BottleneckPlace]]  #: takes a moment


@dataclass(frozen=True, kw_only=True)
class CountedBottleneck:
    """A bottleneck that is monitored."""

    bottleneck: BottleneckPlace
    count: int  #: people, at the last count
    full: float  #: a congestion begins above it [people]
    congested: bool
    area: float  #: side of the monitored square [m]


@dataclass(frozen=True, kw_only=True)
class OfferedCongestion:
    """Bottlenecks that are monitored, and avoided while they are full."""

    raster: Callable[[], Raster]
    counted: Callable[[], Sequence[CountedBottleneck]]
    filters: Callable[[], Sequence[Filter]]  #: how congestions change the cells now


# Neighbourhoods -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Neighbourhood:
    """What an agent knows of others, as a triangulation has it."""

    here: Floats  #: where the agent is [m]
    reach: float  #: its sense radius [m]
    known: Floats  #: (K, 2): where those are that it knows of
    crossing: Floats  #: (M, 2, 2): edges from them, or from itself, to vertices outside of its circle; inner end first


@dataclass(frozen=True, kw_only=True)
class OfferedTriangulation:
    """A triangulation of the crowd in the plane, as of the last step."""

    edges: Callable[[], Floats]  #: (E, 2, 2): ordinary edges [m]
    walls: Callable[[], Floats]  #: (W, 2, 2): edges that are walls
    around: Callable[[int], Neighbourhood | None]  #: by the id of an agent; None if it is not there


# Roadmaps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class RoadmapPath:
    """The path of one agent over a roadmap."""

    agent: int  #: id
    points: Floats  #: (L, dim) from where it was planned to the goal [m]
    subgoal: int  #: which of them comes next
    weight: float  #: of the subgoal: for how long it has been, as a share of how long it may be
    blocked: Floats  #: (B, 2, dim): edges that the agent does not take now


@dataclass(frozen=True, kw_only=True)
class OfferedRoadmap:
    """Roadmaps and the paths on them, as of the last step."""

    nodes: Callable[[], Floats]  #: (V, dim) [m]
    edges: Callable[[], Floats]  #: (E, 2, dim)
    paths: Callable[[], Sequence[RoadmapPath]]
    gross: Callable[[], tuple[Floats, Floats]]  #: edges (G, 2, 2) of the coarse graph over doors: open, and shut


# Riders ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class OfferedRoad:
    """A line that agents follow."""

    points: Floats  #: (P, 2) in equal steps [m]
    closed: bool
    curvature: Floats  #: (P,): to the left [1/m]


@dataclass(frozen=True, kw_only=True)
class OfferedMobility:
    """What the character of a model can do, and what it looks like."""

    character: str
    speed: float  #: nominal [m/s]
    sharpest: float  #: the largest curvature that it can follow [1/m]
    kind: str  #: what it is drawn as: "bicycle" or "car"
    length: float  #: [m]
    width: float  #: [m]
    wheel: float  #: radius of the wheels [m]


# Collecting them ------------------------------------------------------------------------------------------------


class Offering(Protocol):
    """Something that may have offers, such as a layer."""

    def offers(self) -> tuple[object, ...]: ...


def offered(layers: Iterable[Offering], kind: type[_T]) -> list[_T]:
    """All distinct offers of a kind that layers make, in their order."""
    found = (offer for layer in layers for offer in layer.offers() if isinstance(offer, kind))
    return list(dict.fromkeys(found))


def inner_offers(layers: Iterable[Offering]) -> tuple[object, ...]:
    """The offers of layers that are part of another one."""
    return tuple(
        replace(offer, alone=False) if isinstance(offer, OfferedField | OfferedPainting) else offer
        for layer in layers
        for offer in layer.offers()
    )
