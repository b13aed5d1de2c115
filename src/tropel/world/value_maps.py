"""Value maps: the value of places to a lattice crowd, 1 where it does not matter and 0 for a veto.

The values of a map are one of

- an array, over the whole ground or a rectangle of it;
- a function of points, evaluated on the cells once, or of points and time, evaluated again after `every` seconds;
- a `Disc`: 0 within an inner radius, rising to 1 at an outer one (equation 4 of the paper);
- `Openness`: rising with the distance to walls (an example in figure 1b of the paper).

Arrays and disks may move. A map applies to all agents or to one group. It is a pure function of world and time, so that
a resumed run finds it unchanged.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from tropel.errors import ParameterError, readable_errors
from tropel.foundation.arguments import Length, Seconds, checked_arguments, numbers_in
from tropel.foundation.field_types import Finite, NotNegative, PositiveFinite
from tropel.world.ground import Filter, log_avoidance
from tropel.world.motion import (
    MotionLike,
    Orbit,
    Waypoints,
    position_at,
    restored_motion,
    stored_motion,
)
from tropel.world.raster import Raster
from tropel.world.shapes import point

Floats = NDArray[np.float64]


@readable_errors
class _Profile(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Disc(_Profile):
    """A place to keep away from: 0 within `inner` [m], then ((d - inner) / (outer - inner))^intensity, 1 beyond."""

    kind: Literal["disc"] = "disc"
    inner: NotNegative = 0.0
    outer: PositiveFinite
    intensity: PositiveFinite = 1.0

    @model_validator(mode="after")
    def _outer_is_outside(self) -> Disc:
        if self.outer <= self.inner:
            raise ValueError(f"outer ({self.outer:g} m) must be larger than inner ({self.inner:g} m)")
        return self


class Openness(_Profile):
    """Open ground: `least` at a wall, rising linearly to 1 at a distance of `reach` [m] from the nearest wall."""

    kind: Literal["openness"] = "openness"
    reach: PositiveFinite = 1.2
    least: Annotated[Finite, Field(gt=0.0, le=1.0)] = 0.3


#: A function of points (N, 2) [m], or of points and time [s], that returns values (N,).
ValueFunction = Callable[..., ArrayLike]


class ValueMap:
    """The value of places, for all agents or for one group.

    An array without a place covers the whole ground, with one value per cell of the lattice. Otherwise its rows and
    columns are squares of `cell` [m] (the lattice's cell if left out). `origin` is then its low corner, or `position`
    its centre, or `motion` moves its centre; row 0 is the lowest. A disk has a `position` or a `motion`. With
    `spares_inside`, agents that stand on a vetoed cell are not affected.
    """

    @checked_arguments
    def __init__(
        self,
        values: ArrayLike | Disc | Openness | ValueFunction,
        *,
        origin: Sequence[float] | None = None,
        cell: Length | None = None,
        position: Sequence[float] | None = None,
        motion: MotionLike | Mapping[str, Any] | None = None,
        every: Seconds | None = None,
        group: str | None = None,
        spares_inside: bool = False,
    ) -> None:
        self.values: Floats | Disc | Openness | ValueFunction = _values(values)
        self.origin = None if origin is None else point(origin, "the origin of a value map", dim=2)
        self.cell = None if cell is None else float(cell)
        self.position = None if position is None else point(position, "the position of a value map", dim=2)
        self.motion: MotionLike | None = _told_motion(motion) if isinstance(motion, Mapping) else motion
        self.every = every
        self.group = group
        self.spares_inside = bool(spares_inside)
        self._check()

    def _check(self) -> None:
        values = self.values
        places = [n for n in ("origin", "position", "motion") if getattr(self, n) is not None]
        if len(places) > 1:
            raise ParameterError(f"a value map has one place: give {' or '.join(places)}, not {len(places)} of them")
        if self.motion is not None and not (isinstance(self.motion, Waypoints | Orbit) or callable(self.motion)):
            raise ParameterError(
                f"the motion of a value map must be Waypoints, Orbit or a function of time, not {self.motion!r}"
            )
        if isinstance(values, Disc):
            self._refuse("a disk", "origin", "cell", "every")
            if not places:
                raise ParameterError("a value map that is a disk needs a position or a motion")
        elif isinstance(values, np.ndarray):
            self._refuse("an array", "every")
            if self.cell is not None and not places:
                raise ParameterError("a value map with a cell of its own needs an origin, a position or a motion")
        else:
            what = "openness" if isinstance(values, Openness) else "a function"
            self._refuse(what, "origin", "cell", "position", "motion")
        if callable(values):
            self._check_function(values)
        elif self.every is not None:
            self._refuse("openness", "every")

    def _refuse(self, what: str, *names: str) -> None:
        for name in names:
            if getattr(self, name) is not None:
                raise ParameterError(f"a value map that is {what} has no {name}; leave it out")

    def _check_function(self, function: ValueFunction) -> None:
        given = ("points",) if self.every is None else ("points", "time")
        try:
            inspect.signature(function).bind(*given)
        except TypeError as error:
            raise ParameterError(
                f"the function of a value map is called with {' and '.join(given)}; "
                f"{'give `every` if it takes a time too' if self.every is None else 'without `every` it gets no time'}"
            ) from error
        except ValueError:
            pass  # a function written in another language does not reveal its parameters

    # Values on cells --------------------------------------------------------------------------------------------

    def moment(self, time: float) -> tuple[float, ...]:
        """What the values of the map depend on at a time: nothing, its place, or the last time it was evaluated."""
        if self.motion is not None:
            return tuple(position_at(self.motion, time, what="a value map", dim=2).tolist())
        if self.every is not None:
            return (math.floor(time / self.every + 1e-9) * self.every,)
        return ()

    def filter(self, raster: Raster, moment: tuple[float, ...], *, group: int, name: str) -> Filter | None:
        """The map as a filter on the cells of a raster; None if it changes nothing there."""
        row, column, logs = self._logs(raster, moment, name)
        said = logs != 0.0
        if not said.any():
            return None
        rows, columns = np.flatnonzero(said.any(axis=1)), np.flatnonzero(said.any(axis=0))
        part = logs[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        return Filter(
            row=row + int(rows[0]),
            column=column + int(columns[0]),
            log_value=np.ascontiguousarray(part),
            group=group,
            spares_inside=self.spares_inside,
        )

    def _logs(self, raster: Raster, moment: tuple[float, ...], name: str) -> tuple[int, int, Floats]:
        values = self.values
        middle = np.array(moment) if self.motion is not None else self.position
        if isinstance(values, Openness):
            return 0, 0, np.log(_openness(values, raster))
        if isinstance(values, Disc):
            assert middle is not None
            low, shape = _rectangle(raster, middle - values.outer, middle + values.outer)
            away = np.linalg.norm(_centres(raster, low, shape) - middle, axis=1).reshape(shape)
            logs = log_avoidance(away, inner=values.inner, outer=values.outer, intensity=values.intensity)
            return *low, logs
        if isinstance(values, np.ndarray):
            low, worth = self._array_on(raster, values, middle, name)
            return *low, _log(worth)
        points = _centres(raster, (0, 0), raster.shape)
        worth = np.asarray(values(points) if self.every is None else values(points, moment[0]), dtype=np.float64)
        if worth.shape != (len(points),):
            raise ParameterError(
                f"value map '{name}': the function got {len(points)} points and must return as many values, "
                f"not {worth.shape}"
            )
        bad = ~((worth >= 0.0) & (worth <= 1.0))
        if bad.any():
            x, y = points[np.argmax(bad)]
            raise ParameterError(
                f"value map '{name}': the function returns {worth[np.argmax(bad)]:g} at ({x:.4g}, {y:.4g}); it must be "
                f"between 0, which vetoes, and 1"
            )
        return 0, 0, _log(worth.reshape(raster.shape))

    def _array_on(
        self, raster: Raster, values: Floats, middle: Floats | None, name: str
    ) -> tuple[tuple[int, int], Floats]:
        """First cell and values of the part of the map that the array covers: a cell gets the value at its centre."""
        if self.origin is None and middle is None:
            if values.shape != raster.shape:
                raise ParameterError(
                    f"value map '{name}' has {values.shape[0]} × {values.shape[1]} values, but the map has "
                    f"{raster.shape[0]} × {raster.shape[1]} cells (rows × columns) of {raster.cell:g} m; if it covers "
                    f"only a part of the map, give it a place by origin, position or motion"
                )
            return (0, 0), values
        cell = raster.cell if self.cell is None else self.cell
        size = np.array(values.shape[::-1]) * cell
        corner = self.origin if middle is None else middle - 0.5 * size
        assert corner is not None
        low, shape = _rectangle(raster, corner, corner + size)
        # A centre on the border of two squares belongs to the upper one, even after rounding.
        index = np.floor((_centres(raster, low, shape) - corner) / cell + 1e-9).astype(np.int64)
        inside = ((index >= 0) & (index < values.shape[::-1])).all(axis=1)
        worth = np.ones(len(index))
        worth[inside] = values[index[inside, 1], index[inside, 0]]
        return low, worth.reshape(shape)

    # Files and checkpoints --------------------------------------------------------------------------------------

    @property
    def holds_function(self) -> bool:
        """Whether it is, or is moved by, a Python function, which files cannot store."""
        return callable(self.values) or (self.motion is not None and not isinstance(self.motion, Waypoints | Orbit))

    @property
    def parameters(self) -> str:
        """What distinguishes it from others; part of digests. Functions are identified by their names."""
        if isinstance(self.values, np.ndarray):
            values = f"{self.values.shape} {hashlib.sha256(self.values.tobytes()).hexdigest()[:16]}"
        else:
            values = _function_name(self.values) if callable(self.values) else repr(self.values)
        motion = _function_name(self.motion) if callable(self.motion) else repr(self.motion)
        place = [None if p is None else p.tolist() for p in (self.origin, self.position)]
        return f"{values}, {place}, {motion}, {self.cell!r}, {self.every!r}, {self.group!r}, {self.spares_inside!r}"

    def stored(self) -> dict[str, Any]:
        """The map as plain data, if it holds no function: `ValueMap(**stored)` rebuilds it."""
        values = self.values
        assert not callable(values)
        return {
            "values": values.tolist() if isinstance(values, np.ndarray) else values.model_dump(mode="json"),
            "origin": None if self.origin is None else self.origin.tolist(),
            "cell": self.cell,
            "position": None if self.position is None else self.position.tolist(),
            "motion": None if self.motion is None else stored_motion(self.motion),
            "group": self.group,
            "spares_inside": self.spares_inside,
        }


def _values(given: Any) -> Any:
    if isinstance(given, Mapping):
        kinds = {"disc": Disc, "openness": Openness}
        if given.get("kind") not in kinds:
            raise ParameterError(
                f'the values of a value map must be of the kind "disc" or "openness", not {given.get("kind")!r}'
            )
        return kinds[given["kind"]](**given)
    if (callable(given) and not isinstance(given, type)) or isinstance(given, Disc | Openness):
        return given
    found = numbers_in(given)
    array = np.empty(0) if found is None else np.array(found, order="C")
    if array.ndim != 2 or array.size == 0:
        raise ParameterError(
            f"the values of a value map must be an array (rows, columns), a function of points, Disc(…) or Openness(…),"
            f" not {type(given).__name__} of shape {np.shape(array) if array.size else '()'}"
        )
    bad = np.argwhere(~((array >= 0.0) & (array <= 1.0)))
    if len(bad):
        row, column = bad[0].tolist()
        raise ParameterError(
            f"values of a map must lie between 0, which vetoes, and 1; "
            f"row {row}, column {column} is {array[row, column]:g}"
        )
    return array


def _told_motion(stored: Mapping[str, Any]) -> MotionLike:
    try:
        return restored_motion(stored)
    except (KeyError, ValueError) as error:
        raise ParameterError(
            f"the motion of a value map is not a Waypoints or an Orbit: {reprlib.repr(dict(stored))}"
        ) from error


def _function_name(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', type(function).__qualname__)}"


def _log(worth: Floats) -> Floats:
    with np.errstate(divide="ignore"):
        return np.log(worth)


def _rectangle(raster: Raster, low: Floats, high: Floats) -> tuple[tuple[int, int], tuple[int, int]]:
    """First row and column, and numbers of rows and columns, of the cells between two corners [m]; may be empty."""
    counts = np.array(raster.shape)
    first = np.clip(np.floor((low - raster.origin) / raster.cell)[::-1], 0, counts).astype(np.int64)
    last = np.clip(np.ceil((high - raster.origin) / raster.cell)[::-1], first, counts).astype(np.int64)
    rows, columns = (last - first).tolist()
    return (int(first[0]), int(first[1])), (rows, columns)


def _centres(raster: Raster, low: tuple[int, int], shape: Sequence[int]) -> Floats:
    index = np.stack(np.meshgrid(*(np.arange(n) for n in shape), indexing="ij"), axis=-1).reshape(-1, 2)
    return raster.centre(index + np.array(low))


def _openness(told: Openness, raster: Raster) -> Floats:
    """Walls are cells that are not free and the end of the map; their edge is half a cell from the nearest centre."""
    from scipy.ndimage import distance_transform_edt

    away = distance_transform_edt(np.pad(raster.free, 1))[1:-1, 1:-1] * raster.cell - 0.5 * raster.cell
    return np.where(raster.free, told.least + (1.0 - told.least) * np.clip(away / told.reach, 0.0, 1.0), 1.0)
