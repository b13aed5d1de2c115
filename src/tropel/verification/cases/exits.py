"""Exits: more of them empty a room sooner, people take the one they are told, and another one when theirs closes."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tropel.pictures import style
from tropel.scenario import load_builtin
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import add_legend, draw_leaving, draw_paths, draw_plan
from tropel.verification.track import follow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Four exits, then two ---------------------------------------------------------------------------------------------

#: How much longer it may take with half of the exits.
LEAST_RATIO, MOST_RATIO = 1.6, 2.4
_TWO_EXITS = {f"world.exits.exit_{number}": None for number in (1, 2)} | {
    "world.walkable": [
        {"box": [0.0, 0.0, 30.0, 20.0]},
        {"box": [7.0, -1.0, 8.0, 0.0]},
        {"box": [22.0, -1.0, 23.0, 0.0]},
    ]
}


def measure_half(candidate: Candidate, seed: int, *, people: int = 1000) -> Outcome:
    """How long a crowd needs with four exits and with two."""
    left = []
    for changes in ({}, _TWO_EXITS):
        sim = candidate.build("rimea_9", seed=seed, changes={**changes, "groups.0.count": people})
        left.append(follow(sim, limit=900.0, every=5.0, patience=40.0).left)
    four, two = (float(times.max()) for times in left)
    ratio = two / four if math.isfinite(four) else math.nan
    stuck = [int(np.isinf(times).sum()) for times in left]
    return Outcome(
        passed=LEAST_RATIO <= ratio <= MOST_RATIO,
        said=f"{four:.0f} s with four exits, {two:.0f} s with two: {ratio:.2f} times as long"
        if not any(stuck)
        else f"the crowd gets stuck: {stuck[0]} people with four exits, {stuck[1]} with two",
        measured={"four_exits_s": four, "two_exits_s": two, "ratio": ratio, "stuck": stuck, "people": people},
        drawn=left,
    )


def _draw_half(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    four, two = outcomes[0].drawn
    draw_leaving(axes, [four, two], ["four exits", "two exits"], len(four))
    add_legend(axes)


# Assigned exits ---------------------------------------------------------------------------------------------------


def measure_assigned(candidate: Candidate, seed: int, *, scene: str) -> Outcome:
    """Whether each person leaves by the exit that they are assigned to."""
    told = {group.name: group.goal for group in load_builtin(scene).spec.groups}
    track = follow(candidate.build(scene, seed=seed), limit=120.0)
    as_told = track.through == np.array([told[name] for name in track.group])
    return Outcome(
        passed=bool(as_told.all()),
        said=f"{as_told.sum()} of {track.people} leave by their exit"
        + (f", {track.people - track.gone} never leave" if track.gone < track.people else ""),
        measured={"people": track.people, "by_their_exit": int(as_told.sum()), "left": track.gone},
        drawn=(track.thinned(0.1), [told[name] for name in track.group]),
    )


def _draw_assigned(axes: Axes, outcomes: Sequence[Outcome], *, scene: str) -> None:
    draw_plan(axes, scene)
    place, goals = outcomes[0].drawn
    colours = {"main": style.THERE, "secondary": style.GROUPS[1]}
    draw_paths(axes, place, colours=[colours[goal] for goal in goals])


def _assigned(name: str) -> Case:
    return Case(
        name=name,
        expected="all 23 leave by the exit that they are assigned to",
        criterion="23 people in twelve rooms leave by the exits that they are assigned to: the main exit for rooms "
        "1 to 4 and 7 to 10, the secondary exit for the others, whichever is nearer.",
        measure=functools.partial(measure_assigned, scene=name),
        draw=functools.partial(_draw_assigned, scene=name),
    )


# Choice of exits --------------------------------------------------------------------------------------------------

#: At least this share of people takes the farther exit.
LEAST_FAR = 0.02


def measure_choice(candidate: Candidate, seed: int, *, people: int = 1000, watched: int = 300) -> Outcome:
    """By which exit the first of a crowd leave."""
    sim = candidate.build("rimea_11", seed=seed, changes={"groups.0.count": people})
    track = follow(sim, limit=300.0, every=5.0, until_gone=watched, patience=40.0)
    near, far = (int((track.through == name).sum()) for name in ("near", "far"))
    share = far / max(near + far, 1)
    return Outcome(
        passed=near + far >= watched and LEAST_FAR <= share < 0.5,
        said=f"{share:.0%} of the first {near + far} take the farther exit",
        measured={"near": near, "far": far, "share_far": share},
        drawn=(
            track.place[min(6, len(track.place) - 1)],
            {name: track.left[track.through == name] for name in ("near", "far")},
        ),
    )


def _draw_choice(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    draw_plan(axes, "rimea_11")
    place, left = outcomes[0].drawn
    there = place[np.isfinite(place[:, 0])]
    axes.plot(*there.T, linestyle="", marker="o", markersize=3.2, color=style.THERE, mew=0, zorder=3)
    for (name, times), x in zip(left.items(), (7.5, 25.5), strict=True):
        axes.text(x, 21.6, f"{name}: {len(times)}", ha="center", fontsize=style.TEXT_SIZE, family=style.FONT)
    axes.set_ylim(-0.5, 23.0)


# An exit closes ---------------------------------------------------------------------------------------------------


def measure_closing(candidate: Candidate, seed: int) -> Outcome:
    """By which exit a person leaves when the nearer one closes."""
    track = follow(candidate.build("nist_4_1", seed=seed), limit=60.0)
    exit_used = str(track.through[0])
    return Outcome(
        passed=exit_used == "exit_2",
        said=f"leaves by {exit_used} after {track.evacuation_time:.1f} s" if exit_used else "never leaves",
        measured={"exit": exit_used, "time_s": track.evacuation_time},
        drawn=track.thinned(0.1),
    )


def _draw_closing(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    draw_plan(axes, "nist_4_1")
    draw_paths(axes, outcomes[0].drawn, colours=[style.THERE], width=1.8)
    axes.text(0.3, 10.7, "closed after 1 s", fontsize=style.SMALL_SIZE, family=style.FONT,
              color=style.label_colour(style.CLOSED_DOOR))  # fmt: skip


CASES = (
    Case(
        name="rimea_9",
        expected=f"with two exits {LEAST_RATIO:g} to {MOST_RATIO:g} times as long as with four",
        criterion="1000 people leave a room of 30 m by 20 m by four exits of 1 m; then the two of one side are "
        f"closed. The guideline expects about twice the time; here {LEAST_RATIO:g} to {MOST_RATIO:g} times as long "
        "passes.",
        measure=measure_half,
        draw=_draw_half,
        seeds=2,
        long=True,
    ),
    _assigned("rimea_10"),
    Case(
        name="rimea_11",
        expected=f"most take the nearer exit, at least {LEAST_FAR:.0%} the farther one",
        criterion="1000 people fill the left part of a room with two exits of 1 m in the same wall. They prefer "
        "the nearer exit, but some choose the other one by themselves, because of the crowd. The guideline gives "
        f"no number: here at least {LEAST_FAR:.0%} of the first 300 who leave, and fewer than half of them, must do "
        "so. People whom the crowd pushes nearer to the other exit count too.",
        measure=measure_choice,
        draw=_draw_choice,
        seeds=2,
        long=True,
    ),
    _assigned("nist_3_1"),
    Case(
        name="nist_4_1",
        expected="leaves by the other exit",
        criterion="A person walks at 1 m/s to the nearer of two exits, which is closed after one second. They turn "
        "round and leave by the other exit.",
        measure=measure_closing,
        draw=_draw_closing,
        height=700,
    ),
)
