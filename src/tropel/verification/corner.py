"""RiMEA test 6: twenty people walk around a corner to the left; nobody goes through a wall, nobody gets lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.pictures import style
from tropel.pictures.style import save_figure
from tropel.simulation import Simulation
from tropel.verification.verdict import Verdict, verdict_figure
from tropel.verification.walkers import Gates, Model
from tropel.world import World

PEOPLE = 20
#: Two corridors of 2 m; the second continues beyond the finish, so that people who arrive do not block the others.
WALKABLE = shapely.union_all([shapely.box(0, 0, 12, 2), shapely.box(10, 0, 12, 26)])
FINISH = 12.0  #: people this far up the second corridor have arrived [m]
_TITLE = "RiMEA test 6: twenty people around a corner"
_CORNER = ((10.0, 2.0), (12.0, 0.0))
_LIMIT = 90.0
_DT = 0.05


@dataclass
class Walked:
    """What the twenty people did."""

    paths: list[NDArray[np.float64]] = field(default_factory=list)  #: positions of all people, step by step [m]
    crossings: int = 0  #: moves that leave the corridor
    nearest_wall: float = np.inf  #: smallest distance of a centre from a wall [m]
    arrived: int = 0
    last: float | None = None  #: time at which the last person arrived [s]


def crossings(before: NDArray[np.float64], after: NDArray[np.float64]) -> int:
    """How many straight moves are not entirely within the corridor."""
    moves = shapely.linestrings(np.stack([before, after], axis=1))
    return int((~shapely.covers(WALKABLE, moves)).sum())


def walk(model: Model, *, seed: int = 0) -> Walked:
    """Let people walk until all have arrived or time is up; every move is checked."""
    people = Group("people", count=PEOPLE, region=shapely.box(0, 0, 6, 2), goal="none")
    planner = Gates(_CORNER, onward=(0.0, 1.0))
    sim = Simulation(World(WALKABLE), people, planning=planner, local=model(), dt=_DT, seed=seed, threads=1)
    walls = WALKABLE.boundary
    shapely.prepare([WALKABLE, walls])
    walked = Walked(paths=[sim.agents.position.copy()])
    there = np.zeros(PEOPLE, dtype=bool)
    while not there.all() and sim.time < _LIMIT:
        sim.guarded_step()
        place = sim.agents.position.copy()
        walked.crossings += crossings(walked.paths[-1], place)
        walked.nearest_wall = min(walked.nearest_wall, float(shapely.distance(walls, shapely.points(place)).min()))
        walked.paths.append(place)
        there |= (place[:, 1] >= FINISH) & shapely.covers(WALKABLE, shapely.points(place))
    walked.arrived = int(there.sum())
    walked.last = sim.time if there.all() else None
    return walked


def check(model: Model, *, model_name: str, picture: Path | None = None) -> Verdict:
    """Check that all arrive without crossing a wall."""
    walked = walk(model)
    passed = walked.crossings == 0 and walked.arrived == PEOPLE
    when = f"the last at {walked.last:.1f} s" if walked.last is not None else f"after {_LIMIT:.0f} s"
    said = f"{walked.arrived} of {PEOPLE} arrived, {when}; {walked.crossings or 'no'} moves through a wall"
    if picture is not None:
        _draw(picture, walked, model_name=model_name, said=said, passed=passed)
    return Verdict(
        name="rimea_6",
        title="around a corner",
        model=model_name,
        passed=passed,
        binding=True,
        expected=f"all {PEOPLE} arrive, no move through a wall",
        measured={
            "arrived": walked.arrived,
            "moves_through_walls": walked.crossings,
            "last_arrival_s": walked.last,
            "nearest_to_a_wall_m": round(walked.nearest_wall, 4),
        },
        said=said,
        picture=picture,
    )


def _draw(path: Path, walked: Walked, *, model_name: str, said: str, passed: bool) -> None:
    figure, axes = verdict_figure(
        title=_TITLE, model=model_name, said=said, good=passed, x="x [m]", y="y [m]", height=900
    )
    axes.grid(visible=False)
    outline = np.array(WALKABLE.exterior.coords)
    axes.fill(outline[:, 0], outline[:, 1], facecolor=style.FLOOR, edgecolor=style.WALL, linewidth=1.8)
    axes.plot([10, 12], [FINISH, FINISH], color=style.EXIT, linewidth=1.6)
    axes.text(9.8, FINISH, "finish", ha="right", va="center", fontsize=style.TEXT_SIZE, family=style.FONT,
              color=style.label_colour(style.EXIT))  # fmt: skip
    paths = np.array(walked.paths)
    # Coloured by starting position, to show whether people keep their sides and order.
    colours = style.time_colours()(np.argsort(np.argsort(paths[0, :, 0])) / (PEOPLE - 1))
    for k in range(PEOPLE):
        axes.plot(paths[:, k, 0], paths[:, k, 1], color=colours[k], linewidth=1.0, alpha=0.8)
        axes.plot(*paths[0, k], marker="o", markersize=5, color=colours[k], mec=style.PAPER, mew=0.6)
    axes.set_aspect("equal", anchor="W")
    axes.set_xlim(-0.5, 12.5)
    axes.set_ylim(-0.5, FINISH + 1.0)
    save_figure(figure, path)
