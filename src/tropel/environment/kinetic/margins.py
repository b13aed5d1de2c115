"""How much wider than its radius a list of neighbours should be.

A list with the radius r and the margin w is complete until the agent and the others together have used w up. A wide
margin makes lists long, a narrow one makes them expire often. Let a step use the share u of a metre, let filling cost A
per entry and testing B. In d dimensions the cost of a step is (r + w)^d (A u / w + B), which is least where

    d B w² + (d - 1) A u w = A u r.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel


@inlined_kernel
def margin_with_least_cost(radius, use, dim, fill, test):
    """The margin [m] for a list of which a step uses up `use` [m]; `fill` and `test` are costs per entry."""
    filling = fill * use
    linear = (dim - 1.0) * filling
    return (math.sqrt(linear * linear + 4.0 * dim * test * filling * radius) - linear) / (2.0 * dim * test)
