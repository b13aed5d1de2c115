"""Generated floor plans for which the rooms that are connected are known from how they were drawn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import shapely

from tropel import Door, World

Point = tuple[float, float]


@dataclass
class School:
    """Rooms on both sides of a corridor with an exit at each end, and a door between each room and the corridor."""

    world: World
    rooms: dict[str, shapely.Polygon]
    doorways: dict[str, shapely.LineString]


def school(
    seed: int, *, rooms: int = 12, closed: tuple[str, ...] = (), widths: dict[str, float] | None = None
) -> School:
    """Rooms 'room 0', 'room 1', … with doors of the same names; `widths` [m] are of doors that are not random."""
    rng = np.random.default_rng(seed)
    sides = [rng.uniform(5.0, 9.0, rooms // 2), rng.uniform(5.0, 9.0, rooms - rooms // 2)]
    length, depth, corridor = max(s.sum() for s in sides), rng.uniform(5.0, 8.0), rng.uniform(2.0, 4.0)
    walls: list[list[Point]] = []
    doors: dict[str, Door] = {}
    areas: dict[str, shapely.Polygon] = {}
    lines: dict[str, shapely.LineString] = {}
    for side, along in enumerate(sides):
        y_wall, y_far = (depth, 0.0) if side == 0 else (depth + corridor, 2.0 * depth + corridor)
        x = 0.0
        for k, wide in enumerate(along):
            name = f"room {k + side * len(sides[0])}"
            end = length if k == len(along) - 1 else x + wide
            width = (widths or {}).get(name, rng.uniform(0.9, 1.8))
            begin = rng.uniform(x + 0.5, end - 0.5 - width)
            walls += [[(x, y_wall), (begin, y_wall)], [(begin + width, y_wall), (end, y_wall)]]
            walls += [[(end, y_wall), (end, y_far)]] if end < length else []
            doors[name] = Door([(begin, y_wall), (begin + width, y_wall)], open=name not in closed)
            lines[name] = shapely.LineString([(begin, y_wall), (begin + width, y_wall)])
            areas[name] = shapely.box(x, min(y_wall, y_far), end, max(y_wall, y_far))
            x = end
    world = World(
        shapely.box(0.0, 0.0, length, 2.0 * depth + corridor),
        walls=walls,
        doors=doors,
        exits={
            "west": shapely.box(0.0, depth, 0.8, depth + corridor),
            "east": shapely.box(length - 0.8, depth, length, depth + corridor),
        },
    )
    return School(world, areas, lines)


@dataclass
class Rooms:
    """Square rooms in rows; some neighbours have a gap in the wall between them, some a closed door in the gap."""

    size: float
    rows: int
    columns: int
    gaps: dict[tuple[tuple[int, int], tuple[int, int]], float] = field(default_factory=dict)  #: width [m]
    closed: set[tuple[tuple[int, int], tuple[int, int]]] = field(default_factory=set)

    def world(self) -> World:
        """The exit is in the middle of the first room."""
        walls, doors = [], {}
        for one, other in self._neighbours():
            begin, end = self._wall(one, other)
            pair = (one, other)
            if pair not in self.gaps:
                walls.append([begin, end])
                continue
            middle, half = (begin + end) / 2.0, (end - begin) / self.size * self.gaps[pair] / 2.0
            walls += [[begin, middle - half], [middle + half, end]]
            if pair in self.closed:
                doors[f"{one} to {other}"] = Door([middle - half, middle + half], open=False)
        box = shapely.box(0.0, 0.0, self.size * self.columns, self.size * self.rows)
        middle = self.size / 2.0
        out = shapely.box(middle - 0.6, middle - 0.6, middle + 0.6, middle + 0.6)
        return World(box, walls=[np.array(wall).tolist() for wall in walls], doors=doors, exits={"out": out})

    def centres(self) -> np.ndarray:
        rooms = [(x, y) for y in range(self.rows) for x in range(self.columns)]
        return (np.array(rooms) + 0.5) * self.size + np.array([0.9, 0.9])

    def connected(self, width: float) -> np.ndarray:
        """For each room whether a body of a width [m] gets from it to the first: a search from room to room."""
        reached, waiting = {(0, 0)}, deque([(0, 0)])
        ways = {pair for pair, gap in self.gaps.items() if gap >= width and pair not in self.closed}
        while waiting:
            here = waiting.popleft()
            for one, other in ways:
                for a, b in ((one, other), (other, one)):
                    if a == here and b not in reached:
                        reached.add(b)
                        waiting.append(b)
        return np.array([(x, y) in reached for y in range(self.rows) for x in range(self.columns)])

    def _neighbours(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        for y in range(self.rows):
            for x in range(self.columns):
                if x + 1 < self.columns:
                    yield (x, y), (x + 1, y)
                if y + 1 < self.rows:
                    yield (x, y), (x, y + 1)

    def _wall(self, one: tuple[int, int], other: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
        corner = self.size * np.array(other, dtype=float)
        along = np.array([0.0, 1.0]) if other[0] > one[0] else np.array([1.0, 0.0])
        return corner, corner + self.size * along


def random_rooms(seed: int, *, rows: int = 4, columns: int = 5, size: float = 4.0, widths: tuple[float, ...]) -> Rooms:
    rng = np.random.default_rng(seed)
    rooms = Rooms(size, rows, columns)
    for pair in rooms._neighbours():
        if rng.random() < 0.6:
            rooms.gaps[pair] = float(rng.choice(widths))
            if rng.random() < 0.2:
                rooms.closed.add(pair)
    return rooms
