"""Drawing shapes into a raster of square cells: interiors of polygons, walls with a margin, discs and balls.

A cell is represented by its centre, `origin + (index + ½) cell`. Arrays are indexed [iy, ix], or [iz, iy, ix] if they
have a third axis; x is the fastest.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import kernel
from tropel._kernels.walls import nearest_on_segment


@kernel
def fill_inside(edges, origin, cell, inside):
    """Set `inside` (ny, nx), uint8, to 1 if the centre is inside a polygon with these boundary segments, else 0."""
    fill_inside_part(edges, origin, cell, 0, 0, inside)


@kernel
def fill_inside_part(edges, origin, cell, row, column, inside):
    """The same for the part of the raster that begins at a row and a column, with the same bits.

    Each edge flips all centres to its right, in the rows it crosses. Centres that are flipped an odd number of times
    are inside.
    """
    ny, nx = inside.shape
    inside[:, :] = 0
    for e in range(edges.shape[0]):
        x0, y0, x1, y1 = edges[e, 0], edges[e, 1], edges[e, 2], edges[e, 3]
        if y0 == y1:
            continue
        first = max(math.floor((min(y0, y1) - origin[1]) / cell - 0.5), float(row))
        last = min(math.floor((max(y0, y1) - origin[1]) / cell - 0.5) + 1.0, row + ny - 1.0)
        for iy in range(np.int64(first), np.int64(last) + 1):
            y = origin[1] + (iy + 0.5) * cell
            if not ((y0 <= y < y1) or (y1 <= y < y0)):
                continue
            x = x0 + (y - y0) / (y1 - y0) * (x1 - x0)
            beyond = max(math.floor((x - origin[0]) / cell - 0.5) + 1.0 - column, 0.0)
            if beyond < nx:
                inside[iy - row, np.int64(beyond)] ^= 1
    for iy in range(ny):
        turned = np.uint8(0)
        for ix in range(nx):
            turned ^= inside[iy, ix]
            inside[iy, ix] = turned


@kernel
def block_near_segments(segments, blocking, reach, origin, cell, free):
    """Clear `free` (ny, nx) at centres that are closer than `reach` to a blocking segment."""
    ny, nx = free.shape
    for s in range(segments.shape[0]):
        if not blocking[s]:
            continue
        x0, y0, x1, y1 = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        first = max(math.floor((min(y0, y1) - reach - origin[1]) / cell - 0.5), 0.0)
        last = min(math.floor((max(y0, y1) + reach - origin[1]) / cell - 0.5) + 1.0, ny - 1.0)
        for iy in range(np.int64(first), np.int64(last) + 1):
            y = origin[1] + (iy + 0.5) * cell
            # The part of the segment within reach of this row of centres; a long slanted wall covers little of it.
            t0, t1 = 0.0, 1.0
            if y0 != y1:
                u, v = (y - reach - y0) / (y1 - y0), (y + reach - y0) / (y1 - y0)
                t0, t1 = max(t0, min(u, v)), min(t1, max(u, v))
            if t0 > t1 + 1e-9:
                continue
            xa, xb = x0 + t0 * (x1 - x0), x0 + t1 * (x1 - x0)
            left = max(math.floor((min(xa, xb) - reach - origin[0]) / cell - 0.5), 0.0)
            right = min(math.floor((max(xa, xb) + reach - origin[0]) / cell - 0.5) + 1.0, nx - 1.0)
            for ix in range(np.int64(left), np.int64(right) + 1):
                x = origin[0] + (ix + 0.5) * cell
                qx, qy = nearest_on_segment(x, y, x0, y0, x1, y1)
                if (qx - x) ** 2 + (qy - y) ** 2 < reach * reach:
                    free[iy, ix] = 0


@kernel
def block_crossed(segments, blocking, low_offset, high_offset, origin, cell, free):
    """Clear `free` (ny, nx) at cells whose square touches a blocking segment.

    The low sides of the squares are shifted by `low_offset` and their high sides by `high_offset` [m].
    """
    ny, nx = free.shape
    for s in range(segments.shape[0]):
        if not blocking[s]:
            continue
        x0, y0, x1, y1 = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        first = max(math.floor((min(y0, y1) - origin[1]) / cell) - 1.0, 0.0)
        last = min(math.floor((max(y0, y1) - origin[1]) / cell) + 1.0, ny - 1.0)
        for iy in range(np.int64(first), np.int64(last) + 1):
            below = origin[1] + iy * cell + low_offset
            above = origin[1] + (iy + 1) * cell + high_offset
            if max(y0, y1) < below or min(y0, y1) > above:
                continue
            # The part of the segment within this row of squares.
            t0, t1 = 0.0, 1.0
            if y0 != y1:
                u, v = (below - y0) / (y1 - y0), (above - y0) / (y1 - y0)
                t0, t1 = max(t0, min(u, v)), min(t1, max(u, v))
            if t0 > t1:
                continue
            xa, xb = x0 + t0 * (x1 - x0), x0 + t1 * (x1 - x0)
            left, right = min(xa, xb), max(xa, xb)
            low_x = max(math.floor((left - origin[0]) / cell) - 1.0, 0.0)
            high_x = min(math.floor((right - origin[0]) / cell) + 1.0, nx - 1.0)
            for ix in range(np.int64(low_x), np.int64(high_x) + 1):
                if right >= origin[0] + ix * cell + low_offset and left <= origin[0] + (ix + 1) * cell + high_offset:
                    free[iy, ix] = 0


@kernel
def block_near_discs(position, radius, reach, origin, cell, free):
    """Clear `free` (nz, ny, nx) at centres that are closer than `reach` to a ball, given in three coordinates."""
    nz, ny, nx = free.shape
    for m in range(position.shape[0]):
        grown = radius[m] + reach
        low_x = max(math.floor((position[m, 0] - grown - origin[0]) / cell - 0.5), 0.0)
        low_y = max(math.floor((position[m, 1] - grown - origin[1]) / cell - 0.5), 0.0)
        low_z = max(math.floor((position[m, 2] - grown - origin[2]) / cell - 0.5), 0.0)
        high_x = min(math.floor((position[m, 0] + grown - origin[0]) / cell - 0.5) + 1.0, nx - 1.0)
        high_y = min(math.floor((position[m, 1] + grown - origin[1]) / cell - 0.5) + 1.0, ny - 1.0)
        high_z = min(math.floor((position[m, 2] + grown - origin[2]) / cell - 0.5) + 1.0, nz - 1.0)
        for iz in range(np.int64(low_z), np.int64(high_z) + 1):
            dz = origin[2] + (iz + 0.5) * cell - position[m, 2]
            for iy in range(np.int64(low_y), np.int64(high_y) + 1):
                dy = origin[1] + (iy + 0.5) * cell - position[m, 1]
                for ix in range(np.int64(low_x), np.int64(high_x) + 1):
                    dx = origin[0] + (ix + 0.5) * cell - position[m, 0]
                    if dx * dx + dy * dy + dz * dz < grown * grown:
                        free[iz, iy, ix] = 0


@kernel
def mark_points(points, rows, origin, cell, marked):
    """Set `marked` (ny, nx), uint8, to 1 in the cells that contain one of these rows of `points`."""
    ny, nx = marked.shape
    for k in range(rows.size):
        ix = math.floor((points[rows[k], 0] - origin[0]) / cell)
        iy = math.floor((points[rows[k], 1] - origin[1]) / cell)
        if ix >= 0.0 and ix < nx and iy >= 0.0 and iy < ny:
            marked[np.int64(iy), np.int64(ix)] = 1
