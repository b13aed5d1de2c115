"""How fast an agent goes along its heading: the papers' three laws, one of them made safe, and a time gap.

    constant          v = v0
    time_to_contact   v = min(v0, (r_min - d1) / t2c)      r_min of what is in front; negative means retreat
    time_to_rest      v = min(v0, (r_min - v tau - max(d1, closest)) / t2c)     v tau: how far its mass carries it on
    derivative        v = v0 / (1 + max(0, slope) + |phi'|)  slope = d phi' / d phi: steep or repelling parts slow down
    time_gap          v = v0 tanh(g / (v0 T))              g to people ahead with the right of way (`local/time_gap.py`)

As printed, the second law lets two kinds of agents run into what they see. The speed of a heavy one follows with a
time constant tau of up to 3 s: with r' = -v that is an oscillator, which swings past d1 as soon as 4 tau > t2c. And d1
of a bold one is negative. The third law looks at where the agent would come to rest by itself instead of where it is:
tau v' + v = (r - v tau - d1) / t2c has the roots -1 / tau and -1 / t2c, so that r falls to d1 and never below.

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
from tropel.local.dynamical.parameters import CONSTANT, TIME_TO_CONTACT, TIME_TO_REST
from tropel.local.time_gap import FREE, gap_behind, personal_time_gap, speed_at

_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined_kernel
def wanted_speed(v0, gap, courage, slope, turn, coasting, rules):
    """The three speed laws of GAME §2.2, and the one that stops in time.

    `coasting` is how far the agent still goes if it wants to stand from now on.
    """
    v = v0
    if rules.law == TIME_TO_CONTACT or rules.law == TIME_TO_REST:
        d1 = safety_distance(rules.safety, courage, v0, rules.time_to_contact)
        if rules.law == TIME_TO_REST:
            d1 = max(d1, rules.closest) + coasting
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
