"""A chart: the roadmap for bodies of one radius, and queries on it.

Radii are rounded up to two digits, so that agents of similar width share a chart. Start and goal are joined to the
nearest nodes that a body can go to; near a wall it may be nearer to it there than the chart allows elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key
from tropel.planning.roadmap.building import Growth, begin_growth, empty_graph
from tropel.planning.roadmap.graph import FOUND, RUNNING, Graph, Search, begin_search, found_path, go_on_searching
from tropel.planning.roadmap.places import GoalPlace
from tropel.planning.roadmap.shortening import Going, Shortening
from tropel.planning.roadmap.space import FreeSpace, no_motion
from tropel.planning.roadmap.sweeps import Solid, near_any, sweeps_blocked_each

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Nodes that a start or goal is joined to: the nearest ones in reach, among so many, and then among more.
_NEAR, _JOINED = (16, 64), 6
#: The least budget of a step: enough for any part of the work that is not divided.
LEAST_BUDGET = 100
UNLIMITED = 1 << 40
#: Paths are cut short so often between points along them, after once between their nodes.
_TIGHTER = 2
#: Places of goals whose nodes are remembered.
_REMEMBERED = 256
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


def _leavable(jams: Floats, point: Floats) -> Floats:
    """Jams as they are for somebody at a point: whoever is in one may leave it, but not go farther in."""
    seen = jams.copy()
    away = np.linalg.norm(jams[:, : len(point)] - point, axis=1)
    seen[:, len(point)] = np.minimum(jams[:, len(point)], 0.999 * away)
    return seen


@dataclass(eq=False, kw_only=True)
class Query:
    """A search for a path that may go on in a later step: joining the goal, searching, and cutting the path short."""

    start: Floats
    goal: Floats  #: (P, dim) the places it may end at
    blocked: NDArray[np.uint8]  #: (E,) edges that must not be used
    jams: Floats  #: (J, dim + 2) the first leg keeps clear of these, rows of a place and a radius [m]
    smooth: bool  #: whether the path is cut short
    to_goal: Floats  #: (V,) from a node straight to the goal [m]; infinite where the goal is not in reach
    which: Ints  #: (V,) the place of the goal that each node is joined to
    joined: int = 0  #: places of the goal that nodes have been joined to
    search: Search | None = None
    nodes: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))  #: of the path, once there is one
    shortening: Shortening | None = None

    def record(self) -> dict[str, NDArray[Any]]:
        stored = {name: getattr(self, name) for name in _QUERY_ARRAYS}
        stored["numbers"] = np.array([self.smooth, self.joined])
        if self.search is not None:
            stored |= {f"search_{name}": array for name, array in self.search._asdict().items()}
        if self.shortening is not None:
            stored |= {f"short_{name}": array for name, array in self.shortening.record().items()}
        return stored

    @classmethod
    def of(cls, stored: Mapping[str, NDArray[Any]]) -> Query:
        smooth, joined = (int(number) for number in stored["numbers"])
        arrays: dict[str, Any] = {name: stored[name] for name in _QUERY_ARRAYS}
        made = cls(**arrays, smooth=bool(smooth), joined=joined)
        if "search_cost" in stored:
            made.search = Search(*(stored[f"search_{name}"] for name in Search._fields))
        if "short_points" in stored:
            made.shortening = Shortening.of({name: stored[f"short_{name}"] for name in Shortening.names()})
        return made


_QUERY_ARRAYS = ("start", "goal", "blocked", "jams", "to_goal", "which", "nodes")


@dataclass(eq=False, kw_only=True)
class Chart:
    """The roadmap for bodies of one radius."""

    space: FreeSpace
    graph: Graph
    neighbours: int
    sampling: str
    samples: int
    seed: int
    built: int = 0  #: nodes when it was built; 0 while it is being built
    growing: Growth | None = None  #: nodes that are being added
    _tree: tuple[int, Any] | None = field(default=None, repr=False)
    _joined: dict[bytes, tuple[Ints, Floats, int]] = field(default_factory=dict, repr=False)

    @classmethod
    def begin(
        cls,
        space: FreeSpace,
        *,
        samples: int,
        neighbours: int,
        sampling: str,
        seed: int,
        given: Floats | None = None,
    ) -> Chart:
        """A chart of a free space without nodes; it grows by samples, and by given nodes."""
        growing = begin_growth(space, samples=samples, neighbours=neighbours, sampling=sampling,
                               key=random_key(seed, "roadmap"), given=given)  # fmt: skip
        return cls(space=space, graph=empty_graph(space.dim), neighbours=neighbours, sampling=sampling, samples=samples,
                   seed=seed, growing=growing)  # fmt: skip

    @classmethod
    def of(cls, space: FreeSpace, *, samples: int, neighbours: int, sampling: str, seed: int) -> Chart:
        """Build the chart of a free space."""
        made = cls.begin(space, samples=samples, neighbours=neighbours, sampling=sampling, seed=seed)
        made.grow(UNLIMITED)
        return made

    def grow(self, most: int) -> int:
        """Go on adding nodes with at most so many units of work; returns how many it were."""
        if self.growing is None:
            return 0
        used = self.growing.go_on(self.space, self.graph, most)
        if self.growing.done:
            self.growing = None
            self.built = self.built or len(self.graph.nodes)
            self._joined.clear()
        return used

    def reinforce(self, count: int, *, around: Floats | None = None, within: float = 0.0) -> bool:
        """Begin to add nodes: anywhere that is hard to sample, or within a distance of a place.

        Returns whether it begins: not while other nodes are being added.
        """
        if self.growing is not None:
            return False
        space = self.space if around is None else self.space.near(around, within)
        self.growing = begin_growth(
            space, samples=count, neighbours=self.neighbours, sampling=self.sampling if around is None else "uniform",
            key=random_key(self.seed, f"roadmap nodes {len(self.graph.nodes)}"), joins=around is None,
        )  # fmt: skip
        return True

    def edges_behind(self, shut: NDArray[np.bool_]) -> NDArray[np.uint8]:
        """(E,) which edges lead through a shut door."""
        blocked = np.zeros(len(self.graph.edges), dtype=np.uint8)
        if shut.any():
            through = np.append(shut, False)
            blocked |= through[self.graph.doors].any(axis=1)
        return blocked

    # Queries ----------------------------------------------------------------------------------------------------

    def begin_query(
        self,
        start: Floats,
        place: GoalPlace,
        solid: Solid,
        blocked: NDArray[np.uint8],
        *,
        smooth: bool,
        jams: Floats | None = None,
    ) -> tuple[Query | Path, int]:
        """A query, or the path at once if the goal can be walked to straight; and the work it took."""
        used, around = 0, np.empty((0, self.space.dim + 2)) if jams is None else jams
        if not len(around):
            path, used = self._straight(start, place, solid)
            if path is not None:
                return path, used
        count = len(self.graph.nodes)
        return Query(start=start.copy(), goal=place.points.copy(), blocked=blocked, jams=around, smooth=smooth,
                     to_goal=np.full(count, np.inf), which=np.zeros(count, dtype=np.int64)), used  # fmt: skip

    def is_of_old(self, query: Query) -> bool:
        """Whether nodes or edges were added since a query began, so that it has to begin again."""
        return len(query.to_goal) != len(self.graph.nodes) or len(query.blocked) != len(self.graph.edges)

    def go_on(self, query: Query, solid: Solid, most: int) -> tuple[int, int]:
        """Go on with at most so many units of work: how it stands (RUNNING, FOUND or NO_PATH), and the work it took."""
        used = 0
        if query.search is None:
            used = self._join_goal(query, solid, most)
            if query.joined < len(query.goal) or most - used < _NEAR[-1]:
                return RUNNING, used
            room = min(self.space.radius, float(self.space.clearance(query.start[None], solid)[0]))
            first, cost, tests = self._links(query.start, room, solid, query.jams)
            used += tests
            query.search = begin_search(self.graph, first=first, cost=cost, to_goal=query.to_goal, goal=query.goal,
                                        blocked=query.blocked)  # fmt: skip
        if query.shortening is None:
            status, tests = go_on_searching(self.graph, query.search, most - used)
            used += tests
            if status != FOUND:
                return status, used
            query.nodes = found_path(query.search)
            query.shortening = Shortening.begin(self._inner_points(query, solid)[1],
                                                turns=_TIGHTER + 1 if query.smooth else 0)  # fmt: skip
        going = Going(radius=self.space.radius, first=self.space.radius, last=self.space.radius)
        used += query.shortening.go_on(going, solid, no_motion(self.space.dim), most - used)
        return FOUND if query.shortening.done else RUNNING, used

    def _join_goal(self, query: Query, solid: Solid, most: int) -> int:
        """Join places of the goal to the nodes around them; returns the work it took."""
        used = 0
        while query.joined < len(query.goal) and most - used >= _NEAR[-1]:
            nodes, away, tests = self._links_of_goal(query.goal[query.joined], solid)
            nearer = away < query.to_goal[nodes]
            query.to_goal[nodes[nearer]], query.which[nodes[nearer]] = away[nearer], query.joined
            query.joined += 1
            used += tests
        return used

    def _inner_points(self, query: Query, solid: Solid) -> tuple[Floats, Floats, Floats]:
        """The points of the path that a query has found: first one, inner ones, last one.

        Near a wall, where the whole radius does not fit, the first and the last leg are not cut short.
        """
        goal = query.goal[query.which[query.nodes[-1]]]
        points = np.vstack([query.start[None], self.graph.nodes[query.nodes], goal[None]])
        near = self.space.clearance(points[[0, -1]], solid) < self.space.radius
        first, last = int(near[0]), len(points) - int(near[1])
        return points[:first], points[first:last], points[last:]

    def found(self, query: Query, solid: Solid) -> Path:
        """The path that a query has found."""
        assert query.shortening is not None
        first, _, last = self._inner_points(query, solid)
        return Path(points=np.vstack([first, query.shortening.points, last]), nodes=query.nodes)

    def path_to(self, start: Floats, place: GoalPlace, solid: Solid, blocked: NDArray[np.uint8]) -> Path | None:
        """The path to a place, whatever work it takes; None if there is none."""
        begun, _ = self.begin_query(start, place, solid, blocked, smooth=True)
        if isinstance(begun, Path):
            return begun
        return self.found(begun, solid) if self.go_on(begun, solid, UNLIMITED)[0] == FOUND else None

    def straight_path(self, start: Floats, place: GoalPlace, solid: Solid) -> Path | None:
        """The straight path to a place; None if something is in between."""
        return self._straight(start, place, solid)[0]

    def links_from(self, point: Floats, solid: Solid) -> tuple[Ints, Floats]:
        """The nodes that a body at a point can be joined to, and how far they are [m]."""
        room = min(self.space.radius, float(self.space.clearance(point[None], solid)[0]))
        return self._links(point, room, solid, np.empty((0, self.space.dim + 2)))[:2]

    def links_to(self, point: Floats, solid: Solid) -> tuple[Ints, Floats]:
        """The same for a place of a goal."""
        return self._links_of_goal(point, solid)[:2]

    def _straight(self, start: Floats, place: GoalPlace, solid: Solid) -> tuple[Path | None, int]:
        room = min(self.space.radius, float(self.space.clearance(start[None], solid)[0]))
        away = np.linalg.norm(place.points - start, axis=1)
        near = np.argsort(away, kind="stable")[:4]
        clear = self.space.clearance(place.points[near], solid)
        begin = np.repeat(start[None], len(near), axis=0)
        blocked = self._blocked(begin, place.points[near], np.full(len(near), room), clear, solid)
        for k in near[~blocked & (clear > 0.0)][:1]:
            points = np.vstack([start[None], place.points[k][None]])
            return Path(points=points, nodes=np.empty(0, dtype=np.int64)), len(near)
        return None, len(near)

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

    def _links(self, point: Floats, room: float, solid: Solid, jams: Floats) -> tuple[Ints, Floats, int]:
        """The nearest nodes that a body at a point can go to, clear of jams, how far they are, and the work it took."""
        tried = 0
        for count in _NEAR:
            away, near = self._nearest(point, count)
            away, near = away[tried:], near[tried:]
            begin = np.repeat(point[None], len(near), axis=0)
            whole = np.full(len(near), self.space.radius)
            free = ~self._blocked(begin, self.graph.nodes[near], np.full(len(near), room), whole, solid)
            if len(jams):
                free &= ~near_any(begin, self.graph.nodes[near], _leavable(jams, point))
            tried += len(near)
            if free.any():
                return near[free][:_JOINED], away[free][:_JOINED], tried
        return np.empty(0, dtype=np.int64), np.empty(0), tried

    def _links_of_goal(self, point: Floats, solid: Solid) -> tuple[Ints, Floats, int]:
        """The same for a place of a goal.

        They are remembered, and the work is still counted: after a resume they are not.
        """
        key = point.tobytes() + solid.walls.blocking.tobytes()
        if key not in self._joined:
            if len(self._joined) > _REMEMBERED:
                self._joined.clear()
            room = float(self.space.clearance(point[None], solid)[0])
            nothing = np.empty(0, dtype=np.int64), np.empty(0), 0
            jams = np.empty((0, self.space.dim + 2))
            self._joined[key] = self._links(point, room, solid, jams) if room > 0.0 else nothing
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
            self._links(start, float(room[0]), solid, np.empty((0, self.space.dim + 2)))[0],
            np.concatenate([self._links_of_goal(point, solid)[0] for point in place.points]),
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
