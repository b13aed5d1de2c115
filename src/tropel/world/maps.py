"""Maps of cells as worlds: Moving AI `.map` files and PNG floor plans.

Free cells are joined along their edges into polygons with holes. Cells that touch only at a corner stay separate, since
no agent fits through. The first row of a file is the top: it has the highest y.

The file reads pictures as arrays of pixels, then maps (`read_plan`, Moving AI files, floor plans), and finally turns
free cells into outlines (`outline`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import GeometryError, ParameterError
from tropel.foundation.arguments import LARGEST_LENGTH, checked_arguments
from tropel.foundation.files import LARGEST_GEOMETRY, LARGEST_PICTURE, open_input, read_text
from tropel.world.shapes import is_length
from tropel.world.world import World

if TYPE_CHECKING:
    from PIL.Image import Image


# Pictures as arrays of pixels, whatever format their colours are stored in.


#: Maps with more cells, or pictures with more pixels, are refused before any work is done. A picture of one colour is a
#: small file, whatever its size.
MOST_CELLS = 1 << 26
MOST_PIXELS = 1 << 24
#: Other formats that Pillow reads have decoders that few people have reviewed, or start other programs.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")


def read_pixels(file: Path, *, most: int = MOST_PIXELS) -> NDArray[np.uint8]:
    """Red, green, blue and opacity (height, width, 4) of a picture of at most `most` pixels; the top row first."""
    from PIL import Image, UnidentifiedImageError

    try:
        with open_input(file, largest=LARGEST_PICTURE) as content, warnings.catch_warnings():
            # Pillow warns about large pictures, which `check_size` refuses right after.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(content, formats=_FORMATS) as picture:
                check_size(picture.height, picture.width, str(file), most=most)
                return np.array(_in_eight_bits(picture).convert("RGBA"))
    except Image.DecompressionBombError as error:
        raise GeometryError(f"{file}: it has too many pixels (at most {most:,}); make it coarser") from error
    except UnidentifiedImageError as error:
        raise GeometryError(f"{file}: not a picture in a format that can be read; use {', '.join(_FORMATS)}") from error
    except GeometryError:
        raise
    except OSError as error:
        raise GeometryError(f"cannot read the picture {file}: {error.strerror or error}") from error
    except Exception as error:
        # Decoders raise whatever their parts raise: errors of zlib and struct, SyntaxError, IndexError, …
        raise GeometryError(
            f"cannot read the picture {file}: {error or type(error).__name__}; it may be damaged, save it again"
        ) from error


def _in_eight_bits(picture: Image) -> Image:
    """Grey of 16 bits as 8: Pillow would turn everything brighter than 255 of 65535 into white."""
    from PIL import Image

    if not picture.mode.startswith("I"):
        return picture
    return Image.fromarray(np.clip(np.asarray(picture).astype(np.int64) >> 8, 0, 255).astype(np.uint8))


def check_size(height: int, width: int, source: str, *, most: int = MOST_CELLS) -> None:
    if height * width > most:
        raise GeometryError(f"{source}: {width} × {height} cells are too many (at most {most:,}); make it coarser")


Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

#: Walkable terrain of Moving AI's benchmarks: ground, and swamp, which counts as ground here.
PASSABLE = ".GS"
#: Out of bounds, trees, and water, which cannot be entered from the ground in the benchmarks.
BLOCKED = "@OTW"

_PIXELS_AT_ONCE = 1 << 20
#: Largest number of edges between free and blocked cells: their rings are followed one by one.
MOST_EDGES = 1 << 22
_HEADER = ("type", "height", "width", "map")


@dataclass(frozen=True, kw_only=True)
class FloorPlan:
    """The part of a world that a map file describes [m]."""

    walkable: shapely.Polygon | shapely.MultiPolygon
    exits: dict[str, shapely.Polygon | shapely.MultiPolygon] = field(default_factory=dict)

    def world(self, **more: Any) -> World:
        """A world of this plan; `more` are further arguments of `World`, such as targets."""
        return World(self.walkable, exits=self.exits_and(more.pop("exits", {})), **more)

    def exits_and(self, more: Mapping[str, Any]) -> dict[str, Any]:
        """The exits of this plan and further ones, which need other names."""
        for name in more:
            if name in self.exits:
                raise GeometryError(
                    f"exit '{name}' exists twice: the map has an exit of that name, and it is also given separately; "
                    f"rename one of them"
                )
        return {**self.exits, **more}


@checked_arguments
def read_plan(path: str | Path, *, scale: float | None = None, **more: Any) -> FloorPlan:
    """Read a `.map` or a `.png`. `scale` is metres per cell or pixel; for a `.map` it is 1 m if left out."""
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == ".map":
        if more:
            raise ParameterError(f"{', '.join(sorted(more))}: only for PNG floor plans, which {file} is not")
        return read_moving_ai(file, scale=1.0 if scale is None else scale)
    if suffix == ".png":
        if scale is None:
            raise GeometryError(f"{file}: a picture has no scale of its own; give its scale in metres per pixel")
        return read_picture(file, scale=scale, **more)
    raise GeometryError(f"{file}: a map must be a .map (Moving AI) or a .png file")


# Moving AI ------------------------------------------------------------------------------------------------------


@checked_arguments
def read_moving_ai(path: str | Path, *, scale: float = 1.0) -> FloorPlan:
    """Read a map of Moving AI's benchmarks, with cells of `scale` metres.

    Ground (`.`, `G`) and swamp (`S`) can be walked on; `@`, `O`, trees (`T`) and water (`W`) cannot.
    """
    file = Path(path)
    _check_scale(scale)
    try:
        text = read_text(file, largest=LARGEST_GEOMETRY, encoding="ascii")
    except OSError as error:
        raise GeometryError(f"cannot read the map {file}: {error.strerror}; give a .map or .png file") from error
    except UnicodeDecodeError as error:
        raise GeometryError(f"{file}: not a Moving AI map: it has characters that are not ASCII") from error
    free = moving_ai_cells(text, source=str(file))
    if not free.any():
        raise GeometryError(f"{file}: no cell is walkable ({', '.join(PASSABLE)} are)")
    return FloorPlan(walkable=outline(free, scale=scale, source=str(file)))


def moving_ai_cells(text: str, *, source: str) -> Bools:
    """Which cells of a map's text are walkable; the first row is the top one."""
    lines = [line.rstrip("\r") for line in text.rstrip().split("\n")]
    height, width = _header(lines, source)
    rows = lines[len(_HEADER) :]
    if len(rows) != height:
        what = "ends too early" if len(rows) < height else "goes on too long"
        raise GeometryError(
            f"{source}, line {len(lines)}: the map {what}: {len(rows)} rows, but the header gives {height}"
        )
    for number, row in enumerate(rows, start=len(_HEADER) + 1):
        if len(row) != width:
            raise GeometryError(
                f"{source}, line {number}: a row of {len(row)} cells, but the header gives width {width}"
            )
    cells = np.frombuffer("".join(rows).encode("ascii"), dtype=np.uint8).reshape(height, width)
    known = np.isin(cells, np.frombuffer((PASSABLE + BLOCKED).encode(), dtype=np.uint8))
    if not known.all():
        row, column = np.argwhere(~known)[0]
        raise GeometryError(
            f"{source}, line {row + len(_HEADER) + 1}, column {column + 1}: "
            f"{chr(cells[row, column])!r} is not a known terrain; "
            f"known: {' '.join(PASSABLE)} (free), {' '.join(BLOCKED)} (blocked)"
        )
    return np.isin(cells, np.frombuffer(PASSABLE.encode(), dtype=np.uint8))


