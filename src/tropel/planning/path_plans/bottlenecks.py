"""Bottlenecks: places where the flow to a goal narrows, found from the path plans before agents move.

Banerjee, Abukmail & Kraemer, SIMULATION 85, 2009, section 6.1. The policy is pi(s) = argmax over a of V(T(s, a)),
without the time of the move and with the first of equal ones. C(s) is the number of cells whose policy moves into s.

    s is a bottleneck  when  C(s) > C(T(s, pi(s))),                                                       equation 5

a funnel in the graph of the flow. Goals are absorbing, so they are not bottlenecks. A policy that counts the time of
moves, or breaks ties at random, finds dozens of bottlenecks at every door instead of one to three. Equation 5 misses
two cases. One is a door of three cells with a single-cell goal on its axis, because three cells move into every cell of
that axis, in the rooms as in the door. The other is an exit that is not an opening but a piece of floor, because
nothing narrows there.

The bottlenecks of all goals are pooled, and those near each other become one at their centroid. Clusters use single
linkage, so a chain of near ones is one bottleneck. Beyond the paper, each bottleneck has a width (`passages.py`), and
those on the same passage are one, however wide it is: a wide door has a funnel at each of its jambs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.grid_moves import DIAGONAL, MOVE_X, MOVE_Y, MoveCosts, all_best_moves
from tropel.errors import ParameterError
from tropel.planning.path_plans.passages import Passage, Walls, narrowest_passage
from tropel.world.ground import Ground
from tropel.world.raster import Raster

#: Bottlenecks within this many cells are one, by default.
_NEAR = 3.0

Point = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Bottleneck:
    """A place where a crowd may become congested."""

    cell: tuple[int, int]  #: row and column; different for all bottlenecks
    position: Point  #: centroid of the cells that were found (x, y) [m]
    width: float  #: free width of the passage across the flow [m], inf if there are no walls on both sides
    passage: tuple[Point, Point] | None = None  #: from wall to wall, where the passage is narrowest [m]

    def __str__(self) -> str:
        x, y = self.position
        wide = f"{self.width:.3g} m wide" if math.isfinite(self.width) else "open"
        return f"bottleneck at ({x:.4g}, {y:.4g}), {wide}"


def onward_cells(units: NDArray[np.int64], moves: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Number of the cell that the policy moves to from each cell (cells,); its own if it stays or has no path."""
    if units.shape != moves.shape or units.ndim != 2:
        raise ParameterError(f"path lengths and moves must have the same cells, not {units.shape} and {moves.shape}")
    flat_moves = np.ascontiguousarray(moves).reshape(-1)
    policy = np.empty(units.size, dtype=np.uint8)
    ground = MoveCosts(flat_moves, np.empty(0, dtype=np.int32), units.shape[1], DIAGONAL, DIAGONAL + 1)
    all_best_moves(ground, np.ascontiguousarray(units).reshape(-1), policy)
    step = np.zeros(256, dtype=np.int64)
    step[: MOVE_X.size] = MOVE_Y * units.shape[1] + MOVE_X
    onward = step[policy]
    onward += np.arange(units.size)
    return onward


