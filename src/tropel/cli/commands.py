"""The command line: `tropel demo | run | list | validate | plot | report | measure | view | export | plan | sweep`, …

Each command is a few lines around the library. Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

from tropel.cli.list import list_scenarios
from tropel.cli.options import AllowImports, InterruptedRunError, NoCache, Out, Quiet, Until, show, warm_up_if_cold
from tropel.cli.plan import plan
from tropel.cli.plot import plot
from tropel.cli.report import measure, report
from tropel.cli.riders import riders
from tropel.cli.run import demo, run
from tropel.cli.validate import validate
from tropel.cli.verify import verify
from tropel.cli.view import export, view
from tropel.errors import TropelError

app = typer.Typer(
    name="tropel",
    help="Crowds, flocks and riders moving through complex, changing worlds.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point: a tropel error becomes one message and exit code 1, Ctrl-C exit code 130."""
    warnings.showwarning = _show_warning
    try:
        app()
    except InterruptedRunError as stop:
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


app.command()(demo)
app.command()(run)
app.command("list")(list_scenarios)


app.command()(validate)


@app.command()
def schema() -> None:
    """Print the JSON schema of scenario files, for editors that complete and check them."""
    from tropel.scenario.schema import ScenarioSpec

    sys.stdout.write(json.dumps(ScenarioSpec.model_json_schema(), indent=2) + "\n")


app.command()(plot)
app.command()(report)
app.command()(measure)
app.command()(view)
app.command()(export)
app.command()(plan)


@app.command()
def sweep(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML), or the name of a built-in scenario.")],
    seeds: Annotated[int, typer.Option(min=1, max=10**9, help="How many seeds.")] = 20,
    first: Annotated[int, typer.Option(help="The first seed.")] = 0,
    out: Out = None,
    until: Until = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    allow_imports: AllowImports = None,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Run many seeds on all cores; writes a table and a plot with confidence bands."""
    from tropel.pictures import draw_sweep, sweep_statistics
    from tropel.run.progress import counting, planning
    from tropel.scenario import execute as sweeps
    from tropel.scenario import named_scenario

    scenario = named_scenario(file, allow_imports=allow_imports or ())
    folder = out or Path("out") / f"{scenario.name}-sweep"
    with planning(quiet=quiet):
        scenario.build(threads=1)
    warm_up_if_cold(quiet)
    folder.mkdir(parents=True, exist_ok=True)
    chosen = range(first, first + seeds)
    try:
        with counting("seeds", seeds, quiet=quiet) as told:
            done = sweeps.sweep(scenario, chosen, table=folder / "sweep.csv", workers=workers, until=until, told=told)
    except KeyboardInterrupt:
        raise InterruptedRunError(f"the finished seeds are in {folder / 'sweep.csv'}") from None
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
    name: Annotated[str, typer.Argument(help="neighbours, …; without a name, list the names.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Quiet = False,
) -> None:
    """Measure tropel next to an alternative in the same run."""
    from tropel import bench as benchmarks
    from tropel.run.progress import counting

    if not name:
        show("benchmarks: " + ", ".join(benchmarks.names()))
        return
    with counting(name, 1, quiet=quiet) as told:
        result = benchmarks.run(name, progress=lambda what, done, total: told(done, what, total))
    if as_json:
        sys.stdout.write(json.dumps(result.json(), indent=2) + "\n")
    else:
        show(result.table())


app.command()(verify)
app.add_typer(riders)


@app.command()
def warmup(quiet: Quiet = False) -> None:
    """Compile all kernels once, so that later runs start at once."""
    from tropel.run.progress import counting
    from tropel.warmup import warm_up
    from tropel.warmup_scenes import PARTS

    with counting("warming up", len(PARTS), quiet=quiet) as told:
        warm_up(told)


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if version:
        from tropel import __version__

        sys.stdout.write(f"tropel {__version__}\n")
        raise typer.Exit


if __name__ == "__main__":
    main()
