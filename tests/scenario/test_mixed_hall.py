"""The mixed hall: stewards get to the stage through the crowd that leaves, and files share one crowd on cells."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tropel.errors import ScenarioError
from tropel.scenario import Scenario, load_builtin, parse_scenario


def run(scenario: Scenario) -> tuple[dict[str, float], float]:
    """When the last of each group was gone [s], and the deepest overlap of a steward with a visitor's cell [m]."""
    sim = scenario.build()
    deepest = -np.inf
    while len(sim.agents) and sim.time < scenario.spec.limit:
        sim.step()
        state = sim.agents
        a, b = state.position[state.group == 0], state.position[state.group == 1]
        if len(a) and len(b):
            apart = np.linalg.norm(a[:, None] - b[None], axis=2)
            deepest = max(deepest, float((0.2 + state.radius[state.group == 1] - apart).max()))
    assert len(sim.agents) == 0
    gone, group = sim.population.departures(), sim.population.arrivals()["group"]
    return {name: gone["time"][group[gone["id"]] == k].max(initial=0.0) for k, name in enumerate(sim.groups)}, deepest


def with_counts(visitors: int, stewards: int) -> Scenario:
    scenario = load_builtin("mixed_hall")
    first, second = scenario.spec.groups
    groups = [first.model_copy(update={"count": visitors}), second.model_copy(update={"count": stewards})]
    return replace(scenario, spec=scenario.spec.model_copy(update={"groups": groups}))


def test_stewards_walk_against_the_crowd_and_each_delays_the_other() -> None:
    times, deepest = run(with_counts(300, 12))
    assert -0.01 < deepest < 1e-6, "they come close, and never overlap"
    stewards_alone = run(with_counts(0, 12))[0]["stewards"]
    visitors_alone = run(with_counts(300, 0))[0]["visitors"]
    # Alone they begin after 4 s and have up to 32 m to go at 1.5 m/s.
    assert stewards_alone < 4.0 + 32.4 / 1.5 + 2.0
    assert times["stewards"] > stewards_alone + 1.0
    assert visitors_alone < times["visitors"] < 1.2 * visitors_alone


def test_the_crowd_tramples_stewards_that_it_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tropel.local.lattice.model.mark_bodies", lambda *_: None)
    assert run(with_counts(300, 12))[1] > 0.1


def test_groups_with_equal_specs_share_one_layer() -> None:
    text = """
name = "two"
[world]
walkable = [{ box = [0.0, 0.0, 8.0, 4.0] }]
[world.exits]
out = { box = [7.2, 0.0, 8.0, 4.0] }
[[groups]]
name = "a"
count = 5
planning = { model = "path_plans", gamma = 0.7 }
local = { model = "lattice" }
[[groups]]
name = "b"
count = 5
planning = { model = "path_plans", gamma = 0.7 }
local = { model = "lattice" }
[[groups]]
name = "c"
count = 5
planning = { model = "path_plans", gamma = 0.6 }
local = { model = "seek", time_gap = 0.9 }
[[groups]]
name = "d"
count = 5
local = { model = "seek" }
"""
    sim = parse_scenario(text, source="two", folder=Path()).build()
    kinds = [type(layer).__name__ for layer in sim.all_layers()]
    assert sorted(kinds[1:]) == ["AvoidHazards", "FlowField", "Lattice", "PathPlans", "PathPlans", "Seek", "Seek"]
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0


def test_unequal_lattices_in_a_file_are_refused() -> None:
    scenario = load_builtin("mixed_hall")
    text = scenario.text.replace('model = "dynamical"', 'model = "lattice"\nseparation = 0.7')
    with pytest.raises(ScenarioError, match="two Lattice models share one world"):
        parse_scenario(text, source="file", folder=Path()).build()
