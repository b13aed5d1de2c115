"""Goals of agents by number: exits (polygons where agents leave), targets (points, static or moving), and other places.

Exits and targets have a number from the start. Regions, rooms and doors get one when somebody is first sent there, so
that worlds with many of them pay for none that is not used. Points have no number: they are in the agents' columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.ops import substring

from tropel.errors import GeometryError, ParameterError, named_parameters
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.world.motion import MotionLike, Position, restored_motion, stored_motion
from tropel.world.periodic import images_of_segments
from tropel.world.shapes import Polygonal, is_length, segments_of

if TYPE_CHECKING:
    from tropel.world.world import World

Line: TypeAlias = shapely.LineString | shapely.MultiLineString


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Target:
    """A place to go to. An agent within `radius` [m] has arrived: it stops there, or leaves if the target absorbs."""

    position: Position | None = None
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

    is_exit: NDArray[np.uint8]  #: (G,) 1 for exits
    is_target: NDArray[np.uint8]  #: (G,) 1 for targets, present or removed; the others are regions, rooms and doors
    is_line: NDArray[np.uint8]  #: (G,) 1 for doors
    usable: NDArray[np.uint8]  #: (G,) 0 for closed exits and for targets that were removed
    absorbs: NDArray[np.uint8]  #: (G,) whether agents that arrive leave the simulation
    position: NDArray[np.float64]  #: (G, dim) of targets
    radius: NDArray[np.float64]  #: (G,) of targets
    edge_start: NDArray[np.int64]  #: (G + 1,) into edges
    edges: NDArray[np.float64]  #: (E, 4) boundary segments of exits, regions and rooms, segments of doors; in 2D
    approach_start: NDArray[np.int64]  #: (G + 1,) into approach
    approach: NDArray[np.float64]  #: (A, 4) segments around or along their inner part, which agents aim at
    low: NDArray[np.float64]  #: (G, dim) low corners of regions, in 3D
    high: NDArray[np.float64]  #: (G, dim) high corners
    period: NDArray[np.float64]  #: (dim,) the length after which space repeats [m]; 0 where it does not


#: Agents aim this far inside an exit [m], so that its corners, often door jambs, do not hold them back.
AIM_INSIDE = 0.4


def walkable_part(polygon: Polygonal, walkable: Polygonal | None) -> Polygonal:
    """The part of an exit that agents can step into: exits often reach beyond the edge of the walkable area."""
    if walkable is None or walkable.covers(polygon):
        return polygon
    parts = [part for part in shapely.get_parts(walkable.intersection(polygon)) if part.area > 0.0]
    return shapely.union_all(parts) if parts else polygon


def inset(polygon: Polygonal) -> Polygonal:
    """The polygon shrunk to the part that agents aim at, or by less where it is too narrow for that."""
    inside = AIM_INSIDE
    while inside > 1e-3:
        smaller = polygon.buffer(-inside)
        if not smaller.is_empty:
            return smaller
        inside /= 2.0
    return polygon


def middle_of(polygon: Polygonal) -> Polygonal:
    """The middle of a region or room, where agents gather: at its edge they would be in the way of those after them."""
    inside = 0.5 * shapely.maximum_inscribed_circle(polygon).length
    smaller = polygon.buffer(-inside)
    return polygon if smaller.is_empty else smaller


def inset_line(line: Line) -> Line:
    """The middle part of a door that agents aim at."""
    parts = []
    for part in shapely.get_parts(line):
        ends = min(AIM_INSIDE, 0.25 * part.length)
        parts.append(substring(part, ends, part.length - ends))
    return shapely.union_all(parts)


def joined(rows: list[NDArray[np.float64]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Where each part begins, and all parts in one array."""
    start = np.concatenate([[0], np.cumsum([len(part) for part in rows])]).astype(np.int64)
    return start, np.ascontiguousarray(np.concatenate(rows) if rows else np.empty((0, 4)))


