"""Experiments of RIDERS (Brogan and Hodgins 2002) with full physics: curves, control interval and size of the map."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np

from tropel.figures.curves import Curve, CurvesPanel, draw_curves
from tropel.figures.measurements import Told
from tropel.figures.mobility import draw_fan, draw_slalom, new_page
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.riders.bicyclist.character import Alien, Bicyclist, Human
from tropel.riders.character import map_of
from tropel.riders.maps import MobilityMap
from tropel.riders.tracks import LOOK_AHEAD, Line, Ridden, corner_errors, ride_lines, seven_curves
from tropel.riders.tuning import PUBLISHED

_INTERVALS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
_SIZES = (4, 8, 16, 32, 64, 100)


def draw_fig2(path: Path, told: Told) -> list[Path]:
    told("drawing", 0, 1)
    return [draw_slalom(map_of(who), _named(path, who), period=who.control.slalom_period) for who in (Human(), Alien())]


def draw_fig3(path: Path, told: Told) -> list[Path]:
    told("drawing", 0, 1)
    return [draw_fan(map_of(who), _named(path, who)) for who in (Human(), Alien())]


def _named(path: Path, who: Bicyclist) -> Path:
    return path.with_stem(f"{path.stem}_{who.name}")


def ride_curves(who: Bicyclist, controller: str) -> tuple[Ridden, list[Line], np.ndarray]:
    """The seven curves with the paper's weights."""
    found = map_of(who)
    lines, turns = seven_curves(found.speed)
    t_max, ratio = PUBLISHED["path"][who.name]
    return ride_lines(who, found, lines, controller=controller, t_max=t_max, ratio=ratio), lines, turns


def draw_fig5(path: Path, told: Told) -> list[Path]:
    """The seven curves and how the human rides them."""
    told("riding with the map", 0, 2)
    with_map, lines, turns = ride_curves(Human(), "map")
    told("riding without", 1, 2)
    without, _, _ = ride_curves(Human(), "simple")
    figure, axes = new_page(
        "Seven curves, ridden by the human bicyclist",
        f"84 m of arc that turn by {turns[0]:.2f} to {turns[-1]:.2f} rad; blue with the map, orange without",
    )
    for line, one, other in zip(lines, with_map.place, without.place, strict=True):
        axes.plot(*line.points.T, color=style.RULE, linewidth=4)
        axes.plot(*other.T, color=style.GROUPS[1], linewidth=1.2)
        axes.plot(*one.T, color=style.GROUPS[0], linewidth=1.2)
    axes.set_aspect("equal", adjustable="datalim")
    style.label_axes(axes, x="x [m]", y="y [m]")
    return [save_figure(figure, picture_path(path, ".png"))]


def draw_fig6(path: Path, told: Told) -> list[Path]:
    return _draw_errors(Human(), path, told)


def draw_fig7(path: Path, told: Told) -> list[Path]:
    return _draw_errors(Alien(), path, told)


def _draw_errors(who: Bicyclist, path: Path, told: Told) -> list[Path]:
    curves = []
    for number, (controller, name) in enumerate((("map", "with the mobility map"), ("simple", "simple"))):
        told(name, number, 2)
        ridden, _, turns = ride_curves(who, controller)
        curves.append(Curve(name=name, x=turns, y=corner_errors(ridden)))
    t_max, ratio = PUBLISHED["path"][who.name]
    panel = CurvesPanel(x="turn of the corner [rad]", y="mean distance from the path [m]", curves=curves)
    about = f"7 s per corner, t_max {t_max:g} s, ratio {ratio:g}; the simple controller aims {LOOK_AHEAD:g} s ahead"
    return [draw_curves([panel], path, title=f"Following seven curves: {who.name} bicyclist", about=about)]


def draw_interval(path: Path, told: Told) -> list[Path]:
    """Error by control interval, for both bicyclists."""
    curves = []
    for number, who in enumerate((Human(), Alien())):
        found = map_of(who)
        lines, _ = seven_curves(found.speed)
        t_max, ratio = PUBLISHED["path"][who.name]
        errors = []
        for count, interval in enumerate(_INTERVALS):
            told(f"{who.name}, every {interval:g} s", number * len(_INTERVALS) + count, 2 * len(_INTERVALS))
            ridden = ride_lines(who, found, lines[1::2], interval=interval, t_max=t_max, ratio=ratio)
            errors.append(float(corner_errors(ridden, interval=interval).mean()))
        curves.append(Curve(name=who.name, x=np.array(_INTERVALS), y=np.array(errors)))
    panel = CurvesPanel(x="time between decisions [s]", y="mean distance from the path [m]", curves=curves)
    about = "three of the seven curves, full physics, the paper's weights"
    return [draw_curves([panel], path, title="How often to decide", about=about)]


def thinned(found: MobilityMap, states: int) -> MobilityMap:
    """A map with fewer initial states, evenly spaced along the slalom."""
    rows = np.round(np.arange(states) * len(found.states) / states).astype(np.int64)
    names = ("states", "position", "heading", "lean", "steer", "lasts", "full_states")
    assert found.full_states is not None
    return dataclasses.replace(found, **{name: getattr(found, name)[rows] for name in names})


def draw_map_size(path: Path, told: Told) -> list[Path]:
    """Error by number of initial states in the map."""
    curves = []
    for number, who in enumerate((Human(), Alien())):
        found = map_of(who)
        lines, _ = seven_curves(found.speed)
        t_max, ratio = PUBLISHED["path"][who.name]
        errors = []
        for count, size in enumerate(_SIZES):
            told(f"{who.name}, {size} states", number * len(_SIZES) + count, 2 * len(_SIZES))
            ridden = ride_lines(who, thinned(found, size), lines[1::2], t_max=t_max, ratio=ratio)
            errors.append(float(corner_errors(ridden).mean()))
        curves.append(Curve(name=who.name, x=np.array(_SIZES, dtype=np.float64), y=np.array(errors)))
    panel = CurvesPanel(x="initial states in the map", y="mean distance from the path [m]", curves=curves)
    about = "three of the seven curves, full physics, the paper's weights"
    return [draw_curves([panel], path, title="How large a map", about=about)]
