"""The shortest line from wall to wall across a way over the cells of a raster."""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel


@kernel
def farthest_tributary(place, onward, units, across, reach):
    """The cell with the longest way to the goal, within a square around a place, from which the policy leads to it."""
    down = units.size // across
    row, column = place // across, place % across
    longest, start = units[place], np.int64(place)
    for iy in range(max(row - reach, 0), min(row + reach + 1, down)):
        for ix in range(max(column - reach, 0), min(column + reach + 1, across)):
            first = iy * across + ix
            if units[first] <= longest:
                continue
            now = first
            for _ in range(2 * reach):
                following = onward[now]
                if following == now or units[following] <= units[place]:
                    now = following
                    break
                now = following
            if now == place:
                longest, start = units[first], np.int64(first)
    return start


@inlined_kernel
def _passes_near(ay, ax, by, bx, y, x, near):
    """Whether the line from a to b comes within a distance of a point."""
    dy, dx = by - ay, bx - ax
    length = max(dy * dy + dx * dx, 1.0)
    share = min(max(((y - ay) * dy + (x - ax) * dx) / length, 0.0), 1.0)
    off_y, off_x = ay + share * dy - y, ax + share * dx - x
    return off_y * off_y + off_x * off_x <= near * near


@kernel
def _crosses(ay, ax, by, bx, way, y, x, near):
    """Whether the line from a to b crosses a way an odd number of times, one of them near a point.

    Half-open, so that a line through a corner of the way crosses one of the two steps there.
    """
    dy, dx = by - ay, bx - ax
    odd, close = False, False
    before = dy * (way[0, 1] - ax) - dx * (way[0, 0] - ay)
    for k in range(way.shape[0] - 1):
        after = dy * (way[k + 1, 1] - ax) - dx * (way[k + 1, 0] - ay)
        if (before >= 0.0) != (after >= 0.0):
            sy, sx = way[k + 1, 0] - way[k, 0], way[k + 1, 1] - way[k, 1]
            begin = sy * (ax - way[k, 1]) - sx * (ay - way[k, 0])
            end = sy * (bx - way[k, 1]) - sx * (by - way[k, 0])
            if (begin >= 0.0) != (end >= 0.0):
                odd = not odd
                share = before / (before - after)
                off_y, off_x = way[k, 0] + share * sy - y, way[k, 1] + share * sx - x
                close = close or off_y * off_y + off_x * off_x <= near * near
        before = after
    return odd and close


@kernel
def _clear(ay, ax, by, bx, blocked):
    """Whether no wall stands between two blocked cells. `blocked` has a border of one cell more than the raster."""
    steps = 4 * max(abs(by - ay), abs(bx - ax))
    for k in range(1, steps):
        iy = np.int64(np.rint(ay + k / steps * (by - ay)))
        ix = np.int64(np.rint(ax + k / steps * (bx - ax)))
        if (iy == ay and ix == ax) or (iy == by and ix == bx):
            continue
        if blocked[iy + 1, ix + 1]:
            return False
    return True


@kernel
def shortest_line(faces, way, blocked, row, column, near, longest):
    """The nearest two of the faces (n, 2) of walls whose line crosses a way near a cell: their numbers, or -1, -1.

    Lengths are between the nearest points of the two squares, at most `longest`; of equal ones the first is taken.
    """
    y, x = np.float64(row), np.float64(column)
    best = longest * longest
    one, other, found = np.int64(-1), np.int64(-1), False
    for i in range(faces.shape[0]):
        for j in range(i + 1, faces.shape[0]):
            dy = max(abs(faces[j, 0] - faces[i, 0]) - 1, 0)
            dx = max(abs(faces[j, 1] - faces[i, 1]) - 1, 0)
            square = np.float64(dy * dy + dx * dx)
            if square > best or (found and square == best):
                continue
            ay, ax = np.float64(faces[i, 0]), np.float64(faces[i, 1])
            by, bx = np.float64(faces[j, 0]), np.float64(faces[j, 1])
            if not _passes_near(ay, ax, by, bx, y, x, near):
                continue
            if not _crosses(ay, ax, by, bx, way, y, x, near):
                continue
            if _clear(faces[i, 0], faces[i, 1], faces[j, 0], faces[j, 1], blocked):
                best, one, other, found = square, np.int64(i), np.int64(j), True
    return one, other
