"""Rooms and portals of a building for bodies of one radius, found from the floor plan.

Where the centre of a body can be while all doors are shut falls into pieces: the rooms. Opening a door adds the places
that only the door kept free; each piece of those is a portal to the rooms that it touches. Doors closer to each other
than a body is wide have their portals together, for each set of them that is open. So two rooms are connected in the
graph of portals exactly when a body can get from one to the other. Regions given by hand cut rooms further; where they
meet is a portal without a door.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import GeometryError
from tropel.planning.roadmap.graph import Graph
from tropel.world import World
from tropel.world.shapes import Polygonal

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Corners of grown shapes are polygons with this many segments per quarter of a circle.
_QUARTER = 16
#: Two pieces touch when they are no farther apart than this share of the radius.
_TOUCH = 1e-3
_LEAST_RADIUS = 1e-3


@dataclass(frozen=True, eq=False, kw_only=True)
class Portal:
    """A passage between rooms."""

    point: Floats  #: (2,) a place in it [m]
    rooms: tuple[int, ...]
    doors: frozenset[int]  #: the doors of its cluster that are open when it is there; empty for a portal without door
    cluster: int  #: -1 for a portal without door


@dataclass(eq=False, kw_only=True)
class Plan:
    """Rooms, portals, and the graph over portals."""

    rooms: list[Polygonal]
    portals: list[Portal]
    clusters: list[tuple[int, ...]]  #: numbers of the doors in each
    graph: Graph = field(init=False)
    room_of_edge: Ints = field(init=False)
    _tree: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._tree = shapely.STRtree(self.rooms)
        pairs, rooms = [], []
        for room in range(len(self.rooms)):
            own = [number for number, portal in enumerate(self.portals) if room in portal.rooms]
            for pair in itertools.combinations(own, 2):
                pairs.append(pair)
                rooms.append(room)
        points = np.array([portal.point for portal in self.portals]).reshape(-1, 2)
        edges = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.graph = Graph(nodes=points, edges=edges, doors=np.full(edges.shape, -1, dtype=np.int32))
        self.room_of_edge = np.array(rooms, dtype=np.int64)
        self._of_room = [
            np.array([n for n, portal in enumerate(self.portals) if room in portal.rooms], dtype=np.int64)
            for room in range(len(self.rooms))
        ]

    def portals_of(self, room: int) -> Ints:
        return self._of_room[room]

    def rooms_at(self, point: Floats, within: float) -> list[int]:
        """The room that a point is in; near a wall or in a doorway, rooms within a distance [m], the nearest first."""
        place = shapely.Point(point)
        inside = self._tree.query(place, predicate="within")
        if len(inside):
            return [int(inside[0])]
        near = np.unique(self._tree.query(place, predicate="dwithin", distance=within))
        away = shapely.distance([self.rooms[k] for k in near], place)
        return [int(near[k]) for k in np.argsort(away, kind="stable")]

    def usable(self, shut: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which portals are there with these doors shut."""
        open_doors = [frozenset(door for door in cluster if not shut[door]) for cluster in self.clusters]
        return np.array(
            [portal.cluster < 0 or portal.doors == open_doors[portal.cluster] for portal in self.portals],
            dtype=np.bool_,
        )


def read_floor_plan(world: World, radius: float, regions: Sequence[str] = ()) -> Plan:
    """Find the rooms and portals of a world for bodies that keep this radius free."""
    if world.dim != 2 or world.walkable is None:
        raise GeometryError("rooms are found in a 2D world with a walkable area; use a roadmap in this world")
    radius = max(radius, _LEAST_RADIUS)
    lines = [door.line for door in world.doors.values()]
    _check_doors(world, radius)
    still = [ob for ob in world.obstacles.values() if ob.motion is None]
    discs = [shapely.Point(ob.position).buffer(ob.radius + radius, quad_segs=_QUARTER) for ob in still]
    walls = [wall.buffer(radius, quad_segs=_QUARTER) for wall in world.walls]
    # Where a body can be if all doors are open, and what each shut door takes away.
    free = world.walkable.buffer(-radius, quad_segs=_QUARTER) - shapely.union_all([*discs, *walls])
    taken = [line.buffer(radius, quad_segs=_QUARTER) for line in lines]
    pieces = _pieces(free - shapely.union_all(taken), radius)
    pieces, openings = _cut(world, pieces, regions)
    if not pieces:
        raise GeometryError(f"no room is wide enough for a body that keeps {radius:.3g} m free on all sides")
    clusters = _clusters(lines, radius)
    portals = [*openings]
    tree = shapely.STRtree(pieces)
    for number, cluster in enumerate(clusters):
        for size in range(1, len(cluster) + 1):
            for doors in itertools.combinations(cluster, size):
                shut = [taken[k] for k in range(len(lines)) if k not in doors and _near(lines, k, cluster, radius)]
                way = shapely.union_all([taken[k] for k in doors]) & free
                for piece in _pieces(way - shapely.union_all(shut), radius):
                    rooms = np.unique(tree.query(piece, predicate="dwithin", distance=_TOUCH * radius))
                    if len(rooms) > 1:
                        point = _place_in(piece, [lines[k] for k in doors])
                        portals.append(
                            Portal(point=point, rooms=tuple(map(int, rooms)), doors=frozenset(doors), cluster=number)
                        )
    return Plan(rooms=pieces, portals=portals, clusters=clusters)


