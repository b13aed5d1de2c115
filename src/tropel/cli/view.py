"""`tropel view` and `tropel export`: recorded runs in the browser, and as files to share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from tropel.cli.options import Quiet, show
from tropel.errors import ParameterError, TropelError, suggest

if TYPE_CHECKING:
    from tropel.recording import Trajectory

RecordedRun = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a trajectory file.")]
Colour = Annotated[str, typer.Option("--colour", help="Colour by group, speed, density or “time to exit”.")]


def view(
    run: RecordedRun,
    speed: Annotated[float, typer.Option(min=0.01, max=1000.0, help="Recorded seconds per second.")] = 1.0,
    colour: Colour = "group",
    paused: Annotated[bool, typer.Option("--paused", help="Start paused.")] = False,
    port: Annotated[int, typer.Option(help="Port of the page; the next free one if it is in use.")] = 8080,
    host: Annotated[
        str, typer.Option(help="Address to serve the page on; any but this machine's own lets others see it.")
    ] = "127.0.0.1",
    browser: Annotated[bool, typer.Option(help="Open a browser.")] = True,
) -> None:
    """Play a recorded run in the browser, with a time slider; Ctrl-C ends it."""
    import webbrowser

    from tropel.scenario.execute import trajectory_in
    from tropel.viewer.replay.page import open_replay

    replay = open_replay(trajectory_in(run), host=host, port=port, speed=speed, playing=not paused, colour=colour)
    console = Console(stderr=True)
    if port not in (0, replay.port):
        console.print(f"Port {port} is in use, so the page uses the next free one.")
    console.print(f"The page is at {replay.address}; Ctrl-C ends it.", highlight=False, soft_wrap=True)
    if browser:
        webbrowser.open(replay.address)
    replay.wait()


def export(
    run: RecordedRun,
    html: Annotated[bool, typer.Option("--html", help="One HTML file that plays without Python or a network.")] = False,
    gif: Annotated[bool, typer.Option("--gif", help="An animated GIF.")] = False,
    mp4: Annotated[bool, typer.Option("--mp4", help="An MP4 movie.")] = False,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder, or the file itself; next to the run by default.")
    ] = None,
    fps: Annotated[
        float | None,
        typer.Option(help="Frames per second: of the run in HTML, of playback in GIF and MP4; a good one by default."),
    ] = None,
    seconds: Annotated[float | None, typer.Option(help="Duration of GIF and MP4.")] = None,
    width: Annotated[int | None, typer.Option(help="Width of GIF and MP4 in pixels.")] = None,
    colour: Annotated[str | None, typer.Option("--colour", help="In HTML: group, speed, density, …")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a recorded run as a file to share: HTML to view from all sides, GIF, MP4."""
    from tropel.recording import read_trajectory
    from tropel.scenario.execute import trajectory_in

    wanted = _wanted({".html": html, ".gif": gif, ".mp4": mp4}, out)
    if colour is not None and wanted != [".html"]:
        raise ParameterError("--colour is for --html only; GIF and MP4 show groups, or speeds if there is one group")
    if (seconds is not None or width is not None) and wanted == [".html"]:
        raise ParameterError("--seconds and --width are for --gif and --mp4: HTML plays in real time, in any window")
    source = trajectory_in(run)
    with read_trajectory(source) as recorded:
        stem = "run" if source.stem == "trajectory" else source.stem
        for suffix in wanted:
            path = _place(out or source.parent, stem, suffix)
            options: dict[str, Any] = {"fps": fps}
            options |= {"colour": colour} if suffix == ".html" else {"seconds": seconds, "width": width}
            show(f"wrote {_write(recorded, path, options, quiet)}")


def _wanted(asked: dict[str, bool], out: Path | None) -> list[str]:
    """The suffixes of the files to write; the name of the file may also give one."""
    kinds = [suffix for suffix, wanted in asked.items() if wanted]
    named = "" if out is None or out.is_dir() else out.suffix.lower()
    if named and named not in asked:
        raise ParameterError(f"cannot export to '{out}': its name must end in .html, .gif or .mp4 ({_near(named)})")
    if named and kinds not in ([], [named]):
        raise ParameterError(f"--out {out} is one file of one kind; give a folder for several, or leave it out")
    if not (kinds or named):
        raise ParameterError("choose what to export: --html, --gif or --mp4")
    return kinds or [named]


def _near(suffix: str) -> str:
    return suggest(suffix, [".html", ".gif", ".mp4"])


def _place(out: Path, stem: str, suffix: str) -> Path:
    path = out if out.suffix.lower() == suffix and not out.is_dir() else out / f"{stem}{suffix}"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TropelError(f"cannot create the folder {path.parent}: {error.strerror}; choose another --out") from error
    return path


def _write(recorded: Trajectory, path: Path, options: dict[str, Any], quiet: bool) -> object:
    """Write one file; returns what to print about it."""
    from tropel.pictures import animate_run, film_run
    from tropel.run.progress import counting

    given = {name: value for name, value in options.items() if value is not None}
    with counting("exporting", 1, quiet=quiet) as told:

        def progress(done: int, total: int) -> None:
            told(done, path.name, total)

        if path.suffix == ".gif":
            return animate_run(recorded, path, progress=progress, **given)
        if path.suffix == ".mp4":
            return film_run(recorded, path, progress=progress, **given)
        from tropel.viewer.replay.export import export_html

        return export_html(recorded, path, progress=progress, **given)
