"""Personality (LAYERS §4.4): three numbers in [0, 1] per agent that change how it moves.

| trait | 0 | 1 | acts on |
|---|---|---|---|
| agility | turns like a ship | turns at once | filter on the turn rate |
| mass | changes speed at once | changes speed like a ship | filter on the forward speed |
| courage | keeps far from obstacles | walks right up to them | d0 and d1 |

    d0 = (d0_base + 1)^(2 (1 - courage)) - 1              d0_base at courage ½, 0 at courage 1        (LAYERS eq. 8)
    d1 = d0vel - v0 t2c                                   the print's d0vel - v0 has no common unit   (LAYERS eq. 9)
    d0vel = d0_base below ½, 2 d0_base (1 - courage) above                                            (LAYERS eq. 10)
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel
from tropel._kernels.fast_math import fast_exp
from tropel.agents.state import Column

#: Time constants of the slowest agents [s].
SLOWEST_TURN = 2.0
SLOWEST_SPEED = 3.0

#: d0 of somebody without any fear [m]; never zero, by which distances are divided.
_LEAST_D0 = 1e-3

#: What models with a personality declare.
PERSONALITY = (
    Column(name="agility", default=1.0, low=0.0, high=1.0, about="0 turns like a ship, 1 turns at once"),
    Column(name="mass", default=0.0, low=0.0, high=1.0, about="0 changes speed at once, 1 changes it like a ship"),
    Column(
        name="courage", default=0.5, low=0.0, high=1.0, about="0 keeps far from obstacles, 1 walks right up to them"
    ),
)
TRAITS = tuple(column.name for column in PERSONALITY)


@inlined_kernel
def filter_gain(sluggishness, slowest, dt):
    """k of the filter `new = (1 - k) old + k wanted` for a time constant of `sluggishness · slowest` [s].

    1 - exp(-dt / tau) makes the response the same for every time step; it never reaches 0.
    """
    tau = min(max(sluggishness, 0.0), 1.0) * slowest
    if tau <= 0.0:
        return 1.0
    return 1.0 - fast_exp(-dt / tau)


@inlined_kernel
def felt_distance(d0_base, courage):
    """d0: how far off obstacles are felt [m]."""
    co = min(max(courage, 0.0), 1.0)
    # A power, written so that the logarithm is taken once for all agents.
    return max(fast_exp(2.0 * (1.0 - co) * math.log(d0_base + 1.0)) - 1.0, _LEAST_D0)


@inlined_kernel
def safety_distance(safety, courage, desired_speed, time_to_contact):
    """d1: the free distance [m] at which one comes to a stand."""
    co = min(max(courage, 0.0), 1.0)
    d0vel = safety if co < 0.5 else 2.0 * safety * (1.0 - co)
    return d0vel - desired_speed * time_to_contact
