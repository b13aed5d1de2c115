"""Avoid hazards: people turn away from fires, rubble and explosions, the more the nearer they are.

A hazard is (centre, r_i, r_o, a) after Banerjee, Abukmail & Kraemer (SIMULATION 85, 2009, section 5). At the distance d
its value is x = ((d - r_i) / (r_o - r_i))^a, from 0 at the inner radius to 1 at the outer (`world/hazards.py`); crowds on
cells multiply it into the value of a cell. Here it turns the planned direction e of a person that walks towards the
hazard. Let n point away from the centre and u = -e·n > 0. Then

    e' = e + strength · (1 - x) / x · u · p,        scaled to the length of e

p is tangential: the side of the hazard that e passes, and the right one of two equal sides. So e' points less and less
inwards, and along the rim in the end. The factor u is zero for directions that lead away or past: nobody turns around
and nobody is slowed down, so people leave the circle as soon as their way is free, on the side on which they went
around. No place outside the inner radius is out of reach: a door next to a fire is still used.

    p = q / max(|q|, ε),        q = t + ε r

t is the tangential part of e and r the tangential unit vector to the right. Head-on p is r. It is zero on a line slightly
to the left, at which p changes sides without a jump: people whose goal lies in front of the fire walk along that line.
With a jump they would be shaken from side to side.

Walls: a hazard behind a wall has no influence, and nobody turns to a side on which a wall or another hazard leaves no
gap for the body. If walls leave none on either side, e is multiplied by x: people slow down and stop before the fire.

A hazard that moves or grows would touch a person within the next second if d <= r_i + radius + 1 s · closing speed.
Such people go at least as much outwards as sideways, even if they only stand there. Those that touch a hazard at rest do
so too if they wanted to walk into it.

Of several hazards, the one with the lowest value among those that e leads into counts; then the same once more for e'.
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
from tropel._kernels.walls import WallGrid, chord_blocked
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
#: This share of the line to a centre must be clear: a fire may be on a wall, which the line then touches.
_ALMOST = 0.999
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
def _has_gap(h, sx, sy, width, hazards, walls, others):
    """Whether walls leave a gap of this width next to a hazard on the side s; with `others`, other hazards too."""
    cx, cy, cz = hazards.position[h, 0], hazards.position[h, 1], hazards.position[h, 2]
    reach = hazards.inner[h] + width
    if chord_blocked(cx, cy, cx + reach * sx, cy + reach * sy, walls):
        return False
    if others:
        for k in range(hazards.inner.size):
            dx, dy, dz = hazards.position[k, 0] - cx, hazards.position[k, 1] - cy, hazards.position[k, 2] - cz
            along = min(max(dx * sx + dy * sy, 0.0), reach)
            beside2 = (dx - along * sx) ** 2 + (dy - along * sy) ** 2 + dz * dz
            # The side that a hazard at the same place leaves is not its own.
            if k != h and along > 0.0 and beside2 < hazards.inner[k] ** 2:
                return False
    return True


@kernel
def _sideways(ex, ey, ez, nx, ny, nz, h, width, hazards, walls):
    """p: the tangential vector to the side on which to pass; zero if walls leave no gap on either side."""
    across = math.sqrt(nx * nx + ny * ny)
    # To the right of the way to the centre, which is -n; for the way straight up or down any direction will do.
    rx, ry = (-ny / across, nx / across) if across > 1e-6 else (1.0, 0.0)
    inwards = ex * nx + ey * ny + ez * nz
    tx, ty, tz = ex - inwards * nx, ey - inwards * ny, ez - inwards * nz
    level = math.sqrt(ex * ex + ey * ey)
    if level > 1e-6:
        sx, sy = ey / level, -ex / level
        to_right = _has_gap(h, sx, sy, width, hazards, walls, True)
        to_left = _has_gap(h, -sx, -sy, width, hazards, walls, True)
        if not (to_right or to_left):
            to_right = _has_gap(h, sx, sy, width, hazards, walls, False)
            to_left = _has_gap(h, -sx, -sy, width, hazards, walls, False)
            if not (to_right or to_left):
                return 0.0, 0.0, 0.0
        if to_right != to_left:
            return (rx, ry, 0.0) if to_right else (-rx, -ry, 0.0)
    qx, qy, qz = tx + _HEAD_ON * rx, ty + _HEAD_ON * ry, tz
    length = max(math.sqrt(qx * qx + qy * qy + qz * qz), _HEAD_ON)
    return qx / length, qy / length, qz / length


@kernel
def _turned(x, y, z, radius, ex, ey, ez, h, strength, hazards, walls):
    """The direction e, a unit vector or zero, as the hazard h changes it."""
    distance, nx, ny, nz = _outward(x, y, z, h, hazards)
    closing = _closing(nx, ny, nz, h, hazards)
    outwards = ex * nx + ey * ny + ez * nz
    px, py, pz = 0.0, 0.0, 0.0
    if outwards < 0.0:
        px, py, pz = _sideways(ex, ey, ez, nx, ny, nz, h, 2.0 * radius + _ROOM, hazards, walls)
    if distance <= hazards.inner[h] + radius + _AHEAD * closing:
        if outwards >= math.sqrt(0.5):
            return ex, ey, ez
        if outwards >= 0.0:
            px, py, pz = ex - outwards * nx, ey - outwards * ny, ez - outwards * nz
        side = math.sqrt(px * px + py * py + pz * pz)
        share = 1.0 / side if side > 1e-9 else 0.0
        vx, vy, vz = nx + share * px, ny + share * py, nz + share * pz
    else:
        value = _value(distance, h, hazards)
        if px == 0.0 and py == 0.0 and pz == 0.0:
            return value * ex, value * ey, value * ez
        push = -outwards * strength * (1.0 - value) / max(value, 1e-9)
        vx, vy, vz = ex + push * px, ey + push * py, ez + push * pz
    length = math.sqrt(vx * vx + vy * vy + vz * vz)
    return vx / length, vy / length, vz / length


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
        own = strength * (1.5 - courage[i]) if courage.size else strength
        last = _NONE
        for _ in range(_MOST):
            h = _most_urgent(x, y, z, radius[i], ex, ey, ez, hazards, last, walls)
            if h == _NONE:
                break
            ex, ey, ez = _turned(x, y, z, radius[i], ex, ey, ez, h, own, hazards, walls)
            last = h
        if last != _NONE:
            # People that stand have no length of their own; only those that flee get one here.
            pace = length if length > 0.0 else 1.0
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

    def prepare(self, moment: Moment) -> None:
        self.behaviours.begin()

    def is_idle(self, moment: Moment) -> bool:
        return not len(moment.world.hazards) or not self.behaviours["hazard influence"]

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Turn the directions of the members away from hazards that they walk into, or that come near."""
        state = moment.state
        courage = state.columns.get("courage", np.empty(0))
        turn_away(moment.members, state.position, state.radius, courage, moment.waiting, hazard_arrays(moment.world),
                  _walls(moment.world), self._strength, directions)  # fmt: skip

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
    return Hazards(
        position=_in_space(position),
        velocity=_in_space(given.velocity[rows]),
        inner=given.inner[rows],
        outer=given.outer[rows],
        intensity=np.array([item.intensity for item in items])[rows],
        growth=np.array(growing)[rows],
    )


def _in_space(vectors: Floats) -> Floats:
    return vectors if vectors.shape[1] == 3 else np.column_stack([vectors, np.zeros(len(vectors))])


def _walls(world: World) -> WallGrid:
    # Lines of sight are longer than this reach, but a grid of that reach exists anyway.
    return world.wall_grid(1.0)
