"""Neighbourhoods in space: a tetrahedralisation, and lists of who is near. Boxes have no walls that hide anybody."""

from __future__ import annotations

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr, sum_up
from tropel._kernels.compile import parallel_kernel
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Moment, Near
from tropel.environment.kinetic.meetings import SteadyRadii, pairs_of
from tropel.environment.kinetic.report import MeshReport
from tropel.environment.kinetic.tetra import Tetrahedralisation
from tropel.environment.kinetic.tetra_near import NearLists

#: The margin of the lists, as a share of the median radius.
_MARGIN = 0.3


@parallel_kernel
def _by_row(slots, row_of, indptr, indices, out_start, out):
    for row in prange(slots.shape[0]):
        first = indptr[slots[row]]
        for k in range(out_start[row + 1] - out_start[row]):
            out[out_start[row] + k] = row_of[indices[first + k]]


class InSpace:
    """The neighbourhoods of all agents of a world in 3D.

    The tetrahedralisation has a slot for each agent, which stays the same while rows change as others come and go.
    """

    def __init__(self) -> None:
        self.structure = Tetrahedralisation(np.empty((0, 3)))
        self.last = MeshReport()
        self._ids = np.empty(0, dtype=np.int64)
        self._slots = np.empty(0, dtype=np.int64)
        self._free: list[int] = []
        self._position: Floats = np.zeros((0, 3))
        self._kept: dict[str, NearLists] = {}
        self._steady: dict[str, SteadyRadii] = {}  #: for pairs that come close, by what they are wanted for

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

    def follow(self, moment: Moment) -> None:
        """Agents have moved, come or gone."""
        state, earlier = moment.state, self.total
        if not np.array_equal(state.id, self._ids):
            self._come_and_go(state.id, state.position)
        self._position[self._slots] = state.position
        self.structure.advance(self._position)
        self.last = self.total.since(earlier)

    def _come_and_go(self, ids: NDArray[np.int64], position: Floats) -> None:
        gone, stays = ~np.isin(self._ids, ids), np.isin(ids, self._ids)
        if gone.any():
            self.structure.remove(self._slots[gone])
            self._free.extend(self._slots[gone].tolist())
        slots = np.empty(len(ids), dtype=np.int64)
        order = np.argsort(self._ids)
        slots[stays] = self._slots[order[np.searchsorted(self._ids, ids[stays], sorter=order)]]
        fresh = np.flatnonzero(~stays)
        missing = len(fresh) - len(self._free)
        if missing > 0:
            # Some more than are needed, because room for newcomers means new arrays.
            count = len(self._position)
            more = missing + count // 4
            self._free.extend(range(count, count + more))
            self._position = np.concatenate([self._position, np.zeros((more, 3))])
        slots[fresh] = [self._free.pop() for _ in fresh]
        self._position[slots[fresh]] = position[fresh]
        if len(fresh):
            self.structure.insert(slots[fresh], self._position)
        self._ids, self._slots = ids.copy(), slots

    @property
    def slots(self) -> NDArray[np.int64]:
        """The slot of each row."""
        return self._slots

    @property
    def position(self) -> Floats:
        """Where agents are, by slot [m]."""
        return self._position

    def kept_lists(self, near: Near, radius: Floats) -> NearLists:
        """The lists that are kept for these radii."""
        return self._kept["usual" if radius is near.state.sense_radius else "other"]

    def pairs_within(
        self, purpose: str, state: AgentState, before: Floats, extent: Floats
    ) -> NDArray[np.uint32] | None:
        """Pairs of rows whose extents reach each other; None if the structure is elsewhere."""
        if not np.array_equal(state.id, self._ids) or not np.array_equal(self._position[self._slots], before):
            return None
        steady = self._steady.setdefault(purpose, SteadyRadii())
        radius = steady.radii(self._slots, extent, len(self._position))
        return pairs_of(self._listed(purpose, radius, None), before, radius, extent)

    def lists(self, near: Near, radius: Floats, tracked: NDArray[np.int64] | None) -> Csr:
        """Rows of those within a radius of each agent, or of each of the tracked rows; of others nobody."""
        return self._listed("usual" if radius is near.state.sense_radius else "other", radius, tracked)

    def _listed(self, which: str, radius: Floats, tracked: NDArray[np.int64] | None) -> Csr:
        slots = self._slots
        if which not in self._kept:
            self._kept[which] = NearLists(self.structure, _MARGIN * float(np.median(radius)) if len(radius) else 1.0)
        by_slot, row_of = np.zeros(len(self._position)), np.full(len(self._position), -1, dtype=np.int32)
        by_slot[slots], row_of[slots] = radius, np.arange(len(slots))
        if tracked is not None:
            # A list up to no distance at all never expires.
            by_slot[np.setdiff1d(slots, slots[tracked])] = -np.inf
        found = self._kept[which].update(self._position, by_slot)
        start, length = np.zeros(len(slots) + 1, dtype=np.int64), np.diff(found.indptr)[slots]
        if tracked is not None:
            length[np.setdiff1d(np.arange(len(slots)), tracked)] = 0
        out = np.empty(sum_up(length, start), dtype=np.int32)
        _by_row(slots, row_of, found.indptr, found.indices, start, out)
        return Csr(start, out)
