from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import replay_runs as run

from tropel import Group, Orbit, Simulation, Target, World
from tropel.errors import ParameterError, RecordingError
from tropel.events import MoveTarget
from tropel.recording import open_trajectory, read_trajectory
from tropel.viewer.replay.frames import RecordedFrames


@pytest.fixture(params=["run.sqlite", "run.parquet"], scope="module")
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RecordedFrames]:
    path = run.write_run(tmp_path_factory.mktemp("recorded") / request.param)
    frames = RecordedFrames(read_trajectory(path))
    yield frames
    frames.close()


@pytest.mark.parametrize("k", [0, 19, 20, 30, 31, 45, 59])
def test_a_frame_shows_everything_as_it_was_then(recorded: RecordedFrames, k: int) -> None:
    frame = recorded.frame(k)
    assert frame.time == pytest.approx(k / 10)
    assert frame.id.tolist() == run.ids(k).tolist()
    np.testing.assert_allclose(frame.position, [run.place(int(number), k) for number in frame.id])
    assert frame.group.tolist() == [int(number == run.LONE) for number in frame.id]
    assert frame.id[frame.dead].tolist() == ([run.DIES] if k >= run.SOMEBODY_DIES else [])
    assert frame.doors == {"middle": k < run.DOOR_SHUTS}
    assert frame.exits == {"east": True}
    np.testing.assert_allclose(frame.obstacles.position, [run.cart(k)])
    assert list(frame.hazards.names) == (["blaze"] if k >= run.FIRE_BEGINS else [])
    assert list(frame.targets.names) == ["stage"]
    assert frame.left == (k / 10 > run.LEAVES_AT)
    assert frame.died == (k >= run.SOMEBODY_DIES)


def test_a_fire_has_its_kind_and_both_radii(recorded: RecordedFrames) -> None:
    fire = recorded.frame(run.FIRE_BEGINS).hazards
    assert fire.outer is not None
    assert (list(fire.kinds), fire.radius.tolist(), fire.outer.tolist()) == (["fire"], [0.8], [2.5])


@pytest.mark.parametrize(("time", "index"), [(-1.0, 0), (0.0, 0), (0.099, 0), (0.1, 1), (4.2, 42), (5.9, 59), (99, 59)])
def test_a_time_is_shown_by_the_last_frame_not_after_it(recorded: RecordedFrames, time: float, index: int) -> None:
    assert recorded.index_at(time) == index


def test_colours_stand_for_speed_density_and_the_time_until_people_left(recorded: RecordedFrames) -> None:
    assert recorded.choices == ["group", "speed", "density", "time to exit"]
    speed = recorded.frame(15, colour="speed").value
    np.testing.assert_allclose(speed, [2.0 if number == run.LONE else 1.0 for number in run.ids(15)])
    wait = recorded.frame(10, colour="time to exit").value
    assert wait is not None
    assert wait[0] == pytest.approx(run.LEAVES_AT - 1.0)
    assert np.isnan(wait[1:]).all()
    assert recorded.frame(10).value is None


def test_a_scale_is_the_same_in_all_frames_and_holds_what_is_seen(recorded: RecordedFrames) -> None:
    assert recorded.scale("group") is None
    scale = recorded.scale("speed")
    assert scale is not None
    assert (scale.low, scale.unit) == (0.0, "m/s")
    assert 1.9 <= scale.high <= 2.2


def test_an_unknown_colour_names_the_near_miss(recorded: RecordedFrames) -> None:
    with pytest.raises(ParameterError, match="did you mean 'speed'"):
        recorded.frame(0, colour="sped")


def test_without_a_table_of_people_nobody_is_said_to_have_left(tmp_path: Path) -> None:
    with read_trajectory(run.write_run(tmp_path / "killed.parquet", people=False)) as trajectory:
        frames = RecordedFrames(trajectory)
        assert not frames.knows_who_left
        assert "time to exit" not in frames.choices
        assert frames.frame(50).left == 0


