"""The cells of a harmonic problem as a graph, and a first estimate of log u on it.

Unknown cells are numbered in the order in which a wave from the held cells reaches them: whatever runs over them
forwards carries values away from the target, and what the wave does not reach has no way to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel


@dataclass(frozen=True, kw_only=True)
class Unknowns:
    """The free cells whose value is asked for: u_i = weight_i (sum of u over neighbours + exp(log_source_i))."""

    cells: NDArray[np.int64]  #: (n,): flat index of each
    coordinates: NDArray[np.int32]  #: (n, dim): index along each axis
    neighbours: NDArray[np.int32]  #: (n, 2 dim): numbers of the unknown cells beside each, -1 where there is none
    log_source: NDArray[np.float64]  #: (n,): log of the sum of held values beside each, -inf where there are none
    weight: NDArray[np.float64]  #: (n,): one over the number of neighbours that count (and the absorption)

    @property
    def count(self) -> int:
        return len(self.cells)

    def part(self, chosen: NDArray[np.bool_], log_u: NDArray[np.float64] | None = None) -> Unknowns:
        """The equations of some of the cells, where the others have a given log u, or u = 0."""
        number = np.full(self.count + 1, -1, np.int32)  # the last is that of no neighbour
        number[:-1][chosen] = np.arange(chosen.sum(), dtype=np.int32)
        beside, log_source = self.neighbours[chosen], self.log_source[chosen]
        if log_u is not None:
            given = np.append(np.where(chosen, -np.inf, log_u), -np.inf)[beside]
            edge = (given > -np.inf).any(axis=1)
            log_source[edge] = np.logaddexp.reduce(np.column_stack([log_source, given])[edge], axis=1)
        return Unknowns(
            cells=self.cells[chosen],
            coordinates=self.coordinates[chosen],
            neighbours=number[beside],
            log_source=log_source,
            weight=self.weight[chosen],
        )


def find_unknowns(
    free: NDArray[np.bool_], held: NDArray[np.bool_], log_held: NDArray[np.float64], absorption: float | None
) -> Unknowns:
    """Number the free cells that the held cells with a positive value reach, side by side.

    `absorption` None: whatever is neither free nor held is 0. Otherwise it does not count (zero normal derivative), and
    every cell loses that much, in units of one neighbour.
    """
    shape = (1,) * (3 - free.ndim) + free.shape
    size = free.size
    order, number, queue = np.empty(size, np.int64), np.full(size, -1, np.int64), np.empty(size, np.int64)
    flat_held, flat_log = np.ascontiguousarray(held).ravel(), np.ascontiguousarray(log_held).ravel()
    seen = flat_held & (flat_log > -np.inf)
    count = _spread(np.ascontiguousarray(free).ravel(), flat_held, shape, seen, queue, order, number)
    cells = order[:count].copy()
    neighbours = np.empty((count, 2 * free.ndim), np.int32)
    log_source, degree = np.empty(count), np.empty(count, np.int64)
    _link(cells, number, flat_held, flat_log, shape, neighbours, log_source, degree)
    weight = np.full(count, 0.5 / free.ndim) if absorption is None else 1.0 / (degree + absorption)
    coordinates = np.stack(np.unravel_index(cells, free.shape), axis=-1).astype(np.int32)
    return Unknowns(cells=cells, coordinates=coordinates, neighbours=neighbours, log_source=log_source, weight=weight)


def first_estimate(unknowns: Unknowns, decay: NDArray[np.float64]) -> NDArray[np.float64]:
    """log u if it fell by `decay` per cell along the cheapest way from the target, smoothed a little.

    It only scales the equations: a factor of 1e200 beside the truth does no harm.
    """
    log_u = np.full(unknowns.count, -np.inf)
    _cheapest_ways(unknowns.neighbours, unknowns.log_source, decay, 6, log_u)
    for _ in range(2):
        log_sweep(unknowns.neighbours, unknowns.log_source, unknowns.weight, log_u)
    return log_u


@kernel
def _beside(i, k, nz, ny, nx):
    """The k-th cell beside cell i, or -1 at the border. Along x, then y, then z."""
    x = i % nx
    y = i // nx % ny
    z = i // (nx * ny)
    if k == 0:
        return i - 1 if x > 0 else -1
    if k == 1:
        return i + 1 if x < nx - 1 else -1
    if k == 2:
        return i - nx if y > 0 else -1
    if k == 3:
        return i + nx if y < ny - 1 else -1
    if k == 4:
        return i - nx * ny if z > 0 else -1
    return i + nx * ny if z < nz - 1 else -1


@kernel
def _spread(free, held, shape, seen, queue, order, number):
    nz, ny, nx = shape
    sides = 6 if nz > 1 else 4
    tail = 0
    for i in range(free.size):
        if seen[i]:
            queue[tail] = i
            tail += 1
    head, count = 0, 0
    while head < tail:
        i = queue[head]
        head += 1
        if not held[i]:
            order[count] = i
            number[i] = count
            count += 1
        for k in range(sides):
            j = _beside(i, k, nz, ny, nx)
            if j >= 0 and free[j] and not held[j] and not seen[j]:
                seen[j] = True
                queue[tail] = j
                tail += 1
    return count


@kernel
def _link(cells, number, held, log_held, shape, neighbours, log_source, degree):
    nz, ny, nx = shape
    for a in range(cells.size):
        total = 0.0
        counted = 0
        for k in range(neighbours.shape[1]):
            neighbours[a, k] = -1
            j = _beside(cells[a], k, nz, ny, nx)
            if j >= 0:
                if held[j]:
                    total += np.exp(log_held[j])
                    counted += 1
                elif number[j] >= 0:
                    neighbours[a, k] = number[j]
                    counted += 1
        log_source[a] = np.log(total)
        degree[a] = counted


@kernel
def _cheapest_ways(neighbours, log_source, decay, passes, log_u):
    count = log_u.size
    for turn in range(passes):
        changed = False
        for step in range(count):
            i = step if turn % 2 == 0 else count - 1 - step
            best = max(log_u[i], log_source[i] - decay[i])
            for k in range(neighbours.shape[1]):
                j = neighbours[i, k]
                if j >= 0:
                    best = max(best, log_u[j] - 0.5 * (decay[i] + decay[j]))
            if best > log_u[i]:
                log_u[i] = best
                changed = True
        if not changed:
            break


@kernel
def log_sweep(neighbours, log_source, weight, log_u):
    """One Gauss-Seidel sweep on log u, away from the target."""
    for i in range(log_u.size):
        top = log_source[i]
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= 0 and log_u[j] > top:
                top = log_u[j]
        total = np.exp(log_source[i] - top)
        for k in range(neighbours.shape[1]):
            j = neighbours[i, k]
            if j >= 0:
                total += np.exp(log_u[j] - top)
        log_u[i] = top + np.log(total * weight[i])
