"""Fundamental diagrams: how speed falls with density in a corridor, and with distance in single file."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.verification import published
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import add_legend, draw_band, draw_measured
from tropel.verification.track import follow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# A corridor -------------------------------------------------------------------------------------------------------

DENSITIES = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)  #: as filled [1/m²]
#: Measured points may be this much outside the range of the published curves [m/s].
SCATTER = 0.15
#: Chance may raise a speed by this much from one density to the next [m/s].
_RISE = 0.05
_LENGTH, _WIDTH, _RADIUS = 60.0, 4.0, 0.2
_SECTION = (28.0, 32.0)
_SETTLE, _SECONDS = 5.0, 10.0


def published_range(density: Any) -> tuple[Any, Any]:
    """The lowest and highest speed of the published curves at a density, with the allowance for scatter."""
    curves = np.array([curve(density) for curve in _CURVES.values()])
    return np.maximum(curves.min(axis=0) - SCATTER, 0.0), curves.max(axis=0) + SCATTER


_CURVES = {
    "Weidmann": published.weidmann,
    "SFPE": published.sfpe,
    "P. & M.": published.predtechenskii_milinskii,
}


def filled(density: float, seed: int) -> NDArray[np.float64]:
    """Places in the corridor: a triangular lattice, each position moved at random without bodies touching.

    Random placement does not get beyond four per square metre. At high densities the order of the lattice lasts, and
    with it some speed.
    """
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


def measure_point(candidate: Candidate, density: float, seed: int, *, seconds: float = _SECONDS) -> tuple[float, float]:
    """Mean density [1/m²] and speed [m/s] in the middle of the corridor, filled with so many people."""
    changes = {"groups.0.count": None, "groups.0.region": None, "groups.0.positions": filled(density, seed).tolist()}
    sim = candidate.build("rimea_4", seed=seed, changes=changes)
    sim.run(until=_SETTLE)
    track = follow(sim, limit=_SETTLE + seconds)
    x = track.place[:, :, 0]
    inside = (x[:-1] >= _SECTION[0]) & (x[:-1] < _SECTION[1]) & np.isfinite(x[1:])
    area = (_SECTION[1] - _SECTION[0]) * _WIDTH
    # Every person counts as often as seen: this is the mean over people, not over times.
    speed = float(np.diff(x, axis=0)[inside].sum() / sim.dt / inside.sum()) if inside.any() else math.nan
    return float(inside.sum(axis=1).mean()) / area, speed


def measure_corridor(candidate: Candidate, seed: int, *, densities: Sequence[float] = DENSITIES) -> Outcome:
    """Density and speed for several fillings of the corridor."""
    points = [measure_point(candidate, density, seed) for density in densities]
    low, high = (np.array(side) for side in zip(*(published_range(density) for density, _ in points), strict=True))
    speeds = np.array([speed for _, speed in points])
    good = (speeds >= low) & (speeds <= high)
    falls = all(later <= earlier + _RISE for earlier, later in itertools.pairwise(speeds))
    apart = np.where(good, 0.0, np.where(speeds < low, speeds - low, speeds - high))
    worst = int(np.nanargmax(np.abs(apart)))
    said = f"{good.sum()} of {len(points)} densities within the range"
    if not good.all():
        said += f"; {apart[worst]:+.2f} m/s outside at {points[worst][0]:.1f} per m²"
    return Outcome(
        passed=bool(good.all()) and falls,
        said=said + ("" if falls else "; speed does not fall with density"),
        measured={
            "density_per_m2": [round(density, 3) for density, _ in points],
            "speed_m_per_s": [round(speed, 3) for _, speed in points],
        },
    )


def _draw_corridor(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    density = np.linspace(0.05, 6.0, 300)
    draw_band(axes, density, *published_range(density), f"range ± {SCATTER:g} m/s")
    # P. & M.: Predtechenskii and Milinskii.
    for (name, curve), dashes in zip(_CURVES.items(), ("-", "--", ":"), strict=True):
        axes.plot(density, curve(density), color=style.EXIT, linewidth=1.6, linestyle=dashes, label=name)
    draw_measured(axes, outcomes, "density_per_m2", "speed_m_per_s")
    axes.set_xlim(0.0, 6.0)
    axes.set_ylim(0.0, 1.75)
    style.label_axes(axes, x="density [1/m²]", y="speed [m/s]")
    add_legend(axes, columns=5)


# Single file ------------------------------------------------------------------------------------------------------

PEOPLE = (8, 12, 16, 20, 25, 30)
_ROUND = 17.3  #: length of the oval, along the middle of the corridor [m]
_STRAIGHT, _BEND = 4.0, 1.48  #: of the oval [m]
#: Measured speeds may be this much outside the range of the published relations [m/s].
FILE_SCATTER = 0.12
_FILE_SETTLE, _FILE_SECONDS = 15.0, 20.0


def around_oval(count: int) -> NDArray[np.float64]:
    """Places of so many people at equal distances along the oval."""
    along = np.arange(count) * _ROUND / count
    bend = math.pi * _BEND
    places = []
    for s in along:
        if s < _STRAIGHT:
            places.append((s, -_BEND))
        elif s < _STRAIGHT + bend:
            angle = (s - _STRAIGHT) / _BEND
            places.append((_STRAIGHT + _BEND * math.sin(angle), -_BEND * math.cos(angle)))
        elif s < 2.0 * _STRAIGHT + bend:
            places.append((2.0 * _STRAIGHT + bend - s, _BEND))
        else:
            angle = (s - 2.0 * _STRAIGHT - bend) / _BEND
            places.append((-_BEND * math.sin(angle), _BEND * math.cos(angle)))
    return np.array(places)


def file_range(distance: Any) -> tuple[Any, Any]:
    """The lowest and highest speed at a distance to the next person, with the allowance for scatter."""
    low, high = published.single_file_germany(distance), published.single_file_india(distance)
    return np.maximum(low - FILE_SCATTER, 0.0), high + FILE_SCATTER


def file_speed(candidate: Candidate, count: int, seed: int) -> float:
    """Mean speed [m/s] of so many people in the straight parts of the oval."""
    changes = {"groups.0.count": None, "groups.0.positions": around_oval(count).round(6).tolist()}
    sim = candidate.build("rimea_16", seed=seed, changes=changes)
    sim.run(until=_FILE_SETTLE)
    track = follow(sim, limit=_FILE_SETTLE + _FILE_SECONDS)
    x, y = track.place[..., 0], track.place[..., 1]
    straight = (x[:-1] > 0.0) & (x[:-1] < _STRAIGHT)
    # Forwards is to the right below, to the left above.
    forwards = np.where(y[:-1] < 0.0, 1.0, -1.0) * np.diff(x, axis=0)
    return float(forwards[straight].sum() / sim.dt / straight.sum()) if straight.any() else math.nan


def measure_file(candidate: Candidate, seed: int, *, people: Sequence[int] = PEOPLE) -> Outcome:
    """Speed by distance for several numbers of people in the oval."""
    distance = np.array([_ROUND / count for count in people])
    speeds = np.array([file_speed(candidate, count, seed) for count in people])
    low, high = file_range(distance)
    good = (speeds >= low) & (speeds <= high)
    said = f"{good.sum()} of {len(good)} distances within the range"
    if not good.all():
        apart = np.where(speeds < low, speeds - low, np.maximum(speeds - high, 0.0))
        worst = int(np.argmax(np.abs(apart)))
        said += f"; {apart[worst]:+.2f} m/s outside at {distance[worst]:.2f} m"
    return Outcome(
        passed=bool(good.all()),
        said=said,
        measured={
            "people": list(people),
            "distance_m": [round(float(value), 3) for value in distance],
            "speed_m_per_s": [round(float(value), 3) for value in speeds],
        },
    )


def _draw_file(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    distance = np.linspace(0.2, 2.4, 300)
    draw_band(axes, distance, *file_range(distance), f"range ± {FILE_SCATTER:g} m/s")
    axes.plot(distance, published.single_file_germany(distance), color=style.EXIT, linewidth=1.6, label="Germany")
    axes.plot(distance, published.single_file_india(distance), color=style.EXIT, linewidth=1.6, linestyle="--",
              label="India")  # fmt: skip
    draw_measured(axes, outcomes, "distance_m", "speed_m_per_s")
    axes.set_xlim(0.2, 2.4)
    axes.set_ylim(0.0, 1.5)
    style.label_axes(axes, x="distance to the next person [m]", y="speed [m/s]")
    add_legend(axes)


CASES = (
    Case(
        name="rimea_4",
        expected=f"speed falls with density, within {SCATTER:g} m/s of the range of three published curves",
        criterion="A corridor is filled with 0.5 to 5 people per m², and speed and density are measured in its "
        "middle, before the free space in front of the crowd or its end gets there. Speed falls with density and "
        "stays within the range of the curves of Weidmann, the SFPE handbook and Predtechenskii & Milinskii, "
        f"widened by {SCATTER:g} m/s. The guideline has a corridor of 1000 m by 10 m; this one is 60 m by 4 m, to "
        "save time.",
        measure=measure_corridor,
        draw=_draw_corridor,
        seeds=2,
        long=True,
    ),
    Case(
        name="rimea_16",
        expected=f"within {FILE_SCATTER:g} m/s of the range between two published relations",
        criterion="8 to 30 people walk one behind the other around an oval of 17.3 m, as in the experiments of "
        "Seyfried et al. Their mean speed in the straight parts, by their mean distance, lies between d = 0.36 + "
        f"1.06 v (Germany) and d = 0.22 + 0.89 v (India), widened by {FILE_SCATTER:g} m/s. The guideline has the "
        "same experiments and the 10 and 90 % percentiles of their data, which are not free to print.",
        measure=measure_file,
        draw=_draw_file,
        seeds=2,
    ),
)