def _header(lines: Sequence[str], source: str) -> tuple[int, int]:
    size = {}
    for number, word in enumerate(_HEADER, start=1):
        words = lines[number - 1].split() if number <= len(lines) else []
        wanted = {"type": "type octile", "map": "map"}.get(word, f"{word} NUMBER")
        expected = wanted.split()
        if len(words) != len(expected) or any(e not in (w, "NUMBER") for e, w in zip(expected, words, strict=True)):
            found = f"'{lines[number - 1][:40]}'" if number <= len(lines) else "the end of the file"
            raise GeometryError(f"{source}, line {number}: expected '{wanted}', found {found}")
        if word in ("height", "width"):
            digits = words[1].isdecimal() and len(words[1]) <= len(str(MOST_CELLS))
            if not digits or not 0 < int(words[1]) <= MOST_CELLS:
                raise GeometryError(
                    f"{source}, line {number}: {word} must be a positive number of cells, not '{words[1][:40]}'"
                )
            size[word] = int(words[1])
    check_size(size["height"], size["width"], source)
    return size["height"], size["width"]


# Pictures -------------------------------------------------------------------------------------------------------


@checked_arguments
def read_picture(
    path: str | Path,
    *,
    scale: float,
    wall_below: float = 0.5,
    exits: Mapping[str, str] | None = None,
    straighten: float = 0.0,
) -> FloorPlan:
    """Read a PNG floor plan: dark pixels are walls, all others are walkable.

    `scale` is metres per pixel. A pixel is dark if its brightness (0 black, 1 white) is below `wall_below`; transparent
    pixels count as white. `exits` maps names to colours, such as {"out": "#00ff00"}: each patch of that colour is an
    exit, numbered from the left if there are several. With `straighten`, slanted walls, which are stairs of pixels,
    become straight where that moves them by at most this many pixels. 0.75 is a good value, and also rounds off single
    pixels.
    """
    file = Path(path)
    _check_scale(scale)
    if not 0.0 < wall_below < 1.0:
        raise ParameterError(f"wall_below must be a brightness between 0 (black) and 1 (white), not {wall_below!r}")
    if not (math.isfinite(straighten) and straighten >= 0.0):
        raise ParameterError(f"straighten must be a number of pixels, 0 or more, not {straighten!r}")
    pixels = read_pixels(file)
    patches: dict[str, Any] = {}
    drawn_for: dict[str, str] = {}
    free = _where(pixels, lambda seen: seen @ np.array([0.299, 0.587, 0.114]) >= wall_below)
    for name, colour in (exits or {}).items():
        found = _where(pixels, _coloured(_rgb(colour, name)))
        if not found.any():
            raise GeometryError(f"{file}: exit '{name}': no pixel has the colour {colour}")
        free |= found
        for patch, area in _patches(found, name, scale, source=str(file)).items():
            if patch in patches:
                raise GeometryError(
                    f"{file}: exit '{patch}' exists twice: as a patch of '{drawn_for[patch]}' and of '{name}'; "
                    f"rename one of them"
                )
            patches[patch], drawn_for[patch] = area, name
    if not free.any():
        raise GeometryError(f"{file}: no pixel is walkable; all are darker than wall_below = {wall_below:g}")
    walkable = outline(free, scale=scale, source=str(file))
    if straighten > 0.0:
        walkable = shapely.simplify(walkable, straighten * scale)
    return FloorPlan(walkable=walkable, exits=patches)


