"""Lists of stages that nobody can come to the end of: people who wait for what never happens, or for each other.

Every list is gone through on paper, beside all the others. A stage can be over unless it is known that it cannot: no
event gives the signal, there are fewer people than are waited for, or those that are waited for are stuck themselves.
What cannot be known beforehand, such as what a function of the user does, may always happen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from tropel.agents.goals import Aim
from tropel.agents.stages.agendas import NOTHING, Agenda, Planned
from tropel.agents.stages.happened import NEVER
from tropel.checks.finding import Finding
from tropel.events import AddAgents, AddHazard, OpenDoor, OpenExit, Order, RemoveAgents, SetGoal, SetStages
from tropel.events.base import Event
from tropel.events.tasks import AddTask
from tropel.world import Hazard

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class _Outlook:
    """What can still happen in a simulation, as one group sees it that goes through a list."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._events = [event for _, _, event in sim.events]
        #: A function, or events that are replayed, may do anything.
        self.anything = sim.replayed is not None or any(not isinstance(event, Event) for event in self._events)
        self.reached: dict[tuple[int, int], int] = {}  #: the stages that each group can reach in each of its lists
        self.group = 0  #: the number of the group that waits
        self._counts = {number: _most(sim, number) for number in range(len(sim.groups))}

    def event(self, kind: str, fields: Mapping[str, str]) -> bool:
        if self.anything or self._sim.population.happened.last(kind, fields) != NEVER:
            return True
        return any(
            each.kind == kind and all(getattr(each, name, None) == value for name, value in fields.items())
            for each in self._events
            if isinstance(each, Event) and hasattr(each, "kind")
        )

    def opens(self, place: str) -> bool:
        world = self._sim.world
        told = world.doors.get(place) or world.exits[place]
        if self.anything or told.open:
            return True
        doors = {each.door for each in self._events if isinstance(each, OpenDoor)}
        return place in doors | {each.exit for each in self._events if isinstance(each, OpenExit)}

    def people(self, group: str | None) -> float:
        return math.inf if self.anything else self._counts[self._number(group)]

    def task(self, name: str) -> bool:
        board = self._sim.population.tasks
        known = [] if board is None else [posted.name for posted in board.posted]
        known += [event.name for event in self._events if isinstance(event, AddTask)]
        return self.anything or name in known

    def visitors(self, group: str | None, place: Aim) -> float:
        number = self._number(group)
        state, agendas = self._sim.agents, self._sim.population.agendas
        if self.anything or any(_changes(each, self._sim.groups[number]) for each in self._events):
            return math.inf
        own = (state.group == number) & (state.dead == 0)
        going = own & (state.agenda == NOTHING) & (state.goal == place.number)
        if place.point != (0.0,) * state.dim:
            going &= (state.goal_point == np.array(place.point)).all(axis=1)
        found = float(np.count_nonzero(going))
        for (who, agenda), last in self.reached.items():
            goes = any(place in planned.aims for planned in agendas[agenda].planned[: last + 1])
            if who == number and goes:
                more = self._counts[number] - np.count_nonzero(own)
                found += float(np.count_nonzero(own & (state.agenda == agenda))) + more
        return found

    def _number(self, group: str | None) -> int:
        return self.group if group is None else self._sim.groups.index(group)


def _most(sim: Simulation, number: int) -> float:
    """The most people of a group that there can be at one time."""
    state, name = sim.agents, sim.groups[number]
    found = float(np.count_nonzero((state.group == number) & (state.dead == 0)))
    for place, source in enumerate(sim.population.sources):
        if source.group == name:
            found += math.inf if source.total is None else source.total - sim.population.emitted[place]
    return found + sum(e.count for _, _, e in sim.events if isinstance(e, AddAgents) and e.group == name)


def _changes(event: object, group: str) -> bool:
    """Whether an event gives a group, or some of it, something else to do."""
    if isinstance(event, Order):
        return event.squad == group and len(event.stages) > 0
    return isinstance(event, SetGoal | SetStages) and (event.group in (group, None) or event.ids is not None)


