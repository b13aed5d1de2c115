"""Lengths of shortest ways past solid buildings, by a visibility graph."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely

from tropel.agents.state import Floats

#: Ways may touch what they must not cross; rounding may put them this far inside [m].
_ROUNDING = 1e-6


def shortest_ways(
    starts: Floats, goal: tuple[float, float], solids: Sequence[shapely.Polygon], *, clearance: float
) -> Floats:
    """Length of the shortest way from each start to the goal that keeps the clearance from all solids [m].

    Rounded corners are polygons inside the true arcs, so that the length is never above the true one.
    """
    from scipy.sparse.csgraph import dijkstra

    grown = shapely.union_all([solid.buffer(clearance) for solid in solids])
    places = np.vstack([[goal], starts, np.unique(shapely.get_coordinates(grown), axis=0)])
    a, b = np.triu_indices(len(places), k=1)
    # Nobody passes through somebody else's start.
    useful = (a == 0) | (b > len(starts))
    a, b = a[useful], b[useful]
    inside = grown.buffer(-_ROUNDING)
    shapely.prepare(inside)
    free = ~shapely.intersects(inside, shapely.linestrings(np.stack([places[a], places[b]], axis=1)))
    a, b = a[free], b[free]
    lengths = np.zeros((len(places), len(places)))
    lengths[a, b] = np.linalg.norm(places[a] - places[b], axis=1)
    from_goal: Floats = dijkstra(lengths, directed=False, indices=0)
    return from_goal[1 : 1 + len(starts)]
