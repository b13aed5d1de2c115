"""Exact predicates in space: a floating-point filter, then expansion arithmetic when the sign is in doubt.

After Shewchuk, "Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997, with his
signs and the error bounds of his filters.
"""

from __future__ import annotations

import numpy as np

from tropel._kernels.compile import allocating_kernel, kernel
from tropel._kernels.expansions import add_product, difference, sign_of

_ORIENT_BOUND = 7.771561172376103e-16  # (7 + 56 eps) eps, eps = 2 ** -53
_SPHERE_BOUND = 1.7763568394002532e-15  # (16 + 224 eps) eps


@allocating_kernel
def _offsets(coordinates, count):
    """The first `count` points minus the last one, without rounding: [point, axis, part] and the lengths."""
    offsets, sizes = np.empty((count, 3, 2)), np.empty((count, 3), dtype=np.int64)
    for i in range(count):
        for axis in range(3):
            sizes[i, axis] = difference(coordinates[i, axis], coordinates[count, axis], offsets[i, axis])
    return offsets, sizes


@allocating_kernel
def _volume(offsets, sizes, i, j, k):
    """The determinant of three offsets as an expansion, and its length."""
    area, total = np.empty(16), np.empty(192)
    size = 0
    for first, second, third in ((i, j, k), (j, k, i), (k, i, j)):
        n = add_product(area, 0, offsets[first, 0], sizes[first, 0], offsets[second, 1], sizes[second, 1], 1.0)
        n = add_product(area, n, offsets[first, 1], sizes[first, 1], offsets[second, 0], sizes[second, 0], -1.0)
        size = add_product(total, size, area, n, offsets[third, 2], sizes[third, 2], 1.0)
    return total, size


@allocating_kernel
def _orientation_exact(coordinates):
    offsets, sizes = _offsets(coordinates, 3)
    total, size = _volume(offsets, sizes, 0, 1, 2)
    return sign_of(total, size)


@allocating_kernel
def _sphere_exact(coordinates):
    offsets, sizes = _offsets(coordinates, 4)
    lift, total = np.empty(24), np.empty(4 * 2 * 24 * 192)
    size = 0
    # The determinant along its column of lifts |offset|².
    for i, j, k, m, sign in ((0, 1, 2, 3, -1.0), (1, 0, 2, 3, 1.0), (2, 0, 1, 3, -1.0), (3, 0, 1, 2, 1.0)):
        n = 0
        for axis in range(3):
            n = add_product(lift, n, offsets[i, axis], sizes[i, axis], offsets[i, axis], sizes[i, axis], 1.0)
        volume, v = _volume(offsets, sizes, j, k, m)
        size = add_product(total, size, lift, n, volume, v, sign)
    return sign_of(total, size)


@allocating_kernel
def _orientation_in_doubt(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz):
    return _orientation_exact(np.array(((ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz))))


@allocating_kernel
def _sphere_in_doubt(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez):
    return _sphere_exact(np.array(((ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz), (ex, ey, ez))))


@kernel
def orientation_3d(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz):
    """The sign of det(a - d, b - d, c - d): +1 if d sees a, b, c turn clockwise, -1 if counter-clockwise, 0 if all four
    lie in a plane."""
    adx, ady, adz = ax - dx, ay - dy, az - dz
    bdx, bdy, bdz = bx - dx, by - dy, bz - dz
    cdx, cdy, cdz = cx - dx, cy - dy, cz - dz
    bc, cb = bdx * cdy, cdx * bdy
    ca, ac = cdx * ady, adx * cdy
    ab, ba = adx * bdy, bdx * ady
    det = adz * (bc - cb) + bdz * (ca - ac) + cdz * (ab - ba)
    bound = _ORIENT_BOUND * (
        (abs(bc) + abs(cb)) * abs(adz) + (abs(ca) + abs(ac)) * abs(bdz) + (abs(ab) + abs(ba)) * abs(cdz)
    )
    if det > bound:
        return 1
    if det < -bound:
        return -1
    return _orientation_in_doubt(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz)


@kernel
def in_sphere(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez):
    """+1 if e lies inside the sphere through a, b, c and d, -1 if outside, 0 if on it.

    The four must be positively oriented; otherwise the sign is the opposite one.
    """
    aex, aey, aez = ax - ex, ay - ey, az - ez
    bex, bey, bez = bx - ex, by - ey, bz - ez
    cex, cey, cez = cx - ex, cy - ey, cz - ez
    dex, dey, dez = dx - ex, dy - ey, dz - ez
    ab1, ab2 = aex * bey, bex * aey
    bc1, bc2 = bex * cey, cex * bey
    cd1, cd2 = cex * dey, dex * cey
    da1, da2 = dex * aey, aex * dey
    ac1, ac2 = aex * cey, cex * aey
    bd1, bd2 = bex * dey, dex * bey
    ab, bc, cd, da, ac, bd = ab1 - ab2, bc1 - bc2, cd1 - cd2, da1 - da2, ac1 - ac2, bd1 - bd2
    abc = aez * bc - bez * ac + cez * ab
    bcd = bez * cd - cez * bd + dez * bc
    cda = cez * da + dez * ac + aez * cd
    dab = dez * ab + aez * bd + bez * da
    lift_a = aex * aex + aey * aey + aez * aez
    lift_b = bex * bex + bey * bey + bez * bez
    lift_c = cex * cex + cey * cey + cez * cez
    lift_d = dex * dex + dey * dey + dez * dez
    det = (lift_d * abc - lift_c * dab) + (lift_b * cda - lift_a * bcd)
    ab_sum, bc_sum, cd_sum = abs(ab1) + abs(ab2), abs(bc1) + abs(bc2), abs(cd1) + abs(cd2)
    da_sum, ac_sum, bd_sum = abs(da1) + abs(da2), abs(ac1) + abs(ac2), abs(bd1) + abs(bd2)
    az_, bz_, cz_, dz_ = abs(aez), abs(bez), abs(cez), abs(dez)
    bound = _SPHERE_BOUND * (
        (cd_sum * bz_ + bd_sum * cz_ + bc_sum * dz_) * lift_a
        + (da_sum * cz_ + ac_sum * dz_ + cd_sum * az_) * lift_b
        + (ab_sum * dz_ + bd_sum * az_ + da_sum * bz_) * lift_c
        + (bc_sum * az_ + ac_sum * bz_ + ab_sum * cz_) * lift_d
    )
    if det > bound:
        return 1
    if det < -bound:
        return -1
    return _sphere_in_doubt(ax, ay, az, bx, by, bz, cx, cy, cz, dx, dy, dz, ex, ey, ez)
