"""Which solid bodies are close enough to touch during a step, and which of them want to move into each other."""

from __future__ import annotations

import math
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import BLOCK, cell_run, cell_window, near_bits
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.simd import trailing_zeros
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contact.wanted import HowTheyMove, codes_of
from tropel.contracts.declarations import Moves

#: Bodies in contact keep this share of their contact distance between them, as room for what the rounds leave over.
SLACK = 5e-4

#: Agents per unit of parallel work.
CHUNK = 256

#: The table has room for this many close bodies per agent before a larger one is made.
_FIRST_ROOM = 12

_NONE, _ONE = np.uint64(0), np.uint64(1)


class Contacts(NamedTuple):
    """Bodies at the start of a step, and for each of them the others that it may touch during the step.

    The lists are in the order of the cells and then of the ids, whatever the order of the rows. Parallel loops must
    only pass this tuple on: Numba drops what the body of such a loop writes through an attribute.
    """

    position: NDArray[np.float64]  #: (N, dim)
    radius: NDArray[np.float64]  #: (N,)
    id: NDArray[np.int64]  #: (N,)
    codes: NDArray[np.uint8]  #: (N,) or (1,): how agents move, see `wanted.py`
    rows: NDArray[np.uint32]  #: the agents that have others close to them, in the order of their cells
    how_many: NDArray[np.uint32]  #: (N,): how many others are close to each agent
    close: NDArray[np.uint32]  #: (N, room): their rows
    presses: NDArray[np.bool_]  #: (N,): whether the wanted move leads into another body


@inlined_kernel
def _wishes_press(dx, dy, dz, mx, my, mz, contact):
    """Whether two bodies at the offset d push into each other when their moves change the offset by m."""
    apart = math.sqrt(dx * dx + dy * dy + dz * dz)
    return (max(apart - contact, 0.0) - SLACK * contact) * apart + (dx * mx + dy * my + dz * mz) < 0.0


@kernel
def _list_some(contacts, first, last, target, solid, cells, widest, farthest):
    position, radius, close = contacts.position, contacts.radius, contacts.close
    dim, spare = position.shape[1], close.shape[1] - 1
    for n in range(first, last):
        i = contacts.rows[n]
        contacts.how_many[i] = 0
        contacts.presses[i] = False
        if not solid[i]:
            continue
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if dim == 3 else 0.0
        reach = radius[i] + widest + 2.0 * farthest
        x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z if dim == 3 else np.float64(cells.level[i]), reach)
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
                        # The agent itself and bodies that are not solid are overwritten by the next entry, or end up
                        # in the spare column.
                        close[i, min(found, spare)] = j
                        found += np.int64(other)
                        dx, dy = cells.position[0, k] - x, cells.position[1, k] - y
                        mx = target[j, 0] - target[i, 0] - dx
                        my = target[j, 1] - target[i, 1] - dy
                        dz = mz = 0.0
                        if dim == 3:
                            dz = cells.position[2, k] - z
                            mz = target[j, 2] - target[i, 2] - dz
                        pressing |= other & _wishes_press(dx, dy, dz, mx, my, mz, radius[i] + cells.radius[k])
        contacts.how_many[i] = found
        contacts.presses[i] = pressing


@kernel
def _rows_with_company(contacts, company):
    """Write the rows that have any body close; returns how many there are, and the length of the longest list."""
    found, most = 0, 0
    for n in range(contacts.rows.size):
        i = contacts.rows[n]
        if contacts.how_many[i] > 0:
            company[found] = i
            found += 1
            most = max(most, np.int64(contacts.how_many[i]))
    return found, most


@parallel_kernel
def _list_close(contacts, target, solid, cells, widest, farthest, company):
    """List which bodies are close to `contacts.rows`, and which wishes collide; returns as `_rows_with_company`."""
    size = contacts.rows.size
    for chunk in numba.prange((size + CHUNK - 1) // CHUNK):
        _list_some(contacts, chunk * CHUNK, min((chunk + 1) * CHUNK, size), target, solid, cells, widest, farthest)
    return _rows_with_company(contacts, company)


def find_contacts(
    cells: CellGrid,
    state: AgentState,
    target: NDArray[np.float64],
    solid: NDArray[np.bool_],
    moves: HowTheyMove,
    *,
    widest: float,
    farthest: float,
) -> Contacts:
    """Lists of the solid bodies that are close to each other, complete for moves up to the length `farthest` [m].

    Bodies of another phase have no list of their own, but are in the lists of others.
    """
    agents, codes = len(state), codes_of(moves)
    listed = np.arange(agents) if isinstance(moves, Moves) else np.flatnonzero(solid & (codes != Moves.NOT_NOW))
    rows = cells.rows_by_cell(listed)
    company = np.empty(agents, dtype=np.uint32)
    how_many, presses = np.zeros(agents, dtype=np.uint32), np.zeros(agents, dtype=np.bool_)
    found, room, most = 0, 0, _FIRST_ROOM
    while most > room:
        room = most
        close = np.empty((agents, room + 1), dtype=np.uint32)
        contacts = Contacts(state.position, state.radius, state.id, codes, rows, how_many, close, presses)
        found, most = _list_close(contacts, target, solid, cells.cell_list, widest, farthest, company)
    return contacts._replace(rows=company[:found])
