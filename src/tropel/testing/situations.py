"""The scenes in which layers are checked, and their inputs at one step with variations that must not matter.

The scenes are a hall (2D) and a box (3D) with everything a world can have.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.distributions import Uniform
from tropel.agents.groups import Group, Source
from tropel.agents.state import AgentState, Floats
from tropel.broad_phase import CellGrid
from tropel.contracts import Environment, Guidance, Layer, Moment, Near, Planner, Rows
from tropel.errors import ParameterError
from tropel.simulation import Simulation
from tropel.testing.violation import ContractViolation
from tropel.world import Door, Obstacle, Orbit, Target, Waypoints, World
from tropel.world.ground import Ground

#: Agents in the usual scene, and in the one for comparing threads.
USUAL = 240
CROWD = 2_400
_LONERS = 9


@dataclass(frozen=True, kw_only=True)
class CheckScene:
    """A world and agents, from which simulations can be built again and again."""

    name: str
    world: World
    agents: Sequence[Group | Source]
    built_in: bool

    def simulation(self, *, seed: int, dt: float, **layers: Any) -> Simulation:
        sim = Simulation(copy.deepcopy(self.world), self.agents, seed=seed, dt=dt, **layers)
        if self.built_in:
            _stir(sim, seed)
        return sim


def scenes(
    *, world: World | None, agents: Iterable[Group | Source] | Group | None, dims: Iterable[int], crowd: bool = False
) -> list[CheckScene]:
    """The user's scene if one is given, otherwise a built-in one per dimension."""
    if world is None:
        if agents is not None:
            raise ParameterError("agents are given without a world; give both, or neither to use the built-in scenes")
        return [_built_in(dim, CROWD if crowd else USUAL) for dim in dims]
    if agents is None:
        groups: Sequence[Group | Source] = _everybody(CROWD if crowd else USUAL, world.dim)
    else:
        groups = (agents,) if isinstance(agents, Group | Source) else tuple(agents)
    return [CheckScene(name=f"the given {world.dim}D world", world=world, agents=groups, built_in=False)]


def _built_in(dim: int, count: int) -> CheckScene:
    if dim not in (2, 3):
        raise ParameterError(f"dims names the dimensions to check, 2 and 3, not {dim!r}")
    # Space per agent stays the same, so that agents have about the same number of neighbours in small and large scenes.
    scale = (count / USUAL) ** (1.0 / dim)
    world, crowded, remote = _hall(scale) if dim == 2 else _box(scale)
    what = "hall" if dim == 2 else "box"
    return CheckScene(
        name=f"the {dim}D {what} with {count:,} agents",
        world=world,
        agents=(_loners(remote), *_everybody(count - _LONERS, dim, crowded)),
        built_in=True,
    )


def _hall(s: float) -> tuple[World, Any, Any]:
    """The world, where the crowd is, and a remote part of it."""
    area = shapely.box(0, 0, 30 * s, 14 * s) - shapely.box(9 * s, 5 * s, 11 * s, 8 * s)
    world = World(
        area,
        walls=[shapely.LineString([(4 * s, 9 * s), (8 * s, 11 * s), (8 * s, 14 * s)])],
        doors={
            "shut": Door([(11 * s, 8 * s), (11 * s, 14 * s)]),
            "open": Door([(11 * s, 0), (11 * s, 5 * s)], open=True),
        },
        exits={"east": shapely.box(21 * s, 5 * s, 22 * s, 8 * s), "west": shapely.box(0, 1 * s, 0.5 * s, 3 * s)},
        obstacles={
            "pillar": Obstacle(radius=0.5, position=(15 * s, 4 * s)),
            "cart": Obstacle(radius=0.4, motion=Orbit(center=(16 * s, 10 * s), radius=1.5, period=9.0)),
        },
        targets={
            "stall": Target(position=(2.5 * s, 12 * s), radius=0.5),
            "guide": Target(motion=Waypoints(points=((2 * s, 2 * s), (19 * s, 2 * s)), speed=1.0), radius=0.4),
        },
    )
    return world, shapely.box(0, 0, 22 * s, 14 * s), shapely.box(27 * s, 0, 30 * s, 14 * s)


def _box(s: float) -> tuple[World, Any, Any]:
    world = World.box(
        (0, 0, 0),
        (13 * s, 8 * s, 6 * s),
        obstacles={
            "ball": Obstacle(radius=0.5, position=(4 * s, 4 * s, 3 * s)),
            "comet": Obstacle(radius=0.3, motion=Orbit(center=(4 * s, 4 * s, 2 * s), radius=2.0, period=7.0)),
        },
        targets={
            "stall": Target(position=(7 * s, 7 * s, 5 * s), radius=0.5),
            "guide": Target(
                motion=Waypoints(points=((1 * s, 1 * s, 1 * s), (7 * s, 1 * s, 5 * s)), speed=1.0), radius=0.4
            ),
        },
    )
    return world, ((0, 0, 0), (8 * s, 8 * s, 6 * s)), ((11.5 * s, 0, 0), (13 * s, 8 * s, 6 * s))


