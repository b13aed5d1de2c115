"""Choice of exits: people whose goal is the nearest exit take another one if that is sooner.

A newcomer takes the exit with the shortest path. Later, people compare how long each exit k takes them:

    T = max(L / v, N / C),    C = 1.92 w - 0.07

L is the length of the path, v the desired speed and N the number of people on their way to k that are nearer to it: they
leave at C per second, while the person walks. Those who are nearly there count few people ahead of them and stay, those
far back may gain a lot. The capacity C is that of a door (see `verification/published.py`) as wide as the narrowest
place of the last ten metres before the exit, w: the length of the curve of equal path lengths, counted in cells.

Everybody thinks about it every four seconds, a quarter of the crowd at a time, so that not all leave one queue for
another at once. They change their minds only if they gain 2 s and a tenth of the time. People count those at exits that
they cannot see: in buildings with wardens or announcements they would be told.

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

#: Time between two looks at the queues [s], and the share of people that think about them at each.
_LOOK_EVERY, _PARTS = 1.0, 4
#: What people must gain to change their minds: seconds, and a share of the time that their exit takes.
_LEAST_GAIN, _LEAST_SHARE = 2.0, 0.1
#: Flow through a door [1/s]: per metre of its width, and less this much.
_FLOW, _LOST = 1.92, 0.07
#: The narrowest doors let this many people through [1/s].
_LEAST_FLOW = 0.5
#: How far before an exit its narrowest place is looked for [m], and how thick curves of equal lengths are in cells.
_BEFORE, _THICK = 10.0, 2
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
    cells = length[field.reachable & ~field.goal] / raster.cell
    last = int(_BEFORE / raster.cell / _THICK)
    curve = np.bincount((cells[cells < last * _THICK] / _THICK).astype(np.int64), minlength=1)
    # The curve ends where all paths are shorter.
    there = curve[: int(np.argmin(curve > 0)) or len(curve)]
    return float(there.min()) * raster.cell / _THICK + 2.0 * raster.clearance


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
            turn = (moment.state.id[rows] + moment.step // every) % _PARTS == 0
            self._reconsider(moment, rows[turn & (chosen[rows] != NONE)], fields, chosen)

    def _reconsider(
        self, moment: Moment, rows: Rows, fields: Mapping[int, GridField], chosen: NDArray[np.int32]
    ) -> None:
        speed = np.maximum(moment.state.desired_speed[rows], _SLOWEST)
        times = np.empty((len(fields), len(rows)))
        for own, (number, field) in zip(times, fields.items(), strict=True):
            length = path_lengths(field, moment.state, rows, moment.world)
            place = self._exit(number, field)
            own[:] = np.maximum(length / speed, self._ahead(moment, number, place, length) / place.capacity)
        # Where there is no path the time is infinite, and infinite times cannot be subtracted.
        times = np.minimum(times, np.finfo(np.float64).max)
        exits, each = np.array(list(fields), dtype=np.int32), np.arange(len(rows))
        best = times.argmin(axis=0)
        now = times[np.searchsorted(exits, chosen[rows]), each]
        gain = now - times[best, each]
        better = gain > np.maximum(_LEAST_GAIN, _LEAST_SHARE * now)
        chosen[rows[better]] = exits[best[better]]

    def _ahead(self, moment: Moment, number: int, place: _Exit, length: NDArray[np.float64]) -> NDArray[np.int64]:
        """How many of those on their way to an exit are nearer to it than each of these lengths."""
        state = moment.state
        towards = (state.goal == number) | ((state.goal == NEAREST_EXIT) & (state.columns[CHOSEN_EXIT.name] == number))
        theirs = path_lengths(place.field, state, np.flatnonzero(towards), moment.world)
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
