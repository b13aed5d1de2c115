"""Avoid hazards: people turn away from fires, rubble and explosions, the more the nearer they are.

A hazard is (centre, r_i, r_o, a) after Banerjee, Abukmail & Kraemer (SIMULATION 85, 2009, section 5). At the distance d
its value is x = ((d - r_i) / (r_o - r_i))^a, from 0 at the inner radius to 1 at the outer (`world/hazards.py`). Crowds
on cells multiply it into the value of a cell. Here it turns the planned direction e of a person that walks towards the
hazard. Let n point away from the centre and u = -e·n > 0. Then

    e' = e + strength · (1 - x) / x · u · p,        scaled to the length of e

p is tangential: the side of the hazard that e passes, and the right one of two equal sides. So e' points less and less
inwards, and along the rim in the end. The factor u is zero for directions that lead away or past: nobody turns around
and nobody is slowed down, so people leave the circle as soon as their way is free, on the side on which they went
around. No place outside the inner radius is out of reach: a door next to a fire is still used.

    p = q / max(|q|, ε),        q = t + ε r

t is the tangential part of e and r the tangential unit vector to the right. Head-on p is r. It is zero on a line
slightly to the left, at which p changes sides without a jump: people whose goal lies in front of the fire walk along
that line. With a jump they would be shaken from side to side.

Walls: a hazard behind a wall has no influence, and nobody turns to a side on which a wall leaves no gap for the body.
There the tangential part of e changes its sign. If walls leave no gap on either side, e is multiplied by x: people slow
down and stop before the fire. Hazards so close together that nobody fits between them are passed on one side together.

A hazard that moves or grows would touch a person within the next second if d <= r_i + radius + 1 s · closing speed.
Such people go at least as much outwards as sideways, even if they only stand there. Those that touch a hazard at rest
do so too if they wanted to walk into it.

The rule has no memory and no plan: where a gap beside a door is just too narrow, people may waver between two sides.
Planners find the way around such places (`replan`).

Of several hazards, the one with the lowest value among those that e leads into counts; then the same once more for e',
on the side that it has chosen.
Strength is multiplied by 1.5 - courage where people have that trait (`agents/personality.py`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.walls import cell_at, chord_blocked, nearest_on_segment
from tropel.agents.state import Floats
from tropel.contracts import Declaration, Habit, Moment
from tropel.contracts.layers import Behaviours
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.world import World
from tropel.world.periodic import images_of_discs, wrap_places

STRENGTH = Quantity(name="strength", low=0.0, high=1000.0, about="how strongly people turn away; 0 to walk right up")

#: ε: below this sine of the angle to the centre people go around on the right.
_HEAD_ON = 0.1
#: How far ahead people see a hazard coming [s].
_AHEAD = 1.0
#: Room that a body needs besides its own width to pass between a hazard and a wall [m].
_ROOM = 0.1
#: Gaps between hazards that are narrower than this are none [m].
_BODY = 0.6
#: This share of the line to a centre must be clear: a fire may be on a wall, which the line then touches.
_ALMOST = 0.999
#: Narrow places at least this far from e must be passed to get around a hazard: a right angle, and a little less where
#: e is not exactly parallel to a wall [rad].
_BESIDE = 0.5 * math.pi - 0.25
#: What is this close to the far side of a hazard, seen along e, is not in the way of people that pass it [rad].
_BEHIND = math.pi / 6.0
#: Hazards that change the direction of one person in a step.
_MOST = 2
_NONE = -1


class Hazards(NamedTuple):
    """The hazards of a world as kernels read them; places and velocities have three coordinates."""

    position: Floats
    velocity: Floats
    inner: Floats
    outer: Floats
    intensity: Floats
    growth: Floats  #: of the inner radius [m/s]
    cluster: NDArray[np.int64]  #: the same number for hazards between which nobody fits


@kernel
def find_clusters(position, inner, cluster):
    """Give hazards the lowest row of those that are connected to them without a gap for a body."""
    for h in range(inner.size):
        cluster[h] = h
    changed = True
    while changed:
        changed = False
        for h in range(inner.size):
            for k in range(h):
                gap2 = 0.0
                for axis in range(3):
                    gap2 += (position[h, axis] - position[k, axis]) ** 2
                if cluster[h] != cluster[k] and gap2 < (inner[h] + inner[k] + _BODY) ** 2:
                    cluster[h] = cluster[k] = min(cluster[h], cluster[k])
                    changed = True


@kernel
def _in_sight(x, y, h, hazards, walls):
    end_x = x + _ALMOST * (hazards.position[h, 0] - x)
    end_y = y + _ALMOST * (hazards.position[h, 1] - y)
    return not chord_blocked(x, y, end_x, end_y, walls)


@kernel
def _outward(x, y, z, h, hazards):
    """The distance to a centre and the unit vector away from it."""
    nx, ny, nz = x - hazards.position[h, 0], y - hazards.position[h, 1], z - hazards.position[h, 2]
    distance = math.sqrt(nx * nx + ny * ny + nz * nz)
    if distance == 0.0:
        return 0.0, 1.0, 0.0, 0.0
    return distance, nx / distance, ny / distance, nz / distance


@kernel
def _value(distance, h, hazards):
    """0 up to the inner radius, 1 from the outer one on."""
    if distance <= hazards.inner[h]:
        return 0.0
    if distance >= hazards.outer[h]:
        return 1.0
    return ((distance - hazards.inner[h]) / (hazards.outer[h] - hazards.inner[h])) ** hazards.intensity[h]


@kernel
def _closing(nx, ny, nz, h, hazards):
    """How fast the rim comes nearer [m/s]."""
    moving = hazards.velocity[h, 0] * nx + hazards.velocity[h, 1] * ny + hazards.velocity[h, 2] * nz
    return max(moving + hazards.growth[h], 0.0)


@kernel
def _most_urgent(x, y, z, radius, ex, ey, ez, hazards, but, walls):
    """The hazard in sight with the lowest value that e leads into or that comes nearer, except `but`; -1 if none."""
    found, lowest = _NONE, 1.0
    for h in range(hazards.inner.size):
        distance, nx, ny, nz = _outward(x, y, z, h, hazards)
        closing = _closing(nx, ny, nz, h, hazards)
        reached = distance <= hazards.inner[h] + radius + _AHEAD * closing
        if h == but or (distance >= hazards.outer[h] and not reached):
            continue
        inwards = ex * nx + ey * ny + ez * nz < 0.0
        if not (inwards or (reached and closing > 0.0)):
            continue
        value = 0.0 if reached else _value(distance, h, hazards)
        if value < lowest and _in_sight(x, y, h, hazards, walls):
            found, lowest = h, value
    return found


@kernel
def _angle_around(nx, ny, dx, dy):
    """The angle from n to d anticlockwise, which is the way around on the right [0, 2π)."""
    angle = math.atan2(nx * dy - ny * dx, nx * dx + ny * dy)
    return angle if angle >= 0.0 else angle + 2.0 * math.pi


@kernel
def _way_around(narrow, end):
    """How far people get around a hazard if its surroundings are too narrow at one angle and e points at another.

    0: not to where e leads away from the hazard, 1: so far, 2: almost to e. People that went around on a side with a
    dead end behind the hazard would not come back.
    """
    if narrow >= end - _BEHIND:
        return 2
    return 1 if narrow > end - _BESIDE else 0


@kernel
def _sides_past_walls(ex, ey, nx, ny, h, width, hazards, walls):
    """`_way_around` on the right and left, past walls that leave no gap of this width, and the better side of e."""
    cx, cy = hazards.position[h, 0], hazards.position[h, 1]
    first, last = 2.0 * math.pi, 0.0
    cell = cell_at(cx, cy, walls.origin, walls.inverse_cell, walls.shape)
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if walls.blocking[s]:
            qx, qy = nearest_on_segment(
                cx, cy, walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
            )
            if (qx - cx) ** 2 + (qy - cy) ** 2 < (hazards.inner[h] + width) ** 2:
                angle = _angle_around(nx, ny, qx - cx, qy - cy)
                first, last = min(first, angle), max(last, angle)
    end = _angle_around(nx, ny, ex, ey)
    better = -1.0 if first < end and last <= end else 1.0
    return _way_around(first, end), _way_around(2.0 * math.pi - last, 2.0 * math.pi - end), better


@kernel
def _forced_side(x, y, ex, ey, h, width, hazards, walls):
    """1 if people must pass on the right, -1 on the left, 0 on any side; 2 if walls leave no gap on either side.

    The second value is the side for people that walk straight at the hazard, if they may choose: on the left if it is
    narrow behind the hazard on the right only. Otherwise they would waver between this and what they must do near it.

    People that would walk past without turning may pass on any side: a door in front of a dead end is not closed.
    Hazards without a gap between them are passed together, on the side on which they end sooner.
    """
    right = left = 2
    to_right = to_left = 0.0
    alone = clear = True
    better = 1.0
    for k in range(hazards.inner.size):
        if hazards.cluster[k] != hazards.cluster[h]:
            continue
        alone = alone and k == h
        dx, dy = hazards.position[k, 0] - x, hazards.position[k, 1] - y
        across = dx * ey - dy * ex
        clear = clear and abs(across) >= hazards.inner[k] + width
        to_right, to_left = max(to_right, hazards.inner[k] + across), max(to_left, hazards.inner[k] - across)
        if walls.segments.shape[0] > 0:
            away = math.sqrt(dx * dx + dy * dy)
            if away > 0.0:
                own_right, own_left, own = _sides_past_walls(ex, ey, -dx / away, -dy / away, k, width, hazards, walls)
                right, left = min(right, own_right), min(left, own_left)
                if k == h:
                    better = own
    if clear:
        return 0, better
    if right == 0 and left == 0:
        return 2, better
    if right != left:
        return (1 if right > left else -1), better
    if alone:
        return 0, better
    return (1 if to_right <= to_left else -1), better


@kernel
def _sideways(tx, ty, tz, nx, ny, side, better):
    """p: the tangential vector to the side on which to pass, given the tangential part t of e.

    Head-on that is the `better` side, 1 for right, unless a `side` is forced.
    """
    across = math.sqrt(nx * nx + ny * ny)
    # To the right of the way to the centre, which is -n; for the way straight up or down any direction will do.
    rx, ry = (-ny / across, nx / across) if across > 1e-6 else (1.0, 0.0)
    if side != 0:
        return side * rx, side * ry, 0.0
    qx, qy, qz = tx + better * _HEAD_ON * rx, ty + better * _HEAD_ON * ry, tz
    length = max(math.sqrt(qx * qx + qy * qy + qz * qz), _HEAD_ON)
    return qx / length, qy / length, qz / length


@kernel
def _turned(x, y, z, radius, ex, ey, ez, h, chosen, strength, hazards, walls):
    """The direction e, a unit vector or zero, as the hazard h changes it, and the share of the pace to keep.

    With `chosen`, e has been turned before: it keeps its side.
    """
    distance, nx, ny, nz = _outward(x, y, z, h, hazards)
    reached = distance <= hazards.inner[h] + radius + _AHEAD * _closing(nx, ny, nz, h, hazards)
    outwards = ex * nx + ey * ny + ez * nz
    tx, ty, tz = ex - outwards * nx, ey - outwards * ny, ez - outwards * nz
    px, py, pz = tx, ty, tz
    side, better = 0, 1.0
    if outwards < 0.0:
        if not chosen:
            side, better = _forced_side(x, y, ex, ey, h, 2.0 * radius + _ROOM, hazards, walls)
        if side != 2:
            px, py, pz = _sideways(tx, ty, tz, nx, ny, side, better)
    if reached:
        if outwards >= math.sqrt(0.5):
            return ex, ey, ez, 1.0
        length = math.sqrt(px * px + py * py + pz * pz)
        share = 1.0 / length if side != 2 and length > 1e-9 else 0.0
        vx, vy, vz = nx + share * px, ny + share * py, nz + share * pz
    else:
        value = _value(distance, h, hazards)
        if side == 2:
            return ex, ey, ez, value
        if side != 0 and tx * px + ty * py < 0.0:
            # The other side is closed: as if e passed on this one.
            tx, ty, tz = -tx, -ty, -tz
        push = -outwards * strength * (1.0 - value) / max(value, 1e-9)
        vx, vy, vz = outwards * nx + tx + push * px, outwards * ny + ty + push * py, outwards * nz + tz + push * pz
    length = math.sqrt(vx * vx + vy * vy + vz * vz)
    return vx / length, vy / length, vz / length, 1.0


@parallel_kernel
def turn_away(rows, position, radius, courage, waiting, hazards, walls, strength, directions):
    """Change the directions of the rows; `courage` and `waiting` may be empty."""
    dim = position.shape[1]
    for n in numba.prange(rows.size):
        i = rows[n]
        if waiting.size and waiting[i]:
            continue
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if dim == 3 else 0.0
        ex, ey = directions[i, 0], directions[i, 1]
        ez = directions[i, 2] if dim == 3 else 0.0
        length = math.sqrt(ex * ex + ey * ey + ez * ez)
        if length > 0.0:
            ex, ey, ez = ex / length, ey / length, ez / length
        pace = length if length > 0.0 else 1.0
        own = strength * (1.5 - courage[i]) if courage.size else strength
        last = _NONE
        for _ in range(_MOST):
            h = _most_urgent(x, y, z, radius[i], ex, ey, ez, hazards, last, walls)
            if h == _NONE:
                break
            ex, ey, ez, share = _turned(x, y, z, radius[i], ex, ey, ez, h, last != _NONE, own, hazards, walls)
            pace *= share
            last = h
        if last != _NONE:
            directions[i, 0], directions[i, 1] = pace * ex, pace * ey
            if dim == 3:
                directions[i, 2] = pace * ez


class AvoidHazards(Habit):
    """Turn away from hazards; people that are braver keep less distance. A default habit, in 2D and 3D."""

    declares = Declaration(periodic_space=True)

    @checked_arguments
    def __init__(self, *, strength: Annotated[float, STRENGTH] = 3.0) -> None:
        self.parameters = f"strength={strength!r}"
        self._strength = float(strength)
        self.behaviours: Behaviours = Behaviours("hazard influence")
        self._hazards: Hazards | None = None
        self._made_of: tuple[World | None, int] = (None, -1)  #: the world, and the version of its hazards

    def prepare(self, moment: Moment) -> None:
        self.behaviours.begin()
        self._hazards = None

    def is_idle(self, moment: Moment) -> bool:
        return not len(moment.world.hazards) or not self.behaviours["hazard influence"]

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Turn the directions of the members away from hazards that they walk into, or that come near."""
        state = moment.state
        courage = state.columns.get("courage", np.empty(0))
        hazards = self._hazards_of(moment.world)
        # The lists of walls around hazards must be complete as far as gaps for bodies are looked for.
        widest = float(hazards.inner.max()) + 2.0 * moment.reduce.largest(state.radius) + _ROOM
        turn_away(moment.members, state.position, state.radius, courage, moment.waiting, hazards,
                  moment.world.wall_grid(widest), self._strength, directions)  # fmt: skip

    def _hazards_of(self, world: World) -> Hazards:
        made_of = world, world.hazards.version
        if self._hazards is None or self._made_of != made_of:
            self._hazards, self._made_of = hazard_arrays(world), made_of
        return self._hazards

    def set_behaviour(self, name: str, on: bool) -> None:
        """Without "hazard influence" people ignore hazards until they run into one."""
        self.behaviours.switch(name, on)

    def state(self) -> dict[str, NDArray[Any]]:
        return self.behaviours.state()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.behaviours.restore(stored)


def hazard_arrays(world: World) -> Hazards:
    """The hazards of a world, with their images beyond the seams of periodic space."""
    given = world.hazards
    items = [given[name] for name in given.names]
    growing = [
        item.growth if item.largest is None or inner < item.largest else 0.0
        for item, inner in zip(items, given.inner.tolist(), strict=True)
    ]
    position, rows = given.position, np.arange(len(given))
    if world.is_periodic:
        position = position.copy()
        wrap_places(position, world.bounds[0], world.bounds[1], world.period)
        rows, position = images_of_discs(position, given.outer, world.bounds[0], world.bounds[1], world.period)
    place, inner = _in_space(position), given.inner[rows]
    cluster = np.empty(len(inner), dtype=np.int64)
    find_clusters(place, inner, cluster)
    return Hazards(
        position=place,
        velocity=_in_space(given.velocity[rows]),
        inner=inner,
        outer=given.outer[rows],
        intensity=np.array([item.intensity for item in items])[rows],
        growth=np.array(growing)[rows],
        cluster=cluster,
    )


def _in_space(vectors: Floats) -> Floats:
    return vectors if vectors.shape[1] == 3 else np.column_stack([vectors, np.zeros(len(vectors))])
