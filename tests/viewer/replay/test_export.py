from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
import replay_runs as run
import zstandard

from tropel.errors import ParameterError, RecordingError
from tropel.recording import Trajectory, open_trajectory, read_trajectory
from tropel.viewer.replay import export
from tropel.viewer.replay.export import chosen_frames, export_html
from tropel.viewer.replay.frames import RecordedFrames


@pytest.fixture(scope="module", params=["run.sqlite", "run.parquet"])
def recorded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Trajectory:
    return read_trajectory(run.write_run(tmp_path_factory.mktemp("recorded") / request.param))


def recording_in(path: Path) -> dict[str, Any]:
    """The recording that a file holds, decoded without viser."""
    found = re.search(r'__VISER_EMBED_DATA__="([^"]+)"', path.read_text(encoding="utf-8"))
    assert found is not None
    packed = base64.b64decode(found.group(1))
    data = zstandard.ZstdDecompressor().decompress(packed[8:], max_output_size=int.from_bytes(packed[:8], "little"))
    length = int.from_bytes(data[:8], "little")
    recording: dict[str, Any] = msgspec.msgpack.decode(data[8 : 8 + length])
    return recording


def test_a_file_plays_as_long_as_the_run_with_every_frame_at_its_time(recorded: Trajectory, tmp_path: Path) -> None:
    exported = export_html(recorded, tmp_path / "run.html")
    assert (exported.shown, exported.recorded, exported.fps) == (60, 60, pytest.approx(10.0))
    assert exported.size == exported.path.stat().st_size
    assert exported.size < 1_500_000
    recording = recording_in(exported.path)
    assert recording["durationSeconds"] == pytest.approx(6.0)
    times = sorted({time for time, message in recording["messages"] if "batched_positions" in str(message)})
    np.testing.assert_allclose(times, np.arange(60) / 10.0, atol=1e-9)


def test_fewer_frames_are_asked_for_with_fps_and_the_last_is_always_there(recorded: Trajectory, tmp_path: Path) -> None:
    exported = export_html(recorded, tmp_path / "thin.html", fps=2.0)
    assert (exported.shown, exported.recorded) == (13, 60)
    assert "13 of 60 frames" in str(exported)
    assert "13 of 60 recorded frames" in exported.path.read_text(encoding="utf-8")
    assert chosen_frames(RecordedFrames(recorded), 2.0).tolist() == [*range(0, 60, 5), 59]
    assert chosen_frames(RecordedFrames(recorded), 1000.0).tolist() == list(range(60))


def test_a_run_that_would_make_a_large_file_is_thinned_out(
    recorded: Trajectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MOST_ROWS", 150)
    frames = RecordedFrames(recorded)
    shown = chosen_frames(frames, None)
    assert sum(len(run.ids(int(k))) for k in shown) <= 150
    assert len(shown) >= 20
    assert shown[[0, -1]].tolist() == [0, 59]


def test_frames_left_out_without_being_asked_are_said_and_too_many_are_an_error(
    recorded: Trajectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MOST_ROWS", 150)
    assert "use --fps for more" in str(export_html(recorded, tmp_path / "thinned.html"))
    assert "use --fps for more" not in str(export_html(recorded, tmp_path / "asked.html", fps=2.0))
    monkeypatch.setattr(export, "LARGEST_ROWS", 150)
    with pytest.raises(ParameterError, match=r"60 frames of [67] agents would make a file .* use a lower fps"):
        export_html(recorded, tmp_path / "large.html", fps=10.0)
    assert not (tmp_path / "large.html").exists()


def test_every_frame_says_its_time_and_how_many_are_there(recorded: Trajectory, tmp_path: Path) -> None:
    recording = recording_in(export_html(recorded, tmp_path / "run.html").path)
    said = [str(message) for _, message in recording["messages"]]
    for text in ("0.0 s · 7 there · 0 left", "3.1 s · 6 there · 1 left", "4.0 s · 5 there · 1 left · 1 died"):
        assert any(text in message for message in said), text


def test_names_are_text_and_never_markup(recorded: Trajectory, tmp_path: Path) -> None:
    text = export_html(recorded, tmp_path / "run.html").path.read_text(encoding="utf-8")
    assert "&lt;two&gt; rooms &amp; a door" in text
    assert "<two>" not in text


def test_the_legend_has_the_scale_when_colours_show_a_number(recorded: Trajectory, tmp_path: Path) -> None:
    text = export_html(recorded, tmp_path / "run.html", colour="speed", fps=1.0).path.read_text(encoding="utf-8")
    assert re.search(r"speed 0 .* 2\.?\d* m/s", text)


def test_a_run_in_space_and_one_of_a_single_frame_can_be_exported(tmp_path: Path) -> None:
    for name, more in (("space", {"dim": 3}), ("moment", {"frames": 1})):
        with read_trajectory(run.write_run(tmp_path / f"{name}.parquet", **more)) as trajectory:  # type: ignore[arg-type]
            assert export_html(trajectory, tmp_path / f"{name}.html", fps=5.0).size > 0
    assert recording_in(tmp_path / "moment.html")["durationSeconds"] == 0.0


def test_what_cannot_be_exported_is_said_before_anything_is_written(recorded: Trajectory, tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="fps must be above 0"):
        export_html(recorded, tmp_path / "a.html", fps=0.0)
    with pytest.raises(RecordingError, match=r"must end in \.html"):
        export_html(recorded, tmp_path / "a.htm")
    with pytest.raises(ParameterError, match="did you mean 'density'"):
        export_html(recorded, tmp_path / "a.html", colour="densty")
    open_trajectory(tmp_path / "empty.sqlite", scene=run.scene(), fps=10.0).close()
    with read_trajectory(tmp_path / "empty.sqlite") as empty, pytest.raises(RecordingError, match="has no frames"):
        export_html(empty, tmp_path / "a.html")
    assert not list(tmp_path.glob("*.htm*"))
