"""Building a roadmap: samples, the straight edges between near ones, and more edges where components are apart."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key
from tropel.foundation.long_work import report
from tropel.planning.roadmap.graph import Graph
from tropel.planning.roadmap.sampling import free_samples
from tropel.planning.roadmap.space import FreeSpace
from tropel.planning.roadmap.sweeps import doors_on, sweeps_blocked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: To join components, this many times more neighbours are tried, and only across components.
_WIDER = 4
_ROUNDS = 2


def build_graph(space: FreeSpace, *, samples: int, neighbours: int, sampling: str, seed: int) -> Graph:
    """A roadmap of a free space, as if all doors were open."""
    nodes = free_samples(space, samples, sampling=sampling, key=random_key(seed, "roadmap"))
    graph = Graph(nodes=nodes, edges=np.empty((0, 2), dtype=np.int64), doors=np.empty((0, 2), dtype=np.int32))
    report("roadmap: edges", 0, 2)
    _join(space, graph, near_pairs(nodes, neighbours))
    report("roadmap: edges", 1, 2)
    join_components(space, graph, neighbours)
    report("roadmap: edges", 2, 2)
    return graph


def near_pairs(nodes: Floats, neighbours: int, *, among: Ints | None = None) -> Ints:
    """Pairs of each node and its nearest ones, each pair once, the lower number first; only of `among` if given."""
    from scipy.spatial import cKDTree

    rows = np.arange(len(nodes)) if among is None else among
    count = min(neighbours + 1, len(nodes))
    if count < 2 or not len(rows):
        return np.empty((0, 2), dtype=np.int64)
    near = cKDTree(nodes).query(nodes[rows], k=count)[1]
    pairs = np.stack([np.repeat(rows, count), near.reshape(-1)], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    return np.unique(pairs, axis=0).astype(np.int64)


def _join(space: FreeSpace, graph: Graph, pairs: Ints, *, new: Floats | None = None) -> int:
    """Add the edges among pairs of nodes that a body can go along, and new nodes; returns how many were added."""
    fresh = np.empty((0, space.dim)) if new is None else new
    nodes = np.vstack([graph.nodes, fresh]) if len(fresh) else graph.nodes
    begin, end = nodes[pairs[:, 0]], nodes[pairs[:, 1]]
    free = ~sweeps_blocked(begin, end, space.radius, space.solid)
    doors, many = doors_on(begin[free], end[free], space.radius, space.door_segments, space.door_numbers)
    graph.add(fresh, pairs[free][~many], doors[~many])
    graph.tests += len(pairs)
    return int(np.count_nonzero(~many))


def join_components(space: FreeSpace, graph: Graph, neighbours: int) -> None:
    """Try to connect the components of a roadmap by edges between nodes that are farther apart."""
    for turn in range(_ROUNDS):
        label = graph.components()
        apart = np.flatnonzero(label > 0)
        if not len(apart):
            return
        pairs = near_pairs(graph.nodes, (turn + 1) * _WIDER * neighbours, among=apart)
        pairs = pairs[label[pairs[:, 0]] != label[pairs[:, 1]]]
        if not _join(space, graph, pairs):
            return


def add_nodes(space: FreeSpace, graph: Graph, nodes: Floats, neighbours: int) -> int:
    """Add free nodes to a roadmap, joined to their nearest ones; returns how many segments were tested."""
    before, tests = len(graph.nodes), graph.tests
    every = np.vstack([graph.nodes, nodes])
    pairs = near_pairs(every, neighbours, among=np.arange(before, len(every)))
    _join(space, graph, pairs, new=nodes)
    return graph.tests - tests
