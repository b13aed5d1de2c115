"""The benchmark of ORCA on few agents."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.spatial import cKDTree

from tropel import bench
from tropel.bench import orca
from tropel.bench.check import read_targets

TARGETS = Path(__file__).parents[2] / "benchmarks" / "targets.toml"


def test_agents_on_the_circle_have_about_ten_neighbours_and_do_not_touch() -> None:
    start = orca.circle(500)
    apart = cKDTree(start).query(start, k=2)[0][:, 1]
    assert apart.min() > 2.0 * orca.RADIUS
    neighbours = 2 * len(cKDTree(start).query_pairs(orca.SENSE_RADIUS)) / 500
    assert 8.0 <= neighbours <= 12.0


def test_everything_is_a_row_and_every_target_a_ratio() -> None:
    assert "orca" in bench.names()
    told: list[tuple[str, int, int]] = []
    result = orca.measure(lambda *news: told.append(news), agents=40, rounds=2)
    rows = {(row["model"], row["threads"]): row["us_per_agent_step"] for row in result.rows}
    assert {(orca.OURS, 1), (orca.TREE, 1)} <= set(rows)
    assert all(micros > 0.0 for micros in rows.values())
    assert set(read_targets(TARGETS)["orca"]) <= set(result.ratios)
    assert [done for _, done, _ in told] == [0, 1, 2, 3]


def test_agents_walk_towards_the_opposite_point() -> None:
    # On a small circle they are too close to walk inwards.
    start = orca.circle(2_000)
    sim = orca.simulation(start)
    for _ in range(40):
        sim.step()
    towards = -start / np.linalg.norm(start, axis=1, keepdims=True)
    assert ((sim.agents.position - start) * towards).sum(axis=1).mean() > 4.0
