"""The benchmark of the neighbourhood, on few agents."""

from __future__ import annotations

import json

import numba
import pytest
from rich.console import Console

from tropel import bench
from tropel.bench import neighbours
from tropel.errors import ModelError, ParameterError

SMALL = (
    neighbours.Case(label="2d", agents=400, dim=2, rounds=2),
    neighbours.Case(label="3d", agents=300, dim=3, rounds=1),
)


def test_every_case_has_a_row_per_number_of_threads_and_a_ratio() -> None:
    before = numba.get_num_threads()
    told = []
    result = neighbours.measure(lambda *news: told.append(news), SMALL)
    assert numba.get_num_threads() == before
    threads = sorted({1, numba.config.NUMBA_NUM_THREADS})
    assert [(row["dim"], row["agents"], row["threads"]) for row in result.rows] == [
        (case.dim, case.agents, count) for case in SMALL for count in threads
    ]
    assert set(result.ratios) == {"ckdtree_over_ours_2d", "ckdtree_over_ours_3d"}
    assert told[0][1:] == (0, 3)
    assert told[-1][1:] == (3, 3)
    for row in result.rows:
        assert row["ours_ns_per_agent"] / row["ours_ns_per_pair"] == pytest.approx(row["neighbours"])
        assert row["ckdtree_ns_per_agent"] / row["ours_ns_per_agent"] == pytest.approx(row["ckdtree_over_ours"])


def test_the_result_is_plain_data_and_a_table() -> None:
    result = neighbours.measure(lambda *_: None, SMALL[:1])
    assert set(json.loads(json.dumps(result.json()))) == {"name", "rows", "ratios"}
    console = Console(width=200)
    with console.capture() as shown:
        console.print(result.table())
    assert "ours ns per agent" in shown.get()
    assert "ckdtree_over_ours_2d = " in shown.get()


def test_a_disagreement_with_the_tree_stops_the_benchmark() -> None:
    contest = neighbours._Contest(SMALL[0])
    contest.state.sense_radius[:] = 0.5
    with pytest.raises(ModelError, match="cKDTree"):
        contest.round()


def test_unknown_benchmarks_name_the_nearest_one() -> None:
    assert "neighbours" in bench.names()
    with pytest.raises(ParameterError, match="did you mean 'neighbours'"):
        bench.run("neighbors")
