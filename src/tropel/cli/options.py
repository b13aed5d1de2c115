"""What several commands of the command line share: options, how results are shown, the first run, Ctrl-C."""

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
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores when left out.")]
Seed = Annotated[int | None, typer.Option(help="Seed; that of the scenario when left out.")]
Until = Annotated[float | None, typer.Option(min=0.0, help="Simulated seconds; as the scenario says when left out.")]
StepsPerSecond = Annotated[
    float | None,
    typer.Option(help="Wall-clock rate to hold: leave behaviours out where the run would be slower than that."),
]
Events = Annotated[
    Path | None,
    typer.Option(metavar="RUN", help="Repeat the events of a recorded run: its folder, trajectory, or .jsonl file."),
]
Report = Annotated[bool, typer.Option("--report", help="Write tables and pictures of the evacuation too.")]
ViewOption = Annotated[bool, typer.Option("--view", help="Show it in the browser while it runs (extra 'view').")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="Port of the page; the next free one if it is in use.")]
Host = Annotated[str, typer.Option(help="Address of the page; others than 127.0.0.1 let other machines steer the run.")]
Browser = Annotated[bool, typer.Option(help="Open the page in a browser.")]
AllowImports = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-imports",
        metavar="PACKAGE",
        help="Let the file name classes of this Python package (package.module:Class), whose code then runs.",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bar.")]


def _without_plan_cache(no_cache: bool) -> bool:
    """By the environment, so that the processes of a sweep hear of it too."""
    if no_cache:
        os.environ["TROPEL_PLAN_CACHE"] = "off"
    return no_cache


NoCache = Annotated[
    bool,
    typer.Option(
        "--no-cache", callback=_without_plan_cache, help="Plan anew instead of using plans kept from earlier runs."
    ),
]


@contextlib.contextmanager
def naming(file: object) -> Iterator[None]:
    """Let errors about what is done with a file begin with its name."""
    try:
        yield
    except (ParameterError, GeometryError) as error:
        if str(file) in str(error):
            raise
        raise type(error)(f"{file}: {error}") from error


class InterruptedRunError(TropelError):
    """Ctrl-C, with a word on what has been kept; typer would turn the bare KeyboardInterrupt into silence."""


def show(text: object) -> None:
    """Print a result."""
    Console().print(text)


def show_command(text: str) -> None:
    """Print a command as it can be copied: in one line, however long."""
    Console().print(text, soft_wrap=True, markup=False, highlight=False)


def picture_file(out: Path, stem: str) -> Path:
    """The PNG that --out means: a file itself, or one of the given name in a folder, which is made."""
    picture = out if out.suffix.lower() == ".png" else out / f"{stem}.png"
    try:
        picture.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TropelError(f"cannot make the folder {picture.parent}: {error.strerror}; choose another --out") from error
    return picture


def warm_up_if_cold(quiet: bool) -> None:
    """Compile beforehand what every run needs, where it is not compiled yet."""
    from tropel.run.progress import counting
    from tropel.warmup import BASICS, is_warm, warm_up

    if is_warm():
        return
    if not quiet:
        Console(stderr=True).print("First run: compiling the kernels once, which takes a minute or two.")
    with counting("compiling", len(BASICS), quiet=quiet) as told:
        warm_up(told, BASICS)


def make_folder(folder: Path) -> Path:
    """The folder that --out means, which is made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TropelError(f"cannot make the folder {folder}: {error.strerror}; choose another --out") from error
    return folder
