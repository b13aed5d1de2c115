"""The command line as a user meets it: in processes of its own."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from PIL import Image
from tropel_command import tropel

from short_scenario import short_scenario
from tropel.recording import read_trajectory

SHORT = short_scenario()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "short.toml").write_text(SHORT)
    return tmp_path


def test_run_writes_trajectory_summary_checkpoint_and_picture(folder):
    done = tropel("run", "short.toml", cwd=folder)
    out = folder / "out" / "short"
    assert sorted(p.name for p in out.iterdir()) == [
        "checkpoint.npz",
        "run.png",
        "scenario.toml",
        "summary.json",
        "trajectory.sqlite",
    ]
    summary = json.loads((out / "summary.json").read_text())
    assert summary["evacuated"] == summary["agents"] == 12
    for words in ("agents", "simulated time", "evacuated", "evacuation time", "agent-steps per second", "planning"):
        assert words in done.stdout
    with read_trajectory(out / "trajectory.sqlite") as trajectory:
        assert len(trajectory.ids()) == 12
        assert trajectory.summary["state_hash"] == summary["state_hash"]


def test_the_same_seed_gives_the_same_run_whatever_the_threads(folder):
    hashes = set()
    for name, threads in (("a", 1), ("b", 2)):
        tropel("run", "short.toml", "--out", name, "--threads", threads, "--no-picture", "-q", cwd=folder)
        hashes.add(json.loads((folder / name / "summary.json").read_text())["state_hash"])
    tropel("run", "short.toml", "--out", "c", "--seed", 9, "--no-picture", "-q", cwd=folder)
    hashes.add(json.loads((folder / "c" / "summary.json").read_text())["state_hash"])
    assert len(hashes) == 2


def test_a_resumed_run_ends_like_an_uninterrupted_one(folder):
    tropel("run", "short.toml", "--out", "whole", "--no-picture", "-q", cwd=folder)
    tropel("run", "short.toml", "--out", "parts", "--until", 2.35, "--no-picture", "-q", cwd=folder)
    tropel("run", "short.toml", "--resume", "parts/checkpoint.npz", "--no-picture", "-q", cwd=folder)
    rows = []
    for name in ("whole", "parts"):
        with sqlite3.connect(folder / name / "trajectory.sqlite") as file:
            rows.append(file.execute("SELECT * FROM trajectory_data ORDER BY frame, id").fetchall())
    assert rows[0] == rows[1]
    ends = [json.loads((folder / n / "summary.json").read_text())["state_hash"] for n in ("whole", "parts")]
    assert ends[0] == ends[1]


def test_a_checkpoint_of_another_seed_is_refused(folder):
    tropel("run", "short.toml", "--out", "one", "--until", 1, "--no-picture", "-q", cwd=folder)
    done = tropel("run", "short.toml", "--seed", 5, "--resume", "one/checkpoint.npz", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "belongs to another simulation" in done.stderr


def test_a_bad_file_leaves_no_output_and_a_clear_error(folder):
    (folder / "bad.toml").write_text(SHORT.replace("count = 12", "count = 12\ndesird_speed = 2"))
    done = tropel("run", "bad.toml", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "bad.toml, line" in done.stderr
    assert "did you mean 'desired_speed'" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out").exists()


def test_too_many_agents_leave_no_output(folder):
    (folder / "full.toml").write_text(SHORT.replace("count = 12", "count = 5000"))
    done = tropel("run", "full.toml", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "do not fit" in done.stderr
    assert not (folder / "out").exists()


def test_a_run_without_agents_is_fine(folder):
    (folder / "empty.toml").write_text(SHORT.replace("count = 12", "count = 0"))
    done = tropel("run", "empty.toml", "--out", "o", cwd=folder)
    assert "everybody has left" in done.stdout
    assert (folder / "o" / "run.png").exists()


def test_plot_draws_png_and_gif_of_a_run_and_of_a_file(folder):
    tropel("run", "short.toml", "--out", "o", "--no-picture", "-q", cwd=folder)
    tropel("plot", "o", "-q", cwd=folder)
    tropel("plot", "o/trajectory.sqlite", "--out", "elsewhere", "--no-gif", cwd=folder)
    with Image.open(folder / "o" / "run.gif") as animation:
        assert animation.n_frames > 5
    assert (folder / "elsewhere" / "run.png").exists()
    done = tropel("plot", "nothing", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "nothing does not exist" in done.stderr


def test_sweep_reports_every_seed_and_the_spread(folder):
    done = tropel("sweep", "short.toml", "--seeds", 3, "--first", 10, "-q", cwd=folder)
    lines = (folder / "out" / "short-sweep" / "sweep.csv").read_text().splitlines()
    assert sorted(line.split(",")[0] for line in lines[1:]) == ["10", "11", "12"]
    assert (folder / "out" / "short-sweep" / "sweep.png").exists()
    assert "mean evacuation time" in done.stdout
    assert "95 %" in done.stdout


def test_list_validate_schema_and_version(folder):
    assert "hall" in tropel("list", cwd=folder).stdout
    assert "is valid" in tropel("validate", "short.toml", cwd=folder).stdout
    assert "properties" in json.loads(tropel("schema", cwd=folder).stdout)
    assert tropel("--version", cwd=folder).stdout.startswith("tropel ")


def test_an_unknown_demo_suggests_a_known_one(folder):
    done = tropel("demo", "hal", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "did you mean 'hall'" in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="sends a POSIX signal")
def test_ctrl_c_keeps_what_was_simulated(folder):
    endless = SHORT.replace('until = "empty"', "until = 1e6").replace("limit = 60.0", "limit = 1e6")
    (folder / "endless.toml").write_text(endless)
    process = subprocess.Popen(
        [sys.executable, "-m", "tropel.cli", "run", "endless.toml", "--out", "o", "-q"],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
    )
    trajectory = folder / "o" / "trajectory.sqlite"
    deadline = time.monotonic() + 120
    while not (trajectory.exists() and trajectory.stat().st_size > 100_000) and time.monotonic() < deadline:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in told
    with read_trajectory(trajectory) as recorded:
        assert len(recorded.frames) > 10
    assert (folder / "o" / "checkpoint.npz").exists()
