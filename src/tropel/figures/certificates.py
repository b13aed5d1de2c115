"""Certificates of the kinetic environment over time, in a crowd that walks and then comes to rest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import shapely

from tropel.agents.groups import Group
from tropel.environment.kinetic.model import Kinetic
from tropel.environment.kinetic.report import MeshReport
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.simulation import Simulation
from tropel.world import World

#: The hall [m], people in it, when they stop and when it ends [s].
_HALL, _PEOPLE, _DT = (40.0, 20.0), 300, 0.05
STOP, END = 10.0, 16.0
#: People at rest get new certificates, which last, after they have stood for about a second.
SETTLED = STOP + 2.0
# All lengths in pixels.
_WIDTH, _HEIGHT, _LEFT, _TOP, _RIGHT, _BELOW = 980, 520, 84, 110, 24, 56


def certificates_of_a_crowd(*, seed: int = 1) -> tuple[np.ndarray, list[MeshReport]]:
    """The end of each step [s], and what the step took: people walk until `STOP`, then stand."""
    kinetic = Kinetic()
    world = World(shapely.box(0.0, 0.0, *_HALL), exits={"east": shapely.box(_HALL[0] - 1.0, 0.0, *_HALL)})
    people = Group("people", count=_PEOPLE, region=shapely.box(0.0, 0.0, 20.0, _HALL[1]), goal="east", sense_radius=3.0)
    sim = Simulation(world, people, environment=kinetic, seed=seed, dt=_DT)
    sim.at(STOP, lambda sim: sim.set_goal("none"))
    times, reports = [], []
    while sim.time < END:
        sim.step()
        times.append(sim.time)
        reports.append(kinetic.last)
    return np.array(times), reports


def draw_certificates(path: Path) -> list[Path]:
    """Draw how many certificates exist, were looked at and failed in each step, as a PNG."""
    times, reports = certificates_of_a_crowd()
    figure = style.new_figure(_WIDTH, _HEIGHT)
    style.add_text(figure, 24, 16, "Certificates of a crowd", fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, 24, 42, _said(times, reports), color=style.FAINT_INK)
    axes = style.add_axes(figure, _LEFT, _TOP, _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BELOW)
    style.open_panel(axes)
    for name, label, colour in (
        ("certificates", "exist", style.FAINT_INK),
        ("looked_at", "looked at", style.OPEN_DOOR),
        ("failed", "failed", style.CLOSED_DOOR),
    ):
        axes.plot(times, [getattr(report, name) for report in reports], color=colour, linewidth=1.2, label=label)
    axes.axvline(STOP, color=style.INK, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.annotate(
        "everybody stops",
        (STOP, 0.6),
        xycoords=("data", "axes fraction"),
        xytext=(6, 0),
        textcoords="offset points",
        va="top",
        fontsize=style.SMALL_SIZE,
        color=style.INK,
        family=style.FONT,
    )
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set(xlim=(0.0, END), ylim=(0.0, 2.0 * max(report.certificates for report in reports)))
    style.label_axes(axes, x="time [s]", y="certificates in a step")
    style.legend_above(axes)
    return [save_figure(figure, picture_path(path, ".png"))]


def _said(times: np.ndarray, reports: Sequence[MeshReport]) -> str:
    walking = [report for time, report in zip(times, reports, strict=True) if 1.0 < time <= STOP]
    resting = [report for time, report in zip(times, reports, strict=True) if time > SETTLED]
    shares = [
        100.0 * sum(report.looked_at for report in part) / sum(report.certificates for report in part)
        for part in (walking, resting)
    ]
    return (
        f"{_PEOPLE} people, steps of {_DT:g} s. Looked at in a step: {shares[0]:.0f} % while they walk, "
        f"{shares[1]:.2g} % once they have stood for {SETTLED - STOP:g} s."
    )
