"""The layout of the picture of a run: panels next to the map, or below it if the map is wide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.pictures.viewport import SIDE, TOP, Viewport, fit_view

# All lengths in pixels.
EDGE = 22
HEADER = 76
AXIS_LEFT = 56
AXIS_BELOW = 52
STRIP = 9  #: height of the strip of colours below the curves
_ABOVE_PANEL = 34
_PANEL_WIDTH = 400
_PANEL_HEIGHT = 230
_BAR = 24
_BAR_NAMES = 124
_BAR_COUNTS = 56
#: Maps wider than this multiple of their height have the curves below them.
_WIDE = 2.0

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Boxes are left, top, width and height in pixels, from the top left corner of the picture."""

    width: float
    height: float
    views: list[Viewport]
    corners: list[tuple[float, float]]  #: left and top of each view
    curves: Box
    bars: Box | None


def lay_out(bounds: NDArray[np.float64], *, margin: int, bars: int) -> Layout:
    """A layout for a world within `bounds` (2, dim), with `margin` pixels free around it on the map."""
    extent = np.maximum(bounds[1] - bounds[0], 1e-9)
    if len(extent) == 3:
        return _side_by_side(*_two_views(bounds, margin), bars)
    if extent[0] > _WIDE * extent[1]:
        return _below(fit_view(bounds, width=1080, height=620, margin=margin), bars)
    return _beside(fit_view(bounds, width=760, height=820, margin=margin), bars)


def _below(view: Viewport, bars: int) -> Layout:
    left = float(EDGE + AXIS_LEFT)
    right = left + view.width
    top = HEADER + view.height + AXIS_BELOW + _ABOVE_PANEL + 8
    width, panel = float(view.width), None
    bottom = float(top + _PANEL_HEIGHT + STRIP + AXIS_BELOW)
    if bars:
        width -= 400.0
        begin = left + width + _BAR_NAMES + 56
        panel = (begin, top, right - begin - _BAR_COUNTS, _bars_height(bars))
        bottom = max(bottom, top + panel[3])
    return Layout(
        width=right + EDGE,
        height=bottom + EDGE,
        views=[view],
        corners=[(left, HEADER)],
        curves=(left, top, width, _PANEL_HEIGHT),
        bars=panel,
    )


def _beside(view: Viewport, bars: int) -> Layout:
    left = float(EDGE + AXIS_LEFT)
    begin = left + view.width + EDGE + AXIS_LEFT + 14
    curves, panel, bottom = _stacked(begin, HEADER, _PANEL_WIDTH, bars)
    return Layout(
        width=begin + _PANEL_WIDTH + EDGE,
        height=max(bottom, HEADER + view.height + AXIS_BELOW) + EDGE,
        views=[view],
        corners=[(left, HEADER)],
        curves=curves,
        bars=panel,
    )


def _side_by_side(above: Viewport, side: Viewport, bars: int) -> Layout:
    """The view from above on the left, the view from the side on the right, with the curves below the latter."""
    left, top = float(EDGE + AXIS_LEFT), HEADER + 26.0
    begin = left + above.width + EDGE + AXIS_LEFT + 14
    curves, panel, bottom = _stacked(begin, top + side.height + AXIS_BELOW, max(side.width, _PANEL_WIDTH), bars)
    return Layout(
        width=begin + max(side.width, _PANEL_WIDTH) + EDGE,
        height=max(bottom, top + above.height + AXIS_BELOW) + EDGE,
        views=[above, side],
        corners=[(left, top), (begin, top)],
        curves=curves,
        bars=panel,
    )


def _stacked(left: float, top: float, width: float, bars: int) -> tuple[Box, Box | None, float]:
    """The boxes of the curves and of the bars below them, and where they end."""
    curves = (left, top + _ABOVE_PANEL, width, float(_PANEL_HEIGHT))
    bottom = curves[1] + _PANEL_HEIGHT + STRIP + AXIS_BELOW
    if not bars:
        return curves, None, bottom
    panel = (left + _BAR_NAMES - 30, bottom + 54, width - _BAR_NAMES + 30 - _BAR_COUNTS, _bars_height(bars))
    return curves, panel, panel[1] + panel[3]


def _two_views(bounds: NDArray[np.float64], margin: int) -> tuple[Viewport, Viewport]:
    """The views from above and from the side, at one scale."""
    first = [fit_view(bounds, plane=plane, width=540, height=620, margin=margin) for plane in (TOP, SIDE)]
    scale = min(view.scale for view in first)
    views = []
    for plane in (TOP, SIDE):
        width, height = np.round((bounds[1] - bounds[0])[list(plane)] * scale).astype(int) + 2 * margin
        views.append(fit_view(bounds, plane=plane, width=int(width), height=int(height), margin=margin))
    return views[0], views[1]


def _bars_height(bars: int) -> float:
    return float(_BAR * bars + 10)
