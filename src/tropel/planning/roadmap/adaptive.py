"""Self-adaptive roadmaps (GROUPS section 4.3.2): only the path that is followed is kept right while things move.

The roadmap is built from what stands still. In each step the legs of every path are tested against what moves, over the
time it takes to walk them. The edges under a blocked leg are marked, and the leg is mended by the first of these that
works: an RRT-Connect between the ends, another path that avoids the marked edges, or the same with nodes added around
the place. Marks are lifted when their edges are free again. A traveller whose path is about to be blocked stands until
it is mended.

The weight of a subgoal grows while it is not reached. Past what its traveller allows, the traveller is trapped: the
edges around where it is stuck are closed to it for a while, and it asks for another path. Travellers differ in their
patience, so two groups that block each other do not both give way for ever.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key
from tropel.agents.state import Floats
from tropel.contracts import Moment
from tropel.planning.roadmap.chart import Chart, Path
from tropel.planning.roadmap.graph import FOUND, RUNNING
from tropel.planning.roadmap.moving import Seen, Span, edges_swept, find_repair, see, sweepers_of
from tropel.planning.roadmap.parameters import AdaptiveRoadmapParameters
from tropel.planning.roadmap.planner import RoadmapPlanner
from tropel.planning.roadmap.rejoining import Rejoining, Repair, begin_rejoining, go_on_rejoining
from tropel.planning.roadmap.shortening import Going
from tropel.planning.roadmap.space import NO_CLOSER, Moving, MovingDiscs
from tropel.planning.roadmap.sweeps import near_any
from tropel.planning.roadmap.travellers import NO_NUMBERS, Traveller

#: What moves may be early or late by this much [s] when a path is tested, and when one is made.
_SLACK, _WIDER = 0.1, 0.3
#: Without prediction, a path that is made keeps clear of where something that moves goes within this time [s].
_UNPREDICTED = 0.2
#: A path that is blocked within this time is not walked on [s].
_TOO_NEAR = 0.6
#: Marks are looked at again after this time [s].
_REVIEW = 0.2
#: After a repair that failed, the next one begins after this time [s].
_TRY_AGAIN = 0.3
#: Nodes that are added around a place that could not be passed, and the most that are added to a chart altogether.
_ADDED, _MOST_ADDED = 12, 600
#: How often nodes are added everywhere when there is no way around a jam.
_MORE_NODES = 3
#: How long a jam is avoided, in units of the patience.
_JAM_LASTS = 6.0
#: Whoever can only walk around something by so much more time waits instead [s].
_WAIT = 1.5
#: How long something that moves and could not be passed is avoided [s].
_IN_THE_WAY = 3.0


class AdaptiveRoadmap(RoadmapPlanner):
    """Follow a roadmap among things that move, and mend the path where they block it.

    The roadmap is that of `Roadmap`. Paths are tested as far as they are walked within the `horizon` [s]: with
    `predict`, what moves is expected to go on; without, it counts where it is. `patience` [s] is how much longer than
    the walk to it a subgoal may take before a traveller is trapped; 0 means for ever.
    """

    parameters: AdaptiveRoadmapParameters
    hold = Span(0.0, _TOO_NEAR, _SLACK)
    slack = _SLACK

    def __init__(self, **parameters: Any) -> None:
        super().__init__(self.read_parameters(parameters))

    def read_parameters(self, given: dict[str, Any]) -> AdaptiveRoadmapParameters:
        return AdaptiveRoadmapParameters(**given)

    @property
    def horizon(self) -> float:
        return self.parameters.horizon

    def _begin(self, dim: int, seed: int) -> None:
        super()._begin(dim, seed)
        self._key = random_key(seed, "rejoining")
        self._seen: dict[float, tuple[MovingDiscs, Seen]] = {}

    def patience_of(self, chance: Floats) -> Floats:
        # Two that block each other must not lose their patience at the same time.
        patience = self.parameters.patience
        return patience * (1.0 + chance) if patience > 0.0 else super().patience_of(chance)

    def forget_way(self, person: Traveller) -> None:
        person.marked, person.jams, person.rejoining = NO_NUMBERS, person.jams[:0], None

    # In each step -----------------------------------------------------------------------------------------------

    def _seen_by(self, radius: float) -> Seen:
        discs, known = self.space_of(radius).moving(), self._seen.get(radius)
        if known is None or known[0] is not discs:
            known = self._seen[radius] = (discs, see(discs, predict=self.parameters.predict, ahead=_UNPREDICTED))
        return known[1]

    def seen(self, radius: float) -> Moving:
        return self._seen_by(radius).tested

    def attend(self, moment: Moment, row: int, slot: int) -> None:
        travellers, step = self._travellers, moment.step
        person, path = travellers.people[slot], travellers.people[slot].path
        if len(person.jams) and (person.jams[:, -1] <= step).any():
            person.jams = person.jams[person.jams[:, -1] > step]
        if travellers.weight[slot] > travellers.allowed[slot] > 0.0:
            self._is_late(moment, row, slot)
        self._lift_marks(moment, person)
        budget, used = self.parameters.budget, 0
        if travellers.leg[slot] < 0:
            person.rejoining = None
        elif person.path is not None and person.query is None and not person.asks:
            used = self._spend(slot, self.mend(moment, row, slot, budget))
        if person.query is not None or person.checks or (person.asks and step >= person.retry):
            self._spend(slot, self.plan(moment, row, slot, budget - used))
        if person.path is not path:
            self._watch(moment, person.radius, np.array([row]), np.array([slot]))

    # Marks ------------------------------------------------------------------------------------------------------

    def blocked_edges(self, chart: Chart, person: Traveller) -> NDArray[np.uint8]:
        blocked = super().blocked_edges(chart, person)
        blocked[person.marked] = 1
        if len(person.jams):
            ends = chart.graph.nodes[chart.graph.edges]
            blocked |= near_any(ends[:, 0], ends[:, 1], person.jams).astype(np.uint8)
        return blocked

    def _swept(self, person: Traveller, edges: NDArray[np.int64], until: float) -> NDArray[np.bool_]:
        """Which edges of a traveller's chart something is on within a span of time [s]."""
        graph = self.chart_of(person).graph
        self.spent["path tests"] += len(edges)
        return edges_swept(edges, graph.edges, graph.nodes, person.radius, Span(0.0, until, _SLACK),
                           self.seen(person.radius))  # fmt: skip

    def _mark(self, moment: Moment, person: Traveller, until: float) -> None:
        """Mark the edges that the path was found through and that something is on within a span of time [s]."""
        assert person.path is not None
        edges = self.chart_of(person).graph.edges_along(person.path.nodes)
        found = edges[self._swept(person, edges, until)] if len(edges) else edges
        if len(found):
            if not len(person.marked):
                person.review = moment.step + math.ceil(_REVIEW / moment.dt)
            person.marked = np.union1d(person.marked, found)

    def _lift_marks(self, moment: Moment, person: Traveller) -> None:
        """Lift the marks of edges that nothing is on any more."""
        if len(person.marked) and person.review <= moment.step:
            person.review = moment.step + math.ceil(_REVIEW / moment.dt)
            still = self._swept(person, person.marked, 0.5 * self.parameters.horizon)
            if not still.all():
                person.marked = person.marked[still]
                if person.path is None:
                    person.retry = 0

    # Mending ----------------------------------------------------------------------------------------------------

    def mend(self, moment: Moment, row: int, slot: int, budget: int) -> int:
        """Mend the first leg of a path that is blocked, with at most so many units; returns how many it were."""
        person = self._travellers.people[slot]
        if person.rejoining is None:
            if moment.step < person.retry:
                return 0
            self._begin_rejoining(moment, row, slot)
        return self._go_on_rejoining(moment, row, slot, budget)

    def _begin_rejoining(self, moment: Moment, row: int, slot: int) -> None:
        """Begin an RRT from the point before the blocked leg to the first point behind it that is not occupied."""
        travellers, state = self._travellers, moment.state
        person = travellers.people[slot]
        leg, here, ends, room = int(travellers.leg[slot]), state.position[row], np.empty((2, self.dim)), np.empty(2)
        to, since, until = find_repair(
            here[0], here[1], here[2] if self.dim == 3 else 0.0, max(float(state.desired_speed[row]), 1e-9),
            person.radius, _WIDER, travellers.way[slot], travellers.count[slot], travellers.index[slot], leg,
            self._seen_by(person.radius).avoided, self.horizon, *self.solid_of(person.radius, self.shut_for(person)),
            ends, room,
        )  # fmt: skip
        room[room < person.radius] *= NO_CLOSER
        self._mark(moment, person, until)
        person.rejoining = begin_rejoining(ends, room, radius=person.radius, number=moment.step, leg=leg, to=to,
                                           since=since)  # fmt: skip
        self.spent["rejoinings"] += 1

    def _go_on_rejoining(self, moment: Moment, row: int, slot: int, budget: int) -> int:
        travellers, person = self._travellers, self._travellers.people[slot]
        rejoining = person.rejoining
        assert rejoining is not None
        if rejoining.to >= travellers.count[slot] or rejoining.leg < travellers.index[slot]:
            person.rejoining = None  # the traveller has walked on
            return 0
        solid = self.solid_of(person.radius, self.shut_for(person))
        going = Going(
            radius=person.radius, first=rejoining.first, last=rejoining.last,
            speed=max(float(moment.state.desired_speed[row]), 1e-9), slack=_WIDER,
            passed=(moment.step - rejoining.number) * moment.dt, horizon=self.horizon,
        )  # fmt: skip
        repair = Repair(going, solid, self._seen_by(person.radius).avoided)
        status, tests = go_on_rejoining(rejoining, repair, key=self._key, agent=person.id, most=budget)
        self.spent["rejoin tests"] += tests
        if status == FOUND:
            self._splice(slot)
            self.spent["rejoined"] += 1
        elif status != RUNNING:
            self._ask_around(moment, slot)
        return tests

    def _splice(self, slot: int) -> None:
        """Put the points of a repair in the place of the blocked legs."""
        travellers, person = self._travellers, self._travellers.people[slot]
        rejoining, path = person.rejoining, person.path
        assert rejoining is not None and rejoining.shortening is not None  # noqa: PT018
        assert path is not None
        index, leg, to, points = int(travellers.index[slot]), rejoining.leg, rejoining.to, rejoining.shortening.points
        way = travellers.way[slot, : int(travellers.count[slot])]
        # On the current leg the repair begins where the traveller is; that becomes the point before.
        before = way[: leg - 1] if leg == index else way[:leg]
        middle = points[:-1] if leg == index else points[1:-1]
        person.rejoining, person.asks = None, False
        made = Path(points=np.vstack([before, middle, way[to:]]), nodes=path.nodes)
        travellers.give(slot, made, reach=float(travellers.reach[slot]), index=index)

    def _ask_around(self, moment: Moment, slot: int) -> None:
        """The ends could not be joined: keep clear of what is between them, and ask for another path."""
        person = self._travellers.people[slot]
        rejoining = person.rejoining
        assert rejoining is not None
        self._keep_clear(moment, person, rejoining)
        person.rejoining = None
        person.ask(moment.step + math.ceil(_TRY_AGAIN / moment.dt) * (person.failures > 0))
        person.around = True
        person.failures += 1

    def _add_nodes(self, chart: Chart, count: int, *, around: Floats | None = None, within: float = 0.0) -> bool:
        """Begin to add nodes to a chart, unless it has many already; returns whether they are being added."""
        if len(chart.graph.nodes) >= chart.built + _MOST_ADDED:
            return False
        if chart.reinforce(count, around=around, within=within):
            self.spent["nodes added"] += count
        return True

    def _keep_clear(self, moment: Moment, person: Traveller, rejoining: Rejoining) -> None:
        """For a short while, what is in the way counts as a jam where it will be."""
        begin, end = rejoining.trees.place[:2]
        moving, since = self.seen(person.radius), float(rejoining.trees.time[0])
        span = Span(since, since + 0.5 * self.parameters.horizon, _SLACK)
        rows = sweepers_of(begin, end, person.radius, span, moving)
        which = moving.rows[rows]
        places = moving.position[which] + moving.predicted * span.time * moving.velocity[which]
        wide = moving.radius[which] + _SLACK * moving.speeds(rows) + person.radius
        until = np.full(len(rows), moment.step + math.ceil(_IN_THE_WAY / moment.dt))
        person.jams = np.vstack([person.jams, np.column_stack([places, wide, until])])

    def accepts(self, moment: Moment, slot: int, path: Path) -> bool:
        """A way around something that moves is taken if that is faster than to wait until it has passed.

        Otherwise a leader among many such things would turn back again and again.
        """
        travellers, person = self._travellers, self._travellers.people[slot]
        old = np.vstack([path.points[:1], travellers.way[slot, travellers.index[slot] : travellers.count[slot]]])
        if not person.around or person.path is None or not np.array_equal(old[-1], path.points[-1]):
            return True
        more = path.length - float(np.linalg.norm(np.diff(old, axis=0), axis=1).sum())
        row = int(moment.state.row_of(travellers.id[slot : slot + 1])[0])
        if more <= _WAIT * float(moment.state.desired_speed[row]) or not self._will_pass(slot, old):
            return True
        person.asks, person.query, person.around = False, None, False
        person.retry = moment.step + math.ceil(_TRY_AGAIN / moment.dt)
        self.spent["waits"] += 1
        return False

    def _will_pass(self, slot: int, points: Floats) -> bool:
        """Whether everything on the leg of a path that is blocked moves; `points` begins at the traveller."""
        travellers, radius = self._travellers, self._travellers.people[slot].radius
        leg = int(travellers.leg[slot]) - int(travellers.index[slot])
        if leg < 0:
            return True
        moving, span = self.seen(radius), Span(0.0, float(travellers.when[slot]) + _WAIT, _SLACK)
        return bool((moving.speeds(sweepers_of(points[leg], points[leg + 1], radius, span, moving)) > 0.0).all())

    def no_path(self, moment: Moment, slot: int, chart: Chart) -> None:
        """Add nodes to the roadmap, which may lack a way around; after some of that, keep the old path if there is one.

        It may become free again before another one does.
        """
        person = self._travellers.people[slot]
        person.retry = moment.step + math.ceil(_TRY_AGAIN / moment.dt) * min(person.failures, 10)
        if len(person.jams) and person.failures <= _MORE_NODES and self._add_around_jams(slot, chart):
            person.retry = moment.step
        elif len(person.jams):
            person.jams, person.retry = person.jams[:0], moment.step  # there is no way around them
        elif person.path is not None:
            person.asks = False

    def _add_around_jams(self, slot: int, chart: Chart) -> bool:
        """Add nodes where the roadmap seems to have too few: around what blocks the path, or else everywhere."""
        person = self._travellers.people[slot]
        if self._travellers.leg[slot] < 0 or person.failures > 2:
            return self._add_nodes(chart, max(chart.built // 4, _ADDED))
        *place, wide, _ = person.jams[-1].tolist()
        return self._add_nodes(chart, _ADDED, around=np.array(place), within=wide + 6.0 * person.radius)

    # Traps ------------------------------------------------------------------------------------------------------

    def _is_late(self, moment: Moment, row: int, slot: int) -> None:
        """Who has not reached its subgoal for too long is trapped: it closes the place to itself, and asks again."""
        travellers, state = self._travellers, moment.state
        person = travellers.people[slot]
        if travellers.count[slot] == 0 or person.query is not None:
            return
        here, to = state.position[row], travellers.way[slot, int(travellers.index[slot])]
        away = float(np.linalg.norm(to - here))
        if int(travellers.index[slot]) == int(travellers.count[slot]) - 1 and away <= travellers.reach[slot]:
            return
        # Whatever holds it is right ahead; the jam begins just before it and reaches as far as it sees.
        reach = 0.5 * max(float(state.sense_radius[row]), 4.0 * person.radius)
        ahead = here + (to - here) * (reach / max(away, 1e-12))
        until = moment.step + math.ceil(_JAM_LASTS * float(travellers.patience[slot]) / moment.dt)
        person.jams = np.vstack([person.jams, [[*ahead, 0.9 * reach, until]]])
        person.ask(moment.step)
        person.rejoining = None
        travellers.weight[slot] = 0.0
        self.spent["traps"] += 1
