"""Greedy sharing: the cheapest pair of an agent and a task first, then the cheapest of those that are left, and so on.

Pairs with equal costs come in the order of tasks and then of ids. If the last places in teams cannot be filled that
way, because agents that could do the work are taken for other tasks, the sharing with the least cost is taken for all.
"""

from __future__ import annotations

import numpy as np

from tropel.contracts.sharing import NOBODY, Floats, Ints, Market, Sharing
from tropel.deciding.sharing.optimal import least_cost


class Greedy(Sharing):
    """The nearest pair first."""

    def match(self, cost: Floats, market: Market) -> Ints:
        places, agents = cost.shape
        chosen = np.full(places, NOBODY, dtype=np.int64)
        taken = np.zeros(agents, dtype=np.bool_)
        left = places
        for pair in np.argsort(cost, axis=None, kind="stable").tolist():
            place, agent = divmod(pair, agents)
            if left == 0 or not np.isfinite(cost[place, agent]):
                break
            if chosen[place] == NOBODY and not taken[agent]:
                chosen[place], taken[agent] = agent, True
                left -= 1
        return least_cost(cost) if left else chosen
