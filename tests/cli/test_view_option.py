"""`tropel run --view` as a user meets it: a page, Ctrl-C, closed files, and the same run again from its record."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tropel_command import tropel

from short_scenario import short_scenario

SHORT = short_scenario("until = 2.0\ndt = 0.1", count=20)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    (tmp_path / "short.toml").write_text(SHORT)
    return tmp_path


def test_ctrl_c_ends_a_watched_run_with_its_files_closed_and_it_can_be_repeated(scenario: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = subprocess.Popen(
            [sys.executable, "-m", "tropel.cli", "run", "short.toml", "--view", "--no-browser", "--port", str(port)],
            cwd=scenario,
            env=os.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # What is started in the background of a shell has been told to ignore Ctrl-C.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        assert run.stderr is not None
        said = [run.stderr.readline(), run.stderr.readline()]
        assert f"Port {port} is in use" in said[0]
        assert "http://127.0.0.1:" in said[1]
        run.send_signal(signal.SIGINT)
        out, error = run.communicate(timeout=300)
    assert run.returncode == 0, error
    assert "Traceback" not in error
    watched = json.loads((scenario / "out" / "short" / "summary.json").read_text())
    (command,) = (line for line in out.splitlines() if line.startswith("tropel run"))
    _, *arguments = shlex.split(command)
    tropel(*arguments, "--no-picture", "-q", cwd=scenario)
    again = json.loads((scenario / "out" / "short-again" / "summary.json").read_text())
    assert again["state_hash"] == watched["state_hash"]


def test_without_the_extra_it_is_said_which_one_to_install(scenario: Path) -> None:
    (scenario / "viser.py").write_text("raise ImportError('not installed')")
    done = tropel("run", "short.toml", "--view", cwd=scenario, ok=False)
    assert done.returncode == 1
    assert "pip install 'tropel[view]'" in " ".join(done.stderr.split())
    assert not (scenario / "out").exists()
