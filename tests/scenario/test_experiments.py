"""The papers' experiments as built-in scenes: each shows a mechanism, without which it comes out otherwise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel.scenario import load_builtin
from tropel.scenario.schema import LayerSpec, WorldSpec

NO_REPULSION = {"obstacles": {"strength": 0.0}}


@dataclass
class Walked:
    """What happened in a run."""

    left: int = 0  #: how many had not arrived at the end
    time: float = 0.0  #: when it ended [s]
    clearance: float = math.inf  #: least free distance between an agent and an obstacle [m]
    speed: list[float] = field(default_factory=list)  #: of the first agent [m/s]
    weight: list[float] = field(default_factory=list)  #: of the first agent's target
    yielded: dict[int, int] = field(default_factory=dict)  #: steps in which obstacles outweighed the target, by agent
    returned: set[int] = field(default_factory=set)  #: agents whose target won again after that
    to_target: list[float] = field(default_factory=list)  #: from the first agent to the first target [m]
    place: NDArray[np.float64] = field(default_factory=lambda: np.zeros(2))  #: where the first agent was last


def walk(name: str, *, seed: int | None = None, world: dict[str, Any] | None = None, **changed: Any) -> Walked:
    """Run a built-in scene, with some of its world and of its model's parameters changed."""
    scenario = load_builtin(name)
    local = LayerSpec(model=scenario.spec.local.model, **{**(scenario.spec.local.model_extra or {}), **changed})
    place = WorldSpec.model_validate({**scenario.spec.world.model_dump(exclude_unset=True), **(world or {})})
    scenario = replace(scenario, spec=scenario.spec.model_copy(update={"local": local, "world": place}))
    sim = scenario.build(seed=seed)
    seen = Walked()
    obstacles = sim.world.obstacles
    while len(sim.agents) and sim.time < scenario.spec.limit:
        sim.step()
        agents = sim.agents
        if not len(agents):
            break
        sim.world.advance(sim.time, sim.dt)
        if len(obstacles):
            away = np.linalg.norm(agents.position[:, None] - obstacles.position, axis=-1)
            seen.clearance = min(seen.clearance, float((away - agents.radius[:, None] - obstacles.radius).min()))
        seen.speed.append(float(agents.forward_speed[0]))
        seen.weight.append(float(agents.weight_target[0]))
        for agent, weight in zip(agents.id.tolist(), agents.weight_target.tolist(), strict=True):
            seen.yielded[agent] = seen.yielded.get(agent, 0) + (weight < 0.5)
            if weight > 0.8 and seen.yielded[agent]:
                seen.returned.add(agent)
        seen.place = agents.position[0].copy()
        seen.to_target.append(float(np.linalg.norm(seen.place - sim.world.goals().position[0])))
    seen.left, seen.time = len(sim.agents), sim.time
    return seen


@pytest.mark.parametrize("seed", [None, 7])
def test_figure_4_obstacles_in_the_way_are_rounded(seed: int | None) -> None:
    seen = walk("game_fig4", seed=seed)
    assert seen.left == 0
    assert seen.time < 50.0
    assert seen.clearance > 0.2
    without = walk("game_fig4", seed=seed, **NO_REPULSION)
    assert without.left == 1
    assert without.to_target[-1] > 30.0


@pytest.mark.parametrize("seed", [None, 7])
def test_figure_5_who_slows_down_keeps_clear_of_what_moves(seed: int | None) -> None:
    seen = walk("game_fig5", seed=seed)
    assert seen.left == 0
    assert seen.clearance > 0.5
    assert min(seen.speed) <= 0.0
    without = walk("game_fig5", seed=seed, speed_law="constant")
    assert min(without.speed) == pytest.approx(1.0)
    assert without.clearance < 0.1


@pytest.mark.parametrize("seed", [None, 7])
def test_figure_6_a_moving_target_is_caught_up_with_and_followed(seed: int | None) -> None:
    seen = walk("game_fig6", seed=seed)
    assert max(seen.to_target[-40:]) < 1.5
    assert max(seen.speed) == pytest.approx(0.8)
    assert seen.clearance > 0.01
    stuck = walk("game_fig6", seed=seed, **NO_REPULSION)
    assert stuck.to_target[-1] > 10.0
    lost = walk("game_fig6", seed=seed, attraction=1e-6)
    assert lost.to_target[-1] > 10.0
    assert max(walk("game_fig6", seed=seed, speed_factor=1.0).speed) == pytest.approx(1.0)


@pytest.mark.parametrize("seed", [None, 7])
def test_figure_7_all_get_to_one_of_many_targets(seed: int | None) -> None:
    seen = walk("game_fig7", seed=seed)
    assert seen.left == 0
    assert seen.time < 60.0
    assert seen.clearance > 0.01
    assert walk("game_fig7", seed=seed, **NO_REPULSION).time > 90.0


@pytest.mark.parametrize("seed", [None, 7, 8])
@pytest.mark.parametrize(("name", "agents"), [("game_fig4", 1), ("game_fig6", 1), ("game_fig7", 2)])
def test_targets_yield_to_obstacles_and_come_back(name: str, agents: int, seed: int | None) -> None:
    """What competes is the target: its weight falls while an obstacle is in the way, and rises again behind it."""
    seen = walk(name, seed=seed)
    yielding = [agent for agent, steps in seen.yielded.items() if steps >= 10]
    assert len(yielding) >= agents
    assert all(0.25 * seen.yielded[agent] < 0.5 * seen.time for agent in yielding)
    assert seen.returned >= set(yielding)
    without = walk(name, seed=seed, competition=False)
    assert max(without.yielded.values()) == 0


def test_figure_3_an_impassable_pair_switches_the_target_off_and_it_returns() -> None:
    seen = walk("impassable_pair")
    assert seen.left == 0
    assert seen.clearance > 0.05
    off = np.flatnonzero(np.array(seen.weight) < 0.01)
    assert 30 <= len(off) < 0.7 * len(seen.weight)  # for more than three seconds, but not for good
    assert seen.weight[0] > 0.9
    assert seen.weight[-1] > 0.9
    without = walk("impassable_pair", competition=False)
    assert min(without.weight) == 1.0
    assert without.left == 1
    np.testing.assert_allclose(without.place, (9.9, 8.0), atol=0.3)  # in front of the gap that is none


def test_a_u_of_walls_traps_who_does_not_plan() -> None:
    seen = walk("u_trap")
    assert seen.left == 1
    assert seen.time == pytest.approx(120.0)
    assert (seen.place > 5.5).all()
    assert (seen.place < 14.0).all()
    free = walk("u_trap", world={"walls": []})
    assert free.left == 0
    assert free.time < 30.0
