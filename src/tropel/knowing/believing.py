"""Beliefs as planners get them: agents that believe the same of doors, exits, obstacles and hazards plan together.

Distinct beliefs are few, because most agents know the same. At most `most_plans` of them get a world of their own to
plan in; the rarest take the plan of the belief that differs least from theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NEAREST_TARGET, AgentState, Floats
from tropel.contracts.beliefs import AS_IT_IS, Belief, Beliefs, Rows, Sightings
from tropel.knowing.table import Table
from tropel.knowing.things import NO, YES, Kind, Things
from tropel.world import World
from tropel.world.believed import BelievedWorld

#: What planners take into account.
_PLANNED = (Kind.DOOR, Kind.EXIT, Kind.OBSTACLE, Kind.HAZARD)


@dataclass(frozen=True, eq=False, kw_only=True)
class Kinds:
    """The distinct beliefs of a moment."""

    of_holder: NDArray[np.int64]  #: index into `keys` for each holder
    keys: list[bytes]
    blocked: list[tuple[int, ...]]  #: numbers of the things that are in the way


def is_blocked(state: NDArray[np.int16], kind: NDArray[np.int8]) -> NDArray[np.bool_]:
    """Which things are in the way: doors and exits that are shut, obstacles and hazards that are there."""
    opens = np.isin(kind, (Kind.DOOR, Kind.EXIT))
    return np.where(opens, state == NO, (state == YES) & np.isin(kind, _PLANNED))


def distinct(
    state: NDArray[np.int16], truth: NDArray[np.int16], things: Things, weight: NDArray[np.int64], most: int
) -> Kinds:
    """The distinct beliefs of holders, of which `weight` tells how many agents share each."""
    planned = np.flatnonzero(np.isin(things.kind, _PLANNED))
    own = is_blocked(state, things.kind)[:, planned]
    real = is_blocked(truth, things.kind)[planned]
    packed = np.ascontiguousarray(np.packbits(own, axis=1))
    if packed.shape[1]:
        first, inverse = np.unique(
            packed.view(np.dtype((np.void, packed.shape[1]))).ravel(), return_index=True, return_inverse=True
        )[1:]
    else:
        first, inverse = np.zeros(min(len(own), 1), dtype=np.int64), np.zeros(len(own), dtype=np.int64)
    rows = own[first]
    counts = np.zeros(len(rows), dtype=np.int64)
    np.add.at(counts, inverse, weight)
    blocked = [tuple(planned[row].tolist()) for row in rows]
    keys = [
        AS_IT_IS if (row == real).all() else "\n".join(sorted(things.keys[k] for k in own)).encode() + b"\n"
        for row, own in zip(rows, blocked, strict=True)
    ]
    # Common beliefs first; the world as it is costs nothing.
    order = sorted(range(len(rows)), key=lambda k: (keys[k] != AS_IT_IS, -counts[k], keys[k]))
    kept = order[: most + (AS_IT_IS in keys)]
    stands_for = {k: k for k in kept}
    for k in order[len(kept) :]:
        differ = (rows[kept] != rows[k]).sum(axis=1)
        stands_for[k] = kept[int(differ.argmin())]
    place = {k: number for number, k in enumerate(kept)}
    renumbered = np.array([place[stands_for[k]] for k in range(len(rows))], dtype=np.int64)
    return Kinds(
        of_holder=renumbered[inverse] if len(rows) else np.empty(0, dtype=np.int64),
        keys=[keys[k] for k in kept],
        blocked=[blocked[k] for k in kept],
    )


class BelievedWorlds:
    """The worlds that belong to beliefs, kept from step to step."""

    def __init__(self) -> None:
        self._known: dict[bytes, BelievedWorld] = {}

    def clear(self) -> None:
        self._known = {}

    def of(self, kinds: Kinds, things: Things, world: World) -> list[World]:
        """A world for each key, up to date."""
        worlds: list[World] = []
        for key, numbers in zip(kinds.keys, kinds.blocked, strict=True):
            if key == AS_IT_IS:
                worlds.append(world)
                continue
            blocked = things.blocked(numbers)
            if key in self._known:
                self._known[key].refresh(blocked)
            else:
                self._known[key] = BelievedWorld(world, blocked)
            worlds.append(self._known[key])
        for key in [key for key in self._known if key not in kinds.keys]:
            if len(self._known) > 2 * len(kinds.keys) + 8:
                del self._known[key]
        return worlds


@dataclass(frozen=True, eq=False, kw_only=True)
class BeliefsNow(Beliefs):
    """What agents believe in this step."""

    state: AgentState
    world: World
    holder: NDArray[np.int64]  #: of each row; -1 for agents that know the world as it is
    kinds: Kinds
    worlds: Sequence[World]
    table: Table
    things: Things
    dt: float

    def is_limited(self, rows: Rows) -> NDArray[np.bool_]:
        return np.asarray(self.holder[rows] >= 0)

    def by_world(self, members: Rows) -> list[Belief]:
        holder = self.holder[members]
        kind = np.where(holder < 0, -1, self.kinds.of_holder[holder]) if len(self.kinds.of_holder) else holder
        found = [Belief(AS_IT_IS, self.world, members[kind < 0])] if (kind < 0).any() else []
        for number, (key, world) in enumerate(zip(self.kinds.keys, self.worlds, strict=True)):
            rows = members[kind == number]
            if not len(rows):
                continue
            if key == AS_IT_IS and found:
                found[0] = Belief(AS_IT_IS, self.world, np.sort(np.concatenate([found[0].rows, rows])))
            else:
                found.append(Belief(key, world, rows))
        return found

    def shut_doors(self, rows: Rows) -> NDArray[np.bool_]:
        doors = self.things.numbers_of(Kind.DOOR)
        real = np.array([not door.open for door in self.world.doors.values()], dtype=np.bool_)
        holder = self.holder[rows]
        believed = self.table.state[holder][:, doors] == NO
        return np.where((holder >= 0)[:, None], believed, real[None])

    def target_places(self, rows: Rows) -> Floats:
        goals, goal = self.world.goals(), self.state.goal[rows]
        found = np.full((len(rows), self.state.dim), np.nan)
        names = {number: name for name, number in self.world.goal_numbers.items()}
        for number in np.unique(goal[goal >= 0]).tolist():
            if number < len(goals.is_target) and goals.is_target[number]:
                some = np.flatnonzero(goal == number)
                found[some] = self._believed_place(f"target {names[number]}", rows[some], goals.position[number])
        if NEAREST_TARGET in goal:
            some = np.flatnonzero(goal == NEAREST_TARGET)
            found[some] = self._nearest(rows[some])
        return found

    def _believed_place(self, key: str, rows: Rows, real: Floats) -> Floats:
        holder, number = self.holder[rows], self.things.number(key)
        known = self.table.place[holder, self.table.slot[number]].copy()
        known[self.table.state[holder, number] != YES] = np.nan
        return np.where((holder >= 0)[:, None], known, real[None])

    def _nearest(self, rows: Rows) -> Floats:
        best, least = np.full((len(rows), self.state.dim), np.nan), np.full(len(rows), np.inf)
        for number in self.things.numbers_of(Kind.TARGET).tolist():
            place = self._believed_place(self.things.keys[number], rows, self.things.place[number])
            away = np.linalg.norm(place - self.state.position[rows], axis=1)
            nearer = away < least  # false where nothing is known
            best[nearer], least[nearer] = place[nearer], away[nearer]
        return best

    def enemies(self, rows: Rows) -> Sightings:
        holder, hostile = self.holder[rows], self.things.numbers_of(Kind.GROUP)
        count = np.zeros(len(rows), dtype=np.int64)
        place, time = np.full((len(rows), self.state.dim), np.nan), np.full(len(rows), np.nan)
        for number in hostile.tolist():
            seen = (holder >= 0) & (self.table.state[holder, number] > 0)
            when = self.table.when[holder, number] * self.dt
            count[seen] += self.table.state[holder, number][seen]
            newer = seen & ~(when <= time)
            place[newer], time[newer] = self.table.place[holder, self.table.slot[number]][newer], when[newer]
        return Sightings(count, place, time)
