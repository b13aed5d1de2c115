"""Recordings that hold what no run writes: one line with the file, before any picture or report relies on it."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from typer.testing import CliRunner

from tropel.cli import app
from tropel.errors import RecordingError, TropelError
from tropel.recording import Scene, open_trajectory, read_trajectory
from tropel.recording.people import People

HALL = "POLYGON ((0 0, 20 0, 20 10, 0 10, 0 0))"
EVENTS: tuple[dict[str, Any], ...] = (
    {"kind": "noted_deaths", "ids": [1]},
    {"kind": "noted_hazards", "hazards": {"f": {"kind": "fire", "position": [1.0, 2.0], "inner": 1.0, "outer": 2.0}}},
    {"kind": "move_obstacle", "name": "cart", "position": [1.0, 2.0]},
    {"kind": "open_door", "door": "side"},
)


def record(path: Path) -> Path:
    scene = Scene(
        dim=2,
        bounds=[[0.0, 0.0], [20.0, 10.0]],
        walkable_wkt=HALL,
        exits={"east": "POLYGON ((19 4, 20 4, 20 6, 19 6, 19 4))"},
        doors={"side": {"wkt": "LINESTRING (10 0, 10 2)", "open": False}},
        targets={"stage": {"position": [1.0, 1.0], "radius": 0.5}},
        obstacles={"cart": {"radius": 0.5, "position": [2.0, 2.0]}},
        dt=0.1,
        seed=7,
    )
    people = People.from_names(
        id=[0, 1, 2], group=[0] * 3, came=[0.0] * 3, gone=[0.5] * 3, fate=["left"] * 3, through=["east"] * 3
    )
    with open_trajectory(path, scene=scene, fps=10.0) as writer:
        for frame in range(4):
            place = np.array([[3.0 + frame, 1.0], [4.0 + frame, 2.0], [5.0 + frame, 3.0]])
            writer.write(
                frame,
                id=[0, 1, 2],
                position=place,
                heading=[[1, 0]] * 3,
                group=[0] * 3,
                radius=[0.2] * 3,
                speed=[1] * 3,
            )
            writer.event(frame, frame, json.dumps(EVENTS[frame]))
            writer.obstacles(frame, ["cart"], [[2.0, 2.0]], [0.5])
        writer.close({"frames": 4}, people=people)
    return path


def use(path: Path) -> None:
    """What pictures and reports ask for."""
    from tropel.analysis import evacuation_report
    from tropel.pictures.recorded_world import RecordedWorld

    with read_trajectory(path) as run:
        moments = RecordedWorld(run)
        for k in run.frames.tolist():
            run.frame(k)
            moments.at(k)
        run.table()
        run.deaths()
        assert run.summary is not None
        evacuation_report(run)


def test_the_run_that_is_damaged_below_is_read(tmp_path: Path) -> None:
    use(record(tmp_path / "run.sqlite"))
    use(record(tmp_path / "run.parquet"))


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE trajectory_data SET pos_x = 9e999 WHERE frame = 2",
        "UPDATE trajectory_data SET pos_y = -1e300 WHERE frame = 2",
        "UPDATE trajectory_data SET ori_x = 9e999",
        "UPDATE trajectory_data SET id = 0",
        "UPDATE trajectory_data SET pos_x = x'00ff'",
        "UPDATE tropel_agents SET agent_group = 77",
        "UPDATE tropel_agents SET radius = -1",
        "UPDATE frame_data SET frame = 1099511627776 WHERE frame = 3",
        "UPDATE frame_data SET frame = -5 WHERE frame = 0",
        "UPDATE frame_data SET geometry_hash = 1",
        "UPDATE metadata SET value = '1e-300' WHERE key = 'fps'",
        "UPDATE geometry SET wkt = 'GEOMETRYCOLLECTION EMPTY'",
        "UPDATE geometry SET wkt = 'POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))'",
        "UPDATE tropel_events SET frame = 'x'",
        'UPDATE tropel_events SET event = \'{"kind": "noted_deaths"}\'',
        'UPDATE tropel_events SET event = \'{"kind": "noted_hazards", "hazards": {"f": 1}}\'',
        'UPDATE tropel_events SET event = \'{"kind": "open_door", "door": []}\'',
        'UPDATE tropel_events SET event = \'{"kind": "move_obstacle", "name": "cart", "position": [1e999, 0]}\'',
        "UPDATE tropel_obstacles SET pos_x = 9e999",
        "UPDATE tropel_people SET gone = 9e999",
        "UPDATE tropel_people SET agent_group = 12",
        "UPDATE tropel_people SET fate = 'x'",
        "UPDATE tropel_people SET through = x'00'",
        "UPDATE tropel_metadata SET value = '[]' WHERE key = 'summary'",
        "UPDATE tropel_metadata SET value = '[]' WHERE key = 'scene'",
    ],
)
def test_values_that_no_run_has_are_refused(tmp_path: Path, damage: str) -> None:
    path = record(tmp_path / "run.sqlite")
    connection = sqlite3.connect(path)
    connection.execute(damage)
    connection.commit()
    connection.close()
    with pytest.raises(RecordingError, match=r"run\.sqlite") as refused:
        use(path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("bounds", [[0, 0], [1e308, 1]]),
        ("walkable_wkt", 7),
        ("walkable_wkt", "LINESTRING (0 0, 1 1)"),
        ("exits", []),
        ("exits", {"east": "POLYGON EMPTY"}),
        ("doors", {"side": {}}),
        ("doors", {"side": {"wkt": HALL}}),
        ("groups", [1]),
        ("targets", {"stage": {"position": [1]}}),
        ("targets", {"stage": {"motion": {"kind": "orbit"}}}),
        ("obstacles", {"cart": {"radius": None, "position": [1, 1]}}),
        ("dt", 1e-300),
        ("seed", "x"),
        ("extra", 1),
        ("title", None),
    ],
)
def test_a_scene_with_wrong_entries_is_refused(tmp_path: Path, entry: str, value: Any) -> None:
    path = record(tmp_path / "run.parquet")
    told = json.loads((path / "scene.json").read_text())
    told["scene"][entry] = value
    (path / "scene.json").write_text(json.dumps(told))
    with pytest.raises(RecordingError, match=rf"run\.parquet.*{entry}"):
        use(path)


def test_views_virtual_tables_and_computed_columns_are_not_asked(tmp_path: Path) -> None:
    for number, made in enumerate(
        (
            "CREATE VIEW trajectory_data AS WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) "
            "SELECT 0 AS frame, x AS id, 0.0 AS pos_x, 0.0 AS pos_y, 1.0 AS ori_x, 0.0 AS ori_y FROM c",
            "CREATE TABLE trajectory_data(frame, id, pos_x AS (hex(zeroblob(100000000))), pos_y, ori_x, ori_y)",
        )
    ):
        path = record(tmp_path / f"run{number}.sqlite")
        connection = sqlite3.connect(path)
        connection.execute("DROP TABLE trajectory_data")
        connection.execute(made)
        connection.commit()
        connection.close()
        with pytest.raises(RecordingError, match="without the table 'trajectory_data'"):
            use(path)


@pytest.mark.parametrize("victim", ["people.parquet", "parts/part-000000.parquet", "obstacles/part-000000.parquet"])
def test_a_parquet_file_damaged_anywhere_is_read_or_refused(tmp_path: Path, victim: str) -> None:
    path = record(tmp_path / "run.parquet")
    good = (path / victim).read_bytes()
    refused = 0
    for place in range(0, len(good), 37):
        content = bytearray(good)
        content[place] ^= 0x55
        (path / victim).write_bytes(content)
        try:
            use(path)
        except RecordingError:
            refused += 1
    for end in range(0, len(good), 97):
        (path / victim).write_bytes(good[:end])
        with pytest.raises(RecordingError, match=r"run\.parquet"):
            use(path)
    assert refused > 0


def test_a_table_of_people_with_other_columns_is_refused(tmp_path: Path) -> None:
    path = record(tmp_path / "run.parquet")
    good = pyarrow.parquet.read_table(path / "people.parquet")
    for name in good.column_names:
        for wrong in (good.drop_columns([name]), good.set_column(0, name, pyarrow.array([None] * len(good)))):
            pyarrow.parquet.write_table(wrong, path / "people.parquet")
            with pytest.raises(RecordingError, match=r"run\.parquet"):
                use(path)


def test_rows_that_only_a_header_has_are_refused(tmp_path: Path) -> None:
    from tropel.recording import parquet_format

    path = record(tmp_path / "run.parquet")
    many = parquet_format.MOST_ROWS_AT_ONCE + 1
    columns = {name: np.zeros(many, dtype=np.int64) for name in ("id", "group")}
    columns |= {name: np.zeros(many) for name in ("came", "gone")}
    table = pyarrow.table(columns)
    pyarrow.parquet.write_table(table, path / "people.parquet", row_group_size=many)
    with pytest.raises(RecordingError, match=r"people\.parquet claims \d+ rows"):
        use(path)


@pytest.mark.parametrize("command", [["plot", "--no-gif"], ["report"], ["measure"], ["export", "--gif"]])
def test_commands_say_what_is_wrong_and_write_nothing(tmp_path: Path, command: list[str]) -> None:
    path = record(tmp_path / "run.sqlite")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE trajectory_data SET pos_x = 9e999 WHERE frame = 1")
    connection.commit()
    connection.close()
    out = tmp_path / "out"
    done = CliRunner().invoke(app, [command[0], str(path), *command[1:], "--out", str(out), "--quiet"])
    assert done.exit_code != 0
    assert isinstance(done.exception, TropelError)
    assert "x of agent 0" in str(done.exception)
    assert [entry for entry in out.rglob("*") if entry.is_file()] == []
