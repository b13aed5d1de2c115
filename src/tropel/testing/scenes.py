"""The scenes that layers are checked in: a hall (2D) and a box (3D) with everything a world can have."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from tropel.agents.distributions import Uniform
from tropel.agents.groups import Group
from tropel.agents.sources import Source
from tropel.errors import ParameterError
from tropel.simulation import Simulation
from tropel.world import Door, Obstacle, Orbit, Target, Waypoints, World

#: Agents in the usual scene, and in the one where threads are compared.
USUAL = 240
CROWD = 2_400
_LONERS = 9


@dataclass(frozen=True, kw_only=True)
class Scene:
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
) -> list[Scene]:
    """The user's own scene if there is one, else a built-in one for each dimension."""
    if world is None:
        if agents is not None:
            raise ParameterError("agents are given but no world; give both, or neither to use the built-in scenes")
        return [_built_in(dim, CROWD if crowd else USUAL) for dim in dims]
    if agents is None:
        groups: Sequence[Group | Source] = _everybody(CROWD if crowd else USUAL, world.dim)
    else:
        groups = (agents,) if isinstance(agents, Group | Source) else tuple(agents)
    return [Scene(name=f"the given {world.dim}D world", world=world, agents=groups, built_in=False)]


def _built_in(dim: int, count: int) -> Scene:
    if dim not in (2, 3):
        raise ParameterError(f"dims names the dimensions to check, 2 and 3, not {dim!r}")
    # Room per agent stays the same, so that everybody has about the same number of neighbours in small and large ones.
    scale = (count / USUAL) ** (1.0 / dim)
    world, crowded, remote = _hall(scale) if dim == 2 else _box(scale)
    what = "hall" if dim == 2 else "box"
    return Scene(
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
    """Agents with small ids whom nobody senses: with other ids, the rows of all others change and nothing else."""
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
    """Gaps between the ids, as when some have left, and everybody on the move, so that no number is a special one."""
    sim.remove_agents(ids=range(0, len(sim.agents), 7))
    state = sim.agents
    draws = np.random.default_rng(seed)
    heading = draws.normal(size=state.position.shape)
    heading /= np.linalg.norm(heading, axis=1, keepdims=True)
    state.heading[:] = heading
    state.velocity[:] = heading * draws.uniform(0.0, 1.0, size=(len(state), 1))
