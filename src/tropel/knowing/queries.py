"""Questions about what is known: who knows what, since when and from whom."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.knowing.log import Log
from tropel.knowing.parameters import Knowledge
from tropel.knowing.table import ASSUMED, SOURCES, Table
from tropel.knowing.things import UNKNOWN, Kind, Things, state_for, word_for


class Fact(NamedTuple):
    """What somebody knows of a thing."""

    thing: str  #: such as "door main"
    state: str  #: such as "shut", "there" or "unknown"; of hostile groups, how many were seen
    time: float | None  #: when it was observed [s]; None if it was assumed or known from the start
    source: str | int  #: the id of the agent that saw it or told it, or "the start", "an announcement", "the manager"
    place: tuple[float, ...] | None = None  #: where a target or the nearest enemy was [m]


class Queries(ABC):
    """The part of the knowledge that answers questions."""

    groups: list[str]
    told: dict[str, Knowledge]
    things: Things
    table: Table
    shared: int  #: how many holders are groups, or the world
    _log: Log
    _agents: AgentState
    _ids: NDArray[np.int64]  #: of each row
    _holder: NDArray[np.int64]  #: of each row
    _keepers: NDArray[np.int64]  #: the shared holder of each group, or -1
    _first_state: NDArray[np.int16]  #: what each group knows at first
    _dt: float = 0.0
    _news: NDArray[Any]

    @property
    def log(self) -> dict[str, NDArray[Any]]:
        """Who learnt what, when and from whom: columns `time` [s], `holder`, `thing`, `state` and `source`.

        A holder is the id of an agent, or the name of the group, or "world", if knowledge is held there.
        """
        return self.as_table(self._log.lines)

    @property
    def news(self) -> NDArray[Any]:
        """The lines of the log of the present step."""
        return self._news

    def as_table(self, lines: NDArray[Any]) -> dict[str, NDArray[Any]]:
        """Lines of the log in words."""
        kinds = [Kind(kind) for kind in self.things.kind.tolist()]
        pairs = zip(lines["thing"].tolist(), lines["state"].tolist(), strict=True)
        return {
            "time": lines["step"] * self._dt,
            "holder": np.array([self.holder_name(number) for number in lines["holder"].tolist()], dtype=object),
            "thing": np.array([self.things.keys[number] for number in lines["thing"].tolist()], dtype=object),
            "state": np.array([word_for(kinds[thing], state) for thing, state in pairs], dtype=object),
            "source": np.array([SOURCES.get(number, number) for number in lines["source"].tolist()], dtype=object),
        }

    def holder_name(self, number: int) -> int | str:
        """The id of an agent, or what shared knowledge belongs to."""
        if number >= 0:
            return number
        place = number + self.shared
        sharing = [name for name, own in zip(self.groups, self._keepers.tolist(), strict=True) if own == place]
        return "world" if self.told[sharing[0]].held_by == "world" else sharing[0]

    def state_word(self, number: int, word: str) -> int:
        """The state that a word means for a thing."""
        return state_for(Kind(int(self.things.kind[number])), word)

    @abstractmethod
    def _align(self, state: AgentState) -> None:
        """Agents may have come or gone, or a checkpoint been restored, since the last step."""

    def facts_of_row(self, row: int) -> list[Fact] | None:
        """What the agent in a row knows; None if its knowledge is not limited."""
        self._align(self._agents)
        holder = int(self._holder[row])
        if holder < 0:
            return None
        found = []
        for number, key in enumerate(self.things.keys):
            kind, state = Kind(int(self.things.kind[number])), int(self.table.state[holder, number])
            when, slot = int(self.table.when[holder, number]), int(self.table.slot[number])
            place = None
            if slot >= 0 and state != UNKNOWN and not np.isnan(self.table.place[holder, slot]).any():
                place = tuple(self.table.place[holder, slot].tolist())
            source = int(self.table.source[holder, number])
            found.append(
                Fact(
                    thing=key,
                    state=word_for(kind, state),
                    time=None if when < 0 else when * self._dt,
                    source="the plan" if when == ASSUMED else SOURCES.get(source, source),
                    place=place,
                )
            )
        return found

    @checked_arguments
    def known_by(self, id: int) -> dict[str, Fact]:
        """What an agent knows, by thing; nothing for one whose knowledge is not limited: it knows everything."""
        self._align(self._agents)
        rows = np.flatnonzero(self._ids == id)
        if not len(rows):
            raise ParameterError(f"there is no agent {id}")
        return {fact.thing: fact for fact in self.facts_of_row(int(rows[0])) or ()}

    @checked_arguments
    def who_knows(self, thing: str, state: str) -> NDArray[np.int64]:
        """The ids of the agents that believe a thing to be so, such as `who_knows("main", "shut")`, ascending."""
        self._align(self._agents)
        number = self.things.number(thing)
        wanted = self.state_word(number, state)
        rows = np.flatnonzero(self._holder >= 0)
        rows = rows[self.table.state[self._holder[rows], number] == wanted]
        return np.sort(self._ids[rows])

    def how_learnt(self) -> NDArray[np.int8]:
        """For each row how it learnt what it did not know at first: 0 nothing new, 1 told, 2 seen; -1 not limited."""
        self._align(self._agents)
        group = self._agents.group
        rows = np.flatnonzero(self._holder >= 0)
        holder = self._holder[rows]
        news = self.table.state[holder] != self._first_state[group[rows]]
        own = news & (self.table.source[holder] == self._ids[rows][:, None])
        found = np.full(len(self._holder), -1, dtype=np.int8)
        found[rows] = np.where(own.any(axis=1), 2, np.where(news.any(axis=1), 1, 0))
        return found
