"""The figure that the pictures of all tests share: a title, the verdict, and one panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tropel.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# All lengths in pixels.
_WIDTH = 900
_HEIGHT = 560
_EDGE = 22
_LEFT = 84
_TOP = 128
_BOTTOM = 62


def verdict_figure(
    *, title: str, model: str, said: str, good: bool, x: str, y: str, height: int = _HEIGHT
) -> tuple[Figure, Axes]:
    """A figure with its header written, and the panel to draw into."""
    figure = style.new_figure(_WIDTH, height)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, f"steering model: {model}", color=style.FAINT_INK)
    style.add_text(figure, _EDGE, 64, said, color=style.label_colour(style.EXIT if good else style.CLOSED_DOOR))
    axes = style.add_axes(figure, _LEFT, _TOP, _WIDTH - _LEFT - _EDGE, height - _TOP - _BOTTOM)
    style.open_panel(axes)
    style.label_axes(axes, x=x, y=y)
    return figure, axes


def add_legend(axes: Axes, **properties: Any) -> None:
    """A legend above the panel."""
    style.legend_above(axes, borderpad=0.2, handlelength=1.6, **properties)
