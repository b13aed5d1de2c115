"""Threat assessment: whether a squad attacks the enemies that it sees, retreats, or carries on (GROUPS §2.2.2).

Its confidence is its strength per enemy in sight,

    confidence = Σ 2 · courage / enemies seen

over its own people and those of its side within sight of its commander; people of average courage (½) count as one.
An enemy is seen by the squad if anybody of it sees the enemy. With hysteresis, so that a squad does not waver:

    confidence ≥ attack_above        attack
    confidence < retreat_below       retreat, unless the present stage is critical
    in between                       as before
    nobody seen for some seconds     carry on with the mission

A retreat is an order (`RetreatTo`, then a wait to rally) and is carried out to its end.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.squads.squad import Squad

Floats = NDArray[np.float64]

CALM, ATTACKS, RETREATS = 0, 1, 2
STANCES = ("carries on", "attacks", "retreats")
#: Enemies that nobody has seen for so long are forgotten [s].
CALM_AFTER = 3.0


def confidence(courage: Floats, seen: int) -> float:
    """Strength per enemy; `courage` is that of everybody who counts. Integers are added, so the order never matters."""
    strength = int(np.floor(courage * 2.0**20 + 0.5).astype(np.int64).sum()) / 2.0**19
    return strength / seen


def next_stance(stance: int, confident: float, squad: Squad, *, may_retreat: bool) -> int:
    """The stance of a squad that sees enemies."""
    if stance == RETREATS:
        return RETREATS
    if confident >= squad.attack_above:
        return ATTACKS
    if confident < squad.retreat_below and may_retreat:
        return RETREATS
    return stance
