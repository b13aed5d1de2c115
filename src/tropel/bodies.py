"""Bodies that do not push into each other: they press and slide past, and who would still collide goes less far.

Steering models see where others stand, not what walls and obstacles will make of their moves. So the moves of a step
may still bring two bodies together.

First, before walls are looked at, wanted moves become moves that go together (`pressing.py`).

Then, when walls and obstacles have had their say, moves are compared in continuous time, pair by pair. Where two would
come closer than touching (or closer than they are, if they touch already) one of them gives way: it goes only half of
its way, or a quarter, or it stays. Whoever has the lower random draw of this step keeps its move; nobody makes
way for somebody who stays. Steps only get shorter, so this ends, and at the end no pair comes closer than it may. A
part of a move that crosses no wall crosses none either, so the promise of `integrate` holds.

Each round looks at the moves of the round before, so the result does not depend on order or threads.

People on cells have moved before the others do (`turns.py`). They are bodies that stand: nobody presses them off their
cell, and everybody gives way to them.
"""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import BLOCK, cell_run, cell_window, near_bits
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.philox import uniform
from tropel._kernels.simd import trailing_zeros
from tropel._kernels.walls import WallGrid
from tropel.agents.state import AgentState, Steered
from tropel.pressing import under_pressure, wishes_press

#: How far moves go in the rounds of giving way.
_SHARES = np.array([1.0, 0.5, 0.25, 0.0])

#: Agents per unit of parallel work.
_CHUNK = 256

#: So many others are listed as close before a larger table is made.
_FIRST_ROOM = 12

#: Bodies may come this much closer than touching [m], so that rounding does not stop those who slide past each other.
TOLERANCE = 1e-9
#: Those who overlap by more keep this share of their distance in each step. A length instead would add up step by step.
_NO_DEEPER = 1.0 - 1e-12

_NONE, _ONE = np.uint64(0), np.uint64(1)


@inlined_kernel
def _closest2(dx, dy, dz, mx, my, mz, nearing):
    """Square of the closest distance of two points at the offset d, which the offset's change m lets near each other.

    `nearing` is -d·m, which must be positive.
    """
    t = min(nearing / (mx * mx + my * my + mz * mz), 1.0)
    return (dx + t * mx) ** 2 + (dy + t * my) ** 2 + (dz + t * mz) ** 2


@kernel
def _list_some(rows, first, last, position, target, solid, radius, cells, widest, farthest, count, close, presses):
    dim, spare = position.shape[1], close.shape[1] - 1
    for n in range(first, last):
        i = rows[n]
        count[i] = 0
        presses[i] = False
        if not solid[i]:
            continue
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if dim == 3 else 0.0
        reach = radius[i] + widest + 2.0 * farthest
        x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, reach)
        found = 0
        pressing = False
        for cz in range(z0, z1 + 1):
            for cy in range(y0, y1 + 1):
                start, end = cell_run(cells, x0, x1, cy, cz)
                for at in range(start, end, BLOCK):
                    bits = near_bits(cells, at, end, x, y, z, reach * reach)
                    while bits != _NONE:
                        k = at + trailing_zeros(bits)
                        j = cells.order[k]
                        bits &= bits - _ONE
                        other = (j != i) & solid[j]
                        # Oneself and who is not solid are overwritten by the next, or end up in the spare column.
                        close[i, min(found, spare)] = j
                        found += np.int64(other)
                        dx, dy = cells.position[0, k] - x, cells.position[1, k] - y
                        mx = target[j, 0] - target[i, 0] - dx
                        my = target[j, 1] - target[i, 1] - dy
                        dz = mz = 0.0
                        if dim == 3:
                            dz = cells.position[2, k] - z
                            mz = target[j, 2] - target[i, 2] - dz
                        pressing |= other & wishes_press(dx, dy, dz, mx, my, mz, radius[i] + cells.radius[k])
        count[i] = found
        presses[i] = pressing


