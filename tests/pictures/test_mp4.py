from __future__ import annotations

from pathlib import Path

import imageio.v3 as imageio
import numpy as np
import pytest
from recorded_runs import MemoryTrajectory, at, scene

from tropel.errors import ParameterError, RecordingError
from tropel.pictures import film_run


def walker(frames: int) -> MemoryTrajectory:
    return MemoryTrajectory(scene(), [at([[1.0 + 0.05 * k, 3.0]]) for k in range(frames)])


def test_a_movie_has_every_frame_in_real_time_and_rests_at_the_end(tmp_path: Path) -> None:
    run = walker(31)
    path = film_run(run, tmp_path / "run.mp4", width=321)
    shown = np.stack(list(imageio.imiter(path, plugin="FFMPEG")))
    about = imageio.immeta(path, plugin="FFMPEG")
    rate = 31 / (30 / run.fps)
    assert about["fps"] == pytest.approx(rate, rel=0.02)
    assert len(shown) == pytest.approx(31 + 1.5 * rate, abs=2)
    # Even numbers of pixels, which every player can show.
    assert shown.shape[1] % 2 == shown.shape[2] % 2 == 0
    assert shown.shape[2] in (320, 322)
    moved = np.abs(shown[30].astype(int) - shown[0].astype(int))
    assert moved.max() > 60


def test_a_long_run_plays_as_long_as_asked(tmp_path: Path) -> None:
    path = film_run(walker(400), tmp_path / "run.mp4", seconds=2.0, fps=10.0, width=200)
    assert len(list(imageio.imiter(path, plugin="FFMPEG"))) == pytest.approx(20 + 15, abs=2)


def test_progress_counts_the_frames(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    film_run(walker(5), tmp_path / "run.mp4", width=200, progress=lambda done, total: told.append((done, total)))
    assert told == [(k, 5) for k in range(1, 6)]


@pytest.mark.parametrize("wrong", [{"seconds": 0.0}, {"fps": 100.0}, {"width": 10}])
def test_senseless_numbers_are_refused(tmp_path: Path, wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        film_run(walker(3), tmp_path / "run.mp4", **wrong)  # type: ignore[arg-type]


def test_a_run_without_frames_leaves_no_file(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="no frames"):
        film_run(walker(0), tmp_path / "run.mp4")
    assert list(tmp_path.iterdir()) == []
