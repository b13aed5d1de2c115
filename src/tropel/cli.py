"""The command line: `tropel demo | run | list | validate | schema | plot | report | measure | plan | sweep | bench`, …

Each command is a few lines around the library. Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tropel.cli_list import CROWD_PLOTS, PHASE_PLOTS, PLOTS, list_scenarios
from tropel.cli_measure import measure
from tropel.cli_options import (
    Events,
    NoCache,
    Out,
    Quiet,
    Report,
    Seed,
    StepsPerSecond,
    Threads,
    Until,
    picture_file,
    show,
)
from tropel.cli_plan import plan
from tropel.cli_report import report, write_report
from tropel.errors import TropelError, suggest

if TYPE_CHECKING:
    from tropel.running import Summary
    from tropel.scenario import Scenario
    from tropel.scenario.execute import Outputs

app = typer.Typer(
    name="tropel",
    help="Crowds, flocks and riders moving through complex, changing worlds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


class _InterruptedError(TropelError):
    """Ctrl-C, with a word on what has been kept; typer would turn the bare KeyboardInterrupt into silence."""


def main() -> None:
    """Entry point: errors of tropel become one message and exit code 1, Ctrl-C exit code 130."""
    warnings.showwarning = _show_warning
    try:
        app()
    except _InterruptedError as stop:
        _fail(f"interrupted; {stop}", 130)
    except TropelError as error:
        _fail(str(error), 1)
    except MemoryError:
        _fail("out of memory; use fewer agents, a smaller world or a coarser grid", 1)


def _show_warning(message: Warning | str, *where: Any, **more: Any) -> None:
    Console(stderr=True).print(f"[bold yellow]warning:[/] {escape(str(message))}", soft_wrap=True, highlight=False)


def _fail(message: str, code: int) -> None:
    Console(stderr=True).print(f"[bold red]error:[/] {escape(message)}", soft_wrap=True, highlight=False)
    sys.exit(code)


@app.command()
def demo(
    name: Annotated[str, typer.Argument(help="A built-in scenario; see `tropel list`.")] = "hall",
    out: Out = None,
    threads: Threads = None,
    seed: Seed = None,
    until: Until = None,
    report: Report = False,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Run a built-in scenario and draw it."""
    from tropel.scenario import load_builtin

    scenario = load_builtin(name)
    _warm_up_if_cold(quiet)
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
    )


@app.command()
def run(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML).")],
    out: Out = None,
    threads: Threads = None,
    until: Until = None,
    seed: Seed = None,
    resume: Annotated[Path | None, typer.Option(help="Continue from a checkpoint of the same scenario.")] = None,
    steps_per_second: StepsPerSecond = None,
    events: Events = None,
    picture: Annotated[bool, typer.Option(help="Draw a PNG of the run.")] = True,
    gif: Annotated[bool, typer.Option(help="Draw an animated GIF too.")] = False,
    report: Report = False,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Run a scenario file: trajectory, checkpoint, summary and picture go into one folder."""
    from tropel.scenario import load_scenario

    scenario = load_scenario(file)
    _run_and_draw(
        scenario,
        out=out,
        threads=threads,
        seed=seed,
        until=until,
        resume=resume,
        steps_per_second=steps_per_second,
        events=events,
        png=picture,
        gif=gif,
        with_report=report,
        quiet=quiet,
    )


app.command("list")(list_scenarios)


@app.command()
def validate(file: Annotated[Path, typer.Argument(help="A scenario file (TOML).")]) -> None:
    """Check a scenario file, including its geometry and whether everybody finds room."""
    from tropel.scenario import load_scenario

    sim = load_scenario(file).build(threads=1)
    size = f"{len(sim.agents):,} agents at the start, {len(sim.population.sources)} sources, {len(sim.events)} events"
    show(f"[green]{escape(str(file))} is fine[/]: {size}")


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors that complete and check."""
    from tropel.scenario.schema import ScenarioSpec

    sys.stdout.write(json.dumps(ScenarioSpec.model_json_schema(), indent=2) + "\n")


