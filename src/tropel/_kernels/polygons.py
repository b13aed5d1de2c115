"""Points and polygons given as boundary segments (any number of rings, holes included)."""

from __future__ import annotations

from tropel._kernels.compile import kernel
from tropel._kernels.predicates import orientation


@kernel
def inside_edges(x, y, edges, first, last):
    """Whether a point is inside (or on) the polygon whose boundary is edges[first:last], by the even-odd rule."""
    inside = False
    for e in range(first, last):
        x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        if min(y0, y1) <= y <= max(y0, y1):
            side = orientation(x0, y0, x1, y1, x, y)
            if side == 0 and min(x0, x1) <= x <= max(x0, x1):
                return True
            # An edge counts when it crosses the ray to the right; its upper end is left out so that none counts twice.
            if (y0 <= y < y1 and side > 0) or (y1 <= y < y0 and side < 0):
                inside = not inside
    return inside
