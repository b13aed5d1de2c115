"""Drawing a world: the walkable floor, walls and doors, exits and targets, and their names.

Names are placed so that they do not cover each other.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from tropel.pictures import style
from tropel.pictures.recorded_world import Place, WorldAt, parse_wkt
from tropel.pictures.style import FONT, SMALL_SIZE, shortened
from tropel.pictures.viewport import Viewport, silhouettes, walls_around
from tropel.recording import Scene

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.path import Path as Outline


#: Pixels between a thing and its name, and between two names.
_GAP = 5.0
_LONGEST = 26

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Label:
    """A name for the thing within a box (left, bottom, right, top; in metres)."""

    text: str
    box: Box
    colour: str
    sides: Sequence[str] = ("above", "below", "right", "left")  #: where to try, best first
    required: bool = True  #: if none of its sides is free it goes elsewhere, in the end over another label
    weight: str = "normal"


def place_labels(axes: Axes, labels: Sequence[Label], *, avoid: Sequence[Box] = ()) -> None:
    """Write each label at the first of its places that is free and on the map; earlier labels choose first.

    Labels avoid the boxes in `avoid` (in metres) where they can, and the texts already on the map.
    """
    from matplotlib.patheffects import withStroke

    taken: list[Box] = [_in_pixels(axes, box) for box in avoid]
    taken += [_extent(text) for text in axes.texts]
    inside = _extent(axes)
    for label in labels:
        text = axes.text(
            0.0,
            0.0,
            "\n".join(shortened(line, _LONGEST, end=8) for line in label.text.splitlines()),
            fontsize=SMALL_SIZE,
            family=FONT,
            color=label.colour,
            weight=label.weight,
            ha="center",
            va="center",
            zorder=20,
            parse_math=False,
            path_effects=[withStroke(linewidth=2.6, foreground="#ffffffdd")],
        )
        extent = text.get_window_extent()
        best: tuple[float, Box, float, float, int] | None = None
        for x, y, rotation in _places(axes, label, extent.width, extent.height):
            across, up = (extent.width, extent.height) if rotation == 0 else (extent.height, extent.width)
            box = (x - across / 2, y - up / 2, x + across / 2, y + up / 2)
            cost = sum(_overlap(box, other) for other in taken) + (across * up - _overlap(box, inside))
            if best is None or cost < best[0] - 1e-6:
                best = (cost, box, x, y, rotation)
            if cost <= 1e-6:
                break
        if best is None or (best[0] > 1e-6 and not label.required):
            text.remove()
            continue
        _, box, x, y, rotation = best
        right, up = axes.transData.inverted().transform((x, y))
        text.set_position((float(right), float(up)))
        text.set_rotation(rotation)
        taken.append((box[0] - _GAP / 2, box[1] - _GAP / 2, box[2] + _GAP / 2, box[3] + _GAP / 2))


def _places(axes: Axes, label: Label, width: float, height: float) -> Iterator[tuple[float, float, int]]:
    """Centres in pixels, and rotations in degrees, in order of preference."""
    x0, y0, x1, y1 = _in_pixels(axes, label.box)
    middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
    beside = width / 2 + _GAP
    over = height / 2 + _GAP
    places: dict[str, tuple[float, float, int]] = {
        "above": (middle_x, y1 + over, 0),
        "below": (middle_x, y0 - over, 0),
        "right": (x1 + beside, middle_y, 0),
        "left": (x0 - beside, middle_y, 0),
        "along right": (x1 + over, middle_y, 270),
        "along left": (x0 - over, middle_y, 90),
        "inside": (middle_x, middle_y, 0),
        "corner": (x0 + beside, y1 - over, 0),
        "low corner": (x0 + beside, y0 + over, 0),
    }
    for side in label.sides:
        if side != "inside" or (width <= x1 - x0 and height <= y1 - y0):
            yield places[side]
    if not label.required:
        return
    for side in ("above", "below", "right", "left"):
        x, y, rotation = places[side]
        if side not in label.sides:
            yield x, y, rotation
    # Then one line further away, for names of things that stand close together.
    yield middle_x, y1 + over + height + _GAP, 0
    yield middle_x, y0 - over - height - _GAP, 0


def _extent(drawn: Artist) -> Box:
    box = drawn.get_window_extent()
    return (box.x0, box.y0, box.x1, box.y1)


def _in_pixels(axes: Axes, box: Box) -> Box:
    (x0, y0), (x1, y1) = axes.transData.transform([box[:2], box[2:]])
    return (x0, y0, x1, y1)


def _overlap(one: Any, other: Any) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)


#: With more exits or doors than this, names without a free place are left out; with far more doors, all of theirs.
_ALL_NAMED, _SOME_NAMED = 12, 40
#: Wall lines cover at most this share of a map.
_MOST_COVERED = 0.15


def draw_map(
    axes: Axes,
    scene: Scene,
    moment: WorldAt,
    view: Viewport,
    *,
    door_notes: Mapping[str, str] | None = None,
    hazard_notes: Mapping[str, str] | None = None,
) -> None:
    """Draw the world as it is at a moment, without obstacles and hazards.

    `door_notes` holds further text about doors, by name. Hazards get a name on the map if `hazard_notes` has them.
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
    # Names of regions matter least.
    obstacles = [_box_around(view.flat(centre)[0], radius) for centre, radius in moment.obstacles.values()]
    place_labels(axes, sorted(labels, key=lambda label: not label.required), avoid=obstacles)


