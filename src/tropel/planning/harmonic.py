"""Harmonic planning: follow the gradient of a function without local maxima, LAYERS section 6 and A.2.

On the raster of the world, u is 1 at the target and each free cell is the mean of the cells beside it. There are two
kinds of walls:

"fixed", as in the paper (there the potential 1 - u is 0 at the target and 1 on walls): u is 0 on walls and on the
border. Streams keep away from walls and follow the middle of passages; wide ways are preferred to narrow ones.

"reflecting": walls do not count (zero normal derivative). Then u would be 1 everywhere, so a little of it is lost on
the way: (laplace - 1/decay_length²) u = 0. This is the chance that a walker who wanders at random arrives before it
tires. Far from the target -log u grows by 1 per decay_length along the shortest way, with corners rounded to that
scale; the shorter the decay length, the straighter the ways. With a very long one 1 - u is proportional to the mean
time of arrival, the other useful choice here, where streams divide among doors as a fluid would. Streams run along
walls and do not avoid them; a cell always has a neighbour better by a factor of 1 + (cell/decay_length)²/(2 dim).

u falls by exp(-pi) per width of a passage and soon is smaller than any double, so what is solved for and kept is log u.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import GeometryError, ParameterError, suggest
from tropel.foundation.arguments import Length, checked_arguments
from tropel.foundation.memory import memory_limit, require_memory
from tropel.planning.fields.field import GridField
from tropel.planning.fields.planner import Clearance, FieldPlanner
from tropel.planning.harmonic_dissection import Dissection, dissect
from tropel.planning.harmonic_fronts import solve_scaled
from tropel.planning.harmonic_grid import Unknowns, find_unknowns, first_estimate, log_sweep
from tropel.planning.harmonic_sweeps import TOLERANCE, relaxation, solve_by_sweeps, sweeps_expected
from tropel.planning.harmonic_vectors import best_neighbours, unit_vectors
from tropel.world.raster import Raster

WALLS = ("fixed", "reflecting")
#: In 3D, a direct solution with more operations than this is slower than sweeps.
_DIRECT_IN_3D = 2e10
#: The share of the memory of this process that a direct solution may take.
_MEMORY_SHARE = 0.4
#: A solution is scaled anew when it does not fit into a double; each time the estimate is better by a factor of 1e±300.
_SCALINGS = 12
#: Beyond so many cells per decay length, neighbours differ by less than the arithmetic resolves.
_LONGEST_DECAY = 1e5
#: And below this share of a cell nothing is left at the next one; squares of much smaller ones overflow.
_SHORTEST_DECAY = 1e-6
#: What a place surrounded by the target loses per step, relative to u.
_LOSS = 1e-6
#: A neighbour that is better by less, relative to log u (or to 1), is not better but rounded otherwise.
_ROUNDING = 1e-14


class Harmonic(FieldPlanner):
    """Follow a harmonic field to the goal.

    `walls` is "fixed" (streams in the middle of passages) or "reflecting" (short ways along walls, with corners rounded
    to the `decay_length` [m]); the others are those of every field: `cell` [m], `clearance` [m], `line_of_sight`,
    `cache`.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        walls: str = "fixed",
        decay_length: Length = 5.0,
        cell: Length = 0.2,
        clearance: Clearance = 0.2,
        line_of_sight: bool = True,
        cache: bool = True,
    ) -> None:
        super().__init__(cell=cell, clearance=clearance, line_of_sight=line_of_sight, cache=cache)
        _check_walls(walls)
        if not _SHORTEST_DECAY * cell <= decay_length <= _LONGEST_DECAY * cell:
            raise ParameterError(
                f"Harmonic: decay_length must be a length from {_SHORTEST_DECAY:g} to {_LONGEST_DECAY:g} cells "
                f"({_SHORTEST_DECAY * cell:g} to {_LONGEST_DECAY * cell:g} m), not {decay_length!r} m"
            )
        self.walls = walls
        self.decay_length = float(decay_length)

    def solve(self, raster: Raster, goal: NDArray[np.bool_]) -> GridField:
        """The field that leads to the cells where `goal` is true."""
        log_u = solve_harmonic(raster.free, goal, walls=self.walls, decay_length=self.decay_length / raster.cell)
        vectors = unit_vectors(log_u, goal, mirrored=self.walls == "reflecting")
        return GridField(raster=raster, goal=goal, value=log_u, vectors=vectors)

    @property
    def parameters(self) -> str:
        own = f"walls={self.walls!r}" + (f", decay_length={self.decay_length!r}" if self.walls != "fixed" else "")
        return f"{super().parameters}, {own}"


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
    _check_walls(walls)
    mirrored = walls == "reflecting"
    if mirrored and not _SHORTEST_DECAY <= decay_length <= _LONGEST_DECAY:
        raise ParameterError(
            f"decay_length must be from {_SHORTEST_DECAY:g} to {_LONGEST_DECAY:g} cells, not {decay_length!r}"
        )
    log_held = np.where(goal, 0.0, np.nan)
    if held is not None:
        log_held = np.where(goal, 0.0, _check_held(held, cells.shape))
    is_held = ~np.isnan(log_held)
    unknowns = find_unknowns(cells, is_held, log_held, decay_length**-2 if mirrored else None)
    log_u = np.where(is_held, log_held, -np.inf)
    if unknowns.count:
        decay, half_width = _decay(cells | is_held, unknowns, decay_length if mirrored else None)
        log_u.flat[unknowns.cells] = _solve(unknowns, first_estimate(unknowns, decay), half_width)
        stuck = _stuck(log_u, is_held, unknowns)
        if stuck.any():
            tired = _with_loss_where_flat(unknowns, stuck, cells.shape)
            log_u.flat[unknowns.cells] = _solve(tired, log_u.ravel()[unknowns.cells], half_width)
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


