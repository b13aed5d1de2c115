"""Phase plots: the turn rate of an agent over its heading, below a map of what lies ahead of it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.errors import ParameterError
from tropel.pictures import style
from tropel.pictures.style import picture_path, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from tropel.figures.phase_portraits import PhasePortrait

_PANEL, _MAP, _CURVE = 400, 250, 270
_LEFT, _TOP, _BETWEEN, _BELOW = 84, 82, 46, 124

_TURN = style.INK
_TARGET_PULL = style.TARGET
_PUSH = style.THERE


def draw_phase_plot(portraits: Sequence[PhasePortrait], path: str | os.PathLike[str], *, title: str = "") -> Path:
    """Draw portraits side by side as one PNG. Full dots are headings the agent settles at; open ones repel it."""
    if not portraits:
        raise ParameterError("nothing to draw: give at least one portrait")
    file = picture_path(path, ".png")
    width = _LEFT + len(portraits) * (_PANEL + _LEFT)
    figure = style.new_figure(width, _TOP + _MAP + _BETWEEN + _CURVE + _BELOW)
    style.add_text(figure, _LEFT, 18, title or "Turn rate of an agent over its heading", fontsize=style.TITLE_SIZE)
    highest = 1.15 * max(float(np.abs(np.array(_lines(p))).max()) for p in portraits)
    for k, portrait in enumerate(portraits):
        left = _LEFT + k * (_PANEL + _LEFT)
        _draw_scene(style.add_axes(figure, left, _TOP, _PANEL, _MAP), portrait)
        curve = style.add_axes(figure, left, _TOP + _MAP + _BETWEEN, _PANEL, _CURVE)
        _draw_curve(curve, portrait, highest, first=k == 0)
    _explain(figure, portraits)
    return save_figure(figure, file)


def _lines(portrait: PhasePortrait) -> list[Any]:
    curve = portrait.curve
    return [curve.turn_rate, curve.target, *portrait.parts]


def _draw_scene(axes: Axes, portrait: PhasePortrait) -> None:
    """From above: the agent on the left, with an arrow for each heading it may settle at."""
    from matplotlib.patches import Circle

    axes.set_facecolor(style.FLOOR)
    for x, y, radius in portrait.obstacles:
        axes.add_patch(Circle((x, y), radius, facecolor=style.OBSTACLE, edgecolor=style.OBSTACLE_EDGE, linewidth=0.8))
    axes.add_patch(Circle((0.0, 0.0), portrait.radius, facecolor=style.THERE, edgecolor=style.INK, linewidth=0.8))
    for angle in _ahead(portrait.curve.balances()):
        axes.annotate(
            "",
            xy=(1.5 * np.cos(angle), 1.5 * np.sin(angle)),
            xytext=(0.0, 0.0),
            arrowprops={"arrowstyle": "-|>", "color": style.INK, "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0},
        )
    reach = max(x + r for x, _, r in portrait.obstacles)
    if portrait.target is not None:
        axes.plot(*portrait.target, marker="X", markersize=9, color=style.TARGET, markeredgecolor=style.PAPER)
        reach = max(reach, portrait.target[0])
    # Equal scales along and across.
    along = reach + portrait.radius + 1.0
    middle, across = (reach - portrait.radius) / 2, along * _MAP / _PANEL
    if across < 5.0:
        along, across = 5.0 * _PANEL / _MAP, 5.0
    axes.set_xlim(middle - along / 2, middle + along / 2)
    axes.set_ylim(-across / 2, across / 2)
    axes.set_xticks([])
    axes.set_yticks([])
    style.label_axes(axes, title=portrait.title)


def _draw_curve(axes: Axes, portrait: PhasePortrait, highest: float, *, first: bool) -> None:
    curve = portrait.curve
    degrees = np.degrees(curve.heading)
    axes.axhline(0.0, color=style.FAINT_INK, linewidth=0.8)
    if portrait.target is not None:
        off = curve.weight_target < 0.01
        axes.fill_between(degrees, -highest, highest, where=off.tolist(), color=style.RULE, alpha=0.6, linewidth=0)
        axes.plot(degrees, curve.target, color=_TARGET_PULL, linewidth=1.0)
    for part in portrait.parts:
        axes.plot(degrees, part, color=_PUSH, linewidth=1.0)
    axes.plot(degrees, curve.turn_rate, color=_TURN, linewidth=2.0)
    for stable, fill in ((True, style.INK), (False, style.PAPER)):
        at = np.degrees(_ahead(curve.balances(stable=stable)))
        axes.plot(
            at, np.zeros_like(at), "o", markersize=6.5, markerfacecolor=fill, markeredgecolor=style.INK, linestyle=""
        )
    axes.set_xlim(-120, 120)
    axes.set_xticks(range(-120, 121, 30))
    axes.set_ylim(-highest, highest)
    style.open_panel(axes)
    style.label_axes(axes, x="heading φ [°]", y="turn rate φ′ [rad/s]" if first else "")


def _ahead(angles: Any) -> Any:
    """The angles within the range of the plot."""
    return angles[np.abs(np.degrees(angles)) < 120.0]


def _explain(figure: Figure, portraits: Sequence[PhasePortrait]) -> None:
    """A legend in which each text has the colour it explains."""
    has_target = any(p.target is not None for p in portraits)
    words = [("turn rate", _TURN), ("from each obstacle", _PUSH)]
    if has_target:
        words += [("from the target", _TARGET_PULL), ("grey: the target is switched off", style.FAINT_INK)]
    words.append(("● settles here   ○ repelled", style.INK))
    right = float(figure.get_size_inches()[0]) * style.DPI
    left, down = float(_LEFT), _TOP + _MAP + _BETWEEN + _CURVE + 62
    for text, colour in words:
        wide = 7.8 * len(text)
        if left + wide > right:
            left, down = float(_LEFT), down + 24
        style.add_text(figure, left, down, text, color=colour)
        left += wide + 26
