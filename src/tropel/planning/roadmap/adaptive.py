"""Self-adaptive roadmaps (GROUPS section 4.3.2): only the path that is followed is kept right while things move.

The roadmap is built from what stands still. In each step the legs of every path are tested against what moves, over the
time it takes to walk them. The edges under a blocked leg are marked, and the leg is mended by the first of these that
works: an RRT-Connect between the ends, another path that avoids the marked edges, or the same with nodes added around
the place. Marks are lifted when their edges are free again. A traveller whose path is
about to be blocked stands until it is mended.

The weight of a subgoal grows while it is not reached. Past what its traveller allows, the traveller is trapped: the
edges around where it is stuck are closed to it for a while, and it asks for another path. Travellers differ in their
patience, so two groups that block each other do not both give way for ever.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key
from tropel.agents.state import Floats
from tropel.contracts import Moment, Rows
from tropel.foundation.arguments import PositiveCount, checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.planning.roadmap.chart import FOUND, RUNNING, Chart, Path, near_any
from tropel.planning.roadmap.following import ON_PATH
from tropel.planning.roadmap.moving import Capsules, blocked_by_capsules, capsules_of, find_blocked_legs
from tropel.planning.roadmap.planner import Clearance, RoadmapPlanner
from tropel.planning.roadmap.rejoining import (
    Rejoining,
    Repair,
    begin_rejoining,
    go_on_rejoining,
    joined_points,
    shortened_repair,
)
from tropel.planning.roadmap.sampling import Sampling
from tropel.planning.roadmap.space import FreeSpace, Moving
from tropel.planning.roadmap.travellers import NO_NUMBERS, Traveller

Time = Annotated[float, Quantity(name="time", low=0.0, high=1e6, unit="s")]

#: Marks of a subgoal that is not reached: stand still here, without going into it.
HELD = 4
#: What moves may be early or late by this much [s] when a path is tested, and when one is made.
_SLACK, _WIDER = 0.1, 0.3
#: A path that is blocked within this time is not walked on [s].
_TOO_NEAR = 0.6
#: After a repair that failed, the next one begins after this time [s].
_TRY_AGAIN = 0.3
#: Nodes that are added around a place that could not be passed, and the most that are added to a chart altogether.
_ADDED, _MOST_ADDED = 12, 600
#: How often nodes are added everywhere when there is no way around a jam.
_MORE_NODES = 3
#: How long a jam is avoided, in units of the patience.
_JAM_LASTS = 6.0
#: How long something that moves and could not be passed is avoided [s].
_IN_THE_WAY = 3.0


class AdaptiveRoadmap(RoadmapPlanner):
    """Follow a roadmap among things that move, and mend the path where they block it.

    The roadmap is that of `Roadmap`. With `predict`, what moves is expected to go on for `horizon` [s]; without, it
    counts where it is. `patience` [s] is how much longer than the walk to it a subgoal may take before a traveller is
    trapped; 0 means for ever. `repair` is "rejoin", or "rebuild" for the basic method, which tests the whole roadmap
    anew whenever the path is blocked.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        samples: PositiveCount = 300,
        neighbours: PositiveCount = 6,
        sampling: Sampling = "mixed",
        clearance: Clearance = 0.1,
        smooth: bool = True,
        budget: PositiveCount = 2000,
        predict: bool = True,
        horizon: Time = 3.0,
        patience: Time = 4.0,
        repair: Literal["rejoin", "rebuild"] = "rejoin",
    ) -> None:
        self.predict, self.horizon, self.patience = bool(predict), float(horizon), float(patience)
        self.repair = repair
        super().__init__(samples=samples, neighbours=neighbours, sampling=sampling, clearance=clearance, smooth=smooth,
                         budget=budget)  # fmt: skip

    @property
    def parameters(self) -> str:
        own = ", ".join(f"{name}={getattr(self, name)!r}" for name in ("predict", "horizon", "patience", "repair"))
        return f"{super().parameters}, {own}"

    def patience_of(self, chance: Floats) -> Floats:
        # Two that block each other must not lose their patience at the same time.
        return self.patience * (1.0 + chance) if self.patience > 0.0 else super().patience_of(chance)

    def forget_way(self, person: Traveller) -> None:
        person.marked, person.jams, person.rejoining = NO_NUMBERS, person.jams[:0], None

    # In each step -----------------------------------------------------------------------------------------------

    def _work(self, moment: Moment, rows: Rows) -> None:
        travellers, step = self._travellers, moment.step
        slots = travellers.slots(moment.state.id[rows])
        self._when = np.full(len(travellers), np.inf)  #: when each path is blocked, in seconds from now
        for chart, some, own in self._by_chart(moment.state, rows, slots):
            moving = chart.space.moving()
            self._look_for_traps(moment, chart, some, own)
            leg = self._blocked_legs(moment, chart, some, own, moving)
            busy = np.array([self._is_busy(travellers.people[slot], step) for slot in own.tolist()], dtype=np.bool_)
            for k in np.flatnonzero((leg >= 0) | busy).tolist():
                slot, row = int(own[k]), int(some[k])
                budget = self.budget
                self._lift_marks(travellers.people[slot], chart, moving)
                if leg[k] >= 0:
                    budget = self._mend(moment, chart, row, slot, int(leg[k]), moving, budget)
                person = travellers.people[slot]
                if budget > 0 and ((person.asks and step >= person.retry) or person.query is not None):
                    self.plan(moment, row, slot, budget)
                    self._when[slot] = self._blocked_when(moment, chart, row, slot, moving)

    def _is_busy(self, person: Traveller, step: int) -> bool:
        return person.query is not None or len(person.marked) > 0 or (person.asks and step >= person.retry)

    def _blocked_legs(self, moment: Moment, chart: Chart, rows: Rows, slots: Rows, moving: Moving) -> Rows:
        """The first leg of each path that is blocked, -1 for none."""
        leg, when = np.full(len(rows), -1), np.full(len(rows), np.inf)
        if len(moving.radius):
            state, travellers, tests = moment.state, self._travellers, np.zeros(len(rows), dtype=np.int64)
            find_blocked_legs(rows, slots, state.position, state.desired_speed, chart.space.radius, _SLACK,
                              travellers.way, travellers.count, travellers.index, moving, self.predict,
                              float(self.horizon), leg, when, tests)  # fmt: skip
            self.spent["path tests"] += int(tests.sum())
            self._when[slots] = when
        return leg

    def _blocked_when(self, moment: Moment, chart: Chart, row: int, slot: int, moving: Moving) -> float:
        rows, slots = np.array([row]), np.array([slot])
        self._blocked_legs(moment, chart, rows, slots, moving)
        return float(self._when[slot])

    def adjust(self, moment: Moment, chart: Chart, rows: Rows, slots: Rows, aim: Rows, status: Rows) -> None:
        """Whoever would soon walk into something stands, unless it would be run into where it stands."""
        near = np.flatnonzero((status == ON_PATH) & (self._when[slots] < _TOO_NEAR))
        if len(near):
            moving = chart.space.moving()
            capsules = capsules_of(moving, 0.0, _TOO_NEAR if self.predict else 0.0, slack=_SLACK)
            here = moment.state.position[rows[near]]
            run_into = blocked_by_capsules(here, here, chart.space.radius, capsules)
            status[near[~run_into]] = HELD

    # Marks ------------------------------------------------------------------------------------------------------

    def blocked_edges(self, chart: Chart, person: Traveller, moment: Moment) -> NDArray[np.uint8]:
        blocked = super().blocked_edges(chart, person, moment)
        blocked[person.marked[person.marked < len(blocked)]] = 1
        if len(person.jams):
            ends = chart.graph.nodes[chart.graph.edges]
            blocked |= near_any(ends[:, 0], ends[:, 1], person.jams).astype(np.uint8)
        return blocked

    def _mark(self, person: Traveller, chart: Chart, until: float, moving: Moving) -> None:
        """Mark the edges that the path was found through and that something is on within a span of time [s]."""
        assert person.path is not None
        pairs = zip(person.path.nodes[:-1].tolist(), person.path.nodes[1:].tolist(), strict=True)
        edges = np.array([chart.graph.edge_between(a, b) for a, b in pairs], dtype=np.int64)
        edges = edges[edges >= 0]
        places = chart.graph.nodes[chart.graph.edges[edges]]
        capsules = capsules_of(moving, 0.0, until, slack=_SLACK)
        blocked = blocked_by_capsules(places[:, 0], places[:, 1], chart.space.radius, capsules)
        self.spent["path tests"] += len(edges)
        person.marked = np.union1d(person.marked, edges[blocked])

    def _lift_marks(self, person: Traveller, chart: Chart, moving: Moving) -> None:
        """Lift the marks of edges that nothing is on any more."""
        if not len(person.marked):
            return
        known = person.marked[person.marked < len(chart.graph.edges)]
        places = chart.graph.nodes[chart.graph.edges[known]]
        capsules = capsules_of(moving, 0.0, 0.5 * self.horizon if self.predict else 0.0, slack=_SLACK)
        still = blocked_by_capsules(places[:, 0], places[:, 1], chart.space.radius, capsules)
        self.spent["path tests"] += len(known)
        person.marked = known[still]
        if not still.all() and person.path is None:
            person.retry = 0

    # Mending ----------------------------------------------------------------------------------------------------

    def _mend(self, moment: Moment, chart: Chart, row: int, slot: int, leg: int, moving: Moving, budget: int) -> int:
        """Mend the leg of a path that is blocked; returns what is left of the budget."""
        travellers, step = self._travellers, moment.step
        person = travellers.people[slot]
        if person.path is None or person.query is not None:
            return budget
        if self.repair == "rebuild":
            return self._rebuild(moment, chart, row, slot, moving, budget)
        if person.rejoining is None and step < person.retry:
            return budget
        if person.rejoining is None:
            self._mark(person, chart, self._span(moment, row, slot, leg, leg)[1], moving)
            self._begin_rejoining(moment, chart, row, slot, leg, moving)
        return self._go_on_rejoining(moment, chart, row, slot, moving, budget)

    def _span(self, moment: Moment, row: int, slot: int, leg: int, to: int) -> tuple[float, float]:
        """When a traveller is between the beginning of one leg and the end of another, in seconds from now."""
        travellers, state = self._travellers, moment.state
        way = travellers.way[slot]
        points = np.vstack([state.position[row][None], way[int(travellers.index[slot]) : to + 1]])
        marks = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
        marks /= max(float(state.desired_speed[row]), 1e-9)
        if not self.predict:
            return 0.0, 0.0
        since = float(marks[max(leg - int(travellers.index[slot]), 0)])
        return min(since, self.horizon), min(max(float(marks[-1]), since), since + self.horizon)

    def _begin_rejoining(self, moment: Moment, chart: Chart, row: int, slot: int, leg: int, moving: Moving) -> None:
        """Begin an RRT from the point before the blocked leg to the first point behind it that is not occupied."""
        travellers, person = self._travellers, self._travellers.people[slot]
        count, index = int(travellers.count[slot]), int(travellers.index[slot])
        way = travellers.way[slot]
        to = leg
        while to < count - 1:
            capsules = capsules_of(moving, *self._span(moment, row, slot, to, to), slack=_WIDER)
            if not blocked_by_capsules(way[to : to + 1], way[to : to + 1], chart.space.radius, capsules)[0]:
                break
            to += 1
        since = self._span(moment, row, slot, leg, to)[0]
        begin = moment.state.position[row] if leg == index else way[leg - 1]
        person.rejoining = begin_rejoining(begin, way[to], radius=chart.space.radius, number=moment.step, leg=leg,
                                           to=to, since=since)  # fmt: skip
        self.spent["rejoinings"] += 1

    def _go_on_rejoining(self, moment: Moment, chart: Chart, row: int, slot: int, moving: Moving, budget: int) -> int:
        travellers, person = self._travellers, self._travellers.people[slot]
        rejoining = person.rejoining
        assert rejoining is not None
        if rejoining.to >= travellers.count[slot] or rejoining.leg < travellers.index[slot]:
            person.rejoining = None  # the traveller has walked on
            return budget
        solid = self.solid_of(chart, self._shut_for(person))
        room = np.minimum(chart.space.radius, chart.space.clearance(rejoining.trees.place[:2], solid))
        seen = moving if self.predict else moving._replace(velocity=np.zeros_like(moving.velocity))
        repair = Repair(
            radius=chart.space.radius, first=float(room[0]), last=float(room[1]),
            speed=float(moment.state.desired_speed[row]), slack=_WIDER,
            passed=(moment.step - rejoining.number) * moment.dt, horizon=self.horizon if self.predict else np.inf,
            solid=solid, moving=seen,
        )  # fmt: skip
        key = random_key(moment.seed, "rejoining")
        status, tests = go_on_rejoining(rejoining, repair, key=key, agent=person.id, most=budget)
        self.spent["units"] += tests
        self.spent["rejoin tests"] += tests
        if status == FOUND:
            points = shortened_repair(joined_points(rejoining), float(rejoining.trees.time[0]), repair)
            self._splice(moment, slot, points)
            self._when[slot] = self._blocked_when(moment, chart, row, slot, moving)
            self.spent["rejoined"] += 1
        elif status != RUNNING:
            self._ask_around(moment, chart, slot, moving)
        return budget - tests

    def _splice(self, moment: Moment, slot: int, points: Floats) -> None:
        """Put the points of a repair in the place of the blocked legs."""
        travellers, person = self._travellers, self._travellers.people[slot]
        rejoining, path = person.rejoining, person.path
        assert rejoining is not None
        assert path is not None
        index, leg, to = int(travellers.index[slot]), rejoining.leg, rejoining.to
        way = travellers.way[slot, : int(travellers.count[slot])]
        # On the current leg the repair begins where the traveller is; that becomes the point before.
        before = way[: leg - 1] if leg == index else way[:leg]
        middle = points[:-1] if leg == index else points[1:-1]
        new = np.vstack([before, middle, way[to:]])
        person.path, person.rejoining, person.asks = None, None, False
        made = Path(points=new, nodes=path.nodes)
        travellers.give(slot, made, reach=float(travellers.reach[slot]), index=index)

    def _ask_around(self, moment: Moment, chart: Chart, slot: int, moving: Moving) -> None:
        """The ends could not be joined: keep clear of what is between them, and ask for another path.

        Nodes are added around the place, of which the roadmap has too few.
        """
        person = self._travellers.people[slot]
        rejoining = person.rejoining
        assert rejoining is not None
        ends = rejoining.trees.place[:2]
        self._keep_clear(moment, chart, person, rejoining, moving)
        person.rejoining, person.asks = None, True
        person.retry = moment.step + math.ceil(_TRY_AGAIN / moment.dt) * (person.failures > 0)
        person.failures += 1
        if len(chart.graph.nodes) < chart.built + _MOST_ADDED:
            within = max(float(np.linalg.norm(ends[1] - ends[0])), 6.0 * chart.space.radius)
            self.spent["units"] += chart.reinforce(_ADDED, around=ends.mean(axis=0), within=within)
            self.spent["nodes added"] += _ADDED

    def _keep_clear(
        self, moment: Moment, chart: Chart, person: Traveller, rejoining: Rejoining, moving: Moving
    ) -> None:
        """For a short while, what is in the way counts as a jam where it will be."""
        begin, end = rejoining.trees.place[:1], rejoining.trees.place[1:2]
        since = float(rejoining.trees.time[0])
        capsules = capsules_of(moving, since, since + 0.5 * self.horizon if self.predict else since, slack=_SLACK)
        until = moment.step + math.ceil(_IN_THE_WAY / moment.dt)
        for m in range(len(moving.radius)):
            one = Capsules(capsules.begin[m : m + 1], capsules.end[m : m + 1], capsules.radius[m : m + 1])
            if blocked_by_capsules(begin, end, chart.space.radius, one)[0]:
                jam = [*capsules.end[m], float(capsules.radius[m]) + chart.space.radius, until]
                person.jams = np.vstack([person.jams, [jam]])

    def no_path(self, moment: Moment, row: int, slot: int) -> None:
        """Add nodes to the roadmap, which may lack a way around; after some of that, keep the old path if there is one.

        It may become free again before another one does.
        """
        person = self._travellers.people[slot]
        chart = self.chart_for(moment.state, row, person)
        person.retry = moment.step + math.ceil(_TRY_AGAIN / moment.dt) * min(person.failures, 10)
        if len(person.jams) and person.failures <= _MORE_NODES and len(chart.graph.nodes) < chart.built + _MOST_ADDED:
            count = max(chart.built // 4, _ADDED)
            self.spent["units"] += chart.reinforce(count)
            self.spent["nodes added"] += count
            person.retry = moment.step
        elif len(person.jams):
            person.jams, person.retry = person.jams[:0], moment.step  # there is no way around them
        elif person.path is not None:
            person.asks = False

    def _rebuild(self, moment: Moment, chart: Chart, row: int, slot: int, moving: Moving, budget: int) -> int:
        """The basic method: build the whole roadmap anew around everything as it stands now, and query that."""
        person = self._travellers.people[slot]
        if moment.step < person.retry:
            return budget
        space = FreeSpace.of(self.world, chart.space.radius, everything=True)
        new = Chart.of(space, samples=self.samples, neighbours=self.neighbours, sampling=self.sampling, seed=self._seed)
        self._charts[person.radius, person.place] = new
        self.spent["rebuilds"] += 1
        self.spent["rebuild tests"] += new.graph.tests
        for other in self._travellers.people:
            if other.path is not None and other.radius == person.radius:
                # Its nodes were those of the old roadmap.
                other.path = Path(points=other.path.points, nodes=NO_NUMBERS)
                other.query = None
        person.asks, person.retry = True, moment.step
        return budget

    # Traps ------------------------------------------------------------------------------------------------------

    def _look_for_traps(self, moment: Moment, chart: Chart, rows: Rows, slots: Rows) -> None:
        """Who has not reached its subgoal for too long is trapped: it closes the place to itself, and asks again."""
        travellers, state = self._travellers, moment.state
        late = (travellers.weight[slots] > travellers.allowed[slots]) & (travellers.allowed[slots] > 0.0)
        for row, slot in zip(rows[late].tolist(), slots[late].tolist(), strict=True):
            person = travellers.people[slot]
            if travellers.count[slot] == 0 or person.query is not None:
                continue
            here, to = state.position[row], travellers.way[slot, int(travellers.index[slot])]
            away = float(np.linalg.norm(to - here))
            if int(travellers.index[slot]) == int(travellers.count[slot]) - 1 and away <= travellers.reach[slot]:
                continue
            # Whatever holds it is right ahead; the jam begins just before it and reaches as far as it sees.
            reach = 0.5 * max(float(state.sense_radius[row]), 4.0 * chart.space.radius)
            ahead = here + (to - here) * (reach / max(away, 1e-12))
            until = moment.step + math.ceil(_JAM_LASTS * float(travellers.patience[slot]) / moment.dt)
            person.jams = np.vstack([person.jams, [[*ahead, 0.9 * reach, until]]])
            person.asks, person.retry, person.rejoining = True, moment.step, None
            travellers.weight[slot] = 0.0
            self.spent["traps"] += 1
        for slot in slots.tolist():
            person = travellers.people[slot]
            if len(person.jams) and (person.jams[:, -1] <= moment.step).any():
                person.jams = person.jams[person.jams[:, -1] > moment.step]
