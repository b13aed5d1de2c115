"""Columns that only some runs have: how riders lean and steer."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel import Direct, FollowPath, Group, Riders, Simulation, Walk, World
from tropel.errors import RecordingError
from tropel.recording import read_trajectory

FORMATS = ["run.sqlite", "run.parquet"]


def mixed(seed: int = 1) -> Simulation:
    groups = [Group("riders", count=3, goal="none"), Group("people", count=2, goal="none")]
    return Simulation(
        World(shapely.box(0, 0, 60, 20)),
        groups,
        planning={"riders": FollowPath([(0.0, 5.0), (60.0, 5.0)]), "people": Direct()},
        local={"riders": Riders(character="car"), "people": Walk()},
        dt=0.1,
        seed=seed,
    )


@pytest.mark.parametrize("name", FORMATS)
def test_lean_and_steer_are_read_as_they_were(name: str, tmp_path: Path) -> None:
    sim = mixed()
    sim.run(until=1.0, record=tmp_path / name)
    with read_trajectory(tmp_path / name) as run:
        assert run.scene.extra["bodies"]["riders"]["kind"] == "car"
        last = run.frame(int(run.frames[-1]))
        for column in ("lean", "steer", "crank", "fallen"):
            assert np.array_equal(last.extra[column], sim.agents.columns[column])
        assert np.abs(last.extra["steer"][:3]).max() > 0.0
        table = run.table()
        assert len(table["lean"]) == len(table["x"]) == 5 * len(run.frames)


@pytest.mark.parametrize("name", FORMATS)
def test_a_resumed_run_goes_on_in_the_same_columns(name: str, tmp_path: Path) -> None:
    whole, half = mixed(), mixed()
    whole.run(until=1.0, record=tmp_path / f"whole_{name}")
    half.run(until=0.5, record=tmp_path / name, checkpoint=tmp_path / "half.tropel")
    again = mixed()
    again.restore(tmp_path / "half.tropel")
    again.run(until=1.0, record=tmp_path / name)
    with read_trajectory(tmp_path / name) as one, read_trajectory(tmp_path / f"whole_{name}") as other:
        for column, values in other.table().items():
            assert np.array_equal(one.table()[column], values), column


def test_runs_of_people_alone_have_no_such_columns(tmp_path: Path) -> None:
    sim = Simulation(World(shapely.box(0, 0, 9, 9)), [Group("people", count=2, goal="none")], dt=0.1)
    sim.run(until=0.3, record=tmp_path / "run.sqlite")
    with read_trajectory(tmp_path / "run.sqlite") as run:
        assert run.scene.columns == ()
        assert not run.frame(0).extra


@pytest.mark.parametrize("names", ["lean", ["x"], ['a" REAL); DROP TABLE metadata; --'], ["lean", "lean"], [3]])
def test_names_of_columns_in_a_file_are_checked(names: object, tmp_path: Path) -> None:
    mixed().run(until=0.2, record=tmp_path / "run.sqlite")
    with sqlite3.connect(tmp_path / "run.sqlite") as file:
        (text,) = file.execute("SELECT value FROM tropel_metadata WHERE key = 'scene'").fetchone()
        scene = json.loads(text)
        scene["extra"]["columns"] = names
        file.execute("UPDATE tropel_metadata SET value = ? WHERE key = 'scene'", (json.dumps(scene),))
    file.close()
    with pytest.raises(RecordingError, match="columns"):
        read_trajectory(tmp_path / "run.sqlite")


def test_a_file_whose_columns_are_gone_is_damaged(tmp_path: Path) -> None:
    mixed().run(until=0.2, record=tmp_path / "run.sqlite")
    with sqlite3.connect(tmp_path / "run.sqlite") as file:
        file.execute("DROP TABLE tropel_columns")
    file.close()
    with read_trajectory(tmp_path / "run.sqlite") as run, pytest.raises(RecordingError, match="tropel_columns"):
        run.frame(0)
