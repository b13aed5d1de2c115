"""The steering models that are compared, by the names that the tables show."""

from __future__ import annotations

from collections.abc import Callable

from tropel.contracts import Model
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.local.dynamical import Dynamical

OURS = "dynamical"
PAPERS = "dynamical as in the papers"
#: The collision-free speed model, which JuPedSim has as well.
SAME_MODEL = "CFSM"


def _as_in_the_papers() -> Dynamical:
    """Without what was added to the papers' equations."""
    return Dynamical(anticipation=0.0, weight_memory=0.0, crowding="all", solid_bodies=False)


#: Each makes a fresh model, with its default parameters.
MODELS: dict[str, Callable[[], Model]] = {
    OURS: Dynamical,
    PAPERS: _as_in_the_papers,
    SAME_MODEL: CollisionFreeSpeed,
}
