"""Numbers per cell of the ground, laid on it as a picture."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.viewer.overlays import Canvas

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

Floats = NDArray[np.float64]

#: A picture on the ground has at most so many pixels along an edge.
MOST_PIXELS = 512
#: How much of a colour is left in the pale ones on the ground; the rest is white.
_STRENGTH = 0.6
_MOST_ENLARGED = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundPicture:
    """Numbers per cell of the ground, NaN where there is nothing to show; row 0 is in the south."""

    values: Floats
    origin: Floats  #: south-west corner [m]
    cell: float  #: [m]
    low: float
    high: float
    about: str  #: what the numbers are
    unit: str = ""
    beyond_walls: bool = False  #: whether cells reach beyond where one can walk, and are cut off there


def shares(cells: NDArray[Any]) -> tuple[Floats, int]:
    """Means of blocks of cells, as small as they may be for a picture, and the edge of a block in cells."""
    block = max(1, -(-max(cells.shape) // MOST_PIXELS))
    if block == 1:
        return cells.astype(np.float64), 1
    rows, columns = (-(-n // block) for n in cells.shape)
    sums = np.add.reduceat(cells.astype(np.float64), np.arange(rows) * block, axis=0)
    sums = np.add.reduceat(sums, np.arange(columns) * block, axis=1)
    return sums / block**2, block


def draw_picture(canvas: Canvas, picture: GroundPicture) -> None:
    """Lay a picture on the ground, see-through where there is nothing."""
    pixels = enlarged(pixels_of(picture))
    if picture.beyond_walls and canvas.world.walkable_wkt:
        pixels[~_inside(canvas, picture, pixels.shape)] = 0
    depth, width = (np.array(picture.values.shape) * picture.cell).tolist()
    x, y = picture.origin.tolist()
    place = (x, y, width, depth)
    if canvas.nodes.get("place") == place:
        node = canvas.nodes["picture"]
        if not np.array_equal(node.image, pixels):
            node.image = pixels
        return
    canvas.nodes["place"] = place
    canvas.nodes["picture"] = canvas.scene.add_image(
        f"{canvas.path}/picture",
        pixels,
        render_width=width,
        render_height=depth,
        format="png",
        position=(x + 0.5 * width, y + 0.5 * depth, canvas.height),
        # viser's pictures are upside down: their first row is where y is least.
        wxyz=(0.0, 1.0, 0.0, 0.0),
        cast_shadow=False,
        receive_shadow=False,
    )


def _inside(canvas: Canvas, picture: GroundPicture, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which pixels are where one can walk; found once."""
    key = (tuple(picture.origin.tolist()), picture.cell, shape)
    if canvas.nodes.get("inside of") != key:
        edge = picture.cell * picture.values.shape[0] / shape[0]
        x = picture.origin[0] + edge * (np.arange(shape[1]) + 0.5)
        y = picture.origin[1] + edge * (np.arange(shape[0])[::-1] + 0.5)
        area = shapely.from_wkt(canvas.world.walkable_wkt)
        shapely.prepare(area)
        canvas.nodes["inside"] = shapely.contains_xy(area, *np.meshgrid(x, y))
        canvas.nodes["inside of"] = key
    inside: NDArray[np.bool_] = canvas.nodes["inside"]
    return inside


def pixels_of(picture: GroundPicture) -> NDArray[np.uint8]:
    """Red, green, blue and how much they cover; the first row is in the north."""
    values = picture.values
    known = np.isfinite(values)
    span = max(picture.high - picture.low, 1e-12)
    share = np.clip((np.where(known, values, picture.low) - picture.low) / span, 0.0, 1.0)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = _table()[(share * 255.0).astype(np.int64)]
    pixels[..., 3] = np.where(known, 255, 0)
    return pixels[::-1]


def enlarged(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each pixel as a square of several: a browser smooths pictures, and would blur large cells beyond walls."""
    times = max(1, min(_MOST_ENLARGED, MOST_PIXELS // max(pixels.shape)))
    return pixels.repeat(times, axis=0).repeat(times, axis=1)


def picture_legend(picture: GroundPicture | None) -> str:
    """What the colours say."""
    if picture is None:
        return "Nothing to show."
    bar = "".join(colour_square(k / 9.0) for k in range(10))
    unit = f" {picture.unit}" if picture.unit else ""
    return f"{picture.about}  \n{picture.low:.3g} {bar} {picture.high:.3g}{unit}"


def colour_square(share: float) -> str:
    """A square in the colour of a share of the scale."""
    return f'<span style="color:{style.hex_colour(ground_colours()(share))}">█</span>'


@functools.cache
def ground_colours() -> ListedColormap:
    """From nearly white to a pale violet: darker is more in anybody's eyes, and whoever walks on it stands out."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    strong = colormaps["magma_r"](np.linspace(0.04, 0.7, 256))
    return ListedColormap(_STRENGTH * strong + (1.0 - _STRENGTH), name="tropel ground")


@functools.cache
def _table() -> NDArray[np.uint8]:
    return (ground_colours()(np.linspace(0.0, 1.0, 256))[:, :3] * 255.0).round().astype(np.uint8)
