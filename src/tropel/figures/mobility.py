"""Pictures of mobility maps: figures 2 and 3 of RIDERS (Brogan and Hodgins 2002)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure
from tropel.riders.maps import MobilityMap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

# All lengths in pixels.
_WIDTH, _HEIGHT, _LEFT, _TOP, _BELOW, _RIGHT, _EDGE = 780, 430, 80, 84, 66, 26, 22


def draw_fan(map_: MobilityMap, path: str | os.PathLike[str], *, state: int | None = None) -> Path:
    """The trajectories of all actions from one state, by default the one nearest to riding straight (figure 3)."""
    chosen = map_.nearest_state(np.zeros(len(map_.state_names))) if state is None else state
    said = ", ".join(f"{name} {value:.2f}" for name, value in zip(map_.state_names, map_.states[chosen], strict=True))
    figure, axes = new_page(
        f"What the {map_.character} can do in {map_.duration:g} s",
        f"turns of {_degrees(map_)} from {said}; dots every second; {_falls(map_)}",
    )
    _plot_fan(axes, map_, chosen, np.zeros(2), 0.0)
    axes.set_aspect("equal", adjustable="datalim")
    style.label_axes(axes, x="ahead [m]", y="to the left [m]")
    return save_figure(figure, picture_path(path, ".png"))


def draw_slalom(map_: MobilityMap, path: str | os.PathLike[str], *, period: float, fans: int = 10) -> Path:
    """Where trials begin: states along one period of the slalom, with the fans of some of them (figure 2)."""
    rate = map_.states[:, map_.state_names.index("yaw_rate")]
    step = period / len(rate)
    heading = np.concatenate(([0.0], np.cumsum(rate - rate.mean())[:-1])) * step
    # The slalom is ridden about a straight line; where heading is zero is not recorded, its mean is.
    heading -= heading.mean()
    moves = map_.speed * step * np.column_stack((np.cos(heading), np.sin(heading)))
    place = np.concatenate((np.zeros((1, 2)), np.cumsum(moves, axis=0)[:-1]))
    figure, axes = new_page(
        f"Trials of the {map_.character} begin along a slalom",
        f"{len(rate)} states in {period:g} s, {len(map_.actions)} turns from each; "
        f"the first {min(2.0, map_.duration):g} s of every {max(1, len(rate) // fans)}th",
    )
    last = 1 + round(min(2.0, map_.duration) / map_.interval)
    for state in range(0, len(rate), max(1, len(rate) // fans)):
        _plot_fan(axes, map_, state, place[state], float(heading[state]), last=last, faint=True)
    axes.plot(*place.T, color=style.INK, linewidth=1.8)
    axes.plot(*place.T, ".", color=style.INK, markersize=3)
    axes.set_aspect("equal", adjustable="datalim")
    style.label_axes(axes, x="x [m]", y="y [m]")
    return save_figure(figure, picture_path(path, ".png"))


def new_page(title: str, about: str) -> tuple[Figure, Axes]:
    figure = style.new_figure(_LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BELOW)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, about, color=style.FAINT_INK)
    axes = style.add_axes(figure, _LEFT, _TOP, _WIDTH, _HEIGHT)
    style.open_panel(axes)
    return figure, axes


def _plot_fan(
    axes: Axes,
    map_: MobilityMap,
    state: int,
    at: NDArray[np.float64],
    facing: float,
    *,
    last: int | None = None,
    faint: bool = False,
) -> None:
    cos, sin = np.cos(facing), np.sin(facing)
    seconds = round(1.0 / map_.interval)
    for action in range(len(map_.actions)):
        x, y = map_.position[state, action, :last].T
        line = np.column_stack((at[0] + cos * x - sin * y, at[1] + sin * x + cos * y))
        fell = map_.lasts[state, action] < map_.duration
        colour = style.CLOSED_DOOR if fell else style.GROUPS[0]
        axes.plot(*line.T, color=colour, linewidth=0.7 if faint else 1.6, alpha=0.6 if faint else 1.0)
        if not faint:
            axes.plot(*line[::seconds].T, "o", color=colour, markersize=3.5)
            axes.annotate(
                f"{map_.actions[action]:+.2f}", line[-1], xytext=(5, -3), textcoords="offset points",
                fontsize=style.SMALL_SIZE, color=style.FAINT_INK,
            )  # fmt: skip


def _degrees(map_: MobilityMap) -> str:
    return f"±{map_.actions[-1]:.2f} rad"


def _falls(map_: MobilityMap) -> str:
    fell = int((map_.lasts < map_.duration).sum())
    return f"{fell} of {map_.lasts.size} trials of the map end in a fall"
