"""The benchmark of flocks, with small ones."""

import importlib.util

import numpy as np
import pytest

from tropel.bench import flock
from tropel.bench.flock_peers import SUMS, PublicSetting, bare_sums
from tropel.errors import ModelError


def test_it_measures_all_sizes_beside_the_others() -> None:
    told: list[tuple[str, int, int]] = []
    sizes = flock.Sizes(
        agents=(1000, 4000),
        steps=2,
        rounds=2,
        numpy=1000,
        mesa=(400,),
        mesa_steps=1,
        extras=1000,
        public=(PublicSetting(agents=50, side=20.0, vision=3.0, steps=5, mesa_steps=2),),
    )
    result = flock.measure(lambda *what: told.append(what), sizes)
    ours = [row for row in result.rows if "bare_ns_per_agent" in row]
    assert {row["agents"] for row in ours} == {1000, 4000}
    for row in ours:
        assert 10.0 < row["neighbours"] < 20.0
        assert row["ns_per_pair"] == pytest.approx(row["ns_per_agent_step"] / row["neighbours"])
        assert 0.0 < row["rules_ns_per_agent"] < row["ns_per_agent_step"]
    assert {"numpy_over_ours_1k", "flat_1k_to_4k", "reference_over_ours_4k"} <= set(result.ratios)
    # Mesa is an optional extra; without it the result says why it is left out.
    has_mesa = importlib.util.find_spec("mesa") is not None
    assert ("mesa_over_ours_0k" in result.ratios) == has_mesa
    assert any("tropel[bench]" in note for note in result.notes) != has_mesa
    assert min(result.ratios.values()) > 0.0
    assert [row["with"] for row in result.more["on top of the three rules"]] == list(flock._EXTRAS)
    (public,) = result.more["public comparison, one after the other"]
    assert (public["agents"], public["steps"]) == (50, 5)
    assert ("mesa_over_ours" in public) == has_mesa
    assert told[-1][1] == told[-1][2]
    assert result.json()["ratios"] == result.ratios


def test_the_bare_loop_sums_what_the_rules_need() -> None:
    boids = flock.Boids(500, threads=1)
    boids.scatter()
    agents = boids.sim.agents
    cells = boids.sim.sense().cells.cell_list
    sums = np.empty((500, SUMS))
    bare_sums(cells, 0.5, sums)
    offset = agents.position[None] - agents.position[:, None]
    away = np.linalg.norm(offset, axis=2)
    np.fill_diagonal(away, np.inf)
    seen, close = away <= 1.0, away < 0.5
    push = np.where(close, 1.0 / away**2 - 1.0 / 0.25, 0.0)
    wanted = np.concatenate(
        [
            seen.sum(axis=1)[:, None],
            (seen[:, :, None] * offset).sum(axis=1),
            seen @ agents.velocity,
            (push[:, :, None] * offset).sum(axis=1),
        ],
        axis=1,
    )
    np.testing.assert_allclose(sums, wanted[cells.order], rtol=1e-9, atol=1e-9)


def test_flights_that_differ_are_no_comparison() -> None:
    places = np.zeros((3, 2))
    flock.check_same_flight(places, places + 1e-9, moved=0.4)
    with pytest.raises(ModelError, match="different motions"):
        flock.check_same_flight(places, places + 1e-3, moved=0.4)
