"""Against the real PedPy, and against files as JuPedSim writes them."""

import sqlite3
from pathlib import Path

import numpy as np
import pedpy
import pytest
import sample_run
import shapely

from tropel.errors import RecordingError
from tropel.interop.pedpy import to_pedpy, walkable_area
from tropel.recording import geometry_key, open_trajectory, read_trajectory


def record(path: Path, frames: int = 30) -> Path:
    with open_trajectory(path, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(frames))
    return path


def expected_rows(frames: int = 30) -> dict[str, np.ndarray]:
    agents = [sample_run.agents(k) for k in range(frames)]
    position = np.concatenate([a["position"] for a in agents])
    return {
        "frame": np.repeat(range(frames), [len(a["id"]) for a in agents]),
        "id": np.concatenate([a["id"] for a in agents]),
        "x": position[:, 0],
        "y": position[:, 1],
    }


def test_pedpy_loads_the_trajectory(tmp_path: Path) -> None:
    path = record(tmp_path / "hall.sqlite")
    loaded = pedpy.load_trajectory_from_jupedsim_sqlite(trajectory_file=path)
    assert loaded.frame_rate == sample_run.FPS
    data = loaded.data.sort_values(["frame", "id"])
    for column, values in expected_rows().items():
        np.testing.assert_array_equal(data[column].to_numpy(), values)


def test_pedpy_loads_the_walkable_area_of_all_door_positions(tmp_path: Path) -> None:
    path = record(tmp_path / "hall.sqlite")
    area = pedpy.load_walkable_area_from_jupedsim_sqlite(trajectory_file=path)
    both = shapely.union_all(shapely.from_wkt([sample_run.HALL, sample_run.HALL_WITH_ROOM]))
    assert area.polygon.equals(both)


@pytest.mark.parametrize("name", ["hall.sqlite", "hall.parquet"])
def test_both_formats_go_to_pedpy(tmp_path: Path, name: str) -> None:
    with read_trajectory(record(tmp_path / name)) as run:
        data = to_pedpy(run)
        area = walkable_area(run)
    for column, values in expected_rows().items():
        np.testing.assert_array_equal(data.data[column].to_numpy(), values)
    assert data.frame_rate == sample_run.FPS
    assert area.polygon.equals(shapely.union_all(shapely.from_wkt([sample_run.HALL, sample_run.HALL_WITH_ROOM])))


def test_three_dimensions_do_not_go_to_pedpy(tmp_path: Path) -> None:
    with open_trajectory(tmp_path / "box.parquet", scene=sample_run.scene(3), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(3), 3)
    with read_trajectory(tmp_path / "box.parquet") as run, pytest.raises(RecordingError, match="two"):
        to_pedpy(run)


def test_the_tables_are_those_of_version_2(tmp_path: Path) -> None:
    path = record(tmp_path / "hall.sqlite")
    with sqlite3.connect(path) as connection:
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            for table in ("trajectory_data", "metadata", "geometry", "frame_data")
        }
        metadata = dict(connection.execute("SELECT key, value FROM metadata"))
        indices = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'index'")}
        frames = connection.execute("SELECT frame, geometry_hash FROM frame_data ORDER BY frame").fetchall()
        keys = {row[0] for row in connection.execute("SELECT hash FROM geometry")}
        others = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    connection.close()
    assert columns == {
        "trajectory_data": ["frame", "id", "pos_x", "pos_y", "ori_x", "ori_y"],
        "metadata": ["key", "value"],
        "geometry": ["hash", "wkt"],
        "frame_data": ["frame", "geometry_hash"],
    }
    assert {key: float(value) for key, value in metadata.items()} == {
        "version": 2,
        "fps": 10.0,
        "xmin": 0.0,
        "xmax": 25.0,
        "ymin": 0.0,
        "ymax": 15.0,
    }
    assert metadata["version"] == "2"
    assert "frame_id_idx" in indices
    assert frames == [(k, geometry_key(sample_run.geometry(k))) for k in range(30)]
    assert keys == {geometry_key(sample_run.HALL), geometry_key(sample_run.HALL_WITH_ROOM)}
    assert all(name.startswith("tropel_") for name in others - columns.keys())


