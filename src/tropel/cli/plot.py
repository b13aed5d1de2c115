"""`tropel plot`: pictures of recorded runs, and named plots that need no run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tropel.cli.list import CROWD_PLOTS, GROUP_PLOTS, LAYER_PLOTS, PHASE_PLOTS, PLOTS, RIDER_PLOTS
from tropel.cli.options import Quiet, picture_file, show
from tropel.errors import TropelError, suggest


def plot(
    run: Annotated[
        Path,
        typer.Argument(
            metavar="RUN",
            help="The folder of a run, a trajectory file, a table of encounters, or the name of a plot (tropel list).",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder, or PNG file, for the pictures; next to the run by default."),
    ] = None,
    png: Annotated[bool, typer.Option(help="Draw the PNG.")] = True,
    gif: Annotated[bool, typer.Option(help="Draw the animated GIF.")] = True,
    at: Annotated[
        list[float] | None,
        typer.Option(metavar="SECONDS", help="Draw this moment as a PNG instead; can be given several times."),
    ] = None,
    colours: Annotated[
        str | None, typer.Option(help="What colours show in moments and GIFs: group, speed or heading.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Draw a recorded run as PNG and animated GIF, or a plot that needs no recorded run.

    A phase plot shows the turn rate of an agent (φ′) over its heading (φ):

    game_fig2: in front of a narrow, a critical and a wide gap.

    game_fig3: with a target behind a gap that is too narrow, without and with competition of behaviours.

    A table of encounters (.parquet or .csv) becomes contact time by distance and per person.

    layers_fig5: whom an agent can approach in a triangulation of the crowd, without and with walls.

    kinetic_certificates: what keeping the triangulation takes in each step, as a crowd walks and comes to rest.

    groups_table41, groups_table42 and groups_moving measure roadmaps among things that move.

    task_sharing: ways to share out tasks among agents, compared.

    riders_fig2, 3, 5, 6 and 7, riders_interval and riders_map_size are about bicyclists with full physics.

    crowd_fig3, 4, 7, 9, 10 and 11, crowd_gamma and crowd_density are about lattice crowds.
    """
    from tropel.pictures import draw_encounters
    from tropel.recording.encounter_table import holds_encounters, read_encounters
    from tropel.scenario.execute import trajectory_in

    if not run.exists() and not run.suffix:
        for path in _draw_by_name(str(run), out, quiet):
            show(f"wrote {path}")
        return
    if run.is_file() and holds_encounters(run):
        picture = picture_file(out or run.parent, run.stem)
        show(f"wrote {draw_encounters(read_encounters(run), picture)}")
        return
    trajectory = trajectory_in(run)
    stem = "run" if trajectory.stem == "trajectory" else trajectory.stem
    beside = run if run.is_dir() and run.suffix != ".parquet" else trajectory.parent
    picture = picture_file(out or beside, stem)
    if at:
        drawn = _draw_moments(trajectory, picture, at, colours)
    else:
        drawn = draw_recorded(
            trajectory, picture, picture.with_suffix(".gif"), png=png, gif=gif, colours=colours, quiet=quiet
        )
    for path in drawn:
        show(f"wrote {path}")


def _draw_moments(trajectory: Path, picture: Path, times: list[float], colours: str | None) -> list[Path]:
    """Draw a PNG of each moment, named after the picture and the time."""
    from tropel.pictures import draw_moment
    from tropel.recording import read_trajectory

    with read_trajectory(trajectory) as recorded:
        return [
            draw_moment(recorded, picture.with_stem(f"{picture.stem}-{time:g}s"), time=time, colours=colours)
            for time in times
        ]


def _draw_by_name(name: str, out: Path | None, quiet: bool) -> list[Path]:
    if name not in PLOTS:
        near = suggest(name, PLOTS)
        raise TropelError(
            f"{name} does not exist; give the folder of a run, a trajectory file or the name of a plot ({near})"
        )
    picture = picture_file(out or Path("out"), name)
    if name in CROWD_PLOTS or name in GROUP_PLOTS or name in RIDER_PLOTS:
        from tropel.figures.catalogue import draw_named_plot
        from tropel.run.progress import counting

        with counting(name, 1, quiet=quiet) as told:
            return draw_named_plot(name, picture, lambda what, done, total: told(done, what, total))
    if name in LAYER_PLOTS:
        from tropel.figures.catalogue import OF_LAYERS

        return OF_LAYERS[name](picture)
    from tropel.figures.phase_portraits import competition_portraits, draw_phase_plot, gap_portraits

    portraits = gap_portraits() if name == "game_fig2" else competition_portraits()
    return [draw_phase_plot(portraits, picture, title=PHASE_PLOTS[name])]


def draw_recorded(
    trajectory: Path,
    picture: Path,
    animation: Path,
    *,
    png: bool,
    gif: bool,
    colours: str | None = None,
    quiet: bool,
) -> list[Path]:
    """Draw the pictures of a recorded run; returns the written paths."""
    from tropel.pictures import animate_run, draw_run
    from tropel.recording import read_trajectory
    from tropel.run.progress import counting

    drawn = []
    with read_trajectory(trajectory) as recorded:
        if png:
            drawn.append(draw_run(recorded, picture))
        if gif:
            with counting("drawing", 1, quiet=quiet) as told:
                drawn.append(
                    animate_run(
                        recorded,
                        animation,
                        colours=colours,
                        progress=lambda done, total: told(done, animation.name, total),
                    )
                )
    return drawn
