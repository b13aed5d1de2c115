"""An auction that runs in steps: places in teams bid for agents until each has one.

After Bertsekas, "The auction algorithm: a distributed relaxation method for the assignment problem", Annals of
Operations Research 14, 1988. Every agent j has a price p_j, at first zero. A place i without an agent looks for the
agent that is cheapest to it, c_ij + p_j, and bids so much that this agent becomes as expensive as the next best one,
and `slack` more:

    p_j ← p_j + (second least of c_ik + p_k) - (least of c_ik + p_k) + slack

It gets the agent, and the place that had it before bids again. Agents that nobody has bid for keep the price zero, so
the sharing in the end costs at most (number of places) · slack more than the cheapest one (ε-complementary slackness,
ibid. proposition 1). There are at most `bids` bids in a step: what is left goes on in the next one, with the costs of
when the auction began.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.contracts.sharing import NOBODY, Floats, Ints, Market, Sharing
from tropel.errors import CheckpointError, named_parameters
from tropel.foundation.quantities import number
from tropel.foundation.stored_arrays import taken


@named_parameters
@dataclass(frozen=True, kw_only=True)
class AuctionParameters:
    """How exact the auction is, and how much of it is held in a step."""

    slack: float = number(0.5, above=0.0, high=1e6, unit="s", about="most that each place in a team costs too much")
    bids: int = number(200, whole=True, low=1, high=1_000_000_000, about="most bids in a step")


class Auction(Sharing):
    """Places in teams bid for agents, a number of bids in each step."""

    def __init__(self, **parameters: float) -> None:
        self.parameters = AuctionParameters(**parameters)  # type: ignore[arg-type]
        self._cost: Floats = np.empty((0, 0))  #: of the auction that is being held; empty if there is none
        self._price: Floats = np.empty(0)
        self._place: Ints = np.empty(0, dtype=np.int64)  #: (N,) the place that has each agent

    def match(self, cost: Floats, market: Market) -> Ints | None:
        self._cost, self._price = cost.copy(), np.zeros(cost.shape[1])
        self._place = np.full(cost.shape[1], NOBODY, dtype=np.int64)
        return self.go_on()

    def go_on(self) -> Ints | None:
        """Hold up to `bids` bids; the agents of all places once each has one."""
        places = len(self._cost)
        without = sorted(set(range(places)) - set(self._place.tolist()), reverse=True)
        for _ in range(self.parameters.bids):
            if not without:
                break
            if (outbid := self._bid(without.pop())) != NOBODY:
                without.append(outbid)
        if without:
            return None
        chosen = np.full(places, NOBODY, dtype=np.int64)
        agents = np.flatnonzero(self._place != NOBODY)
        chosen[self._place[agents]] = agents
        self._end()
        return chosen

    def _bid(self, place: int) -> int:
        """Let a place bid for an agent; returns the place that had it before."""
        worth = self._cost[place] + self._price
        best = int(np.argmin(worth))
        least, worth[best] = worth[best], np.inf
        second = float(worth.min(initial=np.inf))
        # Nobody else can do it: any price will do, as long as no other place gets the agent for less than that.
        rise = second - least if np.isfinite(second) else self._dearest()
        self._price[best] += rise + self.parameters.slack
        before = int(self._place[best])
        self._place[best] = place
        return before

    def _dearest(self) -> float:
        able = np.isfinite(self._cost)
        return float(np.abs(self._cost[able]).max(initial=0.0)) + float(self._price.max(initial=0.0))

    def _end(self) -> None:
        self._cost, self._price = np.empty((0, 0)), np.empty(0)
        self._place = np.empty(0, dtype=np.int64)

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        return {"cost": self._cost, "price": self._price, "place": self._place} if len(self._cost) else {}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        if not stored:
            self._end()
            return
        cost = taken(stored, "cost", dtype="float64", shape=(None, None), finite=False)
        price = taken(stored, "price", dtype="float64", shape=(cost.shape[1],), low=0.0)
        place = taken(stored, "place", dtype="int64", shape=price.shape, low=NOBODY, high=len(cost) - 1)
        held = place[place != NOBODY]
        if np.isnan(cost).any() or len(np.unique(held)) != len(held) or len(cost) > len(price):
            raise CheckpointError("'place' of the auction of tasks gives one place to two agents, or costs are missing")
        self._cost, self._price, self._place = cost, price, place
