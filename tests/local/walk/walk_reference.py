"""The walking model written down a second time: plain NumPy, pair by pair, in the open."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from time_gap_reference import others, pace, same_goal

Floats = NDArray[np.float64]

FAN = (0.0, 0.3, -0.3, 0.6, -0.6, 0.9, -0.9, 1.2, -1.2, 1.5, -1.5)  #: turns to the right, in order of preference


def turned(e: Floats, right: float) -> Floats:
    """A vector turned to the right."""
    c, s = math.cos(right), math.sin(right)
    return np.array([c * e[0] + s * e[1], c * e[1] - s * e[0]])


def keeps_right(i: int, e: Floats, people: dict[str, Floats], keep_right: float) -> Floats:
    total = 0.0
    for j in others(i, people, people["sense_radius"][i]):
        offset = people["position"][j] - people["position"][i]
        against = 2.0 * float(-people["heading"][j] @ e) - 1.0
        if offset @ e > 0.0 and against > 0.0 and people["velocity"][j] @ e <= 0.0 and not same_goal(i, j, people):
            aside = float(e[0] * offset[1] - e[1] * offset[0])
            total += against * math.exp(-np.linalg.norm(offset) / 4.0 - (aside / 1.5) ** 2)
    return turned(e, keep_right * math.tanh(total)) if total > 0.0 else e


def free_path(i: int, e: Floats, speed: float, horizon: float, seen: list[int], people: dict[str, Floats]) -> float:
    """How far one gets at this speed before touching somebody, if all others keep their velocity."""
    free = horizon
    for j in seen:
        offset = people["position"][j] - people["position"][i]
        contact = people["radius"][i] + people["radius"][j] + 0.02
        relative = people["velocity"][j] - speed * e
        if offset @ relative >= 0.0:
            continue
        if np.linalg.norm(offset) <= contact:
            return 0.0
        # |offset + t relative| = contact
        roots = np.roots([relative @ relative, 2.0 * offset @ relative, offset @ offset - contact**2])
        if np.isreal(roots).all():
            free = min(free, speed * float(roots.real.min()))
    return free


def velocity(i: int, people: dict[str, Floats], *, time_gap: float, look_ahead: float, worth: float) -> Floats:
    """What person i wants, with full agility and no mass; rows are ids."""
    planned = people["directions"][i]
    length = float(np.linalg.norm(planned))
    speed = float(people["desired_speed"][i]) * min(length, 1.0)
    if speed == 0.0:
        return np.zeros(2)
    straight = planned / length
    horizon = min(look_ahead, float(people["sense_radius"][i]))
    contact = people["radius"][i] + people["radius"] + 0.02
    seen = [
        j
        for j in others(i, people, horizon)
        if (people["position"][j] - people["position"][i]) @ straight >= -contact[j]
    ]
    e = keeps_right(i, straight, people, 1.0)
    path = 2.0 * horizon
    best, least = e, math.inf
    for angle in FAN:
        direction = turned(e, angle)
        free = free_path(i, direction, speed, path, seen, people)
        missed = path**2 + free**2 - 2.0 * path * free * math.cos(angle)
        if angle == 0.0:
            if free >= path:
                break
            least = (1.0 - worth) * missed
        elif missed < least - 1e-12:
            best, least = direction, missed
    return pace(i, best, speed, seen, people, time_gap=time_gap, push=0.1, room=0.02) * best
