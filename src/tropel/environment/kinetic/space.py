"""Neighbourhoods in space: a tetrahedralisation, and lists of who is near. Boxes have no walls that hide anybody."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.compile import kernel
from tropel.agents.state import Floats
from tropel.contracts import Moment, Near
from tropel.environment.kinetic.cells_around import rows_around
from tropel.environment.kinetic.lists import NearLists, Work
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.tetra import Tetrahedralisation
from tropel.environment.kinetic.tetra_order import along_a_curve


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

    def lists(self, near: Near, radius: Floats) -> Csr:
        """Rows of those within a radius of each agent."""
        state, cells = near.state, near.cells.sorting.sorted

        def around(rows: NDArray[np.int32], reach: Floats) -> Csr:
            return rows_around(cells, rows, state.position, state.level, reach)

        kept = self._usual if radius is state.sense_radius else self._other
        return kept.near(near, radius, around)
