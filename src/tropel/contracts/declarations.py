"""What a layer declares about itself: typed, with defaults, and checked on construction."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

from tropel.agents.placing import ANYWHERE, Placing
from tropel.agents.state import Column
from tropel.errors import ParameterError, named_parameters
from tropel.foundation.arguments import Length
from tropel.foundation.quantities import number


class Moves(IntEnum):
    """How the engine turns what a model wrote into an agent's move; `contact` reads one code per row."""

    FREELY = 0  #: by its velocity; contact makes it slide along walls and around obstacles, and others push it
    ITSELF = 1  #: to the place that the model wrote; contact applies as for agents that move freely
    EXACTLY = 2  #: to exactly the place and with the velocity that the model wrote, or not at all: on cells, by physics
    NOT_NOW = 3  #: its phase is another one: it stays where it is and keeps its velocity


class Follows(Enum):
    """Which part of a planner's guidance a model follows."""

    DIRECTIONS = "directions"  #: a vector for each agent
    GROUND = "ground"  #: the ground that the planner publishes with its method `publish`


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What any layer may declare."""

    columns: tuple[Column, ...] = ()  #: agent parameters that it reads; groups, files and events may set them
    memory: tuple[Column, ...] = ()  #: columns that only this layer writes, in every step, into `out.memory`
    periodic_space: bool = False  #: it is correct in periodic worlds, where neighbours may be beyond the seam

    def __post_init__(self) -> None:
        for name in ("columns", "memory"):
            given = getattr(self, name)
            if not (isinstance(given, tuple) and all(isinstance(column, Column) for column in given)):
                raise ParameterError(f"{type(self).__name__}: {name} must be a tuple of Column(…), not {given!r:.60}")
        both = {column.name for column in self.columns} & {column.name for column in self.memory}
        if both:
            raise ParameterError(f"{type(self).__name__}: '{min(both)}' is both a parameter and memory; choose one")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class EnvironmentDeclaration(Declaration):
    """What an environment may declare."""

    cell: Length | None = None  #: edge of the cells that agents are sorted into [m]; None for the median sense radius
    tracks: tuple[str, ...] | None = None  #: the groups whose agents have neighbours; None for all


@named_parameters
@dataclass(frozen=True, kw_only=True)
class ModelDeclaration(Declaration):
    """What a steering model may declare."""

    moves: Moves = Moves.FREELY  #: how the engine turns what it writes into moves
    follows: Follows = Follows.DIRECTIONS
    senses: bool = True  #: whether it needs to know which agents are near; otherwise `moment.near` is absent
    reads_lists: bool = False  #: whether it reads `near.lists`, which some environments keep from step to step
    phase: int = 1  #: models of lower phases move first in a step, and the others see them at their new places
    alone_in_phase: bool = False  #: it cannot take into account moves that another model makes in the same phase
    solid_bodies: bool = False  #: its agents never move into other solid bodies
    bodies_may_overlap: bool = False  #: overlaps mean nothing; they are not checked if all models declare this
    walk_on: float = number(0.0, low=0.0, high=60.0, unit="s")  #: how long its agents walk on in an exit, then are gone
    placing: Placing = ANYWHERE  #: where newcomers may stand, and how wide they are there

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.moves is Moves.NOT_NOW:
            raise ParameterError("ModelDeclaration: moves is how agents move; NOT_NOW is reserved for the engine")
        if self.walk_on and self.follows is Follows.GROUND:
            raise ParameterError("ModelDeclaration: walk_on is for agents that follow directions, not the ground")


#: Declarations that are easily mistaken for attributes of the layer, where they would silently do nothing.
_NOT_ATTRIBUTES = {
    "columns", "memory", "periodic_space", "solid_bodies", "bodies_may_overlap", "follows", "senses", "walk_on",
    "reads_lists",
}  # fmt: skip


def check_declared(layer: Any, expected: type[Declaration], what: str) -> None:
    """Raise when a layer's declaration has the wrong type, or was written as attributes that nothing reads."""
    declared = layer.declares
    if not isinstance(declared, expected):
        raise ParameterError(
            f"{what}: {type(layer).__name__}.declares must be a {expected.__name__}(…), not {declared!r:.60}"
        )
    for name in sorted(_NOT_ATTRIBUTES):
        if name in vars(layer) or any(name in vars(kind) for kind in type(layer).__mro__):
            raise ParameterError(
                f"{what}: {type(layer).__name__} has an attribute '{name}', which nothing reads; declare it as  "
                f"declares = {expected.__name__}({name}=…)"
            )
