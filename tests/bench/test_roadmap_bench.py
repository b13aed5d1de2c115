"""The benchmark of roadmaps, in small: every part gives its rows and ratios, and the targets name them."""

from __future__ import annotations

import importlib.util
import json
import tomllib
from pathlib import Path

import numba

from tropel import bench
from tropel.bench import roadmap
from tropel.bench.roadmap_ompl import MISSING


def test_every_part_gives_its_rows_and_ratios() -> None:
    before = numba.get_num_threads()
    told: list[tuple[str, int, int]] = []
    result = roadmap.measure(lambda *news: told.append(news), layouts=1, nodes=1500, rooms=3)
    assert numba.get_num_threads() == before
    assert told[-1] == ("done", 5, 5)
    assert all(ratio > 0.0 for ratio in result.ratios.values())
    adaptive, rebuilding = result.rows
    assert adaptive["method"] == "self-adaptive"
    assert rebuilding["other_tests"] > adaptive["other_tests"]
    (built,) = result.more["building"]
    assert built["nodes"] == 1500
    assert built["edges"] <= built["tests"]
    # OMPL is beside ours where it is installed; otherwise one line says that it is not.
    assert ("building with OMPL" in result.more) == ("ompl_over_ours_build" in result.ratios)
    assert (MISSING in result.notes) == (importlib.util.find_spec("ompl") is None)
    assert json.loads(json.dumps(result.json()))["name"] == "roadmap"
    targets = tomllib.loads((Path(__file__).parents[2] / "benchmarks" / "targets.toml").read_text())["roadmap"]
    assert set(targets) <= set(result.ratios)
    assert "roadmap" in bench.names()
