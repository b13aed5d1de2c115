"""Walls as edges of a triangulation: split where they meet, each piece with the walls that it is a part of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.state import Floats

#: How far the middle of a piece may be from a wall that it is a part of, as a share of the largest coordinate.
_ROUNDING = 1e-12


@dataclass(frozen=True, kw_only=True)
class WallPieces:
    """Segments that meet only at their ends, and which walls run along each of them."""

    segments: Floats  #: (P, 4)
    piece: NDArray[np.int64]  #: (K,): a piece, and
    wall: NDArray[np.int64]  #: (K,): a wall that it is a part of

    def blocking(self, walls: NDArray[np.uint8]) -> NDArray[np.bool_]:
        """Which pieces block: those with a wall along them that does."""
        blocks = np.zeros(len(self.segments), dtype=np.bool_)
        blocks[self.piece[walls[self.wall] != 0]] = True
        return blocks


def split_walls(segments: Floats) -> WallPieces:
    """Split walls at all points where they cross or touch; walls without any length are left out."""
    lengths = np.hypot(segments[:, 2] - segments[:, 0], segments[:, 3] - segments[:, 1])
    kept = np.flatnonzero(lengths > 0.0)
    lines = shapely.linestrings(segments[kept].reshape(-1, 2, 2))
    if not len(kept):
        none = np.empty(0, dtype=np.int64)
        return WallPieces(segments=np.empty((0, 4)), piece=none, wall=none)
    parts = shapely.get_parts(shapely.node(shapely.union_all(lines)))
    ends = [np.asarray(part.coords) for part in parts]
    pieces = np.concatenate([np.hstack([line[:-1], line[1:]]) for line in ends])
    middles = shapely.points(0.5 * (pieces[:, :2] + pieces[:, 2:]))
    near = _ROUNDING * max(1.0, float(np.abs(segments).max()))
    piece, wall = shapely.STRtree(lines).query(middles, predicate="dwithin", distance=near)
    return WallPieces(segments=pieces, piece=piece, wall=kept[wall])
