"""What roadmap planners share: travellers with their paths, and queries.

Work is counted in units, one for each segment tested, node expanded or dart thrown. A traveller has a budget of units
per step, the same on every machine; what is left goes on in the next step. Before the first step there is no budget.
In most steps nobody has anything to plan: then one kernel does everything.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import SMALL_RUN
from tropel._kernels.philox import random_key, uniforms
from tropel.agents.goals import Aim
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Guidance, Moment, Rows
from tropel.contracts.offers import RoadmapPath
from tropel.errors import CheckpointError, PathError
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.planning.roadmap.chart import LEAST_BUDGET, UNLIMITED, Chart, Path
from tropel.planning.roadmap.chart_keeper import ChartKeeper
from tropel.planning.roadmap.distance import lengths_to
from tropel.planning.roadmap.following import CALLED, LOST, NEWS, find_led, follow_paths, walk_on
from tropel.planning.roadmap.goals import GoalBook
from tropel.planning.roadmap.graph import FOUND, RUNNING
from tropel.planning.roadmap.moving import Span, watch_paths
from tropel.planning.roadmap.parameters import RoadmapParameters
from tropel.planning.roadmap.places import GoalPlace
from tropel.planning.roadmap.shown import edges_of, nodes_of, offered_roadmaps, paths_of
from tropel.planning.roadmap.space import Moving, no_motion
from tropel.planning.roadmap.stored import check_stored, read_charts, stored_charts
from tropel.planning.roadmap.travellers import Traveller, Travellers

#: Before the run, nodes are added so often, as many as there are, before a goal counts as out of reach.
_ROUNDS = 5
#: Whoever found no path asks again after this time [s], and whoever has lost its path after this one.
_ASK_AGAIN, _LOOK_AGAIN = 1.0, 0.4
#: A path to a goal that moves is planned again when the goal has moved by this share of its distance.
_MOVED = 0.2


class RoadmapPlanner(ChartKeeper):
    """What roadmap planners share; see the module."""

    #: When a path that is about to be blocked is not walked on.
    hold = Span(0.0, 0.0, 0.0)
    #: What moves may be early or late by this much when a path is tested [s].
    slack = 0.0

    def __init__(self, parameters: RoadmapParameters) -> None:
        self.parameters = parameters
        self.spent: Counter[str] = Counter()  #: units of work and happenings so far, by kind
        self._begin(2, 0)

    def _begin(self, dim: int, seed: int) -> None:
        super()._begin(dim, seed)
        self._travellers = Travellers(dim)
        self._goals = GoalBook()
        self._shut: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._believed: NDArray[np.bool_] | None = None  #: doors that each slot believes shut, if knowledge is limited
        self._blocking = b""  #: of all walls and doors when doors were last looked at
        self._version = -1  #: of the state when agents that are gone were last looked for
        self._alike = False  #: whether all travellers keep the same radius free

    @property
    def travellers(self) -> Travellers:
        return self._travellers

    @property
    def dim(self) -> int:
        return self._travellers.dim

    def place_of(self, person: Traveller) -> GoalPlace | None:
        """Where a traveller's goal is in this step."""
        return self._goals.place_of(self.world, person.goal)

    # Calls from the simulation ----------------------------------------------------------------------------------

    def prepare(self, moment: Moment) -> None:
        """Build the charts and plan the first path of everybody; raise if somebody can never get to its goal."""
        self._begin(moment.world.dim, moment.seed)
        self.spent.clear()
        self._world = moment.world
        self._shut = self._doors_shut()
        self._believed = None
        rows, slots = self._led(moment)
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            self._plan_first(moment, row, slot)

    @property
    def horizon(self) -> float:
        """Paths are tested as far as they are walked in this time [s]."""
        return 0.0

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write a unit vector towards the next point of each member's path."""
        self._world = moment.world
        if self._walks_on(moment, out.directions):
            return
        rows, slots = self._led(moment)
        if len(rows) < len(moment.members):
            out.directions[moment.members] = 0.0
        if len(rows):
            parties = self._parties(rows, slots)
            self._work(moment, parties)
            for radius, some, own in parties:
                for shut, part in self._by_belief(own):
                    self._follow(moment, radius, some[part], own[part], out.directions, shut)

    def _walks_on(self, moment: Moment, directions: Floats) -> bool:
        """Do the step in one call, but for those that have something to plan; returns whether it was done.

        Only in small crowds: on more threads, those calls are faster that come one after the other.
        """
        members, travellers = moment.members, self._travellers
        if not (self._alike and len(travellers) and len(members) < SMALL_RUN):
            return False
        if moment.beliefs is not None or not self._is_quiet(moment):
            return False
        radius, slots, column = float(travellers.wide[0]), np.empty(len(members), dtype=np.int64), moment.state.columns
        ended, lost, tests = walk_on(
            members, moment.waiting, column["id"], column["goal"], column["goal_point"], column["radius"],
            column["position"], column["sense_radius"], column["desired_speed"], radius, self.slack, travellers.columns,
            moment.step, float(moment.dt), self.hold, *self.solid_of(radius, self._shut), self.seen(radius),
            self.horizon, slots, directions,
        )  # fmt: skip
        if ended == NEWS:
            return False
        self.spent["path tests"] += tests
        if ended == CALLED:
            led = slots >= 0
            self._attend_called(moment, members[led], slots[led])
            self._follow(moment, radius, members[led], slots[led], directions)
        elif lost:
            self._look_again(moment, slots[slots >= 0])
        return True

    def _is_quiet(self, moment: Moment) -> bool:
        """Whether there is nothing to look at that kernels do not see."""
        same = self._version == moment.state.version and self._blocking == moment.world.blocking.tobytes()
        return same and not self._goals.have_changed(moment.world)

    def _led(self, moment: Moment) -> tuple[Rows, Rows]:
        """The rows of members that want to get somewhere and have started, and their slots."""
        state, world, travellers = moment.state, moment.world, self._travellers
        rows, slots = np.empty_like(moment.members), np.empty_like(moment.members)
        count, news, self._alike = find_led(
            moment.members, moment.waiting, state.id, state.goal, state.goal_point, state.radius, travellers.columns,
            rows, slots,
        )  # fmt: skip
        rows, slots = rows[:count], slots[:count]
        # None of this happens in most steps.
        if news or self._version != state.version:
            slots, self._alike = self._keep_up(moment, rows), False
        if self._blocking != (blocking := world.blocking.tobytes()):
            self._blocking = blocking
            self._look_at_doors(moment, rows, slots)
        if moment.beliefs is not None:
            self._look_at_beliefs(moment, rows, slots, moment.beliefs.shut_doors(rows))
        if news or self._goals.have_changed(world):
            self._look_at_goals(moment, rows, slots)
        return rows, slots

    def _look_at_beliefs(self, moment: Moment, rows: Rows, slots: Rows, shut: NDArray[np.bool_]) -> None:
        """Travellers plan with the doors that they believe shut."""
        people = self._travellers.people
        self._believed = np.zeros((len(people), shut.shape[1]), dtype=np.bool_)
        for row, slot, own in zip(rows.tolist(), slots.tolist(), shut, strict=True):
            person, self._believed[slot] = people[slot], own
            if len(person.shut) != len(own):
                person.shut = own.copy()
            elif (person.shut != own).any():
                person.shut = own.copy()
                self.doors_changed(moment, row, person)
                self._travellers.note(slot)

    def _by_belief(self, slots: Rows) -> list[tuple[NDArray[np.bool_], Any]]:
        """The doors that are shut for some of these slots, and which of the slots that are."""
        if self._believed is None:
            return [(self._shut, slice(None))]
        kinds, which = np.unique(self._believed[slots], axis=0, return_inverse=True)
        return [(shut, np.flatnonzero(which.ravel() == number)) for number, shut in enumerate(kinds)]

    def _keep_up(self, moment: Moment, rows: Rows) -> Rows:
        """Know everybody that is led, forget agents that are gone, and return the slots."""
        state, travellers = moment.state, self._travellers
        self._version = state.version
        new = rows[~travellers.known(state.id[rows])]
        gone = state.row_of(travellers.id) < 0 if len(travellers) else np.zeros(0, dtype=np.bool_)
        if len(new) or gone.any():
            ids = state.id[new]
            chance = uniforms(random_key(self._seed, "patience"), ids)[:, 0] if len(ids) else np.empty(0)
            people = [
                Traveller(id=number, goal=goal, jams=np.empty((0, state.dim + 2)))
                for number, goal in zip(ids.tolist(), self._goals.numbers_of(state, new), strict=True)
            ]
            travellers.change(gone=gone, new=people, patience=self.patience_of(chance))
        slots = travellers.slots(state.id[rows])
        travellers.goal[slots], travellers.point[slots] = state.goal[rows], state.goal_point[rows]
        for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
            self._has_body(moment, slot, float(state.radius[row]))
        return slots

    def _has_body(self, moment: Moment, slot: int, radius: float) -> None:
        """A traveller has a body of this radius; another one than before needs another path."""
        travellers, person = self._travellers, self._travellers.people[slot]
        if travellers.body[slot] == radius:
            return
        travellers.body[slot], wide = radius, self.radius_of(radius)
        if person.radius != wide:
            if person.radius:
                self.forget_way(person)
                person.ask(moment.step)
            person.radius = wide
        travellers.note(slot)

    def patience_of(self, chance: Floats) -> Floats:
        """How long each traveller waits for a subgoal beyond the time it takes [s], given a random number."""
        return np.full(len(chance), LARGEST_LENGTH)

    def _doors_shut(self) -> NDArray[np.bool_]:
        return np.array([not door.open for door in self.world.doors.values()], dtype=np.bool_)

    def shut_now(self) -> NDArray[np.bool_]:
        """The doors that are shut in this step, in the order of the world's doors."""
        return self._doors_shut()

    def _look_at_doors(self, moment: Moment, rows: Rows, slots: Rows) -> None:
        shut = self._doors_shut()
        if not np.array_equal(shut, self._shut):
            self._shut = shut
            if moment.beliefs is not None:
                return  # nobody is told
            for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
                self.doors_changed(moment, row, self._travellers.people[slot])
                self._travellers.note(slot)

    def doors_changed(self, moment: Moment, row: int, person: Traveller) -> None:
        """Ask for a path that takes doors into account that have opened or shut."""
        person.ask(max(person.retry, moment.step))

    def _look_at_goals(self, moment: Moment, rows: Rows, slots: Rows) -> None:
        """Ask for new paths where goals or their places have changed."""
        state, travellers = moment.state, self._travellers
        numbers = self._goals.numbers_of(state, rows)
        moving = self._goals.look(moment.world, numbers)
        for row, goal, slot in zip(rows.tolist(), numbers, slots.tolist(), strict=True):
            person = travellers.people[slot]
            if person.goal != goal:
                person.goal = goal
                person.ask(0)
                self.forget_way(person)
            elif goal in moving:
                self.goal_has_moved(moment, slot, state.position[row])
            travellers.note(slot)

    def goal_has_moved(self, moment: Moment, slot: int, here: Floats) -> None:
        """The end of a path goes with its goal; where that is not enough, a new path is asked for."""
        travellers = self._travellers
        person = travellers.people[slot]
        place = self.place_of(person)
        if place is None:
            travellers.give(slot, None)
            person.ask(person.retry)
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

    def _plan_first(self, moment: Moment, row: int, slot: int) -> None:
        """Plan before the run: with as much work as it takes, and more nodes if need be."""
        state, person = moment.state, self._travellers.people[slot]
        place = self.place_of(person)
        if place is None:
            return
        for turn in range(_ROUNDS + 1):
            self.plan(moment, row, slot, UNLIMITED)
            self._travellers.note(slot)
            if person.path is not None or self.waits_for_doors(moment, row, person, place):
                return
            if turn < _ROUNDS:
                chart = self.chart_of(person)
                # Twice as many each time: passages may be narrow for a room that has few samples.
                chart.reinforce(max(chart.samples, len(chart.graph.nodes)))
                person.retry = 0
        at = ", ".join(f"{c:.4g}" for c in state.position[row])
        raise PathError(
            f"agent {int(state.id[row])}{_of_group(state, row)} at ({at}) cannot get to {place.name}: "
            f"{self.why_no_path(state.position[row], person, place)}; connect the two, move one "
            f"of them, or use a smaller radius, a smaller clearance or more samples"
        )

    def why_no_path(self, here: Floats, person: Traveller, place: GoalPlace) -> str:
        return self.chart_of(person).why_no_path(here, place)

    def waits_for_doors(self, moment: Moment, row: int, person: Traveller, place: GoalPlace) -> bool:
        """Whether there is a path with all doors open: then it is worth waiting."""
        chart = self.chart_of(person)
        if not len(chart.space.door_segments):
            return False
        nothing = np.zeros(len(chart.graph.edges), dtype=np.uint8)
        return chart.path_to(moment.state.position[row], place, chart.space.solid, nothing) is not None

    def _parties(self, rows: Rows, slots: Rows) -> list[tuple[float, Rows, Rows]]:
        """Everybody that is led, by the radius they keep free."""
        if self._alike:
            return [(float(self._travellers.wide[slots[0]]), rows, slots)]
        wide = self._travellers.wide[slots]
        return [(radius, rows[wide == radius], slots[wide == radius]) for radius in np.unique(wide).tolist()]

    def _work(self, moment: Moment, parties: list[tuple[float, Rows, Rows]]) -> None:
        """Let everybody that has something to plan do so, in the order of ids, each within its budget."""
        travellers = self._travellers
        travellers.used[:] = 0
        for radius, rows, slots in parties:
            if self._watch(moment, radius, rows, slots):
                self._attend_called(moment, rows, slots)

    def _attend_called(self, moment: Moment, rows: Rows, slots: Rows) -> None:
        called = np.flatnonzero(self._travellers.calls[slots])
        for k in called[np.argsort(slots[called])].tolist():
            self.attend(moment, int(rows[k]), int(slots[k]))
            self._travellers.note(int(slots[k]))

    def _watch(self, moment: Moment, radius: float, rows: Rows, slots: Rows) -> int:
        """Find the first blocked leg of each path, and whoever has something to do; returns how many."""
        state = moment.state
        called, tests = watch_paths(
            rows, slots, state.position, state.desired_speed, radius, self.slack, self._travellers.columns, moment.step,
            self.seen(radius), self.horizon,
        )  # fmt: skip
        self.spent["path tests"] += tests
        return int(called)

    def attend(self, moment: Moment, row: int, slot: int) -> None:
        """A traveller has something to do."""
        person = self._travellers.people[slot]
        if person.query is not None or (person.asks and moment.step >= person.retry):
            self._spend(slot, self.plan(moment, row, slot, self.parameters.budget))

    def _spend(self, slot: int, used: int) -> int:
        self.spent["units"] += used
        self._travellers.used[slot] += used
        return used

    def blocked_edges(self, chart: Chart, person: Traveller) -> NDArray[np.uint8]:
        """The edges that a traveller does not take."""
        return chart.edges_behind(self.shut_for(person))

    def shut_for(self, person: Traveller) -> NDArray[np.bool_]:
        """The doors that a traveller thinks are shut."""
        return self._shut if self._believed is None else person.shut

    def plan(self, moment: Moment, row: int, slot: int, budget: int) -> int:
        """Work on a traveller's path with at most so many units; returns how many it were."""
        place = self.place_of(self._travellers.people[slot])
        return 0 if place is None else self.plan_to(moment, row, slot, place, budget)

    def plan_to(self, moment: Moment, row: int, slot: int, place: GoalPlace, budget: int) -> int:
        """Work on a traveller's path to a place on its chart.

        Nodes that are being added to the chart come first: whoever wants a path on it adds them.
        """
        person = self._travellers.people[slot]
        chart, solid = self.chart_of(person), self.solid_of(person.radius, self.shut_for(person))
        used = chart.grow(budget)
        if person.query is not None and chart.is_of_old(person.query):
            person.query = None
        if chart.growing is not None or (person.query is None and budget - used < LEAST_BUDGET):
            return used
        if person.query is None:
            begun, tests = chart.begin_query(
                self.start_of(person, moment.state.position[row]), place, solid, self.blocked_edges(chart, person),
                smooth=self.parameters.smooth and not len(person.jams), jams=person.jams,
            )  # fmt: skip
            used += tests
            self.spent["queries"] += 1
            if isinstance(begun, Path):
                self.give(slot, begun, place)
                return used
            person.query = begun
        status, work = chart.go_on(person.query, solid, budget - used)
        if status == FOUND:
            path = chart.found(person.query, solid)
            if self.accepts(moment, slot, path):
                self.give(slot, path, place)
        elif status != RUNNING:
            person.ask(moment.step + math.ceil(_ASK_AGAIN / moment.dt))
            person.failures += 1
            self.no_path(moment, slot, chart)
        return used + work

    def no_path(self, moment: Moment, slot: int, chart: Chart) -> None:
        """A query has found nothing: the traveller stands and asks again later."""
        self._travellers.give(slot, None)

    def accepts(self, moment: Moment, slot: int, path: Path) -> bool:
        """Whether a traveller takes a path that it has asked for; if not, it keeps the one it has."""
        return True

    def start_of(self, person: Traveller, position: Floats) -> Floats:
        """Where a path begins."""
        return position

    def give(self, slot: int, path: Path, place: GoalPlace) -> None:
        person = self._travellers.people[slot]
        person.asks, person.query, person.rejoining, person.failures, person.routed = False, None, None, 0, False
        nearest = int(np.argmin(np.linalg.norm(place.points - path.points[-1], axis=1)))
        person.planned = path.points[-1].copy()
        self._travellers.give(slot, path, reach=float(place.reach[nearest]))

    # Following --------------------------------------------------------------------------------------------------

    def _follow(
        self, moment: Moment, radius: float, rows: Rows, slots: Rows, directions: Floats,
        shut: NDArray[np.bool_] | None = None,
    ) -> None:  # fmt: skip
        state = moment.state
        lost = follow_paths(
            rows, slots, state.position, state.sense_radius, state.desired_speed, radius, self._travellers.columns,
            float(moment.dt), self.hold, *self.solid_of(radius, self._shut if shut is None else shut),
            self.seen(radius), directions,
        )  # fmt: skip
        if lost:
            self._look_again(moment, slots)

    def _look_again(self, moment: Moment, slots: Rows) -> None:
        """Whoever has lost its path soon asks for another one."""
        travellers = self._travellers
        for slot in slots[travellers.status[slots] == LOST].tolist():
            person = travellers.people[slot]
            if not person.asks:
                person.asks, person.retry = True, moment.step + math.ceil(_LOOK_AGAIN / moment.dt)
                travellers.note(slot)

    def seen(self, radius: float) -> Moving:
        """What moves, for travellers that keep this radius free."""
        return no_motion(self.dim)

    # What others see, and checkpoints ---------------------------------------------------------------------------

    def offers(self) -> tuple[object, ...]:
        return offered_roadmaps(self)

    def length_to(self, aim: Aim, positions: Floats, radius: float) -> Floats | None:
        return lengths_to(self, aim, positions, radius)

    def shown_nodes(self) -> Floats:
        return nodes_of(self)

    def shown_edges(self) -> Floats:
        return edges_of(self)

    def shown_paths(self) -> list[RoadmapPath]:
        return paths_of(self)

    def shown_gross(self) -> tuple[Floats, Floats]:
        return np.empty((0, 2, 2)), np.empty((0, 2, 2))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"shut": self._shut, **stored_charts(self._charts), **self._travellers.state()}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        if self._world is None:
            raise CheckpointError("a roadmap is restored after the simulation has been built")
        travellers = self._travellers.read(stored)
        self._spaces, self._solids = {}, {}
        charts = read_charts(stored, self)
        check_stored(travellers, charts)
        self._travellers, self._charts = travellers, charts
        self._goals, self._blocking, self._version = GoalBook(), b"", -1
        self._shut = np.array(stored.get("shut", self._doors_shut()), dtype=np.bool_)


def _of_group(state: AgentState, row: int) -> str:
    names = state.group_names
    return f" of group '{names[state.group[row]]}'" if len(names) else ""
