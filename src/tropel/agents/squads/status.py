"""What can be asked about squads while a simulation runs: `sim.squads["alpha"].commander`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tropel.agents.squads.rooms import NONE
from tropel.agents.squads.squads import Squads
from tropel.agents.squads.threat import STANCES
from tropel.errors import ParameterError

if TYPE_CHECKING:
    from tropel.agents.population import Population


@dataclass(frozen=True, kw_only=True)
class SquadStatus:
    """A squad as it is now."""

    name: str
    commander: int | None  #: id; None if nobody is left, or before the first step
    members: tuple[int, ...]  #: ids, without the commander
    mission: str  #: the present stage of the commander
    interrupted: bool  #: whether it carries out an order and resumes its mission afterwards
    stance: str  #: "carries on", "attacks" or "retreats"
    room: str  #: that it searches; empty if none


class SquadsNow(Mapping[str, SquadStatus]):
    """All squads by name, as they are now."""

    def __init__(self, people: Population, dt: float) -> None:
        if people.squads is None:
            raise ParameterError("there are no squads here; declare a group with  squad=Squad(…)")
        self._people, self._dt = people, dt
        self.all: Squads = people.squads

    def __iter__(self) -> Iterator[str]:
        return (self.all.groups[number] for number in self.all.told)

    def __len__(self) -> int:
        return len(self.all.told)

    def __getitem__(self, name: str) -> SquadStatus:
        squads, state, agendas = self.all, self._people.state, self._people.agendas
        number = squads.number(name)
        ids, chief = state.id[squads.living(state, number)], int(squads.commander[number])
        present = agendas.present(state, int(state.rows_of([chief])[0])) if chief in ids else None
        claim = int(squads.rooms.claim[number])
        return SquadStatus(
            name=name,
            commander=chief if chief in ids else None,
            members=tuple(ids[ids != chief].tolist()),
            mission="" if present is None else str(present),
            interrupted=bool(squads.agenda[number] != NONE),
            stance=STANCES[int(squads.stance[number])],
            room="" if claim == NONE else squads.rooms.places[claim].name,
        )

    def searched(self, *names: str) -> dict[str, float]:
        """The share of each room that has been seen by some squads together, or by all of them.

        Rooms are those that anybody was told to search; a room with 1.0 has been searched.
        """
        rooms = self.all.rooms
        seen = rooms.seen_by([self.all.number(name) for name in names or self])
        return {
            place.name: float(np.mean(seen[parts])) if len(parts := rooms.floor.parts(place)) else 1.0
            for place in rooms.places
        }

    def log(self) -> list[tuple[float, str, str]]:
        """What happened so far: time [s], squad, and what, such as "has searched kitchen"."""
        return [(news.step * self._dt, *self.all.told_of(news)) for news in self.all.log.news]
