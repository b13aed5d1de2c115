"""A chart: the roadmap for bodies of one radius, and queries on it.

Radii are rounded up to two digits, so that agents of similar width share a chart. Start and goal are joined to the
nearest nodes that a body can go to; near a wall it may be nearer to it there than the chart allows elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.planning.roadmap.building import add_nodes, build_graph, join_components
from tropel.planning.roadmap.graph import (
    FOUND,
    NO_PATH,
    RUNNING,
    Graph,
    Search,
    begin_search,
    found_path,
    go_on_searching,
)
from tropel.planning.roadmap.places import GoalPlace
from tropel.planning.roadmap.space import FreeSpace
from tropel.planning.roadmap.sweeps import Solid, shortened, sweeps_blocked_each

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Nodes that a start or goal is joined to: the nearest ones in reach, among so many, and then among more.
_NEAR, _JOINED = (16, 64), 6
#: Paths are cut short so often between points along them, and then have so many points.
_TIGHTER, _POINTS = 2, 40
#: So close to a start or goal, in radii, a body may be nearer to a wall than elsewhere.
_CLOSE = 2.0


def rounded_radius(radius: float) -> float:
    """A radius rounded up to two digits."""
    if radius <= 0.0:
        return 0.0
    digit = 10.0 ** (math.floor(math.log10(radius)) - 1)
    return float(f"{math.ceil(radius / digit - 1e-6) * digit:.3g}")


@dataclass(eq=False, kw_only=True)
class Path:
    """A path through the nodes of a chart."""

    points: Floats  #: (L, dim) from the start to the goal
    nodes: Ints  #: (R,) the nodes it was found through, before it was cut short

    @property
    def length(self) -> float:
        """[m]"""
        return float(np.linalg.norm(np.diff(self.points, axis=0), axis=1).sum())


def near_any(begin: Floats, end: Floats, jams: Floats) -> NDArray[np.bool_]:
    """Which segments (E, dim) come nearer to a place than its radius; `jams` has a row of place and radius for each."""
    near = np.zeros(len(begin), dtype=np.bool_)
    along = end - begin
    for jam in jams:
        place, radius = jam[: begin.shape[1]], jam[begin.shape[1]]
        share = ((place - begin) * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-300)
        nearest = begin + np.clip(share, 0.0, 1.0)[:, None] * along
        near |= np.linalg.norm(nearest - place, axis=1) < radius
    return near


def _resampled(points: Floats) -> Floats:
    """A path with points all along it; its own corners are among them."""
    length = np.linalg.norm(np.diff(points, axis=0), axis=1)
    apart = max(float(length.sum()) / _POINTS, 1e-12)
    legs = [
        begin + np.linspace(0.0, 1.0, max(math.ceil(long / apart), 1), endpoint=False)[:, None] * (end - begin)
        for begin, end, long in zip(points[:-1], points[1:], length.tolist(), strict=True)
    ]
    return np.vstack([*legs, points[-1:]])


@dataclass(eq=False, kw_only=True)
class Query:
    """A search that may go on in a later step."""

    search: Search
    start: Floats
    which: Ints  #: (V,) the point of the goal that each node is joined to


@dataclass(eq=False, kw_only=True)
class Chart:
    """The roadmap for bodies of one radius."""

    space: FreeSpace
    graph: Graph
    neighbours: int
    sampling: str
    samples: int
    seed: int
    built: int = 0  #: nodes when it was built
    work: int = 0  #: segments tested and nodes expanded in queries
    _tree: tuple[int, Any] | None = field(default=None, repr=False)
    _joined: dict[bytes, tuple[Floats, Ints]] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, space: FreeSpace, *, samples: int, neighbours: int, sampling: str, seed: int) -> Chart:
        """Build the chart of a free space."""
        graph = build_graph(space, samples=samples, neighbours=neighbours, sampling=sampling, seed=seed)
        return cls(space=space, graph=graph, neighbours=neighbours, sampling=sampling, samples=samples, seed=seed,
                   built=len(graph.nodes))  # fmt: skip

    def reinforce(self, count: int, *, around: Floats | None = None, within: float = 0.0) -> int:
        """Add nodes: anywhere that is hard to sample, or within a distance of a place; returns the tests it took."""
        from tropel._kernels.philox import random_key
        from tropel.planning.roadmap.sampling import free_samples

        first = len(self.graph.nodes)
        sampling = self.sampling if around is None else "uniform"
        space = self.space if around is None else self.space.near(around, within)
        key = random_key(self.seed, f"roadmap nodes {first}")
        nodes = free_samples(space, count, sampling=sampling, key=key)
        tests = add_nodes(self.space, self.graph, nodes, self.neighbours)
        if around is None:
            join_components(self.space, self.graph, self.neighbours)
        self._joined.clear()
        return tests + count

    def edges_behind(self, shut: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """(E,) which edges lead through a shut door."""
        blocked = np.zeros(len(self.graph.edges), dtype=np.uint8)
        if shut.any():
            through = np.append(shut, False)
            blocked |= through[self.graph.doors].any(axis=1)
        return blocked

    # Queries ----------------------------------------------------------------------------------------------------

    def begin(
        self,
        start: Floats,
        place: GoalPlace,
        solid: Solid,
        blocked: NDArray[np.uint8],
        *,
        straight: bool = True,
        jams: Floats | None = None,
    ) -> Query | Path:
        """Begin a query, or return the path at once if the goal can be walked to straight.

        The first leg keeps clear of `jams`, rows of a place and a radius [m].
        """
        room = min(self.space.radius, float(self.space.clearance(start[None], solid)[0]))
        if straight and (path := self._straight(start, room, place, solid)) is not None:
            return path
        to_goal, which = self._goal_links(place, solid)
        first, cost = self._links(start, room, solid, jams)
        search = begin_search(self.graph, first=first, cost=cost, to_goal=to_goal, goal=place.points, blocked=blocked)
        return Query(search=search, start=start.copy(), which=which)

    def go_on(self, query: Query, most: int) -> tuple[int, int]:
        """Search on, expanding at most this many nodes: how it stands, and the work it took."""
        if len(query.search.to_goal) != len(self.graph.nodes) or len(query.search.blocked) != len(self.graph.edges):
            return NO_PATH, 0  # nodes were added meanwhile: the caller begins again
        status, work = go_on_searching(self.graph, query.search, most)
        self.work += work
        return status, work

    def finish(self, query: Query, place: GoalPlace, solid: Solid, *, smooth: bool) -> Path:
        """The path that a query has found."""
        nodes = found_path(query.search)
        goal = place.points[min(int(query.which[nodes[-1]]), len(place.points) - 1)]
        return self.path_through(query.start, nodes, goal, solid, smooth=smooth)

    def path_through(self, start: Floats, nodes: Ints, goal: Floats, solid: Solid, *, smooth: bool) -> Path:
        """The path from a start through nodes to a goal, cut short if it is to be smooth.

        It is cut short between its nodes, and then between points all along it, which lets it hug corners.
        """
        points = np.vstack([start[None], self.graph.nodes[nodes], goal[None]])
        if smooth:
            # Near a wall, where the whole radius does not fit, the first and the last leg stay as they are.
            near = self.space.clearance(points[[0, -1]], solid) < self.space.radius
            first, last = int(near[0]), len(points) - int(near[1])
            points = np.vstack([points[:first], self._tightened(points[first:last], solid), points[last:]])
        return Path(points=points, nodes=nodes)

    def _tightened(self, points: Floats, solid: Solid) -> Floats:
        radius = np.full(_POINTS * 4 + len(points), self.space.radius)
        for turn in range(_TIGHTER + 1 if len(points) > 1 else 0):
            points = points if turn == 0 else _resampled(points)
            kept, tests = shortened(points, radius[: len(points)], solid)
            points = points[kept]
            self.work += tests
        return points

    def _straight(self, start: Floats, room: float, place: GoalPlace, solid: Solid) -> Path | None:
        away = np.linalg.norm(place.points - start, axis=1)
        near = np.argsort(away, kind="stable")[:4]
        clear = self.space.clearance(place.points[near], solid)
        begin = np.repeat(start[None], len(near), axis=0)
        blocked = self._blocked(begin, place.points[near], np.full(len(near), room), clear, solid)
        self.work += len(near)
        for k in near[~blocked & (clear > 0.0)][:1]:
            points = np.vstack([start[None], place.points[k][None]])
            return Path(points=points, nodes=np.empty(0, dtype=np.int64))
        return None

    def _blocked(self, begin: Floats, end: Floats, first: Floats, last: Floats, solid: Solid) -> NDArray[np.bool_]:
        """Which segments are blocked, for bodies that may be nearer to a wall close to its beginning and its end."""
        away = np.maximum(np.linalg.norm(end - begin, axis=1, keepdims=True), 1e-12)
        share = np.minimum(_CLOSE * self.space.radius / away, 0.5)
        near_begin, near_end = begin + share * (end - begin), end - share * (end - begin)
        blocked = sweeps_blocked_each(begin, near_begin, first, solid) | sweeps_blocked_each(near_end, end, last, solid)
        return blocked | sweeps_blocked_each(near_begin, near_end, np.full(len(begin), self.space.radius), solid)

    def _nearest(self, point: Floats, count: int) -> tuple[Floats, Ints]:
        from scipy.spatial import cKDTree

        if self._tree is None or self._tree[0] != len(self.graph.nodes):
            self._tree = (len(self.graph.nodes), cKDTree(self.graph.nodes))
        away, near = self._tree[1].query(point, k=min(count, len(self.graph.nodes)))
        return np.atleast_1d(away), np.atleast_1d(near).astype(np.int64)

    def _links(self, point: Floats, room: float, solid: Solid, jams: Floats | None = None) -> tuple[Ints, Floats]:
        """The nearest nodes that a body at a point can go to, clear of jams, and how far they are."""
        tried = 0
        for count in _NEAR:
            away, near = self._nearest(point, count)
            away, near = away[tried:], near[tried:]
            begin = np.repeat(point[None], len(near), axis=0)
            whole = np.full(len(near), self.space.radius)
            free = ~self._blocked(begin, self.graph.nodes[near], np.full(len(near), room), whole, solid)
            if jams is not None and len(jams):
                free &= ~near_any(begin, self.graph.nodes[near], jams)
            tried += len(near)
            self.work += len(near)
            if free.any():
                return near[free][:_JOINED], away[free][:_JOINED]
        return np.empty(0, dtype=np.int64), np.empty(0)

    def _goal_links(self, place: GoalPlace, solid: Solid) -> tuple[Floats, Ints]:
        """For each node how far it is straight to the goal, and to which of its points."""
        key = place.points.tobytes() + solid.walls.blocking.tobytes()
        if key not in self._joined:
            if len(self._joined) > 256:
                self._joined.clear()
            to_goal = np.full(len(self.graph.nodes), np.inf)
            which = np.zeros(len(self.graph.nodes), dtype=np.int64)
            room = self.space.clearance(place.points, solid)
            work = self.work
            for k in np.flatnonzero(room > 0.0):
                nodes, away = self._links(place.points[k], float(room[k]), solid)
                nearer = away < to_goal[nodes]
                to_goal[nodes[nearer]], which[nodes[nearer]] = away[nearer], k
            # What is remembered must not count: after a resume it is not remembered.
            self.work = work
            self._joined[key] = (to_goal, which)
        return self._joined[key]

    # What is not connected --------------------------------------------------------------------------------------

    def why_no_path(self, start: Floats, place: GoalPlace) -> str:
        """Which parts of the roadmap start and goal belong to, with all doors open; for messages."""
        solid, label = self.space.solid, self.graph.components()
        room = self.space.clearance(np.vstack([start[None], place.points]))
        if room[0] <= 0.0:
            return "it starts in a wall or obstacle"
        if not (room[1:] > 0.0).any():
            return f"{place.name} is in a wall or obstacle"
        ends = [
            self._links(start, float(room[0]), solid)[0],
            np.flatnonzero(np.isfinite(self._goal_links(place, solid)[0])),
        ]
        said = [self._component(label, nodes) for nodes in ends]
        return (
            f"it starts in {said[0]} and {place.name} is in {said[1]} of a roadmap of {len(self.graph.nodes)} nodes "
            f"in {int(label.max()) + 1} components"
        )

    def _component(self, label: Ints, nodes: Ints) -> str:
        if not len(nodes):
            return "no component"
        own = label == label[nodes[0]]
        middle = self.graph.nodes[own].mean(axis=0)
        at = ", ".join(f"{c:.3g}" for c in middle)
        return f"component {int(label[nodes[0]]) + 1} ({int(own.sum())} nodes around ({at}))"


__all__ = ["FOUND", "NO_PATH", "RUNNING", "Chart", "Path", "Query", "rounded_radius"]
