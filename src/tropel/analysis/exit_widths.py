"""How wide an exit is, for flows per metre.

An exit is an area, and people come in over the sides of it that are not walls. The width is the straight line across
that opening, from one end of it to the other: for a strip along a wall its length, whatever its depth; for the end of a
corridor the width of the corridor; for an exit in a corner the diagonal. An exit that stands free is entered from all
around, and its width is its circumference.
"""

from __future__ import annotations

import math

import shapely

from tropel.recording import Scene

#: Sides closer to a wall than this lie on it [m].
_ON_WALL = 1e-6


def exit_widths(scene: Scene) -> dict[str, float]:
    """The width of every exit of a scene [m]; NaN for one that is closed in by walls on all sides."""
    walls = [shapely.from_wkt(scene.walls_wkt)] if scene.walls_wkt else []
    floor = shapely.from_wkt(scene.walkable_wkt) if scene.walkable_wkt else None
    if floor is not None:
        walls.append(floor.boundary)
    solid = shapely.union_all(walls).buffer(_ON_WALL) if walls else shapely.Polygon()
    shapely.prepare(solid)
    return {name: _width(shapely.from_wkt(wkt), floor, solid) for name, wkt in scene.exits.items()}


def _width(area: shapely.Geometry, floor: shapely.Geometry | None, solid: shapely.Geometry) -> float:
    sides = area.boundary if floor is None else area.boundary.intersection(floor)
    opening = shapely.line_merge(shapely.union_all(sides.difference(solid)))
    spans = [
        part.length if part.is_closed else math.dist(part.coords[0], part.coords[-1])
        for part in shapely.get_parts(opening)
        if part.geom_type == "LineString" and part.length > 4 * _ON_WALL
    ]
    # To the tenth of a millimetre: the ends lack what lies on the wall.
    return round(float(sum(spans)), 4) if spans else math.nan
