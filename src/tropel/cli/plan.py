"""`tropel plan`: from a map to a picture of the paths to a goal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tropel.cli.options import NoCache, Quiet, naming, picture_file, show
from tropel.errors import TropelError


def plan(
    source: Annotated[
        str,
        typer.Argument(
            metavar="MAP", help="A .map (Moving AI), a floor plan (.png), a .wkt, .geojson or scenario file, or a name."
        ),
    ],
    goal: Annotated[str, typer.Option(help="Goal as x,y in metres; the nearest exit by default.")] = "",
    out: Annotated[Path, typer.Option("--out", "-o", help="PNG file, or folder, for the picture.")] = Path("field.png"),
    planner: Annotated[
        str, typer.Option(help="flow_field or harmonic; or a path: roadmap, adaptive_roadmap or rooms.")
    ] = "flow_field",
    start: Annotated[str, typer.Option(help="Start of a path as x,y in metres; somewhere by default.")] = "",
    cell: Annotated[float | None, typer.Option(help="Cell size in metres; 0.2, or more on large maps.")] = None,
    clearance: Annotated[float, typer.Option(help="Distance kept from walls in metres.")] = 0.2,
    scale: Annotated[float | None, typer.Option(help="Metres per cell of a .map or per pixel of a .png.")] = None,
    no_cache: NoCache = False,
    quiet: Quiet = False,
) -> None:
    """Plan the paths to a goal from everywhere on a map, or one path over a roadmap, and draw them."""
    from tropel.foundation.long_work import listening
    from tropel.run.progress import counting
    from tropel.scenario import plan as planning
    from tropel.scenario import route as routes

    place = planning.parse_place(goal) if goal else None
    begin = planning.parse_place(start) if start else None
    if begin is not None and planner not in routes.ROUTES:
        raise TropelError(f"a field leads from everywhere; leave --start out, or use --planner {routes.ROUTES[0]}")
    picture = picture_file(out, "field")
    with counting("planning", 3, quiet=quiet) as told:
        told(0, f"reading {source}")
        world, title = planning.read_world(source, scale=scale)
        if planner in routes.ROUTES:
            told(1, "planning the path")
            with naming(source):
                found = routes.make_route(
                    world, planner=planner, start=begin, goal=place, clearance=clearance, title=title
                )
            told(2, f"drawing {picture.name}")
            routes.draw_route(found, picture)
            told(3, "")
            show(found.table())
            show(f"wrote {picture}")
            return
        told(1, f"solving the {planner.replace('_', ' ')}")
        with naming(source), listening(lambda what, done, total: told(1, f"{what}: {done / total:.0%}")):
            planned = planning.make_plan(
                world, planner=planner, goal=place, cell=cell, clearance=clearance, title=title
            )
        told(2, f"drawing {picture.name}")
        planning.draw_plan(planned, picture)
        told(3, "")
    show(planned.table())
    show(f"wrote {picture}")