def _pieces(area: Any, radius: float) -> list[Polygonal]:
    """The polygons of an area, without slivers that rounding made."""
    return [part for part in shapely.get_parts(area) if part.geom_type == "Polygon" and part.area > 1e-6 * radius**2]


def _near(lines: Sequence[Any], door: int, cluster: tuple[int, ...], radius: float) -> bool:
    return any(shapely.dwithin(lines[door], lines[other], 4.0 * radius) for other in cluster)


def _clusters(lines: Sequence[Any], radius: float) -> list[tuple[int, ...]]:
    """Doors that a body can touch at the same time belong together."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if not lines:
        return []
    one, other = shapely.STRtree(lines).query(lines, predicate="dwithin", distance=2.0 * radius)
    matrix = coo_array((np.ones(len(one)), (one, other)), shape=(len(lines), len(lines)))
    count, label = connected_components(matrix, directed=False)
    clusters = [tuple(np.flatnonzero(label == k).tolist()) for k in range(count)]
    for cluster in clusters:
        if len(cluster) > 6:
            raise GeometryError(
                f"{len(cluster)} doors are so close to each other that a body of {radius:.3g} m touches several of "
                f"them; join them to wider doors"
            )
    return clusters


def _place_in(piece: Polygonal, doors: Sequence[Any]) -> Floats:
    """A place in a portal, in the middle of a door if that is in it."""
    for door in doors:
        middle = door.interpolate(0.5, normalized=True)
        if piece.covers(middle):
            return np.array([middle.x, middle.y])
        across = shapely.intersection(piece, door)
        if across.length > 0.0:
            longest = max(shapely.get_parts(across), key=lambda part: part.length)
            at = longest.interpolate(0.5, normalized=True)
            return np.array([at.x, at.y])
    at = piece.representative_point()
    return np.array([at.x, at.y])


def _cut(world: World, pieces: list[Polygonal], regions: Sequence[str]) -> tuple[list[Polygonal], list[Portal]]:
    """Cut rooms along regions that are given by hand; where the parts meet are portals without a door."""
    if not regions:
        return pieces, []
    areas = [world.region(name) for name in regions]
    rest = shapely.union_all(areas)
    cut = [part for piece in pieces for area in [*areas, None]
           for part in shapely.get_parts(piece - rest if area is None else piece & area)
           if part.geom_type == "Polygon" and part.area > 0.0]  # fmt: skip
    openings = []
    one, other = shapely.STRtree(cut).query(cut, predicate="intersects")
    for a, b in zip(one.tolist(), other.tolist(), strict=True):
        if a < b:
            shared = shapely.line_merge(shapely.intersection(cut[a].boundary, cut[b].boundary))
            for line in shapely.get_parts(shared):
                if line.length > 0.0:
                    at = line.interpolate(0.5, normalized=True)
                    openings.append(Portal(point=np.array([at.x, at.y]), rooms=(a, b), doors=frozenset(), cluster=-1))
    return cut, openings


def _check_doors(world: World, radius: float) -> None:
    """Raise if a door stands in no wall: bodies would walk around it."""
    assert world.walkable is not None
    for name, door in world.doors.items():
        others = [world.walkable.boundary, *world.walls, *(d.line for n, d in world.doors.items() if n != name)]
        solid = shapely.union_all(others)
        for end in (door.line.coords[0], door.line.coords[-1]):
            away = shapely.distance(solid, shapely.Point(end))
            if away >= 2.0 * radius:
                raise GeometryError(
                    f"door '{name}' stands in no wall: its end at ({end[0]:.4g}, {end[1]:.4g}) is {away:.3g} m from "
                    f"the nearest wall, and bodies walk around it; let it reach from wall to wall"
                )
