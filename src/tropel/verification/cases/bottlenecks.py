"""Bottlenecks between rooms: where people queue, and what the length, the width and the goal behind them change."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.pictures import style
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.cases.diagrams import published_range
from tropel.verification.cases.rooms import joined_rooms
from tropel.verification.drawing import add_legend, draw_leaving, draw_measured, draw_plan
from tropel.verification.track import Floats, Track, flow, follow, mean_density, passing_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LIMIT, _PATIENCE = 300.0, 40.0


def passage(*, width: float, length: float) -> dict[str, Any]:
    """Two rooms of 10 m by 10 m, joined by a passage; the goal is 8 m behind it."""
    return joined_rooms(size=10.0, width=width, length=length, behind=10.0, exit_name="goal", exit_depth=2.0)


def _run(candidate: Candidate, scene: str, seed: int, changes: dict[str, Any], people: int) -> Track:
    sim = candidate.build(scene, seed=seed, changes={**changes, "groups.0.count": people})
    return follow(sim, limit=_LIMIT, patience=_PATIENCE)


def _compared(times: dict[str, Track], *, later: str, earlier: str) -> Outcome:
    """An outcome that passes if one crowd is through later than another, and nobody is stuck in either."""
    last = {name: track.evacuation_time for name, track in times.items()}
    stuck = {name: track.people - track.gone for name, track in times.items()}
    said = f"{last[later]:.1f} s {later}, {last[earlier]:.1f} s {earlier}"
    if any(stuck.values()):
        said = "stuck: " + ", ".join(f"{count} people {name}" for name, count in stuck.items() if count)
    return Outcome(
        passed=not any(stuck.values()) and last[later] > last[earlier],
        said=said,
        measured={"evacuation_s": last, "stuck": stuck},
        drawn={name: track.left for name, track in times.items()},
    )


def _draw_compared(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    left = outcomes[0].drawn
    draw_leaving(axes, list(left.values()), list(left), max(map(len, left.values())))
    add_legend(axes)


def measure_goal(candidate: Candidate, seed: int, *, people: int = 150) -> Outcome:
    """How long a crowd needs if its goal is right behind a bottleneck, and if it is 8 m farther."""
    near = {"world.exits.goal": {"box": [10.2, 0.0, 12.2, 10.0]}}
    runs = {
        "goal 8 m behind": _run(candidate, "rimea_12a", seed, {}, people),
        "goal right behind": _run(candidate, "rimea_12a", seed, near, people),
    }
    return _compared(runs, later="goal 8 m behind", earlier="goal right behind")


def measure_length(candidate: Candidate, seed: int, *, people: int = 150) -> Outcome:
    """How long a crowd needs through a passage of 5 m, and through an opening in a wall of 0.2 m."""
    runs = {
        "passage of 5 m": _run(candidate, "rimea_12b", seed, {}, people),
        "opening of 0.2 m": _run(candidate, "rimea_12b", seed, passage(width=1.0, length=0.2), people),
    }
    return _compared(runs, later="passage of 5 m", earlier="opening of 0.2 m")


# Two in a row -----------------------------------------------------------------------------------------------------

#: In front of the bottlenecks: 2 m deep and 3 m wide.
_QUEUES = ((8.0, 3.5, 10.0, 6.5), (18.2, 3.5, 20.2, 6.5))
#: More people per square metre than this are a queue: at about 2 the flow of people is greatest (Weidmann 1993).
QUEUE = 2.0


def while_passing(track: Track, at: float, *, until: float) -> tuple[float, float, Floats | None]:
    """From when to when the crowd passes a line, from a fifth of it `until` a share, and where people are halfway."""
    passed = np.sort(passing_times(track, at))
    begin, end = float(passed[track.people // 5]), float(passed[int(until * track.people)])
    if not math.isfinite(begin):
        return begin, track.end, None
    end = end if math.isfinite(end) else track.end
    return begin, end, track.place[int(np.searchsorted(track.times, (begin + end) / 2)) - 1]


def measure_row(candidate: Candidate, seed: int, *, people: int = 150) -> Outcome:
    """How dense people stand in front of two bottlenecks, one after the other."""
    track = _run(candidate, "rimea_12c", seed, {}, people)
    begin, end, halfway = while_passing(track, 10.0, until=0.8)
    first, second = (mean_density(track, box, begin=begin, end=end) for box in _QUEUES)
    stuck = track.people - track.gone
    return Outcome(
        passed=not stuck and first > QUEUE > second,
        said=f"{first:.1f} people per m² at the first, {second:.1f} at the second"
        + (f"; {stuck} never arrive" if stuck else ""),
        measured={"density_first_per_m2": first, "density_second_per_m2": second, "stuck": stuck},
        drawn=halfway,
    )


def _draw_moment(axes: Axes, outcomes: Sequence[Outcome], scene: str, boxes: Sequence[tuple[float, ...]]) -> None:
    draw_plan(axes, scene)
    for x0, y0, x1, y1 in boxes:
        axes.plot(
            [x0, x1, x1, x0, x0], [y0, y0, y1, y1, y0], color=style.TARGET, linewidth=1.0, linestyle="--", zorder=2
        )
    place = outcomes[0].drawn
    if place is not None:
        axes.plot(*place[np.isfinite(place[:, 0])].T, linestyle="", marker="o", markersize=5.0, color=style.THERE,
                  mec=style.PAPER, mew=0.4, zorder=3)  # fmt: skip


def _draw_row(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    _draw_moment(axes, outcomes, "rimea_12c", _QUEUES)


# The width --------------------------------------------------------------------------------------------------------

_WIDTHS = (0.8, 1.0, 1.2)


def measure_width(candidate: Candidate, seed: int, *, people: int = 150, widths: Sequence[float] = _WIDTHS) -> Outcome:
    """The flow through passages of 5 m, by width."""
    flows, stuck = [], 0
    for width in widths:
        track = _run(candidate, "rimea_12d", seed, passage(width=width, length=5.0), people)
        flows.append(flow(passing_times(track, 10.0), track.end))
        stuck += track.people - track.gone
    grows = all(wide > narrow for narrow, wide in itertools.pairwise(flows))
    return Outcome(
        passed=grows and not stuck,
        said=", ".join(f"{value:.2f}/s at {width:g} m" for width, value in zip(widths, flows, strict=True))
        + (f"; {stuck} people are stuck" if stuck else ""),
        measured={"width_m": list(widths), "flow_per_s": [round(value, 3) for value in flows], "stuck": stuck},
    )


def _draw_width(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    draw_measured(axes, outcomes, "width_m", "flow_per_s")
    axes.set_xlim(0.6, 1.4)
    axes.set_ylim(bottom=0.0)
    style.label_axes(axes, x="width of the passage [m]", y="flow [1/s]")
    add_legend(axes)


# The exit of a room -----------------------------------------------------------------------------------------------

_AT_EXIT, _IN_CORRIDOR = (4.0, 3.0, 5.0, 5.0), (9.0, 3.0, 13.0, 5.0)


def measure_congestion(candidate: Candidate, seed: int, *, people: int = 100) -> Outcome:
    """How dense people stand at the exit of a room, and how freely they walk in the corridor behind it."""
    track = _run(candidate, "nist_5_1", seed, {}, people)
    begin, end, halfway = while_passing(track, 5.2, until=0.6)
    at_exit, inside = (mean_density(track, box, begin=begin, end=end) for box in (_AT_EXIT, _IN_CORRIDOR))
    entered, left = passing_times(track, 9.0), passing_times(track, 13.0)
    through = np.isfinite(left)
    speed = float(np.mean(4.0 / (left[through] - entered[through]))) if through.any() else 0.0
    slowest, _ = published_range(inside)
    stuck = track.people - track.gone
    return Outcome(
        passed=not stuck and at_exit > QUEUE > inside and speed >= slowest,
        said=f"{at_exit:.1f} people per m² at the exit, {inside:.1f} in the corridor, at {speed:.2f} m/s"
        + (f"; {stuck} never leave" if stuck else ""),
        measured={"exit_per_m2": at_exit, "corridor_per_m2": inside, "corridor_m_s": speed, "stuck": stuck},
        drawn=halfway,
    )


def _draw_congestion(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    _draw_moment(axes, outcomes, "nist_5_1", (_AT_EXIT, _IN_CORRIDOR))


CASES = (
    Case(
        name="rimea_12a",
        expected="the farther goal takes longer",
        criterion="150 people leave a room by an opening of 1 m, with their goal right behind it or 8 m farther "
        "on. All arrive, and those with the farther goal later. Each seed places both crowds alike.",
        measure=measure_goal,
        draw=_draw_compared,
        share=2 / 3,
    ),
    Case(
        name="rimea_12b",
        expected="the longer bottleneck takes longer",
        criterion="150 people leave a room by a passage 1 m wide, 0.2 m or 5 m long. All arrive, and those with "
        "the long passage later; in experiments long bottlenecks also let fewer people through per second (Liddle "
        "et al. 2009).",
        measure=measure_length,
        draw=_draw_compared,
        share=2 / 3,
    ),
    Case(
        name="rimea_12c",
        expected=f"more than {QUEUE:g} people per m² at the first bottleneck, fewer at the second",
        criterion="150 people go through two openings of 1 m, one after the other. The first limits the flow, so "
        f"no queue forms at the second: while the middle of the crowd passes, more than {QUEUE:g} people per m² "
        "stand within 2 m of the first opening and fewer than that within 2 m of the second. The guideline asks "
        f"for no congestion; {QUEUE:g} per m² is about the density of greatest flow.",
        measure=measure_row,
        draw=_draw_row,
    ),
    Case(
        name="rimea_12d",
        expected="the flow grows with the width",
        criterion="150 people leave a room by a passage of 5 m that is 0.8, 1.0 or 1.2 m wide. All arrive, and the "
        "flow of the middle part of the crowd grows with the width.",
        measure=measure_width,
        draw=_draw_width,
        share=2 / 3,
    ),
    Case(
        name="nist_5_1",
        expected=f"more than {QUEUE:g} people per m² at the exit of the room, a free corridor behind it",
        criterion="100 people leave a room by an opening of 1 m into a corridor 2 m wide. A queue forms at the "
        f"opening (more than {QUEUE:g} people per m²), which feeds a steady flow: in the corridor there are fewer, "
        "and they walk on average at least as fast as the published curves of speed and density say. The note ends "
        "the corridor with stairs, where a second queue forms; tropel has no stairs, so that half is left out.",
        measure=measure_congestion,
        draw=_draw_congestion,
    ),
)
