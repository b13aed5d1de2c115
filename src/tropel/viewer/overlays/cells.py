"""Overlays that paint numbers per cell on the ground: density, occupied cells, congestion."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.contracts.offers import OfferedCongestion, OfferedOccupancy, offered
from tropel.pictures import style
from tropel.viewer.overlays.overlay import Canvas, Overlay

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

    from tropel.simulation import Simulation


Floats = NDArray[np.float64]

#: A picture on the ground has at most this many pixels per side.
MOST_PIXELS = 512
#: Share of a colour in the pale ones on the ground; the rest is white.
_STRENGTH = 0.6
_MOST_ENLARGED = 8


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundPicture:
    """Numbers per cell of the ground, NaN where there is nothing to show; row 0 is the southern one."""

    values: Floats
    origin: Floats  #: south-west corner [m]
    cell: float  #: [m]
    low: float
    high: float
    about: str  #: what the numbers mean
    unit: str = ""
    beyond_walls: bool = False  #: whether cells reach beyond the walkable area, and are cut off there


def shares(cells: NDArray[Any]) -> tuple[Floats, int]:
    """Means over blocks of cells, as small as a picture allows, and the side of a block in cells."""
    block = max(1, -(-max(cells.shape) // MOST_PIXELS))
    if block == 1:
        return cells.astype(np.float64), 1
    rows, columns = (-(-n // block) for n in cells.shape)
    sums = np.add.reduceat(cells.astype(np.float64), np.arange(rows) * block, axis=0)
    sums = np.add.reduceat(sums, np.arange(columns) * block, axis=1)
    return sums / block**2, block


def draw_picture(canvas: Canvas, picture: GroundPicture) -> None:
    """Paint a picture on the ground, transparent where there is nothing to show."""
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
        # viser draws pictures upside down: their first row is where y is smallest.
        wxyz=(0.0, 1.0, 0.0, 0.0),
        cast_shadow=False,
        receive_shadow=False,
    )


def _inside(canvas: Canvas, picture: GroundPicture, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Which pixels are within the walkable area; computed once."""
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
    """Red, green, blue and opacity; the first row is the northern one."""
    values = picture.values
    known = np.isfinite(values)
    span = max(picture.high - picture.low, 1e-12)
    share = np.clip((np.where(known, values, picture.low) - picture.low) / span, 0.0, 1.0)
    pixels = np.empty((*values.shape, 4), dtype=np.uint8)
    pixels[..., :3] = _table()[(share * 255.0).astype(np.int64)]
    pixels[..., 3] = np.where(known, 255, 0)
    return pixels[::-1]


