"""The population: which agents exist, how they come in, leave and die, and how they are changed."""

from __future__ import annotations

import functools
import reprlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.bonds import Bonds
from tropel.agents.declared import Declared
from tropel.agents.goals import aim_of
from tropel.agents.groups import Group, Personal, Source
from tropel.agents.leaving import killed_now
from tropel.agents.placing import ANYWHERE, Placing
from tropel.agents.records import Records
from tropel.agents.room import check_region, inside_region
from tropel.agents.settable import DEFAULT, check_settable, set_column, settable_columns
from tropel.agents.spawn import check_positions, most_at_once, size_of
from tropel.agents.squads.squad import Squad
from tropel.agents.squads.squads import Squads
from tropel.agents.stages.agendas import NOT_BEGUN, NOTHING, Agendas
from tropel.agents.stages.happened import Happenings
from tropel.agents.stages.stage import Now, Setting, Stage
from tropel.agents.state import NO_GOAL, AgentState, Column
from tropel.agents.stored import StoredPeople, people_as_they_are, read_people, stored_people
from tropel.agents.tasks.board import TaskBoard
from tropel.agents.tasks.task import TASK, Task
from tropel.agents.towards_goal import towards_goal
from tropel.agents.whole_crowd import ids_of
from tropel.errors import ParameterError, suggest
from tropel.foundation.arguments import is_whole_number
from tropel.foundation.reductions import ONE_PROCESS, Reductions
from tropel.world import World
from tropel.world.places import PlaceLike


