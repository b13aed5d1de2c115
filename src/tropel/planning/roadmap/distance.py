"""How long the paths over a roadmap are, from many positions to one place, without planning any of them.

One search over the roadmap from the place outwards gives the distance of every node; a position is as far away as the
best of the nodes that it can be joined to. Paths that are cut short are a little shorter than this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.goals import Aim
from tropel.agents.state import POINT
from tropel.planning.roadmap.chart import UNLIMITED, Chart
from tropel.planning.roadmap.places import GoalPlace, place_of_goal, place_of_point
from tropel.planning.roadmap.sweeps import Solid
from tropel.planning.roadmap.travellers import Traveller

if TYPE_CHECKING:
    from tropel.planning.roadmap.planner import RoadmapPlanner

Floats = NDArray[np.float64]


def lengths_to(planner: RoadmapPlanner, aim: Aim, positions: Floats, radius: float) -> Floats | None:
    """The length of the path from each position (N, dim) of bodies with a radius [m]; infinite where there is none.

    A roadmap that nobody has needed yet is built. None where the world has several roadmaps, one for each room.
    """
    wide = planner.radius_of(radius)
    if planner.region_of(wide, 0) is not None:
        return None
    place = place_of_point(np.array(aim.point)) if aim.number == POINT else place_of_goal(planner.world, aim.number)
    if place is None:
        return np.full(len(positions), np.inf)
    chart = planner.chart_of(Traveller(id=-1, goal=aim.number, radius=wide))
    chart.grow(UNLIMITED)
    solid = planner.solid_of(wide, planner.shut_now())
    of_node = _from_nodes(chart, place, solid, chart.edges_behind(planner.shut_now()))
    return np.array([_from_position(chart, place, solid, of_node, position) for position in positions])


def _from_nodes(chart: Chart, place: GoalPlace, solid: Solid, blocked: NDArray[np.uint8]) -> Floats:
    """(V,) the length of the shortest path over edges that are not blocked, from each node to a place [m]."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    graph, count = chart.graph, len(chart.graph.nodes)
    straight = np.full(count, np.inf)
    for point in place.points:
        nodes, away = chart.links_to(point, solid)
        straight[nodes] = np.minimum(straight[nodes], away)
    joined = np.flatnonzero(np.isfinite(straight))
    free = blocked == 0
    begin = np.concatenate([graph.edges[free, 0], np.full(len(joined), count)])
    end = np.concatenate([graph.edges[free, 1], joined])
    length = np.concatenate([graph.length[free], straight[joined]])
    # An edge of no length would be none to a sparse matrix.
    matrix = coo_array((np.maximum(length, 1e-12), (begin, end)), shape=(count + 1, count + 1))
    return np.asarray(dijkstra(matrix.tocsr(), directed=False, indices=count)[:count])


def _from_position(chart: Chart, place: GoalPlace, solid: Solid, of_node: Floats, position: Floats) -> float:
    path = chart.straight_path(position, place, solid)
    if path is not None:
        return float(np.linalg.norm(path.points[-1] - path.points[0]))
    nodes, away = chart.links_from(position, solid)
    return float((of_node[nodes] + away).min(initial=np.inf))