def _where(pixels: NDArray[np.uint8], holds: Callable[[NDArray[np.float64]], Bools]) -> Bools:
    """Which pixels meet a condition on red, green and blue between 0 and 1, as they look on white paper.

    A few rows at a time: as floats, all pixels would take gigabytes, which even a small file can ask for.
    """
    found = np.empty(pixels.shape[:2], dtype=np.bool_)
    rows = max(_PIXELS_AT_ONCE // pixels.shape[1], 1)
    for first in range(0, len(pixels), rows):
        seen = pixels[first : first + rows] / 255.0
        found[first : first + rows] = holds(seen[:, :, :3] * seen[:, :, 3:] + (1.0 - seen[:, :, 3:]))
    return found


def _coloured(wanted: tuple[float, float, float]) -> Callable[[NDArray[np.float64]], Bools]:
    return lambda seen: np.abs(seen - wanted).max(axis=2) < 0.2


def _rgb(colour: str, name: str) -> tuple[float, float, float]:
    from PIL import ImageColor

    try:
        red, green, blue = ImageColor.getrgb(colour)[:3]
    except ValueError as error:
        raise ParameterError(f"exit '{name}': {colour!r} is not a colour; write it like '#00ff00'") from error
    return red / 255.0, green / 255.0, blue / 255.0


def _patches(found: Bools, name: str, scale: float, *, source: str) -> dict[str, Any]:
    parts = sorted(shapely.get_parts(outline(found, scale=scale, source=source)), key=lambda part: part.bounds[:2])
    return {name: parts[0]} if len(parts) == 1 else {f"{name}_{k}": part for k, part in enumerate(parts, start=1)}


def _check_scale(scale: float) -> None:
    if not (is_length(scale) and scale > 0.0):
        raise ParameterError(
            f"the scale of a map must be a positive number of metres, at most {LARGEST_LENGTH:g}, not {scale!r}"
        )


# Outlines -------------------------------------------------------------------------------------------------------

# East, north, west, south: steps in x and y, and the cell to the left of a step from a corner.
_STEP = ((1, 0), (0, 1), (-1, 0), (0, -1))
_LEFT_CELL = ((0, 0), (-1, 0), (-1, -1), (0, -1))


@checked_arguments
def outline(free: Bools, *, scale: float = 1.0, source: str = "the map") -> shapely.Polygon | shapely.MultiPolygon:
    """The area of the free cells of a map with cells of `scale` metres; the first row is the top one.

    It is traced along the edges with the free cells on the left, in time proportional to their number. Joining the
    squares of a 512 × 512 map with shapely took between half a second and twelve seconds.
    """
    from scipy import ndimage

    if free.ndim != 2 or free.dtype != np.bool_:
        raise ParameterError(f"free must be rows of booleans, one for each cell, not {free.dtype} {free.shape}")
    upright = np.ascontiguousarray(free[::-1])
    part_of, _ = ndimage.label(upright)
    outer: dict[int, NDArray[np.float64]] = {}
    inner: dict[int, list[NDArray[np.float64]]] = {}
    for ring in _rings(upright, source):
        step = np.sign(ring[1] - ring[0])
        dx, dy = _LEFT_CELL[_STEP.index((int(step[0]), int(step[1])))]
        part = int(part_of[ring[0, 1] + dy, ring[0, 0] + dx])
        x, y = ring.T
        if (x * np.roll(y, -1) - y * np.roll(x, -1)).sum() > 0:
            outer[part] = scale * ring.astype(np.float64)
        else:
            inner.setdefault(part, []).append(scale * ring.astype(np.float64))
    polygons = [shapely.Polygon(ring, inner.get(part, [])) for part, ring in sorted(outer.items())]
    return polygons[0] if len(polygons) == 1 else shapely.MultiPolygon(polygons)


def _rings(upright: Bools, source: str) -> Iterator[Ints]:
    """The corners of all rings: anticlockwise around free cells, clockwise around blocked ones."""
    cells = np.pad(upright, 1)
    south_west, south_east = cells[:-1, :-1], cells[:-1, 1:]
    north_west, north_east = cells[1:, :-1], cells[1:, 1:]
    edges = (
        (north_east & ~south_east) * np.uint8(1)
        + (north_west & ~north_east) * np.uint8(2)
        + (south_west & ~north_west) * np.uint8(4)
        + (south_east & ~south_west) * np.uint8(8)
    )
    if (count := int(np.bitwise_count(edges).sum())) > MOST_EDGES:
        raise GeometryError(
            f"{source}: its free cells have {count:,} edges to blocked ones, which is more than {MOST_EDGES:,}; "
            f"remove single cells and noise, or make it coarser"
        )
    across = edges.shape[1]
    leaving = bytearray(edges.tobytes())
    for start in np.flatnonzero(edges).tolist():
        while leaving[start]:
            for ring in _apart(_walk(leaving, start, across)):
                corners = np.array(ring, dtype=np.int64)
                yield np.stack([corners % across, corners // across], axis=1)


def _walk(leaving: bytearray, start: int, across: int) -> list[int]:
    """Follow edges from a corner back to it and remove them; turn left where two cells meet at a point."""
    ahead = (1, across, -1, -across)
    # The leftmost of the lowest corners of a ring comes first, and the ring turns there.
    direction = next(d for d in range(4) if leaving[start] >> d & 1)
    here, corners = start, [start]
    while True:
        leaving[here] &= ~(1 << direction)
        here += ahead[direction]
        left = leaving[here]
        for turned in ((direction + 1) % 4, direction, (direction + 3) % 4):
            if left >> turned & 1:
                break
        else:
            return corners
        if turned != direction:
            corners.append(here)
            direction = turned


def _apart(corners: list[int]) -> Iterator[list[int]]:
    """Split a ring that touches itself at corners into rings that do not."""
    if len(set(corners)) == len(corners):
        yield corners
        return
    place: dict[int, int] = {}
    kept: list[int] = []
    for corner in corners:
        if corner in place:
            loop = kept[place[corner] :]
            yield loop
            del kept[place[corner] :]
            for gone in loop:
                del place[gone]
        place[corner] = len(kept)
        kept.append(corner)
    yield kept
