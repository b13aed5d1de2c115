"""RiMEA test 4: how speed falls with density, compared with the curve of Weidmann (1993).

A long corridor is filled evenly. Speed and density are measured in its middle, before either the free space in front of
the crowd or its end gets there. People start on a perturbed lattice, because random sequential placement does not get
beyond four per square metre. At high densities the order of the lattice lasts, and with it some speed.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group
from tropel.pictures import style
from tropel.pictures.style import save_figure
from tropel.simulation import Simulation
from tropel.verification.verdict import Verdict, add_legend, verdict_figure
from tropel.verification.walkers import Gates, Model
from tropel.world import World

FREE_SPEED = 1.34  #: [m/s]
DENSITIES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)  #: as filled [1/m²]
#: Largest deviation from the curve [m/s]: a choice made here, since published diagrams differ a good deal.
SCATTER = 0.3
_TITLE = "RiMEA test 4: speed over density in a corridor"
_LENGTH, _WIDTH = 60.0, 4.0
_SECTION = (28.0, 32.0)
_SETTLE, _MEASURE = 5.0, 10.0
_RADIUS = 0.2
_DT = 0.05


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Means over the measuring time."""

    filled: float  #: density at the start [1/m²]
    density: float  #: in the section [1/m²]
    speed: float  #: along the corridor [m/s]


def weidmann(density: NDArray[np.float64] | float) -> Any:
    """Weidmann's mean speed [m/s] at a density [1/m²]; zero from 5.4 on."""
    speed = FREE_SPEED * (1.0 - np.exp(-1.913 * (1.0 / np.asarray(density) - 1.0 / 5.4)))
    return np.maximum(speed, 0.0)


def measure(model: Model, density: float, *, seconds: float = _MEASURE, seed: int = 0) -> Measured:
    """Fill the corridor with this many people per square metre, and let them walk."""
    world = World(bounds=(-5.0, 0.0, 120.0, _WIDTH), walls=[[(-5, 0), (120, 0)], [(-5, _WIDTH), (120, _WIDTH)]])
    people = Group("people", positions=_filled(density, seed), radius=_RADIUS, desired_speed=FREE_SPEED, goal="none")
    sim = Simulation(world, people, planning=Gates(onward=(1.0, 0.0)), local=model(), dt=_DT, seed=seed, threads=1)
    counts, speeds = [], []
    while sim.time < _SETTLE + seconds - 1e-9:
        sim.guarded_step()
        x = sim.agents.position[:, 0]
        inside = (x >= _SECTION[0]) & (x < _SECTION[1])
        if sim.time > _SETTLE:
            counts.append(inside.sum())
            speeds.append(sim.agents.velocity[inside, 0].sum())
    area = (_SECTION[1] - _SECTION[0]) * _WIDTH
    # Every person counts as often as seen: this is the mean over people, not over times.
    speed = float(sum(speeds) / sum(counts)) if sum(counts) else math.nan
    return Measured(filled=density, density=float(np.mean(counts)) / area, speed=speed)


def check(
    model: Model, *, model_name: str, picture: Path | None = None, densities: Sequence[float] = DENSITIES
) -> Verdict:
    """Check that speed falls with density and stays near Weidmann's curve."""
    points = [measure(model, density) for density in densities]
    apart = [p.speed - float(weidmann(p.density)) for p in points]
    worst = max(range(len(points)), key=lambda k: abs(apart[k]) if math.isfinite(apart[k]) else math.inf)
    near = [math.isfinite(a) and abs(a) <= SCATTER for a in apart]
    speeds = [p.speed for p in points]
    falls = all(later <= earlier + 0.05 for earlier, later in itertools.pairwise(speeds))
    passed = all(near) and falls
    said = (
        f"{sum(near)} of {len(near)} densities within {SCATTER} m/s of the curve; "
        f"largest deviation {apart[worst]:+.2f} m/s at {points[worst].density:.1f} per m²"
        + ("" if falls else "; speed does not fall with density")
    )
    if picture is not None:
        _draw(picture, points, model_name=model_name, said=said, passed=passed)
    return Verdict(
        name="rimea_4",
        title="speed over density",
        model=model_name,
        passed=passed,
        binding=False,
        expected=f"falls with density, within {SCATTER} m/s of Weidmann's curve",
        measured={
            "density_per_m2": [round(p.density, 3) for p in points],
            "speed_m_per_s": [round(p.speed, 3) for p in points],
            "weidmann_m_per_s": [round(float(weidmann(p.density)), 3) for p in points],
        },
        said=said,
        picture=picture,
    )


def _filled(density: float, seed: int) -> NDArray[np.float64]:
    """A triangular lattice over the corridor, each position moved at random without bodies touching."""
    across = _WIDTH - 2.0 * _RADIUS
    spacing = math.sqrt(2.0 / (math.sqrt(3.0) * density))
    rows = max(round(_WIDTH / (spacing * math.sqrt(0.75))), 1)
    per_row = round(density * _LENGTH * _WIDTH / rows)
    between = across / (rows - 1) if rows > 1 else across
    step = _LENGTH / per_row
    k, row = np.meshgrid(np.arange(per_row), np.arange(rows))
    x = (k + 0.25 + 0.5 * (row % 2)) * step
    y = _RADIUS + row * between if rows > 1 else np.full(row.shape, _WIDTH / 2)
    places = np.column_stack([x.ravel(), y.ravel()])
    nearest = min(step, math.hypot(step / 2, between))
    draws = np.random.default_rng(seed)
    angle = draws.uniform(0.0, 2.0 * math.pi, len(places))
    away = 0.49 * max(nearest - 2.0 * _RADIUS, 0.0) * np.sqrt(draws.uniform(0.0, 1.0, len(places)))
    places += (away * np.vstack([np.cos(angle), np.sin(angle)])).T
    places[:, 1] = np.clip(places[:, 1], _RADIUS + 1e-3, _WIDTH - _RADIUS - 1e-3)
    return places


def _draw(path: Path, points: list[Measured], *, model_name: str, said: str, passed: bool) -> None:
    figure, axes = verdict_figure(
        title=_TITLE, model=model_name, said=said, good=passed, x="density [1/m²]", y="speed [m/s]"
    )
    density = np.linspace(0.1, 6.0, 200)
    curve = weidmann(density)
    axes.fill_between(
        density,
        np.maximum(curve - SCATTER, 0.0),
        curve + SCATTER,
        color=style.mixed(style.EXIT, style.PAPER, 0.18),
        linewidth=0,
        label=f"± {SCATTER} m/s",
    )
    axes.plot(density, curve, color=style.EXIT, linewidth=2.0, label="Weidmann 1993")
    axes.plot(
        [p.density for p in points],
        [p.speed for p in points],
        color=style.THERE,
        linewidth=1.2,
        marker="o",
        markersize=7,
        label=model_name,
    )
    axes.set_xlim(0.0, 6.0)
    axes.set_ylim(0.0, 1.75)
    add_legend(axes)
    save_figure(figure, path)
