"""How the agents of a model move: one number per row, which `contact` reads and models declare."""

from __future__ import annotations

from enum import IntEnum


class Moves(IntEnum):
    """What the engine makes of what a model has written for an agent."""

    FREELY = 0  #: by its velocity; contact lets it slide along walls and around obstacles, and others press on it
    ITSELF = 1  #: to the place that the model wrote; contact holds for it as for those who move freely
    EXACTLY = 2  #: to the very place and with the velocity that the model wrote, or not at all: on cells, by physics
    NOT_NOW = 3  #: its phase is another one: it stays where it is and keeps its velocity
