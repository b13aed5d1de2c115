"""Ways to share out tasks, compared: how long firefighters walk, and when the last fire is out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.agents.stages.work import Work
from tropel.agents.tasks.task import Task
from tropel.contracts.sharing import Sharing
from tropel.deciding.sharing import AtRandom, Auction, Greedy, Optimal
from tropel.figures.measurements import Told
from tropel.local.seek import Seek
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.planning.direct import Direct
from tropel.simulation import Simulation
from tropel.world import Hazard, World

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: By the name that the figure shows.
WAYS: dict[str, type[Sharing]] = {"optimal": Optimal, "auction": Auction, "greedy": Greedy, "random": AtRandom}
_WIDTH, _HEIGHT = 40.0, 30.0  # [m]
_WORK = 10.0  # [s]
_LONGEST = 600.0  # [s]
_EDGE = 22  # pixels
_LAYOUTS = 12


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One run."""

    walked: float  #: by all, from being sent to being there [s]
    last: float  #: when the last fire was out [s]


def fight_fires(layout: int, way: type[Sharing], *, fires: int = 8, crew: int = 10, team: int = 2) -> Outcome:
    """Put out fires at random places with a crew that is anywhere at first; fewer than all fires take at once."""
    random = np.random.default_rng(layout)
    places = [tuple(place) for place in random.uniform((3.0, 3.0), (_WIDTH - 3.0, _HEIGHT - 3.0), (fires, 2)).tolist()]
    hazards = {f"fire {k}": Hazard(inner=0.5, outer=2.0, position=place) for k, place in enumerate(places)}
    world = World(bounds=(0.0, 0.0, _WIDTH, _HEIGHT), hazards=hazards)
    tasks = {name: Task(hazard=name, agents=team, work=_WORK, within=1.0) for name in hazards}
    group = Group("crew", count=crew, region=shapely.box(0.0, 0.0, _WIDTH, _HEIGHT), stages=[Work("any")])
    sim = Simulation(world, group, planning=Direct(), local=Seek(), habits=[], tasks=tasks, sharing=way(), dt=0.2,
                     seed=layout, threads=1)  # fmt: skip
    while len(world.hazards) and sim.time < _LONGEST:
        sim.step()
    parts = sim.task_parts
    end = np.where(np.isnan(parts["arrived"]), parts["ended"], parts["arrived"])
    return Outcome(walked=float(np.nansum(end - np.asarray(parts["assigned"]))), last=sim.time)


def draw_task_sharing(path: Path, told: Told, *, layouts: int = _LAYOUTS) -> list[Path]:
    """Mean walking time and time of the last fire by way of sharing, with 95 % intervals of the mean over layouts."""
    walked, last = (np.empty((len(WAYS), layouts)) for _ in range(2))
    for number, (name, way) in enumerate(WAYS.items()):
        for layout in range(layouts):
            told(f"{name}, layout {layout + 1}", number * layouts + layout, len(WAYS) * layouts)
            outcome = fight_fires(layout, way)
            walked[number, layout], last[number, layout] = outcome.walked, outcome.last
    figure = style.new_figure(940, 430)
    style.add_text(figure, _EDGE, 16, "Ways to share out tasks", fontsize=style.TITLE_SIZE, weight="bold")
    about = f"Ten firefighters, eight fires that take two each, {layouts} layouts; means with 95 % intervals"
    style.add_text(figure, _EDGE, 44, about, color=style.FAINT_INK)
    _bars(style.add_axes(figure, 70, 96, 370, 280), list(WAYS), walked, "walked by all together [s]")
    _bars(style.add_axes(figure, 530, 96, 370, 280), list(WAYS), last, "until the last fire is out [s]")
    told("done", 1, 1)
    return [save_figure(figure, picture_path(path, ".png"))]


def _bars(axes: Axes, names: Sequence[str], values: NDArray[np.float64], title: str) -> None:
    from scipy.stats import t

    runs = values.shape[1]
    error = values.std(axis=1, ddof=1) / np.sqrt(runs) * t.ppf(0.975, runs - 1) if runs > 1 else None
    colours = [style.GROUPS[k % len(style.GROUPS)] for k in range(len(names))]
    axes.bar(list(names), values.mean(axis=1), yerr=error, color=colours, width=0.6, capsize=4)
    axes.set_title(title, fontsize=style.TEXT_SIZE, loc="left", color=style.INK, family=style.FONT)
    style.open_panel(axes)
