"""Damaged files: runs, checkpoints, events, maps and shapes, given to the commands that read them."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
from collections.abc import Callable
from importlib import resources
from pathlib import Path

import numpy as np
from PIL import Image

from tropel.recording import read_trajectory
from tropel.scenario import load_scenario
from tropel.scenario.execute import execute

from .bounded_run import BoundedRun
from .commands import command, left_overs
from .damage import damage, replace_by_no_file
from .outcome import Outcome, accepted, finding, of_error

_PLAN = "case.json"
_SCENES = ("room", "cells", "flock", "space")
_READING = {
    "plot": ("plot", "run", "--no-gif", "--quiet", "--out", "made"),
    "moment": ("plot", "run", "--at", "0.5", "--quiet", "--out", "made"),
    "report": ("report", "run", "--quiet", "--out", "made"),
    "tables": ("report", "run", "--no-pictures", "--quiet", "--out", "made"),
    "measure": ("measure", "run", "--quiet", "--out", "made"),
    "export": ("export", "run", "--html", "--quiet", "--out", "made"),
    "gif": ("export", "run", "--gif", "--seconds", "1", "--quiet", "--out", "made"),
    "replay": (
        *("run", "run/scenario.toml", "--events", "run", "--until", "1"),
        *("--out", "made", "--no-picture", "--quiet"),
    ),
    "frames": (),
}
_RESUME = ("run", "run/scenario.toml", "--resume", "run/checkpoint.npz", "--no-picture", "--quiet", "--until", "12")
_EVENTS = (
    "run",
    "run/scenario.toml",
    "--events",
    "events.jsonl",
    "--until",
    "1",
    "--out",
    "made",
    "--no-picture",
    "-q",
)
_SHAPES = ("maze.map", "plan.png", "shape.wkt", "shape.geojson")


class DamagedFiles:
    name = "damaged"
    seconds = 20.0
    share = 0.4

    def prepare(self, folder: Path) -> None:
        for scene in _SCENES:
            scenario = load_scenario(Path(__file__).with_name("scenarios") / f"{scene}.toml")
            execute(scenario, out=folder / scene, threads=1, progress=False, watch=BoundedRun())
        shutil.copyfile(str(resources.files("tropel.scenario") / "builtin" / "maze_small.map"), folder / "maze.map")
        picture = np.full((24, 32), 255, dtype=np.uint8)
        picture[::23], picture[:, ::31], picture[8:16, 12] = 0, 0, 0
        Image.fromarray(picture).save(folder / "plan.png")
        (folder / "shape.wkt").write_text("POLYGON ((0 0, 12 0, 12 8, 0 8, 0 0), (4 3, 5 3, 5 5, 4 3))")
        ring = [[0, 0], [12, 0], [12, 8], [0, 8], [0, 0]]
        shape = {"type": "Feature", "properties": {}, "geometry": {"type": "Polygon", "coordinates": [ring]}}
        (folder / "shape.geojson").write_text(json.dumps(shape))
        with read_trajectory(folder / "room" / "trajectory.sqlite") as run:
            lines = [json.dumps({"step": entry.step, "event": entry.event}) for entry in run.events]
        (folder / "events.jsonl").write_text("\n".join(lines))

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        what = chance.choice(("run", "run", "run", "run", "checkpoint", "checkpoint", "events", "shape"))
        reading = ""
        if what == "shape":
            name = chance.choice(_SHAPES)
            file = folder / name
            shutil.copyfile(prepared / name, file)
            told = ("plan", name, "--goal", "1,1", "--out", "made", "--quiet", "--cell", "0.5")
        else:
            scene = "room" if what == "events" else chance.choice(_SCENES)
            shutil.copytree(prepared / scene, folder / "run")
            if what == "checkpoint":
                file, told = folder / "run" / "checkpoint.npz", _RESUME
            elif what == "events":
                file, told = folder / "events.jsonl", _EVENTS
                shutil.copyfile(prepared / "events.jsonl", file)
            else:
                file = chance.choice(_parts(folder / "run"))
                reading = chance.choice(sorted(_READING))
                told = _READING[reading]
        if chance.random() < 0.03:
            replace_by_no_file(file, chance)
        else:
            damage(file, chance)
        (folder / _PLAN).write_text(json.dumps({"told": told, "file": str(file.relative_to(folder)), "what": what}))

    def run(self, folder: Path) -> Outcome:
        plan = json.loads((folder / _PLAN).read_text())
        file = Path(plan["file"])
        names = (file.name, "trajectory.", "checkpoint.npz", "scenario.toml")
        outcome = command(*plan["told"], names=names) if plan["told"] else _frames(folder / "run", names)
        halves = left_overs(folder / "made") if outcome.verdict == "refused" else []
        return finding("half-written", " ".join(halves), outcome.said) if halves else outcome

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        pass


def _parts(run: Path) -> list[Path]:
    """The files of a recorded trajectory."""
    return [run / "trajectory.sqlite", *sorted(p for p in (run / "trajectory.parquet").rglob("*") if p.is_file())][
        0 if (run / "trajectory.sqlite").exists() else 1 :
    ]


def _frames(run: Path, names: tuple[str, ...]) -> Outcome:
    """What the page of a recorded run reads of it."""
    from tropel.scenario.execute import trajectory_in
    from tropel.viewer.replay.frames import RecordedFrames

    try:
        with contextlib.closing(read_trajectory(trajectory_in(run))) as recorded:
            frames = RecordedFrames(recorded)
            for colour in frames.choices:
                for index in range(len(frames)):
                    frames.counts(frames.frame(index, colour=colour))
    except BaseException as error:
        return of_error(error, names)
    return accepted()
