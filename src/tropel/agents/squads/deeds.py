"""What squads do in the stages of their missions: hold, search, escort, cover, retreat.

Verbs (`verbs.py`) call these between two steps with the row of a commander. They send the commander somewhere, by its
goal, and tell the members what to do, by their columns `order` and `post`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.arriving import at_aim
from tropel.agents.goals import Aim, aim_of
from tropel.agents.squads.columns import MEMBER, POST
from tropel.agents.squads.combat import hostility
from tropel.agents.squads.floor import Floor
from tropel.agents.squads.log import HAS_SEARCHED, SEARCHES, Log
from tropel.agents.squads.rooms import NONE, Rooms, Searcher
from tropel.agents.squads.sight import seen_from
from tropel.agents.squads.squad import Squad
from tropel.agents.stages.stage import Now
from tropel.agents.state import NO_GOAL, POINT, AgentState
from tropel.world import World
from tropel.world.places import Place, PlaceLike, find_place

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Time between two thoughts of a squad [s].
_THINKS_EVERY = 0.25
#: Who covers something comes this share of its sight near.
_COVERS_FROM = 0.8


class Deeds:
    """The squads of a run, and what they do. Arrays have a row per group."""

    def __init__(self, world: World, groups: Sequence[str], told: Mapping[int, Squad]) -> None:
        self.world, self.groups, self.told = world, list(groups), dict(told)
        self.rooms = Rooms(Floor(world), sorted(told), len(groups))
        self.log = Log()
        self.commander = np.full(len(groups), NONE, dtype=np.int64)  #: ids
        self.hostile = hostility(groups, {number: squad.enemies for number, squad in told.items()})  #: (G, G)
        self._done: frozenset[int] = frozenset()  #: squads that have nothing left to search
        # Made anew whenever squads think.
        self._searchers: dict[int, Searcher] = {}
        self._held: dict[int, Place] = {}  #: the rooms that squads hold

    @property
    def floor(self) -> Floor:
        return self.rooms.floor

    @staticmethod
    def thinks(now: Now) -> bool:
        """Whether squads think in this step."""
        return now.step % max(round(_THINKS_EVERY / now.dt), 1) == 0

    @staticmethod
    def living(state: AgentState, number: int) -> Ints:
        """Rows of the living of a group, by id."""
        rows = np.flatnonzero((state.group == number) & (state.dead == 0))
        return np.asarray(rows[np.argsort(state.id[rows], kind="stable")])

    def members(self, state: AgentState, number: int) -> Ints:
        """Rows of the living of a squad without the commander, by id."""
        rows = self.living(state, number)
        return rows[state.role[rows] == MEMBER]

    def mates(self, number: int) -> tuple[int, ...]:
        """The groups of the squads on a squad's side, itself included."""
        side = self.told[number].side
        return tuple(n for n, squad in self.told.items() if squad.side == side and not self.hostile[number, n])

    # What verbs do: `row` is that of a commander --------------------------------------------------------------------

    def stand(self, now: Now, row: int) -> None:
        """Stay where one is."""
        now.state.goal[row], now.state.goal_point[row] = NO_GOAL, 0.0

    def tell(self, now: Now, row: int, order: int) -> None:
        """Give all members of a commander's squad an order."""
        now.state.order[self.members(now.state, int(now.state.group[row]))] = order

    def head_for(self, now: Now, row: int, aim: Aim) -> None:
        """Go to a place. Points are approached on foot around walls, from one point in sight to the next."""
        state = now.state
        if aim.number != POINT:
            state.goal[row], state.goal_point[row] = aim
            return
        state.goal[row], state.goal_point[row] = POINT, self.on_foot(now, row, np.array(aim.point))

    def on_foot(self, now: Now, row: int, point: Floats) -> Floats:
        """Where an agent goes next on its shortest walk to a point; the point itself once it is straight ahead."""
        state, here = now.state, now.state.position[row]
        walk = self.floor.walk(here)
        cell = self.floor.nearest_cell(point, walk)
        if cell is None:
            return here
        ahead = self.floor.ahead(here, cell, walk, float(state.radius[row]))
        # The cell is beside the point: the last bit is straight.
        last = np.linalg.norm(ahead - self.floor.centres(np.array([cell]))[0]) < 1e-9
        return point if last else ahead

    def have_come(self, now: Now, told: PlaceLike) -> NDArray[np.bool_]:
        """Which of the members of a stage are at a place."""
        state, aim = now.state, aim_of(now.world, told, "retreat_to")
        seen = now.seen_within[state.group[now.members]]
        return at_aim(state, now.world, now.members, aim, seen_within=seen)

    def hold(self, now: Now, row: int, place: Place, aim: Aim) -> bool:
        """Go to a room, and take posts once the commander is in it; returns whether it is."""
        state, number = now.state, int(now.state.group[row])
        inside = bool(self.floor.is_inside(place, state.position[[row]])[0])
        if not self.thinks(now):
            return inside
        self._held[number] = place
        if not inside:
            state.goal[row], state.goal_point[row] = aim
            return False
        members = self.members(state, number)
        posts = self._posts(place, len(members) + 1)
        state.goal[row], state.goal_point[row] = POINT, posts[0]
        # The others follow it in first: on the straight way to their posts there may be walls.
        there = self.floor.is_inside(place, state.position[members])
        state.order[members[there]], state.post[members] = POST, posts[1:]
        return True

    def _posts(self, place: Place, count: int) -> Floats:
        """Places to stand in a room: the middle first, then each as far as possible from those before."""
        cells = self.floor.parts(place)
        polygon = self.floor.area(place)[0]
        middle = np.array(polygon.representative_point().coords[0])
        if not len(cells):
            return np.tile(middle, (count, 1))
        points = self.floor.centres(cells)
        found = [int(np.argmin(((points - middle) ** 2).sum(axis=1)))]
        nearest = ((points - points[found[0]]) ** 2).sum(axis=1)
        while len(found) < count:
            found.append(int(np.argmax(nearest)))
            nearest = np.minimum(nearest, ((points - points[found[-1]]) ** 2).sum(axis=1))
        return points[found]

    def search(self, now: Now, row: int, places: Sequence[Place], *, share: bool) -> None:
        """Be one of those that rooms are shared out to in this step."""
        number = int(now.state.group[row])
        areas = tuple(dict.fromkeys(self.rooms.number(place) for place in places))
        self._searchers[number] = Searcher(
            number=number, here=now.state.position[row].copy(), areas=areas,
            mates=self.mates(number) if share else (number,),
        )  # fmt: skip

    def has_searched(self, now: Now, row: int) -> bool:
        """Whether there is nothing left to search; known a moment after the stage began."""
        number = int(now.state.group[row])
        return number in self._done and now.state.stage_since[row] < now.time

    def share_rooms_out(self, now: Now) -> None:
        """Rooms for those that search, and where their commanders go in them."""
        state, rooms = now.state, self.rooms
        for number in self.told:
            if number not in self._searchers:
                rooms.release(number)
        before = rooms.claim.copy()
        found = rooms.share_out([self._searchers[number] for number in sorted(self._searchers)])
        self._done = frozenset(
            number for number, each in self._searchers.items()
            if number not in found and not rooms.anything_left(each)
        )  # fmt: skip
        for number in sorted(self._searchers):
            row = int(state.rows_of([int(self.commander[number])])[0])
            area, was = int(rooms.claim[number]), int(before[number])
            if was not in (NONE, area) and rooms.is_searched(was, self._searchers[number].mates):
                self.log.note(now, number, HAS_SEARCHED, was)
            if area not in (NONE, was):
                self.log.note(now, number, SEARCHES, area)
            if number not in found:
                self.stand(now, row)
                continue
            cells, walk = found[number]
            place = rooms.places[area]
            if not self.floor.is_inside(place, state.position[[row]])[0]:
                state.goal[row], state.goal_point[row] = now.world.number_of(place), 0.0
                continue
            nearest = int(cells[np.argmin(walk.reshape(-1)[cells])])
            ahead = self.floor.ahead(state.position[row], nearest, walk, float(state.radius[row]))
            state.goal[row], state.goal_point[row] = POINT, ahead

    def escorted(self, now: Now, group: str, agent: int | None) -> Ints:
        """Rows of the living that are escorted."""
        rows = self.living(now.state, self.groups.index(group))
        return rows if agent is None else rows[now.state.id[rows] == agent]

    def escort(self, now: Now, row: int, group: str, agent: int | None, *, within: float) -> None:
        """Stay with a group: with the one that leads it, or with the one nearest to its middle."""
        state = now.state
        rows = self.escorted(now, group, agent)
        rows = rows[rows != row]
        if not len(rows):
            self.stand(now, row)
            return
        leading = np.unique(state.columns["leader"][rows])
        led = rows[np.isin(state.id[rows], leading)]
        among = led if len(led) else rows
        middle = np.median(state.position[rows], axis=0)
        with_whom = int(among[np.argmin(((state.position[among] - middle) ** 2).sum(axis=1))])
        there = state.position[with_whom]
        near = np.linalg.norm(there - state.position[row]) <= within + state.radius[row] + state.radius[with_whom]
        if near and seen_from(now.world, state.position[[row]], there[None], np.inf)[0]:
            self.stand(now, row)
        else:
            self.head_for(now, row, Aim(POINT, tuple(there.tolist())))

    def cover(self, now: Now, row: int, what: str | Place) -> None:
        """Go where a squad or a place is in sight, and stand there."""
        state, number = now.state, int(now.state.group[row])
        if isinstance(what, str):
            rows = state.rows_of([int(self.commander[self.groups.index(what)])])
            if not len(rows):
                self.stand(now, row)
                return
            point = state.position[rows[0]]
        else:
            point = point_of(now.world, find_place(now.world, what, "cover"))
        if seen_from(now.world, state.position[[row]], point[None], _COVERS_FROM * self.told[number].sight)[0]:
            self.stand(now, row)
        else:
            self.head_for(now, row, Aim(POINT, tuple(point.tolist())))

    def began_last(self, now: Now, squad: str) -> float:
        """When a squad began its present stage [s]; infinitely late if it is gone."""
        rows = now.state.rows_of([int(self.commander[self.groups.index(squad)])])
        living = rows[now.state.dead[rows] == 0]
        return float(now.state.stage_since[living[0]]) if len(living) else np.inf


def point_of(world: World, place: Place) -> Floats:
    """Where a place is: its point, or one in the middle of it [m]."""
    if place.point is not None:
        return np.array(place.point)
    if place.kind == "target":
        return np.array(world.goals().position[world.goal_numbers[place.name]])
    shape: Any = {
        "exit": lambda: world.exits[place.name].polygon.representative_point(),
        "door": lambda: world.doors[place.name].line.centroid,
        "room": lambda: world.rooms[place.name].representative_point(),
        "region": lambda: world.regions[place.name].representative_point(),
    }[place.kind]()
    return np.array(shapely.get_coordinates(shape)[0])
