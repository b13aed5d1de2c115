"""What roadmap planners share: charts for bodies of each radius, travellers with their paths, and queries.

Work is counted in units, one for each segment tested or node expanded. A traveller has a budget of units per step, the
same on every machine; what is left goes on in the next step. Before the first step there is no budget.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key, uniforms
from tropel.agents.state import NO_GOAL, AgentState, Floats
from tropel.contracts import Guidance, Moment, Planner, Rows
from tropel.contracts.offers import RoadmapPath
from tropel.errors import CheckpointError, ParameterError, PathError
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.foundation.quantities import Quantity
from tropel.planning.roadmap.chart import FOUND, RUNNING, Chart, Path, rounded_radius
from tropel.planning.roadmap.following import LOST, follow_paths, towards
from tropel.planning.roadmap.graph import Graph
from tropel.planning.roadmap.places import GoalPlace, goal_numbers, place_of_goal, place_of_point
from tropel.planning.roadmap.sampling import Sampling
from tropel.planning.roadmap.shown import edges_of, nodes_of, offered_roadmaps, paths_of
from tropel.planning.roadmap.space import FreeSpace, Known
from tropel.planning.roadmap.stored import read_charts, stored_charts
from tropel.planning.roadmap.sweeps import Solid
from tropel.planning.roadmap.travellers import Traveller, Travellers
from tropel.world import World
from tropel.world.shapes import Polygonal

#: The distance to walls that bodies keep.
Clearance = Annotated[float, Quantity(name="clearance", low=0.0, high=LARGEST_LENGTH, unit="m")]

#: Before the run, nodes are added so often, as many as there are, before a goal counts as out of reach.
_ROUNDS = 3
#: Whoever found no path asks again after this time [s], and whoever has lost its path after this one.
_ASK_AGAIN, _LOOK_AGAIN = 1.0, 0.4
#: A path to a goal that moves is planned again when the goal has moved by this share of its distance.
_MOVED = 0.2
_UNLIMITED = 1 << 40


class RoadmapPlanner(Planner):
    """What roadmap planners share; see the module."""

    def __init__(
        self, *, samples: int, neighbours: int, sampling: Sampling, clearance: float, smooth: bool, budget: int
    ) -> None:
        self.samples, self.neighbours, self.sampling = int(samples), int(neighbours), sampling
        self.clearance, self.smooth, self.budget = float(clearance), bool(smooth), int(budget)
        self.spent: Counter[str] = Counter()  #: units of work and happenings so far, by kind
        self._begin(2, 0)

    def _begin(self, dim: int, seed: int) -> None:
        self._seed = seed
        self._charts: dict[tuple[float, int], Chart] = {}
        self._travellers = Travellers(dim)
        self._places: dict[int, GoalPlace | None] = {}
        self._goals: Any = None
        self._points: dict[int, Floats] = {}  #: goals that are points, by number
        self._shut: NDArray[np.bool_] | None = None
        self._solids: dict[tuple[int, bytes], Solid] = {}
        self._world: World | None = None
        self._rounded: dict[float, float] = {}
        self._version = -1  #: of the state when agents that are gone were last looked for

    @property
    def world(self) -> World:
        if self._world is None:
            raise ParameterError("a roadmap belongs to a simulation: build one with it first")
        return self._world

    @property
    def dim(self) -> int:
        return self._travellers.dim

    @property
    def charts(self) -> dict[tuple[float, int], Chart]:
        """Roadmaps so far, by the radius that they keep free [m] and the part of the world that they are of."""
        return self._charts

    @property
    def travellers(self) -> Travellers:
        return self._travellers

    @property
    def parameters(self) -> str:
        """Everything that changes directions; part of digests. Kinds of roadmaps add their own."""
        names = ("samples", "neighbours", "sampling", "clearance", "smooth", "budget")
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in names)

    # Charts and places ------------------------------------------------------------------------------------------

    def radius_of(self, radius: float) -> float:
        """The radius that paths of a body keep free [m]: its own with the clearance, rounded up."""
        return rounded_radius(radius + self.clearance)

    def chart_of(self, radius: float, place: int = 0) -> Chart:
        """The chart for bodies that keep this radius free; made if there is none yet."""
        if (radius, place) not in self._charts:
            self._charts[radius, place] = self.make_chart(radius, place)
            self.spent["charts"] += 1
        return self._charts[radius, place]

    def make_chart(self, radius: float, place: int) -> Chart:
        made = Chart.of(FreeSpace.of(self.world, radius), samples=self.samples, neighbours=self.neighbours,
                        sampling=self.sampling, seed=self._seed)  # fmt: skip
        self.spent["tests"] += made.graph.tests
        return made

    def empty_chart(self, radius: float, place: int, known: Known) -> Chart:
        """A chart without nodes, for what a checkpoint holds; `known` are the obstacles that stood still."""
        graph = Graph(nodes=np.empty((0, self.dim)), edges=np.empty((0, 2), dtype=np.int64),
                      doors=np.empty((0, 2), dtype=np.int32))  # fmt: skip
        space = FreeSpace.of(self.world, radius, region=self.region_of(radius, place), known=known)
        return Chart(space=space, graph=graph, neighbours=self.neighbours, sampling=self.sampling, samples=self.samples,
                     seed=self._seed + place)  # fmt: skip

    def region_of(self, radius: float, place: int) -> Polygonal | None:
        """The part of the world that a chart is of; None for all of it."""
        return None

    def solid_of(self, chart: Chart, shut: NDArray[np.bool_]) -> Solid:
        """What stands still for a chart, with the doors that are shut."""
        key = (id(chart), shut.tobytes())
        if key not in self._solids:
            if len(self._solids) > 64:
                self._solids.clear()
            self._solids[key] = chart.space.with_doors(shut)
        return self._solids[key]

    def place_of(self, goal: int) -> GoalPlace | None:
        """Where a goal is in this step."""
        if goal not in self._places:
            point = self._points.get(goal)
            self._places[goal] = place_of_goal(self.world, goal) if point is None else place_of_point(point)
        return self._places[goal]

    # Calls from the simulation ----------------------------------------------------------------------------------

    def prepare(self, moment: Moment) -> None:
        """Build the charts and plan the first path of everybody; raise if somebody can never get to its goal."""
        self._begin(moment.world.dim, moment.seed)
        self.spent.clear()
        self._world = moment.world
        self._shut = self._doors_shut()
        rows = self._led(moment)
        self._keep_up(moment.state, rows)
        self._ask_for_new_goals(moment.state, rows)
        for row in rows.tolist():
            self._plan_first(moment, row)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write a unit vector towards the next point of each member's path."""
        state = moment.state
        out.directions[moment.members] = 0.0
        self._world = moment.world
        rows = self._led(moment)
        self._keep_up(state, rows)
        self._notice(moment, rows)
        self._work(moment, rows)
        self._follow(moment, rows, out)

    def _led(self, moment: Moment) -> Rows:
        """The members that want to get somewhere and have started."""
        members = moment.members
        wants = moment.state.goal[members] != NO_GOAL
        if len(moment.waiting):
            wants &= ~moment.waiting[members]
        return members[wants]

    def _keep_up(self, state: AgentState, rows: Rows) -> None:
        """Know everybody that is led, and forget agents that are gone."""
        travellers = self._travellers
        new = rows[~travellers.known(state.id[rows])]
        gone = np.zeros(len(travellers), dtype=np.bool_)
        if self._version != state.version and len(travellers):
            gone = state.row_of(travellers.id) < 0
        self._version = state.version
        if len(new) or gone.any():
            ids, goals = state.id[new], goal_numbers(state, new)[0]
            chance = uniforms(random_key(self._seed, "patience"), ids)[:, 0] if len(ids) else np.empty(0)
            people = [Traveller(id=int(number), goal=int(goal)) for number, goal in zip(ids, goals, strict=True)]
            for person in people:
                person.jams = np.empty((0, state.dim + 2))
            travellers.change(gone=gone, new=people, patience=self.patience_of(chance))

    def patience_of(self, chance: Floats) -> Floats:
        """How long each traveller waits for a subgoal beyond the time it takes [s], given a random number."""
        return np.full(len(chance), LARGEST_LENGTH)

    def _doors_shut(self) -> NDArray[np.bool_]:
        return np.array([not door.open for door in self.world.doors.values()], dtype=np.bool_)

    def _notice(self, moment: Moment, rows: Rows) -> None:
        """Ask for new paths where goals, doors or places of goals have changed."""
        shut = self._doors_shut()
        if self._shut is None or not np.array_equal(shut, self._shut):
            self._shut = shut
            self.doors_changed(moment, rows)
        self._ask_for_new_goals(moment.state, rows)

    def doors_changed(self, moment: Moment, rows: Rows) -> None:
        for person in self._travellers.people:
            person.asks, person.query = True, None

    def _ask_for_new_goals(self, state: AgentState, rows: Rows) -> None:
        goals = self.world.goals()
        before = self._places
        if goals is not self._goals:
            self._goals, self._places = goals, {}
        numbers, self._points = goal_numbers(state, rows)
        used = set(numbers)
        self._places = {goal: place for goal, place in self._places.items() if place is not None and not place.moves}
        now = {goal: self.place_of(goal) for goal in used}
        moving = {
            goal
            for goal, place in now.items()
            if place is None or place.moves or (goal in before and not _same_place(before[goal], place))
        }
        travellers = self._travellers
        for row, goal, slot in zip(rows.tolist(), numbers, travellers.slots(state.id[rows]).tolist(), strict=True):
            person = travellers.people[slot]
            if person.goal != goal:
                person.goal, person.asks, person.query, person.retry = goal, True, None, 0
                self.forget_way(person)
            elif goal in moving:
                self._goal_has_moved(slot, state.position[row])

    def _goal_has_moved(self, slot: int, here: Floats) -> None:
        """The end of a path goes with its goal; where that is not enough, a new path is asked for."""
        travellers = self._travellers
        person, place = travellers.people[slot], self.place_of(travellers.people[slot].goal)
        if place is None:
            travellers.give(slot, None)
            person.asks, person.query = True, None
        elif person.path is not None:
            end = travellers.way[slot, travellers.count[slot] - 1]
            nearest = place.points[np.argmin(np.linalg.norm(place.points - end, axis=1))]
            if np.linalg.norm(nearest - person.planned) > _MOVED * np.linalg.norm(nearest - here):
                person.asks = True
            else:
                end[:] = person.path.points[-1] = nearest

    def forget_way(self, person: Traveller) -> None:
        """A traveller has another goal: whatever it remembered of its way means nothing now."""
        person.marked = person.marked[:0]

    # Planning ---------------------------------------------------------------------------------------------------

    def _plan_first(self, moment: Moment, row: int) -> None:
        """Plan before the run: with as much work as it takes, and more nodes if need be."""
        state, slot = moment.state, int(self._travellers.slots(moment.state.id[row : row + 1])[0])
        person, place = self._travellers.people[slot], self.place_of(self._travellers.people[slot].goal)
        if place is None:
            return
        for turn in range(_ROUNDS + 1):
            self.plan(moment, row, slot, _UNLIMITED)
            if person.path is not None or self.connected(moment, row, place):
                return
            if turn < _ROUNDS:
                self.reinforce_for(moment, row)
                person.retry = 0
        at = ", ".join(f"{c:.4g}" for c in state.position[row])
        raise PathError(
            f"agent {int(state.id[row])}{_of_group(state, row)} at ({at}) cannot get to {place.name}: "
            f"{self.why_no_path(state, row, person, place)}; connect the two, move one "
            f"of them, or use a smaller radius, a smaller clearance or more samples"
        )

    def why_no_path(self, state: AgentState, row: int, person: Traveller, place: GoalPlace) -> str:
        return self.chart_for(state, row, person).why_no_path(state.position[row], place)

    def chart_for(self, state: AgentState, row: int, person: Traveller) -> Chart:
        """The chart that a traveller plans on now."""
        person.radius = self.radius_of(float(state.radius[row]))
        return self.chart_of(person.radius, person.place)

    def chart_key(self, person: Traveller) -> tuple[float, int]:
        return person.radius, person.place

    def reinforce_for(self, moment: Moment, row: int) -> None:
        slot = int(self._travellers.slots(moment.state.id[row : row + 1])[0])
        chart = self.chart_for(moment.state, row, self._travellers.people[slot])
        self.spent["tests"] += chart.reinforce(chart.samples)

    def connected(self, moment: Moment, row: int, place: GoalPlace) -> bool:
        """Whether there is a path with all doors open: then it is worth waiting."""
        chart = self.chart_of(self.radius_of(float(moment.state.radius[row])))
        if not len(chart.space.door_segments):
            return False
        nothing = np.zeros(len(chart.graph.edges), dtype=np.uint8)
        begun = chart.begin(moment.state.position[row], place, chart.space.solid, nothing)
        return isinstance(begun, Path) or chart.go_on(begun, _UNLIMITED)[0] == FOUND

    def _work(self, moment: Moment, rows: Rows) -> None:
        """Let everybody that has something to plan do so, in the order of ids, each within its budget."""
        travellers = self._travellers
        slots = travellers.slots(moment.state.id[rows])
        order = np.argsort(slots, kind="stable")
        for row, slot in zip(rows[order].tolist(), slots[order].tolist(), strict=True):
            person = travellers.people[slot]
            if (person.asks and moment.step >= person.retry) or person.query is not None:
                self.plan(moment, row, slot, self.budget)

    def blocked_edges(self, chart: Chart, person: Traveller, moment: Moment) -> NDArray[np.uint8]:
        """The edges that a traveller does not take."""
        return chart.edges_behind(self._shut_for(person))

    def _shut_for(self, person: Traveller) -> NDArray[np.bool_]:
        """The doors that a traveller thinks are shut."""
        assert self._shut is not None
        return self._shut

    def plan(self, moment: Moment, row: int, slot: int, budget: int) -> int:
        """Work on a traveller's path with about this many units; returns how many are left."""
        place = self.place_of(self._travellers.people[slot].goal)
        return budget if place is None else self.plan_to(moment, row, slot, place, budget)

    def plan_to(self, moment: Moment, row: int, slot: int, place: GoalPlace, budget: int) -> int:
        """Work on a traveller's path to a place on its chart."""
        state, person = moment.state, self._travellers.people[slot]
        chart = self.chart_for(state, row, person)
        solid = self.solid_of(chart, self._shut_for(person))
        before = chart.work
        if person.query is None:
            blocked = self.blocked_edges(chart, person, moment)
            self.spent["queries"] += 1
            start = self.start_of(person, state.position[row])
            begun = chart.begin(start, place, solid, blocked, straight=not len(person.jams), jams=person.jams)
            if isinstance(begun, Path):
                self.give(slot, begun, place)
                return budget - self._spend(chart, before)
            person.query = begun
        status, _ = chart.go_on(person.query, max(budget - (chart.work - before), 1))
        if status == FOUND:
            path = chart.finish(person.query, place, solid, smooth=self.smooth and not len(person.jams))
            self.give(slot, path, place)
        elif status != RUNNING:
            person.query = None
            person.failures += 1
            person.retry = moment.step + math.ceil(_ASK_AGAIN / moment.dt)
            self.no_path(moment, row, slot)
        return budget - self._spend(chart, before)

    def _spend(self, chart: Chart, before: int) -> int:
        self.spent["units"] += chart.work - before
        return chart.work - before

    def no_path(self, moment: Moment, row: int, slot: int) -> None:
        """A query has found nothing: the traveller stands and asks again later."""
        self._travellers.give(slot, None)

    def start_of(self, person: Traveller, position: Floats) -> Floats:
        """Where a path begins."""
        return position

    def give(self, slot: int, path: Path, place: GoalPlace) -> None:
        person = self._travellers.people[slot]
        person.asks, person.query, person.rejoining, person.failures = False, None, None, 0
        nearest = int(np.argmin(np.linalg.norm(place.points - path.points[-1], axis=1)))
        person.planned = path.points[-1].copy()
        self._travellers.give(slot, path, reach=float(place.reach[nearest]))

    # Following --------------------------------------------------------------------------------------------------

    def _by_chart(self, state: AgentState, rows: Rows, slots: Rows) -> list[tuple[Chart, Rows, Rows]]:
        """Everybody that has a path, by the chart it is on."""
        travellers = self._travellers
        together: dict[tuple[float, int], list[int]] = {}
        for k, (radius, slot) in enumerate(zip(state.radius[rows].tolist(), slots.tolist(), strict=True)):
            if radius not in self._rounded:
                self._rounded[radius] = self.radius_of(radius)
            together.setdefault((self._rounded[radius], travellers.people[slot].place), []).append(k)
        if len(together) == 1:
            return [(self.chart_of(*next(iter(together))), rows, slots)]
        return [(self.chart_of(*key), rows[some], slots[some]) for key, some in sorted(together.items())]

    def _follow(self, moment: Moment, rows: Rows, out: Guidance) -> None:
        state, travellers = moment.state, self._travellers
        assert self._shut is not None
        for chart, some, slots in self._by_chart(state, rows, travellers.slots(state.id[rows])):
            aim, status = np.zeros(len(some), dtype=np.int64), np.zeros(len(some), dtype=np.int64)
            follow_paths(some, slots, state.position, state.sense_radius, state.desired_speed, chart.space.radius,
                         travellers.reach, travellers.way, travellers.count, travellers.index, travellers.weight,
                         travellers.allowed, travellers.patience, float(moment.dt),
                         *self.solid_of(chart, self._shut), aim, status)  # fmt: skip
            for slot in slots[status == LOST].tolist():
                person = travellers.people[slot]
                if not person.asks:
                    person.asks, person.retry = True, moment.step + math.ceil(_LOOK_AGAIN / moment.dt)
            self.adjust(moment, chart, some, slots, aim, status)
            towards(some, slots, aim, status, state.position, travellers.way, out.directions)

    def adjust(self, moment: Moment, chart: Chart, rows: Rows, slots: Rows, aim: Rows, status: Rows) -> None:
        """Change where travellers of a chart go in this step, or how they stand to their paths."""
        return

    # What others see, and checkpoints ---------------------------------------------------------------------------

    def offers(self) -> tuple[object, ...]:
        return offered_roadmaps(self)

    def shown_nodes(self) -> Floats:
        return nodes_of(self)

    def shown_edges(self) -> Floats:
        return edges_of(self)

    def shown_paths(self) -> list[RoadmapPath]:
        return paths_of(self)

    def shown_gross(self) -> tuple[Floats, Floats]:
        return np.empty((0, 2, 2)), np.empty((0, 2, 2))

    def state(self) -> dict[str, NDArray[Any]]:
        shut = {} if self._shut is None else {"shut": self._shut}
        return {**shut, **stored_charts(self._charts), **self._travellers.state()}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        if self._world is None:
            raise CheckpointError("a roadmap is restored after the simulation has been built")
        travellers = self._travellers.read(stored)
        charts = read_charts(stored, self)
        self._check(travellers, charts)
        self._travellers, self._charts = travellers, charts
        self._solids, self._places, self._goals = {}, {}, None
        self._shut = np.array(stored["shut"], dtype=np.bool_) if "shut" in stored else None

    def _check(self, travellers: Travellers, charts: dict[tuple[float, int], Chart]) -> None:
        nodes = max((len(chart.graph.nodes) for chart in charts.values()), default=0)
        for person in travellers.people:
            if person.path is not None and (person.path.nodes >= nodes).any():
                raise CheckpointError("a stored path leads through a node that the roadmap does not have")


def _same_place(one: GoalPlace | None, other: GoalPlace | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one.points, other.points) and np.array_equal(one.reach, other.reach)


def _of_group(state: AgentState, row: int) -> str:
    names = state.group_names
    return f" of group '{names[state.group[row]]}'" if len(names) else ""
