"""The steering benchmark as a whole, on few agents."""

from __future__ import annotations

import dataclasses
import json
from functools import partial
from pathlib import Path

import numba
import pytest
from rich.console import Console

from tropel import Model, bench
from tropel.bench import BenchResult, steering
from tropel.bench.check import read_targets
from tropel.bench.steering_scenes import SCENES, SteeringTask, circle_swap, narrow_door
from tropel.bench.steering_speed import CASES, OURS, SAME_MODEL, Case

TARGETS = Path(__file__).parents[2] / "benchmarks" / "targets.toml"

#: The labels of the full benchmark with a few agents each.
TINY = [
    Case(label=case.label, place=case.place, agents=59 + k, bursts=1, peer=case.peer) for k, case in enumerate(CASES)
]
SMALL = {"circle": partial(circle_swap, agents=4, ring=10.0), "door": partial(narrow_door, people=4)}


@pytest.fixture(scope="module")
def told() -> list[tuple[str, int, int]]:
    return []


@pytest.fixture(scope="module")
def result(told: list[tuple[str, int, int]]) -> BenchResult:
    before = numba.get_num_threads()
    measured = steering.measure(
        lambda *news: told.append(news), cases=TINY, rounds=2, scenes=SMALL, models=(OURS, SAME_MODEL)
    )
    assert numba.get_num_threads() == before
    return measured


def test_every_target_names_a_ratio_that_is_measured(result: BenchResult) -> None:
    targets = read_targets(TARGETS)["steering"]
    assert {"jupedsim_over_ours_open_10k", "jupedsim_over_ours_pillars_1k", "flat_1k_to_100k"} <= set(targets)
    assert set(targets) <= set(result.ratios)


def test_speed_and_quality_are_tables_of_their_own(result: BenchResult) -> None:
    plain = json.loads(json.dumps(result.json(), allow_nan=False))
    assert set(plain) == {"name", "rows", "quality", "ratios", "notes"}
    assert {row["scene"] for row in plain["rows"]} == {case.label for case in CASES}
    assert [(row["scene"], row["model"]) for row in plain["quality"]] == [
        (scene, model) for scene in SMALL for model in (OURS, SAME_MODEL)
    ]
    console = Console(width=160)
    with console.capture() as shown:
        console.print(result.table())
    text = shown.get()
    for words in ("ns per agent step", "neighbours", "closest approach", "jupedsim_over_ours_pillars_1k = "):
        assert words in text


def test_ratios_of_the_quality_are_those_of_the_dynamical_model(result: BenchResult) -> None:
    circle, door = (row for row in result.more["quality"] if row["model"] == OURS)
    assert result.ratios["rvo2_time_over_ours_circle"] == pytest.approx(886.0 / circle["finish_s"])
    assert result.ratios["closest_approach_circle"] == circle["closest_approach"]
    assert result.ratios["share_arrived_worst"] == min(circle["arrived"], door["arrived"]) == 1.0


def test_progress_goes_from_nothing_to_all(result: BenchResult, told: list[tuple[str, int, int]]) -> None:
    total = len(TINY) + 2 + 2 * len(SMALL)
    parts = [done for _, done, _ in told]
    assert parts == sorted(parts)
    assert (parts[0], parts[-1]) == (0, total)
    assert {all_of_it for _, _, all_of_it in told} == {total}


def test_a_scene_that_never_finishes_counts_as_infinitely_slow() -> None:
    def cut_short(model: Model) -> SteeringTask:
        return dataclasses.replace(circle_swap(model, agents=3, ring=20.0), limit=1.0)

    scenes = {"circle": cut_short}
    ratios = steering.measure(lambda *_: None, cases=(), rounds=0, scenes=scenes, models=(OURS,)).ratios
    assert ratios["rvo2_time_over_ours_circle"] == 0.0
    assert ratios["share_arrived_worst"] == 0.0


def test_notes_stand_below_the_tables() -> None:
    noted = BenchResult(name="x", rows=[{"scene": "a", "finish_s": None}], notes=["the peer [bench] is missing"])
    assert noted.json()["notes"] == ["the peer [bench] is missing"]
    console = Console(width=80)
    with console.capture() as shown:
        console.print(noted.table())
    assert "the peer [bench] is missing" in " ".join(shown.get().split())
    assert "–" in shown.get()


def test_the_command_knows_it_and_all_four_scenes() -> None:
    assert "steering" in bench.names()
    assert list(SCENES) == ["circle", "blocks", "corridor", "door"]
