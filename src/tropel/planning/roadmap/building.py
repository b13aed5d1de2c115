"""Building a roadmap: samples, the straight edges between near ones, and more edges where components are apart.

A `Growth` adds nodes to a roadmap, be it empty or not. It stops when its work is used up and goes on in a later step;
work is counted in darts thrown and segments tested.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key
from tropel.foundation.long_work import report
from tropel.planning.roadmap.graph import Graph
from tropel.planning.roadmap.sampling import Darts, no_room
from tropel.planning.roadmap.space import FreeSpace
from tropel.planning.roadmap.sweeps import doors_on, sweeps_blocked

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: To join components, this many times more neighbours are tried, and only across components.
_WIDER = 4
_ROUNDS = 2
#: What a growth does: throw darts, test the edges of the new nodes, and test edges between components.
_DARTS, _EDGES, _DONE = 0, 1, 2 + _ROUNDS

_NO_PAIRS, _NO_DOORS = np.empty((0, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int32)


def empty_graph(dim: int) -> Graph:
    return Graph(nodes=np.empty((0, dim)), edges=_NO_PAIRS, doors=_NO_DOORS)


@dataclass(eq=False, kw_only=True)
class Growth:
    """Nodes that are being added to a roadmap: samples, and nodes that are given."""

    darts: Darts
    given: Floats  #: (G, dim) nodes besides the samples; they are joined to twice as many
    neighbours: int
    joins: bool  #: whether components of the whole roadmap are joined in the end
    part: Floats  #: (2, dim) corners of where samples are drawn from; (0, dim) for the whole space
    stage: int = _DARTS
    pairs: Ints = field(default_factory=lambda: _NO_PAIRS)  #: (P, 2) nodes whose edges are to be tested
    tested: int = 0  #: how many of them have been
    edges: Ints = field(default_factory=lambda: _NO_PAIRS)  #: those that a body can go along
    doors: NDArray[np.int32] = field(default_factory=lambda: _NO_DOORS)

    @property
    def done(self) -> bool:
        return self.stage >= _DONE

    def go_on(self, space: FreeSpace, graph: Graph, most: int) -> int:
        """Work with at most so many units; returns how many it were. The roadmap changes when a stage is done."""
        used = 0
        while not self.done:
            if self.stage == _DARTS:
                used += self.darts.go_on(self._drawn_from(space), most - used)
                if not self.darts.done:
                    break
                self._begin_edges(space, graph)
            else:
                used += self._test(space, graph, most - used)
                if self.tested < len(self.pairs):
                    break
                self._finish_edges(graph)
        return used

    def _drawn_from(self, space: FreeSpace) -> FreeSpace:
        return space if not len(self.part) else replace(space, part=(self.part[0], self.part[1]))

    def _new(self) -> Floats:
        return np.vstack([self.darts.samples, self.given])

    def _begin_edges(self, space: FreeSpace, graph: Graph) -> None:
        new, before = self._new(), len(graph.nodes)
        if not len(new) and not before:
            raise no_room(space, self.darts.count)
        every, sampled = np.vstack([graph.nodes, new]), before + len(self.darts.samples)
        pairs = near_pairs(every, self.neighbours, among=np.arange(before, sampled))
        if len(self.given):
            more = near_pairs(every, 2 * self.neighbours, among=np.arange(sampled, len(every)))
            pairs = np.unique(np.vstack([pairs, more]), axis=0)
        self.stage, self.pairs, self.tested = _EDGES, pairs, 0

    def _test(self, space: FreeSpace, graph: Graph, most: int) -> int:
        """Test some more pairs; returns how many."""
        pairs = self.pairs[self.tested : self.tested + most]
        if len(pairs):
            nodes = np.vstack([graph.nodes, self._new()]) if self.stage == _EDGES else graph.nodes
            begin, end = nodes[pairs[:, 0]], nodes[pairs[:, 1]]
            free = ~sweeps_blocked(begin, end, space.radius, space.solid)
            doors, many = doors_on(begin[free], end[free], space.radius, space.door_segments, space.door_numbers)
            self.edges = np.vstack([self.edges, pairs[free][~many]])
            self.doors = np.vstack([self.doors, doors[~many]])
            self.tested += len(pairs)
            graph.tests += len(pairs)
        return len(pairs)

    def _finish_edges(self, graph: Graph) -> None:
        new = self._new() if self.stage == _EDGES else np.empty((0, graph.nodes.shape[1]))
        found = len(self.edges)
        if found or len(new):
            graph.add(new, self.edges, self.doors)
        round_before = self.stage - _EDGES
        self.pairs, self.edges, self.doors, self.tested = _NO_PAIRS, _NO_PAIRS, _NO_DOORS, 0
        self.stage += 1
        report("roadmap: edges", round_before + 1, _ROUNDS + 1)
        if not self.joins or (round_before > 0 and not found):
            self.stage = _DONE
        if self.done:
            return
        label = graph.components()
        apart = np.flatnonzero(label > 0)
        if not len(apart):
            self.stage = _DONE
            return
        pairs = near_pairs(graph.nodes, (round_before + 1) * _WIDER * self.neighbours, among=apart)
        self.pairs = pairs[label[pairs[:, 0]] != label[pairs[:, 1]]]

    def record(self) -> dict[str, NDArray[Any]]:
        numbers = np.array([self.neighbours, self.joins, self.stage, self.tested])
        own = {"numbers": numbers, "given": self.given, "part": self.part, "pairs": self.pairs, "edges": self.edges,
               "doors": self.doors}  # fmt: skip
        return own | {f"darts_{name}": array for name, array in self.darts.record().items()}

    @classmethod
    def of(cls, stored: Mapping[str, NDArray[Any]], graph: Graph) -> Growth:
        dim = graph.nodes.shape[1]
        darts = {name.removeprefix("darts_"): array for name, array in stored.items() if name.startswith("darts_")}
        neighbours, joins, stage, tested = (int(number) for number in stored["numbers"])
        made = cls(darts=Darts.of(darts, dim), given=stored["given"], neighbours=neighbours, joins=bool(joins),
                   part=stored["part"], stage=stage, pairs=stored["pairs"].astype(np.int64), tested=tested,
                   edges=stored["edges"].astype(np.int64), doors=stored["doors"].astype(np.int32))  # fmt: skip
        nodes = len(graph.nodes) + (len(made._new()) if stage == _EDGES else 0)
        if made.given.shape[1:] != (dim,) or made.part.shape not in ((0, dim), (2, dim)) or neighbours < 1:
            raise ValueError("the nodes that a roadmap grows by must be places")
        for pairs in (made.pairs, made.edges):
            if pairs.ndim != 2 or pairs.shape[1] != 2 or (len(pairs) and not 0 <= pairs.min() <= pairs.max() < nodes):
                raise ValueError("the edges that a roadmap grows by must join two nodes")
        if not (_DARTS <= stage < _DONE and 0 <= tested <= len(made.pairs) and made.doors.shape == made.edges.shape):
            raise ValueError("the growth of a roadmap does not fit together")
        return made


def begin_growth(
    space: FreeSpace,
    *,
    samples: int,
    neighbours: int,
    sampling: str,
    key: np.uint64,
    given: Floats | None = None,
    joins: bool = True,
) -> Growth:
    """Begin to add samples of a space, or of the part that it is limited to, and given nodes."""
    nothing = np.empty((0, space.dim))
    darts = Darts(count=samples, sampling=sampling, key=key, samples=nothing)
    part = nothing if space.part is None else np.array(space.part)
    return Growth(darts=darts, given=nothing if given is None else given, neighbours=neighbours, joins=joins, part=part)


def build_graph(space: FreeSpace, *, samples: int, neighbours: int, sampling: str, seed: int) -> Graph:
    """A roadmap of a free space, as if all doors were open."""
    graph = empty_graph(space.dim)
    growth = begin_growth(space, samples=samples, neighbours=neighbours, sampling=sampling,
                          key=random_key(seed, "roadmap"))  # fmt: skip
    growth.go_on(space, graph, 1 << 40)
    return graph


def add_nodes(space: FreeSpace, graph: Graph, nodes: Floats, neighbours: int) -> int:
    """Add free nodes to a roadmap, joined to their nearest ones; returns how many segments were tested."""
    growth = begin_growth(space, samples=0, neighbours=neighbours, sampling="uniform", key=np.uint64(0), given=nodes,
                          joins=False)  # fmt: skip
    return growth.go_on(space, graph, 1 << 40)


def near_pairs(nodes: Floats, neighbours: int, *, among: Ints) -> Ints:
    """Pairs of some nodes and the nearest ones of each, each pair once, the lower number first."""
    from scipy.spatial import cKDTree

    count = min(neighbours + 1, len(nodes))
    if count < 2 or not len(among):
        return _NO_PAIRS
    near = cKDTree(nodes).query(nodes[among], k=count)[1]
    pairs = np.stack([np.repeat(among, count), near.reshape(-1)], axis=1)
    pairs = np.sort(pairs[pairs[:, 0] != pairs[:, 1]], axis=1)
    # Rows as single numbers sort many times faster.
    single = np.unique(pairs[:, 0] * len(nodes) + pairs[:, 1])
    return np.stack([single // len(nodes), single % len(nodes)], axis=1).astype(np.int64)
