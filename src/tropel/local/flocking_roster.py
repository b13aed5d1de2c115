"""Who is there, as a flock needs to know it: groups, leaders, traits that differ, and the order of neighbours."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.flock_lanes import LANES
from tropel._kernels.neighbours import Neighbours
from tropel.agents.state import AgentState, Floats
from tropel.local.flocking_parameters import NOBODY, FlockingParameters, Relations, relations_of
from tropel.quantities import Quantity

#: In the column `leader`, and among rows of leaders.
NO_LEADER = -1

#: Numbers per unit of parallel work.
_PART = 1 << 15
_FEW = 1 << 12
_ONE = np.uint64(1)
_NO_ROWS = np.empty(0, dtype=np.int64)
_ALL_PLACES = np.empty(0, dtype=np.uint32)


@kernel
def _differ(words, first, last):
    """Whether any of some words differs from the first of all; a branch for each would be slower."""
    odd = np.uint64(0)
    for k in range(np.uint64(first), np.uint64(last)):
        odd |= words[k] ^ words[0]
    return odd != 0


@parallel_kernel
def _find_odd(words, odd):
    for part in numba.prange(odd.size):
        odd[part] = _differ(words, part * _PART, min((part + 1) * _PART, words.size))


def all_same(column: NDArray[np.float64] | NDArray[np.int64]) -> bool:
    """Whether all numbers of a column are the same, bit for bit."""
    if column.size <= _FEW:
        # Calling a kernel would take longer.
        raw = column.tobytes()
        return raw == raw[:8] * column.size
    words = column.reshape(-1).view(np.uint64)
    if words[0] != words[-1]:
        return False
    if words.size <= 4 * _PART:
        # Waking the other threads would take longer.
        return not _differ(words, 0, words.size)
    odd = np.empty(-(-words.size // _PART), dtype=np.bool_)
    _find_odd(words, odd)
    return not odd.any()


def trait_of(state: AgentState, trait: Quantity, of_model: float | None) -> Floats:
    """A trait of all agents, as one number when all have the same; what is not theirs is the model's."""
    column = state.columns[trait.name]
    open_value = math.nan if of_model is None else float(of_model)
    if all_same(column) and len(column):
        value = column.item(0)
        value = open_value if math.isnan(value) else value
        if value < trait.low or value > trait.high or (trait.above is not None and value <= trait.above):
            trait.check(value, f"agent {int(state.id[0])}")
        return np.array([value])
    values = np.where(np.isnan(column), open_value, column) if np.isnan(column).any() else column
    above = -math.inf if trait.above is None else trait.above
    # Where nothing is said at all values are nan, and none of this holds.
    wrong = np.flatnonzero((values < trait.low) | (values > trait.high) | (values <= above))
    if len(wrong):
        row = int(wrong[0])
        trait.check(float(values[row]), f"agent {int(state.id[row])}")
    return values


@kernel
def _find_places(order, is_member, places):
    """Write the places of members among the sorted agents."""
    found = np.uint64(0)
    for k in range(np.uint64(order.size)):
        if is_member[np.uint64(order[k])]:
            places[found] = k
            found += _ONE


def places_of(order: NDArray[np.uint32], members: NDArray[np.int64], count: int) -> NDArray[np.uint32]:
    """Places of the members among the sorted agents, ascending; empty when all agents are members."""
    if len(members) == count:
        return _ALL_PLACES
    is_member = np.zeros(count, dtype=np.bool_)
    is_member[members] = True
    places = np.empty(len(members), dtype=np.uint32)
    _find_places(order, is_member, places)
    return places


class Roster:
    """Remembers what changes seldom: which groups a model steers, and who leads whom."""

    def __init__(self, parameters: FlockingParameters) -> None:
        self._parameters = parameters
        self._groups: tuple[int, ...] = ()
        self._relations = Relations(*(np.zeros(1, dtype=np.uint64) for _ in Relations._fields))
        self._all_mates = False
        self._version = -1
        self._leader = self._leader_rows = _NO_ROWS

    def relations(self, state: AgentState, own: tuple[int, ...]) -> tuple[Relations, bool]:
        """How the groups stand to each other, of which the model steers its `own`, and whether all are mates of all."""
        if self._groups != own:
            groups = list(state.group_names) or [""] * (max(own) + 1)
            self._relations = relations_of(self._parameters, groups, list(own))
            everybody = np.uint64((1 << len(groups)) - 1)
            self._all_mates = bool((self._relations.joined[list(own)] == everybody).all()) and len(own) == len(groups)
            self._groups = own
        return self._relations, self._all_mates and not np.count_nonzero(state.dead)

    def leaders(self, state: AgentState) -> NDArray[np.int64]:
        """The row of everybody's leader, NO_LEADER for who has none that is there; empty where nobody has one."""
        leader = state.columns["leader"]
        if all_same(leader) and leader[0] == NO_LEADER:
            return _NO_ROWS
        if self._version != state.version or not np.array_equal(self._leader, leader):
            self._version, self._leader = state.version, leader.copy()
            self._leader_rows = np.where(leader == state.id, NO_LEADER, state.row_of(leader))
        if np.count_nonzero(state.dead):
            gone = (self._leader_rows >= 0) & (state.dead[self._leader_rows] != 0)
            return np.where(gone, NO_LEADER, self._leader_rows)
        return self._leader_rows


def with_dead_apart(near: Neighbours, state: AgentState) -> Neighbours:
    """The same neighbours with the dead in a group of their own."""
    if not np.count_nonzero(state.dead):
        return near
    group, met = _padded(near.group), _padded(near.met_group)
    group[state.dead[near.order] != 0] = NOBODY
    met[state.dead[near.met] != 0] = NOBODY
    return near._replace(group=group, met_group=met)


def _padded(column: NDArray[np.int32]) -> NDArray[np.int32]:
    """A copy behind which whole vectors can be read."""
    room = np.zeros(len(column) + LANES, dtype=column.dtype)
    room[: len(column)] = column
    return room[: len(column)]
