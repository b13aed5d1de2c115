"""Two crowds on two sides of a thin wall: people ignore those that they cannot see, whatever the model.

The measure is the drift: how far people are, on average over all of them and all steps, from where they would be if
there were nobody behind the wall.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel.scenario import Scenario, load_builtin
from tropel.scenario.schema import EnvironmentSpec, ModelSpec

SECONDS = 20.0
SEEK = {"model": "seek"}
FLOCKING = {"model": "flocking"}
# Solid bodies would depend on each other by the contact solver, which makes as many rounds as the whole crowd needs.
PEDESTRIAN = {"model": "dynamical", "preset": "pedestrian", "solid_bodies": False}
SOCIAL_FORCE = {"model": "social_force"}


def thin_wall(local: dict[str, Any], environment: EnvironmentSpec | None, *, behind: int) -> Scenario:
    """The scene with another model, with its own environment or another, and this many people behind the wall."""
    scene = load_builtin("thin_wall")
    eastbound, westbound = scene.spec.groups
    changed = {
        "groups": [eastbound, westbound.model_copy(update={"count": behind})],
        "local": ModelSpec(**local),
        "environment": environment or scene.spec.environment,
    }
    return replace(scene, spec=scene.spec.model_copy(update=changed))


def paths(scene: Scenario, seed: int) -> NDArray[np.float64]:
    """Where the eastbound people are in every step, or were when they left."""
    sim = scene.build(seed=seed, threads=1)
    here = np.zeros((30, 2))
    seen = []
    for _ in range(round(SECONDS / sim.dt)):
        sim.step()
        mine = sim.agents.group == 0
        here[sim.agents.id[mine]] = sim.agents.position[mine]
        seen.append(here.copy())
    return np.array(seen)


def drift(local: dict[str, Any], seed: int, environment: EnvironmentSpec | None = None) -> float:
    crowded, alone = (paths(thin_wall(local, environment, behind=behind), seed) for behind in (30, 0))
    return float(np.linalg.norm(crowded - alone, axis=2).mean())


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    ("local", "on_the_grid"),
    [(SEEK, 0.03), (PEDESTRIAN, 0.2), (FLOCKING, 0.4), (SOCIAL_FORCE, 0.3)],
    ids=lambda value: value["model"] if isinstance(value, dict) else "",
)
def test_people_walk_as_if_there_were_nobody_behind_the_wall(
    local: dict[str, Any], on_the_grid: float, seed: int
) -> None:
    assert drift(local, seed) == 0.0
    assert drift(local, seed, EnvironmentSpec(model="grid")) > on_the_grid


def test_it_is_sight_that_makes_the_difference() -> None:
    near = EnvironmentSpec(model="kinetic", visibility="near")
    assert drift(SEEK, 0, near) == drift(SEEK, 0, EnvironmentSpec(model="grid")) > 0.0


@pytest.mark.parametrize("seed", range(2))
def test_people_in_sight_still_count(seed: int) -> None:
    scene = thin_wall(SEEK, None, behind=30)
    one = scene.spec.groups[0].model_copy(update={"count": 15})
    fewer = replace(scene, spec=scene.spec.model_copy(update={"groups": [one, scene.spec.groups[1]]}))
    apart = np.linalg.norm(paths(scene, seed)[:, :15] - paths(fewer, seed)[:, :15], axis=2)
    assert apart.mean() > 0.05
