"""Around a corner: twenty people who must not cross a wall, and a large crowd that must not be held up."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import add_legend, draw_leaving, draw_paths, draw_plan
from tropel.verification.track import follow, moves_through_walls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIMIT = 120.0


def measure_few(candidate: Candidate, seed: int, *, scene: str) -> Outcome:
    """Whether all arrive, and how many moves lead through a wall."""
    sim = candidate.build(scene, seed=seed)
    walkable = sim.world.walkable
    track = follow(sim, limit=_LIMIT)
    crossed = moves_through_walls(track, walkable)
    when = f"the last at {track.evacuation_time:.1f} s" if track.gone == track.people else f"after {track.end:.0f} s"
    return Outcome(
        passed=crossed == 0 and track.gone == track.people,
        said=f"{track.gone} of {track.people} arrive, {when}; {crossed or 'no'} moves through a wall",
        measured={
            "arrived": track.gone,
            "people": track.people,
            "moves_through_walls": crossed,
            "last_arrival_s": track.evacuation_time,
        },
        drawn=track.thinned(0.1),
    )


def _draw_few(axes: Axes, outcomes: Sequence[Outcome], *, scene: str) -> None:
    draw_plan(axes, scene)
    draw_paths(axes, outcomes[0].drawn)


def _few(name: str, where: str) -> Case:
    return Case(
        name=name,
        expected="all 20 arrive, no move through a wall",
        criterion=f"Twenty people, {where}, go around a corner to the left. All of them arrive, and every straight "
        "move from step to step lies within the corridor.",
        measure=functools.partial(measure_few, scene=name),
        draw=functools.partial(_draw_few, scene=name),
        height=760,
    )


# A large crowd ----------------------------------------------------------------------------------------------------

#: Runs are chaotic: times may be this much outside the range.
_ROUNDING = 0.02
#: The corridor of the scene is 6 m wide. Its inner walls are 30 m and 32 m long up to the finish, its outer walls 6 m
#: more each.
_WIDTH, _INNER, _OUTER = 6.0, 62.0, 74.0
_BEGIN = -10.0


def straight(length: float) -> dict[str, object]:
    """The scene with a straight corridor, from the back of the crowd to a finish after so many metres."""
    end = _BEGIN + length
    return {
        "world.walkable": {"box": [_BEGIN, 0.0, end + 2.0, _WIDTH]},
        "world.exits.finish": {"box": [end, 0.0, end + 2.0, _WIDTH]},
    }


def measure_crowd(candidate: Candidate, seed: int, *, people: int = 500) -> Outcome:
    """How long a crowd needs around the corner, and along straight corridors as long as its inner and outer wall."""
    runs = {}
    for name, changes in (("short", straight(_INNER)), ("corner", {}), ("long", straight(_OUTER))):
        sim = candidate.build("rimea_15", seed=seed, changes={**changes, "groups.0.count": people})
        runs[name] = follow(sim, limit=300.0, every=1.0, patience=30.0 + 74.0)
    short, corner, long = (runs[name].evacuation_time for name in ("short", "corner", "long"))
    passed = math.isfinite(corner) and short * (1 - _ROUNDING) <= corner <= long * (1 + _ROUNDING)
    return Outcome(
        passed=passed,
        said=f"{corner:.1f} s around the corner; {short:.1f} s and {long:.1f} s straight on",
        measured={"short_s": short, "corner_s": corner, "long_s": long, "people": people},
        drawn={name: track.left for name, track in runs.items()},
    )


def _draw_crowd(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    left = outcomes[0].drawn
    labels = ("straight, inner wall", "around the corner", "straight, outer wall")
    draw_leaving(axes, list(left.values()), labels, len(left["corner"]))
    add_legend(axes, columns=3)


CASES = (
    _few("rimea_6", "spread over 6 m of a corridor"),
    _few("nist_2_3", "close together at the end of a corridor"),
    Case(
        name="rimea_15",
        expected="around the corner not faster than along the inner wall, not slower than along the outer wall",
        criterion="500 people walk around a corner of a corridor 6 m wide. The last of them arrives between the "
        "times that the same crowd needs along two straight corridors, one as long as the inner wall and one as "
        f"long as the outer wall (± {_ROUNDING:.0%}, since runs are chaotic). The guideline asks for a time between "
        "the two.",
        measure=measure_crowd,
        draw=_draw_crowd,
        seeds=3,
        long=True,
    ),
)
