"""Flocks: boids that separate, cohere and align, follow leaders, and steer around obstacles.

Reynolds, "Flocks, herds, and schools: a distributed behavioral model" (1987) and "Steering behaviors for autonomous
characters" (1999), with the leader, goal and obstacle rules of Zhou's thesis (GROUPS, 2006, §3.1). The force on a boid
[m/s²] is the sum of its rules, with d = x_j - x_i and r = |d| for those in sight:

    separation           - w s sum of d (1/r² - 1/s²)     mates nearer than s, the separation distance
    cohesion               w mean of d / R                mates; R the sense radius
    alignment              w mean of (v_j - v_i) / v0     mates; v0 the desired speed, which is the top speed
    avoidance            - w R sum of d (1/r² - 1/R²)     of groups that are avoided
    flight               - w f sum of d (1/r² - 1/f²)     of groups fled from, within the flee radius f, all around
    pursuit                w d / r                        the nearest of groups that are chased
    leader                 w d / max(r, R)                the boid's leader
                           w (d / r - v_i / v0)           a point of the leader's trail, if a wall hides the leader
    goal                   w · planned direction          zero without a goal
    obstacles              `local/flocking/obstacles.py`

    v' = v + dt · force,   |force| ≤ max_force,   least_speed · v0 ≤ |v'| ≤ v0

Agents are in sight if they are within the sense radius and not in the blind cone behind the velocity. With `nearest`,
only this many of them count as mates: the nearest ones, ties going to the lower id. `combine="priorities"` replaces the
sum: it grants each rule what it wants in turn, until the cap is used up. The order is obstacles, flight, separation,
avoidance, alignment, cohesion, pursuit, leader, goal (Reynolds 1987; the goal last as in GROUPS §4.3).

Mates are the boid's own group and all other groups steered by the same model, unless `join`, `avoid`, `ignore`, `chase`
or `flee` give another relation. Groups steered by other models are avoided. Bodies of a flock are not solid among
themselves; `integrate` keeps them out of walls and obstacles. A boid that stands still without any force on it sets off
in a random direction.

The first half of the file prepares what the kernels need: traits that differ between agents, relations and leaders
(`Roster`), and the order of neighbours. The model follows.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.neighbours import Neighbours
from tropel._kernels.philox import random_key
from tropel.agents.leaders import LEADER
from tropel.agents.state import AgentState, Floats, Steered
from tropel.agents.trails import Pursued, pursued_places
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import ParameterError
from tropel.foundation.quantities import Quantity
from tropel.local.flocking.lanes import LANES
from tropel.local.flocking.obstacles import obstacles_around
from tropel.local.flocking.parameters import (
    NOBODY,
    TRAITS,
    FlockingParameters,
    Relations,
    Traits,
    check_groups,
    column_of,
    relations_of,
)
from tropel.local.flocking.step import Boids, Flight, steer_flock
from tropel.local.flocking.sums import ALL_ROUND, BY_GROUP, IN_VIEW, room_for_runs

# Inputs of the kernels: groups, leaders, traits that differ, and the order of neighbours.


#: Means "none", in the column `leader` and among the rows of leaders.
NO_LEADER = -1

#: Numbers per unit of parallel work.
_PART = 1 << 15
_FEW = 1 << 12
_ONE = np.uint64(1)
_NO_ROWS = np.empty(0, dtype=np.int64)
_ALL_PLACES = np.empty(0, dtype=np.uint32)
_ALL_SEEN = {dim: Pursued(np.empty((0, dim)), np.empty(0, dtype=np.bool_)) for dim in (2, 3)}


@kernel
def _differ(words, first, last):
    """Whether any of some words differs from the first of all; a branch for each word would be slower."""
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
    """A trait of all agents, as one number if all have the same. Agents without a value get the model's."""
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
    # Where no value is given, values are nan, and none of these comparisons holds.
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
    """Places of the members among the sorted agents, ascending; empty if all agents are members."""
    if len(members) == count:
        return _ALL_PLACES
    is_member = np.zeros(count, dtype=np.bool_)
    is_member[members] = True
    places = np.empty(len(members), dtype=np.uint32)
    _find_places(order, is_member, places)
    return places


class Roster:
    """Caches what changes seldom: the groups that a model steers, and the leader of each agent."""

    def __init__(self, parameters: FlockingParameters) -> None:
        self._parameters = parameters
        self._groups: tuple[int, ...] = ()
        self._relations = Relations(*(np.zeros(1, dtype=np.uint64) for _ in Relations._fields))
        self._all_mates = False
        self._version = -1
        self._leader = self._leader_rows = _NO_ROWS

    def relations(self, state: AgentState, own: tuple[int, ...]) -> tuple[Relations, bool]:
        """The relations between groups, for a model that steers its `own`, and whether all groups are mates."""
        if self._groups != own:
            groups = list(state.group_names) or [""] * (max(own) + 1)
            self._relations = relations_of(self._parameters, groups, list(own))
            everybody = np.uint64((1 << len(groups)) - 1)
            self._all_mates = bool((self._relations.joined[list(own)] == everybody).all()) and len(own) == len(groups)
            self._groups = own
        return self._relations, self._all_mates and not np.count_nonzero(state.dead)

    def leaders(self, state: AgentState) -> NDArray[np.int64]:
        """The row of each agent's leader, NO_LEADER if it has none in the crowd; empty if no agent has one."""
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
    """The same neighbours with the dead in a separate group."""
    if not np.count_nonzero(state.dead):
        return near
    group, met = _padded(near.group), _padded(near.met_group)
    group[state.dead[near.order] != 0] = NOBODY
    met[state.dead[near.met] != 0] = NOBODY
    return near._replace(group=group, met_group=met)


