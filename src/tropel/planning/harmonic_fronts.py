"""The scaled direct solver of harmonic fields: elimination of dense fronts in positive arithmetic.

With u = h v, where h is a rough estimate of u, the equations u_i = w_i (sum u_j + source_i) become

    v_i = w_i (sum_j exp(log h_j - log h_i) v_j + exp(log source_i - log h_i)).

The matrix is an M-matrix, so that elimination without pivoting only ever adds terms of one sign: every v comes out with
a small *relative* error, whatever its size, as long as v itself fits into a double, i.e. as h is within a factor of
about 1e±300. u may then be exp(-5000), as in a long maze. Fronts flow into one another as in Duff and Reid (1983).
1024² open cells take 4e10 operations and 0.5 GB.

Rejected after measuring: scipy's sparse solver (1.4 to 2.7 times as long at 512²); multigrid by aggregation with GCR
(did not converge where v spans many orders of magnitude); BLAS for the products (five times slower with two threads
than with one on a busy machine).
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel.foundation.long_work import report
from tropel.planning.harmonic_dissection import Dissection

#: In how many parts fronts are eliminated, to say after each how far it is.
_PARTS = 50
#: Columns eliminated together, and those of a tile that stays in the cache during a product.
_PANEL, _TILE_COLUMNS = 32, 256
#: Rows that one thread updates at a time; below so many operations a product stays on one thread.
_ROWS, _WORTH_THREADS = 32, 2_000_000


def solve_scaled(
    dissection: Dissection,
    log_h: NDArray[np.float64],
    weight: NDArray[np.float64],
    log_source: NDArray[np.float64],
) -> NDArray[np.float64]:
    """v = u / h for all unknowns (in their own order)."""
    d = dissection
    fronts = len(d.children)
    widest = int((np.diff(d.start) + np.diff(d.border_start)).max(initial=0))
    factor, waiting = np.empty(int(d.factor_start[-1])), np.empty(d.waiting + 1)
    front = np.empty(widest * (widest + 1))
    place = np.empty(len(log_h), np.int64)
    stacked, stack_start = np.empty(fronts + 1, np.int64), np.zeros(fronts + 2, np.int64)
    given = log_h[d.order], weight[d.order], log_source[d.order]
    depth = 0
    for first, last, done in _in_parts(d):
        depth = _eliminate_some(
            first,
            last,
            depth,
            d.start,
            d.border_start,
            d.border,
            d.children,
            d.factor_start,
            d.neighbours,
            *given,
            place,
            front,
            waiting,
            stacked,
            stack_start,
            factor,
        )
        report("harmonic field: elimination", done, 1.0)
    ordered = np.empty(len(log_h))
    _substitute_back(d.start, d.border_start, d.border, d.factor_start, factor, ordered)
    v = np.empty(len(log_h))
    v[d.order] = ordered
    return v


def _in_parts(d: Dissection) -> list[tuple[int, int, float]]:
    """Fronts in parts of about the same work, with the share that is done after each; a kernel cannot say it."""
    inner, outer = np.diff(d.start).astype(np.float64), np.diff(d.border_start)
    done = np.cumsum(inner * (inner + outer) ** 2)
    if not len(done):
        return []
    cuts = np.searchsorted(done, np.linspace(0.0, done[-1], _PARTS + 1)[1:-1]) + 1
    ends = np.unique(np.append(cuts, len(done))).tolist()
    return [(a, b, float(done[b - 1] / done[-1])) for a, b in zip([0, *ends[:-1]], ends, strict=True)]


@kernel
def _eliminate_some(
    first,
    last,
    depth,
    start,
    border_start,
    border,
    children,
    factor_start,
    neighbours,
    log_h,
    weight,
    log_source,
    place,
    memory,
    waiting,
    stacked,
    stack_start,
    factor,
):
    """Fronts first–last, children before parents. A front keeps v_inner = last column - other columns · v_border.

    Returns how many of the fronts so far wait for their parent.
    """
    for f in range(first, last):
        inner, outer = start[f + 1] - start[f], border_start[f + 1] - border_start[f]
        rows = inner + outer
        matrix = memory[: rows * (rows + 1)].reshape(rows, rows + 1)
        matrix[:, :] = 0.0
        for q in range(outer):
            place[border[border_start[f] + q]] = inner + q
        _enter_cells(start[f], start[f + 1], outer, neighbours, log_h, weight, log_source, place, matrix)
        for _ in range(children[f]):
            depth -= 1
            child = stacked[depth]
            touched = border[border_start[child] : border_start[child + 1]]
            _enter_child(touched, place, waiting, stack_start[depth], matrix)
        _eliminate(matrix, inner)
        for i in range(inner):
            for j in range(outer + 1):
                factor[factor_start[f] + i * (outer + 1) + j] = matrix[i, inner + j]
        for i in range(outer):
            for j in range(outer + 1):
                waiting[stack_start[depth] + i * (outer + 1) + j] = matrix[inner + i, inner + j]
        stacked[depth] = f
        depth += 1
        stack_start[depth] = stack_start[depth - 1] + outer * (outer + 1)
    return depth


@kernel
def _enter_cells(begin, end, outer, neighbours, log_h, weight, log_source, place, matrix):
    right = end - begin + outer
    for i in range(begin, end):
        place[i] = i - begin
    for i in range(begin, end):
        row = i - begin
        matrix[row, row] = 1.0
        matrix[row, right] = weight[i] * np.exp(log_source[i] - log_h[i])
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= begin:
                matrix[row, place[j]] = -weight[i] * np.exp(log_h[j] - log_h[i])
                if j >= end:
                    matrix[place[j], row] = -weight[j] * np.exp(log_h[i] - log_h[j])


@kernel
def _enter_child(border, place, waiting, begin, matrix):
    width = border.size + 1
    right = matrix.shape[1] - 1
    for i in range(border.size):
        row = place[border[i]]
        for j in range(border.size):
            matrix[row, place[border[j]]] += waiting[begin + i * width + j]
        matrix[row, right] += waiting[begin + i * width + border.size]


@kernel
def _eliminate(matrix, inner):
    """Eliminate the first `inner` unknowns; their rows become the solution for a given border."""
    rows, columns = matrix.shape
    begin = 0
    while begin < inner:
        end = min(begin + _PANEL, inner)
        for p in range(begin, end):
            inverse = 1.0 / matrix[p, p]
            for i in range(p + 1, rows):
                part = matrix[i, p] * inverse
                matrix[i, p] = part
                if part != 0.0:
                    for j in range(p + 1, end):
                        matrix[i, j] -= part * matrix[p, j]
        for q in range(begin + 1, end):
            for p in range(begin, q):
                part = matrix[q, p]
                if part != 0.0:
                    for j in range(end, columns):
                        matrix[q, j] -= part * matrix[p, j]
        _subtract_product(matrix, end, rows, end, columns, begin, end)
        begin = end
    while begin > 0:
        end = begin
        begin = (end - 1) // _PANEL * _PANEL
        for p in range(end - 1, begin - 1, -1):
            for q in range(p + 1, end):
                part = matrix[p, q]
                if part != 0.0:
                    for j in range(inner, columns):
                        matrix[p, j] -= part * matrix[q, j]
            inverse = 1.0 / matrix[p, p]
            for j in range(inner, columns):
                matrix[p, j] *= inverse
        _subtract_product(matrix, 0, begin, inner, columns, begin, end)


@kernel
def _subtract_product(matrix, row, row_end, column, column_end, begin, end):
    """matrix[rows, columns] -= matrix[rows, begin:end] · matrix[begin:end, columns]; these do not overlap."""
    if (row_end - row) * (column_end - column) * (end - begin) < _WORTH_THREADS:
        _subtract_rows(matrix, row, row_end, column, column_end, begin, end)
    else:
        _subtract_on_threads(matrix, row, row_end, column, column_end, begin, end)


@parallel_kernel
def _subtract_on_threads(matrix, row, row_end, column, column_end, begin, end):
    for chunk in numba.prange((row_end - row + _ROWS - 1) // _ROWS):
        low = row + chunk * _ROWS
        _subtract_rows(matrix, low, min(low + _ROWS, row_end), column, column_end, begin, end)


@kernel
def _subtract_rows(matrix, row, row_end, column, column_end, begin, end):
    for left in range(column, column_end, _TILE_COLUMNS):
        right = min(left + _TILE_COLUMNS, column_end)
        i = row
        while i + 1 < row_end:
            _subtract_two_rows(matrix, i, left, right, begin, end)
            i += 2
        if i < row_end:
            target = matrix[i, left:right]
            for k in range(begin, end):
                part = matrix[i, k]
                source = matrix[k, left:right]
                for j in range(right - left):
                    target[j] -= part * source[j]


@kernel
def _subtract_two_rows(matrix, i, left, right, begin, end):
    """Two rows and four columns at a time: a value that was loaded is used more than once."""
    upper, lower = matrix[i, left:right], matrix[i + 1, left:right]
    k = begin
    while k + 4 <= end:
        a0, a1, a2, a3 = matrix[i, k], matrix[i, k + 1], matrix[i, k + 2], matrix[i, k + 3]
        b0, b1, b2, b3 = matrix[i + 1, k], matrix[i + 1, k + 1], matrix[i + 1, k + 2], matrix[i + 1, k + 3]
        s0, s1 = matrix[k, left:right], matrix[k + 1, left:right]
        s2, s3 = matrix[k + 2, left:right], matrix[k + 3, left:right]
        for j in range(right - left):
            upper[j] -= (a0 * s0[j] + a1 * s1[j]) + (a2 * s2[j] + a3 * s3[j])
            lower[j] -= (b0 * s0[j] + b1 * s1[j]) + (b2 * s2[j] + b3 * s3[j])
        k += 4
    while k < end:
        a0, b0 = matrix[i, k], matrix[i + 1, k]
        s0 = matrix[k, left:right]
        for j in range(right - left):
            upper[j] -= a0 * s0[j]
            lower[j] -= b0 * s0[j]
        k += 1


@kernel
def _substitute_back(start, border_start, border, factor_start, factor, v):
    for f in range(start.size - 2, -1, -1):
        outer = border_start[f + 1] - border_start[f]
        at = factor_start[f]
        for i in range(start[f], start[f + 1]):
            total = factor[at + outer]
            for q in range(outer):
                total -= factor[at + q] * v[border[border_start[f] + q]]
            v[i] = total
            at += outer + 1
