"""The time gap that people keep, written down a second time: plain NumPy, pair by pair, in the open."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NO_GOAL

Floats = NDArray[np.float64]


def crowd(seed: int, count: int = 50, side: float = 7.0) -> dict[str, Floats]:
    """People of all kinds, some of them in contact, some of them oncoming."""
    draws = np.random.default_rng(seed)
    angle, faces = draws.uniform(0, 2 * math.pi, count), draws.uniform(0, 2 * math.pi, count)
    heading = np.column_stack([np.cos(faces), np.sin(faces)])
    return {
        "position": draws.uniform(0, side, (count, 2)),
        "directions": np.column_stack([np.cos(angle), np.sin(angle)]) * draws.choice([0.6, 1.0], count)[:, None],
        "velocity": heading * draws.uniform(0.0, 1.5, count)[:, None],
        "heading": heading,
        "radius": draws.uniform(0.15, 0.25, count),
        "desired_speed": draws.uniform(0.6, 1.8, count),
        "sense_radius": draws.uniform(1.5, 3.0, count),
        "courage": draws.uniform(0.0, 1.0, count),
        "goal": draws.choice([NO_GOAL, 0, 1], count),
    }


def same_goal(i: int, j: int, people: dict[str, Floats]) -> bool:
    return bool(people["goal"][i] == people["goal"][j] != -3)


def others(i: int, people: dict[str, Floats], within: float) -> list[int]:
    away = np.linalg.norm(people["position"] - people["position"][i], axis=1)
    return [j for j in range(len(away)) if j != i and away[j] <= within]


def gap(i: int, e: Floats, seen: list[int], people: dict[str, Floats], room: float) -> float:
    """Free distance to the nearest person in front with the right of way."""
    free = math.inf
    for j in seen:
        offset = people["position"][j] - people["position"][i]
        contact = people["radius"][i] + people["radius"][j] + room
        ahead = float(offset @ e)
        aside = abs(e[0] * offset[1] - e[1] * offset[0])
        if ahead <= 0.0 or aside >= contact:
            continue
        h = people["heading"][j]
        seen_ahead = float(-offset @ h)
        in_each_others_way = seen_ahead > 0.0 and abs(h[0] * offset[1] - h[1] * offset[0]) < contact
        yields = h @ e > -0.5 or same_goal(i, j, people)
        if yields and in_each_others_way and (ahead < seen_ahead or (ahead == seen_ahead and i < j)):
            continue
        free = min(free, max(ahead - math.sqrt(contact**2 - aside**2), 0.0))
    return free


def pace(
    i: int,
    e: Floats,
    speed: float,
    seen: list[int],
    people: dict[str, Floats],
    *,
    time_gap: float,
    push: float,
    room: float = 0.0,
) -> float:
    """How fast person i goes along e behind those it sees, if it wants this speed."""
    own = time_gap * (1.5 - float(people["courage"][i]))
    free = gap(i, e, seen, people, room)
    kept = speed if free >= 3.0 * speed * own else speed * math.tanh(free / (speed * own))
    return kept if kept >= 1e-3 * speed else push * speed
