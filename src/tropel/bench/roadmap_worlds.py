"""Worlds for the benchmark of roadmaps: GROUPS' cluttered field, and buildings of many rooms."""

from __future__ import annotations

import math

import numpy as np

from tropel.world import Door, Obstacle, Target, Waypoints, World

#: GROUPS' field in metres, how many obstacles of which some move, and where the leader goes from and to.
_FIELD, _STONES, _START, _GOAL = (6.0, 4.0), 100, (0.4, 0.4), (5.6, 3.6)
_TRAVEL, _SPEED, _GAP = 0.8, 0.25, 0.1


def cluttered_field(layout: int, *, moving: int) -> World:
    """A field of 6 × 4 m with 100 round obstacles, of which some move back and forth."""
    rng = np.random.default_rng(layout)
    places: list[np.ndarray] = []
    radii: list[float] = []
    while len(places) < _STONES:
        place, radius = rng.uniform((0.0, 0.0), _FIELD), float(rng.uniform(0.06, 0.14))
        clear = [math.dist(place, end) > 0.3 + radius for end in (_START, _GOAL)]
        clear += [math.dist(place, other) > radius + wide + _GAP for other, wide in zip(places, radii, strict=True)]
        if all(clear):
            places.append(place)
            radii.append(radius)
    obstacles = {}
    for k, (place, radius) in enumerate(zip(places, radii, strict=True)):
        if k >= moving:
            obstacles[f"stone {k}"] = Obstacle(radius=radius, position=tuple(place.tolist()))
            continue
        angle = rng.uniform(0.0, 2.0 * math.pi)
        end = np.clip(place + _TRAVEL * np.array([math.cos(angle), math.sin(angle)]), 0.1, np.array(_FIELD) - 0.1)
        motion = Waypoints(points=(tuple(place.tolist()), tuple(end.tolist())), speed=_SPEED)
        obstacles[f"cart {k}"] = Obstacle(radius=radius, motion=motion)
    area = [(0.0, 0.0), (_FIELD[0], 0.0), _FIELD, (0.0, _FIELD[1])]
    return World(area, obstacles=obstacles, targets={"goal": Target(position=_GOAL, radius=0.1)})


def building(side: int, *, room: float = 5.0, door: float = 1.4) -> World:
    """A square building of side × side rooms, each joined to its neighbours by doors."""
    walls: list[list[tuple[float, float]]] = []
    doors: dict[str, Door] = {}
    half = 0.5 * door
    for k in range(1, side):
        for j in range(side):
            middle, begin, end, at = (j + 0.5) * room, j * room, (j + 1) * room, k * room
            walls += [[(at, begin), (at, middle - half)], [(at, middle + half), (at, end)]]
            doors[f"east {k} {j}"] = Door([(at, middle - half), (at, middle + half)], open=True)
            walls += [[(begin, at), (middle - half, at)], [(middle + half, at), (end, at)]]
            doors[f"north {j} {k}"] = Door([(middle - half, at), (middle + half, at)], open=True)
    far = side * room
    area = [(0.0, 0.0), (far, 0.0), (far, far), (0.0, far)]
    return World(area, walls=walls, doors=doors, targets={"goal": Target(position=(far - 1.5, far - 1.5), radius=0.5)})


def start_of_field() -> tuple[float, float]:
    return _START
