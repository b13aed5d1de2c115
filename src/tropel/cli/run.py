"""`tropel demo` and `tropel run`: a scenario from its file to a folder with results and pictures."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tropel.cli.options import (
    AllowImports,
    Browser,
    EncounterDistance,
    Encounters,
    Events,
    Host,
    InterruptedRunError,
    NoCache,
    Out,
    Port,
    Quiet,
    Report,
    Seed,
    StepsPerSecond,
    Threads,
    Until,
    ViewOption,
    show,
    show_command,
    warm_up_if_cold,
)
from tropel.cli.plot import draw_recorded
from tropel.cli.report import write_report
from tropel.errors import TropelError

if TYPE_CHECKING:
    from tropel.run.loop import Summary
    from tropel.scenario import Scenario
    from tropel.scenario.execute import Outputs


def demo(
    name: Annotated[str, typer.Argument(help="A built-in scenario; see `tropel list`.")] = "hall",
    out: Out = None,
    threads: Threads = None,
    seed: Seed = None,
    until: Until = None,
    report: Report = False,
    view: ViewOption = False,
    port: Port = 8080,
    host: Host = "127.0.0.1",
    browser: Browser = True,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Run a built-in scenario and draw it."""
    from tropel.scenario import load_builtin

    scenario = load_builtin(name)
    warm_up_if_cold(quiet)
    _run_and_draw(
        scenario,
        out=out,
        threads=threads,
        seed=seed,
        until=until,
        resume=None,
        gif=True,
        with_report=report,
        quiet=quiet,
        watch=_watching(port=port, host=host, browser=browser) if view else None,
    )


def run(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML), or the name of a built-in scenario.")],
    out: Out = None,
    threads: Threads = None,
    until: Until = None,
    seed: Seed = None,
    resume: Annotated[Path | None, typer.Option(help="Continue from a checkpoint of the same scenario.")] = None,
    steps_per_second: StepsPerSecond = None,
    events: Events = None,
    picture: Annotated[bool, typer.Option(help="Draw a PNG of the run.")] = True,
    gif: Annotated[bool, typer.Option(help="Also draw an animated GIF.")] = False,
    report: Report = False,
    encounters: Encounters = None,
    encounter_distance: EncounterDistance = None,
    view: ViewOption = False,
    port: Port = 8080,
    host: Host = "127.0.0.1",
    browser: Browser = True,
    allow_imports: AllowImports = None,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario file: trajectory, checkpoint, summary and picture go into one folder."""
    from tropel.scenario import named_scenario

    scenario = named_scenario(file, allow_imports=allow_imports or ())
    _run_and_draw(
        scenario,
        out=out,
        threads=threads,
        seed=seed,
        until=until,
        resume=resume,
        steps_per_second=steps_per_second,
        events=events,
        encounters=encounters,
        encounter_distance=encounter_distance,
        png=picture,
        gif=gif,
        with_report=report,
        quiet=quiet,
        watch=_watching(port=port, host=host, browser=browser) if view else None,
    )


def _run_and_draw(
    scenario: Scenario,
    *,
    out: Path | None,
    threads: int | None,
    seed: int | None,
    until: float | None,
    resume: Path | None,
    quiet: bool,
    steps_per_second: float | None = None,
    events: Path | None = None,
    encounters: Path | None = None,
    encounter_distance: float | None = None,
    png: bool = True,
    gif: bool,
    with_report: bool,
    watch: Callable[..., Summary] | None = None,
) -> None:
    from tropel.run.budget import Budget
    from tropel.scenario.execute import execute

    if steps_per_second is not None and events is not None:
        raise TropelError(
            "give either --steps-per-second or --events: the events of a recorded run already include what it left out"
        )

    folder = out or (resume.parent if resume is not None else Path("out") / scenario.name)
    try:
        summary, outputs = execute(
            scenario,
            out=folder,
            seed=seed,
            threads=threads,
            until=until,
            resume=resume,
            budget=None if steps_per_second is None else Budget(steps_per_second=steps_per_second),
            replay=events,
            progress=not quiet,
            watch=watch,
            encounters=encounters,
            encounter_distance=encounter_distance,
        )
    except KeyboardInterrupt:
        kept = f"the results so far are in {folder}; continue with  --resume {folder / 'checkpoint.npz'}"
        raise InterruptedRunError(
            kept if (folder / "checkpoint.npz").exists() else "nothing was simulated yet"
        ) from None
    _show_summary(summary, outputs)
    if watch is not None:
        show("to repeat this run step by step:")
        show_command(f"tropel run {_again(scenario, summary, outputs)}")
        return
    for path in draw_recorded(outputs.trajectory, outputs.picture, outputs.animation, png=png, gif=gif, quiet=quiet):
        show(f"wrote {path}")
    if png:
        from tropel.scenario.plan import draw_scenario_fields

        for path in draw_scenario_fields(scenario, folder):
            show(f"wrote {path}")
    if with_report:
        write_report(outputs.trajectory, pictures=png, with_table=False, quiet=quiet)
    elif summary.evacuated:
        show(f"who left when and where, density and flow:  tropel report {folder}")


def _again(scenario: Scenario, summary: Summary, outputs: Outputs) -> str:
    """The command that repeats a watched run: with its copy of the scenario, unless that lacks a file."""
    whole = all((outputs.folder / name).is_file() for name in scenario.files())
    parts: list[object] = [outputs.scenario if whole else scenario.source, "--events", outputs.folder]
    parts += ["--until", f"{summary.simulated_time:.12g}"]
    parts += [part for package in scenario.allow_imports for part in ("--allow-imports", package)]
    parts += ["--seed", summary.seed] if summary.seed != scenario.spec.seed else []
    parts += ["--out", outputs.folder.with_name(f"{outputs.folder.name}-again")]
    return shlex.join(map(str, parts))


def _watching(**options: Any) -> Callable[..., Summary]:
    """A function that runs a simulation with a page; if the extra is missing, raises before anything is built."""
    from tropel.viewer.server import import_viser

    import_viser()
    from tropel.viewer.live.view import watch_files

    return functools.partial(watch_files, **options)


def _show_summary(summary: Summary, outputs: Outputs) -> None:
    show(summary.table())
    for path in (outputs.trajectory, outputs.summary):
        show(f"wrote {path}")
    if outputs.encounters is not None:
        show(f"wrote {outputs.encounters}")
        show("contact time by distance and per person:")
        show_command(f"tropel plot {shlex.quote(str(outputs.encounters))}")