def test_geometry_keys_fit_sqlite_and_do_not_depend_on_the_process() -> None:
    # sha256("POLYGON EMPTY") from another implementation: the first 8 bytes, without the last bit.
    assert geometry_key("POLYGON EMPTY") == int("846836fbd165aeff", 16) >> 1
    assert 0 <= geometry_key(sample_run.HALL) < 2**63


def jupedsim_file(path: Path, *, version: str = "2", bounds: bool = True) -> Path:
    """As JuPedSim 1.3 writes it: frames as floats, values as text."""
    connection = sqlite3.connect(path)
    connection.executescript(
        """
        CREATE TABLE trajectory_data (frame INTEGER NOT NULL, id INTEGER NOT NULL, pos_x REAL NOT NULL,
          pos_y REAL NOT NULL, ori_x REAL NOT NULL, ori_y REAL NOT NULL);
        CREATE TABLE metadata(key TEXT NOT NULL UNIQUE PRIMARY KEY, value TEXT NOT NULL);
        CREATE TABLE geometry(hash INTEGER NOT NULL, wkt TEXT NOT NULL);
        CREATE UNIQUE INDEX geometry_hash on geometry( hash);
        CREATE TABLE frame_data(frame INTEGER NOT NULL, geometry_hash INTEGER NOT NULL);
        CREATE INDEX frame_id_idx ON trajectory_data(frame, id);
        """
    )
    connection.executemany("INSERT INTO metadata VALUES(?, ?)", [("version", version), ("fps", 12.5)])
    if bounds:
        limits = [("xmin", "0.0"), ("xmax", "20.0"), ("ymin", "0.0"), ("ymax", "10.0")]
        connection.executemany("INSERT INTO metadata VALUES(?, ?)", limits)
    connection.execute("INSERT INTO geometry VALUES(?, ?)", (-5, sample_run.HALL))
    for frame in range(4):
        rows = [(float(frame), number, 1.0 + frame, number * 0.5, 1.0, 0.0) for number in (9, 4, 6)]
        connection.executemany("INSERT INTO trajectory_data VALUES(?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO frame_data VALUES(?, ?)", (float(frame), -5))
    connection.commit()
    connection.close()
    return path


@pytest.mark.parametrize("bounds", [True, False])
def test_a_file_of_jupedsim_is_read(tmp_path: Path, bounds: bool) -> None:
    with read_trajectory(jupedsim_file(tmp_path / "peer.sqlite", bounds=bounds)) as run:
        assert run.fps == 12.5
        assert run.frames.tolist() == [0, 1, 2, 3]
        assert run.ids().tolist() == [4, 6, 9]
        assert run.scene.groups == ["agents"]
        assert run.scene.bounds == [[0.0, 0.0], [20.0, 10.0]]
        assert run.scene.walkable_wkt == run.geometry(3) == sample_run.HALL
        frame = run.frame(2)
        assert frame.id.tolist() == [4, 6, 9]
        assert frame.position.tolist() == [[3.0, 2.0], [3.0, 3.0], [3.0, 4.5]]
        assert frame.radius.tolist() == [0.2] * 3
        assert frame.group.tolist() == [0, 0, 0]
        assert run.table()["id"].tolist() == [4, 6, 9] * 4
        assert (run.events, run.summary, run.obstacles(0)) == ([], None, {})


@pytest.mark.parametrize("version", ["1", "3"])
def test_another_version_is_named(tmp_path: Path, version: str) -> None:
    with pytest.raises(RecordingError, match=f"version {version}.*reads version 2"):
        read_trajectory(jupedsim_file(tmp_path / "peer.sqlite", version=version))


def test_a_file_of_jupedsim_may_be_replaced_but_not_continued(tmp_path: Path) -> None:
    path = jupedsim_file(tmp_path / "peer.sqlite")
    with pytest.raises(RecordingError, match="not written by tropel"):
        open_trajectory(path, scene=sample_run.scene(), fps=12.5, append_after=2)
    record(path, frames=2)
    with read_trajectory(path) as run:
        assert run.frames.tolist() == [0, 1]
