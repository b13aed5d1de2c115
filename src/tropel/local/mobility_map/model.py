"""Riders that choose among the futures of their mobility map.

Brogan & Hodgins, "Simulation level of detail for multiagent control", AAMAS 2002. Every `interval` seconds a rider
looks up what it can do next, compares it with where it wants to be, and takes the best (`search.py`). In between it
follows the chosen trajectory (`following.py`), so what happens is what the map says: nobody turns faster than the
character can.

Where a rider wants to be comes from its planner: a course over time (`contracts/courses.py`), or a straight line in the
planned direction. Directions shorter than 1 mean to ride slower; the speed at full length is that of the character, not
the column `desired_speed`, because a map holds for one speed.

Riders are no solid bodies: nobody pushes them. Instead futures that lead into anything are not taken, and if none is
left the rider brakes. One that hits a wall anyway, or another body at more than 1.5 m/s, has an accident: it falls,
slides to a halt, and stays down. `accidents` tells which, when and why, and the columns `braking` and `fallen` say so
in every step.

Others see a rider as a disc of its `radius` in the middle, and riders see all of it: discs along its length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.placing import Placing
from tropel.agents.state import AgentState, Column, Floats, Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.contracts.offers import OfferedMobility
from tropel.foundation.stored_arrays import taken
from tropel.local.dimensions import refuse_3d
from tropel.local.members import started
from tropel.local.mobility_map.fan import fan_of
from tropel.local.mobility_map.following import Manner, Ride, begin, follow, reduce_all
from tropel.local.mobility_map.full_physics import FullPhysics
from tropel.local.mobility_map.futures import Bodies, chosen_futures
from tropel.local.mobility_map.library import library_of
from tropel.local.mobility_map.parameters import RidersParameters
from tropel.local.mobility_map.search import Choice, Rules, decide, face_course, spread_of
from tropel.local.mobility_map.ways import ways_of
from tropel.riders.character import find_character, map_of
from tropel.world import World
from tropel.world.wall_grid import quantised

#: Tuned values for riders whose map says none (table 2, human bicyclist).
_T_MAX, _RATIO = 1.3, 0.28
#: Why a rider fell.
CAUSES = ("lost balance", "hit a wall or an obstacle", "hit another body")
BALANCE, WALL, BODY = range(3)
#: Below this share of the nominal speed, a rider that touches somebody puts a foot down and does not fall.
_FOOT_DOWN = 0.2
#: Riders that touch at a lower relative speed rub shoulders and ride on [m/s].
_BRUSH = 1.5
#: A rider turns the cranks once per this distance [m].
_METRES_PER_TURN = 6.0


def _impact(state: AgentState, row: int) -> float:
    """Relative speed of an agent and the one whose body it is deepest in; its own if it is alone [m/s]."""
    gap = np.linalg.norm(state.position - state.position[row], axis=1) - state.radius
    gap[row] = math.inf
    other = int(np.lexsort((state.id, gap))[0])
    met = state.velocity[other] if np.isfinite(gap[other]) else np.zeros(2)
    return float(np.linalg.norm(state.velocity[row] - met))


class _Room(Placing):
    """Newcomers have room to all sides for the length of their bodies."""

    def __init__(self, reach: float) -> None:
        self._reach = reach

    def find(self, world: World, *, radius: Floats, **told: Any) -> Floats:
        return super().find(world, radius=np.maximum(radius, self._reach), **told)


def _memory(width: int) -> tuple[Column, ...]:
    """What riders remember from step to step."""
    return (
        Column(name="lean", low=-4.0, high=4.0, unit="rad", kept=True, about="to the left"),
        Column(name="steer", low=-4.0, high=4.0, unit="rad", kept=True, about="of the front wheel, to the left"),
        Column(name="turn_rate", low=-100.0, high=100.0, unit="rad/s", kept=True, about="of the heading, to the left"),
        Column(name="crank", low=0.0, high=7.0, unit="rad", kept=True, about="of the pedals"),
        Column(name="pace", default=1.0, low=0.0, high=10.0, kept=True, about="speed over the nominal one"),
        Column(name="braking", low=0.0, high=1.0, kept=True, about="how hard; 0 if a future was free at the decision"),
        Column(name="fallen", dtype="uint8", high=1, kept=True, about="1 after an accident"),
        Column(name="half_axis", low=0.0, high=100.0, unit="m", kept=True, about="from the middle to the last disc"),
        Column(name="map_state", dtype="int32", default=-1, low=-1, kept=True, about="initial state in the map"),
        Column(name="map_action", dtype="int32", low=0, kept=True, about="action that is followed"),
        Column(name="map_other", dtype="int32", low=0, kept=True, about="action that it is blended with"),
        Column(name="map_share", default=1.0, low=0.0, high=1.0, kept=True, about="of the first in the blend"),
        Column(name="map_turn", low=-4.0, high=4.0, unit="rad", kept=True, about="turn that was wanted"),
        Column(name="map_line", dtype="int32", low=0, kept=True, about="trajectory that is followed"),
        Column(name="map_time", low=0.0, high=1e4, unit="s", kept=True, about="how far along it"),
        Column(name="map_begun", low=0.0, high=1e4, unit="s", kept=True, about="where on it the agent joined it"),
        Column(name="map_base", low=-100.0, high=100.0, unit="rad", kept=True, about="heading at its beginning"),
        Column(name="map_pose", width=5, low=-1e3, high=1e3, kept=True, about="rate of turn, lean, steer, their rates"),
        Column(name="map_offset", width=3, low=-1e3, high=1e3, kept=True, about="pose against the trajectory"),
        Column(name="map_reduced", width=width, low=-1e3, high=1e3, kept=True, about="state that the map knows"),
    )


class Riders(Model):
    """Ride by what a character can do: the best feasible future of its mobility map. In 2D only."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = RidersParameters(**parameters)
        self.character = find_character(self.parameters.character)
        self.map = map_of(self.character)
        self.fan = fan_of(self.map)
        given, said = self.parameters, self.map.provenance
        self.t_max = float(given.t_max if given.t_max is not None else said.get("t_max", _T_MAX))
        self.ratio = float(given.ratio if given.ratio is not None else said.get("ratio", _RATIO))
        knots = min(max(1, round(self.t_max / self.fan.interval)), len(self.map.times) - 1)
        self._library = library_of(self.fan)
        self._lines = self.fan.knots.shape[0] * self.fan.knots.shape[1]
        self._spread = spread_of(self.fan.knots, self.fan.interval, self.fan.speed)
        reach = self.fan.speed * (given.horizon + self.fan.interval) + self.character.length + given.margin
        self._rules = Rules(knots, self.ratio, float(given.horizon), float(given.margin), 2.0 * reach)
        self._reach = reach
        self._manner = Manner(
            float(given.brake),
            float(given.speed_up),
            float(given.slide),
            float(given.settling),
            math.tau / _METRES_PER_TURN,
        )
        self.declares = ModelDeclaration(
            memory=_memory(len(self.map.state_names)),
            answers_collisions=True,
            placing=_Room(0.5 * self.character.length + given.margin),
        )
        self._log: list[tuple[float, int, int]] = []
        self._crashed = np.empty(0, dtype=np.int64)
        self._full: FullPhysics | None = None

    def prepare(self, moment: Moment) -> None:
        """Check the dimensions, once before the first step."""
        refuse_3d(self, moment)
        self._log, self._crashed = [], np.empty(0, dtype=np.int64)
        if self.parameters.physics == "full":
            self._full = FullPhysics(self.character, self.map, len(moment.state))

    @property
    def largest_jump(self) -> tuple[float, float]:
        """How far lean [rad] and rate of turn [rad/s] jumped at most when riders entered the physics engine."""
        return (
            (0.0, 0.0) if self._full is None else (float(self._full.largest_jump[0]), float(self._full.largest_jump[1]))
        )

    @property
    def accidents(self) -> list[tuple[float, int, str]]:
        """Time [s], id and cause of each accident so far."""
        return [(time, number, CAUSES[cause]) for time, number, cause in self._log]

    def describe(self) -> str:
        return f"{super().describe()} map {self.map.digest}"

    def offers(self) -> tuple[object, ...]:
        return (
            OfferedMobility(
                character=self.map.character,
                speed=self.map.speed,
                sharpest=self.map.sharpest_turn(),
                kind=self.character.looks,
                length=self.character.length,
                width=self.character.width,
                wheel=self.character.wheel_radius,
            ),
        )

    def steer(self, moment: Moment, out: Steered) -> None:
        """Decide if it is time to, and follow the chosen trajectories."""
        state, rows = moment.state, started(moment)
        memory = out.memory
        ride = self._ride(out)
        memory["half_axis"][rows] = np.maximum(0.5 * self.character.length - state.radius[rows], 0.0)
        self._fall(moment, rows, ride)
        fresh = state.map_state[rows] < 0
        due = rows if self._is_due(moment) else rows[fresh]
        due = due[ride.fallen[due] == 0]
        ways, wanted_pace = ways_of(moment, speed=self.fan.speed, brake=self._manner.speed_up)
        face_course(rows[fresh], ways, out.heading)
        down = ride.fallen.copy()
        if len(due):
            self._decide(moment, due, out, ride, ways)
        if self._full is not None:
            rows = self._ride_for_real(moment, rows, due, out, ride, wanted_pace)
        follow(rows, self.fan, self._manner, wanted_pace, moment.dt, state.velocity, ride, out.velocity, out.heading)
        self._note(moment, rows[(ride.fallen[rows] > down[rows])], BALANCE)

    def _ride_for_real(
        self, moment: Moment, rows: NDArray[np.int64], due: NDArray[np.int64], out: Steered, ride: Ride, pace: Floats
    ) -> NDArray[np.int64]:
        """Let the physics engine move those that ride; returns the others."""
        assert self._full is not None
        riding = rows[ride.fallen[rows] == 0]
        self._full.leave(moment.state.id[rows[ride.fallen[rows] != 0]])
        without = self._full.enter(moment, riding, out, ride)
        moved = riding[~np.isin(riding, without)]
        self._full.decide(moment.state, np.intersect1d(due, moved), ride.turn)
        slower = np.maximum(ride.pace - ride.braking * self._manner.brake * moment.dt / self.fan.speed, 0.0)
        speed = self.fan.speed * np.where(ride.braking > 0.0, np.minimum(slower, pace), pace)
        self._full.move(moment, moved, out, ride, speed)
        reduce_all(moved, self.fan, ride)
        self._note(moment, moved[ride.fallen[moved] != 0], BALANCE)
        return np.setdiff1d(rows, moved)

    def _ride(self, out: Steered) -> Ride:
        names = set(Ride._fields) - {"braking", "fallen", "pace", "lean", "steer", "turn_rate", "crank"}
        return Ride(*(out.memory[f"map_{name}" if name in names else name] for name in Ride._fields))

    def _is_due(self, moment: Moment) -> bool:
        """Whether a decision falls between the last step and this one."""
        interval = self.parameters.interval
        now, before = moment.step * moment.dt, (moment.step - 1) * moment.dt
        return math.floor(now / interval + 1e-9) > math.floor(before / interval + 1e-9)

    def _decide(self, moment: Moment, due: NDArray[np.int64], out: Steered, ride: Ride, ways: Any) -> None:
        state, world = moment.state, moment.world
        velocity = state.velocity.copy()
        # Newcomers have no velocity yet.
        velocity[due] = (ride.pace[due] * self.fan.speed)[:, None] * out.heading[due]
        # Whose chosen futures are known: members that are on their way.
        line = np.full(len(state), -1, dtype=np.int32)
        riding = moment.members[(state.map_state[moment.members] >= 0) & (ride.fallen[moment.members] == 0)]
        line[riding] = np.minimum(ride.line[riding], self._lines - 1)
        bodies = Bodies(
            state.position, velocity, out.heading, state.radius, out.memory["half_axis"], line, state.map_time,
            state.map_base, ride.pace,
        )  # fmt: skip
        futures = np.empty((len(state), max(2, math.ceil(self.parameters.horizon / self.fan.interval) + 1), 4))
        chosen_futures(riding, self.fan, bodies, futures)
        reach = np.full(len(state), self._rules.reach)
        walls = world.wall_grid(quantised(self.fan.speed * self.fan.interval + self.character.length + 1.0))
        discs = world.obstacles.grid(quantised(self._reach + world.obstacles.fastest * self.parameters.horizon))
        choice = Choice(ride.state, ride.action, ride.other, ride.share, ride.braking)
        decide(
            due, self.fan, self._rules, bodies, ride.reduced, ride.pace, ways, moment.near.neighbours(reach), walls,
            discs, self._spread, futures, choice,
        )  # fmt: skip
        begin(due, self.fan, self._library, out.heading, ride)

    def _fall(self, moment: Moment, rows: NDArray[np.int64], ride: Ride) -> None:
        """Let those fall that hit something in the last step."""
        state = moment.state
        riding = rows[ride.fallen[rows] == 0]
        hit_wall = np.isin(state.id[riding], self._crashed)
        hit_body = (state.collided[riding] > 0) & (ride.pace[riding] > _FOOT_DOWN) & ~hit_wall
        hit_body[hit_body] = [_impact(state, row) > _BRUSH for row in riding[hit_body].tolist()]
        for hit, cause in ((hit_wall, WALL), (hit_body, BODY)):
            ride.fallen[riding[hit]] = 1
            self._note(moment, riding[hit], cause)
        self._crashed = np.empty(0, dtype=np.int64)

    def _note(self, moment: Moment, rows: NDArray[np.int64], cause: int) -> None:
        self._log += [(moment.time, int(number), cause) for number in np.sort(moment.state.id[rows])]

    def settled(self, moment: Moment, before: Floats, wanted: Floats) -> None:
        """Note who was stopped by a wall or an obstacle: an accident, from the next step on."""
        rows = moment.members
        move = np.linalg.norm(wanted[rows] - before[rows], axis=1)
        missed = np.linalg.norm(moment.state.position[rows] - wanted[rows], axis=1)
        # Whoever did not want to move was moved by an event.
        hit = (move > 0.0) & (missed > 1e-6 + 1e-3 * move)
        self._crashed = np.union1d(self._crashed, moment.state.id[rows[hit]])

    def state(self) -> dict[str, NDArray[Any]]:
        log = np.array(self._log, dtype=np.float64).reshape(-1, 3)
        return {"accidents": log, "crashed": self._crashed, **({} if self._full is None else self._full.state())}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        log = taken(stored, "accidents", dtype="float64", shape=(None, 3), low=0.0)
        crashed = taken(stored, "crashed", dtype="int64", shape=(None,), low=0)
        if self._full is not None:
            self._full.restore(stored)
        self._log = [(float(time), int(number), min(int(cause), len(CAUSES) - 1)) for time, number, cause in log]
        self._crashed = crashed
