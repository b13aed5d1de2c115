"""People who meet: through a corridor against others, in a wide corridor, and on a circle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.pictures import style
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import add_legend, draw_leaving, draw_paths, draw_plan
from tropel.verification.track import follow, passing_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Two rooms --------------------------------------------------------------------------------------------------------

OPPONENTS = (0, 10, 50, 100)
_PATIENCE = 40.0


def measure_rooms(
    candidate: Candidate, seed: int, *, people: int = 100, opponents: Sequence[int] = OPPONENTS, limit: float = 400.0
) -> Outcome:
    """When the last of a crowd enters the other room, against several numbers of people who come from there."""
    entered = {}
    for count in opponents:
        changes = {"groups.0.count": people, "groups.1.count": count}
        track = follow(
            candidate.build("nist_2_8", seed=seed, changes=changes), limit=limit, every=0.1, patience=_PATIENCE
        )
        entered[count] = passing_times(track, 20.0)[track.of("to the right")]
    last = [float(times.max()) for times in entered.values()]
    stuck = [int(np.isinf(times).sum()) for times in entered.values()]
    grows = all(more > fewer for fewer, more in itertools.pairwise(last))
    against = [f"{time:.0f} s against {count}" for count, time in zip(opponents, last, strict=True)]
    return Outcome(
        passed=grows and not any(stuck),
        said=", ".join(against)
        if not any(stuck)
        else "stuck: "
        + ", ".join(f"{n} people against {count}" for count, n in zip(opponents, stuck, strict=True) if n),
        measured={"opponents": list(opponents), "last_entered_s": last, "stuck": stuck},
        drawn=entered,
    )


def _draw_rooms(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    entered = outcomes[0].drawn
    draw_leaving(
        axes, list(entered.values()), [f"against {count}" for count in entered], len(next(iter(entered.values())))
    )
    style.label_axes(axes, x="time [s]", y="people that have entered the other room")
    add_legend(axes)


# A wide corridor --------------------------------------------------------------------------------------------------

#: How much longer than alone people may need on average.
MOST_DELAY = 2.5


def measure_corridor(candidate: Candidate, seed: int, *, people: int = 100) -> Outcome:
    """Whether all get through, and how much longer they need than alone."""
    changes = {"groups.0.count": people, "groups.1.count": people}
    track = follow(
        candidate.build("counterflow", seed=seed, changes=changes), limit=200.0, every=0.1, patience=_PATIENCE
    )
    to = np.where(track.of("eastbound"), 49.0, 1.0)
    alone = np.abs(to - track.place[0, :, 0]) / track.desired_speed
    stuck = track.people - track.gone
    longer = float(np.mean(track.left / alone))
    moment = track.place[min(round(20.0 / 0.1), len(track.place) - 1)]
    return Outcome(
        passed=not stuck and longer <= MOST_DELAY,
        said=f"{stuck} of {track.people} never arrive" if stuck else f"all arrive, {longer:.2f} times as long as alone",
        measured={"stuck": stuck, "times_as_long": longer, "last_s": track.evacuation_time},
        drawn=(moment, track.of("eastbound")),
    )


def _draw_corridor(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    draw_plan(axes, "counterflow")
    place, eastbound = outcomes[0].drawn
    for chosen, colour, label in ((eastbound, style.THERE, "eastbound"), (~eastbound, style.GROUPS[1], "westbound")):
        axes.plot(*place[chosen].T, linestyle="", marker="o", markersize=5, color=colour, mec=style.PAPER, mew=0.4,
                  label=f"{label} after 20 s", zorder=3)  # fmt: skip
    add_legend(axes)


# A circle ---------------------------------------------------------------------------------------------------------

COUNTS = (8, 20)
#: How much longer than alone the slowest may need.
_MOST_LATE = 2.0
_RADIUS = 5.0


def circle(count: int, seed: int) -> dict[str, Any]:
    """The scene with so many people on the circle, each a little off their place so that no two runs are alike."""
    angle = 2.0 * math.pi * np.arange(count) / count + np.random.default_rng(seed).normal(0.0, 0.01, count)
    places = _RADIUS * np.column_stack([np.cos(angle), np.sin(angle)])
    targets = {
        f"opposite_{k + 1}": {"position": [-float(x), -float(y)], "radius": 0.3, "absorbs": True}
        for k, (x, y) in enumerate(places)
    }
    groups = [
        {"name": f"walker {k + 1}", "positions": [[float(x), float(y)]], "desired_speed": 1.34,
         "goal": f"opposite_{k + 1}"} for k, (x, y) in enumerate(places)
    ]  # fmt: skip
    return {"world.targets": targets, "groups": groups}


def measure_circle(candidate: Candidate, seed: int, *, counts: Sequence[int] = COUNTS) -> Outcome:
    """Whether all reach the opposite side, and how much longer the slowest needs than alone."""
    late, stuck, paths = [], [], []
    alone = (2.0 * _RADIUS - 0.3) / 1.34
    for count in counts:
        track = follow(candidate.build("antipodal_circle", seed=seed, changes=circle(count, seed)), limit=40.0)
        late.append(track.evacuation_time / alone)
        stuck.append(track.people - track.gone)
        paths.append(track.thinned(0.1))
    said = ", ".join(f"{count} people: {times:.2f} times as long" for count, times in zip(counts, late, strict=True))
    if any(stuck):
        said = ", ".join(f"{n} of {count} never arrive" for count, n in zip(counts, stuck, strict=True) if n)
    return Outcome(
        passed=not any(stuck) and max(late) <= _MOST_LATE,
        said=said,
        measured={"people": list(counts), "times_as_long": late, "stuck": stuck},
        drawn=paths[-1],
    )


def _draw_circle(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    paths = outcomes[0].drawn
    axes.grid(visible=False)
    draw_paths(axes, paths, colours=style.heading_colours(paths.shape[1]), width=1.3)
    axes.set_aspect("equal", anchor="W")
    axes.set_xlim(-6.5, 6.5)
    axes.set_ylim(-6.5, 6.5)
    style.label_axes(axes, x="x [m]", y="y [m]")


CASES = (
    Case(
        name="nist_2_8",
        expected="all arrive, and the later the more people come the other way",
        criterion="100 people go from one room to another through a corridor 2 m wide and 10 m long, against 0, "
        "10, 50 and 100 people who come from there. All of them arrive, and the last of them later the more people "
        "come the other way. The note asks for the second; a crowd that is stuck has no last person, so the first "
        "is required too.",
        measure=measure_rooms,
        draw=_draw_rooms,
        seeds=3,
        share=2 / 3,
        long=True,
    ),
    Case(
        name="counterflow",
        expected=f"all arrive, on average at most {MOST_DELAY:g} times as long as alone",
        criterion="100 people walk in each direction through a corridor 5 m wide. All of them arrive, and on "
        f"average they need at most {MOST_DELAY:g} times as long as alone. In experiments people form lanes and "
        "hardly lose speed at such densities; the limit leaves room for models without lanes, but not for a jam.",
        measure=measure_corridor,
        draw=_draw_corridor,
        height=360,
    ),
    Case(
        name="antipodal_circle",
        expected=f"all arrive, the slowest at most {_MOST_LATE:g} times as late as alone",
        criterion="8 and 20 people on a circle of 10 m across walk to the place opposite their own, so all meet in "
        f"the middle. All of them arrive, the slowest at most {_MOST_LATE:g} times as late as a person alone: "
        "walking around along the circle would take 1.57 times as long.",
        measure=measure_circle,
        draw=_draw_circle,
        height=720,
    ),
)
