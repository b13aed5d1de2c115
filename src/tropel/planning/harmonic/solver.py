"""The direct solver of harmonic fields: scipy's sparse LU (SuperLU) on equations scaled by an estimate of u.

With u = h v the equations u_i = w_i (sum u_j + source_i) become

    v_i = w_i (sum_j exp(log h_j - log h_i) v_j + exp(log source_i - log h_i)).

The matrix is an M-matrix. Eliminated without pivoting, it only adds terms of one sign, so every v has a small
*relative* error. Elimination multiplies by exp(log h_j - log h_i) of cells far apart, and once that overflows SuperLU
takes a nan for its pivot and leaves the pattern that its memory was laid out for. So cells are solved in bands, from
the target outwards: in a band log h falls by no more than `_BAND`, and nothing overflows whatever h is. Most maps are
one band. A maze in which u falls to exp(-5000) is ten, each a tenth of the cells.

Rejected after measuring (docs/measurements.md): nested dissection written by hand, which was about twice as fast and
took twelve seconds to compile; SuperLU's own orders of elimination (up to 4 times as long, the ordering included). A
`panel_size` above SuperLU's own corrupts memory.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel.errors import GeometryError
from tropel.foundation.long_work import report
from tropel.planning.harmonic.grid import Unknowns, first_estimate

Floats = NDArray[np.float64]

#: What to do where a solution takes too much memory.
MEMORY_REMEDY = "end other programs, use larger cells, or plan with a flow field"
#: How far log h falls in one band; exp of it is far from overflow.
_BAND = 600.0
#: Beyond the band u is taken for 0, which changes what is so much above its lower end [log u] by less than rounding.
_MARGIN = 40.0
#: What is smaller, relative to the greatest v, has lost terms that were too small for a double.
_SMALLEST = 1e-290
#: SuperLU counts in 32 bits, and first asks for 30 times the entries of the matrix.
_MOST_CELLS = 8_000_000


def bytes_needed(count: int, dim: int) -> float:
    """About how much memory a direct solution takes at most; infinite where SuperLU cannot count its entries."""
    if count > _MOST_CELLS:
        return math.inf
    # Nonzeros after nested dissection of an open square and cube, as measured, at 16 bytes each; walls leave fewer.
    factors = 5.2 * count * math.log2(count + 1) if dim == 2 else 17.5 * count ** (4.0 / 3.0)
    return 16.0 * factors + 300.0 * count


def solve_directly(unknowns: Unknowns, decay: Floats) -> Floats:
    """log u, with `decay` about how much it falls from cell to cell (a bad guess costs time only)."""
    log_u = np.empty(unknowns.count)
    left, rest = np.arange(unknowns.count), unknowns
    while rest.count:
        report("harmonic field: elimination", unknowns.count - rest.count, unknowns.count)
        log_h = first_estimate(rest, decay[left])
        band = log_h >= log_h.max() - _BAND
        part = rest if band.all() else rest.part(band)
        v = _scaled_solution(part, log_h[band])
        found = np.full(rest.count, -np.inf)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[band] = np.where(v > _SMALLEST * v.max(), log_h[band] + np.log(v), -np.inf)
        solved = found > _lower_end(rest, band, found) + _MARGIN
        log_u[left[solved]] = found[solved]
        if not solved.any():
            if band.all():  # rounding has left nothing; who asked looks for cells without direction
                log_u[left] = log_h
                break
            decay = 0.5 * decay  # so that the band reaches further
            continue
        rest, left = rest.part(~solved, found), left[~solved]
    report("harmonic field: elimination", unknowns.count, unknowns.count)
    return log_u


def elimination_order(coordinates: NDArray[np.int32]) -> NDArray[np.int64]:
    """Unknowns in an order of elimination with few new nonzeros: nested dissection (George 1973) along the axes.

    All parts are cut across their longest axis, near the middle, where that line or plane of the grid has the fewest
    cells, which is along walls. Cells of a cut come after both its sides. A cell's place is a number with a digit per
    cut (0 below, 1 above, 2 in it), so it is a sum of numbers that depend on one coordinate each.
    """
    along = (coordinates - coordinates.min(axis=0)).T
    cells = [np.bincount(c) for c in along]
    parts = [[(0, len(n))] for n in cells]
    places = [np.zeros(len(n), np.int64) for n in cells]
    while any(parts):
        axis = max(range(len(parts)), key=lambda a: max((end - begin for begin, end in parts[a]), default=0))
        for place in places:
            place *= 3
        sides = []
        for begin, end in parts[axis]:
            middle, reach = (begin + end - 1) // 2, (end - begin) // 8
            near = cells[axis][middle - reach : middle + reach + 1]
            fewest = np.flatnonzero(near == near.min())
            cut = middle - reach + int(fewest[np.argmin(np.abs(fewest - reach))])
            places[axis][cut] += 2
            places[axis][cut + 1 : end] += 1
            sides += [side for side in ((begin, cut), (cut + 1, end)) if side[0] < side[1]]
        parts[axis] = sides
    return np.argsort(sum(place[c] for place, c in zip(places, along, strict=True)), kind="stable")


def _scaled_solution(unknowns: Unknowns, log_h: Floats) -> Floats:
    """v = u / h."""
    from scipy.sparse import csc_array
    from scipy.sparse.linalg import splu

    count = unknowns.count
    order = elimination_order(unknowns.coordinates)
    place = np.full(count + 1, -1, np.int32)  # the last is that of no neighbour, which has the number -1
    place[order] = np.arange(count, dtype=np.int32)
    # The pattern is symmetric: what is beside a cell are the rows of its column.
    beside = np.column_stack([np.arange(count, dtype=np.int32), place[unknowns.neighbours[order]]])
    beside.sort(axis=1)
    there = beside >= 0
    rows, starts = beside[there], np.concatenate([[0], np.cumsum(there.sum(axis=1))]).astype(np.int32)
    columns = np.repeat(np.arange(count, dtype=np.int32), np.diff(starts))
    h, weight = log_h[order], unknowns.weight[order]
    values = np.where(rows == columns, 1.0, -weight[rows] * np.exp(h[columns] - h[rows]))
    matrix = csc_array((values, rows, starts), shape=(count, count))
    try:
        factors = splu(
            matrix, permc_spec="NATURAL", diag_pivot_thresh=0.0, options={"SymmetricMode": True, "Equil": False}
        )
        v = np.empty(count)
        v[order] = factors.solve(weight * np.exp(unknowns.log_source[order] - h))
    except (MemoryError, RuntimeError) as error:
        if "singular" in str(error):  # by rounding: no exact pivot is zero
            return np.full(count, np.nan)
        raise GeometryError(
            f"there is not enough memory for a harmonic field of {count:,} cells; {MEMORY_REMEDY}"
        ) from error
    return v


def _lower_end(rest: Unknowns, band: NDArray[np.bool_], found: Floats) -> float:
    """The greatest log u beside a cell below the band, which was taken for 0 there; -inf when there is none."""
    below = np.append(~band, False)  # the last is that of no neighbour
    at_end = band & below[rest.neighbours].any(axis=1)
    return float(found[at_end].max(initial=-np.inf))
