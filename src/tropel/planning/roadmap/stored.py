"""Charts in checkpoints: nodes, edges, doors, and the obstacles that stood still when they were built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError
from tropel.planning.roadmap.chart import Chart
from tropel.planning.roadmap.graph import Graph
from tropel.planning.roadmap.space import Known
from tropel.planning.roadmap.travellers import Record, packed, unpacked

if TYPE_CHECKING:
    from tropel.planning.roadmap.planner import RoadmapPlanner

Charts = dict[tuple[float, int], Chart]


def stored_charts(charts: Charts) -> dict[str, NDArray[Any]]:
    """What a checkpoint holds of charts."""
    records: list[Record] = []
    for (radius, place), chart in charts.items():
        known = chart.space.known
        records.append(
            {
                "key": np.array([radius, place, chart.built, chart.work], dtype=np.float64),
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
            radius, place, built, work = record["key"].tolist()
            known: Known = {
                str(name): (tuple(at), float(wide))
                for name, at, wide in zip(
                    record["known"], record["known_place"].tolist(), record["known_radius"].tolist(), strict=True
                )
            }
            graph = _graph(record, planner.dim, len(planner.world.doors))
            chart = planner.empty_chart(radius, int(place), known)
            chart.graph, chart.built, chart.work = graph, int(built), int(work)
            charts[radius, int(place)] = chart
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise CheckpointError(f"a stored roadmap cannot be read: {error}") from error
    return charts


def _graph(record: Record, dim: int, doors: int) -> Graph:
    nodes, edges, through = record["nodes"], record["edges"], record["doors"]
    if nodes.ndim != 2 or nodes.shape[1] != dim or not np.isfinite(nodes).all():
        raise ValueError("nodes must be places")
    if edges.ndim != 2 or edges.shape[1] != 2 or (len(edges) and not 0 <= edges.min() <= edges.max() < len(nodes)):
        raise ValueError("edges must join two nodes")
    if through.shape != edges.shape or (len(through) and not -1 <= through.min() <= through.max() < doors):
        raise ValueError("edges lead through doors that are not there")
    return Graph(nodes=nodes, edges=edges.astype(np.int64), doors=through.astype(np.int32))