@app.command()
def plot(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="The folder of a run, a trajectory file, or a plot by name (see `tropel list`)."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder, or PNG file, for the pictures; beside the run if left out."),
    ] = None,
    png: Annotated[bool, typer.Option(help="Draw the PNG.")] = True,
    gif: Annotated[bool, typer.Option(help="Draw the animated GIF.")] = True,
    quiet: Quiet = False,
) -> None:
    """Draw a recorded run as PNG and animated GIF, or a plot that needs no recorded run.

    A phase plot shows how fast an agent turns (φ′) over the way it faces (φ):

    game_fig2: before a narrow, a critical and a wide gap.

    game_fig3: with a target behind a gap that is too narrow, without and with the competition of behaviours.

    crowd_fig3, 4, 7, 9, 10 and 11, crowd_gamma and crowd_density are about lattice crowds.
    """
    from tropel.scenario.execute import trajectory_in

    if not run.exists() and not run.suffix:
        for path in _draw_plot(str(run), out, quiet):
            show(f"wrote {path}")
        return
    trajectory = trajectory_in(run)
    stem = "run" if trajectory.stem == "trajectory" else trajectory.stem
    beside = run if run.is_dir() and run.suffix != ".parquet" else trajectory.parent
    picture = picture_file(out or beside, stem)
    for path in _draw(trajectory, picture, picture.with_suffix(".gif"), png=png, gif=gif, quiet=quiet):
        show(f"wrote {path}")


def _draw_plot(name: str, out: Path | None, quiet: bool) -> list[Path]:
    if name not in PLOTS:
        near = suggest(name, PLOTS)
        raise TropelError(f"there is no {name}; give the folder of a run, a trajectory file or a plot by name ({near})")
    picture = picture_file(out or Path("out"), name)
    if name in CROWD_PLOTS:
        from tropel.progress import counting
        from tropel.scenario.crowd_plots import draw_crowd_plot

        with counting(name, 1, quiet=quiet) as told:
            return draw_crowd_plot(name, picture, lambda what, done, total: told(done, what, total))
    from tropel.pictures.phase_plot import draw_phase_plot
    from tropel.scenario.phase_portraits import competition_portraits, gap_portraits

    portraits = gap_portraits() if name == "game_fig2" else competition_portraits()
    return [draw_phase_plot(portraits, picture, title=PHASE_PLOTS[name])]


app.command()(report)
app.command()(measure)
app.command()(plan)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML), or the name of a built-in scenario.")],
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds.")] = 20,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Out = None,
    until: Until = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core when left out.")] = None,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Run many seeds on all cores; table, confidence bands and a plot."""
    from tropel.pictures import draw_sweep, sweep_statistics
    from tropel.progress import counting
    from tropel.scenario import builtin_names, load_builtin, load_scenario
    from tropel.scenario import sweep as sweeps

    is_builtin = not file.exists() and str(file) in builtin_names()
    scenario = load_builtin(str(file)) if is_builtin else load_scenario(file)
    folder = out or Path("out") / f"{scenario.name}-sweep"
    scenario.build(threads=1)
    _warm_up_if_cold(quiet)
    folder.mkdir(parents=True, exist_ok=True)
    chosen = range(first, first + seeds)
    try:
        with counting("seeds", seeds, quiet=quiet) as told:
            done = sweeps.sweep(scenario, chosen, table=folder / "sweep.csv", workers=workers, until=until, told=told)
    except KeyboardInterrupt:
        raise _InterruptedError(f"the seeds that were done are in {folder / 'sweep.csv'}") from None
    order = sorted(done.results)
    if order:
        departures = [done.results[seed].departures for seed in order]
        agents = [int(str(done.results[seed].row["agents"])) for seed in order]
        ends = [float(str(done.results[seed].row["simulated_time"])) for seed in order]
        show(sweeps.summary_table(scenario, sweep_statistics(departures, agents=agents, end=ends)))
        title = scenario.spec.title or scenario.name
        show(f"wrote {draw_sweep(departures, folder / 'sweep.png', agents=agents, end=ends, title=title)}")
    show(f"wrote {folder / 'sweep.csv'}")
    if done.failures:
        seed, why = min(done.failures.items())
        raise TropelError(f"{len(done.failures)} of {seeds} seeds failed; the first, seed {seed}: {why}")


