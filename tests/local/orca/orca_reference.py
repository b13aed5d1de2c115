"""ORCA by definition and brute force, in plain NumPy: one agent at a time, all candidates for the best velocity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
#: A half-plane: all v with n · v ≥ b.
Line = tuple[Floats, float]


def collides(p: Floats, v: Floats, contact: float, horizon: float) -> bool:
    """Whether a point that moves with the velocity v comes nearer to p than `contact` within the horizon."""
    when = min(max(float(p @ v) / max(float(v @ v), 1e-300), 0.0), horizon)
    return float(np.linalg.norm(when * v - p)) < contact


def nearest_on_border(p: Floats, v: Floats, contact: float, horizon: float) -> tuple[Floats, Floats]:
    """The nearest point to v on the border of the velocity obstacle, and the unit vector that leads out there.

    The border is the arc of the disc around p / horizon that faces zero, and the tangents from zero beyond the arc.
    """
    away = float(np.linalg.norm(p))
    centre, size = p / horizon, contact / horizon
    bearing, half = math.atan2(p[1], p[0]), math.asin(contact / away)
    found = []
    outwards = (v - centre) / np.linalg.norm(v - centre)
    turned = abs((math.atan2(-outwards[1], -outwards[0]) - bearing + math.pi) % (2.0 * math.pi) - math.pi)
    if turned <= math.pi / 2.0 - half:
        found.append((centre + size * outwards, outwards))
    for side in (1.0, -1.0):
        along = np.array([math.cos(bearing + side * half), math.sin(bearing + side * half)])
        normal = side * np.array([-along[1], along[0]])
        begin = math.sqrt(away * away - contact * contact) / horizon
        found.append((max(float(v @ along), begin) * along, normal))
    return min(found, key=lambda pair: float(np.linalg.norm(pair[0] - v)))


def disc_line(p: Floats, v: Floats, other: Floats, contact: float, *, horizon: float, dt: float, share: float) -> Line:
    """The half-plane of a body at the offset p that moves with the velocity `other`."""
    relative = v - other
    if np.linalg.norm(p) > contact:
        point, normal = nearest_on_border(p, relative, contact, horizon)
    else:
        outwards = relative - p / dt
        normal = outwards / np.linalg.norm(outwards)
        point = p / dt + contact / dt * normal
    return normal, float(normal @ (v + share * (point - relative)))


def wall_line(offset: Floats, radius: float, horizon: float) -> Line:
    """The half-plane of a wall whose nearest point is at the offset."""
    away = float(np.linalg.norm(offset))
    return -offset / away, -max(away - radius, 0.0) / horizon


def crossings(normals: Floats, levels: Floats, speed: float) -> Floats:
    """Where the borders cross each other, and the circle."""
    found = []
    for i, j in combinations(range(len(normals)), 2):
        pair = normals[[i, j]]
        if abs(np.linalg.det(pair)) > 1e-9:
            found.append(np.linalg.solve(pair, levels[[i, j]]))
    for normal, level in zip(normals, levels, strict=True):
        inside = speed**2 - level**2
        if inside >= 0.0:
            along = math.sqrt(inside) * np.array([-normal[1], normal[0]])
            found += [level * normal + along, level * normal - along]
    return np.array(found).reshape(-1, 2)


def best_velocity(walls: Sequence[Line], others: Sequence[Line], speed: float, wanted: Floats) -> tuple[Floats, float]:
    """The nearest velocity to the wanted one within all half-planes, or else the one that breaks the worst of those of
    `others` least; and how far that is broken."""
    lines = [*walls, *others]
    normals, levels = np.array([n for n, _ in lines]).reshape(-1, 2), np.array([b for _, b in lines])
    length = float(np.linalg.norm(wanted))
    aim = wanted * min(1.0, speed / length) if length > 0.0 else wanted
    feet = wanted + (levels - normals @ wanted)[:, None] * normals
    places = np.vstack([[aim], feet, crossings(normals, levels, speed)])
    places = places[np.linalg.norm(places, axis=1) <= speed * (1.0 + 1e-9)]
    allowed = places[(places @ normals.T >= levels - 1e-9 * speed).all(axis=1)]
    if len(allowed):
        return allowed[np.argmin(np.linalg.norm(allowed - wanted, axis=1))], 0.0
    # Where two half-planes are broken equally far is a line; the best velocity is where such lines or walls cross.
    equal = [(a - c, b - d) for (a, b), (c, d) in combinations(others, 2) if np.linalg.norm(a - c) > 1e-9]
    borders = [(n / np.linalg.norm(n), b / np.linalg.norm(n)) for n, b in equal] + list(walls)
    straight = [speed * n for n, _ in others]
    crossed = crossings(np.array([n for n, _ in borders]), np.array([b for _, b in borders]), speed)
    places = np.vstack([*straight, crossed])
    places = places[np.linalg.norm(places, axis=1) <= speed * (1.0 + 1e-9)]
    for normal, level in walls:
        places = places[places @ normal >= level - 1e-9 * speed]
    broken = np.max([level - places @ normal for normal, level in others], axis=0)
    return places[np.argmin(broken)], float(broken.min())
