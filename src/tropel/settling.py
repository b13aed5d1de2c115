"""What really happened in a step, told to the models that want to know: `Model.settled`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tropel.agents.state import AgentState, Floats, Steered
from tropel.contracts import Model, Moment, Moves, Rows


class Settling:
    """Remembers where everybody was and wanted to be, as long as a model wants to be told."""

    def __init__(self, told: Sequence[tuple[Model, tuple[int, ...]]]) -> None:
        self.told = told  #: models that are told, each with the numbers of its groups
        self._before: Floats = np.empty((0, 0))
        self._wanted: Floats = np.empty((0, 0))

    def begin(self, state: AgentState) -> None:
        """Nobody has moved yet, nor wants to."""
        if self.told:
            self._before, self._wanted = state.position.copy(), state.position.copy()

    def note(self, state: AgentState, out: Steered, moves: Moves | np.ndarray, dt: float) -> None:
        """Where those want to be who move in this phase."""
        if not self.told:
            return
        codes = np.broadcast_to(np.asarray(moves, dtype=np.uint8), len(state))
        freely, placed = codes == Moves.FREELY, (codes == Moves.ITSELF) | (codes == Moves.EXACTLY)
        self._wanted[freely] = state.position[freely] + dt * out.velocity[freely]
        self._wanted[placed] = out.position[placed]

    def tell(self, moment: Moment, members: Callable[[tuple[int, ...]], Rows]) -> None:
        """Tell each model; the moment is that after the move."""
        for model, groups in self.told:
            model.settled(replace(moment, members=members(groups), groups=groups), self._before, self._wanted)