@app.command()
def bench(
    name: Annotated[str, typer.Argument(help="neighbours, …; left out: show the names.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure ours beside something else in the same run."""
    from tropel import bench as benchmarks
    from tropel.progress import counting

    if not name:
        show("benchmarks: " + ", ".join(benchmarks.names()))
        return
    with counting(name, 1, quiet=quiet) as told:
        result = benchmarks.run(name, progress=lambda what, done, total: told(done, what, total))
    if as_json:
        sys.stdout.write(json.dumps(result.json(), indent=2) + "\n")
    else:
        show(result.table())


@app.command()
def verify(
    model: Annotated[
        list[str] | None, typer.Option(help="A steering model by name, or package.module:Class; all when left out.")
    ] = None,
    test: Annotated[list[str] | None, typer.Option(help="rimea_1, rimea_4, rimea_6, doors; all when left out.")] = None,
    out: Out = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run the standard tests of pedestrian dynamics; exit code 1 when a criterion that must hold does not."""
    from tropel import verification
    from tropel.progress import counting

    folder = out or Path("out") / "verify"
    runs = len(test or verification.names()) * len(model or verification.model_names())
    with counting("verifying", runs, quiet=quiet) as told:
        verdicts = list(verification.run(models=model or (), tests=test or (), out=folder, told=told))
    if as_json:
        sys.stdout.write(json.dumps([verdict.json() for verdict in verdicts], indent=2) + "\n")
    else:
        show(verification.verdict_table(verdicts))
        show(f"wrote {len(verdicts)} pictures to {folder}")
    if any(verdict.failed for verdict in verdicts):
        raise typer.Exit(1)


@app.command()
def warmup(quiet: Quiet = False) -> None:
    """Compile every kernel once, so that later runs start at once."""
    from tropel.progress import counting
    from tropel.warmup import PARTS, warm_up

    with counting("warming up", len(PARTS), quiet=quiet) as told:
        warm_up(told)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Show the version and stop.")] = False) -> None:
    if version:
        from tropel import __version__

        sys.stdout.write(f"tropel {__version__}\n")
        raise typer.Exit


def _warm_up_if_cold(quiet: bool) -> None:
    from tropel.progress import counting
    from tropel.warmup import BASICS, is_warm, warm_up

    if is_warm():
        return
    if not quiet:
        Console(stderr=True).print("First run: compiling the kernels once, which takes about a minute.")
    with counting("compiling", len(BASICS), quiet=quiet) as told:
        warm_up(told, BASICS)


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
    png: bool = True,
    gif: bool,
    with_report: bool,
) -> None:
    from tropel.budget import Budget
    from tropel.scenario.execute import execute

    if steps_per_second is not None and events is not None:
        raise TropelError("give either --steps-per-second or --events: what a recorded run left out is in its events")

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
        )
    except KeyboardInterrupt:
        kept = f"what was simulated is in {folder}; go on with  --resume {folder / 'checkpoint.npz'}"
        raise _InterruptedError(kept if (folder / "checkpoint.npz").exists() else "nothing was simulated yet") from None
    _show_summary(summary, outputs)
    for path in _draw(outputs.trajectory, outputs.picture, outputs.animation, png=png, gif=gif, quiet=quiet):
        show(f"wrote {path}")
    if png:
        from tropel.scenario.plan import draw_scenario_fields

        for path in draw_scenario_fields(scenario, folder):
            show(f"wrote {path}")
    if with_report:
        write_report(outputs.trajectory, pictures=png, with_table=False, quiet=quiet)
    elif summary.evacuated:
        show(f"who left when and where, density and flow:  tropel report {folder}")


def _show_summary(summary: Summary, outputs: Outputs) -> None:
    show(summary.table())
    for path in (outputs.trajectory, outputs.summary):
        show(f"wrote {path}")


def _draw(trajectory: Path, picture: Path, animation: Path, *, png: bool, gif: bool, quiet: bool) -> list[Path]:
    from tropel.pictures import animate_run, draw_run
    from tropel.progress import counting
    from tropel.recording import read_trajectory

    drawn = []
    with read_trajectory(trajectory) as recorded:
        if png:
            drawn.append(draw_run(recorded, picture))
        if gif:
            with counting("drawing", 1, quiet=quiet) as told:
                drawn.append(
                    animate_run(recorded, animation, progress=lambda done, total: told(done, animation.name, total))
                )
    return drawn


if __name__ == "__main__":
    main()