class Population:
    """The agents of a simulation, their groups and sources, and the records of agents that have left or died."""

    def __init__(
        self, world: World, declared: Iterable[Group | Source], *, seed: int, tasks: Mapping[str, Task] | None = None
    ) -> None:
        self.world = world
        self.seed = seed
        self._told = Declared.read(declared)
        self.declared: tuple[Group | Source, ...] = self._told.items  #: as given
        self.sources: list[Source] = self._told.sources
        self.groups: list[str] = self._told.names
        self.agendas = Agendas(world.dim)  #: lists of stages
        self.happened = Happenings()  #: events that somebody may wait for
        self.tasks = None if tasks is None else TaskBoard(tasks, world.dim)  #: None if nobody works
        self.bonds = Bonds(world, len(self.groups))
        self.squads: Squads | None = self._made_squads()
        self.state = AgentState(world.dim)
        self.waiting: list[int] = [0] * len(self.sources)  #: arrived at the source but have found no room yet
        self.emitted: list[int] = [0] * len(self.sources)
        self.records = Records(world.dim)
        self._members: dict[tuple[int, ...], NDArray[np.int64]] = {}
        self._placing: Sequence[Placing] = ()

    def _made_squads(self) -> Squads | None:
        """The groups that are squads; None if there are none."""
        told = {self._told.number(group.name): group.squad for group in self._told.groups if group.squad is not None}
        for number, squad in told.items():
            self._check_squad(f"group '{self.groups[number]}', squad", self.groups[number], squad)
        return Squads(self.world, self.groups, told) if told else None

    def _check_squad(self, who: str, group: str, squad: Squad) -> None:
        if self.world.dim != 2 or self.world.is_periodic:
            raise ParameterError(f"{who}: squads need a plane world that is not periodic")
        for enemy in squad.enemies:
            if enemy == group:
                raise ParameterError(f"{who}: it cannot be its own enemy; name other groups in enemies")
            if enemy not in self.groups:
                raise ParameterError(f"{who}, enemies: there is no group '{enemy}'; {suggest(enemy, self.groups)}")
        if squad.retreat is not None:
            aim_of(self.world, squad.retreat, f"{who}, retreat")

    def spawn_all(
        self,
        columns: Iterable[Column],
        placing: Sequence[Placing] | None = None,
        *,
        on_ground: Sequence[bool] = (),
        reduce: Reductions = ONE_PROCESS,
    ) -> None:
        """Place the declared groups, one after the other; `placing` tells where the agents of each may stand.

        `on_ground` tells which of them need a goal to move, even if they follow a leader.
        """
        self.state = AgentState(self.world.dim, [*columns, *([] if self.tasks is None else [TASK])])
        if self.tasks is not None:
            self.tasks.post_all(self.world, self.groups, self.state.declared)
        self.state.group_names = self.groups
        self._placing = [ANYWHERE] * len(self.groups) if placing is None else placing
        for source in self.sources:
            self._check_source(source)
        for number, name in enumerate(self.groups):
            # Groups to follow that do not exist are reported when the layers are checked.
            self.bonds.follows[number] = self._told.led_by(name)
        self.bonds.on_ground[:] = on_ground or False
        placed = [(group, self._place(group, time=0.0, step=0)) for group in self._told.groups]
        # A group may follow one that is declared after it.
        for group, ids in placed:
            if group.follow not in (None, group.name) and not len(self.rows_in(group.follow)):
                raise ParameterError(
                    f"group '{group.name}' follows '{group.follow}', which has no agents at the start; give it some, "
                    f"or leave follow out"
                )
            self._bind(group, group.name, ids, reduce, at_start=True)

    def _check_source(self, source: Source) -> None:
        """Report errors in a source at the start, not when its first agent comes."""
        check_region(self.world, source.region, f"the source of '{source.group}'")
        if source.follow is not None:
            self._told.number(source.follow)
        self._values(source, source.group, np.empty(0, dtype=np.int64), time=0.0)

    def _values(self, told: Personal, group: str, ids: NDArray[np.int64], *, time: float) -> dict[str, Any]:
        """Columns of newcomers of a group with these ids."""
        values = told.values(
            world=self.world, columns=self.state.declared, seed=self.seed, group=group, ids=ids, time=time
        )
        stages = told.agenda(f"group '{group}'")
        if not stages:
            return values
        number = self.agenda_number(stages, told.repeat, f"group '{group}'")
        aim = self.agendas.first_goal(number)
        if aim is None:  # the first stage begins in the next step
            return {**values, "agenda": number, "goal": NO_GOAL, "stage": np.full(len(ids), NOT_BEGUN)}
        critical = np.where(values["stage"] == NOT_BEGUN, 0, stages[0].critical)
        return {**values, "agenda": number, "goal": aim.number, "goal_point": aim.point, "critical": critical}

    @property
    def setting(self) -> Setting:
        """What names in stages are checked against."""
        squads = () if self.squads is None else [self.groups[number] for number in self.squads.told]
        return Setting(
            world=self.world, groups=self.groups, columns=self.state.declared, squads=squads, tasks=self.tasks
        )

    def members(self, numbers: Sequence[int]) -> NDArray[np.int64]:
        """Ascending rows of the living agents that this process moves, in the groups with these numbers."""
        key = tuple(numbers)
        if key not in self._members:
            alive = self.state.dead == 0
            alive[self.state.owned :] = False
            if len(key) < len(self.groups):
                alive &= np.isin(self.state.group, key)
            self._members[key] = np.flatnonzero(alive).astype(np.int64)
        return self._members[key]

    @property
    def living(self) -> int:
        """How many agents are present and alive."""
        return len(self.members(range(len(self.groups))))

    def rows_in(self, group: str | None) -> NDArray[np.int64]:
        """Rows of a group, or of all agents, including the dead."""
        if group is None:
            return np.arange(len(self.state), dtype=np.int64)
        return np.flatnonzero(self.state.group == self._told.number(group)).astype(np.int64)

    def declared_goal(self, group: str) -> PlaceLike:
        """The goal that a group was declared with."""
        return self._told.first_of(group).first_goal

    def check_follow(self, group: str, leader: str | None) -> None:
        """Raise if newcomers of a group would follow their own group through groups that follow it."""
        self._told.check_follow(group, leader)

    # Coming in --------------------------------------------------------------------------------------------------

    def add(self, group: Group, *, time: float, step: int, reduce: Reductions = ONE_PROCESS) -> NDArray[np.int64]:
        """Place the agents of a group now; returns their ids."""
        ids = self._place(group, time=time, step=step)
        self._bind(group, group.name, ids, reduce)
        return ids

    def check_room(self, group: Group, *, time: float, step: int) -> None:
        """Raise if the agents of a group would find no room now."""
        self._find_places(group, time=time, step=step)

    def _place(self, group: Group, *, time: float, step: int) -> NDArray[np.int64]:
        return self._append(*self._find_places(group, time=time, step=step), time)

    def _find_places(self, group: Group, *, time: float, step: int) -> tuple[int, NDArray[np.float64], dict[str, Any]]:
        """Number of the group, positions and values of its agents."""
        number = self._told.number(group.name)
        if group.positions is not None:
            positions = check_positions(self.world, group.positions, who=group.name)
            positions = self._placing[number].settle(self.world, positions, who=group.name, **self._taken())
            count = len(positions)
        else:
            count = size_of(group, self.world, self.state, body=self._placing[number].body)
        ids = self.state.next_ids(count)
        values = self._values(group, group.name, ids, time=time)
        if group.positions is None:
            positions = self._places(number, values["radius"], group.region, group.name, first_draw=step)
        return number, positions, values

    def _places(
        self,
        number: int,
        radius: NDArray[np.float64],
        region: Any,
        who: str,
        *,
        first_draw: int,
        partial: bool = False,
    ) -> NDArray[np.float64]:
        """Places for new agents with these radii in a region, where their model puts them."""
        return self._placing[number].find(
            self.world,
            radius=radius,
            region=region,
            seed=self.seed,
            who=who,
            first_draw=first_draw,
            partial=partial,
            **self._taken(),
        )

    def _taken(self) -> dict[str, NDArray[np.float64]]:
        """The bodies that are already present."""
        return {"taken": self.state.position, "taken_radius": self.state.radius}

    def _append(
        self, number: int, positions: NDArray[np.float64], values: Mapping[str, Any], time: float
    ) -> NDArray[np.int64]:
        first = len(self.state)
        fixed = self._placing[number].body
        body = {} if fixed is None else {"radius": fixed}
        ids = self.state.add(len(positions), {**values, **body, "position": positions, "group": number})
        self.records.came(len(ids), number, time)
        self._members.clear()
        self._face_goals(np.arange(first, len(self.state)))
        return ids

    def _bind(
        self, told: Personal, group: str, ids: NDArray[np.int64], reduce: Reductions, *, at_start: bool = False
    ) -> None:
        """Group newcomers into families, and give them leaders."""
        number, rows, who = self._told.number(group), self.state.rows_of(ids), f"group '{group}'"
        led_by = None if told.follow is None else self._living(told.follow)
        bind = functools.partial(
            self.bonds.bind, told, self.state, number, rows, who=who, led_by=led_by, at_start=at_start, reduce=reduce
        )
        if told.follow is None or led_by is None or len(led_by):
            bind()
            return
        leading = self._told.first_of(told.follow)
        stages = leading.agenda(who)
        agenda = self.agenda_number(stages, leading.repeat, who) if stages else NOTHING
        bind(aim=aim_of(self.world, leading.first_goal, who), agenda=agenda)

    def set_leader(
        self, group: str, leader: str | int | None, *, id: int | None, reduce: Reductions = ONE_PROCESS
    ) -> None:
        """Make another agent of a group the leader of all others."""
        number, living = self._told.number(group), self._living(group)
        self.bonds.set_leader(self.state, number, living, leader, id, f"group '{group}'", reduce=reduce)

    def somebody_is_left(self, group: str, id: int | None = None) -> bool:
        """Whether anybody of a group is alive, or the agent that once came with an id."""
        if id is not None and id < self.state.next_id:
            return len(self.state.rows_of([id])) > 0 and not self.state.dead[self.state.rows_of([id])[0]]
        return len(self._living(group)) > 0

    def count(self, group: str, reduce: Reductions = ONE_PROCESS) -> int:
        """How many agents of a group are alive."""
        return len(ids_of(self._living(group), self.state, reduce))

    def _living(self, group: str) -> NDArray[np.int64]:
        rows = self.rows_in(group)
        return rows[self.state.dead[rows] == 0]

    def _face_goals(self, rows: NDArray[np.int64]) -> None:
        """Turn agents towards their goals; those without a goal face along x."""
        facing = np.zeros_like(self.state.position)
        towards_goal(self.state, rows, self.world.goals(), facing)
        somewhere = rows[facing[rows].any(axis=1)]
        self.state.heading[somewhere] = facing[somewhere]

    def let_in(self, step: int, dt: float, *, reduce: Reductions = ONE_PROCESS) -> None:
        """Add the agents that the sources send in this step, if there is room."""
        for number, source in enumerate(self.sources):
            coming = source.arriving(seed=self.seed, number=number, step=step, dt=dt)
            if source.total is not None:
                coming = min(coming, source.total - self.emitted[number] - self.waiting[number])
            self.waiting[number] += coming
            if self.waiting[number] == 0:
                continue
            group, who = self._told.number(source.group), f"source {number} of {source.group}"
            count = most_at_once(self.waiting[number], source, self.world, body=self._placing[group].body)
            ids = self.state.next_ids(count)
            values = self._values(source, source.group, ids, time=step * dt)
            positions = self._places(group, values["radius"], source.region, who, first_draw=step, partial=True)
            placed = len(positions)
            if placed:
                shared = {"goal_point": values.pop("goal_point")}  # one point for all of them
                values = {name: v[:placed] if np.ndim(v) else v for name, v in values.items()} | shared
                self._bind(source, source.group, self._append(group, positions, values, step * dt), reduce)
                self.waiting[number] -= placed
                self.emitted[number] += placed

    def arrivals(self) -> dict[str, NDArray[Any]]:
        """All arrivals: `id`, `group` (number) and `time` [s] of every agent that was ever present, by id."""
        return self.records.arrivals()

    def more_will_come(self, time: float) -> bool:
        """Whether a source has agents waiting or still to send at a time [s]."""
        for number, source in enumerate(self.sources):
            finished = source.total is not None and self.emitted[number] >= source.total
            if self.waiting[number] or (not finished and time < source.end):
                return True
        return False

    # Deciding ---------------------------------------------------------------------------------------------------

    def decide(self, now: Now) -> NDArray[np.int64]:
        """Others succeed leaders that are gone. Agents whose stage is over begin the next one; returns their rows."""
        if self.squads is None:
            self.bonds.keep_up(self.state, dt=now.dt, reduce=now.reduce)
            return self.agendas.move_on(now)
        self.squads.recruit(self)
        self.bonds.keep_up(self.state, dt=now.dt, reduce=now.reduce)
        self.squads.muster(self, now)
        self.squads.begin_thinking(now)
        moved = self.agendas.move_on(now)
        self.agendas.act(now)
        self.squads.act(self, now)
        return moved

    # Leaving ----------------------------------------------------------------------------------------------------

    def let_out(self, goals: NDArray[np.int32], time: float | NDArray[np.float64]) -> None:
        """Remove the agents with a goal number in `goals` (-1 stays), and record where they left, and at what time."""
        rows = np.flatnonzero(goals >= 0)
        by_id = rows[np.argsort(self.state.id[rows], kind="stable")]
        self.records.left(self.state.id[by_id], goals[by_id], np.broadcast_to(time, len(goals))[by_id])
        self.state.drop(rows)
        self._members.clear()

    def departures(self) -> dict[str, NDArray[Any]]:
        """All departures: `id`, `goal` (number) and `time` [s], by time and then by id."""
        return self.records.departures()

    @property
    def departed(self) -> int:
        """How many agents have left so far."""
        return self.records.departed

    def let_die(self, time: float) -> NDArray[np.int64]:
        """Agents within the inner radius of a deadly hazard die: they stop, stay and are recorded. Returns the ids."""
        rows = killed_now(self.state, self.world)
        if rows is None:
            return np.empty(0, dtype=np.int64)
        return self._die(rows[np.argsort(self.state.id[rows], kind="stable")], time)

    def let_fight(self, now: Now) -> NDArray[np.int64]:
        """Agents that squads put out of action lie where they fell, and are recorded. Returns their ids."""
        rows = np.empty(0, dtype=np.int64) if self.squads is None else self.squads.fight(now)
        return self._die(rows, now.time) if len(rows) else rows

    def _die(self, rows: NDArray[np.int64], time: float) -> NDArray[np.int64]:
        self.state.dead[rows] = 1
        self.state.velocity[rows] = 0.0
        ids = self.state.id[rows]
        self.records.died(ids, time, self.state.position[rows])
        self._members.clear()
        return ids

    def deaths(self) -> dict[str, NDArray[Any]]:
        """All deaths: `id`, `time` [s] and `position` [m], by time and then by id."""
        return self.records.deaths()

    def remove(self, *, group: str | None, region: Any, ids: Iterable[int] | None) -> NDArray[np.int64]:
        """Remove the agents that meet all given conditions, without counting them as having left."""
        rows = self.chosen_rows(group=group, region=region, ids=ids)
        gone = self.state.id[rows]
        self.state.drop(rows)
        self._members.clear()
        return gone

    def chosen_rows(self, *, group: str | None, region: Any, ids: Iterable[int] | None) -> NDArray[np.int64]:
        """The rows of the agents that meet all given conditions, ascending."""
        chosen = np.zeros(len(self.state), dtype=bool)
        chosen[self.rows_in(group)] = True
        if region is not None:
            chosen &= inside_region(self.world, region, self.state.position)
        if ids is not None:
            listed = np.zeros(len(self.state), dtype=bool)
            listed[self.listed(ids)] = True
            chosen &= listed
        return np.flatnonzero(chosen)

    # Changing ---------------------------------------------------------------------------------------------------

    def groups_of(self, ids: Sequence[int] | None, group: str | None) -> list[str]:
        """The groups that the agents with these ids are in; without ids, a group or all of them."""
        if ids is not None:
            return [self.groups[number] for number in np.unique(self.state.group[self.listed(ids)]).tolist()]
        return self.groups if group is None else [group]

    def agenda_number(self, stages: Sequence[Stage], repeat: bool, who: str) -> int:
        """The number of a list of stages, checked."""
        return self.agendas.number_of(stages, repeat, self.setting, who)

    def listed(self, ids: Iterable[int]) -> NDArray[np.int64]:
        """Rows of the agents with these ids; those that are gone are skipped."""
        told = list(ids)
        if not all(is_whole_number(who) for who in told):
            raise ParameterError(f"ids are whole numbers, one for each agent, not {reprlib.repr(told)}")
        return self.state.rows_of(told)

    def settable(self) -> dict[str, Column]:
        """The parameters that can be set during a run, by name."""
        return settable_columns(self.state)

    def check_parameter(self, name: str, value: Any = DEFAULT) -> None:
        """Raise if agents have no such parameter, or if the value is not allowed."""
        check_settable(self.state, name, value)

    def set_parameter(self, name: str, value: Any, *, group: str | None, step: int) -> None:
        """Give a group, or everybody, a new value of a parameter."""
        check_settable(self.state, name)
        rows = self.rows_in(group)
        if name == "radius":
            rows = rows[[self._placing[number].body is None for number in self.state.group[rows].tolist()]]
        set_column(self.state, rows, name, value, seed=self.seed, group=group, step=step)

    # Checkpoints ------------------------------------------------------------------------------------------------

    def stored(self) -> dict[str, NDArray[Any]]:
        """Everything about the agents that the future depends on, as arrays."""
        return stored_people(self)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `stored` returned; nothing changes if it cannot be read."""
        self.put_back(read_people(self, arrays, goals=len(self.world.goal_numbers)))

    def as_they_are(self) -> StoredPeople:
        """What `put_back` needs to return to the current state."""
        return people_as_they_are(self)

    def put_back(self, people: StoredPeople) -> None:
        self.state.put_back(people.columns, people.next_id)
        self.records.put_back(people.came, people.left, people.died)
        self.waiting, self.emitted = list(people.waiting), list(people.emitted)
        self.agendas.put_back(people.agendas)
        self.happened.put_back(people.happened)
        self.tasks = people.tasks
        self.bonds = people.bonds
        self.squads = people.squads
        self._members.clear()
