"""Find the bodies that collide during a step, in continuous time.

Between two steps all agents and obstacles move in straight lines. So the offset of two bodies is d + t m for t from 0
to 1, and everything has a closed form: the first contact is a root of |d + t m|² = (ri + rj)², and the deepest overlap
is where the offset is shortest. Bodies that pass through each other within one step are found just like those that meet
at its end.

Two bodies can only meet if they are no further apart than the sum of their extents (radius plus length of the step).
Such pairs of agents come from the cells of the step, which have the positions at its start
(`broad_phase/pair_search.py`), or from an environment that knows them. Obstacles look into the cells around them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.cells import CellList, cell_run, cell_window
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.agents.state import AgentState
from tropel.broad_phase.pair_search import KnownPairs, Moves, PairSearch, before_by_row, measure_moves, places_of
from tropel.world import World
from tropel.world.periodic import images_of_discs

#: Overlaps up to this depth [m] are touching, not a collision: solid bodies side by side differ by rounding errors.
TOLERANCE = 1e-6

#: Room for collisions of an obstacle at first.
_FIRST_ROOM = 16


class DiscMoves(NamedTuple):
    """Round obstacles during a step; in 2D the third coordinates are zero."""

    position: NDArray[np.float64]  #: (M, 3)
    move: NDArray[np.float64]  #: (M, 3)
    radius: NDArray[np.float64]  #: (M,)


@kernel
def _meets(dx, dy, dz, mx, my, mz, contact, pairs, figures, found, first, second):
    """Test one pair, record it if it collides and there is room; returns the number of pairs found so far."""
    least = contact - TOLERANCE
    if not least > 0.0:
        return found
    start2 = dx * dx + dy * dy + dz * dz
    nearing = -(dx * mx + dy * my + dz * mz)
    length2 = mx * mx + my * my + mz * mz
    when = min(max(nearing / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    nearest2 = (dx + when * mx) ** 2 + (dy + when * my) ** 2 + (dz + when * mz) ** 2
    if nearest2 >= least * least:
        return found
    if found < figures.shape[0]:
        entry = 0.0
        outside = start2 - contact * contact
        if outside > 0.0:
            # The earlier root, in the form without cancellation.
            entry = outside / (nearing + math.sqrt(max(nearing * nearing - length2 * outside, 0.0)))
        end = math.sqrt((dx + mx) ** 2 + (dy + my) ** 2 + (dz + mz) ** 2)
        pairs[found, 0] = first
        pairs[found, 1] = second
        figures[found, 0] = min(entry, when)
        figures[found, 1] = contact - math.sqrt(nearest2)
        figures[found, 2] = when
        figures[found, 3] = contact - math.sqrt(start2)
        figures[found, 4] = contact - end
    return found + 1


@inlined_kernel
def _over_seam(away, own, other, period):
    """The offset from the nearest image of one agent to another, where the plain offset is `away`."""
    if period == 0.0:
        return away
    return other - (own + period * math.floor(away / period + 0.5))


@kernel
def _test_pair(cells, move, k, j, pairs, figures):
    """Write what happened between the agents at the places k and j to the first rows; whether they collide."""
    position, radius, period = cells.position, cells.radius, cells.period
    spatial = position.shape[0] == 3
    return (
        _meets(
            _over_seam(position[0, j] - position[0, k], position[0, k], position[0, j], period[0]),
            _over_seam(position[1, j] - position[1, k], position[1, k], position[1, j], period[1]),
            _over_seam(position[2, j] - position[2, k], position[2, k], position[2, j], period[2]) if spatial else 0.0,
            move[0, j] - move[0, k],
            move[1, j] - move[1, k],
            move[2, j] - move[2, k],
            radius[k] + radius[j],
            pairs,
            figures,
            0,
            np.int64(k),
            np.int64(j),
        )
        > 0
    )


@parallel_kernel
def _test_pairs(cells, move, candidates, pairs, figures, collide):
    """Whether each of the candidates collides, and if so what happened."""
    for number in prange(candidates.shape[0]):
        collide[number] = _test_pair(
            cells,
            move,
            np.uint64(candidates[number, 0]),
            np.uint64(candidates[number, 1]),
            pairs[number : number + 1],
            figures[number : number + 1],
        )


@kernel
def _meets_obstacle(position, radius, move, k, discs, m, pairs, figures, found):
    """`_meets` for the agent at place k and obstacle m."""
    spatial = position.shape[0] == 3
    return _meets(
        discs.position[m, 0] - position[0, k],
        discs.position[m, 1] - position[1, k],
        discs.position[m, 2] - position[2, k] if spatial else 0.0,
        discs.move[m, 0] - move[0, k],
        discs.move[m, 1] - move[1, k],
        discs.move[m, 2] - move[2, k],
        radius[k] + discs.radius[m],
        pairs,
        figures,
        found,
        np.int64(k),
        np.int64(-1 - m),
    )


@kernel
def _look_from_obstacle(cells, move, extent, discs, m, ordinary, largest, pairs, figures, found):
    """Collisions of obstacle m with all agents except the large ones, which search for themselves."""
    position, radius = cells.position, cells.radius
    step = math.sqrt(discs.move[m, 0] ** 2 + discs.move[m, 1] ** 2 + discs.move[m, 2] ** 2)
    x0, x1, y0, y1, z0, z1 = cell_window(
        cells,
        discs.position[m, 0],
        discs.position[m, 1],
        discs.position[m, 2],
        discs.radius[m] + step + min(ordinary, largest),
    )
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for k in range(first, last):
                if extent[k] <= ordinary:
                    found = _meets_obstacle(position, radius, move, k, discs, m, pairs, figures, found)
    return found


@parallel_kernel
def _find_obstacles(cells, move, extent, discs, ordinary, largest, far, pairs, figures, found):
    """All collisions of each obstacle, with the obstacle m as -1 - m; counts beyond the room.

    `far` lists the agents that go far; there are few of them, and they are tested with all obstacles.
    """
    for m in prange(found.shape[0]):
        count = _look_from_obstacle(cells, move, extent, discs, m, ordinary, largest, pairs[m], figures[m], 0)
        for number in range(far.size):
            count = _meets_obstacle(
                cells.position, cells.radius, move, np.uint64(far[number]), discs, m, pairs[m], figures[m], count
            )
        found[m] = count


@dataclass(frozen=True, kw_only=True)
class Found:
    """Pairs that collided during a step; times are shares of the step."""

    place: NDArray[np.int64]  #: of an agent, in the cell list
    other: NDArray[np.int64]  #: place of the other agent, or -1 - m for obstacle m
    first: NDArray[np.float64]  #: time of the first contact
    depth: NDArray[np.float64]  #: deepest overlap [m]
    when: NDArray[np.float64]  #: time of the deepest overlap
    at_start: NDArray[np.float64]  #: overlap at the start of the step [m], negative when apart
    at_end: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.place)


class CollisionSearch:
    """The memory that the search needs, kept from step to step."""

    def __init__(self) -> None:
        self._search = PairSearch(
            what="bodies that may collide",
            remedy="spread agents out, or build the simulation with watch_collisions=False",
        )
        self._room = _FIRST_ROOM

    def find(
        self, state: AgentState, cells: CellList, world: World, dt: float, known: KnownPairs | None = None
    ) -> Found:
        """The collisions between the positions in `cells` and those in `state`.

        Obstacles are taken from the world as they are at the start of the step. `known` may know the pairs whose
        extents reached each other then.
        """
        moves = measure_moves(cells, state.position, cells.radius)
        rows = None if known is None else known(before_by_row(cells), moves.extent_by_row(cells))
        candidates = self._search.find(cells, moves) if rows is None else places_of(rows, cells)
        pairs, figures = np.empty((len(candidates), 2), dtype=np.int64), np.empty((len(candidates), 5))
        collide = np.zeros(len(candidates), dtype=np.bool_)
        _test_pairs(cells, moves.move, candidates, pairs, figures, collide)
        pairs, figures = pairs[collide], figures[collide]
        if len(world.obstacles):
            with_discs = self._with_obstacles(cells, moves, world, dt)
            pairs, figures = np.concatenate([pairs, with_discs[0]]), np.concatenate([figures, with_discs[1]])
        place, other = pairs.T
        first, depth, when, at_start, at_end = figures.T
        return Found(place=place, other=other, first=first, depth=depth, when=when, at_start=at_start, at_end=at_end)

    def _with_obstacles(
        self, cells: CellList, moves: Moves, world: World, dt: float
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The pairs and the figures of all agents that collide with obstacles."""
        discs, obstacle = _disc_moves(world, dt, moves.largest)
        far = np.flatnonzero(moves.extent > moves.ordinary)
        found = np.zeros(len(discs.radius), dtype=np.int64)
        while True:
            pairs = np.empty((len(found), self._room, 2), dtype=np.int64)
            figures = np.empty((len(found), self._room, 5))
            _find_obstacles(
                cells, moves.move, moves.extent, discs, moves.ordinary, moves.largest, far, pairs, figures, found
            )
            most = int(found.max(initial=0))
            if most <= self._room:
                break
            self._room = 1 << most.bit_length()
        filled = np.arange(self._room) < found[:, None]
        pairs, figures = pairs[filled], figures[filled]
        pairs[:, 1] = -1 - obstacle[-1 - pairs[:, 1]]
        return pairs, figures


def _disc_moves(world: World, dt: float, extent: float) -> tuple[DiscMoves, NDArray[np.int64]]:
    """Obstacles and, in periodic space, their images within reach of such an extent [m]; and the obstacle of each."""
    obstacles = world.obstacles
    number, centre, step = np.arange(len(obstacles)), obstacles.position, obstacles.velocity * dt
    if world.is_periodic:
        reach = obstacles.radius + np.linalg.norm(step, axis=1) + extent
        number, centre = images_of_discs(centre, reach, world.bounds[0], world.bounds[1], world.period)
    position, move = np.zeros((len(number), 3)), np.zeros((len(number), 3))
    position[:, : obstacles.dim] = centre
    move[:, : obstacles.dim] = step[number]
    return DiscMoves(position, move, obstacles.radius[number]), number
