from pathlib import Path

import numpy as np
import pytest
import sample_run

from tropel.errors import RecordingError
from tropel.recording import RecordedEvent, Scene, open_trajectory, read_trajectory

FORMATS = [("run.sqlite", 2), ("run.db", 2), ("run.parquet", 2), ("run.parquet", 3)]


def record(path: Path, dim: int, frames: int = 30, summary: dict | None = None) -> None:
    with open_trajectory(path, scene=sample_run.scene(dim), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(frames), dim)
        assert writer.frames_written == frames
        writer.close(summary)


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_every_frame_comes_back_exactly_as_it_was_written(tmp_path: Path, name: str, dim: int) -> None:
    record(tmp_path / name, dim)
    with read_trajectory(tmp_path / name) as run:
        assert run.scene == sample_run.scene(dim)
        assert run.fps == sample_run.FPS
        assert run.frames.tolist() == list(range(30))
        for k in reversed(range(30)):
            expected, found = sample_run.agents(k, dim), run.frame(k)
            assert found.id.dtype == np.int64
            assert found.group.dtype == np.int32
            for column in ("id", "position", "heading", "group", "radius"):
                np.testing.assert_array_equal(getattr(found, column), expected[column], err_msg=f"{column}, frame {k}")
            if name.endswith(".parquet"):
                np.testing.assert_array_equal(found.speed, expected["speed"])
            else:
                assert found.speed is None


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_the_table_has_all_rows_by_frame_and_id(tmp_path: Path, name: str, dim: int) -> None:
    record(tmp_path / name, dim)
    expected = [sample_run.agents(k, dim) for k in range(30)]
    with read_trajectory(tmp_path / name) as run:
        table = run.table()
        ids = run.ids()
    np.testing.assert_array_equal(table["frame"], np.repeat(range(30), [len(e["id"]) for e in expected]))
    for column in ("id", "group", "radius"):
        np.testing.assert_array_equal(table[column], np.concatenate([e[column] for e in expected]))
    for axis, letter in enumerate("xyz"[:dim]):
        np.testing.assert_array_equal(table[letter], np.concatenate([e["position"][:, axis] for e in expected]))
        np.testing.assert_array_equal(
            table[f"heading_{letter}"], np.concatenate([e["heading"][:, axis] for e in expected])
        )
    np.testing.assert_array_equal(ids, np.unique(np.concatenate([e["id"] for e in expected])))


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_doors_events_obstacles_and_summary_come_back(tmp_path: Path, name: str, dim: int) -> None:
    record(tmp_path / name, dim, summary={"evacuated": np.int64(12), "time": 3.5, "never": float("inf")})
    with read_trajectory(tmp_path / name) as run:
        for k in range(30):
            if dim == 2:
                assert run.geometry(k) == sample_run.geometry(k)
            cart = {"cart": {"radius": 0.5, "position": sample_run.cart(k, dim)}}
            assert run.obstacles(k) == (cart if k % 3 else {})
        assert run.events == [
            RecordedEvent(frame=8, step=16, event={"door": "side", "open": True}),
            RecordedEvent(frame=19, step=38, event={"door": "side", "open": False}),
        ]
        assert run.summary == {"evacuated": 12, "time": 3.5, "never": None}
        assert run.time(20) == 2.0


@pytest.mark.parametrize(("name", "dim"), FORMATS)
def test_a_run_that_was_not_finished_has_no_summary(tmp_path: Path, name: str, dim: int) -> None:
    record(tmp_path / name, dim)
    with read_trajectory(tmp_path / name) as run:
        assert run.summary is None


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_run_without_agents_is_a_valid_file(tmp_path: Path, name: str) -> None:
    nobody = {name: column[:0] for name, column in sample_run.agents(0).items()}
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=5) as writer:
        for k in range(3):
            writer.write(k, **nobody)
    with read_trajectory(tmp_path / name) as run:
        assert run.frames.tolist() == [0, 1, 2]
        assert run.frame(1).position.shape == (0, 2)
        assert run.frame(1).heading.shape == (0, 2)
        assert len(run.table()["x"]) == 0
        assert run.geometry(2) == sample_run.HALL
        assert run.ids().tolist() == []


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_run_without_frames_is_a_valid_file(tmp_path: Path, name: str) -> None:
    open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=5).close({"steps": 0})
    with read_trajectory(tmp_path / name) as run:
        assert len(run) == 0
        assert run.summary == {"steps": 0}
        assert run.table()["frame"].tolist() == []
        with pytest.raises(RecordingError, match="no frame 0"):
            run.frame(0)


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_rows_in_another_order_are_stored_by_id(tmp_path: Path, name: str) -> None:
    columns = sample_run.agents(3)
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=5) as writer:
        writer.write(3, **{key: column[::-1] for key, column in columns.items()})
    with read_trajectory(tmp_path / name) as run:
        np.testing.assert_array_equal(run.frame(3).position, columns["position"])


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_frames_larger_than_a_batch_and_a_row_group_come_back(tmp_path: Path, name: str) -> None:
    count = 150_007
    random = np.random.default_rng(1)
    position = random.random((count, 2))
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=5) as writer:
        for k, n in enumerate((count, 255, 256, 257, count)):
            writer.write(
                k,
                id=np.arange(n),
                position=position[:n] + k,
                heading=position[:n],
                group=np.zeros(n, np.int32),
                radius=np.full(n, 0.3),
                speed=np.zeros(n),
            )
    with read_trajectory(tmp_path / name) as run:
        for k, n in enumerate((count, 255, 256, 257, count)):
            np.testing.assert_array_equal(run.frame(k).position, position[:n] + k)


