"""What the layers promise each other: the protocols of a planner, an environment and a steering model.

A user's own layer is a small class with the one method that does its work. Everything else is optional and is looked
up here with a default, so that the smallest useful extension is a few lines long:

| attribute | default | meaning |
|---|---|---|
| `columns` | none | per-agent parameters the layer needs (`Column`s), settable per group |
| `memory` | none | per-agent columns that `steer` writes anew each step (into `out.memory`) |
| `moves_itself` | False | `steer` writes `out.position` instead of `out.velocity` |
| `follows_layers` | False | reads the layers that a planner's `lay` puts on the ground, not who is near |
| `cell` | none | its agents stand on cells of this size [m], one each, as wide as the cell |
| `solid_bodies` | False | agents of such models never push into each other: `integrate` shortens their moves |
| `bodies_may_overlap` | False | overlaps mean nothing: they are not watched where all models say so |
| `periodic_space` | False | knows worlds whose sides are joined: neighbours and goals are met beyond the seam |
| `prepare(state, world, seed)` | nothing | called once before the first step |
| `state()`, `restore(stored)` | nothing | what a checkpoint must keep beyond the agents' columns |
| `behaviours`, `set_behaviour(name, on)` | none | what can be switched off while it runs: name → whether it is on |
| `offers()` | nothing | what overlays and pictures may show of the layer (`offers.py`) |
| `in_force(state, name)` | the column | a parameter of all agents, with the layer's own value where theirs is nan |
| `parameters` | none | shown in digests: a resumed run must have the same |

A model that reacts to collisions reads the column `state.collided`: 1 where a body overlapped another agent's or an
obstacle during the last step. The engine writes it after `integrate`, whatever the model.

`state.velocity` is the displacement of the last step over dt. Only people on cells jump from one to the next and stand
in between; their model writes `out.velocity` as well: speed and direction of the move they are in while they make
headway, zero when they are held up. That is what others see, what is recorded, and over time adds up to their way.

Models that follow layers move before the others (`tropel.turns`): who senses finds them where they have gone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Column, Steered
from tropel.errors import ParameterError
from tropel.world import World

Rows = NDArray[np.int64]


@runtime_checkable
class Planner(Protocol):
    """Says where each agent would like to go."""

    def direct(self, state: AgentState, members: Rows, out: NDArray[np.float64]) -> None:
        """Write into the rows `members` of `out` (N, dim): a unit vector, shorter to go slower, zero to stand."""


@runtime_checkable
class Environment(Protocol):
    """Says who and what is near."""

    def sense(self, state: AgentState, world: World) -> Any:
        """Return a `Near`: cell list, walls and obstacles for this step."""


@runtime_checkable
class Steering(Protocol):
    """Decides how each agent moves."""

    def steer(
        self,
        state: AgentState,
        near: Any,
        directions: NDArray[np.float64],
        members: Rows,
        dt: float,
        step: int,
        out: Steered,
    ) -> None:
        """Write velocity, heading and memory of the rows `members` into `out`; read everything else, change nothing."""


def check_space(layer: object, world: World, what: str) -> None:
    """Raise when a layer would be wrong in this world: where its sides are joined, or where they are no walls."""
    if world.is_periodic and not getattr(layer, "periodic_space", False):
        raise ParameterError(
            f"{what}: {type(layer).__name__} does not know periodic space, where others and goals are met beyond the "
            f"seam; use another model, or a world that is not periodic (a layer of your own that takes nearest images "
            f"declares periodic_space = True)"
        )
    if world.is_periodic and getattr(layer, "solid_bodies", False):
        raise ParameterError(
            f"{what}: solid bodies are not kept apart over the seam of periodic space; give {type(layer).__name__} "
            f"solid_bodies=False, or take a world that is not periodic"
        )


def columns_of(layer: object) -> tuple[Column, ...]:
    """All columns a layer declares, parameters and memory."""
    return (*getattr(layer, "columns", ()), *getattr(layer, "memory", ()))


def memory_of(layer: object) -> tuple[str, ...]:
    return tuple(column.name for column in getattr(layer, "memory", ()))


def in_force(layers: Iterable[object], state: AgentState, name: str) -> NDArray[Any]:
    """A parameter of all agents, where theirs is nan with the value of the first layer that has one of its own."""
    for layer in layers:
        method = getattr(layer, "in_force", None)
        if method is not None and any(column.name == name for column in getattr(layer, "columns", ())):
            return np.asarray(method(state, name))
    return state.columns[name]


def prepare(layer: object, state: AgentState, world: World, seed: int) -> None:
    method = getattr(layer, "prepare", None)
    if method is not None:
        method(state, world, seed)


def stored(layer: object) -> dict[str, NDArray[Any]]:
    method = getattr(layer, "state", None)
    return {} if method is None else dict(method())


def restore(layer: object, values: Mapping[str, NDArray[Any]]) -> None:
    method = getattr(layer, "restore", None)
    if method is not None:
        method(dict(values))


def describe(layer: object) -> str:
    """Name and parameters of a layer, for digests and error messages."""
    kind = type(layer)
    return f"{kind.__module__}.{kind.__qualname__}({getattr(layer, 'parameters', '')})"
