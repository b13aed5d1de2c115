"""Order of a flock at one moment: its connected pieces, and how parallel, how much of a mill and how close it is.

| measure | is 1 for | formula |
|---|---|---|
| `polarisation` | a flock that flies in parallel | length of the mean of the unit headings u |
| `milling` | a flock that circles its centre | length of the mean of r × u, r the unit vector from the centre |
| `nearest_distances` | | distance of each agent to its nearest neighbour [m] |
| `subflocks` | | connected pieces: neighbours are at most `within` apart |

The first two are those of Couzin et al., "Collective memory and spatial sorting in animal groups", J. theor. Biol.
2002 (there p_group and m_group). All work in 2D and 3D. In periodic space give `period`, the length after which each
axis repeats [m], 0 for an axis that does not. Distances are then to the nearest image, and the centre of the flock is
the circular mean along each periodic axis.

`connected` finds the pieces. It sorts points into cells so small that all points of a cell are connected. So it joins
cells, not points, and compares two cells only until one pair of their points is near enough: a dense flock, in which
every agent has thousands of neighbours, costs no more than a loose one. Listing all pairs (cKDTree.query_pairs) was
rejected for that reason.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel.errors import ParameterError
from tropel.foundation.arguments import Length, checked_arguments, numbers_in

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def connected(places: Floats, within: float, lengths: Floats) -> Ints:
    """The number of the connected piece of every point (N, dim), in the order of the first points of the pieces."""
    count, dim = places.shape
    if count == 0:
        return np.empty(0, dtype=np.int64)
    index, shape, reach = _cells_of(places, within, lengths)
    key = index[:, dim - 1].copy()
    for axis in range(dim - 2, -1, -1):
        key = key * shape[axis] + index[:, axis]
    order = np.argsort(key, kind="stable")
    cells, first = np.unique(key[order], return_index=True)
    first = np.append(first, count)
    parent = np.arange(len(cells))
    _join(cells, first, np.ascontiguousarray(places[order].T), shape, reach, lengths, within * within, parent)
    piece = np.empty(count, dtype=np.int64)
    piece[order] = np.repeat(parent, np.diff(first))
    _, begins, numbers = np.unique(piece, return_index=True, return_inverse=True)
    rank = np.empty(len(begins), dtype=np.int64)
    rank[np.argsort(begins)] = np.arange(len(begins))
    return np.asarray(rank[numbers.reshape(-1)])


def _cells_of(places: Floats, within: float, lengths: Floats) -> tuple[Ints, Ints, Ints]:
    """The cell of every point along each axis, the number of cells, and how many cells `within` spans."""
    dim = places.shape[1]
    # Slightly smaller, so that the rounded diagonal stays below `within`.
    side = within / math.sqrt(dim) * (1.0 - 1e-9)
    index = np.empty(places.shape, dtype=np.int64)
    shape, reach = np.ones(dim, dtype=np.int64), np.ones(dim, dtype=np.int64)
    for axis in range(dim):
        length = lengths[axis]
        if length > 0.0:
            shape[axis] = max(math.ceil(min(length / side, 2.0**40)), 1)
            reach[axis] = math.ceil(within * shape[axis] / length)
            around = np.floor(np.mod(places[:, axis], length) * (shape[axis] / length))
            index[:, axis] = np.minimum(around, shape[axis] - 1)
        else:
            reach[axis] = 2
            # Empty stretches of any length are shortened to a width that `within` does not span.
            found, number = np.unique(np.floor(places[:, axis] / side), return_inverse=True)
            gaps = np.minimum(np.diff(found), 3.0).astype(np.int64)
            index[:, axis] = np.concatenate([[0], np.cumsum(gaps)])[number.reshape(-1)]
            shape[axis] = index[:, axis].max() + 1
    if math.prod(shape.tolist()) >= 2**62:
        raise ParameterError(f"sub-flocks within {within:g} m are too fine for a flock this wide; give a larger value")
    return index, shape, reach


@inlined_kernel
def _root(parent, cell):
    while parent[cell] != cell:
        parent[cell] = parent[parent[cell]]
        cell = parent[cell]
    return cell


@kernel
def _touch(a, b, first, points, lengths, limit):
    """Whether any point of cell a is near enough to any point of cell b."""
    dim = points.shape[0]
    for i in range(first[a], first[a + 1]):
        for j in range(first[b], first[b + 1]):
            away2 = 0.0
            for axis in range(dim):
                gap = points[axis, i] - points[axis, j]
                if lengths[axis] > 0.0:
                    gap -= lengths[axis] * np.round(gap / lengths[axis])
                away2 += gap * gap
            if away2 <= limit:
                return True
    return False


@kernel
def _join_with_span(a, low, high, cells, first, points, lengths, limit, parent):
    """Join cell a with all cells from one key to another that it touches."""
    b = np.searchsorted(cells, low)
    while b < cells.size and cells[b] <= high:
        root_a, root_b = _root(parent, a), _root(parent, b)
        # The lower number stays, so that the result does not depend on the order in which cells are joined.
        if root_a != root_b and _touch(a, b, first, points, lengths, limit):
            parent[max(root_a, root_b)] = min(root_a, root_b)
        b += 1


@kernel
def _join_with_row(a, x, row, reach, across, around, cells, first, points, lengths, limit, parent):
    """Join cell a with the cells around column x in a row of cells that begins at the key `row`."""
    low, high = x - reach, x + reach
    if not around or 2 * reach + 1 >= across:
        low, high = max(low, 0) if not around else 0, min(high, across - 1) if not around else across - 1
        _join_with_span(a, row + low, row + high, cells, first, points, lengths, limit, parent)
        return
    _join_with_span(a, row + max(low, 0), row + min(high, across - 1), cells, first, points, lengths, limit, parent)
    if low < 0:
        _join_with_span(a, row + low + across, row + across - 1, cells, first, points, lengths, limit, parent)
    if high >= across:
        _join_with_span(a, row, row + high - across, cells, first, points, lengths, limit, parent)


@kernel
def _join(cells, first, points, shape, reach, lengths, limit, parent):
    """Join all occupied cells (ascending keys) that touch; then `parent` is the lowest cell of each piece."""
    dim = points.shape[0]
    for a in range(cells.size):
        x, rest = cells[a] % shape[0], cells[a] // shape[0]
        y, z = rest % shape[1], rest // shape[1]
        # Half of the surrounding rows are enough: the other half meets the same pairs of cells.
        for dz in range(reach[2] + 1 if dim == 3 else 1):
            cz = z + dz
            if dim == 3 and cz >= shape[2]:
                if lengths[2] == 0.0:
                    continue
                cz %= shape[2]
            for dy in range(-reach[1] if dz > 0 else 0, reach[1] + 1):
                cy = y + dy
                if cy < 0 or cy >= shape[1]:
                    if lengths[1] == 0.0:
                        continue
                    cy %= shape[1]
                row = (cz * shape[1] + cy) * shape[0]
                _join_with_row(a, x, row, reach[0], shape[0], lengths[0] > 0.0, cells, first, points, lengths, limit,
                               parent)  # fmt: skip
    for a in range(cells.size):
        parent[a] = _root(parent, a)


Period = Sequence[float] | Floats | None


def polarisation(heading: ArrayLike) -> float:
    """How parallel headings (N, dim) are: 1 if all are equal, near 0 if they point everywhere; NaN without agents.

    Velocities work as well. Agents that stand still have no direction and are left out.
    """
    units = _units(_vectors(heading, "heading"))
    units = units[np.isfinite(units).all(axis=1)]
    return _length(units.mean(axis=0)) if len(units) else math.nan


def milling(position: ArrayLike, heading: ArrayLike, *, period: Period = None) -> float:
    """How much of a mill the flock is: 1 if all agents circle the centre in the same direction; NaN without agents.

    Agents right in the centre, or standing still, are left out.
    """
    places, headings = _vectors(position, "position"), _vectors(heading, "heading")
    if places.shape != headings.shape:
        raise ParameterError(f"positions {places.shape} and headings {headings.shape} must have the same shape")
    lengths = _lengths_of(period, places.shape[1])
    outwards = _units(nearest_image(places - middle(places, period=lengths), lengths))
    units = _units(headings)
    chosen = np.isfinite(outwards).all(axis=1) & np.isfinite(units).all(axis=1)
    if not chosen.any():
        return math.nan
    r, u = outwards[chosen], units[chosen]
    if places.shape[1] == 2:
        return abs(float((r[:, 0] * u[:, 1] - r[:, 1] * u[:, 0]).mean()))
    return _length(np.cross(r, u).mean(axis=0))


def nearest_distances(position: ArrayLike, *, period: Period = None) -> Floats:
    """The distance of each agent to its nearest neighbour [m]; NaN for an agent that is alone."""
    from scipy.spatial import cKDTree

    places = _vectors(position, "position")
    if len(places) < 2:
        return np.full(len(places), math.nan)
    lengths = _lengths_of(period, places.shape[1])
    if not lengths.any():
        tree = cKDTree(places)
        return np.asarray(tree.query(places, k=2, workers=-1)[0][:, 1])
    wrapped = wrapped_into(places, lengths)
    tree = cKDTree(wrapped, boxsize=lengths)
    return np.asarray(tree.query(wrapped, k=2, workers=-1)[0][:, 1])


@checked_arguments
def subflocks(position: ArrayLike, *, within: Length, period: Period = None) -> Ints:
    """The sub-flock number of each agent, from 0 in the order of their first members.

    Two agents share a sub-flock if a chain of agents connects them with steps of at most `within` [m].
    """
    places = _vectors(position, "position")
    return connected(places, within, _lengths_of(period, places.shape[1]))


def middle(position: ArrayLike, *, period: Period = None) -> Floats:
    """The centre of a flock: the mean, or the circular mean along periodic axes."""
    places = _vectors(position, "position")
    lengths = _lengths_of(period, places.shape[1])
    found = places.mean(axis=0) if len(places) else np.full(places.shape[1], math.nan)
    for axis in np.flatnonzero(lengths):
        turns = 2.0 * math.pi / lengths[axis] * places[:, axis]
        found[axis] = math.atan2(np.sin(turns).sum(), np.cos(turns).sum()) * lengths[axis] / (2.0 * math.pi)
    return found


def nearest_image(offset: Floats, lengths: Floats) -> Floats:
    """Offsets (N, dim) replaced by those to the nearest image of their end."""
    around = lengths > 0.0
    if around.any():
        offset = offset.copy()
        offset[:, around] -= lengths[around] * np.round(offset[:, around] / lengths[around])
    return offset


def wrapped_into(places: Floats, lengths: Floats) -> Floats:
    """Places moved by whole periods into [0, period), along the periodic axes."""
    wrapped = places.copy()
    for axis in np.flatnonzero(lengths):
        inside = np.mod(places[:, axis], lengths[axis])
        # A tiny negative number is rounded up to the whole period.
        wrapped[:, axis] = np.where(inside < lengths[axis], inside, 0.0)
    return wrapped


def _vectors(given: ArrayLike, what: str) -> Floats:
    vectors = numbers_in(given)
    if vectors is None:
        raise ParameterError(f"{what} must be an array with a row of 2 or 3 numbers each, not {reprlib.repr(given)}")
    if vectors.ndim != 2 or vectors.shape[1] not in (2, 3):
        raise ParameterError(f"{what} must be an array with a row of 2 or 3 numbers each, not of shape {vectors.shape}")
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise ParameterError(f"{what} must be finite, but row {row} is {vectors[row].tolist()}")
    return vectors


def _lengths_of(period: Period, dim: int) -> Floats:
    if period is None:
        return np.zeros(dim)
    lengths = numbers_in(period)
    if lengths is None or lengths.shape != (dim,) or not (np.isfinite(lengths).all() and (lengths >= 0.0).all()):
        raise ParameterError(f"period must be {dim} lengths in metres, 0 for an axis without one, not {period!r}")
    return lengths


def _units(vectors: Floats) -> Floats:
    """Unit vectors; NaN for vectors without a length."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def _length(vector: Floats) -> float:
    return float(np.linalg.norm(vector))