def test_frames_of_a_run_in_space_have_three_coordinates(tmp_path: Path) -> None:
    with read_trajectory(run.write_run(tmp_path / "space.parquet", dim=3)) as trajectory:
        frame = RecordedFrames(trajectory).frame(33)
        np.testing.assert_allclose(frame.position, [run.place(int(number), 33, 3) for number in frame.id])
        assert frame.hazards.position.tolist() == [[15.0, 5.0, 3.0]]


@pytest.mark.parametrize("name", ["empty.sqlite", "empty.parquet"])
def test_a_run_without_frames_is_refused_with_its_name(tmp_path: Path, name: str) -> None:
    open_trajectory(tmp_path / name, scene=run.scene(), fps=10.0).close()
    with (
        read_trajectory(tmp_path / name) as trajectory,
        pytest.raises(RecordingError, match="has no frames"),
    ):
        RecordedFrames(trajectory)


@pytest.mark.parametrize("name", ["long.sqlite", "long.parquet"])
def test_frames_are_read_one_at_a_time_and_never_all_at_once(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with read_trajectory(run.write_run(tmp_path / name)) as trajectory:
        asked: list[int] = []
        frame = trajectory.frame
        monkeypatch.setattr(trajectory, "table", lambda: pytest.fail("the whole file was read"))
        monkeypatch.setattr(trajectory, "ids", lambda: pytest.fail("the whole file was looked through"))
        monkeypatch.setattr(trajectory, "frame", lambda k: asked.append(k) or frame(k))
        frames = RecordedFrames(trajectory)
        assert asked == []
        frames.frame(7)
        assert asked == [7]


@pytest.mark.parametrize("name", ["run.sqlite", "run.parquet"])
def test_a_run_that_is_being_written_is_shown_as_far_as_it_goes(tmp_path: Path, name: str) -> None:
    writer = open_trajectory(tmp_path / name, scene=run.scene(), fps=run.FPS)
    with read_trajectory(tmp_path / name) as begun, pytest.raises(RecordingError, match="wait for its first frames"):
        RecordedFrames(begun)
    for k in range(3):
        writer.write(
            k,
            id=[1],
            position=[run.place(1, k)],
            heading=[[1.0, 0.0]],
            group=np.zeros(1, dtype=np.int32),
            radius=[0.25],
            speed=[1.0],
        )
    writer.flush()
    with read_trajectory(tmp_path / name) as growing:
        frames = RecordedFrames(growing)
        assert (len(frames), frames.has_end) == (3, False)
        np.testing.assert_allclose(frames.frame(2).position, [run.place(1, 2)])
    writer.close({"agents": 1})
    with read_trajectory(tmp_path / name) as whole:
        assert RecordedFrames(whole).has_end


def test_a_target_that_moves_by_itself_is_where_its_motion_has_it_until_an_event_moves_it(tmp_path: Path) -> None:
    orbit = Orbit(center=(5.0, 5.0), radius=3.0, period=8.0)
    world = World(bounds=(0, 0, 10, 10), targets={"lantern": Target(motion=orbit, radius=0.7)})
    sim = Simulation(world, Group("people", count=2, goal="none"), dt=0.1, seed=1, threads=1)
    sim.at(3.0, MoveTarget(name="lantern", position=(1.0, 2.0)))
    sim.run(until=4.0, record=tmp_path / "run.sqlite", fps=10.0)
    with read_trajectory(tmp_path / "run.sqlite") as trajectory:
        frames = RecordedFrames(trajectory)
        for time in (0.0, 1.0, 2.0):
            targets = frames.frame(frames.index_at(time)).targets
            angle = 2.0 * np.pi * time / 8.0
            np.testing.assert_allclose(targets.position, [[5.0 + 3.0 * np.cos(angle), 5.0 + 3.0 * np.sin(angle)]])
            assert (list(targets.names), targets.radius.tolist()) == (["lantern"], [0.7])
        np.testing.assert_allclose(frames.frame(frames.index_at(3.5)).targets.position, [[1.0, 2.0]])
