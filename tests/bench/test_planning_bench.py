"""The benchmark of planning, on small maps."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy import ndimage

from tropel import bench
from tropel.bench import planning
from tropel.bench.planning_maps import (
    blocks_map,
    changed_cells,
    distances_by_scipy,
    long_maze,
    potential_by_scipy,
    usable_share,
)
from tropel.errors import ModelError, ParameterError

SMALL = planning.Sizes(flow=80, harmonic=60, direct=60, maze=64, corridors=8, agents=2000, rounds=1, edits=2)


def test_every_part_gives_its_row_and_its_ratio() -> None:
    before = numba.get_num_threads()
    told: list[tuple[str, int, int]] = []
    result = planning.measure(lambda *news: told.append(news), SMALL)
    assert numba.get_num_threads() == before
    assert told[-1] == ("done", 6, 6)
    assert set(result.ratios) == {
        "scipy_over_ours_80",
        *(f"fresh_over_repair_80{s}{k}" for s in ("", "_1pct", "_10pct") for k in ("", "_scattered")),
        "spsolve_over_ours_60",
        "usable_share_harmonic_60",
        "spsolve_over_ours_maze",
        "usable_share_maze",
        "map_coordinates_over_ours_2k",
        "5ms_over_sampling_2k",
        "5ms_over_sampling_2k_mixed",
        "5ms_over_directions_2k",
    }
    assert result.ratios["usable_share_maze"] == 1.0
    assert result.ratios["usable_share_harmonic_60"] == 1.0
    assert json.loads(json.dumps(result.json()))["name"] == "planning"


def test_the_targets_name_ratios_that_the_benchmark_gives() -> None:
    targets = tomllib.loads((Path(__file__).parents[2] / "benchmarks" / "targets.toml").read_text())["planning"]
    assert "planning" in bench.names()
    sizes = planning.Sizes()
    flow = {f"fresh_over_repair_{sizes.flow}{s}" for s in ("", "_10pct", "_10pct_scattered")}
    given = {f"scipy_over_ours_{sizes.flow}", "usable_share_maze", f"5ms_over_sampling_{sizes.agents // 1000}k"} | flow
    assert given <= set(targets)


def test_wrong_lengths_stop_the_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "distances_by_scipy", lambda free, goal: distances_by_scipy(free, goal) + 1.0)
    with pytest.raises(ModelError, match="scipy"):
        planning.measure(lambda *_: None, SMALL)


def test_the_maps_are_connected_and_the_maze_is_as_long_as_its_corridors() -> None:
    free, goal = blocks_map(100)
    assert ndimage.label(free)[1] == 1
    assert 0.8 < free.mean() < 0.9
    assert free[goal].all()
    maze, end = long_maze(64, 8)
    assert ndimage.label(maze)[1] == 1
    assert distances_by_scipy(maze, end)[maze].max() > 7 * 55
    with pytest.raises(ParameterError, match="do not fit"):
        long_maze(64, 30)


@pytest.mark.parametrize("kind", ["compact", "scattered"])
def test_edits_change_about_as_many_cells_as_they_should(kind: str) -> None:
    free, goal = blocks_map(200)
    edited = changed_cells(free, goal, 0.01, kind, np.random.default_rng(0))
    assert 0.005 < (edited != free).mean() < 0.015
    assert edited[goal].all()


def test_the_direct_solution_is_harmonic() -> None:
    free, goal = blocks_map(40)
    potential = potential_by_scipy(free, goal)
    mean = ndimage.convolve(potential, np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]]) / 4.0)
    inside = free & ~goal
    np.testing.assert_allclose(potential[inside], mean[inside], atol=1e-12)


def test_a_field_that_leads_nowhere_is_not_usable() -> None:
    free = np.pad(np.ones((38, 38), bool), 1)
    goal = np.zeros((40, 40), bool)
    goal[19:21, 19:21] = True
    far = distances_by_scipy(free, goal)
    y, x = np.mgrid[0:40, 0:40]
    vectors = np.stack([19.5 - x, 19.5 - y], axis=-1)
    vectors = vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)
    assert usable_share(-far, vectors, free, goal) == 1.0
    only_goal = goal.sum() / free.sum()
    assert usable_share(-far, np.zeros((40, 40, 2)), free, goal) == pytest.approx(only_goal)
    assert usable_share(-far, -vectors, free, goal) == pytest.approx(only_goal)
    flat = np.where(far > 10.0, -10.0, -far)  # no figures left far away
    assert usable_share(flat, vectors, free, goal) <= (far <= 11.5)[free].mean()
