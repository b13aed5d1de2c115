"""Groups: people who belong together arrive together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tropel.pictures import style
from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome
from tropel.verification.drawing import draw_paths, draw_plan
from tropel.verification.track import follow

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Between the first and the last member at the exit [s].
LONGEST_SPREAD = 10.0
_MEMBERS = ("fast members", "slow member")


def measure_together(candidate: Candidate, seed: int) -> Outcome:
    """How far apart in time the members of a group leave."""
    track = follow(candidate.build("nist_2_9", seed=seed), limit=200.0)
    left = track.left[track.of(*_MEMBERS)]
    everybody = bool(np.isfinite(left).all())
    spread = float(left.max() - left.min()) if everybody else float("inf")
    return Outcome(
        passed=spread <= LONGEST_SPREAD,
        said=f"the members leave within {spread:.1f} s" if everybody else f"{np.isinf(left).sum()} members never leave",
        measured={"spread_s": spread},
        drawn=(track.thinned(0.2), track.group),
    )


def _draw_together(axes: Axes, outcomes: Sequence[Outcome]) -> None:
    draw_plan(axes, "nist_2_9")
    place, groups = outcomes[0].drawn
    colour = {"fast members": style.THERE, "slow member": style.CLOSED_DOOR, "others": style.REGION}
    draw_paths(axes, place, colours=[colour[name] for name in groups])


CASES = (
    Case(
        name="nist_2_9",
        expected=f"the members of the group leave within {LONGEST_SPREAD:g} s",
        criterion="Four people at 1.25 m/s and one at 0.5 m/s form a group; ten others at 0.2 m/s stand in their "
        f"way. The first and the last of the group leave within {LONGEST_SPREAD:g} s of each other. Only models "
        "that know families can be judged.",
        measure=measure_together,
        draw=_draw_together,
        height=820,
    ),
)
