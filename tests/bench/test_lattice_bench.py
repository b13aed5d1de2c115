"""The benchmark of the lattice crowd, with small crowds."""

import numpy as np
import pytest

from tropel.bench import lattice
from tropel.bench.lattice import NumpyLattice


def test_it_measures_all_sizes_beside_numpy_and_the_memory() -> None:
    told: list[tuple[str, int, int]] = []
    sizes = lattice.Sizes(
        agents=(400, 2_000), agent_steps=4_000, fewest_frames=2, compared=400, rounds=2, weighed=4_000
    )
    result = lattice.measure(lambda *what: told.append(what), sizes)
    assert {row["agents"] for row in result.rows} == {400, 2_000}
    measured = [row for row in result.rows if row.get("frames_per_second")]
    for row in measured:
        assert row["ns_per_agent_step"] > 0.0
        assert 0 < row["moves_per_frame"] <= row["decisions_per_frame"] <= row["agents"]
        assert row["goals"] == 4
        assert row["density_per_m2"] == pytest.approx(1.0, rel=0.05)
    assert [row["leaving_per_frame"] for row in measured[:-1]] == [0.0] * (len(measured) - 1)
    assert set(result.ratios) == {"numpy_over_ours_0k", "flat_0k_to_2k", "250_bytes_over_ours"}
    assert min(result.ratios.values()) > 0.0
    assert told[-1][1] == told[-1][2]


def test_the_numpy_crowd_it_is_compared_with_keeps_the_rules() -> None:
    rows, columns = np.mgrid[:20, :30]
    layers = -np.hypot(rows - 10, columns - 29)[None] * 0.5
    people = np.random.default_rng(1).permutation(600)[:200]
    crowd = NumpyLattice(np.column_stack(np.divmod(people, 30)), np.zeros(200, dtype=np.int64), layers, seed=1)
    begin = crowd.cells.copy()
    for _ in range(20):
        before = crowd.cells.copy()
        moved = crowd.frame()
        assert moved == (crowd.cells != before).any(axis=1).sum()
        assert np.abs(crowd.cells - before).max() <= 1
        assert len(np.unique(crowd.cells, axis=0)) == 200
    assert crowd.cells[:, 1].mean() > begin[:, 1].mean() + 3.0
