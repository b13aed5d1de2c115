"""Directions from a harmonic field: the better neighbour of every cell, and unit vectors that agree with it.

u is the mean of its neighbours (or less), so a cell whose neighbours are not all alike has one that is strictly better:
going there never ends before the target and never returns. Vectors are central differences of u, except where
these are no use: at a saddle, where both sides are better and the difference vanishes, they point to the better side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel

#: Cosine between a vector and the best neighbour below which the vector is taken from the better sides alone.
_AGREEMENT = 0.3


def best_neighbours(log_u: NDArray[np.float64], target: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Flat index of the best of the cells beside each; -1 on the target, where u is 0, and where none is better."""
    out = np.empty(log_u.size, np.int64)
    _find_best(np.ascontiguousarray(log_u).ravel(), target.ravel(), _three(log_u.shape), out)
    return out.reshape(log_u.shape)


def unit_vectors(log_u: NDArray[np.float64], target: NDArray[np.bool_], *, mirrored: bool) -> NDArray[np.float64]:
    """Unit vectors (*shape, dim), x first, along the gradient of u; zero on the target and where u is 0.

    Beyond a wall u is 0, or the mirror image if `mirrored`. No vector points at a cell where u is 0.
    """
    out = np.zeros((log_u.size, log_u.ndim))
    _find_vectors(np.ascontiguousarray(log_u).ravel(), target.ravel(), _three(log_u.shape), mirrored, out)
    return out.reshape(*log_u.shape, log_u.ndim)


def _three(shape: tuple[int, ...]) -> tuple[int, int, int]:
    nz, ny, nx = (1,) * (3 - len(shape)) + shape
    return nz, ny, nx


@kernel
def _value_at(log_u, shape, x, y, z):
    nz, ny, nx = shape
    if x < 0 or y < 0 or z < 0 or x >= nx or y >= ny or z >= nz:
        return -np.inf
    return log_u[(z * ny + y) * nx + x]


@kernel
def _side(log_u, shape, i, axis, step):
    """log u one step along an axis (0 is x) from cell i."""
    _, ny, nx = shape
    x, y, z = i % nx, i // nx % ny, i // (nx * ny)
    if axis == 0:
        return _value_at(log_u, shape, x + step, y, z)
    if axis == 1:
        return _value_at(log_u, shape, x, y + step, z)
    return _value_at(log_u, shape, x, y, z + step)


@kernel
def _corner(log_u, shape, i, first, first_step, second, second_step):
    _, ny, nx = shape
    x, y, z = i % nx, i // nx % ny, i // (nx * ny)
    for axis, step in ((first, first_step), (second, second_step)):
        if axis == 0:
            x += step
        elif axis == 1:
            y += step
        else:
            z += step
    return _value_at(log_u, shape, x, y, z)


@kernel
def _best_side(log_u, shape, dim, i):
    """Axis, step and log u of the best cell beside cell i; step 0 when none is better."""
    best, axis, step = log_u[i], 0, 0
    for a in range(dim):
        for s in (-1, 1):
            value = _side(log_u, shape, i, a, s)
            if value > best:
                best, axis, step = value, a, s
    return axis, step, best


@kernel
def _find_best(log_u, target, shape, out):
    nz, ny, nx = shape
    dim = 3 if nz > 1 else 2
    for i in range(log_u.size):
        out[i] = -1
        if target[i] or log_u[i] == -np.inf:
            continue
        axis, step, _ = _best_side(log_u, shape, dim, i)
        if step != 0:
            out[i] = i + step * (1 if axis == 0 else (nx if axis == 1 else nx * ny))


@kernel
def _find_vectors(log_u, target, shape, mirrored, out):
    dim = out.shape[1]
    for i in range(log_u.size):
        if target[i] or log_u[i] == -np.inf:
            continue
        axis, step, best = _best_side(log_u, shape, dim, i)
        if step == 0:
            continue
        # Ratios to the best neighbour: none overflows where u changes a lot from cell to cell.
        own = np.exp(log_u[i] - best)
        for d in range(dim):
            out[i, d] = _slope(log_u, shape, i, d, own, best, mirrored)
        _shorten_at_corners(log_u, shape, i, dim, out)
        length = _length(out, i, dim)
        if out[i, axis] * step < _AGREEMENT * length or length < _AGREEMENT * (1.0 - own):
            for d in range(dim):
                out[i, d] = _upward(log_u, shape, i, d, own, best)
            _shorten_at_corners(log_u, shape, i, dim, out)
            length = _length(out, i, dim)
        for d in range(dim):
            out[i, d] /= length


@kernel
def _slope(log_u, shape, i, axis, own, best, mirrored):
    """Central difference over two cells; never towards a cell where u is 0."""
    before, after = _side(log_u, shape, i, axis, -1), _side(log_u, shape, i, axis, 1)
    low = own if mirrored and before == -np.inf else np.exp(before - best)
    high = own if mirrored and after == -np.inf else np.exp(after - best)
    slope = high - low
    if (slope > 0.0 and after == -np.inf) or (slope < 0.0 and before == -np.inf):
        return 0.0
    return 0.5 * slope


@kernel
def _upward(log_u, shape, i, axis, own, best):
    """The steeper of the two ways up along an axis, 0 if both lead down."""
    low = np.exp(_side(log_u, shape, i, axis, -1) - best) - own
    high = np.exp(_side(log_u, shape, i, axis, 1) - best) - own
    if high > 0.0 and high > low:  # of two alike the lower, as the best neighbour is chosen
        return high
    return -low if low > 0.0 else 0.0


@kernel
def _shorten_at_corners(log_u, shape, i, dim, out):
    """Where the corner between two axes is blocked, go along one of them only."""
    for a in range(dim):
        for b in range(a + 1, dim):
            if out[i, a] == 0.0 or out[i, b] == 0.0:
                continue
            first, second = 1 if out[i, a] > 0.0 else -1, 1 if out[i, b] > 0.0 else -1
            if _corner(log_u, shape, i, a, first, b, second) == -np.inf:
                if abs(out[i, a]) >= abs(out[i, b]):
                    out[i, b] = 0.0
                else:
                    out[i, a] = 0.0


@kernel
def _length(out, i, dim):
    total = 0.0
    for d in range(dim):
        total += out[i, d] * out[i, d]
    return np.sqrt(total)