def test_parts_load_with_plain_pandas_and_arrow(tmp_path: Path) -> None:
    import pandas
    import pyarrow.dataset

    with open_trajectory(tmp_path / "run.parquet", scene=sample_run.scene(3), fps=sample_run.FPS) as writer:
        for start in range(0, 30, 10):
            sample_run.write_frames(writer, range(start, start + 10), 3)
            writer.flush()
    parts = tmp_path / "run.parquet" / "parts"
    assert len(list(parts.iterdir())) >= 3
    frame = pandas.read_parquet(parts)
    expected = [sample_run.agents(k, 3) for k in range(30)]
    columns = ["frame", "id", "x", "y", "z", "heading_x", "heading_y", "heading_z", "speed", "group", "radius"]
    assert list(frame.columns) == columns
    np.testing.assert_array_equal(frame["z"], np.concatenate([e["position"][:, 2] for e in expected]))
    arrow = pyarrow.dataset.dataset(parts).to_table()
    np.testing.assert_array_equal(arrow["speed"].to_numpy(), np.concatenate([e["speed"] for e in expected]))


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_flushed_run_can_be_read_while_it_goes_on(tmp_path: Path, name: str) -> None:
    with open_trajectory(tmp_path / name, scene=sample_run.scene(), fps=sample_run.FPS) as writer:
        sample_run.write_frames(writer, range(5))
        writer.flush()
        with read_trajectory(tmp_path / name) as run:
            assert run.frames.tolist() == list(range(5))
            np.testing.assert_array_equal(run.frame(4).position, sample_run.agents(4)["position"])
        sample_run.write_frames(writer, range(5, 9))
    with read_trajectory(tmp_path / name) as run:
        assert run.frames.tolist() == list(range(9))


def test_a_scene_survives_json_with_numpy_numbers_in_it() -> None:
    scene = Scene(
        dim=3,
        bounds=np.array([[0, 0, 0], [1, 2, 3]]),  # type: ignore[arg-type]
        targets={"drone": {"path": [(np.float64(1), 2, 3)]}},
        extra={"limit": float("inf"), "big": 2**63},
        dt=np.float32(0.5),  # type: ignore[arg-type]
    )
    assert Scene.from_json(scene.to_json()) == scene
    assert scene.targets == {"drone": {"path": [[1.0, 2, 3]]}}
    assert scene.extra == {"limit": None, "big": 2**63}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"dim": 4}, "2 or 3 dimensions"),
        ({"bounds": [[0, 0], [1]]}, "bounds"),
        ({"bounds": [[0, 0], [float("inf"), 1]]}, "finite"),
        ({"bounds": [[2, 0], [1, 1]]}, "lowest first"),
        ({"dt": 0.0}, "time step"),
        ({"extra": {"model": object()}}, r"scene\.extra\.model is a object"),
        ({"extra": {1: 2}}, "keys are text"),
    ],
)
def test_a_scene_that_cannot_be_stored_is_refused(wrong: dict, says: str) -> None:
    with pytest.raises(RecordingError, match=says):
        Scene(**{"dim": 2, "bounds": [[0, 0], [1, 1]], "dt": 0.1, **wrong})


def test_open_space_gets_its_bounding_box_as_area(tmp_path: Path) -> None:
    scene = Scene(dim=2, bounds=[[-1, 0], [3, 2]], dt=0.1)
    with open_trajectory(tmp_path / "open.sqlite", scene=scene, fps=5) as writer:
        writer.write(0, **sample_run.agents(0), geometry_wkt="")
    with read_trajectory(tmp_path / "open.sqlite") as run:
        import shapely

        assert shapely.from_wkt(run.geometry(0)).equals(shapely.box(-1, 0, 3, 2))
        assert run.scene.walkable_wkt == ""
