"""Drawing the world: first what never changes, then doors, exits, obstacles, hazards and targets.

The fixed part is the ground, the walls, the names of exits and regions, and the box of a 3D world. The others are drawn
again only when they have changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import shapely

from tropel.pictures import style
from tropel.recording.scene import Scene
from tropel.viewer.frame import Discs, Frame, in_space
from tropel.viewer.shapes3d import (
    EXITS,
    GROUND,
    HAZARDS,
    REGIONS,
    TARGETS,
    along_lines,
    filled,
    instance_colours,
    lines_of,
    no_turns,
    rgb,
    rgb_array,
    unit_ball,
    unit_box,
    unit_prism,
    unit_ring,
)

#: Thickness and height of walls: as a share of the world's extent, at most this many metres, and at most this share of
#: the space between walls. Taller walls between rows of seats would hide the people sitting there.
_WALL_WIDTH, _WIDEST_WALL, _WIDTH_OF_ROOM = 0.004, 0.25, 0.15
_WALL_HEIGHT, _HIGHEST_WALL, _HEIGHT_OF_ROOM = 0.02, 1.2, 0.6
_LABEL_HEIGHT = 0.3
#: More names would hide the people.
_MOST_NAMED_REGIONS = 24


def extent(scene: Scene) -> float:
    """The longest edge of the world [m]."""
    low, high = np.array(scene.bounds)
    return max(float((high - low).max()), 1e-3)


def wall_width(scene: Scene) -> float:
    return min(_WALL_WIDTH * extent(scene), _WIDEST_WALL, _WIDTH_OF_ROOM * _room_between_walls(scene))


def wall_height(scene: Scene) -> float:
    return min(_WALL_HEIGHT * extent(scene), _HIGHEST_WALL, _HEIGHT_OF_ROOM * _room_between_walls(scene))


def _walls(scene: Scene) -> list[Any]:
    return [shapely.from_wkt(wkt) for wkt in (scene.walkable_wkt, scene.walls_wkt) if wkt]


def _room_between_walls(scene: Scene) -> float:
    """Area per length of wall [m]."""
    length = sum(wall.length for wall in _walls(scene))
    return float(shapely.from_wkt(scene.area_wkt()).area / length) if length > 0.0 else math.inf


def draw_world(server: Any, scene: Scene) -> None:
    """Draw what stays the same for the whole run."""
    if scene.dim == 3:
        _draw_box(server, scene)
        return
    ground = shapely.from_wkt(scene.area_wkt())
    add_filled(server, "/world/ground", ground, GROUND, style.FLOOR)
    lines = np.concatenate([np.empty((0, 4)), *(lines_of(wall) for wall in _walls(scene))])
    if len(lines):
        turns, places, sizes = along_lines(lines, width=wall_width(scene), height=wall_height(scene))
        add_boxes(server, "/world/walls", turns, places, sizes, rgb_array([style.WALL] * len(lines)))
    for name, wkt in scene.regions.items():
        region = shapely.from_wkt(wkt)
        edges = np.concatenate([np.empty((0, 4)), lines_of(region)]).reshape(-1, 2, 2)
        points = np.concatenate([edges, np.full((*edges.shape[:2], 1), REGIONS)], axis=-1)
        server.scene.add_line_segments(
            f"/world/regions/{_part(name)}", points, colors=rgb(style.REGION), thickness=1.0, thickness_units="screen"
        )
        if len(scene.regions) <= _MOST_NAMED_REGIONS and not region.is_empty:
            left, _, _, top = region.bounds
            inset = 0.004 * extent(scene)
            server.scene.add_label(
                f"/world/region names/{_part(name)}",
                name,
                position=(left + inset, top - inset, REGIONS),
                anchor="top-left",
                font_screen_scale=0.7,
            )
    for name, wkt in scene.exits.items():
        centre = shapely.from_wkt(wkt).representative_point()
        server.scene.add_label(
            f"/world/exit names/{_part(name)}",
            name,
            position=(centre.x, centre.y, EXITS + _LABEL_HEIGHT),
            anchor="center-center",
            font_screen_scale=0.8,
        )


def _draw_box(server: Any, scene: Scene) -> None:
    """The edges of a 3D world, and a grid on its floor for orientation."""
    low, high = np.array(scene.bounds)
    corner = np.array([(x, y, z) for z in (0, 1) for y in (0, 1) for x in (0, 1)])
    points = low + corner * (high - low)
    pairs = [(a, b) for a in range(8) for b in range(a) if np.abs(corner[a] - corner[b]).sum() == 1]
    edges = np.array([(points[a], points[b]) for a, b in pairs])
    server.scene.add_line_segments("/world/box", edges, colors=rgb(style.WALL), thickness=1.5, thickness_units="screen")
    middle = 0.5 * (low + high)
    cell = 10.0 ** math.floor(math.log10(extent(scene) / 4.0))
    server.scene.add_grid(
        "/world/grid",
        width=float(high[0] - low[0]),
        height=float(high[1] - low[1]),
        cell_size=cell,
        section_size=5.0 * cell,
        position=(middle[0], middle[1], low[2]),
        plane="xy",
    )


def add_filled(server: Any, name: str, shape: Any, height: float, colour: str, *, opacity: float | None = None) -> Any:
    """Add a polygon at a height; None if it is empty."""
    mesh = filled(shape, height)
    if mesh is None:
        return None
    return server.scene.add_mesh_simple(
        name, *mesh, color=rgb(colour), opacity=opacity, cast_shadow=False, receive_shadow=False, side="double"
    )


def add_boxes(server: Any, name: str, turns: Any, places: Any, sizes: Any, colours: Any) -> Any:
    """Many boxes as one node."""
    return server.scene.add_batched_meshes_simple(
        name,
        *unit_box(),
        batched_wxyzs=turns,
        batched_positions=places,
        batched_scales=sizes,
        batched_colors=instance_colours(colours),
        lod="off",
        cast_shadow=False,
        receive_shadow=False,
    )


def _part(name: str) -> str:
    """A name as one part of a path in the scene tree."""
    return name.replace("/", "∕")


#: Further labels of obstacles, hazards and targets are left out.
_MOST_LABELS = 60


class ThingsDrawing:
    """Keeps the changing things on a page up to date. `draggable` is called with every node that may be dragged."""

    def __init__(
        self, server: Any, scene: Scene, *, draggable: Callable[[Any, str, list[str]], None] | None = None
    ) -> None:
        self._server = server
        self._scene = scene
        self._wall_width, self._wall_height = wall_width(scene), wall_height(scene)
        self._draggable = draggable
        self._drawn: dict[str, Any] = {}
        self._labels: dict[str, tuple[list[str], list[Any]]] = {}  # texts and their nodes, by kind of thing
        self._exit_shapes = {name: shapely.from_wkt(wkt) for name, wkt in scene.exits.items()}
        self._door_lines = {name: lines_of(shapely.from_wkt(door["wkt"])) for name, door in scene.doors.items()}
        self._batches: dict[str, tuple[Any, Any]] = {}  # what a node stands for, and the node
        self._drags: dict[str, tuple[Any, Any]] = {}

    def draw(self, frame: Frame) -> None:
        if self._changed("doors", frame.doors):
            self._draw_doors(frame.doors)
        if self._changed("exits", frame.exits):
            self._draw_exits(frame.exits)
        for what, discs, draw in (
            ("obstacles", frame.obstacles, self._draw_obstacles),
            ("hazards", frame.hazards, self._draw_hazards),
            ("targets", frame.targets, self._draw_targets),
        ):
            if self._changed(what, _key(discs)):
                draw(discs)

    def _changed(self, what: str, now: Any) -> bool:
        changed: bool = self._drawn.get(what) != now
        self._drawn[what] = now
        return changed

    def _draw_doors(self, doors: dict[str, bool]) -> None:
        lines, colours, high = [], [], []
        for name, is_open in doors.items():
            pieces = self._door_lines[name]
            lines.append(pieces)
            colours += [style.OPEN_DOOR if is_open else style.CLOSED_DOOR] * len(pieces)
            # An open door is a threshold, a closed one is as high as the walls, so colour is not the only sign.
            high += [0.08 if is_open else 1.2] * len(pieces)
        if not lines:
            return
        turns, places, sizes = along_lines(np.concatenate(lines), width=1.6 * self._wall_width, height=1.0)
        sizes[:, 2] = np.array(high) * self._wall_height
        add_boxes(self._server, "/world/doors", turns, places, sizes, rgb_array(colours))

    def _draw_exits(self, exits: dict[str, bool]) -> None:
        for number, (name, is_open) in enumerate(exits.items()):
            colour = style.exit_fill(style.EXIT if is_open else style.CLOSED_EXIT)
            add_filled(self._server, f"/world/exits/{number}", self._exit_shapes[name], EXITS, colour)

    def _draw_obstacles(self, discs: Discs) -> None:
        colours = rgb_array([style.OBSTACLE] * len(discs.names))
        node = self._add_round("/things/obstacles", discs, discs.radius, colours, height=self._wall_height)
        self._let_drag(node, "obstacle", discs)

    def _draw_hazards(self, discs: Discs) -> None:
        kinds = [style.HAZARDS.get(kind, style.OTHER_HAZARD) for kind in discs.kinds]
        flat = self._scene.dim == 2
        node = self._add_round("/things/hazards", discs, discs.radius, rgb_array(kinds), height=0.1)
        self._let_drag(node, "hazard", discs)
        if discs.outer is not None:
            mesh = unit_ring(inner=0.97) if flat else unit_ball()
            self._add_batch(
                "/things/hazards outer", mesh, discs, discs.outer, rgb_array(kinds), opacity=None if flat else 0.15
            )
        # Below the disc, because a target that is in the same place, as where a fire is put out, has its name above.
        self._label("hazards", discs, -discs.radius, anchor="top-center")

    def _draw_targets(self, discs: Discs) -> None:
        least = 0.006 * extent(self._scene)
        colours = rgb_array([style.TARGET] * len(discs.names))
        mesh = unit_ring(inner=0.7) if self._scene.dim == 2 else unit_ball()
        radius = np.maximum(discs.radius, least)
        node = self._add_batch("/things/targets", mesh, discs, radius, colours, lift=TARGETS)
        self._let_drag(node, "target", discs)
        self._label("targets", discs, radius, anchor="bottom-center")

    def _add_round(self, name: str, discs: Discs, radius: Any, colours: Any, *, height: float) -> Any:
        """Balls in space, low columns in the plane."""
        if self._scene.dim == 3:
            return self._add_batch(name, unit_ball(), discs, radius, colours)
        return self._add_batch(name, unit_prism(), discs, radius, colours, height=height)

    def _add_batch(
        self,
        name: str,
        mesh: Any,
        discs: Discs,
        radius: Any,
        colours: Any,
        *,
        height: float | None = None,
        lift: float = HAZARDS,
        opacity: float | None = None,
    ) -> Any:
        if not len(discs.names):
            self._server.scene.remove_by_name(name)
            self._batches.pop(name, None)
            return None
        places = in_space(discs.position).copy()
        sizes = np.repeat(np.asarray(radius, dtype=np.float32)[:, None], 3, axis=1)
        if self._scene.dim == 2:
            places[:, 2] = 0.0 if height is not None else lift
            sizes[:, 2] = 1.0 if height is None else height
        stands_for = (tuple(discs.names), colours.tobytes())
        before, node = self._batches.get(name, (None, None))
        if before == stands_for:
            # A thing that only moves or grows keeps its node; otherwise one that is being dragged would be lost.
            node.batched_positions, node.batched_scales = places, sizes
            return node
        node = self._server.scene.add_batched_meshes_simple(
            name,
            *mesh,
            batched_wxyzs=no_turns(len(places)),
            batched_positions=places,
            batched_scales=sizes,
            batched_colors=instance_colours(colours),
            opacity=opacity,
            lod="off",
            cast_shadow=False,
            receive_shadow=False,
            side="double",
        )
        self._batches[name] = stands_for, node
        return node

    def _let_drag(self, node: Any, what: str, discs: Discs) -> None:
        names = tuple(discs.names)
        if node is not None and self._draggable is not None and self._drags.get(what) != (node, names):
            self._drags[what] = node, names
            self._draggable(node, what, list(names))

    def _label(self, what: str, discs: Discs, away: Any, *, anchor: Any) -> None:
        """Write the names of things so far north of them, or above them in space [m]; next to them, not over them."""
        parent = f"/things/{what} names"
        places = in_space(discs.position).copy()
        places[:, 1 if self._scene.dim == 2 else 2] += away
        texts = list(discs.names[:_MOST_LABELS])
        before, labels = self._labels.get(what, ([], []))
        if before == texts:
            for label, place in zip(labels, places, strict=False):
                label.position = place
            return
        self._server.scene.remove_by_name(parent)
        self._labels[what] = (
            texts,
            [
                self._server.scene.add_label(
                    f"{parent}/{number}", text, position=place, anchor=anchor, font_screen_scale=0.8
                )
                for number, (text, place) in enumerate(zip(texts, places, strict=False))
            ],
        )


def _key(discs: Discs) -> tuple[Any, ...]:
    outer = b"" if discs.outer is None else discs.outer.tobytes()
    return tuple(discs.names), tuple(discs.kinds), discs.position.tobytes(), discs.radius.tobytes(), outer
