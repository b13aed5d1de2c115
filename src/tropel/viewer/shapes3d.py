"""Meshes and placements that several drawings share: boxes along lines, discs, filled polygons."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

Vertices = NDArray[np.float32]
Faces = NDArray[np.uint32]

#: Heights of what lies flat on the ground [m], so that surfaces do not flicker through each other.
GROUND, REGIONS, OVERLAYS, EXITS, HAZARDS, TARGETS = 0.0, 0.01, 0.02, 0.04, 0.06, 0.08


def rgb(colour: str) -> tuple[int, int, int]:
    """A colour like "#0072b2" as three numbers up to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def instance_colours(colours: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Colours as mesh instances need them: viser reads those as linear light, not as screen colours."""
    return _LIGHT[colours]


_SHOWN = np.arange(256) / 255.0
_LIGHT = np.where(_SHOWN <= 0.04045, _SHOWN / 12.92, ((_SHOWN + 0.055) / 1.055) ** 2.4)
_LIGHT = (_LIGHT * 255.0).round().astype(np.uint8)


def rgb_array(colours: list[str]) -> NDArray[np.uint8]:
    return np.array([rgb(colour) for colour in colours], dtype=np.uint8).reshape(-1, 3)


def unit_box() -> tuple[Vertices, Faces]:
    """From -½ to ½ along x and y, from 0 to 1 in height."""
    corners = [(x, y, z) for z in (0.0, 1.0) for y in (-0.5, 0.5) for x in (-0.5, 0.5)]
    quads = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    faces = [triangle for a, b, c, d in quads for triangle in ((a, b, c), (a, c, d))]
    return np.array(corners, dtype=np.float32), np.array(faces, dtype=np.uint32)


def unit_prism(sides: int = 32, *, top: float = 1.0) -> tuple[Vertices, Faces]:
    """A round column of radius 1 and height 1, optionally narrower at the top, without a bottom."""
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    low = np.column_stack([ring, np.zeros(sides)])
    high = np.column_stack([top * ring, np.ones(sides)])
    k = np.arange(sides)
    following = (k + 1) % sides
    wall = np.concatenate(
        [np.stack([k, following, following + sides], 1), np.stack([k, following + sides, k + sides], 1)]
    )
    lid = np.stack([np.full(sides, 2 * sides), k + sides, following + sides], 1)
    vertices = np.concatenate([low, high, [[0.0, 0.0, 1.0]]])
    return vertices.astype(np.float32), np.concatenate([wall, lid]).astype(np.uint32)


def unit_disc(sides: int = 48) -> tuple[Vertices, Faces]:
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    vertices = np.concatenate([[[0.0, 0.0]], np.stack([np.cos(angle), np.sin(angle)], axis=1)])
    k = np.arange(sides)
    faces = np.stack([np.zeros(sides, dtype=np.int64), 1 + k, 1 + (k + 1) % sides], axis=1)
    return np.column_stack([vertices, np.zeros(sides + 1)]).astype(np.float32), faces.astype(np.uint32)


def unit_ring(sides: int = 48, *, inner: float = 0.9) -> tuple[Vertices, Faces]:
    angle = np.linspace(0.0, 2.0 * np.pi, sides, endpoint=False)
    ring = np.column_stack([np.cos(angle), np.sin(angle), np.zeros(sides)])
    k = np.arange(sides)
    following = (k + 1) % sides
    faces = np.concatenate(
        [np.stack([k, following, following + sides], 1), np.stack([k, following + sides, k + sides], 1)]
    )
    return np.concatenate([ring, inner * ring]).astype(np.float32), faces[:, ::-1].astype(np.uint32)


def unit_ball() -> tuple[Vertices, Faces]:
    """A ball of radius 1 with a few hundred triangles."""
    around, up = 20, 10
    polar = np.linspace(0.0, np.pi, up + 1)
    angle = np.linspace(0.0, 2.0 * np.pi, around, endpoint=False)
    p, a = np.meshgrid(polar, angle, indexing="ij")
    vertices = np.stack([np.sin(p) * np.cos(a), np.sin(p) * np.sin(a), np.cos(p)], axis=-1).reshape(-1, 3)
    faces = []
    for row in range(up):
        for k in range(around):
            here, beside = row * around + k, row * around + (k + 1) % around
            faces += [(here, here + around, beside), (beside, here + around, beside + around)]
    return vertices.astype(np.float32), np.array(faces, dtype=np.uint32)


def along_lines(segments: NDArray[np.float64], *, width: float, height: float) -> tuple[Any, Any, Any]:
    """Rotations, positions and sizes of unit boxes that stand along segments (x0, y0, x1, y1)."""
    ends = np.asarray(segments, dtype=np.float64).reshape(-1, 4)
    middle = 0.5 * (ends[:, :2] + ends[:, 2:])
    along = ends[:, 2:] - ends[:, :2]
    half = 0.5 * np.arctan2(along[:, 1], along[:, 0])
    zero = np.zeros(len(ends))
    turns = np.column_stack([np.cos(half), zero, zero, np.sin(half)])
    # Extended by the width at the ends, so that corners close.
    sizes = np.column_stack([np.hypot(*along.T) + width, zero + width, zero + height])
    return turns.astype(np.float32), np.column_stack([middle, zero]).astype(np.float32), sizes.astype(np.float32)


def filled(shape: Any, height: float) -> tuple[Vertices, Faces] | None:
    """A polygon as triangles at a height; None for one without area."""
    triangles = shapely.get_parts(shapely.constrained_delaunay_triangles(shape))
    if len(triangles) == 0:
        return None
    oriented = shapely.orient_polygons(triangles)
    corners = shapely.get_coordinates(oriented).reshape(-1, 4, 2)[:, :3].reshape(-1, 2)
    vertices = np.column_stack([corners, np.full(len(corners), height)]).astype(np.float32)
    return vertices, np.arange(len(vertices), dtype=np.uint32).reshape(-1, 3)


def lines_of(shape: Any) -> NDArray[np.float64]:
    """Segments (x0, y0, x1, y1) of every line and every edge of a shape."""
    pieces = []
    for part in shapely.get_parts(shape):
        edges = shapely.get_parts(part.boundary) if part.geom_type == "Polygon" else [part]
        for edge in edges:
            points = shapely.get_coordinates(edge)
            pieces.append(np.column_stack([points[:-1], points[1:]]))
    return np.concatenate(pieces) if pieces else np.empty((0, 4))


def no_turns(count: int) -> NDArray[np.float32]:
    turns = np.zeros((count, 4), dtype=np.float32)
    turns[:, 0] = 1.0
    return turns