def _padded(column: NDArray[np.int32]) -> NDArray[np.int32]:
    """A copy with padding, so that whole vectors can be read past its end."""
    room = np.zeros(len(column) + LANES, dtype=column.dtype)
    room[: len(column)] = column
    return room[: len(column)]


#: Stands in for a trait of a rule that no agent follows now.
_UNUSED = np.zeros(1)


class Flocking(Model):
    """Boids: separation, cohesion, alignment, leaders, goals, obstacles, other flocks, predators and prey.

    Parameters: `FlockingParameters`.
    """

    declares = ModelDeclaration(
        columns=(
            *(column_of(trait) for trait in TRAITS),
            LEADER,
        ),
        periodic_space=True,
        bodies_may_overlap=True,
    )

    def __init__(self, **parameters: Any) -> None:
        self.parameters = FlockingParameters(**parameters)
        self._key = random_key(0, "flocking")
        self._roster = Roster(self.parameters)
        self._widest = 0.0  #: radius of the widest body so far [m]

    def prepare(self, moment: Moment) -> None:
        """Check groups, relations and traits, once before the first step."""
        state = moment.state
        self._key = random_key(moment.seed, "flocking")
        self._roster = Roster(self.parameters)
        self._widest = 0.0
        check_groups(self.parameters, state.group_names)
        for trait in TRAITS:
            trait_of(state, trait, getattr(self.parameters, trait.name))

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity and heading of the members into `out`."""
        state, near, members = moment.state, moment.near, moment.members
        # This only ever grows, so that the obstacle lists are kept while agents come and go.
        self._widest = max(self._widest, moment.reduce.largest(state.radius))
        if len(members) == 0:
            return
        p, directions = self.parameters, moment.directions
        relations, all_mates = self._roster.relations(state, moment.groups)
        leaders = self._roster.leaders(state)
        # Whether a rule applies at all is decided for the whole flock: adding zero may change the sign of a zero.
        if moment.reduce.any(len(leaders) > 0) and not len(leaders):
            leaders = np.full(len(state), NO_LEADER)
        around, obstacles = obstacles_around(near, self._widest)
        flight = Flight(
            dt=float(moment.dt),
            step=int(moment.step),
            key=self._key,
            told_apart=ALL_ROUND if all_mates else BY_GROUP,
            nearest=int(p.nearest or 0),
            priorities=p.combine == "priorities",
            look_ahead=float(p.look_ahead),
            obstacles=obstacles,
            goals=moment.reduce.any(not all_same(directions) or directions.item(0) != 0.0),
            leaders=len(leaders) > 0,
            hunts=relations.hunts,
            waits=len(moment.waiting) > 0,
            room=1,
        )
        traits = self._traits(state, flight, avoids=relations.avoids)
        mates = with_dead_apart(near.neighbours(), state)
        hunted = mates
        if flight.hunts:
            if np.count_nonzero(mates.period):
                _check_flee_radius(traits.flee_radius, state.id, mates.period)
            hunted = with_dead_apart(near.neighbours(self._farthest(state, traits)), state)
        flight = flight._replace(room=room_for_runs(mates))
        if all_mates and np.count_nonzero(traits.blind_angle):
            flight = flight._replace(told_apart=IN_VIEW)
        pursued = pursued_places(state, moment.world, leaders, moment.trails) if len(leaders) else _ALL_SEEN[state.dim]
        boids = Boids(state.id, state.position, state.radius, moment.waiting, leaders, *pursued, directions)
        places = places_of(mates.order, members, len(state))
        steer_flock(places, len(members), boids, mates, hunted, *around, traits, relations, flight, out.velocity,
                    out.heading)  # fmt: skip

    def _farthest(self, state: AgentState, traits: Traits) -> NDArray[np.float64]:
        """How far each agent looks for agents that it flees from or chases."""
        return np.maximum(state.sense_radius, np.nan_to_num(traits.flee_radius, nan=0.0))

    def in_force(self, state: AgentState, name: str) -> NDArray[np.float64]:
        """The value of a trait that applies to each agent: its own, or else the model's."""
        own: float | None = getattr(self.parameters, name)
        if own is None:
            follows = {"separation_distance": 0.5 * state.sense_radius, "flee_radius": state.sense_radius}
            return np.where(np.isnan(state.columns[name]), follows[name], state.columns[name])
        return np.where(np.isnan(state.columns[name]), own, state.columns[name])

    def _traits(self, state: AgentState, flight: Flight, *, avoids: bool) -> Traits:
        """The traits of the rules that at least one agent follows now."""
        followed = {
            "avoidance": avoids,
            "obstacle_repulsion": flight.obstacles,
            "obstacle_steering": flight.obstacles,
            "goal_pull": flight.goals,
            "leader_pull": flight.leaders,
            "flight": flight.hunts,
            "flee_radius": flight.hunts,
            "pursuit": flight.hunts,
        }
        values = {
            trait.name: trait_of(state, trait, getattr(self.parameters, trait.name))
            if followed.get(trait.name, True)
            else _UNUSED
            for trait in TRAITS
        }
        top = state.desired_speed
        return Traits(**values, desired_speed=top[:1] if all_same(top) else top)


def _check_flee_radius(radius: NDArray[np.float64], ids: NDArray[np.int64], period: NDArray[np.float64]) -> None:
    shortest = float(period[period > 0.0].min())
    row = int(np.argmax(np.nan_to_num(radius)))
    if 2.0 * radius[row] * (1.0 + 1e-12) >= shortest:
        raise ParameterError(
            f"agent {int(ids[row])} has a flee_radius of {radius[row]:g} m; where space repeats after {shortest:g} m "
            f"it must be less than half of that: use a smaller radius or a larger world"
        )
