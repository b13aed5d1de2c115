"""Goals of agents: exits (polygons where agents leave) and targets (points, static or moving)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import GeometryError, ParameterError, named_parameters
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.world.motion import MotionLike, Place, restored_motion, stored_motion
from tropel.world.periodic import images_of_segments
from tropel.world.shapes import Polygonal, is_length, segments_of


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Target:
    """A place to go to. An agent within `radius` [m] has arrived: it stops there, or leaves if the target absorbs."""

    position: Place | None = None
    motion: MotionLike | None = None
    radius: float = 0.5
    absorbs: bool = False

    def __post_init__(self) -> None:
        if not is_length(self.radius):
            raise GeometryError(
                f"a target's radius must not be negative, nor above {LARGEST_LENGTH:g} m, got {self.radius!r}"
            )
        if (self.position is None) == (self.motion is None):
            raise GeometryError("a target needs either a position or a motion")


@dataclass
class Exit:
    """A polygon that removes agents that step into it while it is open."""

    polygon: shapely.Polygon | shapely.MultiPolygon
    open: bool = True


class GoalArrays(NamedTuple):
    """All goals of the world by number, as kernels read them."""

    is_exit: NDArray[np.uint8]  #: (G,) 1 for exits, 0 for targets
    usable: NDArray[np.uint8]  #: (G,) 0 for closed exits and for targets that were removed
    absorbs: NDArray[np.uint8]  #: (G,) whether agents that arrive leave the simulation
    position: NDArray[np.float64]  #: (G, dim) of targets
    radius: NDArray[np.float64]  #: (G,) of targets
    edge_start: NDArray[np.int64]  #: (G + 1,) into edges
    edges: NDArray[np.float64]  #: (E, 4) boundary segments of exits
    approach_start: NDArray[np.int64]  #: (G + 1,) into approach
    approach: NDArray[np.float64]  #: (A, 4) boundary segments of the inner part of exits, which agents aim at
    period: NDArray[np.float64]  #: (dim,) the length after which space repeats [m]; 0 where it does not


#: Agents aim this far inside an exit [m], so that its corners, often door jambs, do not hold them back.
_AIM_INSIDE = 0.4


def walkable_part(polygon: Polygonal, walkable: Polygonal | None) -> Polygonal:
    """The part of an exit that agents can step into: exits often reach beyond the edge of the walkable area."""
    if walkable is None or walkable.covers(polygon):
        return polygon
    parts = [part for part in shapely.get_parts(walkable.intersection(polygon)) if part.area > 0.0]
    return shapely.union_all(parts) if parts else polygon


def inset(polygon: Polygonal) -> Polygonal:
    """The polygon shrunk to the part that agents aim at, or by less where it is too narrow for that."""
    inside = _AIM_INSIDE
    while inside > 1e-3:
        smaller = polygon.buffer(-inside)
        if not smaller.is_empty:
            return smaller
        inside /= 2.0
    return polygon


def joined(rows: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where each part begins, and all parts in one array."""
    start = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    return start, np.ascontiguousarray(np.concatenate(rows) if rows else np.empty((0, 4)))


def goal_arrays(
    numbers: Mapping[str, int],
    exits: Mapping[str, Exit],
    targets: Mapping[str, Target],
    places: Mapping[str, NDArray[np.float64]],
    *,
    walkable: Polygonal | None,
    period: NDArray[np.float64],
) -> GoalArrays:
    """Exits, and targets at their positions, by number."""
    count = len(numbers)
    is_exit = np.zeros(count, dtype=np.uint8)
    usable = np.ones(count, dtype=np.uint8)
    absorbs = np.zeros(count, dtype=np.uint8)
    position = np.zeros((count, len(period)))
    radius = np.zeros(count)
    edges: list[NDArray[np.float64]] = []
    approach: list[NDArray[np.float64]] = []
    for name, number in numbers.items():
        if name in exits:
            is_exit[number] = absorbs[number] = 1
            usable[number] = exits[name].open
            polygon = exits[name].polygon
            edges.append(segments_of(polygon))
            approach.append(images_of_segments(segments_of(inset(walkable_part(polygon, walkable))), period))
        else:
            # Only the number of a removed target remains.
            usable[number] = name in targets
            if name in targets:
                position[number] = places[name]
                radius[number] = targets[name].radius
                absorbs[number] = targets[name].absorbs
            edges.append(np.empty((0, 4)))
            approach.append(np.empty((0, 4)))
    return GoalArrays(is_exit, usable, absorbs, position, radius, *joined(edges), *joined(approach), period)


def target_state(target: Target, position: NDArray[np.float64]) -> dict[str, Any]:
    entry: dict[str, Any] = {"radius": target.radius, "absorbs": target.absorbs}
    if target.motion is None:
        entry["position"] = position.tolist()
    else:
        entry["motion"] = stored_motion(target.motion)
    return entry


def restored_target(name: str, entry: Mapping[str, Any], declared: Mapping[str, Target]) -> Target:
    motion = entry.get("motion")
    common = {"radius": entry["radius"], "absorbs": entry["absorbs"]}
    if motion is None:
        return Target(position=tuple(entry["position"]), **common)
    if motion == "function":
        if name not in declared:
            raise ParameterError(f"target '{name}' moves by a function that this script does not define; define it")
        return declared[name]
    return Target(motion=restored_motion(motion), **common)
