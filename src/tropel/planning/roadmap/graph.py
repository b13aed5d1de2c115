"""The roadmap as a graph, and A* on it.

The search is a kernel that stops when its work is used up and goes on in a later step from the arrays of `Search`. Ties
are broken by the numbers of nodes, so that a search visits the same nodes on every machine.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RUNNING, FOUND, NO_PATH = 0, 1, 2


class Links(NamedTuple):
    """Edges by node, for kernels."""

    start: Ints  #: (V + 1,)
    to: Ints  #: (2 E,) the node at the other end
    edge: Ints  #: (2 E,) the number of the edge


@dataclass(eq=False, kw_only=True)
class Graph:
    """Nodes in free space and the edges between them; both only ever grow, so numbers keep their meaning."""

    nodes: Floats  #: (V, dim) [m]
    edges: Ints  #: (E, 2) the nodes at the ends, the lower one first
    doors: NDArray[np.int32]  #: (E, 2) numbers of doors that an edge leads through, -1 for none
    tests: int = 0  #: segments that were tested to build it
    _links: Links | None = field(default=None, repr=False)
    _length: Floats | None = field(default=None, repr=False)

    @property
    def length(self) -> Floats:
        """(E,) lengths of the edges [m]."""
        if self._length is None:
            self._length = np.linalg.norm(self.nodes[self.edges[:, 0]] - self.nodes[self.edges[:, 1]], axis=1)
        return self._length

    @property
    def links(self) -> Links:
        if self._links is None:
            count, edges = len(self.nodes), self.edges
            ends = np.concatenate([edges[:, 0], edges[:, 1]])
            order = np.argsort(ends, kind="stable")
            start = np.concatenate([[0], np.cumsum(np.bincount(ends, minlength=count))]).astype(np.int64)
            to = np.concatenate([edges[:, 1], edges[:, 0]])[order]
            self._links = Links(start, to, np.tile(np.arange(len(edges)), 2)[order])
        return self._links

    def add(self, nodes: Floats, edges: Ints, doors: NDArray[np.int32]) -> None:
        """Add nodes, and edges between any nodes."""
        self.nodes = np.vstack([self.nodes, nodes])
        self.edges = np.vstack([self.edges, edges])
        self.doors = np.vstack([self.doors, doors])
        self._links = self._length = None

    def components(self, open_edges: NDArray[np.bool_] | None = None) -> Ints:
        """(V,) the number of the connected component of each node, largest component first."""
        from scipy.sparse import coo_array
        from scipy.sparse.csgraph import connected_components

        count = len(self.nodes)
        edges = self.edges if open_edges is None else self.edges[open_edges]
        matrix = coo_array((np.ones(len(edges), dtype=np.int8), (edges[:, 0], edges[:, 1])), shape=(count, count))
        found, label = connected_components(matrix, directed=False)
        by_size = np.argsort(-np.bincount(label, minlength=found), kind="stable")
        rank = np.empty(found, dtype=np.int64)
        rank[by_size] = np.arange(found)
        return rank[label]

    def edge_between(self, one: int, other: int) -> int:
        """The number of the edge between two nodes, -1 if there is none."""
        links = self.links
        here = slice(int(links.start[one]), int(links.start[one + 1]))
        found = np.flatnonzero(links.to[here] == other)
        return int(links.edge[here][found[0]]) if len(found) else -1

    def edges_along(self, nodes: Ints) -> Ints:
        """The numbers of the edges between nodes that follow each other, where there is one."""
        out = np.empty(max(len(nodes) - 1, 0), dtype=np.int64)
        return out[: _edges_along(np.ascontiguousarray(nodes), self.links, out)]


@kernel
def _edges_along(nodes, links, out):
    found = 0
    for k in range(nodes.size - 1):
        for link in range(links.start[nodes[k]], links.start[nodes[k] + 1]):
            if links.to[link] == nodes[k + 1]:
                out[found] = links.edge[link]
                found += 1
                break
    return found


class Search(NamedTuple):
    """Everything a search knows, between two calls: nodes of the graph, and behind them the goal."""

    cost: Floats  #: (V + 1,) from the start [m]
    came_from: Ints  #: (V + 1,) -1 for nodes that are entered from the start
    closed: NDArray[np.uint8]  #: (V + 1,)
    key: Floats  #: the heap: estimated length of the whole path [m]
    item: Ints  #: and the node
    size: Ints  #: (2,): entries of the heap, and nodes expanded so far
    blocked: NDArray[np.uint8]  #: (E,) edges that must not be used
    to_goal: Floats  #: (V,) from a node straight to the goal [m]; infinite where the goal is not in reach
    goal: Floats  #: (P, dim) places that the estimate is the distance to


@kernel
def _before(key, item, a, b):
    return key[a] < key[b] or (key[a] == key[b] and item[a] < item[b])


@kernel
def _swap(key, item, a, b):
    key[a], key[b] = key[b], key[a]
    item[a], item[b] = item[b], item[a]


@kernel
def _push(search, key, node):
    at = search.size[0]
    search.key[at] = key
    search.item[at] = node
    search.size[0] = at + 1
    while at > 0:
        above = (at - 1) // 2
        if not _before(search.key, search.item, at, above):
            break
        _swap(search.key, search.item, at, above)
        at = above


@kernel
def _pop(search):
    node = search.item[0]
    last = search.size[0] - 1
    search.size[0] = last
    search.key[0], search.item[0] = search.key[last], search.item[last]
    at = 0
    while True:
        least = at
        for below in (2 * at + 1, 2 * at + 2):
            if below < last and _before(search.key, search.item, below, least):
                least = below
        if least == at:
            return node
        _swap(search.key, search.item, at, least)
        at = least


@kernel
def _to_nearest(nodes, v, goal):
    least = math.inf
    for p in range(goal.shape[0]):
        away2 = 0.0
        for axis in range(nodes.shape[1]):
            away2 += (nodes[v, axis] - goal[p, axis]) ** 2
        least = min(least, away2)
    return math.sqrt(least)


@kernel
def _reach(search, nodes, node, cost, came_from):
    """A cheaper way to a node has been found."""
    search.cost[node] = cost
    search.came_from[node] = came_from
    ahead = 0.0 if node == nodes.shape[0] else _to_nearest(nodes, node, search.goal)
    _push(search, cost + ahead, node)


@kernel
def _begin(search, nodes, first, cost):
    for k in range(first.size):
        if cost[k] < search.cost[first[k]]:
            _reach(search, nodes, first[k], cost[k], -1)


@kernel
def _search(search, nodes, links, length, most):
    """Expand at most this many nodes; returns how the search stands and how many were expanded."""
    goal = nodes.shape[0]
    work = 0
    while search.size[0] > 0:
        if work >= most:
            return RUNNING, work
        node = _pop(search)
        if search.closed[node]:
            continue
        search.closed[node] = 1
        if node == goal:
            return FOUND, work
        work += 1
        search.size[1] += 1
        if search.cost[node] + search.to_goal[node] < search.cost[goal]:
            _reach(search, nodes, goal, search.cost[node] + search.to_goal[node], node)
        for k in range(links.start[node], links.start[node + 1]):
            edge, other = links.edge[k], links.to[k]
            if not search.blocked[edge] and not search.closed[other]:
                cost = search.cost[node] + length[edge]
                if cost < search.cost[other]:
                    _reach(search, nodes, other, cost, node)
    return NO_PATH, work


def begin_search(
    graph: Graph, *, first: Ints, cost: Floats, to_goal: Floats, goal: Floats, blocked: NDArray[np.uint8]
) -> Search:
    """A search from nodes `first`, which cost that much to get to, to places that nodes are `to_goal` [m] away from."""
    count = len(graph.nodes)
    room = 2 * len(graph.edges) + 2 * count + len(first) + 2
    search = Search(
        np.full(count + 1, np.inf),
        np.full(count + 1, -1, dtype=np.int64),
        np.zeros(count + 1, dtype=np.uint8),
        # Checkpoints hold all of it, so nothing may be left to chance.
        np.zeros(room),
        np.zeros(room, dtype=np.int64),
        np.zeros(2, dtype=np.int64),
        np.ascontiguousarray(blocked, dtype=np.uint8),
        np.ascontiguousarray(to_goal),
        np.ascontiguousarray(goal),
    )
    _begin(search, graph.nodes, np.ascontiguousarray(first), np.ascontiguousarray(cost))
    return search


def go_on_searching(graph: Graph, search: Search, most: int) -> tuple[int, int]:
    """Expand at most this many nodes: how the search stands (RUNNING, FOUND or NO_PATH), and how many it were."""
    status, work = _search(search, graph.nodes, graph.links, graph.length, int(most))
    return int(status), int(work)


def found_path(search: Search) -> Ints:
    """The nodes of the path that was found, from the first one to the last one before the goal."""
    path = []
    node = int(search.came_from[-1])
    while node >= 0:
        path.append(node)
        node = int(search.came_from[node])
    return np.array(path[::-1], dtype=np.int64)


def check_search(search: Search) -> None:
    """Raise ValueError if the arrays of a search from a file do not fit together."""
    count, room = len(search.cost), len(search.key)
    sizes = (search.came_from.shape, search.closed.shape, search.item.shape, search.size.shape, search.to_goal.shape)
    if sizes != ((count,), (count,), (room,), (2,), (count - 1,)) or search.goal.ndim != 2 or not len(search.goal):
        raise ValueError("the arrays of a search do not fit together")
    if room < 2 * len(search.blocked) + 2 * count or not 0 <= search.size[0] <= room:
        raise ValueError("the heap of a search does not fit")
    if ((search.item < 0) | (search.item >= count)).any() or (search.came_from < -1).any():
        raise ValueError("a search has nodes that are not there")
    if (search.came_from >= count - 1).any() or search.came_from.dtype.kind != "i":
        raise ValueError("a search has nodes that are not there")
