"""People who differ: groups walk as fast as tables say, and one slow person in a wheelchair holds others up."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.distributions import Uniform
from tropel.pictures import style
from tropel.scenario import load_builtin
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import add_legend, draw_leaving, draw_points
from tropel.verification.track import follow, passing_times

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Speeds are measured between these lines [m].
_FROM, _TO = 8.0, 28.0
#: Speeds may be this much outside the range of a table [m/s].
_TOLERANCE = 0.03
#: The mean of a group may be this many standard errors from the middle of the range: one mean in a thousand is not.
_STANDARD_ERRORS = 3.3


def ranges(scene: str) -> dict[str, tuple[float, float]]:
    """The lowest and highest speed of each group of a scene [m/s]."""
    told = {group.name: group.desired_speed for group in load_builtin(scene).spec.groups}
    return {name: (speed.low, speed.high) for name, speed in told.items() if isinstance(speed, Uniform)}


def fits(speeds: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether speeds look like those of a group that is spread evenly between two speeds."""
    within = bool(((speeds >= low - _TOLERANCE) & (speeds <= high + _TOLERANCE)).all())
    error = (high - low) / math.sqrt(12.0 * len(speeds))
    return within and abs(float(speeds.mean()) - 0.5 * (low + high)) <= _STANDARD_ERRORS * error + _TOLERANCE


def measure_speeds(candidate: Candidate, seed: int, *, scene: str) -> Outcome:
    """How fast each person walks over 20 m of a hall."""
    told = ranges(scene)
    track = follow(candidate.build(scene, seed=seed), limit=120.0)
    speed = (_TO - _FROM) / (passing_times(track, _TO) - passing_times(track, _FROM))
    found = {name: speed[track.group == name] for name in told}
    good = [name for name, (low, high) in told.items() if fits(found[name], low, high)]
    bad = [name for name in told if name not in good]
    return Outcome(
        passed=not bad,
        said=f"{len(good)} of {len(told)} groups walk as the table says" + (f", not {', '.join(bad)}" if bad else ""),
        measured={name: [round(float(v), 3) for v in np.sort(speeds)] for name, speeds in found.items()},
    )


def _draw_speeds(axes: Axes, outcomes: Sequence[Outcome], *, scene: str) -> None:
    told = ranges(scene)
    for row, (name, (low, high)) in enumerate(told.items()):
        axes.plot([low, high], [row, row], color=style.mixed(style.EXIT, style.PAPER, 0.35), linewidth=14,
                  solid_capstyle="butt", label=None if row else "the table")  # fmt: skip
        for outcome in outcomes:
            draw_points(axes, outcome.measured[name], [row] * len(outcome.measured[name]))
        axes.text(0.02, row, name, va="center", fontsize=style.SMALL_SIZE, family=style.FONT, color=style.INK)
    draw_points(axes, [], [], label="measured")
    axes.set_yticks([])
    axes.set_ylim(len(told) - 0.5, -0.5)
    axes.set_xlim(0.0, 2.0)
    axes.grid(visible=False)
    style.label_axes(axes, x="walking speed [m/s]")
    add_legend(axes)


def _speeds(name: str, table: str, *, height: int) -> Case:
    return Case(
        name=name,
        expected="walking speeds of each group as in the table",
        criterion=f"People draw their speeds evenly between the lowest and highest value that {table} gives for "
        f"their group. Measured over 20 m, every speed lies within the range of its group (± {_TOLERANCE:g} m/s), "
        "and the mean of the group in its middle, as far as chance allows (3.3 standard errors).",
        measure=functools.partial(measure_speeds, scene=name),
        draw=functools.partial(_draw_speeds, scene=name),
        height=height,
    )


# A wheelchair -----------------------------------------------------------------------------------------------------

#: The same person without a disability.
_LIKE_THE_OTHERS = {"groups.1.radius": 0.2, "groups.1.desired_speed": 1.25}


def measure_wheelchair(candidate: Candidate, seed: int) -> Outcome:
    """How long it takes until all have left, with a person in a wheelchair and with 25 people alike."""
    with_chair = follow(candidate.build("nist_2_10", seed=seed), limit=200.0)
    without = follow(candidate.build("nist_2_10", seed=seed, changes=_LIKE_THE_OTHERS), limit=200.0)
    slow, fast = with_chair.evacuation_time, without.evacuation_time
    everybody = with_chair.gone == with_chair.people and without.gone == without.people
    return Outcome(
        passed=everybody and slow > fast,
        said=f"{slow:.1f} s with a wheelchair, {fast:.1f} s without"
        if everybody
        else f"{with_chair.people - with_chair.gone} with and {without.people - without.gone} without never leave",
        measured={"with_wheelchair_s": slow, "without_s": fast, "left": [with_chair.gone, without.gone]},
        drawn=(with_chair.left, without.left),
    )


def _draw_wheelchair(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    with_chair, without = outcomes[0].drawn
    draw_leaving(axes, [with_chair, without], ["with a wheelchair", "without"], len(without))
    add_legend(axes)


CASES = (
    _speeds("rimea_7", "the guideline (after Weidmann 1993)", height=480),
    _speeds("nist_2_4", "the IMO (MSC.1/Circ.1238, table 3.4)", height=700),
    Case(
        name="nist_2_10",
        expected="all leave, and with a wheelchair it takes longer",
        criterion="24 people (1.25 m/s, 0.4 m wide) and one in a wheelchair (0.8 m/s, 0.8 m wide), who starts "
        "ahead of them, leave by a corridor 1.5 m wide and a door of 1 m. All of them leave, and it takes longer "
        "than if all 25 were alike. The note has a ramp between two rooms; tropel is flat, so a corridor stands "
        "for it.",
        measure=measure_wheelchair,
        draw=_draw_wheelchair,
    ),
)
