"""`tropel measure`: how parallel, how close and in how many pieces a recorded flock was, over time."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tropel.cli_options import Quiet, make_folder, naming, show
from tropel.errors import ParameterError, suggest


def measure(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run, or a trajectory file.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for table and picture; beside the run if left out.")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            help="How far members of a sub-flock are apart at most, from one to the next, in metres. Left out: four "
            "times the mean distance of nearest neighbours in the first frame."
        ),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Measure every so many frames.")] = 1,
    table_format: Annotated[str, typer.Option("--format", help="Of the table: csv or parquet.")] = "csv",
    picture: Annotated[bool, typer.Option(help="Draw flock.png.")] = True,
    quiet: Quiet = False,
) -> None:
    """Measure a flock over time: polarisation, milling, distance to the nearest other, sub-flocks and the largest one.

    For everybody and for each group, as a table (flock.csv) and a picture (flock.png).
    """
    from tropel.analysis import flock_measures, write_columns
    from tropel.analysis.tables import FORMATS
    from tropel.pictures import draw_flock
    from tropel.progress import counting
    from tropel.recording import read_trajectory
    from tropel.scenario.execute import trajectory_in

    if table_format not in FORMATS:
        raise ParameterError(f"there is no table format '{table_format}'; {suggest(table_format, FORMATS)}")
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
