"""Drawing a world: where one can walk, what stands in the way, where one can leave."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from tropel.pictures import style
from tropel.pictures.labels import Box, Label, place_labels
from tropel.pictures.moments import Moment, Place, parse_wkt
from tropel.pictures.view import View, silhouettes, walls_around
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path as Outline

#: More exits than this, and names that find no free place are left out.
_ALL_NAMED = 12
#: Lines of walls cover at most so much of a map.
_MOST_COVERED = 0.15


def draw_map(
    axes: Axes,
    scene: Scene,
    moment: Moment,
    view: View,
    *,
    door_notes: Mapping[str, str] | None = None,
    hazard_notes: Mapping[str, str] | None = None,
) -> None:
    """Draw the world as it is at a moment, obstacles and hazards left aside.

    `door_notes` says more about doors by name. Hazards have names on the map if `hazard_notes` says more about them.
    """
    view.frame(axes)
    if scene.dim == 3:
        labels = _draw_box(axes, scene, view)
    else:
        labels = _draw_floor(axes, scene, moment, view, door_notes or {})
    labels += _draw_targets(axes, scene, moment, view)
    labels += [
        Label(
            text=f"{name}\n{note}",
            box=_box_around(view.flat(moment.hazards[name].centre)[0], moment.hazards[name].inner),
            colour=style.label_colour(moment.hazards[name].colour),
        )
        for name, note in (hazard_notes or {}).items()
        if name in moment.hazards
    ]
    # Regions are the least of the names.
    obstacles = [_box_around(view.flat(centre)[0], radius) for centre, radius in moment.obstacles.values()]
    place_labels(axes, sorted(labels, key=lambda label: not label.required), avoid=obstacles)


def draw_obstacles(axes: Axes, obstacles: Collection[tuple[Place, float]], view: View, scene: Scene) -> None:
    """Discs, or balls seen from one side, which are transparent because people pass in front of and behind them."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Circle, PathPatch

    if scene.dim == 3:
        seen = silhouettes(obstacles, view, walls_around(scene.bounds, scene.sides, view))
        patches: list[Any] = [PathPatch(outline) for outline in map(outline_of, seen) if outline is not None]
    else:
        patches = [Circle(tuple(view.flat(centre)[0]), radius) for centre, radius in obstacles]
    axes.add_collection(
        PatchCollection(
            patches,
            facecolor=style.OBSTACLE,
            edgecolor=style.OBSTACLE_EDGE,
            linewidth=0.9,
            alpha=0.6 if scene.dim == 3 else 1.0,
            zorder=6,
        ),
        autolim=False,
    )


def margin_for(scene: Scene) -> int:
    """Pixels to keep free around a map; names of exits are written there."""
    return 24 if scene.exits and scene.dim == 2 else 10


def _draw_floor(axes: Axes, scene: Scene, moment: Moment, view: View, door_notes: Mapping[str, str]) -> list[Label]:
    if moment.area_wkt:
        axes.set_facecolor(style.OUTSIDE)
        floor = parse_wkt(moment.area_wkt, "walkable area")
        wide = wall_width(floor, view)
        _fill(axes, floor, facecolor=style.FLOOR, edgecolor=style.WALL, zorder=1, linewidth=wide)
    else:
        axes.set_facecolor(style.FLOOR)
    _draw_seams(axes, scene, view)
    if scene.walls_wkt:
        walls = parse_wkt(scene.walls_wkt, "walls")
        _lines(axes, walls, color=style.WALL, linewidth=wall_width(walls, view, usual=1.8), zorder=4)
    labels = []
    for name, wkt in scene.exits.items():
        labels.append(_draw_exit(axes, name, parse_wkt(wkt, f"exit '{name}'"), moment.exits.get(name, True), scene))
    for name, door in scene.doors.items():
        line = parse_wkt(door["wkt"], f"door '{name}'")
        is_open = moment.doors[name]
        _draw_door(axes, line, is_open)
        note = door_notes.get(name, "open" if is_open else "closed")
        colour = style.OPEN_DOOR if is_open else style.CLOSED_DOOR
        upright = line.bounds[3] - line.bounds[1] > line.bounds[2] - line.bounds[0]
        sides = ("right", "left") if upright else ("above", "below")
        labels.append(
            Label(text=f"{name}\n{note}", box=_grown(line.bounds, 3 / view.scale), colour=colour, sides=sides)
        )
    for name, wkt in scene.regions.items():
        shape = parse_wkt(wkt, f"region '{name}'")
        _fill(axes, shape, facecolor=style.REGION + "12", edgecolor=style.REGION + "90", zorder=2, dashed=True)
        corners = ("corner", "low corner", "inside")
        labels.append(Label(text=name, box=shape.bounds, colour=style.FAINT_INK, sides=corners, required=False))
    return labels


def _draw_exit(axes: Axes, name: str, shape: Any, is_open: bool, scene: Scene) -> Label:
    colour = style.EXIT if is_open else style.CLOSED_EXIT
    # Opaque, and above the walls: the wall behind an exit is where people go through.
    _fill(axes, shape, facecolor=style.exit_fill(colour), edgecolor=colour, zorder=5)
    return Label(
        text=name if is_open else f"{name} (closed)",
        box=shape.bounds,
        colour=style.label_colour(colour),
        sides=_outward(shape.bounds, scene),
        required=len(scene.exits) <= _ALL_NAMED,
        weight="bold",
    )


