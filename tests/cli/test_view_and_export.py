"""`tropel view` and `tropel export` as a user meets them, bad input first of all."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tropel_command import tropel

from tropel.cli.view import export, view
from tropel.errors import ParameterError, RecordingError
from tropel.recording import Scene, open_trajectory

SQUARE = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0))"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run of two seconds."""
    folder = tmp_path / "walk"
    folder.mkdir()
    scene = Scene(dim=2, bounds=[[0.0, 0.0], [10.0, 10.0]], walkable_wkt=SQUARE, dt=0.1, title="a walk")
    with open_trajectory(folder / "trajectory.sqlite", scene=scene, fps=10.0) as writer:
        for frame in range(20):
            writer.write(
                frame,
                id=[3],
                position=[[1.0 + 0.1 * frame, 5.0]],
                heading=[[1.0, 0.0]],
                group=np.zeros(1, dtype=np.int32),
                radius=[0.3],
                speed=[1.0],
            )
    return folder


def test_all_three_kinds_are_written_beside_the_run(run: Path, tmp_path: Path) -> None:
    done = tropel("export", run, "--html", "--gif", "--mp4", "-q", cwd=tmp_path)
    assert sorted(path.name for path in run.iterdir()) == ["run.gif", "run.html", "run.mp4", "trajectory.sqlite"]
    assert "every frame, 10 a second" in done.stdout.replace("\n", " ")
    with Image.open(run / "run.gif") as gif:
        assert gif.n_frames == 20  # type: ignore[attr-defined]


def test_the_name_of_the_file_says_what_it_is(run: Path, tmp_path: Path) -> None:
    tropel("export", run, "-o", tmp_path / "shared.gif", "--seconds", 1, "--fps", 5, "--width", 200, "-q", cwd=tmp_path)
    with Image.open(tmp_path / "shared.gif") as gif:
        assert (gif.width, gif.n_frames) == (200, 5)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "choose what to export: --html, --gif or --mp4"),
        ({"html": True, "gif": True, "out": Path("a.html")}, "one file of one kind"),
        ({"out": Path("a.hmtl")}, r"did you mean '\.html'"),
        ({"gif": True, "colour": "speed"}, "--colour is for --html only"),
        ({"html": True, "width": 300}, "for --gif and --mp4"),
        ({"html": True, "colour": "sped"}, "did you mean 'speed'"),
        ({"html": True, "fps": -1.0}, "fps must be above 0"),
        ({"mp4": True, "fps": 1000.0}, "fps must be above 0 and at most 60"),
    ],
)
def test_what_makes_no_sense_is_said_and_nothing_is_written(run: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        export(run, **options, quiet=True)
    assert [path.name for path in run.iterdir()] == ["trajectory.sqlite"]


@pytest.mark.parametrize("command", [["view", "--no-browser", "--port", "0"], ["export", "--html"]])
def test_a_file_of_another_version_is_one_line_on_the_terminal(run: Path, tmp_path: Path, command: list[str]) -> None:
    with contextlib.closing(sqlite3.connect(run / "trajectory.sqlite")) as file, file:
        file.execute("UPDATE tropel_metadata SET value = '99' WHERE key = 'version'")
    done = tropel(command[0], run, *command[1:], cwd=tmp_path, ok=False)
    assert done.returncode == 1
    assert "another version of tropel" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", [view, export])
def test_files_that_cannot_be_played_are_named(run: Path, tmp_path: Path, command: Any) -> None:
    options = {"html": True} if command is export else {"browser": False, "port": 0}
    (tmp_path / "text.sqlite").write_text("not a trajectory")
    whole = (run / "trajectory.sqlite").read_bytes()
    (tmp_path / "half.sqlite").write_bytes(whole[: len(whole) // 2])
    scene = Scene(dim=2, bounds=[[0.0, 0.0], [1.0, 1.0]], dt=0.1)
    open_trajectory(tmp_path / "empty.parquet", scene=scene, fps=10.0).close()
    for name, said in (
        ("nowhere", "there is no"),
        ("text.sqlite", "neither a SQLite trajectory nor a Parquet directory"),
        ("half.sqlite", r"half\.sqlite"),
        ("empty.parquet", "has no frames"),
    ):
        with pytest.raises(RecordingError, match=said):
            command(tmp_path / name, **options)


@pytest.mark.parametrize(
    ("options", "missing"),
    [(["view"], "viser"), (["export", "--html"], "viser"), (["export", "--mp4"], "imageio_ffmpeg")],
)
def test_without_the_extra_it_is_named(run: Path, tmp_path: Path, options: list[str], missing: str) -> None:
    # A module of that name that cannot be imported stands before the real one.
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / f"{missing}.py").write_text("raise ImportError")
    path = os.pathsep.join([str(tmp_path / "hidden"), os.environ.get("PYTHONPATH", "")])
    done = tropel(options[0], run, *options[1:], cwd=tmp_path, ok=False, environment={"PYTHONPATH": path})
    assert done.returncode == 1
    assert "pip install 'tropel[view]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_view_serves_a_page_until_it_is_interrupted(run: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tropel.cli", "view", str(run), "--no-browser", "--port", "0"]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
        # What is started in the background of a shell has been told to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as viewing:
        try:
            assert viewing.stderr is not None
            line = viewing.stderr.readline()
            address = next(word.rstrip(";") for word in line.split() if word.startswith("http"))
            assert urllib.request.urlopen(address).status == 200
            viewing.send_signal(signal.SIGINT)
            assert viewing.wait(60) == 0
            assert viewing.stderr.read() == ""
        finally:
            # Or a page that does not end would keep the tests waiting forever.
            viewing.kill()
