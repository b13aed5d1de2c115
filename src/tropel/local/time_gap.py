"""Keeping a time gap T to people ahead: how fast that allows people to go, and which of two people goes first. In 2D.

Behind someone at the free distance g,

    v = v0 tanh(g / (v0 T))

which is g / T close by, as in rule 2 of Moussaïd, Helbing & Theraulaz (PNAS 2011), and falls short of v0 already at
some distance, as measured speeds do.

A crowd in which everybody stops for everybody in front of them stops for good as soon as two people are in front of
each other, which happens in every doorway where paths meet. So a person stops only for people that have the right of
way: of two people that are in each other's way, the one that has less of the other in front goes first. That is the
one that is farther ahead.

`crowd` is a tuple of columns that has `heading`, `goal` (see `headed_for`) and `id`.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.fast_math import fast_exp
from tropel.local.habits.keep_right import goes_elsewhere

#: People with different goals and headings with a smaller cosine are opposed: neither of the two gets the right of way,
#: both have to turn.
_OPPOSED = -0.5

#: A gap of this many time gaps at the desired speed is as good as free: tanh(3) = 0.995.
FREE = 3.0


@inlined_kernel
def _goes_first(i, j, crowd, dx, dy, ex, ey, ahead, contact):
    """Whether person i, which walks along e, has the right of way over person j, which is `ahead` metres in front."""
    hx, hy = crowd.heading[j, 0], crowd.heading[j, 1]
    if hx * ex + hy * ey <= _OPPOSED and goes_elsewhere(crowd.goal[i], crowd.goal[j]):
        return False
    in_front_of_other = -(dx * hx + dy * hy)
    if in_front_of_other <= 0.0:
        return False
    aside = dx * hy - dy * hx
    if aside * aside >= contact * contact:
        return False
    return ahead < in_front_of_other or (ahead == in_front_of_other and crowd.id[i] < crowd.id[j])


@inlined_kernel
def gap_behind(i, j, crowd, dx, dy, contact, ex, ey, gap):
    """How far person i can go along e before it touches person j at the offset d; `gap` if that is less.

    People are taken as they stand now, and only if they have the right of way.
    """
    ahead = dx * ex + dy * ey
    if ahead <= 0.0 or ahead - contact >= gap:
        return gap
    aside2 = dx * dx + dy * dy - ahead * ahead
    if aside2 < contact * contact and not _goes_first(i, j, crowd, dx, dy, ex, ey, ahead, contact):
        return min(gap, max(ahead - math.sqrt(contact * contact - aside2), 0.0))
    return gap


@inlined_kernel
def speed_at(gap, wanted, time_gap):
    """v0 tanh(g / (v0 T))."""
    if gap >= FREE * wanted * time_gap:
        return wanted
    return wanted * (1.0 - 2.0 / (fast_exp(2.0 * gap / (wanted * time_gap)) + 1.0))


@inlined_kernel
def personal_time_gap(time_gap, courage, dt):
    """The time gap of a person [s]: people with more courage follow more closely."""
    # With less than two steps to spare, two people that walk towards each other would meet within one step.
    return max(time_gap * (1.5 - courage), 2.0 * dt)