def bottleneck_cells(units: NDArray[np.int64], moves: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """The bottlenecks (ny, nx) of one path plan, by equation 5.

    `units` (ny, nx) are path lengths, FAR where there is no path, and `moves` (ny, nx) the allowed moves as bits.
    """
    return _funnels(onward_cells(units, moves)).reshape(units.shape)


def _funnels(onward: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Cells that more cells move into than into their next cell. Cells that stay move into themselves."""
    into = np.bincount(onward, minlength=onward.size)
    return np.asarray(into > into[onward])


def find_bottlenecks(ground: Ground, *, merge_distance: float | None = None, widest: float = 12.0) -> list[Bottleneck]:
    """The bottlenecks of all path plans of a ground, merged, with their widths; in the order of their cells.

    Bottlenecks within `merge_distance` [m] (three cells by default) of each other are one, and so are those with
    passages that close together. Passages wider than `widest` [m] count as open.
    """
    raster = ground.raster
    near = _NEAR if merge_distance is None else merge_distance / raster.cell
    if not (math.isfinite(near) and near >= 0.0):
        raise ParameterError(f"find_bottlenecks: merge_distance must be a length in metres, not {merge_distance!r}")
    if not (math.isfinite(widest) and widest > 0.0):
        raise ParameterError(f"find_bottlenecks: widest must be a positive length in metres, not {widest!r}")
    found: dict[int, Passage | None] = {}
    for goal in sorted(ground.plan_of_goal):
        units = ground.units[ground.plan_of_goal[goal]]
        onward = onward_cells(units, ground.moves)
        walls = Walls(raster.free, units == 0)
        places = np.flatnonzero(_funnels(onward))
        found |= {place: found.get(place) for place in places.tolist()}
        for members in _linked(places, _near_pairs(_cells(places, raster), near)):
            # The staircase of a slanted wall is a chain of funnels: only the width at its middle matters.
            place = _middle_one(members, raster)
            passage = narrowest_passage(
                place, onward, units, walls, near=max(near, 1.0), widest=max(widest / raster.cell, 1.0)
            )
            found[place] = _narrower(found[place], passage)
    merged: dict[tuple[int, int], Bottleneck] = {}
    for members in _clusters(found, near, raster):
        new = _merged(members, found, near, raster)
        same = merged.get(new.cell)
        # Rings of cells around each other may have the same centroid.
        if same is None or new.width < same.width:
            merged[new.cell] = new
    return [merged[cell] for cell in sorted(merged)]


def _narrower(one: Passage | None, other: Passage | None) -> Passage | None:
    if one is None or other is None:
        return other if one is None else one
    return other if other.width < one.width else one


def _cells(places: NDArray[np.int64], raster: Raster) -> NDArray[np.int64]:
    """Rows and columns (n, 2) of cells given by number."""
    return np.stack(np.divmod(places, raster.shape[1]), axis=1)


def _near_pairs(points: NDArray[Any], near: float) -> NDArray[np.int64]:
    """Pairs (n, 2) of points that are within a distance of each other."""
    from scipy.spatial import cKDTree

    if len(points) < 2:
        return np.empty((0, 2), dtype=np.int64)
    # The tolerance keeps cells exactly three cells apart within three cells, whatever the rounding of metres.
    return np.asarray(cKDTree(points).query_pairs(near + 1e-9, output_type="ndarray"), dtype=np.int64)


def _linked(places: NDArray[np.int64], pairs: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Places in groups that are connected by pairs (of their numbers in the list)."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(places.size, places.size))
    count, label = connected_components(graph, directed=False) if places.size else (0, places)
    order = np.argsort(label, kind="stable")
    return np.split(places[order], np.cumsum(np.bincount(label, minlength=count))[:-1]) if count else []


def _clusters(found: dict[int, Passage | None], near: float, raster: Raster) -> list[NDArray[np.int64]]:
    """The cells that were found, in groups that each form one bottleneck."""
    places = np.array(sorted(found), dtype=np.int64)
    passages = [(k, passage.middle) for k, place in enumerate(places.tolist()) if (passage := found[place])]
    number = np.array([k for k, _ in passages], dtype=np.int64)
    one_passage = number[_near_pairs(np.array([middle for _, middle in passages]), near)]
    return _linked(places, np.concatenate([_near_pairs(_cells(places, raster), near), one_passage]))


def _middle_one(members: NDArray[np.int64], raster: Raster) -> int:
    """The place that is nearest to the centroid of all."""
    cells = _cells(members, raster)
    return int(members[np.argmin(((cells - cells.mean(axis=0)) ** 2).sum(axis=1))])


def _merged(members: NDArray[np.int64], found: dict[int, Passage | None], near: float, raster: Raster) -> Bottleneck:
    """One bottleneck at the centroid, as wide as the narrowest passage there."""
    centroid = _cells(members, raster).mean(axis=0)
    row, column = np.rint(centroid).astype(np.int64).tolist()
    if not raster.free[row, column]:
        row, column = divmod(_middle_one(members, raster), raster.shape[1])
    width, ends = math.inf, None
    passage = _passage_at(centroid, [found[member] for member in members.tolist()], near)
    if passage is not None:
        # Where corners may be cut, an agent gets through between walls that touch.
        width = max(passage.width, 1.0) * raster.cell
        ends = (_metres(passage.ends[0], raster), _metres(passage.ends[1], raster))
    return Bottleneck(cell=(row, column), position=_metres(centroid, raster), width=width, passage=ends)


def _passage_at(place: NDArray[np.float64], passages: Sequence[Passage | None], near: float) -> Passage | None:
    """The narrowest of the passages near a place, or the nearest one."""
    known = [passage for passage in passages if passage is not None]
    away = [math.dist(passage.middle, place) for passage in known]
    close = [passage for passage, distance in zip(known, away, strict=True) if distance <= max(near, min(away))]
    return min(close, key=lambda passage: passage.width, default=None)


def _metres(cell: NDArray[np.float64] | Point, raster: Raster) -> Point:
    x, y = raster.origin + (np.asarray(cell, dtype=np.float64)[::-1] + 0.5) * raster.cell
    return float(x), float(y)
