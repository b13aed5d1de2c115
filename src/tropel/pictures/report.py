"""Pictures of an evacuation report: its numbers, and its maps of density and flow.

`draw_report` shows how many were out at each time, how long people needed, and which exits they used.
`draw_crowd_maps` shows mean density, peak density, flow and mean Voronoi density over the map of the world.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.analysis import CrowdMaps, EvacuationReport, ExitUse, VoronoiMaps
from tropel.foundation.arguments import checked_arguments
from tropel.pictures import style
from tropel.pictures.map import draw_map, margin_for, outline_of, wall_width
from tropel.pictures.recorded_world import RecordedWorld, parse_wkt
from tropel.pictures.style import picture_path, save_figure
from tropel.pictures.viewport import Viewport, fit_view
from tropel.recording import Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure


# All lengths in pixels.
_EDGE = 22
_WIDTH = 1220
_TOP = 122
_CURVES = (_EDGE + 66, _TOP, 620, 400)
_TIMES = (_EDGE + 66 + 620 + 86, _TOP, 1220 - 22 - (_EDGE + 66 + 620 + 86), 400)
_USE_TOP = _TOP + 400 + 104
_NAMES = 150
_NUMBERS = 356
_BAR = 26
#: With more exits than this, the least used ones share one curve and one bar.
_MOST_EXITS = 8


@checked_arguments
def draw_report(report: EvacuationReport, path: str | os.PathLike[str]) -> Path:
    """Draw the numbers of a report as a PNG: how many were out when, how long they needed, which exits they used."""
    target = picture_path(path, ".png")
    return save_figure(report_figure(report), target)


def report_figure(report: EvacuationReport) -> Figure:
    """The figure that `draw_report` saves."""
    shown = _most_used(report.exits)
    bars = len(shown) + (len(report.exits) > len(shown))
    figure = style.new_figure(_WIDTH, _USE_TOP + _BAR * max(bars, 1) + 30)
    write_report_header(figure, report)
    colours = dict(zip((use.name for use in shown), style.group_colours(len(shown)), strict=True))
    _draw_curves(style.add_axes(figure, *_CURVES), report, colours)
    _draw_times(style.add_axes(figure, *_TIMES), report)
    _draw_uses(figure, report, colours)
    return figure


def write_report_header(figure: Figure, report: EvacuationReport, *more: str) -> None:
    """Write the title, the totals of the report, and further facts."""
    title = style.shortened(report.title, 80)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    facts = [f"{report.agents:,} people", f"{report.end:.1f} s", f"{report.left:,} left"]
    facts += [f"{count:,} {what}" for what, count in (("died", report.died), ("removed", report.removed)) if count]
    if report.remaining:
        facts.append(f"{report.remaining:,} still there")
    if not report.exact:
        facts.append("times and exits estimated from frames")
    style.add_text(figure, _EDGE, 43, "  ·  ".join([*facts, *more]), color=style.FAINT_INK)


def _most_used(exits: tuple[ExitUse, ...]) -> list[ExitUse]:
    """The exits drawn by name, in the order of the scene."""
    if len(exits) <= _MOST_EXITS:
        return list(exits)
    most = sorted(exits, key=lambda use: -use.count)[: _MOST_EXITS - 1]
    return [use for use in exits if use in most]


def _draw_curves(axes: Axes, report: EvacuationReport, colours: dict[str, str]) -> None:
    from matplotlib.ticker import MaxNLocator

    curve = report.evacuated
    style.open_panel(axes)
    style.label_axes(axes, x="time [s]", y="people")
    steps: dict[str, Any] = {"drawstyle": "steps-post", "solid_joinstyle": "miter"}
    axes.axhline(report.agents, color=style.FAINT_INK, linewidth=0.9, linestyle=(0, (1, 2)))
    _note(axes, 0.995, report.agents, "all people", ha="right", transform=axes.get_yaxis_transform())
    axes.plot(curve.times, curve.total, color=style.INK, linewidth=2.4, label="left, all exits", zorder=4, **steps)
    if report.died:
        dots: dict[str, Any] = {"linestyle": (0, (1.2, 1.2)), "zorder": 5}
        axes.plot(curve.times, curve.died, color=style.CLOSED_DOOR, linewidth=2.4, label="died", **dots, **steps)
    lines = ("-", (0, (5, 1.4)), (0, (3, 1.2, 1, 1.2)), (0, (1.4, 1.2)))
    if len(report.exits) > 1:
        for number, (name, colour) in enumerate(colours.items()):
            # Curves of exits that are used alike coincide; dashes keep both visible.
            look: dict[str, Any] = {"color": colour, "linestyle": lines[number % len(lines)], "linewidth": 1.6}
            axes.plot(curve.times, curve.by_exit[name], label=style.shortened(name, 18, end=4), **look, **steps)
    axes.set_xlim(0.0, report.end or 1.0)
    axes.set_ylim(0.0, 1.08 * report.agents)
    axes.xaxis.set_major_locator(MaxNLocator(nbins=8, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    style.legend_above(axes, columns=4, handlelength=2.2)


def _draw_times(axes: Axes, report: EvacuationReport) -> None:
    """A histogram of the time each person needed, with the times within which half and nearly all got out."""
    from matplotlib.ticker import MaxNLocator

    style.open_panel(axes)
    who = "" if report.left == report.agents else ", people who left"
    style.label_axes(axes, x=f"time from arriving to leaving [s]{who}", y="people")
    needed = report.needed[~np.isnan(report.needed)]
    if len(needed) == 0:
        axes.set_xticks([])
        axes.set_yticks([])
        _note(axes, 0.5, 0.5, "nobody has left", ha="center", transform=axes.transAxes)
        return
    bins = int(np.clip(2.0 * len(needed) ** (1.0 / 3.0), 8, 40))
    counts, edges = np.histogram(needed, bins=bins, range=(0.0, float(needed.max()) or 1.0))
    fill = style.mixed(style.LEFT, style.PAPER, 0.45)
    axes.bar(edges[:-1], counts, width=np.diff(edges), align="edge", color=fill, edgecolor=style.PAPER, linewidth=0.8)
    axes.set_xlim(0.0, edges[-1] * 1.02)
    axes.set_ylim(0.0, 1.3 * counts.max())
    axes.xaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 2.5, 5, 10]))
    # Each line is taller than those before it, so that a label to its left crosses none of them.
    for percent, height in ((50, 1.02), (95, 1.12), (100, 1.22)):
        time, top = report.needed_by(percent), height * counts.max()
        axes.plot([time, time], [0.0, top + 0.05 * counts.max()], color=style.INK, linewidth=1.0, linestyle=(0, (3, 2)))
        side, shift = ("right", -5) if time > 0.3 * edges[-1] else ("left", 5)
        _note(axes, time, top, f"{percent} % in {time:.1f} s", ha=side, transform=axes.transData, shift=shift)


def _draw_uses(figure: Figure, report: EvacuationReport, colours: dict[str, str]) -> None:
    """A bar per exit, with its numbers in columns next to it."""
    rows = [(use.name, use.count, _numbers_of(use), colours[use.name]) for use in report.exits if use.name in colours]
    rest = [use for use in report.exits if use.name not in colours]
    if rest:
        count = sum(use.count for use in rest)
        share = sum(use.share for use in rest)
        others = (f"{count:,}", f"{100 * share:.0f} %", "", "", "")
        rows.append((f"{len(rest)} others", count, others, style.FAINT_INK))
    left, width = _EDGE + _NAMES, _WIDTH - 2 * _EDGE - _NAMES - _NUMBERS
    if not rows:
        style.add_text(figure, _EDGE, _USE_TOP, "no exits, and nobody has left", color=style.FAINT_INK)
        return
    axes = style.add_axes(figure, left, _USE_TOP, width, _BAR * len(rows))
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.barh(range(len(rows)), [row[1] for row in rows], height=0.66, color=[row[3] for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_xlim(0.0, max(1, *(row[1] for row in rows)))
    axes.set_xticks([])
    axes.set_yticks(range(len(rows)), [style.shortened(row[0], 20, end=6) for row in rows], parse_math=False)
    axes.tick_params(axis="y", length=0)
    style.label_axes(axes, title="left through")
    heads = ("people", "share", "from – to [s]", "1 / s", "1 / (m s)")
    rights = (52, 104, 206, 266, 356)
    for head, right in zip(heads, rights, strict=True):
        place = left + width + right
        small: dict[str, Any] = {"ha": "right", "fontsize": style.SMALL_SIZE, "va": "center"}
        style.add_text(figure, place, _USE_TOP - 15, head, color=style.FAINT_INK, **small)
    for number, (_, _, numbers, _) in enumerate(rows):
        for text, right in zip(numbers, rights, strict=True):
            style.add_text(figure, left + width + right, _USE_TOP + _BAR * (number + 0.5), text, **small)


def _numbers_of(use: ExitUse) -> tuple[str, ...]:
    span = "–" if use.count == 0 else f"{use.first:.1f} – {use.last:.1f}"
    return (f"{use.count:,}", f"{100 * use.share:.0f} %", span, _number(use.flow), _number(use.specific_flow))


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.2f}"


def _note(axes: Axes, x: float, y: float, text: str, *, ha: str, transform: Any, shift: float = 0.0) -> None:
    axes.annotate(
        text,
        (x, y),
        xycoords=transform,
        xytext=(shift, 3),
        textcoords="offset points",
        ha=ha,
        va="bottom",
        fontsize=style.SMALL_SIZE,
        color=style.INK,
        family=style.FONT,
    )


# All lengths in pixels.
_HEADER = 112
_AXIS_LEFT = 46
_AXIS_BELOW = 44
_KEY = 12  #: thickness of the bar that explains the colours
_KEY_ROOM = 66
_MAP_WIDTH = 520
_MAP_HEIGHT = 560
#: Maps wider than this multiple of their height are stacked.
_WIDE = 2.0
#: Smallest space for an arrow.
_ARROW = 17


@checked_arguments
def draw_crowd_maps(report: EvacuationReport, trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Draw the maps of a report as a PNG: mean density, peak density, flow and, in 2D, mean Voronoi density."""
    target = picture_path(path, ".png")
    return save_figure(crowd_maps_figure(report, trajectory), target)


