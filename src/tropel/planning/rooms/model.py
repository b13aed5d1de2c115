"""Rooms and doors (GROUPS section 4.4): a gross path over doors, and a fine roadmap for each room on the way.

The gross graph has a node per portal (`floor_plan.py`). Doors that open and close switch its nodes and change nothing
else. The roadmap of a room is made when somebody enters it, or plans to, and is kept; on it the self-adaptive method
mends paths among things that move. A path leads to the next portal; once that is within vision and in sight, the path
through the next room is added. Gross searches and new roadmaps count as work, and may take several steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.contracts import Moment, Rows
from tropel.contracts.offers import RoadmapPath
from tropel.errors import named_parameters
from tropel.foundation.quantities import number
from tropel.planning.roadmap.adaptive import AdaptiveRoadmap
from tropel.planning.roadmap.chart import UNLIMITED, Chart, Path
from tropel.planning.roadmap.graph import FOUND, RUNNING, Search, begin_search, found_path, go_on_searching
from tropel.planning.roadmap.parameters import AdaptiveRoadmapParameters
from tropel.planning.roadmap.places import GoalPlace
from tropel.planning.roadmap.sweeps import sweeps_blocked_each
from tropel.planning.roadmap.travellers import NO_NUMBERS, NOWHERE, Traveller
from tropel.planning.rooms.floor_plan import Plan, read_floor_plan
from tropel.world.shapes import Polygonal

#: A room is not counted as left before its portal is this near, in radii, or in sight within vision.
_THERE = 0.5
_AGAIN = 1.0  #: [s]
#: Whoever is in a wall or doorway is in the rooms this near [radii].
_NEAR_ROOM = 2.5


@named_parameters
@dataclass(frozen=True, kw_only=True)
class RoomsParameters(AdaptiveRoadmapParameters):
    """Parameters of `Rooms`."""

    samples: int = number(40, whole=True, low=1, about="nodes of the roadmap of a room")
    doors: Literal["known", "seen"] = "known"
    regions: Sequence[str] = ()


class Rooms(AdaptiveRoadmap):
    """Plan from room to room over doors, and through each room on a roadmap of its own.

    Rooms are found from walls and doors; `regions` names regions that are rooms of their own. `samples` is the number
    of nodes per room. With `doors` "known", leaders know at once that a door is shut; with "seen", only when it is
    within vision and in sight. Everything else is as in `AdaptiveRoadmap`.
    """

    parameters: RoomsParameters

    def read_parameters(self, given: dict[str, Any]) -> RoomsParameters:
        return RoomsParameters(**given)

    def _begin(self, dim: int, seed: int) -> None:
        super()._begin(dim, seed)
        self._plans: dict[float, Plan] = {}
        self._usable: dict[tuple[float, bytes], NDArray[np.bool_]] = {}

    # Rooms ------------------------------------------------------------------------------------------------------

    def plan_of(self, radius: float) -> Plan:
        """Rooms and portals for bodies that keep this radius free."""
        if radius not in self._plans:
            self._plans[radius] = read_floor_plan(self.world, radius, tuple(self.parameters.regions))
        return self._plans[radius]

    def region_of(self, radius: float, place: int) -> Polygonal | None:
        return self.plan_of(radius).rooms[place]

    def given_nodes(self, radius: float, place: int) -> Floats | None:
        plan = self.plan_of(radius)
        return plan.graph.nodes[plan.portals_of(place)]

    def _usable_portals(self, radius: float, shut: NDArray[np.bool_]) -> NDArray[np.bool_]:
        key = (radius, shut.tobytes())
        if key not in self._usable:
            if len(self._usable) > 256:
                self._usable.clear()
            self._usable[key] = self.plan_of(radius).usable(shut)
        return self._usable[key]

    # The gross level --------------------------------------------------------------------------------------------

    def _rooms_of(self, radius: float, place: GoalPlace) -> set[int]:
        plan, within = self.plan_of(radius), _NEAR_ROOM * radius + 1e-6
        return {room for point in place.points for room in plan.rooms_at(point, within)}

    def _rooms_at(self, radius: float, here: Floats) -> list[int]:
        return self.plan_of(radius).rooms_at(here, _NEAR_ROOM * radius + 1e-6)

    def begin_gross(
        self, radius: float, here: Floats, place: GoalPlace, shut: NDArray[np.bool_]
    ) -> Search | tuple[int, NDArray[np.int64]]:
        """A search over portals, or the room at once if start and goal are in the same."""
        plan, graph = self.plan_of(radius), self.plan_of(radius).graph
        first, last = self._rooms_at(radius, here), self._rooms_of(radius, place)
        if common := [room for room in first if room in last]:
            return common[0], np.empty((0, 2), dtype=np.int64)
        usable = self._usable_portals(radius, shut)
        blocked = ~(usable[graph.edges[:, 0]] & usable[graph.edges[:, 1]])
        nodes = np.concatenate([NO_NUMBERS, *(plan.portals_of(room) for room in first)])
        ends = np.concatenate([NO_NUMBERS, *(plan.portals_of(room) for room in sorted(last))])
        nodes, ends = nodes[usable[nodes]], np.unique(ends[usable[ends]])
        to_goal = np.full(len(graph.nodes), np.inf)
        away = np.linalg.norm(graph.nodes[ends][:, None] - place.points[None], axis=2)
        to_goal[ends] = away.min(axis=1) if len(ends) else np.inf
        cost = np.linalg.norm(graph.nodes[nodes] - here, axis=1)
        self.spent["gross queries"] += 1
        return begin_search(graph, first=nodes, cost=cost, to_goal=to_goal, goal=place.points,
                            blocked=blocked.astype(np.uint8))  # fmt: skip

    def found_gross(
        self, radius: float, here: Floats, place: GoalPlace, search: Search
    ) -> tuple[int, NDArray[np.int64]]:
        """The room to begin in, and rows of a portal and the room behind it."""
        plan, path = self.plan_of(radius), found_path(search)
        last = self._rooms_of(radius, place)
        begin = next(room for room in self._rooms_at(radius, here) if room in plan.portals[path[0]].rooms)
        stages, room = [], begin
        for k, portal in enumerate(path.tolist()):
            following = last if k == len(path) - 1 else set(plan.portals[path[k + 1]].rooms)
            room = next(r for r in plan.portals[portal].rooms if r in following and (r != room or len(following) == 1))
            stages.append((portal, room))
        return begin, np.array(stages, dtype=np.int64)

    def gross_path(
        self, radius: float, here: Floats, place: GoalPlace, shut: NDArray[np.bool_]
    ) -> tuple[int, NDArray[np.int64]] | None:
        """The room to begin in, and rows of a portal and the room behind it; None if there is no path."""
        begun = self.begin_gross(radius, here, place, shut)
        if not isinstance(begun, Search):
            return begun
        status, _ = go_on_searching(self.plan_of(radius).graph, begun, UNLIMITED)
        return self.found_gross(radius, here, place, begun) if status == FOUND else None

    def _route(self, person: Traveller, here: Floats, place: GoalPlace, budget: int) -> tuple[int, Any, int]:
        """Work on the gross path: how it stands, the path if there is one, and the work it took."""
        if person.gross is None:
            begun = self.begin_gross(person.radius, here, place, self.shut_for(person))
            if not isinstance(begun, Search):
                return FOUND, begun, 0
            person.gross, person.origin = begun, here.copy()
        search = person.gross
        status, used = go_on_searching(self.plan_of(person.radius).graph, search, budget)
        if status == RUNNING:
            return status, None, used
        person.gross = None
        found = self.found_gross(person.radius, person.origin, place, search) if status == FOUND else None
        return status, found, used

    def _stages(self, person: Traveller) -> NDArray[np.int64]:
        return person.stages.reshape(-1, 2)

    # Planning ---------------------------------------------------------------------------------------------------

    def plan(self, moment: Moment, row: int, slot: int, budget: int) -> int:
        """Find the gross path, and the fine one through the room that comes first."""
        person, used = self._travellers.people[slot], 0
        place = self.place_of(person)
        if place is None:
            return 0
        if person.checks or (person.query is None and not person.routed and not self._is_going_on(person)):
            status, found, used = self._route(person, moment.state.position[row], place, budget)
            if status == RUNNING:
                return used
            if person.checks and self._goes_on_as_before(slot, found):
                person.checks = False
                return used
            person.checks = False
            if found is None:
                person.ask(moment.step + math.ceil(_AGAIN / moment.dt))
                person.failures += 1
                self._travellers.give(slot, None)
                return used
            room, stages = found
            if room != person.place:
                _leave(person)
            person.ask(moment.step)
            person.place, person.stages, person.routed, person.beyond = room, stages.reshape(-1), True, NOWHERE
        target = self._portal_place(person) if len(person.stages) else place
        return used + self.plan_to(moment, row, slot, target, budget - used)

    def _goes_on_as_before(self, slot: int, found: Any) -> bool:
        """Whether a gross path leads through the same portal next; what is behind that may have changed."""
        person = self._travellers.people[slot]
        before = self._stages(person)
        if found is None or person.path is None or person.asks or self._is_going_on(person):
            return False
        if found[0] != person.place or not np.array_equal(found[1][:1], before[:1]):
            return False
        person.stages = found[1].reshape(-1)
        return not self._path_crosses_shut_door(person, slot)

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
        person.beyond = NOWHERE
        super().give(slot, path, place)

    def no_path(self, moment: Moment, slot: int, chart: Chart) -> None:
        self._travellers.people[slot].beyond = NOWHERE
        super().no_path(moment, slot, chart)

    def why_no_path(self, here: Floats, person: Traveller, place: GoalPlace) -> str:
        plan, nothing = self.plan_of(person.radius), np.zeros(len(self.world.doors), dtype=np.bool_)
        if self.gross_path(person.radius, here, place, nothing) is not None:
            return super().why_no_path(here, person, place)
        first, last = self._rooms_at(person.radius, here), sorted(self._rooms_of(person.radius, place))
        if not first or not last:
            return "it starts in a wall or obstacle" if not first else f"{place.name} is in a wall or obstacle"
        said = [_room_text(plan, room) for room in (first[0], last[0])]
        return (
            f"it starts in {said[0]} and {place.name} is in {said[1]} of {len(plan.rooms)} rooms, which no doors join"
        )

    def waits_for_doors(self, moment: Moment, row: int, person: Traveller, place: GoalPlace) -> bool:
        here, nothing = moment.state.position[row], np.zeros(len(self.world.doors), dtype=np.bool_)
        if self.gross_path(person.radius, here, place, nothing) is None:
            return False
        return self.gross_path(person.radius, here, place, self.shut_for(person)) is None

    # In each step -----------------------------------------------------------------------------------------------

    def _is_quiet(self, moment: Moment) -> bool:
        travellers = self._travellers
        sees = self.parameters.doors == "seen" and len(self.world.doors) > 0
        return not sees and super()._is_quiet(moment) and not (travellers.index == travellers.count - 1).any()

    def _work(self, moment: Moment, parties: list[tuple[float, Rows, Rows]]) -> None:
        for _, rows, slots in parties:
            if self.parameters.doors == "seen" and self._believed is None and len(self.world.doors):
                for row, slot in zip(rows.tolist(), slots.tolist(), strict=True):
                    self._see_doors(moment, row, self._travellers.people[slot])
                    self._travellers.note(slot)
            self._enter_rooms(moment, rows, slots)
        super()._work(moment, parties)

    def _enter_rooms(self, moment: Moment, rows: Rows, slots: Rows) -> None:
        """Whoever sees the portal that its path ends at plans its way through the room behind it."""
        travellers, state = self._travellers, moment.state
        last = (travellers.count[slots] > 0) & (travellers.index[slots] == travellers.count[slots] - 1)
        for row, slot in zip(rows[last].tolist(), slots[last].tolist(), strict=True):
            person = travellers.people[slot]
            stages = self._stages(person)
            if not len(stages) or person.query is not None or person.asks or person.checks or self._is_going_on(person):
                continue
            end, here = travellers.way[slot, int(travellers.count[slot]) - 1], state.position[row]
            away = float(np.linalg.norm(end - here))
            if away > _THERE * person.radius and (away > state.sense_radius[row] or not self._sees(person, here, end)):
                continue
            person.place, person.stages = int(stages[0, 1]), stages[1:].reshape(-1)
            person.beyond = end.copy()
            person.ask(moment.step)
            _leave(person)
            travellers.note(slot)
            self.spent["rooms entered"] += 1

    def _sees(self, person: Traveller, here: Floats, there: Floats) -> bool:
        solid = self.solid_of(person.radius, self._shut)
        return not sweeps_blocked_each(here[None], there[None], np.zeros(1), solid)[0]

    def shut_for(self, person: Traveller) -> NDArray[np.bool_]:
        if self.parameters.doors == "known" or self._believed is not None:
            return super().shut_for(person)
        if len(person.shut) != len(self.world.doors):
            person.shut = np.zeros(len(self.world.doors), dtype=np.bool_)
        return person.shut

    def _see_doors(self, moment: Moment, row: int, person: Traveller) -> None:
        """Update what a traveller knows of the doors that it sees."""
        believed = self.shut_for(person)
        here, vision = moment.state.position[row], float(moment.state.sense_radius[row])
        space = self.space_of(person.radius)
        for door in np.flatnonzero(self._shut != believed).tolist():
            segments = space.door_segments[space.door_numbers == door]
            middle = 0.5 * (segments[:, :2] + segments[:, 2:]).mean(axis=0)
            if np.linalg.norm(middle - here) > vision:
                continue
            others = self._shut.copy()
            others[door] = False
            solid = self.solid_of(person.radius, others)
            if not sweeps_blocked_each(here[None], middle[None], np.zeros(1), solid)[0]:
                person.shut = believed = believed.copy()
                believed[door] = self._shut[door]
                person.ask(moment.step)
                person.beyond = NOWHERE

    def doors_changed(self, moment: Moment, row: int, person: Traveller) -> None:
        """Only the gross level changes: whoever's next portal stays the same keeps its path."""
        if self.parameters.doors == "known" or self._believed is not None:
            person.checks, person.gross = True, None

    def _path_crosses_shut_door(self, person: Traveller, slot: int) -> bool:
        points = self._travellers.way[slot, : int(self._travellers.count[slot])]
        solid = self.solid_of(person.radius, self.shut_for(person))
        return bool(sweeps_blocked_each(points[:-1], points[1:], np.zeros(len(points) - 1), solid).any())

    def goal_has_moved(self, moment: Moment, slot: int, here: Floats) -> None:
        # A path that ends at a portal does not end at the goal.
        if not len(self._travellers.people[slot].stages):
            super().goal_has_moved(moment, slot, here)

    def forget_way(self, person: Traveller) -> None:
        super().forget_way(person)
        person.stages, person.beyond = NO_NUMBERS, NOWHERE

    def shown_paths(self) -> list[RoadmapPath]:
        """Paths with what is ahead on the gross level: the next portals, and the goal."""
        shown, by_id = [], {person.id: person for person in self._travellers.people}
        for path in super().shown_paths():
            person = by_id[path.agent]
            place, stages = self.place_of(person), self._stages(person)
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
