"""What agents believe of a changing world, as planners, habits and decisions read it (`moment.beliefs`).

It is None while nobody's knowledge is limited: then everybody knows the world as it is.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.world import World

Rows = NDArray[np.int64]

#: The key of the world as it is.
AS_IT_IS = b""


class Belief(NamedTuple):
    """Agents that believe the same, and the world as they believe it to be."""

    key: bytes  #: equal for equal beliefs, also from step to step; AS_IT_IS for those that are right
    world: World
    rows: Rows


class Sightings(NamedTuple):
    """Enemies as some agents know of them, one entry for each agent."""

    many: NDArray[np.int64]  #: how many were in sight when they were last seen; 0 if none ever were
    place: Floats  #: (n, dim) where the nearest of them was [m]; nan if none ever were
    time: Floats  #: when that was [s]; nan if none ever were


class Beliefs(ABC):
    """What agents believe in a step."""

    @abstractmethod
    def is_limited(self, rows: Rows) -> NDArray[np.bool_]:
        """Which of these rows know only what they have seen or were told; the others know the world as it is."""

    @abstractmethod
    def by_world(self, members: Rows) -> list[Belief]:
        """The members by what they believe of doors, exits, standing obstacles and hazards; each is in one part."""

    @abstractmethod
    def shut_doors(self, rows: Rows) -> NDArray[np.bool_]:
        """(n, doors): the doors that each of these rows believes shut, in the order of `world.doors`."""

    @abstractmethod
    def target_places(self, rows: Rows) -> Floats:
        """(n, dim): where each of these rows believes its goal, a target, to be; nan if it has no idea or no such goal.

        Those that believe the target gone have no idea either. Rows whose knowledge is not limited know where it is.
        """

    @abstractmethod
    def enemies(self, rows: Rows) -> Sightings:
        """The enemies that each of these rows has seen last or was told of last, those of all hostile groups."""
