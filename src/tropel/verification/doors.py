"""Flow through doors: people per second and metre of width, out of a crowd that pushes through.

In experiments the flow grows with the width, so the specific flow stays about the same, around 1.9 per metre and second
(Seyfried et al., "New insights into pedestrian flow through bottlenecks", Transportation Science 2009). The range that
models are compared with is a choice made here: from 1.3, the value that planning handbooks use, to 2.5, which some
experiments exceed. If a crowd gets stuck, its flow depends on how long the run waits, so check `stuck` first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.distributions import Normal
from tropel.agents.groups import Group
from tropel.pictures import style
from tropel.pictures.style import save_figure
from tropel.simulation import Simulation
from tropel.verification.verdict import Verdict, add_legend, verdict_figure
from tropel.verification.walkers import Gates, Model
from tropel.world import World

WIDTHS = (0.8, 1.2, 1.6, 2.0, 2.4)  #: [m]
USUAL = 1.9  #: [1/(m s)]
LEAST, MOST = 1.3, 2.5  #: the range compared with [1/(m s)]
PEOPLE = 150
SEEDS = (0, 1, 2)
#: The flow is measured between these shares of the crowd, without the start and the last few people.
_FROM, _TO = 0.2, 0.8
_TITLE = "Flow through doors"
_ROOM, _BEHIND = 8.0, 4.0
_DT = 0.05


def passing_times(
    model: Model, width: float, *, people: int = PEOPLE, seed: int = 0, patience: float = 60.0
) -> tuple[NDArray[np.float64], float]:
    """When people pass the line of the door [s], in order, and when the run ended.

    It ends when enough people have passed, or when none has for `patience` seconds: then the crowd is stuck.
    """
    low, high = (_ROOM - width) / 2, (_ROOM + width) / 2
    world = World(
        shapely.box(0, 0, _ROOM + _BEHIND, _ROOM),
        walls=[[(_ROOM, 0), (_ROOM, low)], [(_ROOM, high), (_ROOM, _ROOM)]],
        exits={"out": shapely.box(_ROOM + _BEHIND - 1.0, 0, _ROOM + _BEHIND, _ROOM)},
    )
    crowd = Group(
        "crowd",
        count=people,
        region=shapely.box(0.2, 0.2, _ROOM - 0.5, _ROOM - 0.2),
        desired_speed=Normal(1.34, 0.26, low=0.5),
    )
    planner = Gates(((_ROOM, high), (_ROOM, low)), onward=(1.0, 0.0))
    sim = Simulation(world, crowd, planning=planner, local=model(), dt=_DT, seed=seed, threads=1)
    passed = np.full(people, math.inf)
    wanted = math.ceil(_TO * people)
    latest = 0.0
    while np.isfinite(passed).sum() < wanted and sim.time < latest + patience:
        sim.guarded_step()
        beyond = sim.agents.id[sim.agents.position[:, 0] > _ROOM]
        fresh = beyond[np.isinf(passed[beyond])]
        passed[fresh] = sim.time
        latest = sim.time if len(fresh) else latest
    return np.sort(passed[np.isfinite(passed)]), sim.time


def flow(times: NDArray[np.float64], end: float, *, people: int = PEOPLE) -> float:
    """People per second in the middle part of a crowd; if it got stuck, counted until the end of the run."""
    first, last = math.ceil(_FROM * people), math.ceil(_TO * people)
    if len(times) < first:
        return 0.0
    until = times[last - 1] if len(times) >= last else end
    return (min(len(times), last) - first) / (until - times[first - 1])


def check(
    model: Model,
    *,
    model_name: str,
    picture: Path | None = None,
    widths: Sequence[float] = WIDTHS,
    seeds: Sequence[int] = SEEDS,
    people: int = PEOPLE,
    patience: float = 60.0,
) -> Verdict:
    """Check that the specific flow is in the range of experiments, at every width."""
    runs = [
        [passing_times(model, width, people=people, seed=seed, patience=patience) for seed in seeds] for width in widths
    ]
    flows = np.array([[flow(times, end, people=people) for times, end in row] for row in runs])
    stuck = sum(len(times) < math.ceil(_TO * people) for row in runs for times, _ in row)
    specific = flows / np.array(widths)[:, None]
    mean = specific.mean(axis=1)
    passed = bool(((mean >= LEAST) & (mean <= MOST)).all()) and not stuck
    said = f"{mean.min():.2f} to {mean.max():.2f} per metre and second"
    if stuck:
        said += f"; {stuck} of {flows.size} crowds got stuck"
    if picture is not None:
        _draw(picture, widths, specific, model_name=model_name, said=said, passed=passed)
    return Verdict(
        name="doors",
        title=f"doors of {min(widths)} to {max(widths)} m",
        model=model_name,
        passed=passed,
        binding=False,
        expected=f"{LEAST} to {MOST} per metre and second, about {USUAL}",
        measured={
            "width_m": list(widths),
            "flow_per_s": [round(float(f), 3) for f in flows.mean(axis=1)],
            "specific_flow_per_m_s": [round(float(f), 3) for f in mean],
            "stuck": stuck,
        },
        said=said,
        picture=picture,
    )


def _draw(
    path: Path, widths: Sequence[float], specific: NDArray[np.float64], *, model_name: str, said: str, passed: bool
) -> None:
    figure, axes = verdict_figure(
        title=_TITLE, model=model_name, said=said, good=passed, x="width of the door [m]", y="specific flow [1/(m s)]"
    )
    edge = (min(widths) - 0.2, max(widths) + 0.2)
    band = style.mixed(style.EXIT, style.PAPER, 0.18)
    axes.fill_between(edge, LEAST, MOST, color=band, linewidth=0, label=f"{LEAST} to {MOST}")
    axes.plot(edge, [USUAL] * 2, color=style.EXIT, linewidth=2.0, label=f"people: about {USUAL}")
    for k in range(specific.shape[1]):
        axes.plot(widths, specific[:, k], linestyle="none", marker="o", markersize=4, color=style.THERE, alpha=0.45)
    axes.plot(
        widths, specific.mean(axis=1), color=style.THERE, linewidth=1.4, marker="o", markersize=7, label=model_name
    )
    axes.set_xlim(edge)
    axes.set_ylim(0.0, max(3.2, float(specific.max()) * 1.1))
    add_legend(axes)
    save_figure(figure, path)
