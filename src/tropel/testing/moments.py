"""Moments: all that a layer is given at one step, and the variations of it that must not matter."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel import layers
from tropel.agents.state import AgentState, Floats
from tropel.errors import ParameterError
from tropel.layers import Rows
from tropel.simulation import Simulation
from tropel.world import World

Maker = Callable[[], Any]


def maker(layer: Any, method: str) -> Maker:
    """How to get a fresh layer: a copy of the one given, or what a class or function that makes layers returns."""
    if isinstance(layer, type) or not hasattr(layer, method):
        if not callable(layer):
            raise ParameterError(f"{layer!r} has no method {method}(…) and is no function that makes such a layer")
        return layer
    try:
        pristine = copy.deepcopy(layer)
    except Exception as error:
        raise ParameterError(
            f"{type(layer).__name__} cannot be copied ({error}); give a function that makes a new one instead"
        ) from error
    return lambda: copy.deepcopy(pristine)


@dataclass(frozen=True, kw_only=True)
class Moment:
    """What the layers of a simulation see at one step."""

    state: AgentState
    world: World
    directions: Floats
    near: Any
    make_environment: Maker
    dt: float
    step: int
    seed: int

    @classmethod
    def of(cls, sim: Simulation, *, make_environment: Maker) -> Moment:
        """The coming step of a simulation, which may go on afterwards."""
        world = copy.deepcopy(sim.world)
        world.advance(sim.time, sim.dt)
        bare = cls(
            state=with_columns(sim.agents, sim.agents.columns),
            world=world,
            directions=np.zeros_like(sim.agents.position),
            near=None,
            make_environment=make_environment,
            dt=sim.dt,
            step=sim.step_number,
            seed=sim.seed,
        )
        return bare.sensed()

    def sensed(self) -> Moment:
        environment = self.prepared(self.make_environment)
        return replace(self, near=environment.sense(self.state, self.world))

    def planned(self, planner: Any) -> Moment:
        """With the directions of a planner."""
        directions = np.zeros_like(self.state.position)
        planner.direct(self.state, np.arange(len(self.state), dtype=np.int64), directions)
        return replace(self, directions=directions)

    def prepared(self, make: Maker) -> Any:
        """A fresh layer, ready for its first step."""
        layer = make()
        layers.prepare(layer, self.state, self.world, self.seed)
        return layer

    def taking(self, rows: Rows, *, ids: NDArray[np.int64] | None = None) -> Moment:
        """Only these rows, in this order. Rows are always in the order of ids, so another order needs other ids."""
        columns = {name: array[rows] for name, array in self.state.columns.items()}
        if ids is not None:
            columns["id"] = ids.copy()
        state = with_columns(self.state, columns)
        return replace(self, state=state, directions=self.directions[rows]).sensed()

    def at(self, positions: Floats) -> Moment:
        """Everybody elsewhere."""
        state = with_columns(self.state, self.state.columns | {"position": positions})
        return replace(self, state=state).sensed()

    def elsewhere(self) -> Moment:
        """Everybody in the place of the next one: another moment of the same agents."""
        moved = self.at(np.roll(self.state.position, 1, axis=0))
        return replace(moved, directions=np.roll(self.directions, 1, axis=0))

    def unseen_rows(self) -> Rows:
        """Agents that nobody else has within its sense radius: whether they are there changes nothing for others."""
        indices = np.asarray(self.near.csr()[1], dtype=np.int64)
        return np.setdiff1d(np.arange(len(self.state), dtype=np.int64), indices)

    def inputs(self) -> dict[str, NDArray[Any]]:
        """Every array that a layer may read and must not change."""
        arrays = {f"state.{name}": array for name, array in self.state.columns.items()}
        arrays["directions"] = self.directions
        arrays |= world_arrays(self.world)
        if self.near is not None:
            arrays |= near_arrays(self.near)
        return arrays


def with_columns(state: AgentState, columns: dict[str, NDArray[Any]]) -> AgentState:
    """The same kind of agents with copies of the given columns."""
    other = copy.copy(state)
    other.columns = {name: np.array(array, order="C") for name, array in columns.items()}
    return other


def world_arrays(world: World) -> dict[str, NDArray[Any]]:
    """What of the world layers look at."""
    return {
        "world.bounds": world.bounds,
        "world.segments": world.segments,
        "world.blocking": world.blocking,
        "world.state()": np.array(json.dumps(world.state(), sort_keys=True)),
        **{f"world.obstacles.{name}": getattr(world.obstacles, name) for name in ("position", "velocity", "radius")},
        **{f"world.goals().{name}": array for name, array in world.goals()._asdict().items()},
    }


def near_arrays(near: Any) -> dict[str, NDArray[Any]]:
    """What of a neighbourhood steering models look at."""
    arrays: dict[str, NDArray[Any]] = {}
    for kind in ("cells", "walls", "obstacles"):
        if hasattr(getattr(near, kind, None), "_asdict"):
            listed = getattr(near, kind)._asdict()
            arrays |= {f"near.{kind}.{name}": np.asarray(array) for name, array in listed.items()}
    for kind in ("csr", "walls_csr", "obstacles_csr"):
        if hasattr(near, kind):
            indptr, indices = getattr(near, kind)()
            arrays |= {f"near.{kind}().indptr": indptr, f"near.{kind}().indices": indices}
    return arrays
