"""Random sharing: anybody that can do a task may get it, near or far. What the other ways are compared with."""

from __future__ import annotations

import numpy as np

from tropel._kernels.philox import random_key, uniforms
from tropel.contracts.sharing import Floats, Ints, Market, Sharing
from tropel.deciding.sharing.optimal import least_cost


class AtRandom(Sharing):
    """Who does what is drawn. Agents on their way keep their task, or they would never get there."""

    recalls = False

    def order(self, market: Market) -> Floats:
        return self._drawn(market, "order", market.tasks)

    def match(self, cost: Floats, market: Market) -> Ints:
        # The least of random costs is a random way to fill all places with agents that can do the work.
        drawn = np.stack([self._drawn(market, f"place {place}", market.agents) for place in range(len(cost))])
        return least_cost(np.where(np.isfinite(cost), drawn, np.inf))

    @staticmethod
    def _drawn(market: Market, purpose: str, numbers: Ints) -> Floats:
        return np.asarray(uniforms(random_key(market.seed, f"tasks, {purpose}, {market.step}"), numbers)[:, 0])
