"""Flocks: boids that keep apart, keep together and fly alike, follow leaders, and steer around what is in the way.

Reynolds, "Flocks, herds, and schools: a distributed behavioral model" (1987) and "Steering behaviors for autonomous
characters" (1999), with the leader, goal and obstacle rules of Zhou's thesis (GROUPS, 2006, §3.1). The force on a boid
[m/s²] is the sum of its rules, d = x_j - x_i and r = |d| for those in sight:

    separation           - w s sum of d (1/r² - 1/s²)     mates nearer than s, the separation distance
    cohesion               w mean of d / R                mates; R the sense radius
    alignment              w mean of (v_j - v_i) / v0     mates; v0 the desired speed, which is the top speed
    avoidance            - w R sum of d (1/r² - 1/R²)     of groups that are avoided
    flight               - w f sum of d (1/r² - 1/f²)     of groups fled from, within the flee radius f, all round
    pursuit                w d / r                        the nearest of groups that are chased
    leader                 w d / max(r, R)                one's leader, wherever it is
    goal                   w · planned direction          zero for who has no goal
    obstacles              `flocking_obstacles.py`

    v' = v + dt · force,   |force| ≤ max_force,   least_speed · v0 ≤ |v'| ≤ v0

In sight is who is within the sense radius and not in the blind cone behind one's velocity. With `nearest`, mates are
only so many of them, the nearest, ties going to the lower id. Instead of the sum, `combine="priorities"` grants each
rule what it wants in turn, until the cap is used up: obstacles, flight, separation, avoidance, alignment, cohesion,
pursuit, leader, goal (Reynolds 1987; the goal last as in GROUPS §4.3).

Mates are one's own group and all other groups steered by the same model, unless `join`, `avoid`, `ignore`, `chase` or
`flee` say otherwise; groups steered by other models are avoided. Bodies of a flock are not solid among themselves;
`integrate` keeps them out of walls and obstacles. Who stands still and feels nothing sets off in a random direction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import random_key
from tropel.agents.state import AgentState, Column, Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import ParameterError
from tropel.local.flocking_obstacles import surroundings_of
from tropel.local.flocking_parameters import TRAITS, FlockingParameters, Traits, check_groups, column_of
from tropel.local.flocking_roster import NO_LEADER, Roster, all_same, places_of, trait_of, with_dead_apart
from tropel.local.flocking_steps import Boids, Flight, steer_flock
from tropel.local.flocking_sums import ALL_ROUND, BY_GROUP, IN_VIEW, room_for_runs

#: Stands for a trait of a rule that nobody follows now.
_UNUSED = np.zeros(1)


class Flocking(Model):
    """Boids: separation, cohesion, alignment, leaders, goals, obstacles, other flocks, predators and prey.

    Parameters: `FlockingParameters`.
    """

    declares = ModelDeclaration(
        columns=(
            *(column_of(trait) for trait in TRAITS),
            Column(
                name="leader",
                dtype="int64",
                default=NO_LEADER,
                low=NO_LEADER,
                about="id of the agent to follow; -1 for none",
            ),
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
        """Called once before the first step."""
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
        # Only ever wider, so that what lists obstacles is kept while people come and go.
        self._widest = max(self._widest, moment.reduce.largest(state.radius))
        if len(members) == 0:
            return
        p, directions = self.parameters, moment.directions
        relations, all_mates = self._roster.relations(state, moment.groups)
        leaders = self._roster.leaders(state)
        # Whether a rule is followed at all is decided for the whole flock: adding nothing may change a zero's sign.
        if moment.reduce.any(len(leaders) > 0) and not len(leaders):
            leaders = np.full(len(state), NO_LEADER)
        around, obstacles = surroundings_of(near, self._widest)
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
        boids = Boids(state.id, state.position, state.radius, moment.waiting, leaders, directions)
        places = places_of(mates.order, members, len(state))
        steer_flock(places, len(members), boids, mates, hunted, *around, traits, relations, flight, out.velocity,
                    out.heading)  # fmt: skip

    def _farthest(self, state: AgentState, traits: Traits) -> NDArray[np.float64]:
        """How far each looks for those it flees from or chases."""
        return np.maximum(state.sense_radius, np.nan_to_num(traits.flee_radius, nan=0.0))

    def in_force(self, state: AgentState, name: str) -> NDArray[np.float64]:
        """A trait of all agents with the value that holds for them, where they have none of their own."""
        own: float | None = getattr(self.parameters, name)
        if own is None:
            follows = {"separation_distance": 0.5 * state.sense_radius, "flee_radius": state.sense_radius}
            return np.where(np.isnan(state.columns[name]), follows[name], state.columns[name])
        return np.where(np.isnan(state.columns[name]), own, state.columns[name])

    def _traits(self, state: AgentState, flight: Flight, *, avoids: bool) -> Traits:
        """The traits of the rules that anybody follows now."""
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
