"""The influence of hazards on the cells around them, clipped by walls (Banerjee et al. 2009, sections 5.1 and 5.2).

Equation 4 alone reaches through walls. The paper solves this with a discrete line of sight: cells are visited from the
periphery of the hazard's bounding box inwards. A line rasterised after Bresenham leads from each cell that has not
been processed to the hazard. In detail:

1. The box has the hazard's cell in the middle and reaches floor(outer / cell + ½) cells to each side. A ring is the set
   of cells at the same largest coordinate difference to the middle. Rings are visited from the outermost to the middle,
   and the cells of a ring in the order of the array (row by row, from low columns to high). Cells off the map are
   skipped.
2. From a cell (r, c) without a value, a line goes to the middle. It has n = max(|dr|, |dc|) steps. After k steps it has
   moved k cells along the longer axis and floor((2 k m + n) / 2n) cells along the shorter, m = min(|dr|, |dc|).
3. If a cell of the line is blocked, the cells from the selected one up to the blocked one nearest to the hazard get the
   value 1. Those after it, or all of them if none is blocked, get equation 4. A cell that has a value keeps it.

The hazard's own cell never counts as blocked, so that a pillar may burn. Cells off the map hide nothing.

The kernels come first, then the filter of one hazard. `HazardFilters` keeps all of them up to date for a crowd on
cells, and `with_path_costs` turns them into the cost of paths for planners with fields.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel.errors import ParameterError
from tropel.world.ground import Filter, Ground, log_avoidance
from tropel.world.raster import Raster, lattice_cells, planned_hazards, static_obstacles

if TYPE_CHECKING:
    from tropel.world.world import World


# The cells that a hazard's influence reaches: rays drawn on the cells, from the rim of a box inwards.


UNPROCESSED, OPEN, HIDDEN = 0, 1, 2


@kernel
def _look_from(row, column, centre_row, centre_column, first_row, first_column, free, mark):
    """Draw the line from an unprocessed cell to the centre and mark the cells on it that have no mark yet."""
    rows, columns = abs(centre_row - row), abs(centre_column - column)
    down = 1 if centre_row > row else -1
    along = 1 if centre_column > column else -1
    major, minor = max(rows, columns), min(rows, columns)
    upright = rows >= columns
    # The number of the blocked cell nearest to the centre, counted from the selected cell; the centre never blocks.
    blocked = -1
    # The remainder of (2 k minor + major) / (2 major); its quotient is the offset of the line from its major axis.
    rest = major
    r, c = row, column
    for step in range(major):
        if 0 <= r < free.shape[0] and 0 <= c < free.shape[1] and not free[r, c]:
            blocked = step
        rest += 2 * minor
        turn = rest >= 2 * major
        rest -= 2 * major * turn
        r += down * (upright or turn)
        c += along * (not upright or turn)
    rest = major
    r, c = row - first_row, column - first_column
    for step in range(major + 1):
        if 0 <= r < mark.shape[0] and 0 <= c < mark.shape[1] and mark[r, c] == UNPROCESSED:
            mark[r, c] = OPEN if step > blocked else HIDDEN
        rest += 2 * minor
        turn = rest >= 2 * major
        rest -= 2 * major * turn
        r += down * (upright or turn)
        c += along * (not upright or turn)


@kernel
def mark_influence(free, centre_row, centre_column, reach, first_row, first_column, mark):
    """Mark the cells of a box as OPEN to its centre or HIDDEN behind blocked cells; the module docstring has the rules.

    `mark` covers the part of the box that is on the map, with (first_row, first_column) as its first cell. The whole
    box reaches `reach` cells to each side of the centre's cell, which may lie off the map.
    """
    last_row, last_column = first_row + mark.shape[0] - 1, first_column + mark.shape[1] - 1
    for ring in range(reach, -1, -1):
        for row in range(max(centre_row - ring, first_row), min(centre_row + ring, last_row) + 1):
            left, right, stride = centre_column - ring, centre_column + ring, 2 * ring
            # In the rows between its first and its last, a ring has two cells.
            if row == centre_row - ring or row == centre_row + ring:
                left, right, stride = max(left, first_column), min(right, last_column), 1
            for column in range(left, right + 1, stride):
                inside = first_column <= column <= last_column
                if inside and mark[row - first_row, column - first_column] == UNPROCESSED:
                    _look_from(row, column, centre_row, centre_column, first_row, first_column, free, mark)


def influence_filter(
    raster: Raster,
    centre: Sequence[float] | NDArray[np.float64],
    inner: float,
    outer: float,
    intensity: float,
    *,
    clipped: bool = True,
    spares_inside: bool = False,
) -> Filter | None:
    """The value of the cells within `outer` [m] of a centre, or None if none of them is on the map.

    Distances are measured from the centres of cells. With `clipped`, the influence ends at blocked cells.
    """
    place = np.asarray(centre, dtype=np.float64)
    if raster.dim != 2 or place.shape != (2,):
        raise ParameterError(f"an influence on cells needs a 2D raster and a centre (x, y), not {place.tolist()}")
    if not (np.isfinite(place).all() and 0.0 <= inner <= outer < np.inf and 0.0 <= intensity < np.inf):
        raise ParameterError(
            f"an influence needs a finite centre, 0 ≤ inner ≤ outer and an intensity that is not negative; got "
            f"{place.tolist()}, {inner!r} m, {outer!r} m and {intensity!r}"
        )
    # In cells, as floats, which do not overflow if the centre is far off the map.
    middle = np.floor((place - raster.origin) / raster.cell)[::-1]
    reach = np.floor(outer / raster.cell + 0.5)
    low = np.maximum(middle - reach, 0.0)
    high = np.minimum(middle + reach, np.array(raster.shape) - 1.0)
    if (low > high).any():
        return None
    # Rings without a cell on the map can be skipped.
    reach = min(reach, float(max(np.abs(middle - low).max(), np.abs(high - middle).max())))
    row, column = int(low[0]), int(low[1])
    rows, columns = int(high[0]) - row + 1, int(high[1]) - column + 1
    x = raster.origin[0] + (np.arange(column, column + columns) + 0.5) * raster.cell - place[0]
    y = raster.origin[1] + (np.arange(row, row + rows) + 0.5) * raster.cell - place[1]
    distance = np.sqrt(x[None, :] ** 2 + y[:, None] ** 2)
    value = log_avoidance(distance, inner=inner, outer=outer, intensity=intensity)
    if clipped:
        mark = np.zeros((rows, columns), dtype=np.uint8)
        mark_influence(raster.free, int(middle[0]), int(middle[1]), int(reach), row, column, mark)
        value[mark == HIDDEN] = 0.0
    return Filter(row=row, column=column, log_value=value, spares_inside=spares_inside)


#: The largest factor on path lengths, next to the inner disc. It is finite: a door there is used if there is no other.
DEAREST = 32.0


def with_path_costs(raster: Raster, sight: Raster, world: World, cost: float) -> Raster:
    """The same raster with what paths cost near hazards that planners avoid; `sight` are the cells without hazards.

    A path through a cell of the value x (equation 4, clipped by walls; of several hazards the product) counts
    1 + cost (1/x - 1) times its length. Factors are rounded to powers of √2, so that most cells stay as they are when a
    hazard moves or grows by a little, and plans are repaired where they do not.
    """
    planned = planned_hazards(world, step=raster.cell)
    if cost == 0.0 or raster.dim != 2 or not len(planned.inner):
        return raster
    log_value = np.zeros(raster.shape)
    for place, inner, outer, intensity in zip(*planned, strict=True):
        found = influence_filter(sight, place, float(inner), float(outer), float(intensity))
        if found is not None:
            rows, columns = found.log_value.shape
            log_value[found.row : found.row + rows, found.column : found.column + columns] += found.log_value
    with np.errstate(over="ignore"):
        factor = np.minimum(1.0 + cost * np.expm1(-log_value), DEAREST)
    return replace(raster, cost=2.0 ** (np.round(2.0 * np.log2(factor)) / 2.0))


class HazardFilters:
    """Keeps the filters of a ground in step with the hazards of the world: one for each, named "hazard NAME".

    They are functions of the world as it is, so a checkpoint does not need to store them.
    """

    def __init__(self) -> None:
        self._laid: dict[str, tuple[object, ...]] = {}
        self._terrain: Ground | None = None
        self._sight: Raster | None = None  #: the cells for which they were made
        self._drawn: Raster | None = None  #: cells without those that hazards block, and what they show
        self._shown: tuple[object, ...] = ()

    def update(self, world: World, terrain: Ground, *, far: bool = True) -> None:
        """Add, replace and remove filters where hazards, doors or obstacles have changed.

        Unless `far`, filters cover only the inner discs: agents do not step into a hazard, but do not keep away from it
        either.
        """
        hazards = world.hazards
        if terrain is not self._terrain:
            self._terrain, self._laid = terrain, {}
        for name in self._laid.keys() - set(hazards.names):
            terrain.drop_filter(_layer(name))
            del self._laid[name]
        if not len(hazards):
            return
        sight = self._what_is_seen(world, terrain.raster)
        if sight is not self._sight:
            self._sight, self._laid = sight, dict.fromkeys(self._laid, ())
        for row, name in enumerate(hazards.names):
            hazard = hazards[name]
            inner = float(hazards.inner[row])
            outer = float(hazards.outer[row]) if far else inner
            wanted = (
                hazards.position[row].tobytes(),
                inner,
                outer,
                hazard.intensity,
                hazard.deadly,
            )
            if self._laid.get(name) == wanted:
                continue
            new = influence_filter(
                sight,
                hazards.position[row],
                inner,
                outer,
                hazard.intensity,
                # Agents may find a path out of a hazard that does not kill.
                spares_inside=not hazard.deadly,
            )
            if new is None:
                terrain.drop_filter(_layer(name))
            else:
                terrain.set_filter(_layer(name), new)
            self._laid[name] = wanted

    def _what_is_seen(self, world: World, raster: Raster) -> Raster:
        """The cells that hide influence: those blocked on the ground, except those that hazards themselves block."""
        if not len(world.hazards.rows_where("replan")):
            return raster
        position, radius = static_obstacles(world, hazards=False)
        now = (raster.cell, world.blocking.tobytes(), position.tobytes(), radius.tobytes())
        if now != self._shown or self._drawn is None:
            self._shown, self._drawn = now, lattice_cells(world, raster.cell, hazards=False)
        return self._drawn


def _layer(name: str) -> str:
    return f"hazard {name}"