@dataclass(frozen=True, kw_only=True)
class GoalShapes:
    """What the goals of a world are, by the names in `World.goal_numbers`."""

    exits: Mapping[str, Exit]
    targets: Mapping[str, Target]
    target_position: Mapping[str, NDArray[np.float64]]
    areas: Mapping[str, Any]  #: regions and rooms: polygons, in 3D pairs of corners
    doors: Mapping[str, Line]
    walkable: Polygonal | None
    period: NDArray[np.float64]

    @classmethod
    def none(cls, dim: int) -> GoalShapes:
        nothing: dict[str, Any] = {}
        return cls(
            exits=nothing,
            targets=nothing,
            target_position=nothing,
            areas=nothing,
            doors=nothing,
            walkable=None,
            period=np.zeros(dim),
        )

    def outline(self, name: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The segments of a goal in the plane, and those that agents aim at."""
        if name in self.doors:
            line = self.doors[name]
            return segments_of(line), images_of_segments(segments_of(inset_line(line)), self.period)
        polygon = self.exits[name].polygon if name in self.exits else self.areas[name]
        part = walkable_part(polygon, self.walkable)
        aim = segments_of(inset(part) if name in self.exits else middle_of(part))
        return segments_of(polygon), images_of_segments(aim, self.period)


def shapes_of_goals(world: World, target_position: Mapping[str, NDArray[np.float64]]) -> GoalShapes:
    """The shapes of all goals of a world, with targets at these places."""
    regions: Mapping[str, Any] = world.region_boxes if world.dim == 3 else world.regions
    areas = {f"region {name}": area for name, area in regions.items()}
    areas |= {f"room {name}": area for name, area in world.rooms.items()}
    doors = {f"door {name}": door.line for name, door in world.doors.items()}
    return GoalShapes(
        exits=world.exits,
        targets=world.targets,
        target_position=target_position,
        areas=areas,
        doors=doors,
        walkable=world.walkable,
        period=world.period,
    )


def shape_of_goal(world: World, name: str) -> Any:
    """The polygon or line of a goal that is not a target, or in 3D its two corners."""
    kind, _, rest = name.partition(" ")
    if name in world.exits:
        return world.exits[name].polygon
    if kind == "door":
        return world.doors[rest].line
    return world.rooms[rest] if kind == "room" else world.region_boxes[rest] if world.dim == 3 else world.regions[rest]


def distance_to_shape(shape: Any, position: NDArray[np.float64]) -> NDArray[np.float64]:
    """The distance from places to what `shape_of_goal` returned; zero inside [m]."""
    if position.shape[1] == 3:
        return np.asarray(np.linalg.norm(position - np.clip(position, *shape), axis=1))
    return np.asarray(shapely.distance(shape, shapely.points(position)))


def goal_arrays(numbers: Mapping[str, int], shapes: GoalShapes) -> GoalArrays:
    """All goals, with targets at their positions, by number."""
    count, dim = len(numbers), len(shapes.period)
    is_exit, is_target, is_line, absorbs = (np.zeros(count, dtype=np.uint8) for _ in range(4))
    usable = np.ones(count, dtype=np.uint8)
    position, low, high = (np.zeros((count, dim)) for _ in range(3))
    radius = np.zeros(count)
    outlines = [(np.empty((0, 4)), np.empty((0, 4)))] * count
    for name, number in numbers.items():
        if name in shapes.areas and dim == 3:
            low[number], high[number] = shapes.areas[name]
        elif name in shapes.exits or name in shapes.areas or name in shapes.doors:
            outlines[number] = shapes.outline(name)
            is_line[number] = name in shapes.doors
        else:
            # Only the number of a removed target remains.
            is_target[number] = 1
            usable[number] = name in shapes.targets
            if name in shapes.targets:
                position[number] = shapes.target_position[name]
                radius[number] = shapes.targets[name].radius
                absorbs[number] = shapes.targets[name].absorbs
        if name in shapes.exits:
            is_exit[number] = absorbs[number] = 1
            usable[number] = shapes.exits[name].open
    edges, approach = joined([e for e, _ in outlines]), joined([a for _, a in outlines])
    return GoalArrays(
        is_exit, is_target, is_line, usable, absorbs, position, radius, *edges, *approach, low, high, shapes.period
    )


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
