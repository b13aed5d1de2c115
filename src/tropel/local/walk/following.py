"""How fast a walking person goes: the gap to others ahead, and which of two people goes first.

A crowd in which everybody stops for everybody in front of them stops for good as soon as two people are in front of
each other, which happens in every doorway where paths meet. So a person stops only for people that have the right of
way: of two people that are in each other's way, the one that has less of the other in front goes first. That is the
one that is farther ahead.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.fast_math import fast_exp
from tropel.local.habits.keep_right import goes_elsewhere
from tropel.local.walk.sight import CONTACT, DX, DY, ROW

#: People with different goals and headings with a smaller cosine are opposed: neither of the two gets the right of way,
#: both have to turn.
_OPPOSED = -0.5

#: A gap of this many `time_gap`s at the desired speed is as good as free: tanh(3) = 0.995.
_FREE = 3.0


@inlined_kernel
def _goes_first(i, crowd, row, ex, ey, ahead, contact):
    """Whether person i, which walks along e, has the right of way over one that is `ahead` metres in front."""
    j = np.uint64(row[ROW])
    hx, hy = crowd.heading[j, 0], crowd.heading[j, 1]
    if hx * ex + hy * ey <= _OPPOSED and goes_elsewhere(crowd.goal[i], crowd.goal[j]):
        return False
    in_front_of_other = -(row[DX] * hx + row[DY] * hy)
    if in_front_of_other <= 0.0:
        return False
    aside = row[DX] * hy - row[DY] * hx
    if aside * aside >= contact * contact:
        return False
    return ahead < in_front_of_other or (ahead == in_front_of_other and crowd.id[i] < crowd.id[j])


@inlined_kernel
def gap_ahead(i, crowd, ex, ey, most, seen, count):
    """How far a body can go along e before it touches someone with the right of way, as they stand now."""
    gap = most
    for k in range(count):
        row = seen[k]
        contact = row[CONTACT]
        ahead = row[DX] * ex + row[DY] * ey
        if ahead <= 0.0 or ahead - contact >= gap:
            continue
        aside2 = row[DX] * row[DX] + row[DY] * row[DY] - ahead * ahead
        if aside2 < contact * contact and not _goes_first(i, crowd, row, ex, ey, ahead, contact):
            gap = min(gap, max(ahead - math.sqrt(contact * contact - aside2), 0.0))
    return gap


@inlined_kernel
def speed_behind(i, crowd, ex, ey, wanted, time_gap, seen, count):
    """v0 tanh(gap / (v0 T)): gap / T close behind others, v0 far from them."""
    free = _FREE * wanted * time_gap
    gap = gap_ahead(i, crowd, ex, ey, free, seen, count)
    if gap >= free:
        return wanted
    return wanted * (1.0 - 2.0 / (fast_exp(2.0 * gap / (wanted * time_gap)) + 1.0))