def _outward(box: Box, scene: Scene) -> tuple[str, ...]:
    """Where the name of an exit stands best: on the side of the map at which the exit is."""
    (left, bottom), (right, top) = scene.bounds
    width, height = box[2] - box[0], box[3] - box[1]
    near = 0.03 * max(right - left, top - bottom)
    # An exit in a corner counts to the side along which it is longer.
    sides = [
        (height, "along left", box[0] - left),
        (height, "along right", right - box[2]),
        (width, "below", box[1] - bottom),
        (width, "above", top - box[3]),
    ]
    found = [(length, side) for length, side, distance in sides if distance <= near]
    return (max(found)[1],) if found else ("inside", "above", "below", "right", "left")


def _draw_door(axes: Axes, line: Any, is_open: bool) -> None:
    if is_open:
        _lines(axes, line, color=style.OPEN_DOOR, linewidth=1.6, zorder=7, linestyle=(0, (2.0, 1.6)))
    else:
        _lines(axes, line, color=style.CLOSED_DOOR, linewidth=3.6, zorder=7)


def _draw_targets(axes: Axes, scene: Scene, moment: Moment, view: View) -> list[Label]:
    labels = []
    for name, entry in scene.targets.items():
        if name in moment.ways:
            way = view.flat(entry["path"])
            axes.plot(way[:, 0], way[:, 1], color=style.TARGET, linewidth=1.0, linestyle=":", zorder=8)
            labels.append(Label(text=name, box=(*way[0], *way[0]), colour=style.TARGET))
    for name, place in moment.targets.items():
        x, y = view.flat(place)[0]
        axes.plot(
            [x],
            [y],
            marker="*",
            markersize=11,
            color=style.TARGET,
            markeredgecolor="white",
            markeredgewidth=0.7,
            zorder=8,
        )
        labels.append(Label(text=name, box=_box_around((x, y), 6.0 / view.scale), colour=style.TARGET))
    return labels


def _draw_box(axes: Axes, scene: Scene, view: View) -> list[Label]:
    from matplotlib.patches import Rectangle

    if set(scene.sides) >= {"open"}:
        axes.set_facecolor(style.FLOOR)
        return []
    axes.set_facecolor(style.OUTSIDE)
    low, high = view.flat(scene.bounds)
    edge = style.FLOOR if any(scene.period) else style.WALL
    axes.add_patch(
        Rectangle((low[0], low[1]), *(high - low), facecolor=style.FLOOR, edgecolor=edge, linewidth=1.0, zorder=1)
    )
    _draw_seams(axes, scene, view)
    return []


def _draw_seams(axes: Axes, scene: Scene, view: View) -> None:
    """The sides of a periodic world: dashed where they are joined, in 3D as walls where they are not."""
    if not any(scene.period):
        return
    low, high = view.flat(scene.bounds)
    for across, axis in enumerate(view.plane):
        joined = scene.sides[axis] == "joined"
        if not joined and scene.dim == 2:
            continue
        for side in (low[across], high[across]):
            ends = np.array([low, high])
            ends[:, across] = side
            dashes: Any = (0, (5, 4)) if joined else "-"
            colour = style.FAINT_INK if joined else style.WALL
            axes.plot(ends[:, 0], ends[:, 1], color=colour, linewidth=1.0, linestyle=dashes, zorder=3)


def wall_width(shape: Any, view: View, *, usual: float = 1.4) -> float:
    """How thick to draw walls [points]: thinner where there are so many that they would cover the floor."""
    length = shape.length * view.scale
    covered = length * usual * style.DPI / 72 / (view.width * view.height)
    return usual * min(1.0, _MOST_COVERED / covered) if covered > 0.0 else usual


def _fill(
    axes: Axes,
    shape: Any,
    *,
    facecolor: str,
    edgecolor: str,
    zorder: float,
    linewidth: float = 1.4,
    dashed: bool = False,
) -> None:
    from matplotlib.patches import PathPatch

    outline = outline_of(shape)
    if outline is not None:
        axes.add_patch(
            PathPatch(
                outline,
                facecolor=facecolor,
                edgecolor=edgecolor,
                linewidth=0.9 if dashed else linewidth,
                linestyle=(0, (4, 3)) if dashed else "-",
                joinstyle="miter",
                zorder=zorder,
            )
        )


def outline_of(shape: Any) -> Outline | None:
    """All rings as one path. Holes run the other way round, which is how matplotlib knows them."""
    from matplotlib.path import Path as Outline

    points, codes = [], []
    for polygon in _polygons(shape):
        oriented = shapely.orient_polygons(polygon)
        for ring in (oriented.exterior, *oriented.interiors):
            corners = np.asarray(ring.coords)[:, :2]
            points.append(corners)
            codes += [Outline.MOVETO, *[Outline.LINETO] * (len(corners) - 2), Outline.CLOSEPOLY]
    return Outline(np.concatenate(points), codes) if points else None


def _polygons(shape: Any) -> list[Any]:
    """The polygons in a shape, also in nested collections, as other programs write them."""
    if shape.geom_type == "Polygon":
        return [] if shape.is_empty else [shape]
    return [polygon for part in getattr(shape, "geoms", ()) for polygon in _polygons(part)]


def _lines(axes: Axes, shape: Any, *, color: str, linewidth: float, zorder: float, linestyle: Any = "-") -> None:
    from matplotlib.collections import LineCollection

    parts = [part for part in shapely.get_parts(shape) if part.geom_type in ("LineString", "LinearRing")]
    axes.add_collection(
        LineCollection(
            [np.asarray(part.coords)[:, :2] for part in parts],
            colors=color,
            linewidths=linewidth,
            linestyles=[linestyle],
            zorder=zorder,
        ),
        autolim=False,
    )


def _grown(box: Box, by: float) -> Box:
    return (box[0] - by, box[1] - by, box[2] + by, box[3] + by)


def _box_around(centre: Any, reach: float) -> Box:
    return (centre[0] - reach, centre[1] - reach, centre[0] + reach, centre[1] + reach)
