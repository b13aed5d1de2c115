"""One person alone: along a corridor, and out of a room from fifty places."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import shapely

from tropel.pictures import style
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import add_legend, draw_paths, draw_plan
from tropel.verification.track import follow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LENGTH = 40.0  #: from the start to the finish [m]


# Along a corridor -------------------------------------------------------------------------------------------------


def measure_corridor(candidate: Candidate, seed: int, *, scene: str, earliest: float, latest: float) -> Outcome:
    """How long 40 m take."""
    track = follow(candidate.build(scene, seed=seed), limit=2.0 * latest)
    needed = track.evacuation_time
    walked = float(np.nanmax(track.place[:, 0, 0])) - float(track.place[0, 0, 0])
    arrived = math.isfinite(needed)
    return Outcome(
        passed=earliest <= needed <= latest,
        said=f"{needed:.1f} s" if arrived else f"only {walked:.1f} m after {track.end:.0f} s",
        measured={"time_s": needed, "walked_m": walked},
        drawn=(track.times, track.place[:, 0, 0] - track.place[0, 0, 0]),
    )


def _draw_corridor(axes: Axes, outcomes: Sequence[Outcome], *, speed: float, earliest: float, latest: float) -> None:
    axes.plot([0.0, _LENGTH / speed], [0.0, _LENGTH], color=style.FAINT_INK, linewidth=1.2, linestyle="--",
              label=f"{speed:g} m/s")  # fmt: skip
    axes.plot([earliest, latest], [_LENGTH] * 2, color=style.EXIT, linewidth=6, solid_capstyle="butt",
              label=f"{earliest:g} to {latest:g} s")  # fmt: skip
    for number, outcome in enumerate(outcomes):
        times, walked = outcome.drawn
        axes.plot(times, walked, color=style.THERE, linewidth=2.0, label=None if number else "measured")
    axes.set_xlim(0.0, max(latest, max(outcome.drawn[0][-1] for outcome in outcomes)) * 1.05)
    axes.set_ylim(0.0, _LENGTH * 1.08)
    style.label_axes(axes, x="time [s]", y="distance along the corridor [m]")
    add_legend(axes)


def _corridor_case(name: str, *, speed: float, earliest: float, latest: float, why: str) -> Case:
    return Case(
        name=name,
        expected=f"{earliest:g} to {latest:g} s for 40 m",
        criterion=f"A person who wants to walk at {speed:g} m/s needs {earliest:g} to {latest:g} s for 40 m. {why}",
        measure=functools.partial(measure_corridor, scene=name, earliest=earliest, latest=latest),
        draw=functools.partial(_draw_corridor, speed=speed, earliest=earliest, latest=latest),
    )


# Out of a room ----------------------------------------------------------------------------------------------------

STARTS = 50
#: A person may need this much longer than along the shortest path, and this many seconds more.
_DETOUR, _SECONDS = 1.1, 0.5
_MARGIN = 0.3  #: a person may keep this far from the posts of the door [m]


def measure_room(candidate: Candidate, seed: int, *, starts: int = STARTS) -> Outcome:
    """From many places: does the person get out, and how much longer does it take than along the shortest path?"""
    late, stuck, worst, paths = 0, 0, 0.0, []
    scenario = candidate.scenario("lone_walker")
    (door,) = scenario.world().exits.values()
    x_from, y_from, _, y_to = door.polygon.bounds
    line = shapely.LineString([(x_from, y_from + _MARGIN), (x_from, y_to - _MARGIN)])
    for number in range(starts):
        # Numbers of runs are far apart, so that no two seeds share a start.
        track = follow(scenario.build(seed=1000 * seed + number, threads=1), limit=30.0)
        shortest = shapely.distance(line, shapely.Point(track.place[0, 0])) / track.desired_speed[0]
        needed = track.evacuation_time
        stuck += not math.isfinite(needed)
        late += not needed <= _DETOUR * shortest + _SECONDS
        worst = max(worst, needed - shortest)
        paths.append(track.thinned(0.1)[:, 0])
    said = f"{starts - stuck} of {starts} leave, {late} of them late; the slowest {worst:.1f} s later than possible"
    return Outcome(
        passed=late == 0,
        said=said if not stuck else f"{stuck} of {starts} never leave",
        measured={"starts": starts, "stuck": stuck, "late": late, "largest_delay_s": worst},
        drawn=paths,
    )


def _draw_room(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    draw_plan(axes, "lone_walker")
    colours = style.time_colours()
    for number, path in enumerate(outcomes[0].drawn):
        draw_paths(axes, path[:, None], colours=[colours(number / max(len(outcomes[0].drawn) - 1, 1))])


CASES = (
    _corridor_case(
        "rimea_1",
        speed=1.33,
        earliest=26.0,
        latest=34.0,
        why="The guideline gives this range for a speed of 1.33 m/s: it allows for rounding on cells and time steps.",
    ),
    _corridor_case(
        "nist_2_1",
        speed=1.0,
        earliest=38.0,
        latest=42.0,
        why="The note expects 40 s and leaves the tolerance open; here it is 5 %.",
    ),
    Case(
        name="lone_walker",
        expected=f"all {STARTS} leave, in at most {_DETOUR:g} × the shortest time + {_SECONDS:g} s",
        criterion=f"From {STARTS} random places, one person alone leaves the room each time, and needs at most "
        f"{_DETOUR:g} times as long as along the shortest path through the door, plus {_SECONDS:g} s for starting "
        "and for the discrete step. A person alone has no reason to stop, turn back or go round in circles.",
        measure=measure_room,
        draw=_draw_room,
        seeds=1,
    ),
)
