"""What checks need to know about groups: which are people that walk, which want to get somewhere, and where to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Source
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL
from tropel.contracts.declarations import Moves
from tropel.world import World
from tropel.world.places import names_another_place

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Imaginary newcomers that stand for all that a source will send.
_SAMPLE = 100


def is_flock(sim: Simulation, group: int) -> bool:
    """Whether the members of a group are not bodies: overlaps, speeds and radii mean something else there."""
    return sim.layers.models[group].declares.bodies_may_overlap


def walks_on_cells(sim: Simulation, group: int) -> float | None:
    """The edge of the cells that a group walks on [m]; None if it does not."""
    declares = sim.layers.models[group].declares
    return 2.0 * declares.placing.body if declares.moves is Moves.EXACTLY and declares.placing.body else None


def walks_freely(sim: Simulation, group: int) -> bool:
    """Whether a group is people with bodies of their own on a plane."""
    moves = sim.layers.models[group].declares.moves
    return sim.world.dim == 2 and not is_flock(sim, group) and moves is not Moves.EXACTLY


def alive(sim: Simulation) -> NDArray[np.bool_]:
    return np.asarray(sim.agents.dead == 0, dtype=bool)


def goal_names(world: World, goal: int, *, opened: frozenset[str] = frozenset()) -> list[str]:
    """The goals that the value of an agent's `goal` column stands for, and that are open or among `opened`."""
    exits = [name for name, e in world.exits.items() if e.open or name in opened]
    if goal == NEAREST_EXIT:
        return exits
    if goal == NEAREST_TARGET:
        return list(world.targets)
    others = [name for name in world.goal_numbers if names_another_place(world, name) and name not in world.exits]
    return [name for name in (*exits, *world.targets, *others) if world.goal_numbers[name] == goal]


def goal_text(world: World, goal: int) -> str:
    """A goal as messages name it."""
    if goal in (NEAREST_EXIT, NEAREST_TARGET, NO_GOAL):
        return {NEAREST_EXIT: "any exit", NEAREST_TARGET: "any target", NO_GOAL: "any goal"}[goal]
    name = next(name for name, number in world.goal_numbers.items() if number == goal)
    if name in world.exits or world.goals().is_target[goal]:
        return f"the {'exit' if name in world.exits else 'target'} '{name}'"
    kind, _, rest = name.partition(" ")
    return f"the {kind} '{rest}'"


def newcomers(sim: Simulation, source: Source) -> dict[str, NDArray[np.float64]]:
    """Radius, desired speed and goal of imaginary newcomers of a source."""
    ids = np.arange(_SAMPLE, dtype=np.int64)
    values = source.values(
        world=sim.world, columns=sim.agents.declared, seed=sim.seed, group=source.group, ids=ids, time=0.0
    )
    return {name: np.broadcast_to(values[name], len(ids)) for name in ("radius", "desired_speed", "goal")}
