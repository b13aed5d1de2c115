"""A Delaunay tetrahedralisation of agents in space that is repaired while they move, instead of built anew.

A step moves all vertices, puts back those that would invert a tetrahedron, and flips faces until all pass the exact
in-sphere test; those put back try again and are reinserted in the end. Only what is due is looked at: certificates say
how far points may move before a tetrahedron can invert or a face can fail (`tetra_certificates`). Whatever fails ends
in a rebuild, so that every step ends with a correct structure.

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
from tropel.environment.kinetic.tetra_flips import restore_delaunay
from tropel.environment.kinetic.tetra_insert import insert_many
from tropel.environment.kinetic.tetra_motion import (
    begin_step,
    drop_arrived,
    first_unplaceable,
    move_and_scan,
    put_back_inverted,
    reinsert_pending,
    scan_due,
)
from tropel.environment.kinetic.tetra_order import along_a_curve, insertion_order, nudges
from tropel.environment.kinetic.tetra_refill import delete_vertex, refill_stuck
from tropel.errors import ModelError

Floats = NDArray[np.float64]

#: Ghosts are this many safe radii away; they bend the structure only where the crowd ends.
_GHOST_DISTANCE = 10.0
#: A crowd may grow to this many times its radius before the ghosts move.
_SAFE = 2.0
#: The nudge as a share of the safe radius, and of the largest coordinate (where rounding would eat a smaller one).
_NUDGE, _NUDGE_FAR = 1e-9, 1e-11
#: The exact predicates are exact up to about 1e60, and the ghosts are farther away than any agent.
_FARTHEST = 1e50
#: Rows of tetrahedra to begin with, per vertex; agents at random places have 6.8.
_ROOM = 8
#: Steps after which speed classes are given anew.
_CLASS_STEPS = 16
#: Speed classes end at these multiples of the displacement that this share of all who move at all stay below.
_USUAL = 0.9
_CLASS_ENDS = np.array([1 / 16, 1 / 3, 2.0])
#: With a larger share of tetrahedra inverted, putting vertices back inverts ever more others; a rebuild is faster then.
_TOO_MANY_INVERTED = 0.06
#: The parts of what is left of the way that are tried before vertices are reinserted. What was put back can often move
#: once the others have; half of the way gives time for flips on the way.
_SHARES = (1.0, 0.5, 1.0)
#: Smaller crowds than this are in the caches in any order.
_WORTH_SORTING = 500
#: Structures with more tetrahedra than this are sorted again after so many flips for each of them, because flips spread
#: what is near over the memory; smaller ones are in the caches in any order.
_LARGE, _FLIPS_BETWEEN_SORTS = 200_000, 8
#: How often flipping is resumed, after what was stuck has been built anew or arrays have grown.
_MOST_REFILLS = 1000


@dataclass
class TetraCounts:
    """What repairing has cost so far."""

    steps: int = 0
    looked: int = 0  #: certificates looked at
    failed: int = 0  #: of those, the ones that had failed
    flips: int = 0
    reinsertions: int = 0
    rounds: int = 0  #: parts of steps
    refills: int = 0  #: holes made around stuck faces
    rebuilds: int = 0


class Tetrahedralisation:
    """The Delaunay tetrahedralisation of agents in space.

    `position` has a row for each agent; rows with False in `present` are empty until `insert` fills them. For hunting
    bugs, `check_always` checks all invariants after every change, which is slow.
    """

    def __init__(
        self, position: Floats, present: NDArray[np.bool_] | None = None, *, check_always: bool = False
    ) -> None:
        count = len(position)
        self.present = np.ones(count, dtype=np.bool_) if present is None else present.copy()
        self.counts = TetraCounts()
        self._check_always = check_always
        self.nudge = 0.0  #: on no axis is a vertex farther than this from its agent [m]
        self._sorted_at = 0  #: how many flips there had been when tetrahedra were sorted
        self._class_bound = np.full(CLASSES, np.inf)
        self._fastest = np.zeros(CLASSES)
        self._check(position, self.present)
        self.arrays: TetraArrays = make_arrays(count + GHOSTS, _ROOM * count + 64)
        self._rebuild(position)
        self.counts.rebuilds = 0

    @property
    def certificates(self) -> int:
        """How many certificates there are: one for each tetrahedron and the faces that it watches."""
        return len(self.arrays.tet_vertex) - int(self.arrays.counts[FREE])

    def check_invariants(self) -> None:
        """Raise unless the structure is exactly what it claims to be; slow."""
        check_invariants(self.arrays, self.present)

    def advance(self, position: Floats) -> None:
        """Move every agent that is present to its row of `position`."""
        self._check(position, self.present)
        self.counts.steps += 1
        vectors = nudges(len(self.present))
        bounds = (self._middle, self._safe_radius, self._class_bound)
        left = begin_step(self.arrays, position, self.nudge, vectors, *bounds, self._fastest)
        if self._fastest[-1] > 0.0:
            if left or not self._repair():
                self._rebuild(position)
            if self.counts.steps % _CLASS_STEPS == 1 or self._class_bound[0] == np.inf:
                self._give_classes()
            self._finish()
            changed = self.counts.flips - self._sorted_at
            if self.certificates > _LARGE and changed > _FLIPS_BETWEEN_SORTS * self.certificates:
                self._sort()

    def insert(self, rows: NDArray[np.int64], position: Floats) -> None:
        """Put agents into empty rows, at their rows of `position` (which has a row for every agent, as everywhere)."""
        rows = np.unique(rows)
        if self.present[rows[rows < len(self.present)]].any():
            raise ModelError("only empty rows of the tetrahedralisation can be filled; remove the old agents first")
        if len(position) > len(self.present):
            self._make_room(vertices=len(position))
        entering = np.zeros(len(self.present), dtype=np.bool_)
        entering[rows] = True
        self._check(position, entering)
        # A structure of mostly new vertices is built anew, because building also sorts it.
        anew = len(rows) > max(_WORTH_SORTING, int(self.present.sum()) // 2)
        self.present |= entering
        self._aim(position, entering)
        self.arrays.vertex_class[rows + GHOSTS] = 0
        self.arrays.recent[rows + GHOSTS] = 0.0
        if (
            anew
            or self._has_left(position[entering])
            or not (self._insert(rows[insertion_order(position[rows])] + GHOSTS) and self._flip())
        ):
            where = self._where_agents_are()
            where[rows] = position[rows]
            self._rebuild(where)
        self._finish()

    def remove(self, rows: NDArray[np.int64]) -> None:
        """Take agents out; their rows are empty then."""
        rows = np.unique(rows)
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
                break
        self._finish()

    def _finish(self) -> None:
        self._take_counts()
        if self._check_always:
            self.check_invariants()

    def _repair(self) -> bool:
        """Bring everybody to their targets and restore the structure; False if that takes a rebuild."""
        for number, share in enumerate(_SHARES):
            self.counts.rounds += 1
            inverted = int(move_and_scan(self.arrays, share, number == 0))
            if inverted > _TOO_MANY_INVERTED * self.certificates:
                return False
            if inverted and put_back_inverted(self.arrays, inverted) != DONE:
                return False
            if not self._flip():
                return False
            if drop_arrived(self.arrays) == 0:
                return True
        ended = reinsert_pending(self.arrays)
        while ended == NO_ROOM:
            self._make_room()
            ended = reinsert_pending(self.arrays)
        return bool(ended == DONE) and self._flip()

    def _flip(self) -> bool:
        """Flip until the structure is Delaunay; False if that takes a rebuild."""
        limit = 16 * len(self.arrays.tet_vertex)
        for _ in range(_MOST_REFILLS):
            ended = restore_delaunay(self.arrays, limit)
            if ended == DONE:
                if self.arrays.counts[STUCK] == 0:
                    return True
                self.counts.refills += 1
                ended = refill_stuck(self.arrays)
            if ended == NO_ROOM:
                self._make_room()
            elif ended != DONE:
                return False
        return False

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
        order = np.flatnonzero(self.present)[insertion_order(here)] + GHOSTS
        # Only vertices in exactly one place cannot be inserted; nudges of another size part them.
        while not self._build(position, order):
            self.nudge *= 10.0
            if self.nudge > 1e-3 * self._safe_radius:
                raise ModelError("agents could not be tetrahedralised: no nudge parts them")
        self._sort()
        # Where faces are in doubt, the first scan leaves them to the larger tetrahedron beside them.
        for _ in range(2):
            scan_due(self.arrays)
            if not self._flip():
                raise ModelError("a tetrahedralisation that was just built could not be certified")
        self.arrays.counts[[LOOKED, FAILED, FLIPS, REINSERTIONS]] = 0

    def _sort(self) -> None:
        """Number tetrahedra by place."""
        here = np.flatnonzero(self.present) + GHOSTS
        key = np.zeros(len(self.arrays.position), dtype=np.uint64)
        if len(here):
            key[here] = along_a_curve(self.arrays.target[here])
        sort_tets(self.arrays, key)
        self._sorted_at = self.counts.flips

    def _build(self, position: Floats, order: NDArray[np.int64]) -> bool:
        """Insert all vertices, in order, into new arrays; False if one cannot be inserted."""
        old = self.arrays
        m = self.arrays = make_arrays(len(old.position), len(old.tet_vertex))
        m.travel[:], m.vertex_class[:], m.recent[:] = old.travel, old.vertex_class, old.recent
        place_ghosts(m, self._middle, _GHOST_DISTANCE * self._safe_radius)
        self._aim(position, self.present)
        return self._insert(order)

    def _aim(self, position: Floats, rows: NDArray[np.bool_]) -> None:
        """Set the targets of agents: their positions and a nudge by the number of the agent."""
        numbers = np.flatnonzero(rows)
        self.arrays.target[numbers + GHOSTS] = position[numbers] + self.nudge * nudges(len(rows))[numbers]

    def _where_agents_are(self) -> Floats:
        """Positions without nudges, as well as the structure knows them."""
        return self.arrays.target[GHOSTS:] - self.nudge * nudges(len(self.present))

    def _give_classes(self) -> None:
        """Set the ends of the speed classes, and sort agents into them, by how fast they have been of late.

        Only down, which is always allowed; those too fast for their class go up when a step begins.
        """
        m = self.arrays
        recent = m.recent[GHOSTS:]
        moved = recent[recent > self.nudge]
        if len(moved):
            self._class_bound[:-1] = _CLASS_ENDS * np.quantile(moved, _USUAL)
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
        if position.ndim != 2 or position.shape[1] != 3 or len(position) != len(rows):
            raise ModelError(f"positions must be an array [{len(rows)}, 3], one row per agent, not {position.shape}")
        row = int(first_unplaceable(position, rows, _FARTHEST))
        if row >= 0:
            raise ModelError(f"agent {row} cannot be at {position[row]}: positions must be numbers up to {_FARTHEST} m")
