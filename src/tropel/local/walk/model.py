"""Walk: people that look where they go, keep a time gap, keep right and give way; calibrated with experiments.

A person looks ahead, decides on a direction, then on a speed:

1. Keep right. The planned direction turns to the right before oncoming people (`local/habits/keep_right.py`).
2. Step around. Of a fan of directions, take the one whose free path ends nearest to where the free path straight ahead
   would, if all others keep their velocity: rule 1 of Moussaïd, Helbing & Theraulaz, "How simple rules determine
   pedestrian behavior and crowd disasters", PNAS 2011. A turn must be worth it, so people in a queue stay in line.
   Paths reach twice as far as people look, so those that would catch up with someone slower soon step out of the file.
3. Keep a time gap T. Behind someone at the free distance g,

       v = v0 tanh(g / (v0 T))

   which is g / T close by, as in the paper's rule 2, and falls short of v0 already at some distance, as measured
   speeds do.
4. Give way. Of two people in each other's way, the one that is farther ahead goes first (`local/time_gap.py`); it does
   not slow down for the other. So of all people in front of a door one can always go.

People without any room push forward a little, which closes gaps in front of doors. Bodies are solid, and contact moves
those that are pushed (`contact/solver.py`). People that have reached an exit walk on for a moment, because nobody
vanishes from under the feet of the next: without that, an exit right in a doorway lets 2.6 people per metre and second
out, and with it as many as a doorway to another room, about 1.9.

Calibrated parameters are `time_gap` (speed over density after Weidmann 1993, flow through doors after Seyfried et al.
2009), `push` and `worth` (flow through doors), and `keep_right` (counterflow). docs/verification.md has the figures.

Personality: people with more `courage` follow more closely, T (1.5 - courage). Less `agility` delays turns, more `mass`
delays changes of speed (`agents/personality.py`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel, inlined_kernel, parallel_kernel
from tropel.agents.personality import PERSONALITY, SLOWEST_SPEED, SLOWEST_TURN, filter_gain
from tropel.agents.state import Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.errors import named_parameters
from tropel.foundation.quantities import number
from tropel.local.dimensions import refuse_3d
from tropel.local.habits.keep_right import goals_differ, headed_for, turned_right
from tropel.local.time_gap import personal_time_gap
from tropel.local.walk.following import speed_behind
from tropel.local.walk.sight import COLUMNS, best_direction, distance_to_walls, list_obstacles, list_people

#: Agents per unit of parallel work; each unit has its own list of what is in sight.
_CHUNK = 64

#: Angles of the fan to both sides of the wanted direction [rad].
_FAN = np.array([0.3, 0.6, 0.9, 1.2, 1.5])


@named_parameters
@dataclass(frozen=True, kw_only=True)
class WalkParameters:
    """Parameters of `Walk`; the defaults are calibrated with experiments."""

    time_gap: float = number(0.45, above=0.0, unit="s", about="time kept to the person ahead, for courage ½")
    keep_right: float = number(
        1.0, low=-1.5, high=1.5, unit="rad", about="turn to the right before oncoming people; negative keeps left"
    )
    look_ahead: float = number(
        2.0, above=0.0, unit="m", about="how far people look for a free path; at most their sense radius"
    )
    worth: float = number(0.1, low=0.0, high=1.0, about="how much nearer to the aim a step aside must lead")
    push: float = number(
        0.1, low=0.0, high=1.0, about="how hard people without room push forward, as a share of the desired speed"
    )
    margin: float = number(0.02, low=0.0, unit="m", about="room kept between bodies")
    walk_on: float = number(
        0.65, low=0.0, high=10.0, unit="s", about="how long people that have reached an exit are still in the way"
    )
    solid_bodies: bool = True  #: whether bodies are kept from overlapping; periodic space needs false


class _Rules(NamedTuple):
    """Parameters as kernels read them."""

    time_gap: float
    keep_right: float
    look_ahead: float
    worth: float
    push: float
    margin: float
    turns: NDArray[np.float64]  #: (n, 2): cosine and sine of the angles of the fan, ascending
    dt: float
    tests_sight: bool  #: whether neighbours may be hidden by walls


class _Crowd(NamedTuple):
    """Columns of the agents, by the names of the state."""

    position: NDArray[np.float64]
    velocity: NDArray[np.float64]
    heading: NDArray[np.float64]
    id: NDArray[np.int64]
    radius: NDArray[np.float64]
    desired_speed: NDArray[np.float64]
    sense_radius: NDArray[np.float64]
    agility: NDArray[np.float64]
    mass: NDArray[np.float64]
    courage: NDArray[np.float64]
    goal: NDArray[np.int32]


@inlined_kernel
def _turned(i, crowd, ex, ey, dt):
    """The heading on its way to e: at once with full agility."""
    if crowd.agility[i] >= 1.0:
        return ex, ey
    gain = filter_gain(1.0 - crowd.agility[i], SLOWEST_TURN, dt)
    hx = (1.0 - gain) * crowd.heading[i, 0] + gain * ex
    hy = (1.0 - gain) * crowd.heading[i, 1] + gain * ey
    length = math.sqrt(hx * hx + hy * hy)
    return (hx / length, hy / length) if length > 1e-9 else (ex, ey)


@inlined_kernel
def _paced(i, crowd, ex, ey, speed, dt):
    """The speed on its way to the wanted one: at once without mass."""
    if crowd.mass[i] <= 0.0:
        return speed
    now = max(crowd.velocity[i, 0] * ex + crowd.velocity[i, 1] * ey, 0.0)
    gain = filter_gain(crowd.mass[i], SLOWEST_SPEED, dt)
    return (1.0 - gain) * now + gain * speed


@inlined_kernel
def _steer_one(i, crowd, directions, near, walls, discs, rules, seen, out_velocity, out_heading):
    """Steer one person. If `seen` is too short, returns the length it needs and writes nothing."""
    ex, ey = directions[i, 0], directions[i, 1]
    length = math.sqrt(ex * ex + ey * ey)
    wanted = crowd.desired_speed[i] * min(length, 1.0)
    if wanted == 0.0:
        return 0
    ex, ey = ex / length, ey / length
    horizon = min(rules.look_ahead, crowd.sense_radius[i])
    x, y = crowd.position[i, 0], crowd.position[i, 1]
    walls_at = distance_to_walls(x, y, walls)
    reach = crowd.sense_radius[i] if rules.keep_right != 0.0 else horizon
    # Nobody nearer than this can be hidden by a wall.
    in_sight = walls_at if rules.tests_sight else math.inf
    people, against = list_people(i, crowd, ex, ey, horizon, reach, rules.margin, near, walls, in_sight, seen)
    if people < 0:
        return -people
    if against > 0.0:
        ex, ey = turned_right(ex, ey, rules.keep_right, against)
    everything = list_obstacles(i, crowd, horizon, discs, seen, people)
    ex, ey = best_direction(
        x, y, ex, ey, wanted, horizon, crowd.radius[i], seen, everything, walls, walls_at, rules.turns, rules.worth
    )
    ex, ey = _turned(i, crowd, ex, ey, rules.dt)
    time_gap = personal_time_gap(rules.time_gap, crowd.courage[i], rules.dt)
    speed = speed_behind(i, crowd, ex, ey, wanted, time_gap, seen, people)
    if speed < 1e-3 * wanted:
        speed = rules.push * wanted
    speed = _paced(i, crowd, ex, ey, speed, rules.dt)
    out_velocity[i, 0], out_velocity[i, 1] = speed * ex, speed * ey
    out_heading[i, 0], out_heading[i, 1] = ex, ey
    return 0


@allocating_kernel
def _steer_some(rows, first, last, crowd, directions, near, walls, discs, rules, out_velocity, out_heading):
    # A separate function, because Numba moves allocations out of parallel loops, and this list may grow. It grows
    # here, because a function that allocates counts references to all arrays that it gets, for each agent.
    seen = np.empty((128, COLUMNS))
    for m in range(first, last):
        room = _steer_one(rows[m], crowd, directions, near, walls, discs, rules, seen, out_velocity, out_heading)
        while room > 0:
            seen = np.empty((2 * room, COLUMNS))
            room = _steer_one(rows[m], crowd, directions, near, walls, discs, rules, seen, out_velocity, out_heading)


@parallel_kernel
def _walk(rows, crowd, directions, near, walls, discs, rules, out_velocity, out_heading):
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    for chunk in numba.prange(chunks):
        first = chunk * _CHUNK
        last = min(first + _CHUNK, rows.size)
        _steer_some(rows, first, last, crowd, directions, near, walls, discs, rules, out_velocity, out_heading)


class Walk(Model):
    """How people walk: keep right, step around others, keep a time gap, give way. In 2D only."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = WalkParameters(**parameters)
        self.declares = ModelDeclaration(
            columns=PERSONALITY,
            solid_bodies=self.parameters.solid_bodies,
            walk_on=self.parameters.walk_on,
            periodic_space=True,
        )
        self._turns = np.column_stack([np.cos(_FAN), np.sin(_FAN)])

    def prepare(self, moment: Moment) -> None:
        """Check the dimensions, once before the first step."""
        refuse_3d(self, moment)

    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity and heading of the members into `out`."""
        given, state, near = self.parameters, moment.state, moment.near
        goal = headed_for(state, moment.world)
        rules = _Rules(
            time_gap=given.time_gap,
            # Where all have the same goal nobody is oncoming, and nobody has to look for such people.
            keep_right=given.keep_right if goals_differ(goal, moment.reduce) else 0.0,
            look_ahead=given.look_ahead,
            worth=given.worth,
            push=given.push,
            margin=given.margin,
            turns=self._turns,
            dt=moment.dt,
            tests_sight=not near.hidden_left_out,
        )
        columns = state.columns | {"goal": goal}
        crowd = _Crowd(*(columns[name] for name in _Crowd._fields))
        _walk(near.rows_by_cell(moment.members), crowd, moment.directions, near.neighbours(), near.walls,
              near.obstacles, rules, out.velocity, out.heading)  # fmt: skip
