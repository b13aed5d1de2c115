"""`tropel plot --at` and `--colours` as a user meets them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from made_flocks import record_flocks
from tropel_command import tropel

from tropel.pictures import draw_moment
from tropel.recording import read_trajectory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("moments")
    record_flocks(folder / "school.sqlite")
    return folder


def pixels(path: Path) -> NDArray[np.uint8]:
    with Image.open(path) as image:
        return np.asarray(image.convert("RGB")).copy()


def moment(folder: Path, time: float, colours: str | None = None) -> NDArray[np.uint8]:
    with read_trajectory(folder / "school.sqlite") as recorded:
        return pixels(draw_moment(recorded, folder / "expected.png", time=time, colours=colours))


def test_every_moment_is_a_picture_named_after_its_time_and_nothing_else_is_drawn(folder: Path) -> None:
    done = tropel("plot", "school.sqlite", "--at", 0.5, "--at", 3, "-o", "moments", cwd=folder)
    assert done.stdout.split() == ["wrote", "moments/school-0.5s.png", "wrote", "moments/school-3s.png"]
    assert sorted(path.name for path in (folder / "moments").iterdir()) == ["school-0.5s.png", "school-3s.png"]
    first, last = (pixels(folder / "moments" / f"school-{time}s.png") for time in ("0.5", "3"))
    np.testing.assert_array_equal(first, moment(folder, 0.5))
    np.testing.assert_array_equal(last, moment(folder, 3.0))
    assert (first != last).any()


def test_agents_of_a_moment_are_coloured_as_asked(folder: Path) -> None:
    tropel("plot", "school.sqlite", "--at", 1, "--colours", "heading", "-o", "headed.png", cwd=folder)
    drawn = pixels(folder / "headed-1s.png")
    np.testing.assert_array_equal(drawn, moment(folder, 1.0, "heading"))
    assert (drawn != moment(folder, 1.0, "group")).any()


def test_animations_are_coloured_as_asked(folder: Path) -> None:
    frames = []
    for colours in ("heading", "group"):
        tropel("plot", "school.sqlite", "--no-png", "--colours", colours, "-o", colours, "-q", cwd=folder)
        assert [path.name for path in (folder / colours).iterdir()] == ["school.gif"]
        frames.append(pixels(folder / colours / "school.gif"))
    assert (frames[0] != frames[1]).any()


def test_a_wrong_time_or_colour_is_named(folder: Path) -> None:
    done = tropel("plot", "school.sqlite", "--at", 1, "--colours", "headng", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "did you mean 'heading'" in done.stderr
    done = tropel("plot", "school.sqlite", "--at", "nan", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "time must be a finite number" in done.stderr
