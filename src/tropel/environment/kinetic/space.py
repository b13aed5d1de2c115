"""Neighbourhoods in space: a tetrahedralisation, and lists of who is near. Boxes have no walls that hide anybody."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, Ragged
from tropel._kernels.cells import CellList
from tropel._kernels.compile import kernel
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Near
from tropel.environment.kinetic.cells_around import rows_around
from tropel.environment.kinetic.lists import Around, NearLists, Work
from tropel.environment.kinetic.meetings import SteadyRadii, pairs_of
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.tetra import Tetrahedralisation
from tropel.environment.kinetic.tetra_order import along_a_curve
from tropel.environment.kinetic.tracked import only_tracked


@kernel
def _place(slots, position, out):
    for row in range(slots.shape[0]):
        for axis in range(3):
            out[slots[row], axis] = position[row, axis]


class InSpace:
    """The neighbourhoods of all agents of a world in 3D.

    The tetrahedralisation has a slot for each agent, which stays the same while rows change as others come and go.
    """

    def __init__(self) -> None:
        self.structure = Tetrahedralisation(np.empty((0, 3)))
        self.last = MeshReport()
        self._ids = np.empty(0, dtype=np.int64)
        self._slots = np.empty(0, dtype=np.int32)
        self._free = np.empty(0, dtype=np.int32)
        self._position: Floats = np.zeros((0, 3))
        # For the sense radii, and for others that a model may ask for.
        self._usual, self._other = NearLists(), NearLists()
        # For pairs that come close, by what they are wanted for.
        self._meeting: dict[str, tuple[NearLists, SteadyRadii]] = {}
        self._moment: Moment | None = None

    @property
    def total(self) -> MeshReport:
        """What it has taken so far."""
        counts = self.structure.counts
        return MeshReport(
            certificates=self.structure.certificates,
            looked_at=counts.looked,
            failed=counts.failed,
            flips=counts.flips,
            reinserted=counts.reinsertions,
            rebuilds=counts.rebuilds,
        )

    @property
    def work(self) -> Work:
        return self._usual.work

    def follow(self, moment: Moment) -> None:
        """Agents have moved, come or gone."""
        state, earlier = moment.state, self.total
        self._moment = moment
        if not np.array_equal(state.id, self._ids):
            self._come_and_go(state.id, state.position)
        _place(self._slots, state.position, self._position)
        self.structure.advance(self._position)
        self.last = self.total.since(earlier)

    def _come_and_go(self, ids: NDArray[np.int64], position: Floats) -> None:
        gone, stays = ~np.isin(self._ids, ids), np.isin(ids, self._ids)
        if gone.any():
            self.structure.remove(self._slots[gone].astype(np.int64))
            self._free = np.concatenate([self._free, self._slots[gone]])
        slots = np.empty(len(ids), dtype=np.int32)
        order = np.argsort(self._ids)
        slots[stays] = self._slots[order[np.searchsorted(self._ids, ids[stays], sorter=order)]]
        fresh = np.flatnonzero(~stays)
        if len(fresh):
            # Neighbours get neighbouring slots, so that what is near is near in memory too.
            fresh = fresh[np.argsort(along_a_curve(position[fresh]), kind="stable")]
            slots[fresh] = self._take_slots(len(fresh))
            self._position[slots[fresh]] = position[fresh]
            self.structure.insert(slots[fresh].astype(np.int64), self._position)
        self._ids, self._slots = ids.copy(), slots

    def _take_slots(self, count: int) -> NDArray[np.int32]:
        """Free slots, ascending."""
        missing = count - len(self._free)
        if missing > 0:
            # Some more than are needed, because room for newcomers means new arrays.
            known = len(self._position)
            more = missing + known // 4
            self._free = np.concatenate([self._free, np.arange(known, known + more, dtype=np.int32)])
            self._position = np.concatenate([self._position, np.zeros((more, 3))])
        self._free.sort()
        taken, self._free = self._free[:count], self._free[count:]
        return taken

    def kept_lists(self, near: Near, radius: Floats) -> NearLists:
        """The lists that are kept for these radii."""
        return self._usual if radius is near.state.sense_radius else self._other

    def lists(self, near: Near, radius: Floats, tracked: NDArray[np.int64] | None) -> Ragged:
        """Rows of those within a radius of each agent, or of each of the tracked rows; of others nobody."""
        state, cells, kept = near.state, near.cells.sorting.sorted, self.kept_lists(near, radius)
        return kept.near(state, state.position, cells, only_tracked(radius, tracked), _around_in(cells, state))

    def pairs_within(
        self, purpose: str, state: AgentState, before: Floats, extent: Floats
    ) -> NDArray[np.uint32] | None:
        """Pairs of rows whose extents reach each other; None if the structure is elsewhere."""
        if not np.array_equal(state.id, self._ids) or not np.array_equal(self._position[self._slots], before):
            return None
        cells = None if self._moment is None else self._moment.cells.sorting.sorted
        if cells is None or not np.array_equal(cells.position.T, before[cells.order]):
            return None
        kept, steady = self._meeting.setdefault(purpose, (NearLists(), SteadyRadii()))
        radius = steady.radii(self._slots, extent, len(self._position))
        return pairs_of(kept.near(state, before, cells, radius, _around_in(cells, state)), before, radius, extent)


def _around_in(cells: CellList, state: AgentState) -> Around:
    def around(rows: NDArray[np.int32], reach: Floats) -> Csr:
        return rows_around(cells, rows, state.level, reach)

    return around
