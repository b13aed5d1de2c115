"""Agents that want to go on and cannot: how long they have been held, and how they fidget.

After a while without headway (column `held`) an agent fidgets: in every other moment it steps in a random direction
instead, for as long as the moment lasts. That breaks up the arches before doors that pressing alone leaves standing.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.philox import uniform, uniform_pair

#: Agents that keep less than this share of their wish are held, and bear it so long [s].
_HELD, _PATIENCE = 0.2, 0.25
#: How long a fidget lasts [s], and how often an agent that is held does it.
_MOMENT, _OFTEN = 0.5, 0.5


def moment_at(time: float) -> int:
    """The number of the moment in which fidgets at this time [s] belong together."""
    return int(time / _MOMENT)


@inlined_kernel
def _random_move(mx, my, mz, dim, key, agent, moment):
    """A move as long as m in a random direction; in 2D turned with m, so that a turned crowd does the same."""
    u, v = uniform_pair(key, agent, moment, 1)
    angle = 2.0 * math.pi * u
    c, s = math.cos(angle), math.sin(angle)
    if dim == 2:
        return c * mx - s * my, s * mx + c * my, 0.0
    size = math.sqrt(mx * mx + my * my + mz * mz)
    up = 2.0 * v - 1.0
    flat = size * math.sqrt(max(1.0 - up * up, 0.0))
    return flat * c, flat * s, size * up


@inlined_kernel
def is_impatient(time_held):
    """Whether an agent that has been held so long [s] may fidget."""
    return time_held >= _PATIENCE


@inlined_kernel
def fidgets(agent, key, moment):
    """Whether an impatient agent, given by its id, fidgets in this moment."""
    return uniform(key, agent, moment, 2) < _OFTEN


@inlined_kernel
def turn_wish(i, contacts, key, moment, wish):
    """Replace the wanted end of agent i's move by one in a random direction."""
    position = contacts.position
    dim = position.shape[1]
    wx, wy = wish[i, 0] - position[i, 0], wish[i, 1] - position[i, 1]
    wz = wish[i, 2] - position[i, 2] if dim == 3 else 0.0
    fx, fy, fz = _random_move(wx, wy, wz, dim, key, contacts.id[i], moment)
    wish[i, 0], wish[i, 1] = position[i, 0] + fx, position[i, 1] + fy
    if dim == 3:
        wish[i, 2] = position[i, 2] + fz


@kernel
def note_held(position, wanted, ends, dt, held):
    """Count how long everybody has been held by now [s]: an agent that gets on starts again."""
    for i in range(position.shape[0]):
        wish2 = headway = 0.0
        for axis in range(position.shape[1]):
            wish = wanted[i, axis] - position[i, axis]
            wish2 += wish * wish
            headway += wish * (ends[i, axis] - position[i, axis])
        held[i] = held[i] + dt if headway < _HELD * wish2 else 0.0
