"""Coordinates where space repeats: after a period one is back where one began."""

from __future__ import annotations

import math

from tropel._kernels.compile import inlined_kernel


@inlined_kernel
def wrapped(coordinate, low, high, period):
    """The coordinate in [low, high) that is the same place; itself, bit by bit, when it is there already."""
    if low <= coordinate < high or period == 0.0:
        return coordinate
    inside = coordinate - math.floor((coordinate - low) / period) * period
    # Rounding may leave it a hair outside, on either side of the seam; both are the place at `low`.
    return inside if low <= inside < high else low


@inlined_kernel
def nearest_image(offset, period):
    """The shortest of all offsets that lead to the same place; the offset itself where the period is 0."""
    if period == 0.0:
        return offset
    return offset - period * math.floor(offset / period + 0.5)
