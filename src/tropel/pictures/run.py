"""A run in one picture: the map with the paths of all agents, how many left over time, and through which exits."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.foundation.arguments import checked_arguments
from tropel.pictures import style
from tropel.pictures.hazards import HazardDisc, draw_hazards
from tropel.pictures.layout import AXIS_BELOW, EDGE, STRIP, Layout, lay_out
from tropel.pictures.map import draw_map, draw_obstacles, margin_for
from tropel.pictures.paths import Paths, read_paths
from tropel.pictures.recorded_world import Change, RecordedWorld
from tropel.pictures.style import picture_path, save_figure
from tropel.pictures.viewport import AXES, SIDE, TOP, Viewport
from tropel.recording import Scene, Trajectory

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

#: With more exits than this, the least used ones share one bar.
_MOST_BARS = 9
_MANY_DOTS = 10_000
_DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o"}


@checked_arguments
def draw_run(trajectory: Trajectory, path: str | os.PathLike[str]) -> Path:
    """Draw a run as a PNG: the map with all paths coloured by time, and curves of how many were there and had left.

    A run in three dimensions is drawn as seen from above and from the side.
    """
    target = picture_path(path, ".png")
    return save_figure(run_figure(trajectory), target)


def run_figure(trajectory: Trajectory) -> Figure:
    """The figure that `draw_run` saves."""
    paths = read_paths(trajectory)
    moments = RecordedWorld(trajectory)
    summary = trajectory.summary or {}
    bars = _bars(summary.get("exits"))
    layout = lay_out(paths.bounds, margin=margin_for(trajectory.scene), bars=len(bars))
    figure = style.new_figure(layout.width, layout.height)
    _write_header(figure, trajectory, paths, summary)
    notes = _door_notes(moments.door_changes(paths.frames.tolist()))
    hazards, hazard_notes = _hazards_of_run(moments, paths)
    colours = _time_norm(paths)
    for view, (left, top) in zip(layout.views, layout.corners, strict=True):
        axes = style.add_axes(figure, left, top, view.width, view.height)
        _draw_obstacles(axes, trajectory.scene, moments, paths, view)
        draw_hazards(axes, hazards.values(), view)
        _draw_paths(axes, paths, view, colours)
        end = replace(moments.at(int(paths.frames[-1])), hazards=hazards)
        draw_map(axes, trajectory.scene, end, view, door_notes=notes, hazard_notes=hazard_notes)
        _name_map_axes(axes, view, trajectory.scene.dim)
    _write_key(figure, paths, layout)
    _draw_curves(figure, paths, summary, colours, *layout.curves)
    if layout.bars is not None:
        _draw_bars(figure, bars, *layout.bars)
    return figure


def _write_header(figure: Figure, trajectory: Trajectory, paths: Paths, summary: Mapping[str, Any]) -> None:
    scene = trajectory.scene
    agents = int(summary.get("agents", paths.agents))
    end = float(summary.get("simulated_time", paths.times[-1]))
    facts = [f"{agents:,} agent{'s' * (agents != 1)}", f"{end:.1f} s"]
    if scene.seed is not None:
        facts.append(f"seed {scene.seed}")
    there = int(summary.get("remaining", paths.there[-1]))
    died = int(summary.get("deaths", paths.died[-1]))
    if agents and there == 0 and died == 0:
        facts.append("everybody left")
    elif agents and there < agents:
        counts = [f"{agents - there - died:,} left"]
        counts += [f"{died:,} died"] * (died > 0) + [f"{there:,} still there"] * (there > 0)
        facts.append(", ".join(counts))
    if trajectory.summary is None and scene.seed is not None:
        facts.append("interrupted before the end")
    if paths.drawn < paths.agents:
        facts.append(f"{paths.drawn:,} paths drawn")
    title = style.shortened(scene.title or trajectory.path.stem, 60)
    style.add_text(figure, EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, EDGE, 43, "  ·  ".join(facts), color=style.FAINT_INK)


def _door_notes(changes: list[Change]) -> dict[str, str]:
    """Notes on doors that changed; for the others the map shows their state."""
    notes: dict[str, list[str]] = {}
    for change in changes:
        notes.setdefault(change.door, []).append(f"{'opens' if change.open else 'closes'} at {change.time:.0f} s")
    return {
        door: "\n".join(said) if len(said) <= 2 else f"{said[0]}\nchanges {len(said)} times"
        for door, said in notes.items()
    }


def _hazards_of_run(moments: RecordedWorld, paths: Paths) -> tuple[dict[str, HazardDisc], dict[str, str]]:
    """Every hazard of the run as last seen, and the time it was there."""
    seen: dict[str, HazardDisc] = {}
    first: dict[str, float] = {}
    last: dict[str, float] = {}
    for frame, time in zip(paths.frames.tolist(), paths.times.tolist(), strict=True):
        for name, hazard in moments.hazards(frame).items():
            seen[name] = hazard
            first.setdefault(name, time)
            last[name] = time
    notes = {}
    for name in seen:
        over = f" to {last[name]:.0f} s" if last[name] < paths.times[-1] else ""
        notes[name] = f"{first[name]:.0f}{over}" if over else f"from {first[name]:.0f} s"
    return seen, notes


def _time_norm(paths: Paths) -> Normalize:
    """From times to colours. The scale ends when nearly all of the total path length has been walked, as the strip
    below the curves shows. Otherwise a few stragglers would squeeze all others into the first colours."""
    from matplotlib.colors import Normalize

    end = float(paths.times[-1])
    if len(paths.pieces):
        order = np.argsort(paths.piece_times, kind="stable")
        walked = np.cumsum(np.linalg.norm(paths.pieces[order, 1] - paths.pieces[order, 0], axis=1))
        nearly_all = paths.piece_times[order[np.searchsorted(walked, 0.98 * walked[-1])]]
        end = float(nearly_all) if nearly_all < 0.8 * end else end
    return Normalize(0.0, end or 1.0, clip=True)


def _draw_paths(axes: Axes, paths: Paths, view: Viewport, norm: Normalize) -> None:
    from matplotlib.collections import LineCollection

    few = paths.drawn <= 10
    many = max(paths.drawn, 1)
    axes.add_collection(
        LineCollection(
            list(paths.pieces[:, :, list(view.plane)]),
            array=paths.piece_times,
            cmap=style.time_colours(),
            norm=norm,
            linewidths=min(float(np.clip(3.0 / many**0.2, 0.8, 2.4)), 0.5 * _room(paths, view)),
            alpha=1.0 if few else float(np.clip(5.0 / many**0.5, 0.28, 0.9)),
            # Round ends close the gaps between pieces, but on transparent lines they would show as dots.
            capstyle="round" if few else "butt",
            zorder=3,
        ),
        autolim=False,
    )
    starts, ends = view.flat(paths.starts), view.flat(paths.ends)
    axes.plot(starts[:, 0], starts[:, 1], **_start_dots(len(starts), _room(paths, view)))
    axes.plot(ends[:, 0], ends[:, 1], **_end_dots(len(ends), _room(paths, view)))
    dead = view.flat(paths.dead)
    axes.plot(dead[:, 0], dead[:, 1], **_dead_crosses(len(dead), _room(paths, view)))


def _room(paths: Paths, view: Viewport) -> float:
    """The largest size of a dot [points] that does not fill a narrow world."""
    narrow = float(np.ptp(view.flat(paths.bounds), axis=0).min()) * view.scale
    return max(0.2 * narrow * 72 / style.DPI, 1.0) if narrow > 0.0 else np.inf


def _start_dots(count: int, room: float = np.inf) -> dict[str, Any]:
    size = min(float(np.clip(9.0 / max(count, 1) ** 0.25, 1.2, 5.0)) * _shrink(count), room)
    alpha = float(np.clip(12.0 / max(count, 1) ** 0.5, 0.35, 1.0))
    return {**_DOTS, "markersize": size, "color": style.INK, "alpha": alpha, "mew": 0, "zorder": 3.4}


def _end_dots(count: int, room: float = np.inf) -> dict[str, Any]:
    size = min(float(np.clip(10.0 / max(count, 1) ** 0.2, 2.0, 6.0)) * _shrink(count), 1.3 * room)
    colour = style.time_colours()(1.0)
    edge = 0.5 if count <= _MANY_DOTS else 0.0
    return {**_DOTS, "markersize": size, "color": colour, "mec": style.INK, "mew": edge, "zorder": 3.6}


def _shrink(count: int) -> float:
    """A factor that shrinks dots where very many would hide the paths."""
    return min(1.0, (_MANY_DOTS / max(count, 1)) ** 0.5)


def _dead_crosses(count: int, room: float = np.inf) -> dict[str, Any]:
    size = min(float(np.clip(12.0 / max(count, 1) ** 0.2, 2.5, 7.0)), 1.5 * room)
    return {"linestyle": "none", "marker": "x", "markersize": size, "color": style.DEAD, "mew": 1.5, "zorder": 6.5}


def _write_key(figure: Figure, paths: Paths, layout: Layout) -> None:
    """A legend for the dots, below the map if there is room."""
    from matplotlib.lines import Line2D

    view, (left, top) = layout.views[0], layout.corners[0]
    if view.width < 420 or paths.agents == 0:
        return
    entries = [("start", _start_dots(len(paths.starts)))]
    if len(paths.ends):
        entries.append(("there at the end", _end_dots(len(paths.ends))))
    if len(paths.dead):
        entries.append(("died", _dead_crosses(len(paths.dead))))
    handles = [Line2D([], [], label=name, **{**dots, "alpha": 1.0, "markersize": 5.0}) for name, dots in entries]
    across, down = figure.get_size_inches() * style.DPI
    figure.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=((left + view.width) / across, 1.0 - (top + view.height + AXIS_BELOW) / down),
        ncols=3,
        frameon=False,
        prop={"size": style.SMALL_SIZE, "family": style.FONT},
        labelcolor=style.FAINT_INK,
        borderaxespad=0.0,
        borderpad=0.0,
        handletextpad=0.0,
        columnspacing=1.0,
    )


def _draw_obstacles(axes: Axes, scene: Scene, moments: RecordedWorld, paths: Paths, view: Viewport) -> None:
    """Draw obstacles where they are at the end, and the paths of those that moved."""
    frames = paths.frames[np.unique(np.linspace(0, len(paths.frames) - 1, 120).round().astype(int))]
    seen = [moments.obstacles(int(frame)) for frame in frames]
    draw_obstacles(axes, moments.with_images(seen[-1]).values(), view, scene)
    period = view.flat(moments.period)[0]
    for name in sorted(set().union(*seen)):
        way = view.flat(np.array([moment[name][0] for moment in seen if name in moment]))
        if np.any(way != way[0]):
            jumps = (np.abs(np.diff(way, axis=0)) > np.where(period > 0.0, 0.5 * period, np.inf)).any(axis=1)
            way = np.insert(way, np.flatnonzero(jumps) + 1, np.nan, axis=0)
            axes.plot(
                way[:, 0], way[:, 1], color=style.OBSTACLE_EDGE, linewidth=1.1, linestyle=(0, (1, 1.6)), zorder=5.5
            )


def _name_map_axes(axes: Axes, view: Viewport, dim: int) -> None:
    from matplotlib.ticker import MaxNLocator

    right, up = (AXES[axis] for axis in view.plane)
    title = {TOP: "from above", SIDE: "from the side"}[view.plane] if dim == 3 else ""
    style.label_axes(axes, x=f"{right} [m]", y=f"{up} [m]", title=title)
    for axis, pixels in ((axes.xaxis, view.width), (axes.yaxis, view.height)):
        axis.set_major_locator(MaxNLocator(nbins=max(1, min(8, pixels // 60)), steps=[1, 2, 5, 10]))
    # For maps in national coordinates: whole numbers instead of an offset, written along the axis if they are long.
    axes.ticklabel_format(useOffset=False, style="plain")
    if max(abs(place) for place in (view.low[1], view.high[1])) >= 1e4:
        axes.tick_params(axis="y", labelrotation=90)
        for label in axes.get_yticklabels():
            label.set_verticalalignment("center")
        axes.yaxis.set_major_locator(MaxNLocator(nbins=max(1, min(6, view.height // 110)), steps=[1, 2, 5, 10]))
    if max(abs(place) for place in (view.low[0], view.high[0])) >= 1e5:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=max(1, min(6, view.width // 110)), steps=[1, 2, 5, 10]))


def _draw_curves(
    figure: Figure,
    paths: Paths,
    summary: Mapping[str, Any],
    norm: Normalize,
    left: float,
    top: float,
    width: float,
    height: float,
) -> None:
    """How many are there and how many have left, above a strip of the colours that stand for time on the map."""
    from matplotlib.ticker import MaxNLocator

    times, there, gone, died = paths.times, paths.there, paths.left, paths.died
    end = summary.get("simulated_time")
    if end is not None and "remaining" in summary and end > times[-1]:
        # The run may have ended between two frames.
        agents = int(summary.get("agents", paths.agents))
        times = np.append(times, float(end))
        there = np.append(there, int(summary["remaining"]))
        died = np.append(died, int(summary.get("deaths", died[-1])))
        gone = np.append(gone, agents - there[-1] - died[-1])
    axes = style.add_axes(figure, left, top, width, height)
    style.open_panel(axes)
    style.label_axes(axes, y="agents")
    marker = "o" if len(times) == 1 else None
    steps: dict[str, Any] = {"drawstyle": "steps-post", "marker": marker, "solid_joinstyle": "miter", "clip_on": False}
    axes.plot(times, there, color=style.THERE, linewidth=2.2, label="still there", **steps)
    axes.plot(times, gone, color=style.LEFT, linewidth=2.2, linestyle=(0, (4, 1.2)), label="left", **steps)
    if died[-1]:
        axes.plot(times, died, color=style.DEAD, linewidth=2.2, linestyle=(0, (1, 1)), label="died", **steps)
    last = float(times[-1]) or 1.0
    axes.set_xlim(0.0, last)
    axes.set_ylim(0.0, max(1.0, 1.06 * max(there.max(), gone.max())))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 2.5, 5, 10]))
    axes.yaxis.set_major_formatter(lambda count, _: f"{count:,.0f}")
    axes.tick_params(axis="x", labelbottom=False, length=0)
    style.legend_above(axes, side="right", columns=3, handlelength=2.4)
    strip = style.add_axes(figure, left, top + height, width, STRIP)
    strip.imshow(
        np.linspace(0.0, last, 512)[None, :],
        cmap=style.time_colours(),
        norm=norm,
        aspect="auto",
        extent=(0.0, last, 0.0, 1.0),
    )
    strip.set_yticks([])
    strip.set_xlim(0.0, last)
    strip.xaxis.set_major_locator(MaxNLocator(nbins=7, steps=[1, 2, 5, 10]))
    style.label_axes(strip, x="time [s], as path colour")


def _bars(exits: Any) -> list[tuple[str, int]]:
    """How many left through each exit, most used first; if there are many, the least used are combined."""
    if not isinstance(exits, Mapping):
        return []
    counts = sorted(((str(name), int(count)) for name, count in exits.items()), key=lambda bar: -bar[1])
    if len(counts) <= _MOST_BARS:
        return counts
    rest = counts[_MOST_BARS - 1 :]
    return [*counts[: _MOST_BARS - 1], (f"{len(rest)} others", sum(count for _, count in rest))]


def _draw_bars(
    figure: Figure, bars: list[tuple[str, int]], left: float, top: float, width: float, height: float
) -> None:
    axes = style.add_axes(figure, left, top, width, height)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    rows = np.arange(len(bars))
    counts = np.array([count for _, count in bars])
    axes.barh(rows, counts, height=0.62, color=style.LEFT)
    for row, count in zip(rows, counts, strict=True):
        axes.annotate(
            f"{count:,}",
            (count, row),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=style.SMALL_SIZE,
            color=style.INK,
            family=style.FONT,
        )
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.set_xlim(0.0, max(1, counts.max()))
    axes.set_xticks([])
    axes.set_yticks(rows, [style.shortened(name, 16, end=6) for name, _ in bars], parse_math=False)
    axes.tick_params(axis="y", length=0)
    style.label_axes(axes, title="left through")
