"""Competition of behaviours: which of them are switched on, from the stable fixed point of GAME eq. 10.

    w_i' = a_i w_i (1 - w_i²) - sum over j ≠ i of g_ji w_j² w_i

One behaviour is the target (or the planner's direction), the others are classes of obstacles. Obstacle classes compete
with the target, not with each other (g_ji = 0 between them). In y = w² the fixed points are then those of one piecewise
linear function of y_tar,

    G(y) = a_tar (1 - y) - sum over classes c of g_c,tar · max(0, 1 - g_tar,c y / a_c)

    y_tar = 0 (target off)        is stable when G(0) < 0
    0 < y_tar ≤ 1, G(y_tar) = 0   is stable where G falls                  y_c = max(0, 1 - g_tar,c y_tar / a_c)

For one class this is the table of GAME (with A1² = a2 (a1 - g12) / (a1 a2 - g12 g21) if both are on). Where the target
may be on as well as off (bistability), it stays on the side it was on; from in between, it goes where the equation
flows.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.fast_math import fast_exp

#: How strongly the target suppresses obstacles (gamma_tar,obs of GAME eq. 11).
TARGET_ON_OBSTACLES = 0.05

_FLOW_STEPS = 400

#: Lower bound of the squared weights in the flow: noise keeps all behaviours ready to return.
_LEAST = 1e-6


@inlined_kernel
def target_advantage(y, a_target, a_class, g_class, count):
    """G(y): above zero the target grows stronger, below zero it fades."""
    total = a_target * (1.0 - y)
    for c in range(count):
        if a_class[c] > 0.0:
            total -= g_class[c] * max(0.0, 1.0 - TARGET_ON_OBSTACLES * y / a_class[c])
    return total


@inlined_kernel
def fixed_point(a_target, a_class, g_class, count, was_target, weights):
    """Replace the last weights of the obstacle classes by the stable ones; returns the weight of the target.

    `a_class[c]` and `g_class[c]` (how class c acts on the target) are given for `count` classes. `was_target` is the
    target's weight in the last step.
    """
    y = _largest_stable(a_target, a_class, g_class, count)
    if target_advantage(0.0, a_target, a_class, g_class, count) < 0.0 and (
        y == 0.0 or was_target < 1e-3 or not _flows_on(a_target, a_class, g_class, count, was_target, weights, y)
    ):
        y = 0.0
    for c in range(count):
        weights[c] = 0.0
        if a_class[c] > 0.0:
            weights[c] = math.sqrt(max(0.0, 1.0 - TARGET_ON_OBSTACLES * y / a_class[c]))
    return math.sqrt(y)


@inlined_kernel
def fixed_point_of_one(a_target, a_class, g_class, was_target, weights):
    """`fixed_point` for one class, without loops. `a_class[0]` is above zero."""
    a, g = a_class[0], g_class[0]
    if a <= TARGET_ON_OBSTACLES:
        # G does not fall below zero before y = 1; if a_tar < g, the target may also be off.
        y = 1.0
        if a_target < g and (was_target < 1e-3 or not _flows_on(a_target, a_class, g_class, 1, was_target, weights, y)):
            y = 0.0
    elif a_target > g:
        at_0, at_1 = a_target - g, -g * (1.0 - TARGET_ON_OBSTACLES / a)
        y = at_0 / (at_0 - at_1)
    else:
        y = 0.0
    weights[0] = math.sqrt(max(0.0, 1.0 - TARGET_ON_OBSTACLES * y / a))
    return math.sqrt(y)


@inlined_kernel
def _largest_stable(a_target, a_class, g_class, count):
    """The largest y in (0, 1] at which G falls through zero; 0 if there is none."""
    # G is linear between the points at which a class switches off. Walk down from 1, where G is never above zero.
    high = 1.0
    at_high = target_advantage(high, a_target, a_class, g_class, count)
    while at_high < 0.0:
        low = 0.0
        for c in range(count):
            off = a_class[c] / TARGET_ON_OBSTACLES
            if low < off < high:
                low = off
        at_low = target_advantage(low, a_target, a_class, g_class, count)
        if at_low > 0.0:
            return low + (high - low) * at_low / (at_low - at_high)
        if low == 0.0:
            return 0.0
        high, at_high = low, at_low
    return high


@inlined_kernel
def _grown(y, a, rate, time):
    """The value of y after a time under y' = 2 y (rate - a y), in closed form."""
    change = 2.0 * rate * time
    if abs(change) < 1e-6:
        return y / (1.0 + 2.0 * a * y * time)
    shrunk = fast_exp(-abs(change))
    if rate > 0.0:
        return rate * y / (a * y + (rate - a * y) * shrunk)
    return -rate * y * shrunk / (a * y * (1.0 - shrunk) - rate)


@kernel
def _flows_on(a_target, a_class, g_class, count, was_target, weights, upper):
    """Bistable: whether the equation flows from the last weights to the target being on, at `upper`.

    The weights of the classes stay between their present values and the values at which they would settle, and they
    settle lower the stronger the target is. So a target that gains against the higher of the two keeps gaining, and a
    target below `upper` that loses against the lower keeps losing. The equation is integrated only until one of these
    holds, which mostly takes no step at all. A step moves the classes by half a step, then the target, then the classes
    again, each in closed form. This is stable however strong the classes are.
    """
    y = was_target * was_target
    fastest = a_target
    for c in range(count):
        fastest = max(fastest, a_class[c])
        weights[c] = max(weights[c] * weights[c], _LEAST)  # squares from here on; the caller overwrites them
    h = 0.7 / (fastest + 1e-12)
    for _ in range(_FLOW_STEPS):
        least = most = a_target * (1.0 - y)
        for c in range(count):
            if a_class[c] > 0.0:
                settled = max(0.0, 1.0 - TARGET_ON_OBSTACLES * y / a_class[c])
                least -= g_class[c] * max(weights[c], settled)
                most -= g_class[c] * min(weights[c], settled)
        # At the upper point itself, where most agents stay, rounding decides the sign.
        if least >= -1e-12:
            return True
        if most < 0.0 and y < upper:
            return False
        for half in range(2):
            rate = a_target
            for c in range(count):
                if a_class[c] > 0.0:
                    grows = a_class[c] - TARGET_ON_OBSTACLES * y
                    weights[c] = max(_grown(weights[c], a_class[c], grows, 0.5 * h), _LEAST)
                    rate -= g_class[c] * weights[c]
            if half == 0:
                y = _grown(y, a_target, rate, h)
    return y > 0.5 * upper
