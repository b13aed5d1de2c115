"""Running a scenario with everything that belongs to it: trajectory, checkpoint, summary and pictures in one folder."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tropel.budget import Budget
from tropel.errors import EventError, ModelError, ParameterError, RecordingError, ScenarioError
from tropel.progress import planning
from tropel.recording.atomic import replacing
from tropel.running import Summary
from tropel.scenario.loading import Scenario
from tropel.simulation import Simulation


@dataclass(frozen=True)
class Outputs:
    """Where the results of a run lie."""

    folder: Path
    trajectory: Path
    checkpoint: Path
    summary: Path
    scenario: Path
    picture: Path
    animation: Path

    @classmethod
    def in_folder(cls, folder: Path, *, trajectory_format: str) -> Outputs:
        return cls(
            folder=folder,
            trajectory=folder / f"trajectory.{trajectory_format}",
            checkpoint=folder / "checkpoint.npz",
            summary=folder / "summary.json",
            scenario=folder / "scenario.toml",
            picture=folder / "run.png",
            animation=folder / "run.gif",
        )


def execute(
    scenario: Scenario,
    *,
    out: Path,
    seed: int | None = None,
    threads: int | None = None,
    until: float | None = None,
    resume: Path | None = None,
    budget: Budget | None = None,
    replay: Path | None = None,
    progress: bool = True,
    watch: Callable[..., Summary] | None = None,
) -> tuple[Summary, Outputs]:
    """Run a scenario into a folder. Nothing is written before the scenario has been built without errors.

    `budget` takes the place of the one in the file. With `replay`, a recorded run, there is none: its events say what
    was left out. `watch` runs the simulation in place of `Simulation.run`, with a page to see it on.
    """
    spec = scenario.spec

    def build(seed: int | None) -> Simulation:
        built = scenario.build(seed=seed, threads=threads)
        if replay is not None:
            built.replay(replay if replay.suffix == ".jsonl" else trajectory_in(replay))
        return built

    with planning(quiet=not progress):
        sim = build(seed)
        if resume is not None:
            sim.restore(resume)
    if replay is None and budget is None and spec.budget is not None:
        budget = spec.budget.budget()
    kind = spec.recording.format or ("sqlite" if sim.world.dim == 2 else "parquet")
    if kind == "sqlite" and sim.world.dim == 3:
        raise scenario.error(("recording", "format"), "a 3D run cannot be recorded as sqlite; use parquet")
    outputs = Outputs.in_folder(out, trajectory_format=kind)
    if until is not None and until < sim.time:
        raise ScenarioError(f"--until {until:g} lies before the checkpoint at t = {sim.time:g} s")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RecordingError(f"cannot make the folder {out}: {error.strerror}; choose another with --out") from error
    _write_text(outputs.scenario, scenario.text)
    _copy_files(scenario, out)
    end: dict[str, Any] = {"until": spec.until if until is None else until, "limit": max(spec.limit, until or 0.0)}
    files: dict[str, Any] = {
        "record": outputs.trajectory,
        "fps": spec.recording.fps,
        "checkpoint": outputs.checkpoint,
        "checkpoint_every": spec.recording.checkpoint_every,
    }
    try:
        if watch is None:
            summary = sim.run(**end, **files, progress=progress, budget=budget)
        else:
            summary = watch(sim, **end, **files, build=build, budget=budget)
    except (ModelError, EventError, ParameterError) as error:
        # What only shows while it runs is still about this file.
        raise type(error)(f"{scenario.source}: {error}") from error
    _write_text(outputs.summary, json.dumps(summary.as_dict(), indent=2) + "\n")
    return summary, outputs


def _copy_files(scenario: Scenario, out: Path) -> None:
    """Put maps and pictures that a scenario names beside its copy, so that the copy can be run."""
    for name in scenario.files():
        source, copied = scenario.folder / name, out / name
        is_inside = copied.resolve().is_relative_to(out.resolve())
        if is_inside and source.is_file() and source.resolve() != copied.resolve():
            try:
                copied.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copied)
            except OSError as error:
                raise RecordingError(f"cannot copy {source} to {copied}: {error.strerror or error}") from error


def _write_text(path: Path, text: str) -> None:
    try:
        with replacing(path) as file:
            file.write(text.encode())
    except OSError as error:
        raise RecordingError(f"cannot write {path}: {error.strerror or error}") from error


def trajectory_in(run: Path) -> Path:
    """The trajectory that RUN means: a trajectory file itself, or the folder of a run."""
    if run.suffix in (".sqlite", ".db", ".parquet"):
        return run
    if run.is_dir():
        for name in ("trajectory.sqlite", "trajectory.parquet"):
            if os.path.exists(run / name):
                return run / name
        raise RecordingError(f"{run} holds no trajectory.sqlite or trajectory.parquet; give the folder of a run")
    if not run.exists():
        raise RecordingError(f"there is no {run}; give the folder of a run or a trajectory file")
    raise RecordingError(f"{run} is not a trajectory (.sqlite or .parquet) nor the folder of a run")
