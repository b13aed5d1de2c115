"""log u on a grid: which cells are asked for, which solver finds it, and whether every cell has a direction."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import GeometryError, ParameterError, suggest
from tropel.foundation.memory import memory_limit, require_memory
from tropel.planning.harmonic.grid import Unknowns, find_unknowns, first_estimate
from tropel.planning.harmonic.solver import MEMORY_REMEDY, bytes_needed, solve_directly
from tropel.planning.harmonic.sweeps import TOLERANCE, relaxation, solve_by_sweeps, sweeps_expected
from tropel.planning.harmonic.vectors import best_neighbours

WALLS = ("fixed", "reflecting")
#: In 3D, more cells than this are found sooner by sweeps.
_DIRECT_IN_3D = 30_000
#: The share of the memory of this process that a direct solution may take.
_MEMORY_SHARE = 0.4
#: Beyond so many cells per decay length, neighbours differ by less than the arithmetic resolves.
LONGEST_DECAY = 1e5
#: And below this share of a cell nothing is left at the next one; squares of much smaller ones overflow.
SHORTEST_DECAY = 1e-6
#: What a place surrounded by the target loses per step, relative to u.
_LOSS = 1e-6
#: A neighbour that is better by less, relative to log u (or to 1), is not better but rounded otherwise.
_ROUNDING = 1e-14


def solve_harmonic(
    free: ArrayLike,
    target: ArrayLike,
    *,
    walls: str = "fixed",
    decay_length: float = 25.0,
    held: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """log u on the cells of a grid (ny, nx) or (nz, ny, nx): 0 at the target, -inf where no way leads to it.

    `free` and `target` are boolean; u is 1 on the target. `walls` is "fixed" (u = 0 there and beyond the border) or
    "reflecting" with a `decay_length` in cells. `held` gives cells a value of u of their own (not negative; NaN where
    u is asked for): they are neither free nor walls. No planner does; it is there to compare with closed forms.
    """
    cells, goal = _check_cells(free, target)
    check_walls(walls)
    mirrored = walls == "reflecting"
    if mirrored and not SHORTEST_DECAY <= decay_length <= LONGEST_DECAY:
        raise ParameterError(
            f"decay_length must be from {SHORTEST_DECAY:g} to {LONGEST_DECAY:g} cells, not {decay_length!r}"
        )
    log_held = np.where(goal, 0.0, np.nan)
    if held is not None:
        log_held = np.where(goal, 0.0, _check_held(held, cells.shape))
    is_held = ~np.isnan(log_held)
    unknowns = find_unknowns(cells, is_held, log_held, decay_length**-2 if mirrored else None)
    log_u = np.where(is_held, log_held, -np.inf)
    if unknowns.count:
        decay, half_width = _decay(cells | is_held, unknowns, decay_length if mirrored else None)
        log_u.flat[unknowns.cells] = _solve(unknowns, decay, half_width)
        stuck = _stuck(log_u, is_held, unknowns)
        if stuck.any():
            tired = _with_loss_where_flat(unknowns, stuck, cells.shape)
            log_u.flat[unknowns.cells] = _solve(tired, decay, half_width)
            _check_usable(_stuck(log_u, is_held, unknowns), unknowns)
    return log_u


def _decay(
    open_cells: NDArray[np.bool_], unknowns: Unknowns, decay_length: float | None
) -> tuple[NDArray[np.float64], float]:
    """About how much log u falls from cell to cell, and half the width of the widest passage (in cells)."""
    dim = open_cells.ndim
    if decay_length is not None:
        return np.full(unknowns.count, np.arccosh(1.0 + 0.5 * decay_length**-2)), np.pi / 2.0 * decay_length
    from scipy import ndimage

    distance = ndimage.distance_transform_edt(np.pad(open_cells, 1))
    wider = np.zeros(distance.shape, dtype=np.bool_)
    for axis in range(dim):
        before, after = np.roll(distance, 1, axis), np.roll(distance, -1, axis)
        # The middle of a passage of an even number of cells lies between two of them.
        wider |= ((before == distance) & (after < distance)) | ((after == distance) & (before < distance))
    half = (distance + 0.5 * wider)[(slice(1, -1),) * dim].ravel()[unknowns.cells]
    return np.arccosh(1.0 + (dim - 1) * (1.0 - np.cos(np.pi / 2.0 / half))), float(half.max())


def _solve(unknowns: Unknowns, decay: NDArray[np.float64], half_width: float) -> NDArray[np.float64]:
    """Directly where that is affordable, otherwise by sweeps."""
    dim = unknowns.coordinates.shape[1]
    needed = bytes_needed(unknowns.count, dim)
    # Not by what is free just now: the two solutions differ in their last bits, and a run must not.
    if needed <= _MEMORY_SHARE * memory_limit() and (dim == 2 or unknowns.count <= _DIRECT_IN_3D):
        require_memory(needed, f"a harmonic field of {unknowns.count:,} cells", MEMORY_REMEDY, error=GeometryError)
        return solve_directly(unknowns, decay)
    log_u = first_estimate(unknowns, decay)
    best = relaxation(half_width, dim)
    for share in (1.0, 0.7, 0.4, 0.0):  # what is best for one passage may be too much for a maze of many
        factor = 1.0 + share * (best - 1.0)
        log_u, residual = solve_by_sweeps(unknowns, log_u, factor=factor, most=100 + 3 * sweeps_expected(best))
        if residual < TOLERANCE:
            break
    return log_u  # the last is Gauss-Seidel: right in direction long before it is right in value


def _stuck(log_u: NDArray[np.float64], is_held: NDArray[np.bool_], unknowns: Unknowns) -> NDArray[np.bool_]:
    """Which of the unknown cells have no neighbour that is better by more than rounding."""
    best = best_neighbours(log_u, is_held).ravel()[unknowns.cells]
    own = log_u.ravel()[unknowns.cells]
    rise = np.where(best < 0, 0.0, log_u.ravel()[best] - own)
    return ~(rise > _ROUNDING * np.maximum(1.0, np.abs(own)))


def _with_loss_where_flat(unknowns: Unknowns, stuck: NDArray[np.bool_], shape: tuple[int, ...]) -> Unknowns:
    """The same with a little loss in places without direction.

    A place that the target surrounds, with no wall to see, has u = 1 all over.
    """
    from scipy import ndimage

    asked = np.zeros(shape, dtype=np.bool_)
    asked.flat[unknowns.cells] = True
    parts = ndimage.label(asked)[0].ravel()[unknowns.cells]
    flat = np.isin(parts, parts[stuck])
    return replace(unknowns, weight=np.where(flat, unknowns.weight / (1.0 + _LOSS), unknowns.weight))


def _check_usable(stuck: NDArray[np.bool_], unknowns: Unknowns) -> None:
    if stuck.any():
        where = tuple(int(c) for c in unknowns.coordinates[np.argmax(stuck)])
        raise GeometryError(
            f"the harmonic field has no direction in {int(stuck.sum())} of {unknowns.count} cells, the first at index "
            f"{where}: the solver did not converge there; use larger cells, or a flow field"
        )


def _check_cells(free: ArrayLike, target: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    cells, goal = np.asarray(free), np.asarray(target)
    if cells.ndim not in (2, 3) or cells.size == 0 or cells.dtype != np.bool_:
        raise ParameterError(
            f"free must be a boolean array (ny, nx) or (nz, ny, nx), not {cells.dtype} of shape {cells.shape}"
        )
    if goal.shape != cells.shape or goal.dtype != np.bool_:
        raise ParameterError(
            f"target must be a boolean array of the shape of free, {cells.shape}, not {goal.dtype} of {goal.shape}"
        )
    inside = int((goal & ~cells).sum())
    if inside:
        where = tuple(int(c) for c in np.argwhere(goal & ~cells)[0])
        raise GeometryError(f"{inside} cells of the target are inside walls, the first at index {where}; move it")
    return cells, goal


def _check_held(held: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.float64]:
    values = np.asarray(held, dtype=np.float64)
    if values.shape != shape:
        raise ParameterError(f"held must have the shape of free, {shape}, not {values.shape}")
    if (values < 0.0).any() or np.isinf(values).any():
        raise ParameterError(
            "held values must be 0 or positive, and finite (NaN where u is asked for); add a constant to u"
        )
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(values))


def check_walls(walls: str) -> None:
    if walls not in WALLS:
        raise ParameterError(f"there are no walls of the kind '{walls}'; {suggest(str(walls), WALLS)}")
