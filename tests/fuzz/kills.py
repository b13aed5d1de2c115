"""Kills: runs that are ended at any moment, also while a checkpoint is written, and then gone on with.

What is left can be read, and the resumed run ends with the hash and the frames of one that nobody killed.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tropel.errors import TropelError
from tropel.recording import read_trajectory
from tropel.scenario import load_scenario
from tropel.scenario.execute import execute, trajectory_in

from .commands import command
from .outcome import Outcome, accepted, finding, of_error

_CASE, _PLAN = "case.toml", "case.json"
_SCENES = ("room", "space", "cells")
_UNTIL = {"room": 5.0, "space": 10.0, "cells": 25.0}
#: A checkpoint after every step, so that many kills come while one is written.
_OFTEN = "[recording]\nfps = 20.0\ncheckpoint_every = 0.01\n"
_STEPS = 100
_LONGEST_WAIT = 120.0


class Kills:
    name = "kills"
    seconds = 60.0
    share = 0.2

    def prepare(self, folder: Path) -> None:
        for scene in _SCENES:
            text = (Path(__file__).with_name("scenarios") / f"{scene}.toml").read_text()
            text = text.partition("[budget]")[0].replace("[recording]", "[spare]") + _OFTEN
            (folder / f"{scene}.toml").write_text(text)
            scenario = load_scenario(folder / f"{scene}.toml")
            summary, _ = execute(scenario, out=folder / scene, threads=1, until=_UNTIL[scene], progress=False)
            (folder / scene / "hash").write_text(summary.state_hash)

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        scene = chance.choice(_SCENES)
        shutil.copyfile(prepared / f"{scene}.toml", folder / _CASE)
        shutil.copytree(prepared / scene, folder / "whole")
        moments = [[chance.randint(0, _STEPS), chance.uniform(0.0, 0.02)] for _ in range(chance.choice((1, 1, 2)))]
        (folder / _PLAN).write_text(json.dumps({"until": _UNTIL[scene], "kills": moments}))

    def run(self, folder: Path) -> Outcome:
        plan = json.loads((folder / _PLAN).read_text())
        checkpoint = folder / "run" / "checkpoint.npz"
        told: tuple[Any, ...] = ("run", _CASE, "--out", "run", "--until", plan["until"], "--threads", 1)
        told += ("--no-picture", "--quiet")
        for saved, wait in plan["kills"]:
            resumed = ("--resume", checkpoint) if checkpoint.exists() else ()
            _start_and_kill(folder, (*told, *resumed), saved, wait)
            broken = _unreadable(folder / "run")
            if broken is not None:
                return broken
        resumed = ("--resume", checkpoint) if checkpoint.exists() else ()
        outcome = command(*told, *resumed, names=(_CASE,))
        if outcome.kind or outcome.verdict != "accepted":
            return finding("lost", f"a resume: {outcome.label}", outcome.said)
        return _compared(folder / "whole", folder / "run")

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        pass


def _start_and_kill(folder: Path, told: tuple[Any, ...], saved: int, wait: float) -> None:
    """Kill a run a moment after it has written so many checkpoints."""
    checkpoint = folder / "run" / "checkpoint.npz"
    command_line = [sys.executable, "-m", "tropel.cli", *map(str, told)]
    with (folder / "printed.txt").open("wb") as printed:
        process = subprocess.Popen(command_line, cwd=folder, stdout=printed, stderr=printed)
        end = time.monotonic() + _LONGEST_WAIT
        last, seen = _mark(checkpoint), 0
        while process.poll() is None and seen < saved and time.monotonic() < end:
            mark = _mark(checkpoint)
            seen, last = seen + (mark != last), mark
            time.sleep(0.0005)
        time.sleep(wait)
        process.kill()
        process.wait()


def _mark(file: Path) -> int:
    try:
        return os.stat(file).st_ino ^ os.stat(file).st_mtime_ns
    except OSError:
        return 0


def _unreadable(run: Path) -> Outcome | None:
    """A finding where what a kill has left cannot be read."""
    try:
        trajectory = trajectory_in(run)
    except TropelError:
        return None  # it was killed before there was any
    try:
        with read_trajectory(trajectory) as recorded:
            for k in recorded.frames.tolist():
                recorded.frame(k)
    except TropelError as error:
        # A file of which nothing has been committed may say so.
        has_checkpoint = (run / "checkpoint.npz").exists()
        return finding("lost", "a trajectory with a checkpoint beside it", str(error)) if has_checkpoint else None
    except BaseException as error:
        return of_error(error, ("trajectory.",))
    return None


def _compared(whole: Path, run: Path) -> Outcome:
    resumed = json.loads((run / "summary.json").read_text())["state_hash"]
    if resumed != (whole / "hash").read_text():
        return finding("other hash", "at the end of a resumed run")
    with read_trajectory(trajectory_in(whole)) as first, read_trajectory(trajectory_in(run)) as second:
        if first.frames.tolist() != second.frames.tolist():
            return finding("lost", "frames", f"{first.frames.tolist()} are {second.frames.tolist()}")
        for k in first.frames.tolist():
            one, other = first.frame(k), second.frame(k)
            if not (np.array_equal(one.id, other.id) and np.array_equal(one.position, other.position)):
                return finding("lost", "agents of a frame", f"frame {k}")
    return accepted()
