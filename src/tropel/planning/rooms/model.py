"""Rooms and doors (GROUPS section 4.4): a gross path over doors, and a fine roadmap for each room on the way.

The gross graph has a node per portal (`floor_plan.py`). Doors that open and close switch its nodes and change nothing
else. The roadmap of a room is made when somebody enters it, or plans to, and is kept; on it the self-adaptive method
mends paths among things that move. A path leads to the next portal; once that is within vision and in sight, the path
through the next room is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Rows
from tropel.contracts.offers import RoadmapPath
from tropel.foundation.arguments import PositiveCount, checked_arguments
from tropel.planning.roadmap.adaptive import AdaptiveRoadmap, Time
from tropel.planning.roadmap.building import add_nodes
from tropel.planning.roadmap.chart import Chart, Path
from tropel.planning.roadmap.graph import FOUND, begin_search, found_path, go_on_searching
from tropel.planning.roadmap.places import GoalPlace
from tropel.planning.roadmap.planner import Clearance
from tropel.planning.roadmap.sampling import Sampling
from tropel.planning.roadmap.space import FreeSpace, Known
from tropel.planning.roadmap.sweeps import sweeps_blocked_each
from tropel.planning.roadmap.travellers import NO_NUMBERS, Traveller
from tropel.planning.rooms.floor_plan import Plan, read_floor_plan
from tropel.world.shapes import Polygonal

_UNLIMITED = 1 << 40
#: A room is not counted as left before its portal is this near, in radii, or in sight within vision.
_THERE = 0.5
_AGAIN = 1.0  #: [s]
_NOWHERE = np.empty(0)


class Rooms(AdaptiveRoadmap):
    """Plan from room to room over doors, and through each room on a roadmap of its own.

    Rooms are found from walls and doors; `regions` names regions that are rooms of their own. `samples` is the number
    of nodes per room. With `doors` "known", leaders know at once that a door is shut; with "seen", only when it is
    within vision and in sight. Everything else is as in `AdaptiveRoadmap`.
    """

    @checked_arguments
    def __init__(
        self,
        *,
        samples: PositiveCount = 40,
        neighbours: PositiveCount = 6,
        sampling: Sampling = "mixed",
        clearance: Clearance = 0.1,
        smooth: bool = True,
        budget: PositiveCount = 2000,
        predict: bool = True,
        horizon: Time = 3.0,
        patience: Time = 4.0,
        doors: Literal["known", "seen"] = "known",
        regions: Sequence[str] = (),
    ) -> None:
        super().__init__(samples=samples, neighbours=neighbours, sampling=sampling, clearance=clearance, smooth=smooth,
                         budget=budget, predict=predict, horizon=horizon, patience=patience)  # fmt: skip
        self.doors, self.regions = doors, tuple(regions)

    @property
    def parameters(self) -> str:
        return f"{super().parameters}, doors={self.doors!r}, regions={self.regions!r}"

    def _begin(self, dim: int, seed: int) -> None:
        super()._begin(dim, seed)
        self._plans: dict[float, Plan] = {}
        self._spaces: dict[float, FreeSpace] = {}
        self._usable: dict[tuple[float, bytes], NDArray[np.bool_]] = {}

    # Rooms ------------------------------------------------------------------------------------------------------

    def plan_of(self, radius: float) -> Plan:
        """Rooms and portals for bodies that keep this radius free."""
        if radius not in self._plans:
            self._plans[radius] = read_floor_plan(self.world, radius, self.regions)
        return self._plans[radius]

    def region_of(self, radius: float, place: int) -> Polygonal | None:
        return self.plan_of(radius).rooms[place]

    def make_chart(self, radius: float, place: int) -> Chart:
        """The roadmap of a room: samples in it, and its portals."""
        plan = self.plan_of(radius)
        chart = Chart.of(self._space(radius, place, None), samples=self.samples, neighbours=self.neighbours,
                         sampling=self.sampling, seed=self._seed + place)  # fmt: skip
        portals = plan.portals_of(place)
        if len(portals):
            add_nodes(chart.space, chart.graph, plan.graph.nodes[portals], 2 * self.neighbours)
        self.spent["tests"] += chart.graph.tests
        return chart

    def empty_chart(self, radius: float, place: int, known: Known) -> Chart:
        return replace(super().empty_chart(radius, place, known), space=self._space(radius, place, known))

    def _space(self, radius: float, place: int, known: Known | None) -> FreeSpace:
        # Rooms share what stands still: its cells take longer than the roadmap of a room.
        if radius not in self._spaces:
            self._spaces[radius] = FreeSpace.of(self.world, radius, known=known)
        return replace(self._spaces[radius], region=self.plan_of(radius).rooms[place])

    def _usable_portals(self, radius: float, shut: NDArray[np.bool_]) -> NDArray[np.bool_]:
        key = (radius, shut.tobytes())
        if key not in self._usable:
            if len(self._usable) > 256:
                self._usable.clear()
            self._usable[key] = self.plan_of(radius).usable(shut)
        return self._usable[key]

    # The gross level --------------------------------------------------------------------------------------------

    def gross_path(
        self, radius: float, here: Floats, place: GoalPlace, shut: NDArray[np.bool_]
    ) -> tuple[int, NDArray[np.int64]] | None:
        """The room to begin in, and rows of a portal and the room behind it; None if there is no path."""
        plan, within = self.plan_of(radius), 2.5 * radius + 1e-6
        first = plan.rooms_at(here, within)
        last = {room for point in place.points for room in plan.rooms_at(point, within)}
        if common := [room for room in first if room in last]:
            return common[0], np.empty((0, 2), dtype=np.int64)
        usable = self._usable_portals(radius, shut)
        graph = plan.graph
        blocked = ~(usable[graph.edges[:, 0]] & usable[graph.edges[:, 1]])
        nodes = np.concatenate([NO_NUMBERS, *(plan.portals_of(room) for room in first)])
        ends = np.concatenate([NO_NUMBERS, *(plan.portals_of(room) for room in sorted(last))])
        nodes, ends = nodes[usable[nodes]], np.unique(ends[usable[ends]])
        to_goal = np.full(len(graph.nodes), np.inf)
        away = np.linalg.norm(graph.nodes[ends][:, None] - place.points[None], axis=2)
        to_goal[ends] = away.min(axis=1) if len(ends) else np.inf
        cost = np.linalg.norm(graph.nodes[nodes] - here, axis=1)
        search = begin_search(graph, first=nodes, cost=cost, to_goal=to_goal, goal=place.points,
                              blocked=blocked.astype(np.uint8))  # fmt: skip
        status, work = go_on_searching(graph, search, _UNLIMITED)
        self.spent["units"] += work
        self.spent["gross queries"] += 1
        if status != FOUND:
            return None
        path = found_path(search)
        begin = next(room for room in first if room in plan.portals[path[0]].rooms)
        stages, room = [], begin
        for k, portal in enumerate(path.tolist()):
            following = last if k == len(path) - 1 else set(plan.portals[path[k + 1]].rooms)
            room = next(r for r in plan.portals[portal].rooms if r in following and (r != room or len(following) == 1))
            stages.append((portal, room))
        return begin, np.array(stages, dtype=np.int64)

    def _stages(self, person: Traveller) -> NDArray[np.int64]:
        return person.stages.reshape(-1, 2)

    # Planning ---------------------------------------------------------------------------------------------------

    def plan(self, moment: Moment, row: int, slot: int, budget: int) -> int:
        """Find the gross path, and the fine one through the room that comes first."""
        person, place = self._travellers.people[slot], self.place_of(self._travellers.people[slot].goal)
        if place is None:
            return budget
        if person.query is None and not self._is_going_on(person):
            person.radius = self.radius_of(float(moment.state.radius[row]))
            found = self.gross_path(person.radius, moment.state.position[row], place, self._shut_for(person))
            if found is None:
                person.failures += 1
                person.retry = moment.step + math.ceil(_AGAIN / moment.dt)
                self._travellers.give(slot, None)
                return budget
            room, stages = found
            if room != person.place:
                _leave(person)
            person.place, person.stages = room, stages.reshape(-1)
        stages = self._stages(person)
        return self.plan_to(moment, row, slot, self._portal_place(person) if len(stages) else place, budget)

    def _portal_place(self, person: Traveller) -> GoalPlace:
        plan = self.plan_of(person.radius)
        point = plan.portals[int(self._stages(person)[0, 0])].point
        return GoalPlace(points=point[None].copy(), reach=np.zeros(1), moves=False, name="a door")

    def _is_going_on(self, person: Traveller) -> bool:
        """Whether it plans its way through the next room while it walks to the portal."""
        return len(person.beyond) > 0

    def start_of(self, person: Traveller, position: Floats) -> Floats:
        return person.beyond if self._is_going_on(person) else position

    def give(self, slot: int, path: Path, place: GoalPlace) -> None:
        person = self._travellers.people[slot]
        if self._is_going_on(person):
            # Behind the portal that the traveller is still walking to.
            behind = self._travellers.way[slot, : int(self._travellers.count[slot])]
            begin = behind[-2:-1] if len(behind) > 1 else behind[-1:]
            path = Path(points=np.vstack([begin, path.points]), nodes=path.nodes)
        person.beyond = _NOWHERE
        super().give(slot, path, place)

    def no_path(self, moment: Moment, row: int, slot: int) -> None:
        self._travellers.people[slot].beyond = _NOWHERE
        super().no_path(moment, row, slot)

    def why_no_path(self, state: AgentState, row: int, person: Traveller, place: GoalPlace) -> str:
        radius = self.radius_of(float(state.radius[row]))
        plan, nothing = self.plan_of(radius), np.zeros(len(self.world.doors), dtype=np.bool_)
        if self.gross_path(radius, state.position[row], place, nothing) is not None:
            return super().why_no_path(state, row, person, place)
        first = plan.rooms_at(state.position[row], 2.5 * radius)
        last = [room for point in place.points for room in plan.rooms_at(point, 2.5 * radius)]
        if not first or not last:
            return "it starts in a wall or obstacle" if not first else f"{place.name} is in a wall or obstacle"
        said = [_room_text(plan, room) for room in (first[0], last[0])]
        return (
            f"it starts in {said[0]} and {place.name} is in {said[1]} of {len(plan.rooms)} rooms, which no doors join"
        )

    def connected(self, moment: Moment, row: int, place: GoalPlace) -> bool:
        """Whether only shut doors are in the way."""
        radius, here = self.radius_of(float(moment.state.radius[row])), moment.state.position[row]
        nothing = np.zeros(len(self.world.doors), dtype=np.bool_)
        person = self._travellers.people[int(self._travellers.slots(moment.state.id[row : row + 1])[0])]
        if self.gross_path(radius, here, place, nothing) is None:
            return False
        return self.gross_path(radius, here, place, self._shut_for(person)) is None

    # In each step -----------------------------------------------------------------------------------------------

    def _work(self, moment: Moment, rows: Rows) -> None:
        slots = self._travellers.slots(moment.state.id[rows])
        if self.doors == "seen" and len(self.world.doors):
            for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
                self._look_at_doors(moment, row, self._travellers.people[slot])
        self._enter_rooms(moment, rows, slots)
        super()._work(moment, rows)

    def _enter_rooms(self, moment: Moment, rows: Rows, slots: Rows) -> None:
        """Whoever sees the portal that its path ends at plans its way through the room behind it."""
        travellers, state = self._travellers, moment.state
        last = (travellers.count[slots] > 0) & (travellers.index[slots] == travellers.count[slots] - 1)
        for row, slot in zip(rows[last].tolist(), slots[last].tolist(), strict=True):
            person = travellers.people[slot]
            stages = self._stages(person)
            if not len(stages) or person.query is not None or person.asks or self._is_going_on(person):
                continue
            end, here = travellers.way[slot, int(travellers.count[slot]) - 1], state.position[row]
            away = float(np.linalg.norm(end - here))
            if away > _THERE * person.radius and (away > state.sense_radius[row] or not self._sees(person, here, end)):
                continue
            person.place, person.stages = int(stages[0, 1]), stages[1:].reshape(-1)
            person.beyond = end.copy()
            person.asks, person.retry = True, moment.step
            _leave(person)
            self.spent["rooms entered"] += 1

    def _sees(self, person: Traveller, here: Floats, there: Floats) -> bool:
        chart = self.chart_of(person.radius, person.place)
        solid = self.solid_of(chart, self._doors_shut())
        return not sweeps_blocked_each(here[None], there[None], np.zeros(1), solid)[0]

    def _shut_for(self, person: Traveller) -> NDArray[np.bool_]:
        if self.doors == "known":
            return super()._shut_for(person)
        if len(person.shut) != len(self.world.doors):
            person.shut = np.zeros(len(self.world.doors), dtype=np.bool_)
        return person.shut

    def _look_at_doors(self, moment: Moment, row: int, person: Traveller) -> None:
        """Update what a traveller knows of the doors that it sees."""
        truth, believed = self._doors_shut(), self._shut_for(person)
        here, vision = moment.state.position[row], float(moment.state.sense_radius[row])
        chart = self.chart_for(moment.state, row, person)
        wrong = np.flatnonzero(truth != believed)
        for door in wrong.tolist():
            segments = chart.space.door_segments[chart.space.door_numbers == door]
            middle = 0.5 * (segments[:, :2] + segments[:, 2:]).mean(axis=0)
            others = truth.copy()
            others[door] = False
            if (
                np.linalg.norm(middle - here) <= vision
                and not sweeps_blocked_each(here[None], middle[None], np.zeros(1), self.solid_of(chart, others))[0]
            ):
                person.shut = believed = believed.copy()
                believed[door] = truth[door]
                person.asks, person.query, person.retry = True, None, moment.step
                person.beyond = _NOWHERE

    def doors_changed(self, moment: Moment, rows: Rows) -> None:
        """Only the gross level changes: whoever's next portal stays the same keeps its path."""
        if self.doors == "seen":
            return
        state, travellers = moment.state, self._travellers
        for row, slot in zip(rows.tolist(), travellers.slots(state.id[rows]).tolist(), strict=True):
            person, place = travellers.people[slot], self.place_of(travellers.people[slot].goal)
            if place is None or not person.radius:
                continue
            found = self.gross_path(person.radius, state.position[row], place, self._shut_for(person))
            before = self._stages(person)
            same = found is not None and person.path is not None and not self._is_going_on(person) and not person.asks
            if same and found is not None and found[0] == person.place and np.array_equal(found[1][:1], before[:1]):
                person.stages = found[1].reshape(-1)
                if not self._path_crosses_shut_door(person, slot):
                    continue
            person.asks, person.query, person.retry = True, None, moment.step
            person.beyond = _NOWHERE

    def _path_crosses_shut_door(self, person: Traveller, slot: int) -> bool:
        points = self._travellers.way[slot, : int(self._travellers.count[slot])]
        chart = self.chart_of(person.radius, person.place)
        solid = self.solid_of(chart, self._shut_for(person))
        return bool(sweeps_blocked_each(points[:-1], points[1:], np.zeros(len(points) - 1), solid).any())

    def _goal_has_moved(self, slot: int, here: Floats) -> None:
        # A path that ends at a portal does not end at the goal.
        if not len(self._stages(self._travellers.people[slot])):
            super()._goal_has_moved(slot, here)

    def forget_way(self, person: Traveller) -> None:
        super().forget_way(person)
        person.stages, person.beyond = NO_NUMBERS, _NOWHERE

    def shown_paths(self) -> list[RoadmapPath]:
        """Paths with what is ahead on the gross level: the next portals, and the goal."""
        shown, by_id = [], {person.id: person for person in self._travellers.people}
        for path in super().shown_paths():
            person = by_id[path.agent]
            place, stages = self.place_of(person.goal), self._stages(person)
            if place is not None and len(stages) and len(path.points):
                portals = self.plan_of(person.radius).graph.nodes[stages[1:, 0]]
                nearest = np.argmin(np.linalg.norm(place.points - path.points[-1], axis=1))
                path = replace(path, points=np.vstack([path.points, portals, place.points[nearest][None]]))
            shown.append(path)
        return shown

    def shown_gross(self) -> tuple[Floats, Floats]:
        for radius, plan in self._plans.items():
            usable = self._usable_portals(radius, self._doors_shut())
            ends = plan.graph.nodes[plan.graph.edges]
            free = usable[plan.graph.edges].all(axis=1)
            return ends[free], ends[~free]
        return super().shown_gross()


def _leave(person: Traveller) -> None:
    """Forget nodes and edges of the roadmap of a room: those of the next one have the same numbers."""
    person.marked, person.rejoining = NO_NUMBERS, None
    if person.path is not None:
        person.path = Path(points=person.path.points, nodes=NO_NUMBERS)


def _room_text(plan: Plan, room: int) -> str:
    at = plan.rooms[room].representative_point()
    return f"room {room + 1} (around ({at.x:.3g}, {at.y:.3g}))"
