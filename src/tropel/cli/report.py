"""`tropel report` and `tropel measure`: numbers, tables and pictures of a recorded evacuation or flock."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tropel.cli.options import Quiet, make_folder, naming, show
from tropel.errors import ParameterError, suggest

Cell = Annotated[float, typer.Option(help="Side of the cells of the density and flow maps in metres.")]


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a trajectory file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the report; next to the run by default.")
    ] = None,
    table_format: Annotated[str, typer.Option("--format", help="Format of the tables: csv or parquet.")] = "csv",
    cell: Cell = 1.0,
    cut_off: Annotated[
        float | None,
        typer.Option(metavar="METRES", help="How far the Voronoi cell of a person reaches; without end by default."),
    ] = None,
    pictures: Annotated[bool, typer.Option(help="Draw report.png and maps.png.")] = True,
    quiet: Quiet = False,
) -> None:
    """Report on an evacuation: who left when and where, times, exits, density and flow, as tables and pictures.

    Writes people, evacuated, exits, crowding, density, flow and Voronoi densities as tables, report.png and maps.png,
    who began which stage when (stages), what squads did (squads), what happened to tasks (tasks) and whose mood changed
    (moods), if there were any of these.
    """
    write_report(run, out=out, table_format=table_format, cell=cell, cut_off=cut_off, pictures=pictures, quiet=quiet)


def write_report(
    run: Path,
    *,
    out: Path | None = None,
    table_format: str = "csv",
    cell: float = 1.0,
    cut_off: float | None = None,
    pictures: bool = True,
    with_table: bool = True,
    quiet: bool = False,
) -> None:
    """The implementation of the command; `with_table` also shows the numbers in the terminal."""
    from tropel.analysis import evacuation_report, write_columns, write_tables
    from tropel.analysis.tables import FORMATS
    from tropel.pictures import draw_crowd_maps, draw_report
    from tropel.recording import read_trajectory
    from tropel.run.progress import counting
    from tropel.scenario.execute import trajectory_in

    if table_format not in FORMATS:
        raise ParameterError(f"unknown table format '{table_format}'; {suggest(table_format, FORMATS)}")
    trajectory = trajectory_in(run)
    with read_trajectory(trajectory) as recorded:
        with naming(trajectory), counting("reading", len(recorded.frames), quiet=quiet) as told:
            found = evacuation_report(
                recorded,
                cell=cell,
                cut_off=cut_off,
                progress=lambda done, total: told(done, trajectory.name, total),
            )
        folder = make_folder(out or _beside(trajectory))
        if with_table:
            show(found.table())
        if not found.exact:
            note = "the run did not record who left when; times and exits come from its frames, accurate to one frame"
            Console(stderr=True).print(f"[yellow]note:[/] {note}", soft_wrap=True, highlight=False)
        written = write_tables(found, folder, format=table_format)
        if len((stages := recorded.stages())["id"]):
            written += write_columns({"stages": stages}, folder, format=table_format)
        if len((squads := recorded.squads())["time"]):
            written += write_columns({"squads": squads}, folder, format=table_format)
        if len((tasks := recorded.tasks())["id"]):
            written += write_columns({"tasks": tasks}, folder, format=table_format)
        if len((moods := recorded.changes("mood"))["id"]):
            written += write_columns({"moods": moods}, folder, format=table_format)
        if pictures:
            written += [draw_report(found, folder / "report.png")]
            written += [draw_crowd_maps(found, recorded, folder / "maps.png")]
    for path in written:
        show(f"wrote {path}")


def _beside(trajectory: Path) -> Path:
    name = "report" if trajectory.stem == "trajectory" else f"{trajectory.stem}-report"
    return trajectory.parent / name


def measure(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a trajectory file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for table and picture; next to the run by default.")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            help="Largest distance between connected members of a sub-flock, in metres. Default: four times the mean "
            "nearest-neighbour distance in the first frame."
        ),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Measure every n-th frame.")] = 1,
    table_format: Annotated[str, typer.Option("--format", help="Format of the table: csv or parquet.")] = "csv",
    picture: Annotated[bool, typer.Option(help="Draw flock.png.")] = True,
    quiet: Quiet = False,
) -> None:
    """Measure a flock over time: polarisation, milling, nearest-neighbour distance, sub-flocks and the largest one.

    For all agents and for each group, as a table (flock.csv) and a picture (flock.png).
    """
    from tropel.analysis import flock_measures, write_columns
    from tropel.analysis.tables import FORMATS
    from tropel.pictures import draw_flock
    from tropel.recording import read_trajectory
    from tropel.run.progress import counting
    from tropel.scenario.execute import trajectory_in

    if table_format not in FORMATS:
        raise ParameterError(f"unknown table format '{table_format}'; {suggest(table_format, FORMATS)}")
    trajectory = trajectory_in(run)
    with (
        naming(trajectory),
        read_trajectory(trajectory) as recorded,
        counting("measuring", len(recorded.frames), quiet=quiet) as told,
    ):
        found = flock_measures(
            recorded, within=within, every=every, progress=lambda done, total: told(done, trajectory.name, total)
        )
    folder = make_folder(out or trajectory.parent)
    show(found.table())
    stem = "flock" if trajectory.stem == "trajectory" or out is not None else f"{trajectory.stem}-flock"
    written = write_columns({stem: found.columns()}, folder, format=table_format)
    if picture:
        written.append(draw_flock(found, folder / f"{stem}.png"))
    for path in written:
        show(f"wrote {path}")