def _loners(region: Any) -> Group:
    """Agents with small ids that no other senses: with other ids, only the rows of all others change."""
    return Group("loners", count=_LONERS, region=region, radius=0.15, sense_radius=0.2, goal="none")


def _everybody(count: int, dim: int, region: Any = None) -> tuple[Group, ...]:
    wide = Uniform(0.5, 3.0) if dim == 2 else Uniform(0.5, 2.0)
    common: dict[str, Any] = {
        "radius": Uniform(0.12, 0.2),
        "desired_speed": Uniform(0.6, 1.6),
        "sense_radius": wide,
        "region": region,
    }
    third = count // 3
    return (
        Group("leavers", count=third, goal="nearest exit", **common),
        Group("visitors", count=third, goal="nearest target", **common),
        Group("idlers", count=count - 2 * third, goal="none", **common),
    )


def _stir(sim: Simulation, seed: int) -> None:
    """Make gaps between the ids, as if some agents had left, and set all agents in motion, to avoid special numbers."""
    sim.remove_agents(ids=range(0, len(sim.agents), 7))
    state = sim.agents
    draws = np.random.default_rng(seed)
    heading = draws.normal(size=state.position.shape)
    heading /= np.linalg.norm(heading, axis=1, keepdims=True)
    state.heading[:] = heading
    state.velocity[:] = heading * draws.uniform(0.0, 1.0, size=(len(state), 1))


Maker = Callable[[], Any]


def maker(layer: Any, kind: type[Layer]) -> Maker:
    """How to get a fresh layer: a copy of the given one, or what the given class or function returns."""
    if not isinstance(layer, kind):
        if not callable(layer):
            raise ParameterError(
                f"{layer!r} is not a tropel.{kind.__name__}, nor a class or function that makes one; extend "
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
    """The inputs of a simulation's layers at one step."""

    state: AgentState
    world: World
    directions: Floats
    near: Near | None
    make_environment: Maker
    dt: float
    step: int
    seed: int
    ground: Ground | None = None

    @classmethod
    def of(cls, sim: Simulation, *, make_environment: Maker) -> Situation:
        """The next step of a simulation, which may continue afterwards."""
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
        """The input of a layer for some members, or for all; cells are those in which neighbours were found."""
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
        if planner.publishes_ground():
            planner.publish(moment, out)
        else:
            planner.direct(moment, out)
        return replace(self, directions=out.directions, ground=out.ground)

    def prepared(self, make: Maker) -> Any:
        """A fresh layer, ready for its first step."""
        layer: Layer = make()
        layer.prepare(self.moment())
        return layer

    def taking(self, rows: Rows, *, ids: NDArray[np.int64] | None = None) -> Situation:
        """Only these rows, in this order, optionally with other ids."""
        columns = {name: array[rows] for name, array in self.state.columns.items()}
        if ids is not None:
            columns["id"] = ids.copy()
        state = with_columns(self.state, columns)
        return replace(self, state=state, directions=self.directions[rows], near=None).sensed()

    def at(self, positions: Floats) -> Situation:
        """The same agents at other positions."""
        state = with_columns(self.state, self.state.columns | {"position": positions})
        return replace(self, state=state, near=None).sensed()

    def elsewhere(self) -> Situation:
        """Every agent at the position of the next one: another moment of the same agents."""
        moved = self.at(np.roll(self.state.position, 1, axis=0))
        return replace(moved, directions=np.roll(self.directions, 1, axis=0))

    def unseen_rows(self) -> Rows:
        """Agents that are in no other agent's sense radius: their presence changes nothing for others."""
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
    """The arrays of the world that layers read."""
    return {
        "world.bounds": world.bounds,
        "world.segments": world.segments,
        "world.blocking": world.blocking,
        "world.state()": np.array(json.dumps(world.state(), sort_keys=True)),
        **{f"world.obstacles.{name}": getattr(world.obstacles, name) for name in ("position", "velocity", "radius")},
        **{f"world.goals().{name}": array for name, array in world.goals()._asdict().items()},
    }


def near_arrays(near: Near) -> dict[str, NDArray[Any]]:
    """The arrays of a neighbourhood that steering models read."""
    arrays: dict[str, NDArray[Any]] = {}
    kernels: dict[str, Any] = {"neighbours()": near.neighbours(), "walls": near.walls, "obstacles": near.obstacles}
    for kind, arrays_of in kernels.items():
        arrays |= {f"near.{kind}.{name}": np.asarray(array) for name, array in arrays_of._asdict().items()}
    lists = {"csr": near.csr(), "walls_csr": near.walls_csr(), "obstacles_csr": near.obstacles_csr()}
    for kind, (indptr, indices) in lists.items():
        arrays |= {f"near.{kind}().indptr": indptr, f"near.{kind}().indices": indices}
    return arrays
