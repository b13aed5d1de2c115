"""A Delaunay tetrahedralisation of agents in space that is repaired while they move, instead of built anew.

A step moves all vertices, puts back those that would invert a tetrahedron, and flips faces until all pass the exact
in-sphere test; those put back try again and are reinserted in the end. Only what is due is looked at: certificates say
how far points may move before a tetrahedron can invert or a face can fail (`tetra_certificates`). Whatever fails ends in
a rebuild, so that every step ends with a correct structure.

The structure has positions of its own, a tiny nudge away from the agents', which depends on the agent's number: no two
vertices coincide, and agents in planes, lines and lattices are in general position. Distances are measured between the
agents' true positions (`tetra_near`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.environment.kinetic.tetra_arrays import (
    CLASSES,
    DONE,
    FAILED,
    FLIPS,
    FREE,
    GAVE_UP,
    GHOSTS,
    LOOKED,
    NO_ROOM,
    REINSERTIONS,
    STUCK,
    TetraArrays,
    make_arrays,
    place_ghosts,
    sort_tets,
    with_more_room,
)
from tropel.environment.kinetic.tetra_check import check_invariants
from tropel.environment.kinetic.tetra_delete import delete_vertex
from tropel.environment.kinetic.tetra_flips import restore_delaunay
from tropel.environment.kinetic.tetra_insert import insert_many
from tropel.environment.kinetic.tetra_motion import (
    begin_step,
    count_pending,
    loosen,
    move_pending,
    put_all_back,
    put_back_inverted,
    reinsert_pending,
    scan_faces,
    scan_tets,
)
from tropel.environment.kinetic.tetra_order import along_a_curve, insertion_order, nudges
from tropel.errors import ModelError

Floats = NDArray[np.float64]

#: Ghosts are this many safe radii away; they bend the structure only where the crowd ends.
_GHOST_DISTANCE = 10.0
#: A crowd may grow to this many times its radius before the ghosts move.
_SAFE = 2.0
#: The nudge as a share of the safe radius, and of the largest coordinate (where rounding would eat a smaller one).
_NUDGE, _NUDGE_FAR = 1e-9, 1e-11
#: Rows of tetrahedra to begin with, per vertex; agents at random places have 6.8.
_ROOM = 8
#: Steps after which speed classes are given anew.
_CLASS_STEPS = 16
#: Speed classes end at these multiples of the displacement that this share of all who move at all stay below.
_USUAL = 0.9
_CLASS_ENDS = np.array([1 / 16, 1 / 3, 2.0])
#: With more inverted tetrahedra than this share, putting vertices back would invert ever more others.
_TOO_MANY_INVERTED = 0.012
#: No share of the way smaller than this is tried before a rebuild.
_SMALLEST_SHARE = 1 / 8
_MOST_ROUNDS = 24


@dataclass
class TetraCounts:
    """What repairing has cost so far."""

    steps: int = 0
    looked: int = 0  #: certificates looked at
    failed: int = 0  #: of those, the ones that had failed
    flips: int = 0
    reinsertions: int = 0
    rounds: int = 0  #: parts of steps
    rebuilds: int = 0


class Tetrahedralisation:
    """The Delaunay tetrahedralisation of agents in space.

    `position` has a row for each agent; rows with False in `present` are empty until `insert` fills them.
    """

    def __init__(self, position: Floats, present: NDArray[np.bool_] | None = None) -> None:
        count = len(position)
        self.present = np.ones(count, dtype=np.bool_) if present is None else present.copy()
        self.counts = TetraCounts()
        self.nudge = 0.0  #: vertices are at most √3 of it away from their agents, on each axis at most it [m]
        self._class_bound = np.full(CLASSES, np.inf)
        self._fastest = np.zeros(CLASSES)
        self._share = 1.0
        self._check(position, self.present)
        self.arrays: TetraArrays = make_arrays(count + GHOSTS, _ROOM * count + 64)
        self._rebuild(position)
        self.counts.rebuilds = 0

    @property
    def certificates(self) -> int:
        """How many certificates there are: one for each tetrahedron and each face between two of them."""
        tets = len(self.arrays.tet_vertex) - int(self.arrays.counts[FREE])
        return tets + (4 * tets - 4) // 2

    @property
    def largest_displacement(self) -> float:
        """Of any agent in the last step [m]."""
        return float(self._fastest[-1])

    def check_invariants(self) -> None:
        """Raise unless the structure is exactly what it claims to be; slow."""
        check_invariants(self.arrays, self.present)

    def advance(self, position: Floats) -> None:
        """Move every agent that is present to its row of `position`."""
        self._check(position, self.present)
        self.counts.steps += 1
        self._aim(position, self.present)
        if self.counts.steps % _CLASS_STEPS == 1:
            self._give_classes()
        begin_step(self.arrays, self._class_bound, self._fastest)
        if self._fastest[-1] > 0.0 and (self._has_left(position[self.present]) or not self._repair()):
            self._rebuild(position)
        self._take_counts()

    def insert(self, rows: NDArray[np.int64], position: Floats) -> None:
        """Put agents into empty rows, at their rows of `position` (which has a row for every agent, as everywhere)."""
        if self.present[rows[rows < len(self.present)]].any():
            raise ModelError("only empty rows of the tetrahedralisation can be filled; remove the old agents first")
        if len(position) > len(self.present):
            self._make_room(vertices=len(position))
        entering = np.zeros(len(self.present), dtype=np.bool_)
        entering[rows] = True
        self._check(position, entering)
        self.present |= entering
        self._aim(position, entering)
        self.arrays.vertex_class[rows + GHOSTS] = CLASSES - 1
        self.arrays.recent[rows + GHOSTS] = 0.0
        if self._has_left(position[entering]) or not (self._insert(rows.astype(np.int64) + GHOSTS) and self._flip()):
            self._rebuild(self._where_agents_are())
        self._take_counts()

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Take agents out; their rows are empty then."""
        if not self.present[rows].all():
            raise ModelError("only agents that are present can be removed from the tetrahedralisation")
        self.present[rows] = False
        for row in rows:
            ended = delete_vertex(self.arrays, row + GHOSTS)
            while ended == NO_ROOM:
                self._make_room()
                ended = delete_vertex(self.arrays, row + GHOSTS)
            if ended != DONE or not self._flip():
                self._rebuild(self._where_agents_are())
                return
        self._take_counts()

    def _repair(self) -> bool:
        """Bring everybody to their targets and restore the structure; False if that takes a rebuild."""
        m = self.arrays
        tets = len(m.tet_vertex) - int(m.counts[FREE])
        share, left = self._share, 1.0
        pending = count_pending(m)
        for _ in range(_MOST_ROUNDS):
            self.counts.rounds += 1
            whole = share >= left
            move_pending(m, 1.0 if whole else share / left)
            inverted = scan_tets(m)
            if inverted > max(8, _TOO_MANY_INVERTED * tets) and left > 0.0:
                share *= 0.5
                if share < _SMALLEST_SHARE:
                    self._share = _SMALLEST_SHARE
                    return False
                put_all_back(m)
                continue
            if put_back_inverted(m, inverted) != DONE:
                return False
            scan_faces(m)
            if not self._flip():
                return False
            m = self.arrays
            left = 0.0 if whole else left - share
            before, pending = pending, count_pending(m)
            if pending == 0 or (left <= 0.0 and pending > 0.7 * before):
                break
        self._share = min(1.0, share * (2.0 if inverted < 0.25 * _TOO_MANY_INVERTED * tets else 1.0))
        ended = reinsert_pending(self.arrays)
        while ended == NO_ROOM:
            self._make_room()
            ended = reinsert_pending(self.arrays)
        return bool(ended == DONE) and int(self.arrays.counts[STUCK]) == 0

    def _flip(self) -> bool:
        """Flip until the structure is Delaunay; False if that takes a rebuild."""
        limit = 16 * len(self.arrays.tet_vertex)
        ended = restore_delaunay(self.arrays, limit)
        while ended == NO_ROOM:
            self._make_room()
            ended = restore_delaunay(self.arrays, limit)
        return bool(ended == DONE) and (int(self.arrays.counts[STUCK]) == 0 or loosen(self.arrays) == DONE)

    def _insert(self, order: NDArray[np.int64]) -> bool:
        done, ended = insert_many(self.arrays, order, 0)
        while ended == NO_ROOM:
            self._make_room()
            done, ended = insert_many(self.arrays, order, done)
        return bool(ended == DONE)

    def _rebuild(self, position: Floats) -> None:
        """Build everything anew, with ghosts around where the crowd is now."""
        self._take_counts()
        self.counts.rebuilds += 1
        here = position[: len(self.present)][self.present]
        low, high = (here.min(axis=0), here.max(axis=0)) if len(here) else (np.zeros(3), np.zeros(3))
        self._middle = (low + high) / 2.0
        self._safe_radius = _SAFE * max(1.0, float(np.linalg.norm(high - low)) / 2.0)
        far = float(np.abs(here).max()) if len(here) else 0.0
        self.nudge = max(_NUDGE * self._safe_radius, _NUDGE_FAR * far)
        old = self.arrays
        m = self.arrays = make_arrays(len(old.position), len(old.tet_vertex))
        m.travel[:] = old.travel
        m.vertex_class[:], m.recent[:] = old.vertex_class, old.recent
        place_ghosts(m, self._middle, _GHOST_DISTANCE * self._safe_radius)
        self._aim(position, self.present)
        order = insertion_order(here)
        if not self._insert(np.flatnonzero(self.present)[order] + GHOSTS):
            raise ModelError("agents could not be tetrahedralised; their positions are too far apart for their nudges")
        sort_tets(self.arrays, along_a_curve(self.arrays.target))
        scan_tets(self.arrays)
        scan_faces(self.arrays)
        if not self._flip():
            raise ModelError("a tetrahedralisation that was just built could not be certified")
        self.arrays.counts[[LOOKED, FAILED, FLIPS, REINSERTIONS]] = 0

    def _aim(self, position: Floats, rows: NDArray[np.bool_]) -> None:
        """Set the targets of agents: their positions and a nudge by the number of the agent."""
        numbers = np.flatnonzero(rows)
        self.arrays.target[numbers + GHOSTS] = position[numbers] + self.nudge * nudges(len(rows))[numbers]

    def _where_agents_are(self) -> Floats:
        """Positions without nudges, as well as the structure knows them."""
        return self.arrays.target[GHOSTS:] - self.nudge * nudges(len(self.present))

    def _give_classes(self) -> None:
        """Set the ends of the speed classes by this step, and sort agents into them by how fast they have been of late.

        Only down, which is always allowed; those too fast for their class go up when a step begins.
        """
        m = self.arrays
        here = np.flatnonzero(self.present) + GHOSTS
        way = np.linalg.norm(m.target[here] - m.position[here, :3], axis=1)
        way = way[way > 0.0]
        if len(way):
            self._class_bound[:-1] = _CLASS_ENDS * np.quantile(way, _USUAL)
            m.vertex_class[:] = np.minimum(m.vertex_class, np.searchsorted(self._class_bound[:-1], m.recent))
            m.recent[:] = 0.0

    def _make_room(self, vertices: int = 0) -> None:
        m = self.arrays
        more = max(vertices, len(m.position) - GHOSTS)
        tets = len(m.tet_vertex)
        self.arrays = with_more_room(m, more + GHOSTS, tets if vertices else tets + tets // 2 + 64)
        self.present = np.concatenate([self.present, np.zeros(more - len(self.present), dtype=np.bool_)])

    def _take_counts(self) -> None:
        counts = self.arrays.counts
        self.counts.looked += int(counts[LOOKED])
        self.counts.failed += int(counts[FAILED])
        self.counts.flips += int(counts[FLIPS])
        self.counts.reinsertions += int(counts[REINSERTIONS])
        counts[[LOOKED, FAILED, FLIPS, REINSERTIONS]] = 0

    def _has_left(self, position: Floats) -> bool:
        return bool((np.abs(position - self._middle) > self._safe_radius).any())

    @staticmethod
    def _check(position: Floats, rows: NDArray[np.bool_]) -> None:
        if position.ndim != 2 or position.shape[1] != 3 or len(position) < len(rows):
            raise ModelError(f"positions must be an array [{len(rows)}, 3], one row per agent, not {position.shape}")
        fine = np.isfinite(position[: len(rows)]).all(axis=1) | ~rows
        if not fine.all():
            row = int(np.flatnonzero(~fine)[0])
            raise ModelError(f"agent {row} cannot be at {position[row]}: positions must be finite numbers")
