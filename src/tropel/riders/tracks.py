"""Riding along a line with and without the mobility map: the experiments and the tuning of RIDERS, one rider per line.

Riders are moved by full physics. What decides is the map ("map"), or a controller that knows nothing of what the
character can do ("simple"): it heads for the point of the line that is `LOOK_AHEAD` seconds of riding ahead. Both are
asked every `interval` seconds, and both are held to the range of turns of the map.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.riders.character import Character
from tropel.riders.choice import choose_turns
from tropel.riders.full import FullRiders
from tropel.riders.maps import MobilityMap

Floats = NDArray[np.float64]

#: How far ahead the simple controller aims [s].
LOOK_AHEAD = 1.0
#: Spacing of the points of a line [m].
_SPACING = 0.1
CONTROLLERS = ("map", "simple")


@dataclass(frozen=True, eq=False)
class Line:
    """Points at equal distances along a line, with the heading there."""

    points: Floats  #: (P, 2)
    headings: Floats  #: (P,), without jumps

    def at(self, distance: Floats) -> tuple[Floats, Floats]:
        """Places (…, 2) and headings (…) at distances along it; before and after it, the line goes on straight."""
        along = distance / _SPACING
        inside = np.clip(along, 0.0, len(self.points) - 1.000001)
        k = inside.astype(np.int64)
        u = inside - k
        place = (1.0 - u)[..., np.newaxis] * self.points[k] + u[..., np.newaxis] * self.points[k + 1]
        heading = (1.0 - u) * self.headings[k] + u * self.headings[k + 1]
        beyond = (along - inside) * _SPACING
        return place + beyond[..., np.newaxis] * np.stack((np.cos(heading), np.sin(heading)), axis=-1), heading

    def nearest(self, place: Floats, *, near: float, reach: float = 8.0) -> float:
        """Distance along it of the point nearest to a place, looked for around a distance."""
        low = max(0, int((near - reach) / _SPACING))
        high = min(len(self.points), int((near + reach) / _SPACING) + 1)
        if low >= high:
            return near
        return (low + int(np.argmin(((self.points[low:high] - place) ** 2).sum(axis=1)))) * _SPACING


def line_of(curvature: Floats) -> Line:
    """A line from the origin along +x whose curvature is given every `_SPACING` metres."""
    heading = np.concatenate(([0.0], np.cumsum(curvature) * _SPACING))
    middle = 0.5 * (heading[1:] + heading[:-1])
    steps = _SPACING * np.column_stack((np.cos(middle), np.sin(middle)))
    return Line(np.concatenate((np.zeros((1, 2)), np.cumsum(steps, axis=0))), heading)


def seven_curves(speed: float, *, seconds: float = 7.0, straight: float = 2.0) -> tuple[list[Line], Floats]:
    """Seven corners of growing curvature (figure 5), each a ride of 7 s, with straight ends; and their turns [rad].

    The paper's figure has no numbers: here the corners are arcs that turn by ⅛ to ⅞ of half a turn.
    """
    turns: Floats = np.pi * np.arange(1, 8, dtype=np.float64) / 8.0
    ends, corner = round(straight * speed / _SPACING), round(seconds * speed / _SPACING)
    lines = []
    for turn in turns:
        bent = np.full(corner, turn / (corner * _SPACING))
        lines.append(line_of(np.concatenate((np.zeros(ends), bent, np.zeros(ends)))))
    return lines, turns


def lane_shift(speed: float, *, seconds: float = 8.0, side: float = -4.0) -> Line:
    """A straight line 4 m to the right of where the rider begins."""
    straight = line_of(np.zeros(round(seconds * speed / _SPACING)))
    return Line(straight.points + np.array([0.0, side]), straight.headings)


@dataclass(frozen=True, kw_only=True)
class Ridden:
    """What happened on N lines, at each decision (N, D)."""

    place: Floats  #: (N, D, 2)
    position_error: Floats  #: distance from the line [m]
    heading_error: Floats  #: from its direction [rad]
    steer: Floats
    heading: Floats
    fallen: NDArray[np.bool_]  #: (N,)


def ride_lines(
    character: Character,
    map_: MobilityMap,
    lines: list[Line],
    *,
    controller: str = "map",
    t_max: float = 1.3,
    ratio: float = 0.28,
    interval: float = 0.1,
    seconds: float | None = None,
) -> Ridden:
    """Ride along lines, one rider each, from the origin along +x at the nominal speed."""
    if controller not in CONTROLLERS:
        raise ParameterError(f"the controller must be one of {CONTROLLERS}, not {controller!r:.40}")
    count, speed = len(lines), map_.speed
    end = max(len(line.points) for line in lines) * _SPACING / speed if seconds is None else seconds
    decisions = max(1, round(end / interval))
    riders = FullRiders(character, count, map=map_)
    riders.place(np.arange(count), np.zeros((count, 2)), 0.0, 0.0, 0.0)
    at = np.zeros(count)
    kept = [np.zeros((count, decisions, *shape)) for shape in ((2,), (), (), (), ())]
    ahead = speed * map_.times
    for number in range(decisions):
        position, heading, reduced = _now(riders, map_)
        at = np.array([line.nearest(place, near=near) for line, place, near in zip(lines, position, at, strict=True)])
        if controller == "map":
            seen = [line.at(near + ahead) for line, near in zip(lines, at, strict=True)]
            off = np.stack([place for place, _ in seen]) - position[:, np.newaxis]
            cos, sin = np.cos(heading)[:, np.newaxis], np.sin(heading)[:, np.newaxis]
            course = np.stack((cos * off[..., 0] + sin * off[..., 1], cos * off[..., 1] - sin * off[..., 0]), axis=2)
            facing = np.stack([headings for _, headings in seen]) - heading[:, np.newaxis]
            turn = choose_turns(map_, reduced, course, facing, t_max=t_max, ratio=ratio).turn
        else:
            aim = np.stack(
                [line.at(np.array(near + LOOK_AHEAD * speed))[0] for line, near in zip(lines, at, strict=True)]
            )
            towards = aim - position
            turn = np.arctan2(towards[:, 1], towards[:, 0]) - heading
            turn -= 2.0 * np.pi * np.rint(turn / (2.0 * np.pi))
        turn = np.clip(turn, map_.actions[0], map_.actions[-1])
        riders.tick(interval, heading + turn, speed)
        position, heading, _ = _now(riders, map_)
        at = np.array([line.nearest(place, near=near) for line, place, near in zip(lines, position, at, strict=True)])
        on = [line.at(np.array(near)) for line, near in zip(lines, at, strict=True)]
        missed = position - np.stack([place for place, _ in on])
        facing = heading - np.array([there for _, there in on])
        facing -= 2.0 * np.pi * np.rint(facing / (2.0 * np.pi))
        values = (position, np.linalg.norm(missed, axis=1), np.abs(facing), riders.poses.steer, heading)
        for array, value in zip(kept, values, strict=True):
            array[:, number] = value
    return Ridden(
        place=kept[0],
        position_error=kept[1],
        heading_error=kept[2],
        steer=kept[3],
        heading=kept[4],
        fallen=riders.poses.fallen,
    )


def _now(riders: FullRiders, map_: MobilityMap) -> tuple[Floats, Floats, Floats]:
    poses = riders.poses
    columns = {"roll": poses.lean, "yaw_rate": poses.yaw_rate, "steer": poses.steer}
    return poses.position, poses.heading, np.column_stack([columns[name] for name in map_.state_names])


def corner_errors(ridden: Ridden, *, interval: float = 0.1, straight: float = 2.0, seconds: float = 7.0) -> Floats:
    """Mean distance from the line while in the corner, for each line [m]."""
    inside = slice(round(straight / interval), round((straight + seconds) / interval))
    return ridden.position_error[:, inside].mean(axis=1)
