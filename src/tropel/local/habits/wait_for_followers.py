"""Wait for followers: a leader whose party would split waits for the others, or goes back to them.

The followers farther than `within` from their leader are left behind; let s be their share. The leader's planned
direction e becomes

    s up to share / 2     e
    s = share or more     zero (`"wait"`), or the unit vector to the middle of those left behind (`"regroup"`)

and linear in between, so nothing jumps when one more falls behind. Where a wall hides that middle, leaders that would
regroup wait. Boids never stand still: without a planned direction they fly on at their lowest speed, with their mates.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.walls import chord_blocked
from tropel.agents.leaders import LEADER, STEPS_PER_METRE
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Declaration, Habit, Moment
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.world.periodic import nearest_images

Ints = NDArray[np.int64]

WITHIN = Quantity(name="within", above=0.0, high=1e6, unit="m", about="followers beyond this distance are left behind")
SHARE = Quantity(
    name="share", above=0.0, high=1.0, about="of the followers; when so many are left behind, leaders stop"
)


class WaitForFollowers(Habit):
    """Leaders wait, or regroup, when a `share` of their followers is farther than `within` [m] from them."""

    declares = Declaration(columns=(LEADER,), periodic_space=True)

    @checked_arguments
    def __init__(
        self, *, within: Annotated[float, WITHIN] = 5.0, share: Annotated[float, SHARE] = 0.5,
        split: Literal["wait", "regroup"] = "wait",
    ) -> None:  # fmt: skip
        self.parameters = f"within={within!r}, share={share!r}, split={split!r}"
        self._within, self._share, self._regroups = float(within), float(share), split == "regroup"

    def is_idle(self, moment: Moment) -> bool:
        return moment.reduce.largest(moment.state.columns[LEADER.name], initial=-1) < 0

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Shorten or turn the directions of the leaders among the members."""
        state, trails = moment.state, moment.trails
        ids = trails.ids
        if not len(ids):
            return
        behind, middle = self._left_behind(moment, state, ids)
        rows = state.row_of(ids)
        here = np.flatnonzero((rows >= 0) & np.isin(rows, moment.members) & (behind > 0.5 * self._share))
        keeps = np.clip(2.0 * (1.0 - behind[here] / self._share), 0.0, 1.0)
        rows = rows[here]
        directions[rows] *= keeps[:, None]
        if self._regroups and len(rows):
            back = nearest_images(middle[here] - state.position[rows], moment.world.period)
            away = np.linalg.norm(back, axis=1)
            seen = away > 0.0
            if state.dim == 2:
                walls = moment.world.wall_grid(2.0)
                for k, row in enumerate(rows.tolist()):
                    x, y = state.position[row].tolist()
                    seen[k] &= not chord_blocked(x, y, x + float(back[k, 0]), y + float(back[k, 1]), walls)
            rows, back, away, keeps = rows[seen], back[seen], away[seen], keeps[seen]
            directions[rows] += (1.0 - keeps)[:, None] * back / away[:, None]

    def _left_behind(self, moment: Moment, state: AgentState, ids: Ints) -> tuple[Floats, Floats]:
        """For each leader, the share of its followers that is left behind, and the middle of those [m]."""
        leader, world = state.columns[LEADER.name], moment.world
        own = np.flatnonzero((leader >= 0) & (leader != state.id) & (state.dead == 0))
        own = own[own < state.owned]
        party = np.searchsorted(ids, leader[own])
        known = np.append(ids, -2)[party] == leader[own]
        own, party = own[known], party[known]
        # Trails know where leaders are that another process moves.
        offset = nearest_images(state.position[own] - moment.trails.now[party], world.period)
        far = np.linalg.norm(offset, axis=1) > self._within
        count = moment.reduce.counts(np.bincount(party, minlength=len(ids)))
        behind = moment.reduce.counts(np.bincount(party[far], minlength=len(ids)))
        total = np.zeros((len(ids), state.dim), dtype=np.int64)
        np.add.at(total, party[far], np.floor(offset[far] * STEPS_PER_METRE + 0.5).astype(np.int64))
        total = moment.reduce.counts(total)
        middle = moment.trails.now + total / (np.maximum(behind, 1) * STEPS_PER_METRE)[:, None]
        return behind / np.maximum(count, 1), middle
