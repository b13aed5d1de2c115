"""What a layer declares of itself: typed, with defaults, and checked when it is made."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any

from tropel.agents.placing import ANYWHERE, Placing
from tropel.agents.state import Column
from tropel.errors import ParameterError, named_parameters
from tropel.foundation.arguments import Length

# How the agents of a model move: one number per row, which `contact` reads and models declare.


class Moves(IntEnum):
    """What the engine makes of what a model has written for an agent."""

    FREELY = 0  #: by its velocity; contact lets it slide along walls and around obstacles, and others press on it
    ITSELF = 1  #: to the place that the model wrote; contact holds for it as for those who move freely
    EXACTLY = 2  #: to the very place and with the velocity that the model wrote, or not at all: on cells, by physics
    NOT_NOW = 3  #: its phase is another one: it stays where it is and keeps its velocity


class Follows(Enum):
    """What of a planner's guidance a model goes by."""

    DIRECTIONS = "directions"  #: a vector for each agent
    GROUND = "ground"  #: what the planner lays on the ground, with its method `lay`


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Declaration:
    """What any layer may declare."""

    columns: tuple[Column, ...] = ()  #: parameters of agents that it reads; groups, files and events may set them
    memory: tuple[Column, ...] = ()  #: columns that it alone writes, anew in each step, into `out.memory`
    periodic_space: bool = False  #: it is right in worlds whose sides are joined: others are met beyond the seam

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


@named_parameters
@dataclass(frozen=True, kw_only=True)
class ModelDeclaration(Declaration):
    """What a steering model may declare."""

    moves: Moves = Moves.FREELY  #: what the engine makes of what it writes
    follows: Follows = Follows.DIRECTIONS
    senses: bool = True  #: whether it wants to know who is near; otherwise `moment.near` is absent
    phase: int = 1  #: models of lower phases move first in a step, and the others see them where they have gone
    alone_in_phase: bool = False  #: it could not know of the moves that another model makes in the same phase
    solid_bodies: bool = False  #: its agents never push into other solid bodies
    bodies_may_overlap: bool = False  #: overlaps mean nothing: they are not watched where all models say so
    placing: Placing = ANYWHERE  #: where newcomers may stand, and how wide they are then

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.moves is Moves.NOT_NOW:
            raise ParameterError("ModelDeclaration: moves says how agents move, and NOT_NOW is for the engine alone")


#: Declarations that are easily mistaken for attributes of the layer, where they would silently do nothing.
_NOT_ATTRIBUTES = {"columns", "memory", "periodic_space", "solid_bodies", "bodies_may_overlap", "follows", "senses"}


def check_declared(layer: Any, expected: type[Declaration], what: str) -> None:
    """Raise when a layer's declaration is of another kind, or stands beside it as attributes that nobody reads."""
    declared = layer.declares
    if not isinstance(declared, expected):
        raise ParameterError(
            f"{what}: {type(layer).__name__}.declares must be a {expected.__name__}(…), not {declared!r:.60}"
        )
    for name in sorted(_NOT_ATTRIBUTES):
        if name in vars(layer) or any(name in vars(kind) for kind in type(layer).__mro__):
            raise ParameterError(
                f"{what}: {type(layer).__name__} has an attribute '{name}', which nobody reads; declare it, as  "
                f"declares = {expected.__name__}({name}=…)"
            )
