"""What pages and pictures show of roadmaps: nodes, edges, paths with their subgoals, and blocked edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.distances import OfferedDistance
from tropel.contracts.offers import OfferedRoadmap, RoadmapPath

if TYPE_CHECKING:
    from tropel.planning.roadmap.planner import RoadmapPlanner

Floats = NDArray[np.float64]


def offered_roadmaps(planner: RoadmapPlanner) -> tuple[object, ...]:
    return (
        OfferedRoadmap(
            nodes=planner.shown_nodes, edges=planner.shown_edges, paths=planner.shown_paths, gross=planner.shown_gross
        ),
        OfferedDistance(length=planner.length_to),
    )


def nodes_of(planner: RoadmapPlanner) -> Floats:
    return np.vstack([np.empty((0, planner.dim)), *(chart.graph.nodes for chart in planner.charts.values())])


def edges_of(planner: RoadmapPlanner) -> Floats:
    parts = [chart.graph.nodes[chart.graph.edges] for chart in planner.charts.values()]
    return np.concatenate([np.empty((0, 2, planner.dim)), *parts])


def paths_of(planner: RoadmapPlanner) -> list[RoadmapPath]:
    travellers, found = planner.travellers, []
    for slot, person in enumerate(travellers.people):
        count = int(travellers.count[slot])
        chart = planner.charts.get((person.radius, person.place))
        blocked = np.empty((0, 2, planner.dim))
        if chart is not None and len(person.marked):
            blocked = chart.graph.nodes[chart.graph.edges[person.marked]]
        if count or len(blocked):
            allowed = float(travellers.allowed[slot])
            found.append(
                RoadmapPath(
                    agent=person.id,
                    points=travellers.way[slot, :count].copy(),
                    subgoal=int(travellers.index[slot]),
                    weight=float(travellers.weight[slot]) / allowed if allowed > 0.0 else 0.0,
                    blocked=blocked,
                )
            )
    return found
