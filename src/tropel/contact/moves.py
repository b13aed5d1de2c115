"""How agents move (`tropel.movement`), in the form that the kernels of contact read: an array of codes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel
from tropel.movement import Moves

#: One value where all agents move alike, else one code for each row.
HowTheyMove = Moves | NDArray[np.uint8]

FREELY, EXACTLY, NOT_NOW = int(Moves.FREELY), int(Moves.EXACTLY), int(Moves.NOT_NOW)

_ALIKE = {how: np.array([how], dtype=np.uint8) for how in Moves}


def codes_of(moves: HowTheyMove) -> NDArray[np.uint8]:
    """The codes of all rows; where all are alike a single one, so that nothing of the crowd's size is filled."""
    return _ALIKE[moves] if isinstance(moves, Moves) else moves


@inlined_kernel
def code_of(codes, i):
    """How agent i moves."""
    return codes[i] if codes.size > 1 else codes[0]
