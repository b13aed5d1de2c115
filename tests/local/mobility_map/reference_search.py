"""The search among futures once more: no kernels, no tables, no shortcuts; shapely measures the distances."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.riders.maps import MobilityMap

Floats = NDArray[np.float64]


def axis(place: Floats, angle: float, half: float) -> Any:
    """The axis of a body, which is a point if it has no length."""
    along = half * np.array([math.cos(angle), math.sin(angle)])
    return shapely.LineString([place - along, place + along]) if half > 0.0 else shapely.Point(place)


def discs(place: Floats, angle: float, half: float) -> Any:
    """The centres of the discs that others see of a body."""
    along = half * np.array([math.cos(angle), math.sin(angle)])
    return shapely.MultiPoint([place - along, place, place + along])


def later(found: MobilityMap, body: dict[str, Any], time: float) -> tuple[Floats, float]:
    """Where a body is after a time, and where it faces: on its trajectory, linearly between knots, or straight on."""
    place = np.array(body["position"], dtype=float)
    if body["line"] is None:
        return place + time * np.array(body["velocity"]), body["angle"]
    low = math.floor(time / found.interval + 1e-9)
    share = time / found.interval - low
    (p, c, s), (q, d, e) = (_on_line(found, body, (low + k) * found.interval) for k in range(2))
    turned = math.atan2(s + share * (e - s), c + share * (d - c))
    return place + p + share * (q - p), body["angle"] + turned


@functools.cache
def _splines(found: MobilityMap) -> tuple[Any, Any]:
    return found.spline("position"), found.spline("heading")


def _on_line(found: MobilityMap, body: dict[str, Any], time: float) -> tuple[Floats, float, float]:
    s, a = body["line"]
    position, heading = _splines(found)
    now = body["time"] + body["pace"] * time
    inside = min(now, found.duration)
    moved = position(inside)[s, a] - position(body["time"])[s, a]
    angle = float(heading(inside)[s, a])
    moved = moved + (now - inside) * found.speed * np.array([math.cos(angle), math.sin(angle)])
    c, sn = math.cos(body["base"]), math.sin(body["base"])
    turned = angle - float(heading(body["time"])[s, a])
    return np.array([c * moved[0] - sn * moved[1], sn * moved[0] + c * moved[1]]), math.cos(turned), math.sin(turned)


def how_close(gap: float, touching: float, margin: float) -> float:
    if gap >= touching + margin:
        return touching + margin
    return touching if gap >= touching else 0.9 * gap


def choice(
    found: MobilityMap,
    rider: dict[str, Any],
    line: Any,
    others: list[dict[str, Any]],
    walls: list[Any],
    *,
    knots: int,
    ratio: float,
    horizon: float,
    margin: float,
) -> tuple[int, int, int, float, float]:
    """State, action, other action, share of the first, and how hard to brake. `line(distance)` is the wanted pose."""
    s = min(
        range(len(found.states)),
        key=lambda k: sum(found.weights * (found.states[k] - rider["reduced"]) ** 2),
    )
    here, facing, pace = np.array(rider["position"]), rider["angle"], rider["pace"]
    turn = np.array([[math.cos(facing), -math.sin(facing)], [math.sin(facing), math.cos(facing)]])
    actions = range(len(found.actions))
    ahead = min(max(math.ceil(horizon * pace / found.interval - 1e-9), 1), len(found.times) - 1)
    scores, free, end_gaps = [], [], []
    for a in actions:
        places = here + found.position[s, a] @ turn.T
        total = 0.0
        for k in range(1, knots + 1):
            place, angle = line(found.speed * found.times[k])
            off = math.remainder(facing + found.heading[s, a, k] - angle, math.tau)
            total += ratio * float(np.linalg.norm(places[k] - place)) + (1.0 - ratio) * abs(off)
        scores.append(total)
        end_gaps.append(float(np.linalg.norm(places[knots] - line(found.speed * found.times[knots])[0])))
        free.append(_free_until(found, s, a, places, rider, others, walls, ahead, horizon, margin))
    open_to = [a for a in actions if free[a] > ahead]
    if not open_to:
        best = max(actions, key=lambda a: (free[a], -scores[a]))
        return s, best, best, 1.0, (1.0 - (free[best] - 1) / ahead) ** 2
    best = min(open_to, key=lambda a: scores[a])
    rest = [a for a in open_to if a != best and (len(open_to) == len(scores) or abs(a - best) == 1)]
    if not rest:
        return s, best, best, 1.0, 0.0
    second = min(rest, key=lambda a: scores[a])
    return s, best, second, end_gaps[second] / (end_gaps[best] + end_gaps[second]), 0.0


def _free_until(
    found: MobilityMap,
    s: int,
    a: int,
    places: Floats,
    rider: dict[str, Any],
    others: list[dict[str, Any]],
    walls: list[Any],
    ahead: int,
    horizon: float,
    margin: float,
) -> int:
    half, own = rider["half"], rider["radius"]
    now = axis(np.array(rider["position"]), rider["angle"], half)
    wall_gap = how_close(min((now.distance(wall) for wall in walls), default=math.inf), own, margin)
    for k in range(1, ahead + 1):
        if found.lasts[s, a] < found.times[k]:
            return k
        angle = rider["angle"] + found.heading[s, a, k]
        body = axis(places[k], angle, half)
        front = places[k] + half * np.array([math.cos(angle), math.sin(angle)])
        swept = shapely.LineString([places[k - 1], front])
        if any(swept.distance(wall) < wall_gap - 1e-9 for wall in walls):
            return k
        time = min(found.times[k] / rider["pace"], horizon)
        for other in others:
            seen = discs(other["position"], other["angle"], other["half"])
            closest = how_close(now.distance(seen), own + other["radius"], margin)
            if body.distance(discs(*later(found, other, time), other["half"])) < closest - 1e-9:
                return k
    return ahead + 1
