"""Trails: the paths that leaders have walked lately, and the places that their followers pursue.

A follower pursues its leader. Where a wall hides the leader, it pursues the newest point of the leader's trail that it
sees, so it comes around corners and through doors as the leader did. Points that its whole body can walk to come first:
whoever heads for a point seen past a doorpost by a hair ends at the post. Where it sees no point, it goes straight.

A leader that comes by a point of its trail again makes that point the newest one and adds none. So a leader that
circles at its goal, or walks to and fro while it waits, does not wear out the trail that leads stragglers to it. From
each point the leader went on to a newer one: whoever goes from point to newer point comes to the leader.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import nearest_image
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.walls import chord_blocked
from tropel.agents.state import AgentState
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.world import World
from tropel.world.shapes import FARTHEST

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: Points of a trail.
LENGTH = 512
#: A leader comes by a point again if it is within this share of the distance between points.
_COMES_BY = 0.75
#: Flanks are a little inside of the body, so that a body that touches a wall can walk along it.
_FLANK = 0.9


def may_hide(world: World) -> bool:
    """Whether walls can be between two agents: not in space, where there are none, nor in a convex room."""
    if world.dim == 3 or not len(world.segments):
        return False
    if world.is_periodic or world.walkable is None or world.walls or world.doors:
        return True
    return not bool(world.walkable.convex_hull.area <= world.walkable.area * (1.0 + 1e-9))


class Trails:
    """The last points of the paths of leaders, the newest first; a row for each leader, in the order of their ids."""

    def __init__(self, dim: int, count: int = 0, length: int = 0) -> None:
        self.ids: Ints = np.empty(0, dtype=np.int64)
        self.points: Floats = np.zeros((count, length, dim))  #: no points where nothing can hide a leader
        self.filled: Ints = np.zeros(count, dtype=np.int64)  #: how many points are known
        self.now: Floats = np.empty((count, dim))  #: where the leaders are at the beginning of the step
        self.spacing = 0.0  #: distance between the points [m]; 0 until it is decided
        self._hides: tuple[World, bool] | None = None

    def hides(self, world: World) -> bool:
        """Whether trails are needed in a world."""
        if self._hides is None or self._hides[0] is not world:
            self._hides = world, may_hide(world)
        return self._hides[1]

    def keep(self, ids: Ints, kept: NDArray[np.bool_], place: Ints, world: World) -> None:
        """Make room for the leaders with these ids; those marked as kept were in these rows."""
        fresh = Trails(self.points.shape[2], len(ids), LENGTH if self.hides(world) else 0)
        if self.points.shape[1] == fresh.points.shape[1]:
            fresh.points[kept], fresh.filled[kept] = self.points[place[kept]], self.filled[place[kept]]
        self.ids, self.points, self.filled = ids, fresh.points, fresh.filled

    def reorder(self, order: Ints) -> None:
        """Put the rows of leaders into another order."""
        self.points, self.filled = self.points[order], self.filled[order]

    def note(self, ids: Ints, place: Floats, spacing: float, world: World) -> None:
        """Add where leaders are now, if they have come far enough since the last point."""
        self.ids, self.now = ids, place.copy()
        if not self.hides(world):
            return
        away = np.linalg.norm(place - self.points[:, 0], axis=1)
        rows = np.flatnonzero((self.filled == 0) | (away >= spacing))
        if len(rows):
            _note_points(rows, place, self.points, self.filled, _COMES_BY * spacing, world.wall_grid(2.0))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"trail": self.points, "trail_filled": self.filled, "trail_spacing": np.array(self.spacing)}

    @classmethod
    def read(cls, stored: Mapping[str, NDArray[Any]], count: int, dim: int) -> Trails:
        fresh = cls(dim, count)
        shape = (count, None, dim)
        fresh.points = taken(stored, "leaders/trail", dtype="float64", shape=shape, low=-FARTHEST, high=FARTHEST)
        if fresh.points.shape[1] not in (0, LENGTH):
            raise CheckpointError(f"'leaders/trail' has {fresh.points.shape[1]} points per leader, not {LENGTH}")
        most = fresh.points.shape[1]
        fresh.filled = taken(stored, "leaders/trail_filled", dtype="int64", shape=(count,), low=0, high=most)
        fresh.spacing = float(taken(stored, "leaders/trail_spacing", dtype="float64", shape=(), low=0.0, high=1e6))
        fresh.ids = taken(stored, "leaders/id", dtype="int64", shape=(count,))
        return fresh


@kernel
def _note_points(rows, place, points, filled, near, walls):
    """Let the trails of some leaders begin where they are: at a known point near them, or at a new one."""
    for n in range(rows.size):
        k = rows[n]
        x, y = place[k, 0], place[k, 1]
        known, least = -1, near
        for m in range(filled[k]):
            px, py = points[k, m, 0], points[k, m, 1]
            away = math.sqrt((px - x) ** 2 + (py - y) ** 2)
            if away < least and not chord_blocked(x, y, px, py, walls):
                known, least = m, away
        if known >= 0:
            x, y = points[k, known, 0], points[k, known, 1]
        else:
            known = min(filled[k], points.shape[1] - 1)
            filled[k] = known + 1
        for m in range(known, 0, -1):
            points[k, m, 0], points[k, m, 1] = points[k, m - 1, 0], points[k, m - 1, 1]
        points[k, 0, 0], points[k, 0, 1] = x, y


@inlined_kernel
def _is_walkable(ax, ay, bx, by, half_width, walls):
    """Whether both flanks of a body can go straight from a to b, which are in sight of each other."""
    length = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2)
    if length == 0.0:
        return True
    nx, ny = half_width * (by - ay) / length, half_width * (ax - bx) / length
    return not chord_blocked(ax + nx, ay + ny, bx + nx, by + ny, walls) and not chord_blocked(
        ax - nx, ay - ny, bx - nx, by - ny, walls
    )


@inlined_kernel
def _write_pursued(i, trail, place_x, place_y, position, radius, points, filled, spacing, walls, out, on_trail):
    """Where agent i goes in the plane, if the place that it pursues may be hidden."""
    x, y = position[i, 0], position[i, 1]
    half_width = _FLANK * radius[i]
    out[i, 0], out[i, 1] = place_x, place_y
    seen = trail < 0 or not chord_blocked(x, y, place_x, place_y, walls)
    if trail < 0 or (seen and _is_walkable(x, y, place_x, place_y, half_width, walls)):
        return
    newer_x, newer_y, newer_is_seen, newer_on_trail = place_x, place_y, seen, False
    for k in range(filled[trail]):
        px, py = points[trail, k, 0], points[trail, k, 1]
        point_is_seen = not chord_blocked(x, y, px, py, walls)
        if point_is_seen and _is_walkable(x, y, px, py, half_width, walls):
            if newer_is_seen and (px - x) ** 2 + (py - y) ** 2 < spacing**2:
                # It is at this point. The leader went on to the newer one, perhaps around a corner.
                px, py, point_is_seen = newer_x, newer_y, newer_on_trail
            out[i, 0], out[i, 1], on_trail[i] = px, py, point_is_seen
            return
        if point_is_seen and not seen:
            out[i, 0], out[i, 1], on_trail[i] = px, py, True
            seen = True
        newer_x, newer_y, newer_is_seen, newer_on_trail = px, py, point_is_seen, True


@parallel_kernel
def _pursued(position, radius, leader, trail, handover, points, filled, spacing, walls, period, hides, out, on_trail):
    for i in numba.prange(position.shape[0]):
        j = leader[i]
        if j < 0:
            continue
        for axis in range(position.shape[1]):
            # The image of the place that is nearest, so that nobody looks across the whole of periodic space.
            away = nearest_image(position[j, axis] + handover[i, axis] - position[i, axis], period[axis])
            out[i, axis] = position[i, axis] + away if period[axis] > 0.0 else position[j, axis] + handover[i, axis]
        if hides:
            _write_pursued(i, trail[i], out[i, 0], out[i, 1], position, radius, points, filled, spacing, walls, out,
                           on_trail)  # fmt: skip


class Pursued(NamedTuple):
    """What followers pursue; rows of agents without a leader mean nothing. Both are empty if all see their leaders."""

    place: Floats
    on_trail: NDArray[np.bool_]  #: whether it is a point of the trail, and the leader itself is farther


def pursued_places(state: AgentState, world: World, leader_rows: Ints, trails: Trails) -> Pursued:
    """Where each follower goes: to its leader, or along the leader's trail.

    `leader_rows` has the row of each agent's leader, -1 for none.
    """
    handover, hides = state.columns["handover"], trails.hides(world)
    if not hides and not np.count_nonzero(handover):
        return Pursued(np.empty((0, state.dim)), np.empty(0, dtype=np.bool_))
    leader, ids = state.columns["leader"], np.append(trails.ids, -2)
    place = np.searchsorted(trails.ids, leader)
    trail = np.where(ids[place] == leader, place, -1)
    out = Pursued(np.zeros_like(state.position), np.zeros(len(state), dtype=np.bool_))
    walls = world.wall_grid(2.0)
    _pursued(state.position, state.radius, leader_rows, trail, handover, trails.points, trails.filled, trails.spacing,
             walls, world.period, hides, out.place, out.on_trail)  # fmt: skip
    return out
