"""Doors: how many people they let through per second, and that no crowd gets stuck."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.pictures import style
from tropel.verification import published
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.cases.rooms import joined_rooms
from tropel.verification.drawing import add_legend, draw_band, draw_leaving, draw_measured
from tropel.verification.track import flow, follow, passing_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def room_with_door(*, width: float, length: float = 0.2) -> dict[str, Any]:
    """A room of 8 m by 8 m with a door, or a passage, in the middle of a side, and free space behind it."""
    return joined_rooms(size=8.0, width=width, length=length, behind=4.0, exit_name="out", exit_depth=1.0)


# The flow by width ------------------------------------------------------------------------------------------------

WIDTHS = (0.8, 1.0, 1.2, 1.6, 2.0, 2.5)  #: [m]
#: Flows may be this much above or below the line, about as far as those of different experiments.
SCATTER = 0.25


def measure_flow(candidate: Candidate, seed: int, *, widths: Sequence[float] = WIDTHS, people: int = 150) -> Outcome:
    """The flow through doors, by width, out of a crowd that pushes through."""
    flows, stuck = [], 0
    for width in widths:
        changes = {**room_with_door(width=width), "groups.0.count": people}
        track = follow(candidate.build("door_flow", seed=seed, changes=changes), limit=400.0, patience=40.0)
        flows.append(flow(passing_times(track, 8.0), track.end))
        stuck += track.gone < track.people
    apart = np.array(flows) / published.door_flow(widths) - 1.0
    good = int((np.abs(apart) <= SCATTER).sum())
    worst = int(np.argmax(np.abs(apart)))
    said = f"{good} of {len(flows)} widths near the line; farthest {apart[worst]:+.0%} at {widths[worst]:g} m"
    return Outcome(
        passed=good == len(flows) and not stuck,
        said=said + (f"; {stuck} of {len(flows)} crowds get stuck" if stuck else ""),
        measured={"width_m": list(widths), "flow_per_s": [round(value, 3) for value in flows], "stuck": stuck},
    )


def _draw_flow(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    width = np.linspace(0.6, 2.7, 100)
    line = published.door_flow(width)
    draw_band(axes, width, (1 - SCATTER) * line, (1 + SCATTER) * line, f"± {SCATTER:.0%}")
    axes.plot(width, line, color=style.EXIT, linewidth=2.0, label="1.92 w - 0.07")
    draw_measured(axes, outcomes, "width_m", "flow_per_s")
    axes.set_xlim(0.6, 2.7)
    axes.set_ylim(bottom=0.0)
    style.label_axes(axes, x="width of the door [m]", y="flow [1/s]")
    add_legend(axes)


# The greatest flow ------------------------------------------------------------------------------------------------

#: More than this per metre and second has not been measured at doors among people who do not push [1/(m s)].
GREATEST = 2.5
#: The value that the IMO and planning handbooks use [1/(m s)].
_PLANNED = 1.33


def measure_greatest(candidate: Candidate, seed: int, *, people: int = 100) -> Outcome:
    """The flow out of a room by an exit of 1 m, over the whole time."""
    changes = {"groups.0.count": people}
    track = follow(candidate.build("nist_5_2", seed=seed, changes=changes), limit=300.0, every=1.0, patience=40.0)
    left = np.sort(track.left)
    mean = (people - 1) / float(left[-1] - left[0]) if math.isfinite(left[-1]) else 0.0
    stuck = track.people - track.gone
    return Outcome(
        passed=0.0 < mean <= GREATEST,
        said=f"{mean:.2f} per second and metre" if not stuck else f"{stuck} of {people} never leave",
        measured={"flow_per_m_s": mean, "stuck": stuck},
        drawn=track.left,
    )


def _draw_greatest(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    people = len(outcomes[0].drawn)
    first = min(float(outcome.drawn.min()) for outcome in outcomes)
    for rate, dashes, label in ((GREATEST, "--", f"{GREATEST:g}/s"), (_PLANNED, ":", f"{_PLANNED:g}/s (IMO)")):
        axes.plot([first, first + people / rate], [0, people], color=style.EXIT, linewidth=1.2, linestyle=dashes,
                  label=label)  # fmt: skip
    draw_leaving(axes, [outcome.drawn for outcome in outcomes], [f"seed {k}" for k in range(len(outcomes))], people)
    add_legend(axes, columns=5)


# Nobody gets stuck ------------------------------------------------------------------------------------------------

NARROW = (0.8, 0.9, 1.0, 1.2)  #: [m]
LENGTHS = (0.2, 5.0)  #: of the way through the wall [m]
#: Longest time in which nobody leaves although people queue [s].
LONGEST_PAUSE = 8.0
_QUEUE = 10  #: as long as this many are left, people queue


def longest_pause(left: NDArray[np.float64], end: float) -> float:
    """The longest time in which nobody left while people queued [s]."""
    times = np.sort(left[np.isfinite(left)])
    queueing = times[: max(len(left) - _QUEUE, 1)]
    if len(queueing) == 0:
        return end
    last = end if len(times) < len(left) and len(times) <= len(left) - _QUEUE else queueing[-1]
    return float(np.diff(np.append(queueing, last)).max(initial=0.0))


def measure_stuck(
    candidate: Candidate,
    seed: int,
    *,
    widths: Sequence[float] = NARROW,
    lengths: Sequence[float] = LENGTHS,
    people: int = 80,
) -> Outcome:
    """How long the longest pause is at narrow doors and in narrow passages."""
    runs: dict[str, tuple[NDArray[np.float64], float]] = {}
    for width, length in itertools.product(widths, lengths):
        changes = {**room_with_door(width=width, length=length), "groups.0.count": people}
        sim = candidate.build("no_stuck_door", seed=seed, changes=changes)
        track = follow(sim, limit=300.0, every=1.0, patience=20.0 + length)
        what = f"door of {width:g} m" if length < 1.0 else f"passage of {width:g} m"
        runs[what] = track.left, track.end
    pauses = {what: longest_pause(*run) for what, run in runs.items()}
    remaining = {what: int(np.isinf(left).sum()) for what, (left, _) in runs.items()}
    stuck = [what for what in runs if remaining[what] or pauses[what] > LONGEST_PAUSE]
    worst = max(pauses, key=pauses.__getitem__)
    return Outcome(
        passed=not stuck,
        said=f"stuck at {', '.join(stuck)}" if stuck else f"longest pause {pauses[worst]:.1f} s, at a {worst}",
        measured={"longest_pause_s": pauses, "remaining": remaining},
        drawn={what: left for what, (left, _) in runs.items()},
    )


def _draw_stuck(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    shown = next((outcome for outcome in outcomes if not outcome.passed), outcomes[0]).drawn
    draw_leaving(axes, list(shown.values()), list(shown), max(map(len, shown.values())))
    add_legend(axes, columns=4)


CASES = (
    Case(
        name="door_flow",
        expected=f"within {SCATTER:.0%} of 1.92 w - 0.07 per second, for doors of {WIDTHS[0]:g} to {WIDTHS[-1]:g} m",
        criterion="150 people leave a room of 8 m by 8 m by a door. The flow of the middle part of the crowd (from "
        "a fifth to four fifths) is compared with the line J = 1.92 w - 0.07 per second through flows of "
        f"experiments, at every width. {SCATTER:.0%} above or below passes, about as far as experiments differ. No "
        "crowd gets stuck.",
        measure=measure_flow,
        draw=_draw_flow,
        seeds=3,
        share=2 / 3,
        long=True,
    ),
    Case(
        name="nist_5_2",
        expected=f"all leave, at most {GREATEST:g} per second and metre",
        criterion="100 people leave a room of 8 m by 5 m by an exit of 1 m. The note leaves the threshold to the "
        f"tester; the IMO has {_PLANNED:g} per metre and second, a cautious value for planning. Experiments give "
        f"about 1.9, so a model that agrees with them must exceed {_PLANNED:g}. Here the flow from the first to the "
        f"last person must not exceed {GREATEST:g}, which experiments without pushing do not reach.",
        measure=measure_greatest,
        draw=_draw_greatest,
    ),
    Case(
        name="no_stuck_door",
        expected=f"all leave; no pause of more than {LONGEST_PAUSE:g} s while people queue",
        criterion="80 people leave a room by doors and by passages of 5 m that are 0.8, 0.9, 1.0 and 1.2 m wide, "
        "with ten seeds. All of them leave, and while ten or more are left there is no pause of more than "
        f"{LONGEST_PAUSE:g} s.",
        measure=measure_stuck,
        draw=_draw_stuck,
        seeds=10,
        long=True,
    ),
)
