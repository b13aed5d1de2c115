"""What several commands share: options, showing results, compiling before the first run, Ctrl-C."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tropel.errors import GeometryError, ParameterError, TropelError

Out = Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the results.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores by default.")]
Seed = Annotated[int | None, typer.Option(help="Seed; that of the scenario by default.")]
Until = Annotated[float | None, typer.Option(min=0.0, help="Simulated seconds; as in the scenario by default.")]
StepsPerSecond = Annotated[
    float | None,
    typer.Option(help="Steps per second of wall time to keep up: behaviours are left out if the run would be slower."),
]
Events = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Repeat the events of a recorded run: its folder, trajectory, or .jsonl file."),
]
Report = Annotated[bool, typer.Option("--report", help="Also write tables and pictures of the evacuation.")]
Encounters = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write who came near whom, and when, to this table (.parquet or .csv)."),
]
EncounterDistance = Annotated[
    float | None,
    typer.Option(metavar="METRES", help="How near counts as an encounter, between centres; 1.5 by default."),
]
ViewOption = Annotated[bool, typer.Option("--view", help="Show it in the browser while it runs (extra 'view').")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; the next free one if it is in use.")]
Host = Annotated[str, typer.Option(help="Address of the page; any but 127.0.0.1 lets other machines steer the run.")]
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]
AllowImports = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-imports",
        metavar="PACKAGE",
        help="Allow the file to name classes of this Python package (package.module:Class), whose code then runs.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def _without_plan_cache(no_cache: bool) -> bool:
    """Set through the environment, so that it reaches the processes of a sweep too."""
    if no_cache:
        os.environ["TROPEL_PLAN_CACHE"] = "off"
    return no_cache


NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache", callback=_without_plan_cache, help="Plan from scratch instead of using plans of earlier runs."
    ),
]


@contextlib.contextmanager
def naming(file: object) -> Iterator[None]:
    """Start errors about the use of a file with its name."""
    try:
        yield
    except (ParameterError, GeometryError) as error:
        if str(file) in str(error):
            raise
        raise type(error)(f"{file}: {error}") from error


class InterruptedRunError(TropelError):
    """Ctrl-C, with a note on what has been kept; typer would turn a bare KeyboardInterrupt into silence."""


def show(text: object) -> None:
    """Print a result."""
    Console().print(text)


def show_command(text: str) -> None:
    """Print a command so that it can be copied: in one line, however long."""
    Console().print(text, soft_wrap=True, markup=False, highlight=False)


def picture_file(out: Path, stem: str) -> Path:
    """The PNG that --out means: the file itself, or one with the given stem in a folder. Creates the folder."""
    picture = out if out.suffix.lower() == ".png" else out / f"{stem}.png"
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TropelError(
            f"cannot create the folder {picture.parent}: {error.strerror}; choose another --out"
        ) from error
    return picture


def warm_up_if_cold(quiet: bool) -> None:
    """Compile what every run needs, unless it is compiled already."""
    from tropel.run.progress import counting
    from tropel.warmup import BASICS, is_warm, warm_up

    if is_warm():
        return
    if not quiet:
        Console(stderr=True).print("First run: compiling the kernels once, which takes up to a minute.")
    with counting("compiling", len(BASICS), quiet=quiet) as told:
        warm_up(told, BASICS)


def make_folder(folder: Path) -> Path:
    """The folder that --out means; it is created."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TropelError(f"cannot create the folder {folder}: {error.strerror}; choose another --out") from error
    return folder