def enlarged(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each pixel as a square of several: browsers smooth pictures, which would blur large cells beyond walls."""
    times = max(1, min(_MOST_ENLARGED, MOST_PIXELS // max(pixels.shape)))
    return pixels.repeat(times, axis=0).repeat(times, axis=1)


def picture_legend(picture: GroundPicture | None) -> str:
    """What the colours mean."""
    if picture is None:
        return "Nothing to show."
    bar = "".join(colour_square(k / 9.0) for k in range(10))
    unit = f" {picture.unit}" if picture.unit else ""
    return f"{picture.about}  \n{picture.low:.3g} {bar} {picture.high:.3g}{unit}"


def colour_square(share: float) -> str:
    """A square in the colour for a share of the scale."""
    return f'<span style="color:{style.hex_colour(ground_colours()(share))}">█</span>'


@functools.cache
def ground_colours() -> ListedColormap:
    """From nearly white to a pale violet: darker means more for any colour vision, and agents on it stand out."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    strong = colormaps["magma_r"](np.linspace(0.04, 0.7, 256))
    return ListedColormap(_STRENGTH * strong + (1.0 - _STRENGTH), name="tropel ground")


@functools.cache
def _table() -> NDArray[np.uint8]:
    return (ground_colours()(np.linspace(0.0, 1.0, 256))[:, :3] * 255.0).round().astype(np.uint8)


# Density: people per square metre, counted in squares.

#: Side of the squares [m], and the density with the darkest colour [1/m²].
_SQUARE = 1.0
_DENSE = 4.0


def density_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """Density of living agents in each square of the world."""
    living = sim.agents.dead == 0
    return density_of(sim.agents.position[living], sim.world.bounds)


def density_of(position: Floats, bounds: Floats) -> GroundPicture | None:
    """Density of positions in each square between two corners; None without positions."""
    if not len(position):
        return None
    low, high = bounds
    square = max(_SQUARE, float((high - low).max()) / MOST_PIXELS)
    columns, rows = np.maximum(np.ceil((high - low) / square - 1e-9).astype(np.int64), 1).tolist()
    cell = np.floor((position - low) / square).astype(np.int64)
    number = np.clip(cell[:, 1], 0, rows - 1) * columns + np.clip(cell[:, 0], 0, columns - 1)
    counts = np.bincount(number, minlength=rows * columns).reshape(rows, columns)
    return GroundPicture(
        values=np.where(counts > 0, counts / square**2, np.nan),
        origin=np.array(low, dtype=np.float64),
        cell=square,
        low=0.0,
        high=_DENSE,
        about=f"People per m², in squares of {square:.3g} m",
        unit="or more",
        beyond_walls=True,
    )


def is_plan(sim: Simulation) -> bool:
    return sim.world.dim == 2


DENSITY = Overlay(
    name="density",
    title="density",
    look=density_picture,
    draw=draw_picture,
    legend=picture_legend,
    covers_ground=True,
    fits=is_plan,
)


# Occupied cells of an on-lattice crowd, as the crowd itself reads them.


def _crowds(sim: Simulation) -> list[OfferedOccupancy]:
    return offered(sim.layers.models, OfferedOccupancy)


def occupancy_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """The occupied cells after the last step, with other bodies and moving obstacles as that step found them."""
    crowds = _crowds(sim)
    if not crowds:
        return None
    raster = crowds[0].raster()
    taken, block = shares(crowds[0].occupied())
    if not taken.any():
        return None
    return GroundPicture(
        values=np.where(taken > 0.0, taken, np.nan),
        origin=raster.origin.copy(),
        cell=raster.cell * block,
        low=0.0,
        high=1.0,
        about=f"Share of occupied cells, in blocks of {block} × {block}",
    )


def _occupancy_legend(seen: GroundPicture | None) -> str:
    if seen is None or (seen.values < 1.0).any():
        return picture_legend(seen)
    return f"{colour_square(1.0)} occupied cells"


OCCUPANCY = Overlay(
    name="occupancy",
    title="occupied cells",
    look=occupancy_picture,
    draw=draw_picture,
    legend=_occupancy_legend,
    covers_ground=True,
    fits=lambda sim: bool(_crowds(sim)),
)


# Congestion in an on-lattice crowd: how strongly places are avoided because a bottleneck is full.


def congestion_picture(sim: Simulation, selected: int | None = None) -> GroundPicture | None:
    """By how much congestion lowers the value of cells: 1 is a veto. None while nothing is congested."""
    congestions = offered(sim.planners.values(), OfferedCongestion)
    placed = [each for congestion in congestions for each in congestion.filters()]
    if not placed:
        return None
    raster = congestions[0].raster()
    worth = np.zeros(raster.shape)
    for each in placed:
        rows, columns = each.log_value.shape
        worth[each.row : each.row + rows, each.column : each.column + columns] += each.log_value
    shunned, block = shares(np.where(raster.free, 1.0 - np.exp(worth), 0.0))
    return GroundPicture(
        values=np.where(shunned > 0.0, shunned, np.nan),
        origin=raster.origin.copy(),
        cell=raster.cell * block,
        low=0.0,
        high=1.0,
        about=f"Share of a cell's value lost to congestion ({len(placed)} congested now)",
    )


def _congestion_legend(seen: GroundPicture | None) -> str:
    return "No bottleneck is congested." if seen is None else picture_legend(seen)


CONGESTION = Overlay(
    name="congestion",
    title="congestion",
    look=congestion_picture,
    draw=draw_picture,
    legend=_congestion_legend,
    covers_ground=True,
    fits=lambda sim: bool(offered(sim.planners.values(), OfferedCongestion)),
)
