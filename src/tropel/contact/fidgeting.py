"""Agents that want to move and cannot: how long they have been held, and how they fidget.

An agent that makes no headway for a while (column `held`) fidgets: in about every second moment it steps in a random
direction instead, for as long as the moment lasts. This breaks up the arches in front of doors that contact forces
alone leave standing. The longer it has been held, the more its wish weighs, so that it also moves the many behind it
that press on the arch; no move becomes longer by that.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.philox import uniform, uniform_pair

#: Agents that achieve less than this share of their wanted move are held; they tolerate it for this long [s].
_HELD, _PATIENCE = 0.2, 0.25
#: How long a fidget lasts [s], and the probability that a held agent fidgets in a given moment.
_MOMENT, _OFTEN = 0.5, 0.5
#: How much more a fidget weighs per second that the agent has been held [1/s], and at most.
_INSISTENCE, _STRONGEST = 4.0, 40.0


def moment_at(time: float) -> int:
    """The number of the moment that this time [s] belongs to; within a moment an agent keeps its fidget."""
    return int(time / _MOMENT)


@inlined_kernel
def _random_move(mx, my, mz, dim, key, agent, moment):
    """A random move of the same length as m. In 2D it is m rotated, so that a rotated crowd behaves identically."""
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
    """Whether an agent that has been held this long [s] may fidget."""
    return time_held >= _PATIENCE


@inlined_kernel
def fidgets(agent, key, moment):
    """Whether an impatient agent, identified by its id, fidgets in this moment."""
    return uniform(key, agent, moment, 2) < _OFTEN


@inlined_kernel
def turn_wish(i, contacts, key, moment, time_held, wish):
    """Replace the wanted end of agent i's move by one in a random direction."""
    position = contacts.position
    dim = position.shape[1]
    wx, wy = wish[i, 0] - position[i, 0], wish[i, 1] - position[i, 1]
    wz = wish[i, 2] - position[i, 2] if dim == 3 else 0.0
    more = min(max(_INSISTENCE * time_held, 1.0), _STRONGEST)
    fx, fy, fz = _random_move(more * wx, more * wy, more * wz, dim, key, contacts.id[i], moment)
    wish[i, 0], wish[i, 1] = position[i, 0] + fx, position[i, 1] + fy
    if dim == 3:
        wish[i, 2] = position[i, 2] + fz


@kernel
def note_held(position, wanted, ends, dt, held):
    """Count how long each agent has been held so far [s]; the count restarts when the agent makes headway."""
    for i in range(position.shape[0]):
        wish2 = headway = 0.0
        for axis in range(position.shape[1]):
            wish = wanted[i, axis] - position[i, axis]
            wish2 += wish * wish
            headway += wish * (ends[i, axis] - position[i, axis])
        held[i] = held[i] + dt if headway < _HELD * wish2 else 0.0
