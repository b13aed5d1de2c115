"""Wait for followers: a leader whose party would split waits for the others, or goes back to them, but not for ever.

The followers farther than `within` from their leader are left behind; let s be their share. The leader's planned
direction e becomes

    s up to share / 2     e
    s = share or more     zero (`"wait"`), or the unit vector to the middle of those left behind (`"regroup"`)

and linear in between, so nothing jumps when one more falls behind. Where a wall hides that middle, leaders that would
regroup wait. Boids never stand still: without a planned direction they fly on at their lowest speed, with their mates.

Followers that are stuck, behind a door that stays shut for example, never come. If the middle of all followers has not
moved farther than `within` in `patience` seconds of waiting, the leader resigns itself to those left behind and goes on
with the others. From then on as many of them are not waited for, until they have caught up.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.walls import chord_blocked
from tropel.agents.leaders import LEADER
from tropel.agents.state import AgentState, Floats
from tropel.agents.whole_crowd import STEPS_PER_METRE
from tropel.contracts import Declaration, Habit, Moment
from tropel.errors import CheckpointError
from tropel.foundation.arguments import checked_arguments
from tropel.foundation.quantities import Quantity
from tropel.foundation.stored_arrays import taken
from tropel.world.periodic import nearest_images
from tropel.world.shapes import FARTHEST

Ints = NDArray[np.int64]

WITHIN = Quantity(name="within", above=0.0, high=1e6, unit="m", about="followers beyond this distance are left behind")
SHARE = Quantity(
    name="share", above=0.0, high=1.0, about="of the followers; when so many are left behind, leaders stop"
)
PATIENCE = Quantity(
    name="patience", above=0.0, high=1e6, unit="s", about="how long leaders wait for followers that do not come"
)


class _Party(NamedTuple):
    """The followers of each leader, a row for each leader."""

    size: Ints
    behind: Ints  #: how many are left behind
    middle: Floats  #: of all followers [m]
    middle_behind: Floats  #: of those left behind [m]


class WaitForFollowers(Habit):
    """Leaders wait, or regroup, when a `share` of their followers is farther than `within` [m] from them.

    For followers that do not come they wait `patience` [s].
    """

    declares = Declaration(columns=(LEADER,), periodic_space=True)

    @checked_arguments
    def __init__(
        self, *, within: Annotated[float, WITHIN] = 5.0, share: Annotated[float, SHARE] = 0.5,
        split: Literal["wait", "regroup"] = "wait", patience: Annotated[float, PATIENCE] = 30.0,
    ) -> None:  # fmt: skip
        self.parameters = f"within={within!r}, share={share!r}, split={split!r}, patience={patience!r}"
        self._within, self._share, self._regroups = float(within), float(share), split == "regroup"
        self._patience = float(patience)
        self._forget(2)

    def _forget(self, dim: int) -> None:
        """Know nothing of any leader. The arrays have a row for each leader, by id."""
        self._step = -1  #: in which step the rest was last brought up to date
        self._ids: Ints = np.empty(0, dtype=np.int64)
        self._waited: Floats = np.empty(0)  #: how long it has waited without any progress [s]
        self._since: Floats = np.empty((0, dim))  #: the middle of its followers when it began to [m]
        self._resigned: Ints = np.empty(0, dtype=np.int64)  #: how many of those left behind it does not wait for

    def prepare(self, moment: Moment) -> None:
        self._forget(moment.state.dim)

    def is_idle(self, moment: Moment) -> bool:
        return moment.reduce.largest(moment.state.columns[LEADER.name], initial=-1) < 0

    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Shorten or turn the directions of the leaders among the members."""
        state, ids = moment.state, moment.trails.ids
        if not len(ids):
            return
        party = self._party(moment, state, ids)
        # Groups with several models are adjusted in several phases of a step; time passes once.
        if moment.step != self._step:
            self._keep_up(moment, ids, party)
        keeps = self._keeps(party)
        rows = state.row_of(ids)
        here = np.flatnonzero((rows >= 0) & np.isin(rows, moment.members) & (keeps < 1.0))
        rows, keeps = rows[here], keeps[here]
        directions[rows] *= keeps[:, None]
        if self._regroups and len(rows):
            back = nearest_images(party.middle_behind[here] - state.position[rows], moment.world.period)
            away = np.linalg.norm(back, axis=1)
            seen = away > 0.0
            if state.dim == 2:
                walls = moment.world.wall_grid(2.0)
                for k, row in enumerate(rows.tolist()):
                    x, y = state.position[row].tolist()
                    seen[k] &= not chord_blocked(x, y, x + float(back[k, 0]), y + float(back[k, 1]), walls)
            rows, back, away, keeps = rows[seen], back[seen], away[seen], keeps[seen]
            directions[rows] += (1.0 - keeps)[:, None] * back / away[:, None]

    def _keeps(self, party: _Party) -> Floats:
        """How much of its planned direction each leader keeps: 1 while its party is together, 0 when it waits."""
        resigned = np.minimum(self._resigned, party.behind)
        left = (party.behind - resigned) / np.maximum(party.size - resigned, 1)
        return np.clip(2.0 * (1.0 - left / self._share), 0.0, 1.0)

    def _keep_up(self, moment: Moment, ids: Ints, party: _Party) -> None:
        """Count how long leaders have waited in vain. All processes know the same of all leaders."""
        if not np.array_equal(ids, self._ids):
            old = np.minimum(np.searchsorted(self._ids, ids), max(len(self._ids) - 1, 0))
            known = self._ids[old] == ids if len(self._ids) else np.zeros(len(ids), dtype=np.bool_)
            waited, since, resigned = np.zeros(len(ids)), party.middle.copy(), np.zeros(len(ids), dtype=np.int64)
            waited[known], since[known] = self._waited[old[known]], self._since[old[known]]
            resigned[known] = self._resigned[old[known]]
            self._ids, self._waited, self._since, self._resigned = ids.copy(), waited, since, resigned
        self._resigned = np.minimum(self._resigned, party.behind)
        moved = np.linalg.norm(nearest_images(party.middle - self._since, moment.world.period), axis=1)
        goes_on = (self._keeps(party) == 1.0) | (moved > self._within)
        self._since[goes_on] = party.middle[goes_on]
        self._waited = np.where(goes_on, 0.0, self._waited + moment.dt)
        over = self._waited > self._patience
        self._resigned[over], self._waited[over] = party.behind[over], 0.0
        self._step = moment.step

    def _party(self, moment: Moment, state: AgentState, ids: Ints) -> _Party:
        leader, world = state.columns[LEADER.name], moment.world
        own = np.flatnonzero((leader >= 0) & (leader != state.id) & (state.dead == 0))
        own = own[own < state.owned]
        party = np.searchsorted(ids, leader[own])
        known = np.append(ids, -2)[party] == leader[own]
        own, party = own[known], party[known]
        # Trails know where leaders are that another process moves.
        offset = nearest_images(state.position[own] - moment.trails.now[party], world.period)
        far = np.linalg.norm(offset, axis=1) > self._within
        steps = np.floor(offset * STEPS_PER_METRE + 0.5).astype(np.int64)
        count = moment.reduce.counts(np.bincount(party, minlength=len(ids)))
        behind = moment.reduce.counts(np.bincount(party[far], minlength=len(ids)))

        def middle(which: NDArray[np.bool_], number: Ints) -> Floats:
            total = np.zeros((len(ids), state.dim), dtype=np.int64)
            np.add.at(total, party[which], steps[which])
            return moment.trails.now + moment.reduce.counts(total) / (np.maximum(number, 1) * STEPS_PER_METRE)[:, None]

        return _Party(count, behind, middle(np.ones(len(own), dtype=np.bool_), count), middle(far, behind))

    def state(self) -> dict[str, NDArray[Any]]:
        return {"id": self._ids, "waited": self._waited, "since": self._since, "resigned": self._resigned}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        ids = taken(stored, "id", dtype="int64", shape=(None,), low=0)
        if (np.diff(ids) <= 0).any():
            raise CheckpointError("'id' must hold ascending numbers, each once")
        waited = taken(stored, "waited", dtype="float64", shape=ids.shape, low=0.0)
        shape = (len(ids), self._since.shape[1])
        since = taken(stored, "since", dtype="float64", shape=shape, low=-FARTHEST, high=FARTHEST)
        resigned = taken(stored, "resigned", dtype="int64", shape=ids.shape, low=0)
        self._step = -1
        self._ids, self._waited, self._since, self._resigned = ids, waited, since, resigned