@parallel_kernel
def _list_close(rows, position, target, solid, radius, cells, widest, farthest, count, close, presses, company):
    """List who is close to whom, and whose wish presses on whom; write the rows that have anybody close.

    Returns how many these are, and the length of the longest list.
    """
    for chunk in numba.prange((rows.size + _CHUNK - 1) // _CHUNK):
        _list_some(rows, chunk * _CHUNK, min((chunk + 1) * _CHUNK, rows.size), position, target, solid, radius, cells,
                   widest, farthest, count, close, presses)  # fmt: skip
    found, most = 0, 0
    for n in range(rows.size):
        if count[rows[n]] > 0:
            company[found] = rows[n]
            found += 1
            most = max(most, np.int64(count[rows[n]]))
    return found, most


@inlined_kernel
def _notch_to_take(i, position, ends, lengths, ids, radius, key, step, notch, changed, shares, count, close):
    """How far agent i may go, given what has changed in the last round."""
    dim = position.shape[1]
    mine = notch[i]
    for n in range(count[i]):
        j = close[i, n]
        if not (changed[i] or changed[j]):
            continue
        dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
        dz = position[j, 2] - position[i, 2] if dim == 3 else 0.0
        contact, apart2 = radius[i] + radius[j], dx * dx + dy * dy + dz * dz
        if apart2 > (contact + lengths[i] + lengths[j]) ** 2:
            continue
        other = shares[notch[j]]
        ax, ay = ends[i, 0] - position[i, 0], ends[i, 1] - position[i, 1]
        bx, by = other * (ends[j, 0] - position[j, 0]), other * (ends[j, 1] - position[j, 1])
        az = bz = 0.0
        if dim == 3:
            az, bz = ends[i, 2] - position[i, 2], other * (ends[j, 2] - position[j, 2])
        least = max(contact - TOLERANCE, 0.0)
        if apart2 < least * least:
            least = _NO_DEEPER * math.sqrt(apart2)
        yields = other == 0.0
        while shares[mine] > 0.0:
            share = shares[mine]
            mx, my, mz = bx - share * ax, by - share * ay, bz - share * az
            nearing = -(dx * mx + dy * my + dz * mz)
            if nearing <= 0.0 or _closest2(dx, dy, dz, mx, my, mz, nearing) >= least * least:
                break
            if not yields:
                # Among two who move, the lower draw goes first; equal draws are as good as impossible.
                own_draw, draw = uniform(key, ids[i], step, 0), uniform(key, ids[j], step, 0)
                if own_draw < draw or (own_draw == draw and i < j):
                    break
                yields = True
            mine += 1
    return mine


@kernel
def _round_of_some(rows, first, last, position, ends, lengths, ids, radius, key, step, notch, changed, asked, shares,
                   count, close, out_notch):  # fmt: skip
    for n in range(first, last):
        i = rows[n]
        if asked[i]:
            out_notch[i] = _notch_to_take(
                i, position, ends, lengths, ids, radius, key, step, notch, changed, shares, count, close
            )


@parallel_kernel
def _rounds(rows, position, wanted, ends, velocity, lengths, ids, radius, key, step, shares, count, close, presses):
    """Let agents give way, round by round, until nobody has to, and shorten their moves and velocities.

    Agents are left out when they go where they want to, press on nobody there, and nobody close does otherwise. An
    unchanged move alone says nothing: in a ring that closes in, the pressures from both sides cancel out, and all keep
    their wishes although they collide.
    """
    # How far each of them goes, as a place in `shares`. Who does not move at all cannot give way, so others must.
    notch = np.empty(position.shape[0], dtype=np.uint8)
    for i in range(position.shape[0]):
        notch[i] = 0 if lengths[i] > 0.0 else shares.size - 1
    fresh = notch.copy()
    changed = np.zeros(position.shape[0], dtype=np.bool_)
    asked = np.zeros(position.shape[0], dtype=np.bool_)  #: whether they or somebody close have changed
    for n in range(rows.size):
        i = rows[n]
        changed[i] = presses[i]
        for axis in range(position.shape[1]):
            changed[i] |= ends[i, axis] != wanted[i, axis]  # also where it is not a number
        if changed[i]:
            asked[i] = True
            for k in range(count[i]):
                asked[close[i, k]] = True
    chunks = (rows.size + _CHUNK - 1) // _CHUNK
    anything = True
    while anything:
        for chunk in numba.prange(chunks):
            _round_of_some(rows, chunk * _CHUNK, min((chunk + 1) * _CHUNK, rows.size), position, ends, lengths, ids,
                           radius, key, step, notch, changed, asked, shares, count, close, fresh)  # fmt: skip
        asked[:] = False
        anything = False
        for n in range(rows.size):
            i = rows[n]
            changed[i] = fresh[i] != notch[i]
            if changed[i]:
                anything = asked[i] = True
                for k in range(count[i]):
                    asked[close[i, k]] = True
                notch[i] = fresh[i]
    for n in range(rows.size):
        i = rows[n]
        if notch[i] > 0 and lengths[i] > 0.0:
            for axis in range(position.shape[1]):
                ends[i, axis] = position[i, axis] + shares[notch[i]] * (ends[i, axis] - position[i, axis])
                velocity[i, axis] *= shares[notch[i]]


@kernel
def _measure(position, ends, lengths):
    """Write the lengths of moves; returns the largest."""
    longest = 0.0
    for i in range(position.shape[0]):
        total = 0.0
        for axis in range(position.shape[1]):
            total += (ends[i, axis] - position[i, axis]) ** 2
        lengths[i] = math.sqrt(total)
        longest = max(longest, lengths[i])
    return longest


class Bodies:
    """Who is solid in this step, and who is close to whom."""

    def __init__(
        self,
        near: Any,
        solid: NDArray[np.bool_],
        key: np.uint64,
        step: int,
        *,
        moved_before: NDArray[np.bool_] | None = None,
    ) -> None:
        self._near = near
        self._solid = solid
        self._moved_before = moved_before  #: solid bodies that stand in this turn, if there are any
        self._key = key
        self._step = step
        self._farthest = -1.0  #: lists of who is close are good for moves up to this length [m]
        self._wanted: NDArray[np.float64] | None = None  #: ends of the moves for which the lists were made
        self._rows: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)  #: who has anybody close, by cell
        self._count: NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self._close: NDArray[np.uint32] = np.empty((0, _FIRST_ROOM), dtype=np.uint32)
        self._presses: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)  #: whose wanted moves lead into somebody

    def press(
        self, state: AgentState, target: NDArray[np.float64], longest: float, walls: WallGrid, dt: float
    ) -> NDArray[np.float64]:
        """The ends of the wanted moves, of which none is above `longest`, as far as bodies that press let them."""
        widest = float(state.radius.max(initial=0.0))
        # Walls push those who are too close to them out by a part of their radius: lists with a bit to spare can be
        # used again afterwards.
        self._list(state, target, longest + 0.1 * widest, widest)
        self._wanted = target
        return under_pressure(
            state,
            target,
            rows=self._rows,
            count=self._count,
            close=self._close,
            presses=self._presses,
            walls=walls,
            longest=longest,
            widest=widest,
            dt=dt,
            key=self._key,
            step=self._step,
        )

    def give_way(self, state: AgentState, steered: Steered) -> None:
        """Shorten the moves from `state.position` to `steered.position` until no two solid bodies collide."""
        ends = steered.position
        lengths = np.empty(len(state))
        longest = _measure(state.position, ends, lengths)
        if self._wanted is None or longest > self._farthest:
            self._list(state, ends, longest, float(state.radius.max(initial=0.0)))
            self._wanted = np.full_like(ends, np.nan)
        _rounds(self._rows, state.position, self._wanted, ends, steered.velocity, lengths, state.id, state.radius,
                self._key, self._step, _SHARES, self._count, self._close, self._presses)  # fmt: skip

    def _list(self, state: AgentState, target: NDArray[np.float64], farthest: float, widest: float) -> None:
        """Make lists of who is close that are complete for moves of that length [m]."""
        self._farthest = farthest
        agents = len(state)
        movers = np.arange(agents) if self._moved_before is None else np.flatnonzero(self._solid & ~self._moved_before)
        rows = self._near.rows_by_cell(movers)
        # Those who have no list are in the lists of others.
        self._count, company = np.zeros(agents, dtype=np.uint32), np.empty(agents, dtype=np.uint32)
        self._presses = np.zeros(agents, dtype=np.bool_)
        found, room, most = 0, 0, _FIRST_ROOM
        while most > room:
            room = most
            self._close = np.empty((agents, room + 1), dtype=np.uint32)
            found, most = _list_close(rows, state.position, target, self._solid, state.radius, self._near.cell_list,
                                      widest, farthest, self._count, self._close, self._presses, company)  # fmt: skip
        self._rows = company[:found]
