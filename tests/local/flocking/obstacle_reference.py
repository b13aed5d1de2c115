"""Steering around obstacles in plain NumPy, one boid after the other, to compare `local/flocking/obstacles.py` with."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

TURNS = np.radians([20.0, 40.0, 60.0, 80.0])


@dataclass
class Ground:
    """Round obstacles, walls of 2D, and the faces of a 3D box."""

    discs: list[tuple[Floats, float]] = field(default_factory=list)
    walls: list[tuple[Floats, Floats]] = field(default_factory=list)
    box: tuple[Floats, Floats] | None = None

    def way_to_disc(self, x: Floats, e: Floats, centre: Floats, contact: float) -> float:
        """How far along e the distance to the centre becomes `contact`; 0 where it is less already and shrinks."""
        ahead = e @ (centre - x)
        if ahead <= 0.0 or (centre - x) @ (centre - x) - ahead**2 > contact**2:
            return np.inf
        times = np.roots([1.0, -2.0 * ahead, (centre - x) @ (centre - x) - contact**2])
        return np.inf if np.iscomplex(times).any() else max(float(times.real.min()), 0.0)

    def way_to_wall(self, x: Floats, e: Floats, a: Floats, b: Floats, body: float) -> float:
        nearest = a + np.clip((x - a) @ (b - a) / ((b - a) @ (b - a)), 0.0, 1.0) * (b - a)
        if np.linalg.norm(nearest - x) <= body:
            return 0.0 if (nearest - x) @ e > 0.0 else np.inf
        ways = [self.way_to_disc(x, e, end, body) for end in (a, b)]
        across = np.array([a[1] - b[1], b[0] - a[0]]) / np.linalg.norm(b - a)
        for side in (across, -across):
            # x + t e = a + side · body + u (b - a)
            matrix = np.stack([e, a - b], axis=1)
            if abs(np.linalg.det(matrix)) > 1e-12:
                t, u = np.linalg.solve(matrix, a + body * side - x)
                if t >= 0.0 and 0.0 <= u <= 1.0:
                    ways.append(float(t))
        return min(ways)

    def first_disc(self, x: Floats, e: Floats, body: float) -> tuple[float, Floats | None]:
        ways = [(self.way_to_disc(x, e, centre, body + size), centre) for centre, size in self.discs]
        return min(ways, key=lambda way: way[0], default=(np.inf, None))

    def first_face(self, x: Floats, e: Floats, body: float) -> tuple[float, Floats | None]:
        """The way to the first face of the box, and the direction away from it."""
        found: list[tuple[float, Floats | None]] = [(np.inf, None)]
        for axis in range(len(x)) if self.box is not None else ():
            low, high = self.box[0][axis], self.box[1][axis]
            if e[axis] != 0.0:
                room = high - body - x[axis] if e[axis] > 0.0 else x[axis] - low - body
                away = np.zeros(len(x))
                away[axis] = -np.sign(e[axis])
                found.append((max(room, 0.0) / abs(e[axis]), away))
        return min(found, key=lambda way: way[0])

    def free_way(self, x: Floats, e: Floats, body: float) -> float:
        walls = [self.way_to_wall(x, e, a, b, body) for a, b in self.walls]
        return min([self.first_disc(x, e, body)[0], self.first_face(x, e, body)[0], *walls])


def across(direction: Floats, e: Floats) -> Floats:
    """The part of a direction across e, as a unit vector; to the right where there is none."""
    rest = direction - (direction @ e) * e
    if np.linalg.norm(rest) < 1e-9:
        rest = np.zeros(len(e))
        rest[:2] = e[1], -e[0]
    return rest / np.linalg.norm(rest)


def steering(
    x: Floats, v: Floats, wish: Floats, ground: Ground, *, radius: float, reach: float, look_ahead: float
) -> Floats:
    speed = np.linalg.norm(v)
    e, sight, body = v / speed, min(reach, look_ahead * speed), 2.0 * radius
    free = ground.free_way(x, e, body)
    if free >= sight:
        return np.zeros(len(x))
    urgency = 1.0 - free / sight
    if wish.any() and ground.free_way(x, wish / np.linalg.norm(wish), body) >= sight:
        return urgency * across(wish, e)
    way, centre = ground.first_disc(x, e, body)
    away = x - centre if centre is not None and way < sight else np.zeros(len(x))
    face, back = ground.first_face(x, e, body)
    if back is not None and face < min(way, sight):
        away = back
    one = across(away, e)
    sides = [one, -one]
    if len(x) == 3:
        sides += [np.cross(e, one), -np.cross(e, one)]
    best, chosen = -1.0, one
    for angle in TURNS:
        for side in sides:
            way = min(ground.free_way(x, np.cos(angle) * e + np.sin(angle) * side, body), sight)
            if way > best + 1e-9 * sight:
                best, chosen = way, side
        if best >= sight:
            break
    return urgency * chosen
