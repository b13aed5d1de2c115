"""Charts in checkpoints: nodes, edges, doors, and the obstacles that stood still when they were built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError
from tropel.planning.roadmap.building import Growth
from tropel.planning.roadmap.chart import Chart, Query
from tropel.planning.roadmap.graph import Graph, check_search
from tropel.planning.roadmap.space import Known
from tropel.planning.roadmap.travellers import Record, Travellers, packed, unpacked

if TYPE_CHECKING:
    from tropel.planning.roadmap.planner import RoadmapPlanner

Charts = dict[tuple[float, int], Chart]


def stored_charts(charts: Charts) -> dict[str, NDArray[Any]]:
    """What a checkpoint holds of charts."""
    records: list[Record] = []
    for (radius, place), chart in charts.items():
        known = chart.space.known
        growing = {} if chart.growing is None else chart.growing.record()
        records.append(
            {f"growing_{name}": array for name, array in growing.items()}
            | {
                "key": np.array([radius, place, chart.built], dtype=np.float64),
                "nodes": chart.graph.nodes,
                "edges": chart.graph.edges,
                "doors": chart.graph.doors,
                "known": np.array(list(known), dtype=np.str_) if known else np.empty(0, dtype="<U1"),
                "known_place": np.array([at for at, _ in known.values()]).reshape(-1, chart.space.dim),
                "known_radius": np.array([wide for _, wide in known.values()]),
            }
        )
    return packed(records, "chart")


def read_charts(stored: Mapping[str, NDArray[Any]], planner: RoadmapPlanner) -> Charts:
    """The charts that `stored_charts` returned, checked as far as kernels rely on it."""
    charts: Charts = {}
    try:
        for record in unpacked(stored, "chart"):
            radius, place, built = record["key"].tolist()
            known: Known = {
                str(name): (tuple(at), float(wide))
                for name, at, wide in zip(
                    record["known"], record["known_place"].tolist(), record["known_radius"].tolist(), strict=True
                )
            }
            space = planner.space_of(radius, known).within(planner.region_of(radius, int(place)))
            given = planner.parameters
            chart = Chart(space=space, graph=_graph(record, planner.dim, len(planner.world.doors)), built=int(built),
                          neighbours=given.neighbours, sampling=given.sampling, samples=given.samples,
                          seed=planner.seed + int(place))  # fmt: skip
            growing = {name.removeprefix("growing_"): array for name, array in record.items() if "growing_" in name}
            chart.growing = Growth.of(growing, chart.graph) if growing else None
            charts[radius, int(place)] = chart
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CheckpointError(f"a stored roadmap cannot be read: {error}") from error
    return charts


def check_stored(travellers: Travellers, charts: Charts) -> None:
    """Raise if travellers use what their charts do not have."""
    try:
        for person in travellers.people:
            chart = charts.get((person.radius, person.place))
            nodes, edges = (0, 0) if chart is None else (len(chart.graph.nodes), len(chart.graph.edges))
            if person.path is not None and (person.path.nodes >= nodes).any():
                raise ValueError("a stored path leads through a node that the roadmap does not have")
            if person.marked.ndim != 1 or ((person.marked < 0) | (person.marked >= edges)).any():
                raise ValueError("an edge is marked that the roadmap does not have")
            for search in (person.gross, None if person.query is None else person.query.search):
                if search is not None:
                    check_search(search)
            if person.query is not None and chart is not None and not chart.is_of_old(person.query):
                _check_query(person.query, nodes)
    except (TypeError, ValueError, IndexError) as error:
        raise CheckpointError(f"the paths of a roadmap cannot be read: {error}") from error


def _check_query(query: Query, nodes: int) -> None:
    which, goal = query.which, query.goal
    fits = goal.ndim == 2 and len(goal) > 0 and which.shape == (nodes,) and 0 <= query.joined <= len(goal)
    if not fits or ((which < 0) | (which >= len(goal))).any():
        raise ValueError("a query ends at a place that its goal does not have")
    if (query.nodes >= nodes).any() or (query.shortening is not None and not len(query.nodes)):
        raise ValueError("a query has found a node that the roadmap does not have")
    if query.search is not None and len(query.search.to_goal) != nodes:
        raise ValueError("a search is one of another roadmap")


def _graph(record: Record, dim: int, doors: int) -> Graph:
    nodes, edges, through = record["nodes"], record["edges"], record["doors"]
    if nodes.ndim != 2 or nodes.shape[1] != dim or not np.isfinite(nodes).all():
        raise ValueError("nodes must be places")
    if edges.ndim != 2 or edges.shape[1] != 2 or (len(edges) and not 0 <= edges.min() <= edges.max() < len(nodes)):
        raise ValueError("edges must join two nodes")
    if through.shape != edges.shape or (len(through) and not -1 <= through.min() <= through.max() < doors):
        raise ValueError("edges lead through doors that are not there")
    return Graph(nodes=nodes, edges=edges.astype(np.int64), doors=through.astype(np.int32))