def _solve(unknowns: Unknowns, log_u: NDArray[np.float64], half_width: float) -> NDArray[np.float64]:
    """Directly where that is affordable, otherwise by sweeps."""
    dim = unknowns.coordinates.shape[1]
    dissection = dissect(unknowns)
    # Not by what is free just now: the two solutions differ in their last bits, and a run must not.
    affordable = dissection.bytes_needed <= _MEMORY_SHARE * memory_limit()
    if affordable and (dim == 2 or dissection.operations <= _DIRECT_IN_3D):
        require_memory(
            float(dissection.bytes_needed),
            f"a harmonic field of {unknowns.count:,} cells",
            "end other programs, use larger cells, or plan with a flow field",
            error=GeometryError,
        )
        return _solve_directly(unknowns, dissection, log_u)
    del dissection
    best = relaxation(half_width, dim)
    for share in (1.0, 0.7, 0.4, 0.0):  # what is best for one passage may be too much for a maze of many
        factor = 1.0 + share * (best - 1.0)
        log_u, residual = solve_by_sweeps(unknowns, log_u, factor=factor, most=100 + 3 * sweeps_expected(best))
        if residual < TOLERANCE:
            break
    return log_u  # the last is Gauss-Seidel: right in direction long before it is right in value


def _solve_directly(unknowns: Unknowns, dissection: Dissection, log_h: NDArray[np.float64]) -> NDArray[np.float64]:
    for _ in range(_SCALINGS):
        v = solve_scaled(dissection, log_h, unknowns.weight, unknowns.log_source)
        fits = np.isfinite(v) & (v > 0.0)
        if fits.all():
            return log_h + np.log(v)
        log_h = log_h + np.log(np.where(fits, v, 1.0))
        for _ in range(20):
            log_sweep(unknowns.neighbours, unknowns.log_source, unknowns.weight, log_h)
    return log_h


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


def _check_walls(walls: str) -> None:
    if walls not in WALLS:
        raise ParameterError(f"there are no walls of the kind '{walls}'; {suggest(str(walls), WALLS)}")
