"""Steering models that are wrong in ways the tests of `tropel.verification` must notice."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Steered


class Ghost:
    """Walks as planned, whoever is there."""

    speedup = 1.0

    def steer(
        self,
        state: AgentState,
        near: Any,
        directions: NDArray[np.float64],
        members: NDArray[np.int64],
        dt: float,
        step: int,
        out: Steered,
    ) -> None:
        out.velocity[members] = self.speedup * directions[members] * state.desired_speed[members, None]


class Sprinter(Ghost):
    """Walks twice as fast as it should."""

    speedup = 2.0


class Dawdler(Ghost):
    """Walks three quarters as fast as it should."""

    speedup = 0.75


class Stander(Ghost):
    """Never moves."""

    speedup = 0.0


class Jumper(Ghost):
    """Once puts somebody elsewhere, over the wall and back, which no steering model may do."""

    def steer(self, state: AgentState, *arguments: Any) -> None:
        super().steer(state, *arguments)
        if arguments[4] == 20:
            state.position[0] = (11.0, 5.0)


class Uphill(Ghost):
    """Walks the faster the more people are near."""

    def steer(self, state: AgentState, near: Any, directions: Any, members: Any, *rest: Any) -> None:
        super().steer(state, near, directions, members, *rest)
        crowding = np.diff(near.csr().indptr)[members] / 28.0
        rest[-1].velocity[members] *= np.minimum(0.5 + 0.3 * crowding, 1.5)[:, None]
