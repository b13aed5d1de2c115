"""What happened to squads, in order: for records, reports and tests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.stages.stage import Now
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken

#: What is noted, by number.
NEWS = ("searches", "has searched", "attacks", "retreats", "carries on", "is commanded by", "gets an order", "resumes")
SEARCHES, HAS_SEARCHED, NOW_ATTACKS, NOW_RETREATS, CARRIES_ON, COMMANDED, ORDERED, RESUMES = range(len(NEWS))
_ABOUT_ROOMS = (SEARCHES, HAS_SEARCHED)


class News(NamedTuple):
    """Something that happened to a squad."""

    step: int
    squad: int  #: number of the group
    what: int
    number: int  #: of a room, or the id of an agent; -1 for none


class Log:
    """All news so far, by step."""

    def __init__(self) -> None:
        self.news: list[News] = []

    def note(self, now: Now, squad: int, what: int, number: int = -1) -> None:
        self.news.append(News(now.step, squad, what, number))

    def of(self, step: int) -> list[News]:
        """The news of a step, if it is the last one."""
        found = []
        for news in reversed(self.news):
            if news.step != step:
                break
            found.append(news)
        return found[::-1]

    def state(self) -> dict[str, NDArray[Any]]:
        return {"squads/log": np.array(self.news, dtype=np.int64).reshape(-1, len(News._fields))}

    @classmethod
    def read(cls, stored: Mapping[str, NDArray[Any]], *, groups: int, rooms: int) -> Log:
        """What `state` returned, checked."""
        fresh = cls()
        table = taken(stored, "squads/log", dtype="int64", shape=(None, len(News._fields)), low=-1)
        squad, what, number = table[:, 1], table[:, 2], table[:, 3]
        wrong = (table[:, 0] < 0) | (squad < 0) | (squad >= groups) | (what < 0) | (what >= len(NEWS))
        wrong |= np.isin(what, _ABOUT_ROOMS) & ((number < 0) | (number >= rooms))
        if wrong.any():
            raise CheckpointError(f"'squads/log' holds {table[wrong][0].tolist()}, which no squad does")
        fresh.news = [News(*row) for row in table.tolist()]
        return fresh


def told(news: News, rooms: list[str]) -> str:
    """What happened, as the end of a sentence that begins with the name of the squad."""
    said = NEWS[news.what]
    if news.what in _ABOUT_ROOMS:
        return f"{said} {rooms[news.number]}"
    if news.what == COMMANDED:
        return f"{said} agent {news.number}" if news.number >= 0 else f"{said} nobody"
    return said
