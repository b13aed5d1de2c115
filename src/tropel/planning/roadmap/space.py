"""The free space of a world as roadmaps see it: what stands still, doors apart, and what moves.

A roadmap is built from what stands still. Doors open and close, so it is built as if all were open, and its edges know
the doors that they lead through. Obstacles with a motion, obstacles that events added or moved since, and hazards are
what moves.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.discs import disc_grid
from tropel.planning.roadmap.sweeps import Sides, Solid, free_radii, sweeps_blocked
from tropel.world import World
from tropel.world.shapes import Polygonal

Floats = NDArray[np.float64]
Known = dict[str, tuple[tuple[float, ...], float]]

#: How far cells list things, in radii of the body and in shares of the world's longer side.
_REACH_IN_RADII, _REACH_IN_WORLDS = 3.0, 1.0 / 24.0
#: A body closer to a wall than its radius may leave it along any path that comes no closer [share of the distance].
NO_CLOSER = 0.999


class MovingDiscs(NamedTuple):
    """Which discs move, or may, among all."""

    rows: NDArray[np.int64]  #: (M,)
    position: Floats  #: (N, dim)
    velocity: Floats
    radius: Floats  #: (N,)


class Moving(NamedTuple):
    """Discs that move as a planner sees them. Inputs of kernels, which read the arrays of the world."""

    rows: NDArray[np.int64]  #: (M,)
    position: Floats  #: (N, dim)
    velocity: Floats
    radius: Floats  #: (N,)
    predicted: float  #: 1 if they are expected to go on, 0 if they count where they are
    ahead: float  #: if they are not, they count all along the way that they go in this time [s]

    def speeds(self, which: NDArray[np.int64]) -> Floats:
        """How fast some of them are expected to go [m/s]."""
        speed: Floats = self.predicted * np.linalg.norm(self.velocity[self.rows[which]], axis=1)
        return speed


@functools.cache
def no_motion(dim: int) -> Moving:
    """Nothing moves."""
    return Moving(np.empty(0, dtype=np.int64), np.empty((0, dim)), np.empty((0, dim)), np.empty(0), 0.0, 0.0)


@dataclass(eq=False, kw_only=True)
class FreeSpace:
    """Where a body of one radius can be."""

    world: World
    radius: float  #: of the body, with the clearance it keeps [m]
    region: Polygonal | None  #: where samples may lie; None for the whole world
    solid: Solid  #: without doors
    door_segments: Floats  #: (S, 4)
    door_numbers: NDArray[np.int32]  #: (S,) which door a segment belongs to
    known: Known  #: place and radius of the obstacles that stand still, by name
    part: tuple[Floats, Floats] | None = None  #: corners of the part that samples are drawn from
    _movers: tuple[int, NDArray[np.int64]] | None = field(default=None, repr=False)  #: valid for an arrangement
    _discs: tuple[tuple[int, int], MovingDiscs] | None = field(default=None, repr=False)  #: and for those of hazards

    @classmethod
    def of(
        cls,
        world: World,
        radius: float,
        *,
        region: Polygonal | None = None,
        known: Known | None = None,
        everything: bool = False,
    ) -> FreeSpace:
        """The free space of a world as it is now, or with those obstacles that `known` says stand still.

        With `everything`, obstacles that move count where they are.
        """
        if known is None:
            known = {
                name: (tuple(world.obstacles.position[row].tolist()), obstacle.radius)
                for row, (name, obstacle) in enumerate(world.obstacles.items())
                if everything or obstacle.motion is None
            }
        numbers = [np.full(len(world.door_segments(name)), k) for k, name in enumerate(world.doors)]
        segments = [world.door_segments(name) for name in world.doors]
        return cls(
            world=world,
            radius=radius,
            region=region,
            solid=_solid(world, radius, known),
            door_segments=np.concatenate([np.empty((0, 4)), *segments]),
            door_numbers=np.concatenate([np.empty(0), *numbers]).astype(np.int32),
            known=known,
        )

    @property
    def dim(self) -> int:
        return self.world.dim

    @property
    def box(self) -> tuple[Floats, Floats]:
        """Low and high corner of what samples are drawn from."""
        if self.part is not None:
            return self.part
        if self.region is None:
            return self.world.bounds[0], self.world.bounds[1]
        corners = np.reshape(self.region.bounds, (2, 2))
        return corners[0], corners[1]

    def near(self, place: Floats, within: float) -> FreeSpace:
        """The part of this space within a distance of a place, for drawing samples there; a box in 3D."""
        low, high = self.box
        return replace(self, part=(np.maximum(low, place - within), np.minimum(high, place + within)))

    def within(self, region: Polygonal | None) -> FreeSpace:
        """The part of this space in a region."""
        return replace(self, region=region)

    def with_doors(self, shut: NDArray[np.bool_]) -> Solid:
        """What stands still, with some doors shut, given by number."""
        if not len(self.door_segments) or not shut.any():
            return self.solid
        blocking = self.solid.walls.blocking.copy()
        blocking[len(blocking) - len(self.door_segments) :] = shut[self.door_numbers]
        return self.solid._replace(walls=self.solid.walls._replace(blocking=blocking))

    def shut_doors(self) -> NDArray[np.bool_]:
        """Which doors are shut now."""
        return np.array([not door.open for door in self.world.doors.values()], dtype=np.bool_)

    def inside(self, points: Floats) -> NDArray[np.bool_]:
        """Which points (N, dim) are in the walkable area or box, whatever stands there."""
        if self.world.walkable is not None:
            return np.asarray(shapely.contains_xy(self.world.walkable, points[:, 0], points[:, 1]))
        low, high = self.world.bounds
        return np.asarray(((points >= low) & (points <= high) | self.world.unbounded).all(axis=1))

    def is_free(self, points: Floats, radius: float | None = None) -> NDArray[np.bool_]:
        """At which points (N, dim) of the region a body can be; doors do not count."""
        free = self.inside(points)
        if self.region is not None:
            free[free] = shapely.contains_xy(self.region, points[free, 0], points[free, 1])
        some = points[free]
        free[free] = ~sweeps_blocked(some, some, self.radius if radius is None else radius, self.solid)
        return free

    def clearance(self, points: Floats, solid: Solid | None = None) -> Floats:
        """The radius with which a body can be at each point: that of the space, or less near a wall [m]; 0 in one.

        With `solid`, shut doors count as it says.
        """
        gap = free_radii(points, self.radius, self.solid if solid is None else solid)
        return np.where(self.inside(points), np.where(gap < self.radius, NO_CLOSER * gap, gap), 0.0)

    def _rows_that_move(self) -> NDArray[np.int64]:
        """Rows of the obstacles that do not stand where the space knows them to."""
        obstacles = self.world.obstacles
        if self._movers is None or self._movers[0] != obstacles.arrangement:
            still = [
                (tuple(place), float(radius)) == self.known.get(name) and obstacles[name].motion is None
                for name, place, radius in zip(
                    obstacles.names, obstacles.position.tolist(), obstacles.radius, strict=True
                )
            ]
            self._movers = (obstacles.arrangement, np.flatnonzero(~np.array(still, dtype=np.bool_)))
        return self._movers[1]

    def moving(self) -> MovingDiscs:
        """Everything that does not count as standing still: obstacles that move or came later, and hazards.

        The same object as before unless something has come, gone or been put elsewhere: obstacles move in place.
        """
        obstacles, hazards = self.world.obstacles, self.world.hazards
        now = (obstacles.arrangement, 0) if not len(hazards) else (obstacles.version, hazards.version)
        if self._discs is None or self._discs[0] != now or (not len(hazards) and self._is_stale(self._discs[1])):
            self._discs = (now, self._all_discs())
        return self._discs[1]

    def _is_stale(self, discs: MovingDiscs) -> bool:
        return discs.position is not self.world.obstacles.position

    def _all_discs(self) -> MovingDiscs:
        obstacles, hazards = self.world.obstacles, self.world.hazards
        rows, places = self._rows_that_move(), (obstacles.position, obstacles.velocity, obstacles.radius)
        if not len(hazards):
            return MovingDiscs(rows, *places)
        more = (hazards.position, hazards.velocity, hazards.inner)
        both = [np.concatenate(pair) for pair in zip(places, more, strict=True)]
        return MovingDiscs(np.append(rows, len(obstacles.radius) + np.arange(len(hazards))), *both)


def _solid(world: World, radius: float, known: Known) -> Solid:
    low, high = world.bounds
    reach = max(_REACH_IN_RADII * radius, _REACH_IN_WORLDS * float((high - low).max()))
    walls = world.wall_grid(reach)
    doors = len(np.concatenate([np.empty((0, 4)), *(world.door_segments(name) for name in world.doors)]))
    # Doors are the last rows of the segments of a world.
    blocking = np.ones(len(walls.segments), dtype=np.uint8)
    blocking[len(blocking) - doors :] = 0
    place = np.array([at for at, _ in known.values()], dtype=np.float64).reshape(-1, world.dim)
    size = np.array([wide for _, wide in known.values()], dtype=np.float64)
    count = len(size)
    kinds, pushes = np.zeros(count, dtype=np.int32), np.ones(count, dtype=np.uint8)
    discs = disc_grid(place, np.zeros_like(place), size, kinds, pushes, low, high, walls.reach)
    sides = Sides(low.copy(), high.copy(), world.walled.astype(np.uint8))
    return Solid(walls._replace(blocking=blocking), discs, sides)
