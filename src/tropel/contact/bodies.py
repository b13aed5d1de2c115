"""Solid bodies: they push each other, slide past each other, and shorten moves that would still collide.

Steering models see where others stand, not how walls and obstacles will change their moves. So the moves of a step
may still bring two bodies together. Before walls are handled, wanted moves become compatible moves (`solver.py`).
After contact with walls and obstacles, moves that still collide are shortened (`giving_way.py`).

Both are iterations in rounds. Each round reads only the moves of the previous round, so the result does not depend on
order or threads. Each round ends at one point, where the rows of other processes can be updated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.walls import WallGrid
from tropel.agents.state import AgentState, Steered
from tropel.broad_phase import CellGrid
from tropel.contact.contacts import Contacts, find_contacts
from tropel.contact.giving_way import lengths_of, shorten_moves
from tropel.contact.solver import moves_in_contact
from tropel.contact.wanted import HowTheyMove
from tropel.contracts.declarations import Moves
from tropel.foundation.reductions import ONE_PROCESS, Reductions

#: Called at the end of each round with the contacts and the working table (`SolverTable` or `GivingWay`).
RoundEnd = Callable[[Contacts, Any], None]


class Bodies:
    """Which agents are solid in this step, and which of them are close to each other.

    With `at_round_end`, the rounds are driven from Python and give the same bits.
    """

    def __init__(
        self,
        cells: CellGrid,
        solid: NDArray[np.bool_],
        key: np.uint64,
        step: int,
        *,
        at_round_end: RoundEnd | None = None,
        reduce: Reductions = ONE_PROCESS,
    ) -> None:
        self._cells = cells
        self._reduce = reduce
        self._solid = solid
        self._key = key
        self._step = step
        self._at_round_end = at_round_end
        self._contacts: Contacts | None = None
        self._farthest = -1.0  #: the contact lists are complete for moves up to this length [m]
        self._wanted: NDArray[np.float64] | None = None  #: ends of the moves that the contacts were found for

    def solve_contacts(
        self,
        state: AgentState,
        wanted: NDArray[np.float64],
        longest: float,
        walls: WallGrid,
        dt: float,
        moves: HowTheyMove = Moves.FREELY,
    ) -> NDArray[np.float64]:
        """The ends of the moves after contact between bodies. No wanted move is longer than `longest` [m]."""
        widest = self._reduce.largest(state.radius)
        # Walls push bodies that are too close to them out by a part of their radius. Lists with a little to spare can
        # be reused afterwards.
        self._farthest = longest + 0.1 * widest
        self._wanted = wanted
        self._contacts = self._find(state, wanted, moves, widest)
        return moves_in_contact(
            self._contacts,
            wanted,
            walls=walls,
            held=state.held,
            longest=longest,
            widest=widest,
            key=self._key,
            time=self._step * dt,
            at_round_end=self._at_round_end,
        )

    def give_way(self, state: AgentState, steered: Steered, moves: HowTheyMove = Moves.FREELY) -> None:
        """Shorten the moves from `state.position` to `steered.position` until no two solid bodies collide."""
        ends = steered.position
        lengths, own_longest = lengths_of(state.position, ends)
        longest = self._reduce.largest(np.array([own_longest]))
        if self._contacts is None or self._wanted is None or longest > self._farthest:
            self._farthest, self._wanted = longest, np.full_like(ends, np.nan)
            self._contacts = self._find(state, ends, moves, self._reduce.largest(state.radius))
        shorten_moves(
            self._contacts,
            wanted=self._wanted,
            ends=ends,
            lengths=lengths,
            velocity=steered.velocity,
            key=self._key,
            step=self._step,
            at_round_end=self._at_round_end,
        )

    def _find(self, state: AgentState, ends: NDArray[np.float64], moves: HowTheyMove, widest: float) -> Contacts:
        return find_contacts(self._cells, state, ends, self._solid, moves, widest=widest, farthest=self._farthest)