def crowd_maps_figure(report: EvacuationReport, trajectory: Trajectory) -> Figure:
    """The figure that `draw_crowd_maps` saves."""
    scene, maps = trajectory.scene, report.maps
    bounds = np.array([corner[:2] for corner in scene.bounds])
    extent = bounds[1] - bounds[0]
    wide = bool(extent[0] > _WIDE * extent[1])
    view = fit_view(bounds, width=1060 if wide else _MAP_WIDTH, height=_MAP_HEIGHT, margin=margin_for(scene))
    across, down = view.width + _AXIS_LEFT + _KEY_ROOM, view.height + _AXIS_BELOW + 42
    panels: list[tuple[str, NDArray[np.float64], CrowdMaps | VoronoiMaps]] = [
        ("mean density [persons / m²]", maps.mean_density, maps),
        ("peak density [persons / m²]", maps.peak_density, maps),
        ("mean flow [persons / (m s)] and its direction", maps.flow_strength, maps),
    ]
    if report.voronoi is not None:
        found = f"mean Voronoi density [persons / m²], {report.voronoi.frames_in_words}"
        panels.append((found, report.voronoi.mean_density, report.voronoi))
    # Four maps side by side would be too wide for a screen.
    columns = 1 if wide else 3 if len(panels) == 3 else 2
    rows = math.ceil(len(panels) / columns)
    figure = style.new_figure(max(2 * _EDGE + columns * across, 620), _HEADER + rows * down + 8)
    write_report_header(figure, report, f"cells of {maps.cell:g} m", "means over the time with people")
    moment = RecordedWorld(trajectory).at(int(trajectory.frames[-1]))
    for number, (title, grid, of) in enumerate(panels):
        left = _EDGE + _AXIS_LEFT + (number % columns) * across
        top = _HEADER + (number // columns) * down
        axes = style.add_axes(figure, left, top, view.width, view.height)
        draw_map(axes, scene, moment, view)
        shown = _draw_grid(axes, of, grid, moment.area_wkt, view)
        _name_axes(axes, view, title, name_y=number % columns == 0)
        key = style.add_axes(figure, left + view.width + 10, top, _KEY, min(view.height, 260))
        _draw_key(figure, key, shown)
        if number == 2:
            _draw_arrows(axes, maps, view)
    return figure


def _draw_grid(
    axes: Axes, maps: CrowdMaps | VoronoiMaps, grid: NDArray[np.float64], area_wkt: str, view: Viewport
) -> Any:
    """Draw the cells that anyone was in, clipped at the walls."""
    from matplotlib.colors import Normalize
    from matplotlib.patches import PathPatch

    rows, columns = grid.shape
    x0, y0 = maps.corner
    shown = axes.imshow(
        np.ma.masked_equal(grid, 0.0),
        origin="lower",
        extent=(x0, x0 + columns * maps.cell, y0, y0 + rows * maps.cell),
        cmap=_crowd_colours(),
        norm=Normalize(0.0, float(grid.max()) or 1.0),
        interpolation="nearest",
        aspect="auto",
        # Above the floor, below walls, exits and names.
        zorder=2.5,
    )
    floor = parse_wkt(area_wkt, "walkable area") if area_wkt else None
    outline = None if floor is None else outline_of(floor)
    if outline is not None:
        line: dict[str, Any] = {"edgecolor": style.WALL, "linewidth": wall_width(floor, view), "joinstyle": "miter"}
        edge = PathPatch(outline, facecolor="none", zorder=2.6, **line)
        axes.add_patch(edge)
        shown.set_clip_path(edge)
    return shown


def _crowd_colours() -> Colormap:
    """From nearly white to nearly black, readable in greyscale and with any colour vision."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["magma_r"](np.linspace(0.04, 0.95, 256)), name="tropel crowd")


def _draw_arrows(axes: Axes, maps: CrowdMaps, view: Viewport) -> None:
    """Arrows of one length for the direction; the colour below shows the strength. Small cells share an arrow."""
    columns = maps.mean_density.shape[1]
    block = max(1, math.ceil(_ARROW / (maps.cell * view.scale)))
    row, column = np.nonzero(maps.flow_strength > 0.02 * maps.flow_strength.max(initial=0.0))
    if len(row) == 0:
        return
    flow, strength = maps.flow[row, column], maps.flow_strength[row, column]
    _, group = np.unique((row // block) * columns + column // block, return_inverse=True)
    # An arrow is placed where most of the flow of its cells is, so that it is not beyond a wall next to it.
    total = np.bincount(group, weights=strength)
    x, y = (np.bincount(group, weights=strength * place) / total for place in (maps.x[column], maps.y[row]))
    along = np.stack([np.bincount(group, weights=part) for part in flow.T], axis=1)
    direction = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    size = block * maps.cell
    under = maps.flow_strength[
        ((y - maps.corner[1]) / maps.cell).astype(int), ((x - maps.corner[0]) / maps.cell).astype(int)
    ]
    dark = under > 0.5 * maps.flow_strength.max()
    for chosen, colour in ((dark, style.PAPER), (~dark, style.INK)):
        axes.quiver(
            x[chosen],
            y[chosen],
            *(0.75 * size * direction[chosen].T),
            color=colour,
            angles="xy",
            scale_units="xy",
            scale=1.0,
            pivot="mid",
            units="xy",
            width=0.07 * size,
            headwidth=4.0,
            headlength=4.0,
            headaxislength=3.6,
            zorder=4.5,
        )


def _draw_key(figure: Figure, axes: Axes, shown: Any) -> None:
    from matplotlib.ticker import MaxNLocator

    bar = figure.colorbar(shown, cax=axes)
    bar.outline.set_edgecolor(style.FAINT_INK)
    bar.outline.set_linewidth(0.8)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 2.5, 5, 10]))
    axes.tick_params(colors=style.FAINT_INK, labelcolor=style.INK, labelsize=style.SMALL_SIZE, length=3, width=0.8)


def _name_axes(axes: Axes, view: Viewport, title: str, *, name_y: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    view.frame(axes)
    style.label_axes(axes, x="x [m]", y="y [m]" if name_y else "", title=title)
    for axis, pixels in ((axes.xaxis, view.width), (axes.yaxis, view.height)):
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(8, pixels // 60)), steps=[1, 2, 5, 10]))
