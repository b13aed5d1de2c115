"""What of the world never changes: the ground, walls, exits' and regions' places, the box of a 3D world."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import shapely

from tropel.pictures import style
from tropel.recording.scene import Scene
from tropel.viewer.shapes3d import (
    EXITS,
    GROUND,
    REGIONS,
    along_lines,
    filled,
    instance_colours,
    lines_of,
    rgb,
    rgb_array,
    unit_box,
)

#: Walls, as thick and as high as they are drawn, in parts of the world's extent, at most so many metres, and at most in
#: parts of the room between walls: those of rows of seats would hide who sits there.
_WALL_WIDTH, _WIDEST_WALL, _WIDTH_OF_ROOM = 0.004, 0.25, 0.15
_WALL_HEIGHT, _HIGHEST_WALL, _HEIGHT_OF_ROOM = 0.02, 1.2, 0.6
_LABEL_HEIGHT = 0.3


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
    """Draw what stays as it is for the whole run."""
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
    """The edges of a 3D world, and a grid on its floor for the eye."""
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
    """A polygon lying at a height, or None where there is none."""
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
    """A name as one part of a path in the scene's tree."""
    return name.replace("/", "∕")
