"""Choice of exits: people whose goal is the nearest exit take another one if that is sooner.

A newcomer takes the exit with the shortest path. Later, people compare how long each exit k takes them:

    T = max(L / v, N / C),    C = 1.92 w - 0.07

L is the length of the path, v the desired speed and N the number of people on their way to k that are nearer to it:
they leave at C per second, while the person walks. Those who are nearly there count few people ahead of them and stay,
those far back may gain a lot. C is the flow through a door (see `verification/published.py`) as wide as the narrowest
place in the last ten metres before the exit. That width, w, is the length of the shortest curve of equal path lengths
with a quarter of the area or more beyond it, counted in cells.

People look at the queues once a second. They change their minds only if they gain 2 s and a tenth of the time, and of
those with the same exit only the ones that gain most, 80 % of the largest gain or more. So the last of a queue leave it
first, and the others see where they have gone before they follow: not all run to the other exit and back. People count
those at exits that they cannot see: in buildings with wardens or announcements they would be told.

All counts are whole numbers, so they do not depend on the order of agents.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import parallel_kernel
from tropel.agents.state import CHOSEN_EXIT, NEAREST_EXIT, AgentState
from tropel.contracts import Moment, Rows
from tropel.planning.fields.field import GridField, search_reach
from tropel.planning.fields.following import BLOCKED, own_cell, path_back
from tropel.world import World

#: Time between two looks at the queues [s].
_LOOK_EVERY = 1.0
#: What people must gain to change their minds: seconds, a share of the time that their exit takes, and a share of the
#: most that anybody with the same exit gains.
_LEAST_GAIN, _LEAST_SHARE, _OF_LARGEST = 2.0, 0.1, 0.8
#: Flow through a door [1/s]: per metre of its width, and less this much.
_FLOW, _LOST = 1.92, 0.07
#: The narrowest doors let this many people through [1/s].
_LEAST_FLOW = 0.5
#: How far before an exit its narrowest place is looked for [m], and how thick curves of equal lengths are in cells.
_BEFORE, _THICK = 10.0, 2
#: And beyond it there must be this share of the whole area.
_MANY = 0.25
#: People are counted by path lengths of this step [m].
_STEP = 0.5
#: Slower people count as this fast [m/s].
_SLOWEST = 0.1
#: No exit can be reached.
NONE = -1


def narrowest(field: GridField) -> float:
    """Width of the narrowest place of the last metres before a goal [m]."""
    raster = field.raster
    length = field.length
    assert length is not None
    # The first cells are one cell away from the goal.
    steps = length[field.reachable & ~field.goal] / raster.cell - 0.5
    curves = np.bincount((steps / _THICK).astype(np.int64), minlength=1)
    # In the far corners of a room curves are short, but nobody has to pass them.
    passed = curves.sum() - np.cumsum(curves) >= _MANY * curves.sum()
    last = int(_BEFORE / raster.cell / _THICK)
    return float(curves[:last][passed[:last]].min(initial=curves[0])) * raster.cell / _THICK + 2.0 * raster.clearance


def capacity(width: float) -> float:
    """How many people a second leave through a door."""
    return max(_FLOW * width - _LOST, _LEAST_FLOW)


@parallel_kernel
def _find_lengths(position, rows, field, walls, out):
    for n in numba.prange(rows.size):
        i = rows[n]
        x, y = position[i, 0], position[i, 1]
        iz, iy, ix = own_cell(x, y, 0.0, field)
        if field.kind[iz, iy, ix] == BLOCKED:
            iz, iy, ix, _ = path_back(x, y, 0.0, iz, iy, ix, field, walls)
        out[n] = field.value[iz, iy, ix] * field.metres_per_value if iz >= 0 else math.inf


def path_lengths(field: GridField, state: AgentState, rows: Rows, world: World) -> NDArray[np.float64]:
    """Length of the path of each row to the goal of a field [m], inf where there is none."""
    out = np.empty(len(rows))
    _find_lengths(state.position, rows, field.arrays, world.wall_grid(search_reach(field.raster)), out)
    return np.abs(out)  # goals are at -0


class _Exit(NamedTuple):
    """An exit as people think of it."""

    field: GridField
    capacity: float  #: how many people leave by it [1/s]
    steps: int  #: of path lengths to it


class ExitChoice:
    """Chooses between exits, each given by its number and its field, in ascending order."""

    def __init__(self) -> None:
        self._known: dict[int, _Exit] = {}

    def choose(self, moment: Moment, rows: Rows, fields: Mapping[int, GridField], chosen: NDArray[np.int32]) -> None:
        """Write the numbers of the exits that these rows choose into `chosen`, which holds what they chose before."""
        exits = np.array(list(fields), dtype=np.int32)
        lost = rows[~np.isin(chosen[rows], exits)]
        if len(lost):
            lengths = np.stack([path_lengths(field, moment.state, lost, moment.world) for field in fields.values()])
            nearest = exits[lengths.argmin(axis=0)]
            chosen[lost] = np.where(np.isfinite(lengths.min(axis=0)), nearest, np.int32(NONE))
        every = max(round(_LOOK_EVERY / moment.dt), 1)
        if moment.step % every == 0:
            self._reconsider(moment, rows, fields, chosen)

    def _reconsider(
        self, moment: Moment, rows: Rows, fields: Mapping[int, GridField], chosen: NDArray[np.int32]
    ) -> None:
        """Let these rows change their minds, who compare what they gain with what all others gain."""
        state, exits = moment.state, np.array(list(fields), dtype=np.int32)
        before = state.columns[CHOSEN_EXIT.name]
        people = np.flatnonzero((state.goal == NEAREST_EXIT) & np.isin(before, exits) & (state.dead == 0))
        speed = np.maximum(state.desired_speed[people], _SLOWEST)
        times = np.empty((len(fields), len(people)))
        for own, (number, field) in zip(times, fields.items(), strict=True):
            length = path_lengths(field, state, people, moment.world)
            place = self._exit(number, field)
            own[:] = np.maximum(length / speed, self._ahead(moment, number, place, length) / place.capacity)
        # Where there is no path the time is infinite, and infinite times cannot be subtracted.
        times = np.minimum(times, np.finfo(np.float64).max)
        each = np.arange(len(people))
        best = times.argmin(axis=0)
        now = times[np.searchsorted(exits, before[people]), each]
        gain = now - times[best, each]
        better = gain > np.maximum(_LEAST_GAIN, _LEAST_SHARE * now)
        own_people = np.zeros(len(state), dtype=np.bool_)
        own_people[rows] = True
        for number in fields:
            there = np.flatnonzero(better & (before[people] == number))
            there = there[gain[there] >= _OF_LARGEST * moment.reduce.largest(gain[there])]
            there = there[own_people[people[there]]]
            chosen[people[there]] = exits[best[there]]

    def _ahead(self, moment: Moment, number: int, place: _Exit, length: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many of those on their way to an exit are nearer to it than each of these lengths."""
        state = moment.state
        towards = (state.goal == number) | ((state.goal == NEAREST_EXIT) & (state.columns[CHOSEN_EXIT.name] == number))
        theirs = path_lengths(place.field, state, np.flatnonzero(towards & (state.dead == 0)), moment.world)
        steps = (theirs[np.isfinite(theirs)] / _STEP).astype(np.int64)
        counts = moment.reduce.counts(np.bincount(steps, minlength=place.steps)[: place.steps])
        before = np.concatenate([[0], np.cumsum(counts)])
        return np.asarray(before[np.minimum(length / _STEP, place.steps).astype(np.int64)])

    def _exit(self, number: int, field: GridField) -> _Exit:
        known = self._known.get(number)
        if known is None or known.field is not field:
            length = field.length
            assert length is not None
            steps = int(length[field.reachable].max(initial=0.0) / _STEP) + 1
            known = self._known[number] = _Exit(field, capacity(narrowest(field)), steps)
        return known
