"""Roadmaps: the self-adaptive one beside rebuilding, rooms beside a flat roadmap, building and queries beside others.

GROUPS tables 4.1 and 4.2 in one run each. In the field, one leader walks through 100 obstacles of which 20 move, for
500 frames; both methods test their path in each frame, and what differs is what they do when it is blocked. Obstacles
count where they are, as in the thesis. In the building, doors change; the flat roadmap is built anew around the shut
doors by our own builder. Everything is on one thread; times are of the processor, and sums over all layouts.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tropel._kernels.compile import threads_restored
from tropel.agents.groups import Group
from tropel.bench.result import BenchResult, Progress, Row
from tropel.bench.roadmap_ompl import MISSING, build_with_ompl
from tropel.bench.roadmap_worlds import building, cluttered_field, start_of_field
from tropel.local.seek import Seek
from tropel.planning.roadmap.adaptive import AdaptiveRoadmap
from tropel.planning.roadmap.building import build_graph
from tropel.planning.roadmap.chart import Chart, Path
from tropel.planning.roadmap.graph import Graph, begin_search, go_on_searching
from tropel.planning.roadmap.places import place_of_goal
from tropel.planning.roadmap.space import FreeSpace
from tropel.planning.roadmap.travellers import NO_NUMBERS
from tropel.planning.rooms.model import Rooms
from tropel.simulation import Simulation
from tropel.world import World

_FRAMES, _FRAME, _LAYOUTS, _MOVING, _LEADERS = 500, 0.04, 6, 20, 10
#: As in the thesis, all of the path is tested, however far ahead [s].
_WHOLE_PATH = 1e6
_NODES, _QUERIES, _THEIRS = 10_000, 200, 20
_WIDE, _NEIGHBOURS = 0.05, 6
_ROOMS_ALONG, _SHUFFLES, _OPEN, _PER_ROOM = 10, 5, 0.75, 40


def measure(
    progress: Progress, *, layouts: int = _LAYOUTS, nodes: int = _NODES, rooms: int = _ROOMS_ALONG
) -> BenchResult:
    """Measure everything."""
    result = BenchResult(name="roadmap")
    with threads_restored(1):
        progress("the field", 0, 5)
        adaptive, rebuilding = run_fields(layouts)
        result.rows.extend([adaptive, rebuilding])
        result.ratios["rebuild_over_adaptive"] = rebuilding["planning_s"] / adaptive["planning_s"]
        result.ratios["rebuild_over_rejoin_each"] = rebuilding["reconnection_ms"] / adaptive["reconnection_ms"]
        progress("ten leaders", 1, 5)
        several = run_fields(max(layouts // 2, 1), leaders=_LEADERS)
        result.more["ten leaders"] = list(several)
        result.ratios["rebuild_over_adaptive_10"] = several[1]["planning_s"] / several[0]["planning_s"]
        progress("rooms", 2, 5)
        flat, by_rooms = run_building(rooms)
        result.more["rooms"] = [flat, by_rooms]
        result.ratios["flat_over_rooms"] = flat["ms"] / by_rooms["ms"]
        result.ratios["flat_requery_over_rooms"] = flat["query_only_ms"] / by_rooms["ms"]
        progress("building", 3, 5)
        graph, row = run_build(nodes)
        result.more["building"] = [row]
        result.ratios["1s_over_build_10k"] = 1.0 / row["seconds"]
        theirs = build_with_ompl(cluttered_field(0, moving=0), _WIDE, nodes, _NEIGHBOURS)
        if theirs is None:
            result.notes.append(MISSING)
        else:
            result.more["building with OMPL"] = [theirs]
            result.ratios["ompl_over_ours_build"] = theirs["per_10k_s"] / (1e4 * row["seconds"] / nodes)
        progress("queries", 4, 5)
        row = run_queries(graph)
        result.more["queries"] = [row]
        if row["networkx_ms"] is not None:
            result.ratios["networkx_over_ours_query"] = row["networkx_ms"] / row["ours_ms"]
        progress("done", 5, 5)
    result.notes.extend([
        "rebuild_over_adaptive is the time of the planner in all frames, path tests included; each reconnection alone "
        "is rebuild_over_rejoin_each. Ten leaders (_10) share the roadmap, which is rebuilt once in a frame at most.",
        "flat_over_rooms rebuilds and queries a flat roadmap after doors have changed; flat_requery_over_rooms only "
        "queries ours, whose edges know their doors.",
    ])  # fmt: skip
    return result


def run_fields(layouts: int, *, moving: int = _MOVING, leaders: int = 1, predict: bool = False) -> tuple[Row, Row]:
    """Both methods in the cluttered field, one after the other in each layout: self-adaptive, and rebuilding."""
    adaptive, rebuilding = Counter[str](), Counter[str]()
    for layout in range(-1, layouts):
        for figures, planner in ((adaptive, _Timed), (rebuilding, _Rebuilding)):
            made = planner(predict=predict, clearance=0.05, horizon=_WHOLE_PATH)
            found = _walk_field(made, max(layout, 0), moving=moving, leaders=leaders)
            if layout >= 0:  # the first run compiles
                figures.update(found)
    return _row("self-adaptive", adaptive, layouts), _row("rebuilding", rebuilding, layouts)


def _walk_field(planner: _Timed, layout: int, *, moving: int, leaders: int) -> Counter[str]:
    angles = 2.0 * np.pi * np.arange(leaders) / leaders
    around = 0.15 * (leaders > 1) * np.column_stack([np.cos(angles), np.sin(angles)])
    group = Group("leaders", positions=np.array(start_of_field()) + around, goal="goal", radius=0.02,
                  desired_speed=0.4, sense_radius=0.2)  # fmt: skip
    sim = Simulation(cluttered_field(layout, moving=moving), group, planning=planner, local=Seek(), dt=_FRAME,
                     seed=layout + 1, threads=1)  # fmt: skip
    begun = time.process_time()
    for _ in range(_FRAMES):
        sim.step()
    figures: Counter[str] = Counter(planner.spent)
    away = np.linalg.norm(sim.agents.position - sim.world.goals().position[0], axis=1)
    seconds: Any = {
        "total": time.process_time() - begun, "planning": planner.planning, "mending": planner.mending,
        "arrived": float(np.mean(away < 0.3)),
    }  # fmt: skip
    figures.update(seconds)
    return figures


def _row(method: str, figures: Counter[str], layouts: int) -> Row:
    reconnections = figures["rejoinings"] + figures["rebuilds"]
    return {
        "method": method,
        "frames": layouts * _FRAMES,
        "total_s": figures["total"],
        "planning_s": figures["planning"],
        "reconnections": reconnections,
        "reconnection_s": figures["mending"],
        "reconnection_ms": 1e3 * figures["mending"] / max(reconnections, 1),
        "path_tests": figures["path tests"],
        "other_tests": figures["rebuild tests"] + figures["units"],
        "arrived": figures["arrived"] / layouts,
    }


class _Timed(AdaptiveRoadmap):
    """Measures the time of the planner, and of that the time for mending paths with the queries that follow."""

    planning = mending = 0.0

    def direct(self, *given: Any) -> None:
        begun = time.process_time()
        super().direct(*given)
        self.planning += time.process_time() - begun

    def mend(self, *given: Any) -> int:
        return self._measured(super().mend, *given)

    def plan(self, *given: Any) -> int:
        return self._measured(super().plan, *given)

    def prepare(self, moment: Any) -> None:
        super().prepare(moment)
        self.mending = 0.0  # the first path is none

    def _measured(self, function: Callable[..., int], *given: Any) -> int:
        begun = time.process_time()
        outcome = function(*given)
        self.mending += time.process_time() - begun
        return outcome


class _Rebuilding(_Timed):
    """The basic method: build the whole roadmap anew around everything as it stands now, and query that."""

    rebuilt = -1  #: the step in which it was last done

    def mend(self, moment: Any, row: int, slot: int, budget: int) -> int:
        return self._measured(self._rebuild, moment, slot)

    def _rebuild(self, moment: Any, slot: int) -> int:
        person, given = self.travellers.people[slot], self.parameters
        if moment.step < person.retry:
            return 0
        if self.rebuilt != moment.step:
            self.rebuilt = moment.step
            space = FreeSpace.of(self.world, person.radius, everything=True)
            chart = Chart.of(space, samples=given.samples, neighbours=given.neighbours, sampling=given.sampling,
                             seed=self.seed)  # fmt: skip
            self._charts[person.radius, person.place], self._spaces[person.radius] = chart, space
            self._solids.clear()
            self.spent["rebuilds"] += 1
            self.spent["rebuild tests"] += chart.graph.tests
            for other in self.travellers.people:
                other.query, other.marked = None, NO_NUMBERS  # those of the old roadmap
                if other.path is not None:
                    other.path = Path(points=other.path.points, nodes=NO_NUMBERS)
        person.ask(moment.step)
        return 0


def run_building(side: int) -> tuple[Row, Row]:
    """Plan anew after doors have changed, on a flat roadmap and over rooms."""
    world = building(side)
    rooms = Rooms(samples=_PER_ROOM)
    leader = Group("leader", positions=[(1.5, 1.5)], goal="goal", radius=0.2, sense_radius=2.0)
    sim = Simulation(world, leader, planning=rooms, local=Seek(), dt=0.05, seed=1, threads=1)
    radius = rooms.radius_of(0.2)
    rng = np.random.default_rng(side)
    names, start = list(world.doors), np.array([1.5, 1.5])
    seconds: dict[str, list[float]] = {"rooms": [], "flat": [], "query": []}
    tests = Counter[str]()
    lasting = Chart.of(FreeSpace.of(world, radius), samples=_PER_ROOM * side**2, neighbours=6, sampling="mixed", seed=1)
    place = place_of_goal(world, 0)
    assert place is not None
    for shuffle in range(_SHUFFLES + 1):
        for name in names:
            world.set_door(name, open=bool(rng.random() < _OPEN))
        before = rooms.spent.copy()
        sim.step()
        done = rooms.spent - before
        begun = time.process_time()
        chart = Chart.of(_with_shut_doors(world, radius), samples=_PER_ROOM * side**2, neighbours=6, sampling="mixed",
                         seed=1)  # fmt: skip
        found = _query(chart, start, place, np.zeros(len(names), dtype=np.bool_))
        flat = time.process_time() - begun
        begun = time.process_time()
        shut = np.array([not door.open for door in world.doors.values()])
        _query(lasting, start, place, shut)
        query = time.process_time() - begun
        if shuffle:  # the first one compiles and makes the roadmap of the first room
            seconds["rooms"].append(_planning_of_a_change(sim, world))
            seconds["flat"].append(flat)
            seconds["query"].append(query)
            tests["flat"] += chart.graph.tests
            tests["rooms"] += done["tests"] + done["units"]
            tests["found"] += found
    flat_row = {
        "method": "flat", "nodes": _PER_ROOM * side**2, "changes": _SHUFFLES, "ms": 1e3 * _mean(seconds["flat"]),
        "query_only_ms": 1e3 * _mean(seconds["query"]), "tests": tests["flat"],
    }  # fmt: skip
    rooms_row = {
        "method": "rooms", "nodes": len(rooms.plan_of(radius).portals), "changes": _SHUFFLES,
        "ms": 1e3 * _mean(seconds["rooms"]), "query_only_ms": None, "tests": tests["rooms"],
    }  # fmt: skip
    return flat_row, rooms_row


def _planning_of_a_change(sim: Simulation, world: World) -> float:
    """The time of the planner in a step in which a door changes, beyond that of a step in which none does."""
    quiet: list[float] = []
    changed: list[float] = []
    name = next(iter(world.doors))
    for k in range(6):
        for times in (changed, quiet):
            if times is changed:
                world.set_door(name, open=bool(k % 2))
            before = sim.timing.seconds["planning"]
            sim.step()
            times.append(sim.timing.seconds["planning"] - before)
    return max(float(np.median(changed)) - float(np.median(quiet)), 1e-6)


def _with_shut_doors(world: World, radius: float) -> FreeSpace:
    """The free space with shut doors as walls."""
    space = FreeSpace.of(world, radius)
    space.solid = space.with_doors(space.shut_doors())
    return space


def _query(chart: Chart, start: Any, place: Any, shut: Any) -> bool:
    return chart.path_to(start, place, chart.space.with_doors(shut), chart.edges_behind(shut)) is not None


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def run_build(nodes: int) -> tuple[Graph, Row]:
    """Build a roadmap of many nodes in the field."""
    space = FreeSpace.of(cluttered_field(0, moving=0), _WIDE)
    times = []
    for _ in range(4):
        begun = time.process_time()
        graph = build_graph(space, samples=nodes, neighbours=_NEIGHBOURS, sampling="mixed", seed=1)
        times.append(time.process_time() - begun)
    row = {"nodes": nodes, "edges": len(graph.edges), "tests": graph.tests, "seconds": min(times[1:])}
    return graph, row


def run_queries(graph: Graph) -> Row:
    """Shortest paths between random nodes, beside A* of networkx on the same graph."""
    rng = np.random.default_rng(1)
    label = graph.components()
    pairs = rng.choice(np.flatnonzero(label == 0), (_QUERIES, 2))
    blocked = np.zeros(len(graph.edges), dtype=np.uint8)
    lengths, begun = [], time.process_time()
    for first, last in pairs.tolist():
        to_goal = np.full(len(graph.nodes), np.inf)
        to_goal[last] = 0.0
        search = begin_search(graph, first=np.array([first]), cost=np.zeros(1), to_goal=to_goal,
                              goal=graph.nodes[last : last + 1], blocked=blocked)  # fmt: skip
        go_on_searching(graph, search, 1 << 40)
        lengths.append(float(search.cost[-1]))
    ours = (time.process_time() - begun) / _QUERIES
    theirs = _networkx_query(graph, pairs[:_THEIRS], lengths)
    return {
        "nodes": len(graph.nodes), "queries": _QUERIES, "ours_ms": 1e3 * ours, "ours_per_s": 1.0 / ours,
        "networkx_ms": None if theirs is None else 1e3 * theirs,
    }  # fmt: skip


def _networkx_query(graph: Graph, pairs: Any, lengths: list[float]) -> float | None:
    try:
        import networkx  # type: ignore[import-untyped]
    except ImportError:
        return None
    theirs = networkx.Graph()
    theirs.add_weighted_edges_from(
        (int(a), int(b), float(w)) for (a, b), w in zip(graph.edges, graph.length, strict=True)
    )
    place = graph.nodes

    def ahead(a: int, b: int) -> float:
        return float(np.hypot(*(place[a] - place[b])))

    begun = time.process_time()
    for (first, last), length in zip(pairs.tolist(), lengths, strict=False):
        found = networkx.astar_path_length(theirs, first, last, heuristic=ahead)
        if abs(found - length) > 1e-9:
            from tropel.errors import ModelError

            raise ModelError(f"networkx finds {found} m and we {length} m; a benchmark of wrong results means nothing")
    return (time.process_time() - begun) / len(pairs)
