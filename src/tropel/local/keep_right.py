"""Keep right: turn towards the right before people that come the other way.

The planned direction e of a person is turned to the right by an angle that grows with the oncoming people in sight:

    angle = keep_right · tanh(sum over j ahead of max(0, 2 c_j - 1) exp(-d_j / range)),    c_j = -h_j · e

h_j is the heading of person j, which stands for where it wants to go, and d_j its distance. Only people that walk
against e by more than 120° count: people that converge on a door are no counterflow. Two streams in a corridor then
separate into lanes. Without the turn, 100 people against 100 in a corridor of 2 m block each other for good in every
continuous model.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel

#: Distance over which an oncoming person counts less by e [m].
RANGE = 4.0


@inlined_kernel
def oncoming(dx, dy, hx, hy, ex, ey):
    """How much a person at the offset d with the heading h comes towards a person that walks along e, from 0 to 1."""
    against = -2.0 * (hx * ex + hy * ey) - 1.0
    if against <= 0.0 or dx * ex + dy * ey <= 0.0:
        return 0.0
    return against * math.exp(-math.sqrt(dx * dx + dy * dy) / RANGE)


@inlined_kernel
def turned_right(ex, ey, keep_right, total):
    """The unit vector e turned to the right for this sum over the oncoming people."""
    angle = keep_right * math.tanh(total)
    c, s = math.cos(angle), math.sin(angle)
    return c * ex + s * ey, c * ey - s * ex
