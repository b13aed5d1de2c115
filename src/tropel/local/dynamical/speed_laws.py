"""How fast an agent goes along its heading: the papers' three laws, and a time gap as people keep it.

    constant          v = v0
    time_to_contact   v = min(v0, (r_min - d1) / t2c)      r_min of what is in front; negative means retreat
    derivative        v = v0 / (1 + max(0, slope) + |phi'|)  slope = d phi' / d phi: steep or repelling parts slow down
    time_gap          v = v0 tanh(g / (v0 T))              g to people ahead with the right of way (`local/time_gap.py`)

The last one looks along the new heading, in 2D. People without any room push forward a little, or three of them could
block each other in a door for ever.
"""

from __future__ import annotations

import numpy as np

from tropel._kernels.cells import BLOCK, bits_within
from tropel._kernels.compile import inlined_kernel
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.simd import trailing_zeros
from tropel._kernels.walls import chord_blocked
from tropel.agents.personality import safety_distance
from tropel.local.dynamical.parameters import CONSTANT, TIME_TO_CONTACT
from tropel.local.time_gap import FREE, gap_behind, personal_time_gap, speed_at

_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined_kernel
def wanted_speed(v0, gap, courage, slope, turn, rules):
    """The three speed laws of GAME §2.2."""
    v = v0
    if rules.law == TIME_TO_CONTACT:
        d1 = safety_distance(rules.safety, courage, v0, rules.time_to_contact)
        v = max(min(v0, (gap - d1) / rules.time_to_contact), -rules.retreat * v0)
    elif rules.law != CONSTANT:
        v = v0 / (1.0 + max(0.0, slope) + abs(turn))
    return v * rules.speed_factor


@inlined_kernel
def speed_behind_others(i, hx, hy, v0, crowd, near, walls, rules, dt):
    """The speed along h that keeps the time gap to everybody in sight with the right of way."""
    time_gap = personal_time_gap(rules.time_gap, crowd.courage[i], dt)
    v = speed_at(_gap_ahead(i, hx, hy, FREE * v0 * time_gap, crowd, near, walls), v0, time_gap)
    if v < 1e-3 * v0:
        v = rules.push * v0
    return v * rules.speed_factor


@inlined_kernel
def _gap_ahead(i, hx, hy, most, crowd, near, walls):
    """How far an agent can go along h before it touches someone with the right of way; people behind walls are free."""
    x, y, sense, radius = crowd.position[i, 0], crowd.position[i, 1], crowd.sense_radius[i], crowd.radius[i]
    gap = most
    view = view_of(near, i, x, y, 0.0, sense)
    for number in range(count_runs(near, view)):
        first, last, _, _, _ = run_of(near, view, number)
        for at in range(first, last, BLOCK):
            bits = bits_within(near.met_position, at, last, x, y, 0.0, sense * sense)
            while bits != _NONE:
                k = at + trailing_zeros(bits)
                bits &= bits - _ONE
                j = np.uint64(near.met[k])
                if j == i:
                    continue
                px, py = near.met_position[0, k], near.met_position[1, k]
                nearer = gap_behind(i, j, crowd, px - x, py - y, radius + near.met_radius[k], hx, hy, gap)
                if nearer < gap and not chord_blocked(x, y, px, py, walls):
                    gap = nearer
    return gap
