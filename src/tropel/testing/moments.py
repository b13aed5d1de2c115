"""What a layer is given at one step, and the variations of it that must not matter."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Floats
from tropel.broad_phase import CellGrid
from tropel.contracts import Environment, Guidance, Layer, Moment, Near, Planner, Rows
from tropel.errors import ParameterError
from tropel.simulation import Simulation
from tropel.testing.violation import ContractViolation
from tropel.world import World
from tropel.world.terrain import Terrain

Maker = Callable[[], Any]


def maker(layer: Any, kind: type[Layer]) -> Maker:
    """How to get a fresh layer: a copy of the one given, or what a class or function that makes layers returns."""
    if not isinstance(layer, kind):
        if not callable(layer):
            raise ParameterError(
                f"{layer!r} is no tropel.{kind.__name__}, and no class or function that makes one; extend "
                f"tropel.{kind.__name__} and write its method {kind.method}"
            )
        return layer
    try:
        pristine = copy.deepcopy(layer)
    except Exception as error:
        raise ParameterError(
            f"{type(layer).__name__} cannot be copied ({error}); give a function that makes a new one instead"
        ) from error
    return lambda: copy.deepcopy(pristine)


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What the layers of a simulation see at one step."""

    state: AgentState
    world: World
    directions: Floats
    near: Near | None
    make_environment: Maker
    dt: float
    step: int
    seed: int
    ground: Terrain | None = None

    @classmethod
    def of(cls, sim: Simulation, *, make_environment: Maker) -> Situation:
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

    def sensed(self) -> Situation:
        environment: Environment = self.prepared(self.make_environment)
        near = environment.sense(self.moment(environment=environment))
        if not isinstance(near, Near):
            raise ContractViolation(
                f"{type(environment).__name__}.sense(): sense returns a Near, but it returned {type(near).__name__}; "
                f"extend tropel.contracts.Near"
            )
        return replace(self, near=near)

    def moment(self, members: Rows | None = None, *, environment: Environment | None = None) -> Moment:
        """What a layer is given for some members, or for all; cells are those that neighbours were found in."""
        fresh = Moment.of(
            self.state,
            self.world,
            directions=self.directions,
            members=members,
            step=self.step,
            dt=self.dt,
            seed=self.seed,
            cells=None if self.near is None else self.near.cells,
        )
        if environment is not None and self.near is None:
            cells = CellGrid.of(self.state, self.world, cell=environment.declares.cell)
            fresh = replace(fresh, cells=cells)
        guidance = Guidance(directions=self.directions, ground=self.ground)
        return replace(fresh, given=guidance, sensed=self.near)

    def planned(self, planner: Planner) -> Situation:
        """With the guidance of a planner."""
        out = Guidance(directions=np.zeros_like(self.state.position))
        moment = replace(self.moment(), given=None, sensed=None)
        if planner.lays_ground():
            planner.lay(moment, out)
        else:
            planner.direct(moment, out)
        return replace(self, directions=out.directions, ground=out.ground)

    def prepared(self, make: Maker) -> Any:
        """A fresh layer, ready for its first step."""
        layer: Layer = make()
        layer.prepare(self.moment())
        return layer

    def taking(self, rows: Rows, *, ids: NDArray[np.int64] | None = None) -> Situation:
        """Only these rows, in this order, with other ids if they are given."""
        columns = {name: array[rows] for name, array in self.state.columns.items()}
        if ids is not None:
            columns["id"] = ids.copy()
        state = with_columns(self.state, columns)
        return replace(self, state=state, directions=self.directions[rows], near=None).sensed()

    def at(self, positions: Floats) -> Situation:
        """Everybody elsewhere."""
        state = with_columns(self.state, self.state.columns | {"position": positions})
        return replace(self, state=state, near=None).sensed()

    def elsewhere(self) -> Situation:
        """Everybody in the place of the next one: another moment of the same agents."""
        moved = self.at(np.roll(self.state.position, 1, axis=0))
        return replace(moved, directions=np.roll(self.directions, 1, axis=0))

    def unseen_rows(self) -> Rows:
        """Agents that nobody else has within its sense radius: whether they are there changes nothing for others."""
        assert self.near is not None
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
    other.ghosts = 0
    other.touch()
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


def near_arrays(near: Near) -> dict[str, NDArray[Any]]:
    """What of a neighbourhood steering models look at."""
    arrays: dict[str, NDArray[Any]] = {}
    kernels: dict[str, Any] = {"neighbours()": near.neighbours(), "walls": near.walls, "obstacles": near.obstacles}
    for kind, arrays_of in kernels.items():
        arrays |= {f"near.{kind}.{name}": np.asarray(array) for name, array in arrays_of._asdict().items()}
    lists = {"csr": near.csr(), "walls_csr": near.walls_csr(), "obstacles_csr": near.obstacles_csr()}
    for kind, (indptr, indices) in lists.items():
        arrays |= {f"near.{kind}().indptr": indptr, f"near.{kind}().indices": indices}
    return arrays