def stuck(sim: Simulation) -> Iterator[tuple[str, Agenda, int, str]]:
    """Groups that cannot come to the end of a list: the group, the list, the place of the stage in it, and why."""
    outlook, agendas = _Outlook(sim), sim.population.agendas
    pairs = _in_use(sim)
    outlook.reached = dict.fromkeys(pairs, 0)
    moved = True
    while moved:
        moved = False
        for group, number in pairs:
            outlook.group = group
            agenda, at = agendas[number], outlook.reached[group, number]
            # Somebody may be further already.
            while at < len(agenda.planned) and not _never(agenda.planned[at], outlook):
                at += 1
            last = min(at, len(agenda.planned) - 1)
            moved |= last > outlook.reached[group, number]
            outlook.reached[group, number] = last
    reached = outlook.reached
    for group, number in pairs:
        outlook.group, outlook.reached = group, reached
        agenda, at = agendas[number], reached[group, number]
        is_last = at == len(agenda.planned) - 1 and not agenda.repeat
        why = _never(agenda.planned[at], outlook)
        if why and not is_last and not any(_changes(each, sim.groups[group]) for _, _, each in sim.events):
            outlook.reached = {each: len(agendas[each[1]].planned) for each in pairs}
            if not _never(agenda.planned[at], outlook):
                why = "those that it waits for are waiting, too, so that they wait for each other"
            yield sim.groups[group], agenda, at, why


def _in_use(sim: Simulation) -> list[tuple[int, int]]:
    """The groups that have lists of stages, and which, of those present and of those that sources send."""
    state, population = sim.agents, sim.population
    busy = (state.dead == 0) & (state.agenda != NOTHING)
    found = set(zip(state.group[busy].tolist(), state.agenda[busy].tolist(), strict=True))
    for source in population.sources:
        if stages := source.agenda(""):
            number = population.agendas.number_of(stages, source.repeat, population.setting, "")
            found.add((sim.groups.index(source.group), number))
    return sorted(found)


def _never(planned: Planned, outlook: _Outlook) -> str:
    """Why a stage can never be over; nothing if it may."""
    own = planned.stage.never(outlook, planned.aims)
    if not own or planned.stage.until is None:
        return own
    return planned.stage.until.never(outlook, planned.condition_aims)


def check_stages(sim: Simulation) -> Iterator[Finding]:
    """People who will wait forever."""
    for group, agenda, at, why in stuck(sim):
        yield Finding(
            code="waits_forever",
            message=f"group '{group}' waits forever in stage {at + 1} ({agenda.stages[at]}): {why}",
            remedy="let an event do it, give the stage a time (wait = …, until = …), or wait for fewer",
            group=group,
        )


def never_empty(sim: Simulation) -> str:
    """Why a run until nobody is left would never end because of stages; nothing if it may."""
    outlook = _Outlook(sim)
    hazards: list[Hazard | AddHazard] = [
        *sim.world.hazards.values(),
        *(each for _, _, each in sim.events if isinstance(each, AddHazard)),
    ]
    if outlook.anything or any(hazard.deadly for hazard in hazards):
        return ""
    for group, agenda, at, why in stuck(sim):
        return f"group '{group}' waits forever in stage {at + 1} ({agenda.stages[at]}): {why}"
    for own, number in _in_use(sim):
        agenda, name = sim.population.agendas[number], sim.groups[own]
        if any(_changes(e, name) or isinstance(e, RemoveAgents) for _, _, e in sim.events):
            continue
        if agenda.repeat:
            return f"the stages of group '{name}' begin again and again, so that nobody of it ever leaves"
        last = agenda.planned[-1]
        if not last.stage.leaves(sim.world, last.aims):
            return f"the last stage of group '{name}' ({last.stage}) is none by which people leave"
    return ""
