"""From metres to pixels: which part of the world a map shows, and at what scale."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Names of the axes of space.
AXES = ("x", "y", "z")
TOP = (0, 1)
SIDE = (0, 2)


@dataclass(frozen=True, kw_only=True)
class Viewport:
    """An orthographic view of the world: two of its axes, at one scale, on a map of a size in pixels."""

    plane: tuple[int, int]  #: the axes of space that run right and up
    low: tuple[float, float]  #: the lower left corner of the map [m]
    scale: float  #: pixels per metre
    width: int  #: [pixels]
    height: int

    @property
    def high(self) -> tuple[float, float]:
        return (self.low[0] + self.width / self.scale, self.low[1] + self.height / self.scale)

    def pixels(self, positions: ArrayLike) -> NDArray[np.float64]:
        """Where positions (N, dim) are on the map, in pixels from its top left corner: right, down."""
        return self._on_map(self.flat(positions))

    def outline(self, polygon: Any) -> NDArray[np.float64]:
        """The outer ring of a polygon on the map [m], in pixels like `pixels`."""
        return self._on_map(np.asarray(polygon.exterior.coords))

    def _on_map(self, place: NDArray[np.float64]) -> NDArray[np.float64]:
        right = (place[:, 0] - self.low[0]) * self.scale
        down = self.height - (place[:, 1] - self.low[1]) * self.scale
        return np.stack([right, down], axis=1)

    def flat(self, positions: ArrayLike) -> NDArray[np.float64]:
        """The two coordinates of positions (N, dim) that the map shows [m]."""
        place = np.asarray(positions, dtype=np.float64)
        return place.reshape(-1, place.shape[-1] if place.ndim > 1 else len(place))[:, list(self.plane)]

    def frame(self, axes: Axes) -> None:
        """Make axes of the size of the map show exactly this view."""
        axes.set_xlim(self.low[0], self.high[0])
        axes.set_ylim(self.low[1], self.high[1])


def silhouettes(obstacles: Collection[tuple[Sequence[float], float]], view: Viewport, inside: Any = None) -> list[Any]:
    """Balls (centre, radius) as seen on a map: polygons [m]; overlapping balls, such as a column, become one.

    `inside` is a shape they are clipped to.
    """
    if not obstacles:
        return []
    centres = view.flat(np.array([centre for centre, _ in obstacles]))
    balls = shapely.buffer(shapely.points(centres), [radius for _, radius in obstacles], quad_segs=16)
    seen = shapely.union_all(balls)
    seen = seen if inside is None else seen.intersection(inside)
    return [part for part in shapely.get_parts(seen) if part.geom_type == "Polygon"]


def walls_around(bounds: ArrayLike, sides: Sequence[str], view: Viewport) -> Any:
    """The box of a 3D world on a map, unbounded at sides that are not walls; None if no side is a wall."""
    low, high = view.flat(np.array(bounds))
    walled = [sides[axis] == "wall" if sides else False for axis in view.plane]
    if not any(walled):
        return None
    far = 1e9
    return shapely.box(*np.where(walled, low, -far), *np.where(walled, high, far))


def fit_view(
    bounds: NDArray[np.float64],
    *,
    plane: tuple[int, int] = TOP,
    width: int,
    height: int,
    margin: int,
    least: int = 96,
) -> Viewport:
    """The largest view of a box ((2, dim), lowest and highest corner) on a map of at most width × height pixels.

    `margin` pixels around the box stay free. Thin boxes get a map of at least `least` pixels, with more room around.
    """
    low, high = bounds[0, list(plane)], bounds[1, list(plane)]
    extent = np.maximum(high - low, 1e-9)
    if (extent < 1e-6 * extent.max()).any() or extent.max() <= 1e-6:
        # A box without extent, as for one agent that stands still, gets a metre.
        extent = np.maximum(extent, 1.0 if extent.max() <= 1e-6 else 1e-6 * extent.max())
    scale = float(np.min((np.array([width, height]) - 2 * margin) / extent))
    size = np.maximum(np.ceil(extent * scale + 2 * margin - 1e-6), least).astype(int)
    corner = (low + high) / 2 - size / (2 * scale)
    return Viewport(
        plane=plane, low=(float(corner[0]), float(corner[1])), scale=scale, width=int(size[0]), height=int(size[1])
    )
