"""`tropel report`: the numbers, tables and pictures of an evacuation, from a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tropel.cli_options import Quiet, make_folder, naming, show
from tropel.errors import ParameterError, suggest

Cell = Annotated[float, typer.Option(help="Side of the cells of the density and flow maps in metres.")]


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a trajectory file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the report; beside the run if left out.")
    ] = None,
    table_format: Annotated[str, typer.Option("--format", help="Of the tables: csv or parquet.")] = "csv",
    cell: Cell = 1.0,
    pictures: Annotated[bool, typer.Option(help="Draw report.png and maps.png.")] = True,
    quiet: Quiet = False,
) -> None:
    """Report on an evacuation: who left when and where, times, exits, density and flow, as tables and pictures.

    Writes people, evacuated, exits, crowding, density and flow as tables, and report.png and maps.png.
    """
    write_report(run, out=out, table_format=table_format, cell=cell, pictures=pictures, quiet=quiet)


def write_report(
    run: Path,
    *,
    out: Path | None = None,
    table_format: str = "csv",
    cell: float = 1.0,
    pictures: bool = True,
    with_table: bool = True,
    quiet: bool = False,
) -> None:
    """What the command does; `with_table` shows the numbers in the terminal too."""
    from tropel.analysis import evacuation_report, write_tables
    from tropel.analysis.tables import FORMATS
    from tropel.pictures import draw_crowd_maps, draw_report
    from tropel.progress import counting
    from tropel.recording import read_trajectory
    from tropel.scenario.execute import trajectory_in

    if table_format not in FORMATS:
        raise ParameterError(f"there is no table format '{table_format}'; {suggest(table_format, FORMATS)}")
    trajectory = trajectory_in(run)
    with read_trajectory(trajectory) as recorded:
        with naming(trajectory), counting("reading", len(recorded.frames), quiet=quiet) as told:
            found = evacuation_report(
                recorded, cell=cell, progress=lambda done, total: told(done, trajectory.name, total)
            )
        folder = make_folder(out or _beside(trajectory))
        if with_table:
            show(found.table())
        if not found.exact:
            note = "the run did not say who left when; times and exits are what its frames show, to one frame"
            Console(stderr=True).print(f"[yellow]note:[/] {note}", soft_wrap=True, highlight=False)
        written = write_tables(found, folder, format=table_format)
        if pictures:
            written += [draw_report(found, folder / "report.png")]
            written += [draw_crowd_maps(found, recorded, folder / "maps.png")]
    for path in written:
        show(f"wrote {path}")


def _beside(trajectory: Path) -> Path:
    name = "report" if trajectory.stem == "trajectory" else f"{trajectory.stem}-report"
    return trajectory.parent / name
