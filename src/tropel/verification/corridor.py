"""RiMEA test 1: one person keeps their speed along a corridor of 40 m."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import shapely

from tropel.agents.groups import Group
from tropel.pictures import style
from tropel.pictures.style import save_figure
from tropel.simulation import Simulation
from tropel.verification.verdict import Verdict, add_legend, verdict_figure
from tropel.verification.walkers import Gates, Model
from tropel.world import World

LENGTH = 40.0  #: [m]
WIDTH = 2.0  #: [m]
SPEED = 1.33  #: [m/s]
EARLIEST, LATEST = 26.0, 34.0  #: [s]
_TITLE = "RiMEA test 1: 40 m along a corridor at 1.33 m/s"
_LIMIT = 60.0
_DT = 0.05


def walk(model: Model) -> tuple[list[float], list[float]]:
    """Times [s] and positions along the corridor [m] of the person, until they have walked it or time is up."""
    world = World(shapely.box(-1.0, 0.0, LENGTH + 3.0, WIDTH))
    person = Group("person", positions=[(0.0, WIDTH / 2)], desired_speed=SPEED, goal="none")
    sim = Simulation(world, person, planning=Gates(onward=(1.0, 0.0)), local=model(), dt=_DT, threads=1)
    times, places = [0.0], [0.0]
    while places[-1] < LENGTH and sim.time < _LIMIT:
        sim.guarded_step()
        times.append(sim.time)
        places.append(float(sim.agents.position[0, 0]))
    return times, places


def check(model: Model, *, model_name: str, picture: Path | None = None) -> Verdict:
    """Check that the person needs between 26 and 34 s."""
    times, places = walk(model)
    arrived = places[-1] >= LENGTH
    # Interpolated: the speed is constant within a step.
    needed = float(np.interp(LENGTH, places[-2:], times[-2:])) if arrived else None
    passed = needed is not None and EARLIEST <= needed <= LATEST
    said = f"{needed:.1f} s" if needed is not None else f"only {max(places):.1f} m after {times[-1]:.0f} s"
    if picture is not None:
        _draw(picture, times, places, model_name=model_name, said=said, passed=passed)
    return Verdict(
        name="rimea_1",
        title="40 m corridor",
        model=model_name,
        passed=passed,
        binding=True,
        expected=f"{EARLIEST:.0f} to {LATEST:.0f} s",
        measured={"time_s": needed, "walked_m": max(places)},
        said=said,
        picture=picture,
    )


def _draw(path: Path, times: list[float], places: list[float], *, model_name: str, said: str, passed: bool) -> None:
    figure, axes = verdict_figure(
        title=_TITLE,
        model=model_name,
        said=f"needed {said}" if passed else f"not within {EARLIEST:.0f} to {LATEST:.0f} s: {said}",
        good=passed,
        x="time [s]",
        y="distance along the corridor [m]",
    )
    axes.plot(
        [0.0, LENGTH / SPEED], [0.0, LENGTH], color=style.FAINT_INK, linewidth=1.2, linestyle="--", label="1.33 m/s"
    )
    axes.plot(
        [EARLIEST, LATEST], [LENGTH] * 2, color=style.EXIT, linewidth=6, solid_capstyle="butt", label="26 to 34 s"
    )
    axes.plot(times, places, color=style.THERE, linewidth=2.0, label=model_name)
    axes.set_xlim(0.0, max(times[-1], LATEST) * 1.05)
    axes.set_ylim(0.0, LENGTH * 1.08)
    add_legend(axes)
    save_figure(figure, path)
