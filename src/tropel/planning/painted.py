"""Vector fields that a user paints: arrays, functions, strokes along lines, images, and combinations of them.

A painted field gives a direction and a strength at any point: vectors of length up to 1 (longer ones are shortened when
agents follow them), zero where nothing is painted. Fields combine:

    a + b, 0.5 * a          weighted sums
    a.masked(polygon)       a inside the polygon, nothing outside
    a.over(b)               a where it is painted, b elsewhere; with `region`, a inside the region and b outside
    a.on_grid(...)          the same as an array, for fields that are slow to evaluate
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

from tropel.errors import GeometryError, ParameterError, is_finite, suggest
from tropel.foundation.arguments import LARGEST_LENGTH, Length, checked_arguments, numbers_in
from tropel.foundation.quantities import is_number
from tropel.world.maps import read_pixels
from tropel.world.raster import check_memory
from tropel.world.shapes import Polygonal

Floats = NDArray[np.float64]


class PaintedField(ABC):
    """The base of all painted fields. Your own class implements `at`."""

    @abstractmethod
    def at(self, points: Floats) -> Floats:
        """Vectors (N, dim) at points (N, dim) [m]; zero where nothing is painted."""

    @property
    def parameters(self) -> str:
        """What distinguishes it from others of its kind; part of digests."""
        return ""

    def __add__(self, other: PaintedField) -> PaintedField:
        if not isinstance(other, PaintedField):
            return NotImplemented
        return _Sum(((1.0, self), (1.0, other)))

    def __mul__(self, weight: float) -> PaintedField:
        if not is_number(weight):
            return NotImplemented
        if not is_finite(weight):
            raise ParameterError(f"the weight of a painted field must be a finite number, not {weight!r}")
        return _Sum(((float(weight), self),))

    __rmul__ = __mul__

    @checked_arguments
    def masked(self, region: Polygonal, *, inside: bool = True) -> PaintedField:
        """The part inside (or outside) a polygon."""
        return _Masked(self, region, inside)

    @checked_arguments
    def over(self, other: PaintedField, *, region: Polygonal | None = None) -> PaintedField:
        """This field on top of another: inside the region, or without one wherever this field is painted."""
        return _Over(self, other, region)

    @checked_arguments
    def on_grid(self, low: Sequence[float], high: Sequence[float], *, cell: Length) -> ArrayField:
        """The field at the centres of cells between two corners [m]; faster than many strokes or polygons."""
        first, last = _floats(low), _floats(high)
        if first.shape not in ((2,), (3,)) or first.shape != last.shape or not (last > first).all():
            raise ParameterError(f"on_grid: the corners {low} and {high} must be two points, the second one beyond")
        if not np.isfinite([first, last]).all():
            raise ParameterError(f"on_grid: the corners {low} and {high} must be finite")
        steps = np.maximum(np.ceil((last - first) / cell), 1.0)
        check_memory(steps[::-1], cell)
        counts = steps.astype(np.int64)
        axes = [first[d] + (np.arange(counts[d]) + 0.5) * cell for d in reversed(range(len(counts)))]
        centres = np.stack(np.meshgrid(*axes, indexing="ij")[::-1], axis=-1)
        vectors = evaluate(self, centres.reshape(-1, len(counts))).reshape(centres.shape)
        return ArrayField(vectors, origin=first, cell=cell)


def ask(field: PaintedField, points: Floats) -> Floats:
    """The vectors of a field, one per point; not every field is defined everywhere."""
    vectors = np.asarray(field.at(points), dtype=np.float64)
    if vectors.shape != points.shape:
        raise ParameterError(
            f"{type(field).__name__}: for points of shape {points.shape} the field returned {vectors.shape}; "
            f"it must return one vector per point"
        )
    return vectors


def evaluate(field: PaintedField, points: Floats) -> Floats:
    """The vectors of a field at points where it must be defined."""
    vectors = ask(field, points)
    bad = ~np.isfinite(vectors).all(axis=1)
    if bad.any():
        where = ", ".join(f"{c:.4g}" for c in points[np.argmax(bad)])
        raise ParameterError(
            f"{type(field).__name__.lstrip('_')}: at ({where}) the field is {vectors[np.argmax(bad)]}, not finite"
        )
    return vectors


class ArrayField(PaintedField):
    """An array of vectors (ny, nx, 2), or (nz, ny, nx, 3), x first in the last axis; row 0 is the lowest.

    `origin` [m] is the low corner of the first cell, zero if left out, and `cell` [m] the size of all cells. Vectors
    are interpolated between the centres of cells; outside the array they are zero.
    """

    @checked_arguments
    def __init__(self, vectors: ArrayLike, *, origin: Sequence[float] | Floats | None = None, cell: Length) -> None:
        array = _floats(vectors)
        dim = array.shape[-1] if array.ndim else 0
        if dim not in (2, 3) or array.ndim != dim + 1 or array.size == 0:
            said = array.shape if array.ndim and array.size else f"{vectors!r:.60}"
            raise ParameterError(
                f"a painted array must be numbers of the shape (ny, nx, 2) or (nz, ny, nx, 3), not {said}"
            )
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            raise ParameterError(f"a painted array must be finite; the first bad value is at {tuple(bad[0].tolist())}")
        low = np.zeros(dim) if origin is None else _floats(origin)
        if low.shape != (dim,) or not np.isfinite(low).all():
            raise ParameterError(f"the origin of a painted {dim}D array must be {dim} finite numbers, not {origin}")
        self.vectors = array
        self.origin = low
        self.cell = float(cell)

    @property
    def dim(self) -> int:
        return len(self.origin)

    @property
    def parameters(self) -> str:
        digest = hashlib.sha256(self.vectors.tobytes()).hexdigest()[:16]
        return f"{self.vectors.shape}, origin={self.origin.tolist()}, cell={self.cell!r}, {digest}"

    def at(self, points: Floats) -> Floats:
        if points.shape[1] != self.dim:
            raise ParameterError(f"a painted {self.dim}D array cannot be used in a {points.shape[1]}D world")
        counts = np.array(self.vectors.shape[:-1])[::-1]
        place = (points - self.origin) / self.cell
        inside = np.asarray(((place >= 0.0) & (place <= counts)).all(axis=1))
        # The outer half cell at the border has the value of the border's cells.
        place = np.clip(np.where(inside[:, None], place, 0.0) - 0.5, 0.0, counts - 1)
        lower = np.minimum(place.astype(np.int64), np.maximum(counts - 2, 0))
        part = place - lower
        out = np.zeros_like(points)
        for corner in range(2**self.dim):
            upper = np.array([corner >> d & 1 for d in range(self.dim)])
            share = np.where(upper == 1, part, 1.0 - part).prod(axis=1)
            index = np.minimum(lower + upper, counts - 1)
            out += share[:, None] * self.vectors[tuple(index.T[::-1])]
        out[~inside] = 0.0
        return out


class FunctionField(PaintedField):
    """A function of points (N, dim) [m] that returns vectors (N, dim). Equal points must always give equal vectors.

    Functions are not stored with a run: a resume needs the same script.
    """

    def __init__(self, function: Callable[[Floats], ArrayLike]) -> None:
        if not callable(function) or isinstance(function, type):
            raise ParameterError(f"FunctionField needs a function of points (N, dim), not {function!r}")
        self.function = function

    @property
    def parameters(self) -> str:
        named: Any = self.function
        return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', type(named).__qualname__)}"

    def at(self, points: Floats) -> Floats:
        return np.asarray(self.function(points.copy()), dtype=np.float64)


class Stroke(PaintedField):
    """A brush stroke along a line of points [m]: vectors point along it, from its first point to its last.

    It has full `strength` (1 for unit vectors) over its `width` [m] and fades to zero over another `falloff` [m] on
    either side. Around a corner the direction turns with the nearest point of the line.
    """

    def __init__(self, points: ArrayLike, *, width: float = 1.0, strength: float = 1.0, falloff: float = 0.5) -> None:
        line = _floats(points)
        if line.ndim != 2 or len(line) < 2 or line.shape[1] not in (2, 3) or not np.isfinite(line).all():
            raise ParameterError(f"a stroke needs two or more finite points (x, y) or (x, y, z), not {points!r}")
        lengths = np.linalg.norm(np.diff(line, axis=0), axis=1)
        if not lengths.all():
            raise ParameterError(f"a stroke has the point {tuple(line[np.argmin(lengths)].tolist())} twice in a row")
        for name, value in (("width", width), ("falloff", falloff)):
            if not (is_finite(value) and 0.0 <= value <= LARGEST_LENGTH):
                raise ParameterError(f"the {name} of a stroke must be a length of 0 or more, not {value!r} m")
        if width + falloff == 0.0:
            raise ParameterError("a stroke with neither width nor falloff paints nothing")
        if not is_finite(strength):
            raise ParameterError(f"the strength of a stroke must be a finite number, not {strength!r}")
        self.line = line
        self.width, self.strength, self.falloff = float(width), float(strength), float(falloff)

    @property
    def parameters(self) -> str:
        return f"{self.line.tolist()}, width={self.width!r}, strength={self.strength!r}, falloff={self.falloff!r}"

    def at(self, points: Floats) -> Floats:
        if points.shape[1] != self.line.shape[1]:
            raise ParameterError(f"a {self.line.shape[1]}D stroke cannot be used in a {points.shape[1]}D world")
        out = np.zeros_like(points)
        reach = 0.5 * self.width + self.falloff
        near = np.flatnonzero(
            ((points >= self.line.min(axis=0) - reach) & (points <= self.line.max(axis=0) + reach)).all(axis=1)
        )
        if len(near):
            out[near] = self._near(points[near])
        return out

    def _near(self, points: Floats) -> Floats:
        least = np.full(len(points), np.inf)
        along = np.zeros_like(points)
        for start, end in zip(self.line[:-1], self.line[1:], strict=True):
            way = end - start
            part = np.clip((points - start) @ way / (way @ way), 0.0, 1.0)
            away = np.linalg.norm(points - start - part[:, None] * way, axis=1)
            nearer = away < least
            least[nearer] = away[nearer]
            along[nearer] = way / np.linalg.norm(way)
        beyond = np.maximum(least - 0.5 * self.width, 0.0)
        if self.falloff == 0.0:
            fade = (beyond == 0.0).astype(np.float64)
        else:
            rest = np.clip(1.0 - beyond / self.falloff, 0.0, 1.0)
            fade = rest * rest * (3.0 - 2.0 * rest)
        return self.strength * fade[:, None] * along


class _Sum(PaintedField):
    def __init__(self, parts: Sequence[tuple[float, PaintedField]]) -> None:
        self.parts = tuple(parts)

    @property
    def parameters(self) -> str:
        return " + ".join(f"{weight!r} {described(field)}" for weight, field in self.parts)

    def at(self, points: Floats) -> Floats:
        total = np.zeros_like(points)
        for weight, field in self.parts:
            total += weight * ask(field, points)
        return total


class _Masked(PaintedField):
    def __init__(self, field: PaintedField, region: Polygonal, inside: bool) -> None:
        self.field, self.region, self.inside = field, checked_region(region), inside

    @property
    def parameters(self) -> str:
        return f"{described(self.field)}, {'inside' if self.inside else 'outside'} {self.region.wkt}"

    def at(self, points: Floats) -> Floats:
        kept = inside_of(self.region, points) == self.inside
        out = np.zeros_like(points)
        if kept.any():
            out[kept] = ask(self.field, points[kept])
        return out


class _Over(PaintedField):
    def __init__(self, top: PaintedField, bottom: PaintedField, region: Polygonal | None) -> None:
        self.top, self.bottom = top, bottom
        self.region = None if region is None else checked_region(region)

    @property
    def parameters(self) -> str:
        where = "" if self.region is None else f", {self.region.wkt}"
        return f"{described(self.top)} over {described(self.bottom)}{where}"

    def at(self, points: Floats) -> Floats:
        top = ask(self.top, points)
        on_top = np.asarray(top.any(axis=1)) if self.region is None else inside_of(self.region, points)
        return np.where(on_top[:, None], top, ask(self.bottom, points))


def described(field: PaintedField) -> str:
    """Kind and parameters, for digests."""
    return f"{type(field).__name__}({field.parameters})"


def _floats(values: ArrayLike) -> Floats:
    """A new array; if these are not numbers, an empty one with a shape that every check refuses."""
    found = numbers_in(values)
    return np.empty((0, 0)) if found is None else np.array(found, order="C")


def checked_region(region: Polygonal) -> Polygonal:
    if not isinstance(region, (shapely.Polygon, shapely.MultiPolygon)) or region.is_empty or not region.is_valid:
        why = shapely.is_valid_reason(region) if isinstance(region, shapely.Geometry) else "not a shapely geometry"
        raise ParameterError(f"a mask must be a valid shapely polygon with an area: {why}")
    shapely.prepare(region)
    return region


def inside_of(region: Polygonal, points: Floats) -> NDArray[np.bool_]:
    """Which points are inside a polygon; in 3D only x and y count."""
    return np.asarray(shapely.intersects_xy(region, points[:, 0], points[:, 1]))


# A painted field from an image file, drawn with any painting program.
#
# Vectors are encoded as colours in one of two ways:
#
# "xy":  red is the x direction and green is y: 128 is zero, 255 is 1 to the right or up, 1 is 1 to the left or down.
#        Blue is ignored. Opacity is the strength.
# "hue": the hue is the angle: red is to the right, yellow-green (90°) up, cyan (180°) to the left, violet (270°) down.
#        Saturation times brightness times opacity is the strength: black, white, grey and transparent places are not
#        painted.

ENCODINGS = ("xy", "hue")
#: Largest number of pixels of an image: each becomes a vector and takes about 200 bytes meanwhile.
MOST_VECTORS = 1 << 22


def image_field(
    path: str | Path, *, cell: float, origin: Sequence[float] | None = None, encoding: str = "hue"
) -> ArrayField:
    """Read a painted field: a pixel is a square of `cell` [m], the image's lower left corner is at `origin` [m]."""
    if encoding not in ENCODINGS:
        raise ParameterError(f"there is no encoding '{encoding}' of vectors in images; {suggest(encoding, ENCODINGS)}")
    file = Path(path)
    if not file.is_file():
        raise ParameterError(f"there is no image '{file}' to read a painted field from; check the path")
    try:
        pixels = read_pixels(file, most=MOST_VECTORS)
    except GeometryError as error:
        raise ParameterError(f"no painted field can be made from an image: {error}") from error
    upward = pixels[::-1].astype(np.float64)  # files start with the top row
    vectors = _from_red_and_green(upward) if encoding == "xy" else _from_hue(upward / 255.0)
    return ArrayField(vectors, origin=origin, cell=cell)


def _from_red_and_green(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    vectors = np.clip((pixels[..., :2] - 128.0) / 127.0, -1.0, 1.0)
    return np.asarray(vectors * (pixels[..., 3:] / 255.0))


def _from_hue(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    red, green, blue, opacity = np.moveaxis(pixels, -1, 0)
    most, least = pixels[..., :3].max(axis=-1), pixels[..., :3].min(axis=-1)
    spread = most - least
    safe = np.where(spread > 0.0, spread, 1.0)
    sixths = np.where(
        most == red,
        ((green - blue) / safe) % 6.0,
        np.where(most == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0),
    )
    angle = sixths * (np.pi / 3.0)
    # Saturation times brightness is the spread of the three colours.
    return np.asarray((spread * opacity)[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1))
