"""Overlays of replays, beside what the closed form of the recorded run says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import replay_runs as run

from tropel.recording import read_trajectory
from tropel.viewer.replay.frames import RecordedFrames
from tropel.viewer.replay.panel import DENSITY, TRAILS, PastTrails, RecordedOverlays
from tropel.viewer.server import HOST, start_server, stop_server


@pytest.fixture(params=[2, 3])
def frames(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RecordedFrames]:
    with read_trajectory(run.write_run(tmp_path / "run.parquet", dim=request.param, frames=100)) as trajectory:
        yield RecordedFrames(trajectory)


def lone_trail(frames: RecordedFrames, k: int) -> np.ndarray:
    """The points of the guide's trail, who is alone in the second group."""
    seen = PastTrails(frames).trails(k)
    assert seen is not None
    mine = seen.group == 1
    return np.concatenate([seen.ends[mine][:, 0], seen.ends[mine][-1:, 1]])


def test_a_trail_leads_through_the_frames_of_the_last_seconds_to_this_one(frames: RecordedFrames) -> None:
    dim = frames.trajectory.scene.dim
    # Ten frames a second: every second one is a point, and eight seconds are eighty frames.
    for k, through in ((5, [0, 2, 4, 5]), (42, [*range(0, 42, 2), 42]), (99, [*range(20, 99, 2), 99])):
        np.testing.assert_allclose(lone_trail(frames, k), [run.place(run.LONE, j, dim) for j in through])


def test_trails_are_the_same_however_one_came_to_a_frame(frames: RecordedFrames) -> None:
    played = PastTrails(frames)
    for k in (0, 99, 3, 60, 61, 62):
        again = played.trails(k)
    fresh = PastTrails(frames).trails(62)
    assert again is not None
    assert fresh is not None
    np.testing.assert_array_equal(again.ends, fresh.ends)
    np.testing.assert_array_equal(again.age, fresh.age)


def test_nobody_has_a_trail_in_the_first_frame(frames: RecordedFrames) -> None:
    assert PastTrails(frames).trails(0) is None


def test_overlays_are_drawn_while_they_are_on_and_say_what_they_show(frames: RecordedFrames) -> None:
    server = start_server(host=HOST, port=0)
    try:
        overlays = RecordedOverlays(server, frames)
        assert overlays.offered == ((DENSITY, TRAILS) if frames.trajectory.scene.dim == 2 else (TRAILS,))
        assert not any(overlays.draw(40, frames.frame(40)).values())
        overlays.on |= set(overlays.offered)
        said = overlays.draw(40, frames.frame(40))
        assert "The last 8 simulated seconds of all agents" in said[TRAILS]
        if DENSITY in said:
            assert "People per m²" in said[DENSITY]
        assert server.scene.get_handle_by_name("/overlays/trails/trails") is not None
        overlays.on.clear()
        assert not any(overlays.draw(41, frames.frame(41)).values())
        assert server.scene.get_handle_by_name("/overlays/trails/trails") is None
    finally:
        stop_server(server)
