"""Sharing: how tasks are shared out among the agents that can do them.

A layer that extends `Sharing` gets a `Market`, what it would cost each agent to do each task, and says who does which.
Whether a task is done by a whole team or not at all is decided before: `Sharing.admitted` picks the tasks that get
their people now, and `match` only decides who.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.agents.tasks.task import STRENGTH
from tropel.contracts.declarations import Declaration
from tropel.contracts.layers import Layer

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
#: No agent.
NOBODY = -1


@dataclass(frozen=True, kw_only=True, eq=False)
class Market:
    """Open tasks and the agents that could do them, the same on all processes and in any order of rows."""

    tasks: Ints  #: (T,) their numbers, ascending
    wanted: Ints  #: (T,) how many agents each takes
    priority: Floats  #: (T,)
    agents: Ints  #: (N,) ids, ascending
    cost: Floats  #: (T, N) what it costs an agent to do a task [s]; infinite if it cannot
    step: int
    seed: int

    def slots(self, tasks: Ints) -> Ints:
        """The row of `cost` for each place in the teams of some tasks, which are rows themselves."""
        return np.repeat(tasks, self.wanted[tasks])


@dataclass(frozen=True, kw_only=True, eq=False)
class Shared:
    """Who does what: an agent for each place in a team."""

    tasks: Ints  #: (S,) numbers of tasks
    agents: Ints  #: (S,) ids


class Sharing(Layer):
    """Decides who does which task. What it returns depends on the market alone."""

    method = "match"
    declares = Declaration(columns=(STRENGTH,), periodic_space=True)
    #: Whether agents on their way to a task may be sent to another one when tasks are shared out anew.
    recalls: bool = True

    def order(self, market: Market) -> Floats:
        """(T,) among tasks of the same priority, those with a lower value get their people first.

        The mean cost of the cheapest team is the default: near tasks come before far ones.
        """
        cheapest = np.sort(market.cost, axis=1)
        return np.array(
            [
                cheapest[row, : int(count)].mean() if 0 < count <= cheapest.shape[1] else np.inf
                for row, count in enumerate(market.wanted.tolist())
            ]
        )

    @abstractmethod
    def match(self, cost: Floats, market: Market) -> Ints | None:
        """An agent, as a column of `cost` (S, N), for each place in the teams; None if it takes more steps.

        There is a way to fill all places with agents whose cost is finite. If it takes more steps, `go_on` is called in
        each of them, until it returns something or tasks are shared out anew.
        """

    def go_on(self) -> Ints | None:
        """Go on with the last `match`."""
        return None

    def admitted(self, market: Market) -> Ints:
        """Rows of the tasks that get all of their people now, in the order of their numbers; the others wait.

        One task after the other is taken, by priority, `order` and number, unless its team cannot be filled as well.
        """
        order = np.lexsort((market.tasks, self.order(market), -market.priority))
        able = np.isfinite(market.cost)
        holder = np.full(len(market.agents), NOBODY, dtype=np.int64)  #: the task that each agent would do
        taken: list[int] = []
        for row in order.tolist():
            attempt = holder.copy()
            if all(_find_one(row, able, attempt) for _ in range(int(market.wanted[row]))):
                holder = attempt
                taken.append(row)
        return np.array(sorted(taken), dtype=np.int64)


def _find_one(row: int, able: NDArray[np.bool_], holder: Ints) -> bool:
    """Find one more agent for a task, by letting others change tasks if need be (an augmenting path)."""
    wanted_by: dict[int, int] = {}  #: for each agent that was looked at, the task that would take it
    gives: dict[int, int] = {}  #: for each task, the agent that it would give up for another one
    wanting, seen = [row], np.zeros(able.shape[1], dtype=np.bool_)
    for task in wanting:
        for agent in np.flatnonzero(able[task] & ~seen).tolist():
            seen[agent] = True
            wanted_by[agent] = task
            held_by = int(holder[agent])
            if held_by == NOBODY:
                while wanted_by[agent] != row:
                    holder[agent] = wanted_by[agent]
                    agent = gives[wanted_by[agent]]
                holder[agent] = row
                return True
            if held_by != row and held_by not in gives:
                gives[held_by] = agent
                wanting.append(held_by)
    return False
