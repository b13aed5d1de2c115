"""The mazes and the theatre of LAYERS §7: a harmonic function leads everybody out, and without it people are caught."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from many_seeds import fast_first
from tropel.planning.fields import cache as plan_cache
from tropel.scenario import load_builtin
from tropel.scenario.schema import PlannerSpec

#: How many people a short run has, and how many of them are caught at least if they go straight to the exit.
SCENES = {"layers_maze_small": (16, 8), "layers_maze_large": (20, 14), "layers_theatre": (100, 5)}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(plan_cache.VARIABLE, str(tmp_path / "plans"))


def left_over(name: str, seed: int, *, count: int | None = None, direct: bool = False) -> int:
    """How many are still there at the end; those that do not plan are given up after a minute."""
    scenario = load_builtin(name)
    update: dict[str, object] = {"planning": PlannerSpec(model="direct")} if direct else {}
    if count is not None:
        update["groups"] = [scenario.spec.groups[0].model_copy(update={"count": count})]
    sim = replace(scenario, spec=scenario.spec.model_copy(update=update)).build(seed=seed)
    sim.run(until="empty", limit=60.0 if direct else scenario.spec.limit)
    return len(sim.agents)


@pytest.mark.parametrize("seed", fast_first(range(1, 5), fast=1))
@pytest.mark.parametrize("name", fast_first(["layers_maze_small", "layers_theatre", "layers_maze_large"], fast=2))
def test_a_harmonic_function_leads_everybody_out_of_dead_ends(name: str, seed: int) -> None:
    assert left_over(name, seed, count=SCENES[name][0]) == 0


@pytest.mark.filterwarnings("ignore::tropel.checks.FindingWarning")
@pytest.mark.parametrize("name", SCENES)
def test_without_it_many_are_caught(name: str) -> None:
    count, caught = SCENES[name]
    assert left_over(name, 1, count=count, direct=True) >= caught


@pytest.mark.long
@pytest.mark.parametrize("name", SCENES)
def test_everybody_gets_out_of_the_whole_scene(name: str) -> None:
    assert left_over(name, 1) == 0
