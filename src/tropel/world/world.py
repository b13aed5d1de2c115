"""The world: the space agents can walk in, the obstacles in it, and the goals they may have.

Shapely geometries come in and are checked; arrays go out to the kernels. 2D worlds are a walkable polygon with walls,
doors, exits and regions; 3D worlds are a box. Both may have round obstacles and targets, static or moving. Instead of
walled, both may be open (space is unbounded) or periodic (opposite sides are joined, `_kernels/cells.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.walls import WallGrid
from tropel.errors import GeometryError, ParameterError, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE, LARGEST_LENGTH, Length, checked_arguments, numbers_in
from tropel.world import shapes
from tropel.world.checks import check_named_areas, check_obstacle_place, check_place
from tropel.world.declared import (
    Box,
    Door,
    ReadOnlyNames,
    as_door,
    box_corners,
    named_doors,
    named_exits,
    named_regions,
    named_rooms,
    two_corners,
)
from tropel.world.goals import Exit, GoalArrays, Target, goal_arrays, shapes_of_goals, target_state
from tropel.world.hazards import Hazard, HazardSet
from tropel.world.motion import Position, position_at
from tropel.world.obstacles import Obstacle, ObstacleSet
from tropel.world.periodic import images_of_segments, periods, sides_across, wrap_places
from tropel.world.pieces import join_pieces
from tropel.world.places import NAMED, Place, names_of
from tropel.world.shapes import ALLOWED, Polygonal, ShapeLike, check_level
from tropel.world.stored import WorldState, digest_of, read_world_state
from tropel.world.wall_grid import build_wall_grid, quantised


class World:
    """A 2D world; `World.box` makes boxes of two or three dimensions.

    `walkable` may be left out (if `bounds` are given) for open space, where only walls, doors and obstacles are in the
    way. With `periodic`, opposite sides of the bounds are joined: all of them, or those across the axes it names ("x").
    A periodic world has no walkable area. All lengths are in metres.
    """

    @checked_arguments
    def __init__(
        self,
        walkable: ShapeLike | None = None,
        *,
        walls: Iterable[ShapeLike] = (),
        exits: Mapping[str, ShapeLike] | None = None,
        regions: Mapping[str, ShapeLike] | None = None,
        rooms: Mapping[str, ShapeLike] | None = None,
        doors: Mapping[str, Door | ShapeLike] | None = None,
        obstacles: Mapping[str, Obstacle] | None = None,
        targets: Mapping[str, Target | Position] | None = None,
        hazards: Mapping[str, Hazard] | None = None,
        bounds: Position | None = None,
        periodic: bool | str | Sequence[str] = False,
    ) -> None:
        area = None if walkable is None else shapes.polygon(walkable, "walkable area")
        self.walkable: Polygonal | None = None if area is None else join_pieces(area, "walkable area")
        shapely.prepare(self.walkable)  # speeds up the queries for every exit, region, target and agent
        self.walls = [shapes.polyline(wall, f"wall {k}") for k, wall in enumerate(walls)]
        self.doors = named_doors({name: as_door(name, door) for name, door in (doors or {}).items()})
        self.exits = named_exits({name: Exit(shapes.polygon(s, f"exit '{name}'")) for name, s in (exits or {}).items()})
        self.regions = named_regions(
            {name: shapes.polygon(s, f"region '{name}'") for name, s in (regions or {}).items()}
        )
        self.rooms = named_rooms({name: shapes.polygon(s, f"room '{name}'") for name, s in (rooms or {}).items()})
        low, high = self._extent(bounds)
        if periodic and (bounds is None or self.walkable is not None):
            raise GeometryError(
                "the sides of a walkable area cannot be joined: give a periodic world bounds (x_min, y_min, x_max, "
                "y_max) instead, with walls and obstacles inside them"
            )
        period = periods(low, high, periodic)
        walled = np.full(2, self.walkable is not None)
        self._begin(2, low, high, period, walled, obstacles or {}, targets or {}, hazards or {})
        check_named_areas(self)

    @classmethod
    @checked_arguments
    def box(
        cls,
        low: Position,
        high: Position,
        *,
        periodic: bool | str | Sequence[str] = False,
        open: bool = False,
        obstacles: Mapping[str, Obstacle] | None = None,
        targets: Mapping[str, Target | Position] | None = None,
        hazards: Mapping[str, Hazard] | None = None,
        regions: Mapping[str, Annotated[tuple[Position, Position], CHECKED_ELSEWHERE]] | None = None,
    ) -> World:
        """The box between two corners of two or three coordinates, with disks or balls as obstacles.

        Its sides are walls. With `periodic`, opposite sides are joined instead: all of them, or those across the axes
        it names ("x" or "xy"). With `open` there are no walls and space is unbounded; the box is then only where agents
        without a region of their own start. Regions are boxes (low, high) too.
        """
        corner = numbers_in(low)
        dim = 2 if corner is not None and corner.shape == (2,) else 3
        corners = box_corners(low, high, "the box", dim)
        told = {name: two_corners(name, box) for name, box in (regions or {}).items()}
        boxes = {name: box_corners(*box, f"region '{name}'", dim) for name, box in told.items()}
        for name, (region_low, region_high) in boxes.items():
            if (region_high < corners[0]).any() or (region_low > corners[1]).any():
                raise GeometryError(f"region '{name}' lies outside the box; it must overlap it")
        period = periods(*corners, periodic)
        walled = (period == 0.0) & (not open)
        if dim == 2:
            areas = {name: shapely.box(*box[0], *box[1]) for name, box in boxes.items()}
            things: dict[str, Any] = {"obstacles": obstacles, "targets": targets, "hazards": hazards, "regions": areas}
            if walled.all():
                return cls(shapely.box(*corners[0], *corners[1]), **things)
            sides = sides_across(walled, *corners)
            world = cls(None, bounds=[*corners[0], *corners[1]], periodic=periodic, walls=sides, **things)
            world.walled = walled
            return world
        world = cls.__new__(cls)
        world.walkable, world.walls = None, []
        world.doors, world.exits = named_doors({}), named_exits({})
        world.regions, world.rooms = named_regions({}), named_rooms({})
        world._begin(3, *corners, period, walled, obstacles or {}, targets or {}, hazards or {})
        world.region_boxes = named_regions(boxes)
        return world

    def _begin(
        self,
        dim: int,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        period: NDArray[np.float64],
        walled: NDArray[np.bool_],
        obstacles: Mapping[str, Obstacle],
        targets: Mapping[str, Target | Position],
        hazards: Mapping[str, Hazard],
    ) -> None:
        self.dim = dim
        self.bounds = np.array([low, high], dtype=np.float64)
        self.period = period  #: the length after which space repeats along each axis [m]; 0 where it does not
        self.shortest_period = float(period[period > 0.0].min(initial=math.inf))
        self.walled = walled  #: the axes along which walls keep agents inside the bounds
        if self.is_periodic:
            # The high side is exactly one period from the low one, even after rounding.
            self.bounds[1] = np.where(period > 0.0, low + period, high)
        self.region_boxes: ReadOnlyNames[Box] = named_regions({})
        self.time = 0.0
        self._targets: dict[str, Target] = {}
        self.targets = ReadOnlyNames(
            self._targets,
            what="target",
            instead="call add_target, move_target or remove_target of the world, or use an event",
        )
        self._target_position: dict[str, NDArray[np.float64]] = {}
        self.goal_numbers: dict[str, int] = {name: k for k, name in enumerate(self.exits)}
        self._goals: GoalArrays | None = None
        self._wall_grids: dict[float, WallGrid] = {}
        self.hazards = HazardSet(dim, self.bounds[0], self.bounds[1])
        self.obstacles = ObstacleSet(dim, self.bounds[0], self.bounds[1], hazards=self.hazards, period=period)
        self._collect_segments()
        self.obstacles.add_all(obstacles)
        self.hazards.add_all(hazards)
        for name, target in targets.items():
            self.add_target(name, target)

    @property
    def is_periodic(self) -> bool:
        """Whether any sides are joined."""
        return bool(np.count_nonzero(self.period))

    @property
    def unbounded(self) -> NDArray[np.bool_]:
        """The axes along which space is unbounded."""
        return ~self.walled & (self.period == 0.0)

    def wrap(self, places: NDArray[np.float64]) -> None:
        """Move places (N, dim) that are beyond a seam to their images inside the bounds."""
        if self.is_periodic:
            wrap_places(places, self.bounds[0], self.bounds[1], self.period)

    def _extent(self, bounds: Sequence[float] | None) -> Box:
        if bounds is not None:
            corners = numbers_in(bounds)
            if (
                corners is None
                or corners.shape != (4,)
                or not (np.abs(corners) <= LARGEST_LENGTH).all()
                or not (corners[:2] < corners[2:]).all()
            ):
                raise GeometryError(f"bounds must be (x_min, y_min, x_max, y_max), {ALLOWED}, got {bounds!r}")
            return corners[:2], corners[2:]
        if self.walkable is None:
            raise GeometryError("a world needs a walkable area, or bounds (x_min, y_min, x_max, y_max) for open space")
        lines = [self.walkable, *self.walls, *(door.line for door in self.doors.values())]
        box = shapely.total_bounds(lines)
        return box[:2], box[2:]

    def check_inside(self, place: NDArray[np.float64], what: str) -> None:
        """Raise if a place is not in the walkable area; in 3D and in periodic space, if it is not in the box."""
        check_place(self, place, what)

    def _collect_segments(self) -> None:
        rows = [] if self.walkable is None else [shapes.segments_of(self.walkable)]
        rows += [images_of_segments(shapes.segments_of(wall), self.period) for wall in self.walls]
        solid = sum(len(r) for r in rows)
        self.door_rows: dict[str, slice] = {}  #: which segments each door has
        for name, door in self.doors.items():
            pieces = images_of_segments(shapes.segments_of(door.line), self.period)
            self.door_rows[name] = slice(solid, solid + len(pieces))
            solid += len(pieces)
            rows.append(pieces)
        self.segments: NDArray[np.float64] = np.concatenate(rows) if rows else np.empty((0, 4))
        self.blocking: NDArray[np.uint8] = np.ones(len(self.segments), dtype=np.uint8)
        for name, door in self.doors.items():
            self.blocking[self.door_rows[name]] = not door.open

    # Arrays for kernels -----------------------------------------------------------------------------------------

    def wall_grid(self, reach: float, *, level: int = 0) -> WallGrid:
        """Cells that list every wall of a level within `reach` [m]; cached, and valid while doors open and close."""
        check_level(level)
        wanted = quantised(reach)
        if wanted not in self._wall_grids:
            low, high = self.bounds[0][:2], self.bounds[1][:2]
            self._wall_grids[wanted] = build_wall_grid(self.segments, self.blocking, low, high, wanted)
        return self._wall_grids[wanted]

    def goals(self) -> GoalArrays:
        """All goals by number, as arrays."""
        if self._goals is None:
            self._goals = goal_arrays(self.goal_numbers, shapes_of_goals(self, self._target_position))
        return self._goals

    def number_of(self, place: Place) -> int:
        """The number of a named place. A region, room or door gets one when it is first asked for."""
        if place.key not in self.goal_numbers:
            self.goal_numbers[place.key] = len(self.goal_numbers)
            self._goals = None
        return self.goal_numbers[place.key]

    def advance(self, time: float, dt: float) -> None:
        """Move everything that moves by itself to where it is at `time` [s]."""
        self.time = time
        self.obstacles.advance(time, dt)
        self.hazards.advance(time, dt)
        for name, target in self.targets.items():
            if target.motion is not None:
                what = f"target '{name}'"
                self._target_position[name][:] = position_at(target.motion, time, what=what, dim=self.dim)
                self.wrap(self._target_position[name][None])
                self.goals().position[self.goal_numbers[name]] = self._target_position[name]

    # Changes by events ------------------------------------------------------------------------------------------

    @checked_arguments
    def set_door(self, name: str, *, open: bool) -> None:
        self.doors[name].open = bool(open)
        self.blocking[self.door_rows[name]] = not open

    @checked_arguments
    def door_segments(self, name: str) -> NDArray[np.float64]:
        self.doors[name]  # raises if there is none
        return self.segments[self.door_rows[name]]

    @checked_arguments
    def set_exit(self, name: str, *, open: bool) -> None:
        self.exits[name].open = bool(open)
        self._goals = None

    @checked_arguments
    def add_target(self, name: str, target: Target | Position) -> None:
        if name in self.exits or name in self.targets:
            raise GeometryError(f"there is a goal '{name}' already; exits and targets need different names")
        kind, _, other = name.partition(" ")
        if kind in NAMED[2:] and other in names_of(self, kind):
            raise GeometryError(f"'{name}' already stands for the {kind} '{other}'; choose another name")
        if not isinstance(target, Target):
            target = Target(position=target)
        self._place_target(name, target)
        self.goal_numbers.setdefault(name, len(self.goal_numbers))

    @checked_arguments
    def move_target(self, name: str, position: Position) -> None:
        """Move a target to another place, where it stays."""
        old = self.targets[name]
        self._place_target(name, Target(position=position, radius=old.radius, absorbs=old.absorbs))

    def check_target(self, name: str, target: Target, *, time: float = 0.0) -> NDArray[np.float64]:
        """The place of a target at `time` [s]; raises if that is not a place in this world."""
        what = f"target '{name}'"
        if target.position is None:
            assert target.motion is not None
            return position_at(target.motion, time, what=what, dim=self.dim)
        place = shapes.point(target.position, what, dim=self.dim)
        self.check_inside(place, what)
        return place

    def check_obstacle(self, name: str, obstacle: Obstacle, *, time: float = 0.0) -> None:
        """Raise if an obstacle's place at `time` [s] is not valid in this world, or far outside it."""
        check_obstacle_place(self, name, obstacle, time=time)

    @checked_arguments
    def remove_target(self, name: str) -> None:
        """Remove a target. Its number stays taken: records of the agents that left there refer to it."""
        self.targets[name]  # raises if there is none
        del self._targets[name]
        self._goals = None

    def _place_target(self, name: str, target: Target) -> None:
        place = self.check_target(name, target, time=self.time)
        self._targets[name] = target
        self._target_position[name] = place.copy()
        self.wrap(self._target_position[name][None])
        self._goals = None

    @property
    def region_names(self) -> list[str]:
        """Every name that `region` accepts."""
        return [*self.region_boxes] if self.dim == 3 else [*self.regions, *self.rooms, *self.exits]

    @checked_arguments
    def region(self, name: str) -> Polygonal | Box:
        """A named region; the polygon of a room or an exit is one too."""
        if name not in self.region_names:
            raise ParameterError(f"there is no region '{name}'; {suggest(name, self.region_names)}")
        if self.dim == 3:
            return self.region_boxes[name]
        areas = {**self.rooms, **self.regions}
        return areas[name] if name in areas else self.exits[name].polygon

    @checked_arguments
    def disc(self, middle: Position, radius: Length) -> Polygonal | Box:
        """The area within a radius [m] of a place, as a region; in 3D the cube around it."""
        place = shapes.point(middle, "the place", dim=self.dim)
        if self.dim == 3:
            return np.maximum(place - radius, self.bounds[0]), np.minimum(place + radius, self.bounds[1])
        return shapely.Point(place).buffer(radius)

    # Checkpoints and hashes -------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """What may have changed since the start, as plain data."""
        return {
            "time": self.time,
            "doors": {name: door.open for name, door in self.doors.items()},
            "exits": {name: e.open for name, e in self.exits.items()},
            "targets": {name: target_state(t, self._target_position[name]) for name, t in self.targets.items()},
            "goal_numbers": self.goal_numbers,
            "obstacles": self.obstacles.state(),
            "hazards": self.hazards.state(),
        }

    def restore(self, stored: Mapping[str, Any], *, dt: float) -> None:
        """Put back what `state` returned; if it cannot be read, nothing is changed."""
        self.put_back(read_world_state(self, stored), dt=dt)

    def put_back(self, state: WorldState, *, dt: float) -> None:
        """Set everything that can change to the values in `state`."""
        self.time = state.time
        for name, is_open in state.doors.items():
            self.set_door(name, open=is_open)
        for name, is_open in state.exits.items():
            self.set_exit(name, open=is_open)
        self._targets.clear()
        for name, target in state.targets.items():
            self._place_target(name, target)
        self.goal_numbers = dict(state.goal_numbers)
        self._goals = None
        self.obstacles.put_back(state.obstacles, time=self.time, dt=dt)
        self.hazards.put_back(state.hazards, time=self.time, dt=dt)

    def digest(self) -> str:
        """Digest of what the world was built from: the geometry and the names in it."""
        return digest_of(self)