def draw_obstacles(axes: Axes, obstacles: Collection[tuple[Place, float]], view: Viewport, scene: Scene) -> None:
    """Draw discs, or balls seen from one side; balls are transparent, as people pass in front of and behind them."""
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


def _draw_floor(
    axes: Axes, scene: Scene, moment: WorldAt, view: Viewport, door_notes: Mapping[str, str]
) -> list[Label]:
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
        if len(scene.doors) > _SOME_NAMED:
            continue
        note = door_notes.get(name, "open" if is_open else "closed")
        colour = style.OPEN_DOOR if is_open else style.CLOSED_DOOR
        upright = line.bounds[3] - line.bounds[1] > line.bounds[2] - line.bounds[0]
        sides = ("right", "left") if upright else ("above", "below")
        all_named = len(scene.doors) <= _ALL_NAMED
        text, box = f"{name}\n{note}" if all_named else name, _grown(line.bounds, 3 / view.scale)
        labels.append(Label(text=text, box=box, colour=colour, sides=sides, required=all_named))
    for name, wkt in scene.regions.items():
        shape = parse_wkt(wkt, f"region '{name}'")
        _fill(axes, shape, facecolor=style.REGION + "12", edgecolor=style.REGION + "90", zorder=2, dashed=True)
        corners = ("corner", "low corner", "inside")
        labels.append(Label(text=name, box=shape.bounds, colour=style.FAINT_INK, sides=corners, required=False))
    return labels


def _draw_exit(axes: Axes, name: str, shape: Any, is_open: bool, scene: Scene) -> Label:
    colour = style.EXIT if is_open else style.CLOSED_EXIT
    # Opaque, and above the walls: people pass through the wall behind an exit.
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
    """The best place for the name of an exit: on the side of the map where the exit is."""
    (left, bottom), (right, top) = scene.bounds
    width, height = box[2] - box[0], box[3] - box[1]
    near = 0.03 * max(right - left, top - bottom)
    # An exit in a corner belongs to the side along which it is longer.
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


def _draw_targets(axes: Axes, scene: Scene, moment: WorldAt, view: Viewport) -> list[Label]:
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


def _draw_box(axes: Axes, scene: Scene, view: Viewport) -> list[Label]:
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


def _draw_seams(axes: Axes, scene: Scene, view: Viewport) -> None:
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


def wall_width(shape: Any, view: Viewport, *, usual: float = 1.4) -> float:
    """How thick to draw walls [points]: thinner if they would cover too much of the floor."""
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
    """All rings as one path. Holes run in the opposite direction, which is how matplotlib recognises them."""
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
    """The polygons in a shape, including those in nested collections, which other programs write."""
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
