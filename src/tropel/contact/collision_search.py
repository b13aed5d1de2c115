"""Find the bodies that collide during a step, in continuous time.

Between two steps all agents and obstacles move in straight lines. So the offset of two bodies is d + t m for t from 0
to 1, and everything has a closed form: the first contact is a root of |d + t m|² = (ri + rj)², and the deepest overlap
is where the offset is shortest. Bodies that pass through each other within one step are found just like those that meet
at its end.

Two bodies can only meet if they are no further apart than the sum of their extents (radius plus length of the step).
The cells of the step, which have the positions at its start, are searched for such pairs. Each agent searches only
forward in the order of the cells, so every pair is tested once. The few agents with an extent far above the average
search all around instead, and the others skip them; otherwise a single agent that jumps would make all others search
as far.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import prange
from numpy.typing import NDArray

from tropel._kernels.cells import (
    CellList,
    axis_cell,
    cell_run,
    cell_window,
    count_runs,
    crosses_seam,
    height,
    nearest_image,
    wrapping_run,
    wrapping_window,
)
from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel.agents.state import AgentState
from tropel.world import World
from tropel.world.periodic import images_of_discs

#: Overlaps up to this depth [m] are touching, not a collision: solid bodies side by side differ by rounding errors.
TOLERANCE = 1e-6

_PER_CHUNK = 256
_FIRST_ROOM = 16


class DiscMoves(NamedTuple):
    """Round obstacles during a step; in 2D the third coordinates are zero."""

    position: NDArray[np.float64]  #: (M, 3)
    move: NDArray[np.float64]  #: (M, 3)
    radius: NDArray[np.float64]  #: (M,)


@parallel_kernel
def _measure_moves(cells, after, move, extent, widest, total):
    """Moves and extents in the order of the cells; the largest and the sum of the extents by chunk."""
    count = extent.shape[0]
    spatial = after.shape[1] == 3
    for chunk in prange(widest.shape[0]):
        most = 0.0
        chunk_sum = 0.0
        for place in range(chunk * _PER_CHUNK, min(count, (chunk + 1) * _PER_CHUNK)):
            k = np.uint64(place)
            row = np.uint64(cells.order[k])
            mx = nearest_image(after[row, 0] - cells.position[0, k], cells.period[0])
            my = nearest_image(after[row, 1] - cells.position[1, k], cells.period[1])
            mz = nearest_image(after[row, 2] - cells.position[2, k], cells.period[2]) if spatial else 0.0
            move[0, k] = mx
            move[1, k] = my
            move[2, k] = mz
            e = cells.radius[k] + math.sqrt(mx * mx + my * my + mz * mz)
            extent[k] = e
            most = max(most, e)
            chunk_sum += e
        widest[chunk] = most
        total[chunk] = chunk_sum


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


@kernel
def _agents_meet(position, radius, move, k, j, x, y, z, pairs, figures, found):
    """`_meets` for the agents at the places k and j of the cell list; j sees k at (x, y, z)."""
    spatial = position.shape[0] == 3
    return _meets(
        position[0, j] - x,
        position[1, j] - y,
        position[2, j] - z if spatial else 0.0,
        move[0, j] - move[0, k],
        move[1, j] - move[1, k],
        move[2, j] - move[2, k],
        radius[k] + radius[j],
        pairs,
        figures,
        found,
        np.int64(k),
        np.int64(j),
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
def _look_all_around(cells, move, extent, discs, k, ordinary, largest, pairs, figures, found):
    """Collisions of a large agent with all obstacles and all agents, except the large agents before it."""
    position, radius = cells.position, cells.radius
    x, y = position[0, k], position[1, k]
    z = position[2, k] if position.shape[0] == 3 else 0.0
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, height(cells, k), extent[k] + largest)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for j in range(first, last):
                if j > k or (j < k and extent[j] <= ordinary):
                    found = _agents_meet(position, radius, move, k, j, x, y, z, pairs, figures, found)
    for m in range(discs.radius.shape[0]):
        found = _meets_obstacle(position, radius, move, k, discs, m, pairs, figures, found)
    return found


@inlined_kernel
def _looks_over_seam(cells, k, reach):
    window = wrapping_window(cells, cells.position[0, k], cells.position[1, k], height(cells, k), reach)
    return crosses_seam(cells, window)


@kernel
def _look_over_seam(cells, move, extent, k, largest, pairs, figures, found):
    """Collisions of an agent with those after it in the order of the cells, on whichever side of a seam they are.

    A step and a radius together are less than a quarter of the period, so no agent is met on two sides.
    """
    position, radius = cells.position, cells.radius
    spatial = position.shape[0] == 3
    x, y = position[0, k], position[1, k]
    z = position[2, k] if spatial else 0.0
    window = wrapping_window(cells, x, y, height(cells, k), extent[k] + largest)
    for number in range(count_runs(cells, window)):
        first, last, shift_x, shift_y, shift_z = wrapping_run(cells, window, number)
        own_x, own_y, own_z = x + shift_x, y + shift_y, z + shift_z
        for j in range(max(first, k + np.uint64(1)), last):
            dx, dy = position[0, j] - own_x, position[1, j] - own_y
            dz = position[2, j] - own_z if spatial else 0.0
            reach = extent[k] + extent[j]
            if dx * dx + dy * dy + dz * dz <= reach * reach:
                found = _agents_meet(position, radius, move, k, j, own_x, own_y, own_z, pairs, figures, found)
    return found


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


@kernel
def _search_chunk(cells, move, extent, discs, ordinary, largest, chunk, pairs, figures):
    """Collisions of one chunk of agents and, after the last agent, of obstacles; returns how many were found."""
    agents = extent.shape[0]
    found = np.int64(0)
    # When almost nothing is found, calling a function with all these arrays takes longer than the search itself. So the
    # search that almost every agent makes is written out here, and functions handle the rare cases.
    position, radius = cells.position, cells.radius
    spatial = position.shape[0] == 3
    widest = min(ordinary, largest)
    periodic = cells.period[0] > 0.0 or cells.period[1] > 0.0 or cells.period[2] > 0.0
    for place in range(chunk * _PER_CHUNK, min(agents, (chunk + 1) * _PER_CHUNK)):
        k = np.uint64(place)
        own = extent[k]
        if periodic and _looks_over_seam(cells, k, own + widest):
            found = _look_over_seam(cells, move, extent, k, largest, pairs, figures, found)
            continue
        if own > ordinary:
            found = _look_all_around(cells, move, extent, discs, k, ordinary, largest, pairs, figures, found)
            continue
        x, y = position[0, k], position[1, k]
        z = position[2, k] if spatial else 0.0
        x0, x1, y0, y1, _, z1 = cell_window(cells, x, y, height(cells, k), own + widest)
        own_y = axis_cell(y, cells.origin[1], cells.inverse_cell, cells.shape[1])
        own_z = axis_cell(z, cells.origin[2], cells.inverse_cell, cells.shape[2]) if spatial else z1
        for cz in range(own_z, z1 + 1):
            for cy in range(y0 if cz > own_z else own_y, y1 + 1):
                first, last = cell_run(cells, x0, x1, cy, cz)
                for j in range(max(first, k + np.uint64(1)), last):
                    dx, dy = position[0, j] - x, position[1, j] - y
                    dz = position[2, j] - z if spatial else 0.0
                    reach = own + extent[j]
                    if dx * dx + dy * dy + dz * dz <= reach * reach and extent[j] <= ordinary:
                        found = _agents_meet(position, radius, move, k, j, x, y, z, pairs, figures, found)
    for place in range(max(agents, chunk * _PER_CHUNK), min(agents + discs.radius.shape[0], (chunk + 1) * _PER_CHUNK)):
        found = _look_from_obstacle(
            cells, move, extent, discs, place - agents, ordinary, largest, pairs, figures, found
        )
    return found


@parallel_kernel
def _find_collisions(cells, move, extent, discs, ordinary, largest, pairs, figures, found):
    """All colliding pairs by chunk, as places in the cell list, or -1 - m for obstacle m; counts beyond the room."""
    for chunk in prange(found.shape[0]):
        place = np.uint64(chunk)  # its type from the start: a call with another one is another kernel
        found[chunk] = _search_chunk(cells, move, extent, discs, ordinary, largest, place, pairs[chunk], figures[chunk])


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
    """The buffers that the search needs, kept from step to step."""

    def __init__(self) -> None:
        self._move = np.empty(0)
        self._extent = np.empty(0)
        self._make_room(0, _FIRST_ROOM)

    def _make_room(self, chunks: int, room: int) -> None:
        self._pairs = np.empty((chunks, room, 2), dtype=np.int64)
        self._figures = np.empty((chunks, room, 5))

    def find(self, state: AgentState, cells: CellList, world: World, dt: float) -> Found:
        """The collisions between the positions in `cells` and those in `state`.

        Obstacles are taken from the world as they are at the start of the step.
        """
        count = len(state)
        if count > len(self._extent):
            room = count + count // 4
            self._move, self._extent = np.empty(3 * room), np.empty(room)
        extent = self._extent[:count]
        move = self._move[: 3 * count].reshape(3, count)
        chunks = -(-count // _PER_CHUNK)
        widest, total = np.zeros(chunks), np.zeros(chunks)
        _measure_moves(cells, state.position, move, extent, widest, total)
        largest = float(widest.max(initial=0.0))
        ordinary = max(1.0 / cells.inverse_cell, 2.0 * float(total.sum()) / max(count, 1))
        if world.is_periodic:
            ordinary = math.inf  # no agent goes far in a step there, see `integrate`
        discs, obstacle = _disc_moves(world, dt, largest)
        chunks = -(-(count + len(discs.radius)) // _PER_CHUNK)
        if chunks > len(self._pairs):
            self._make_room(chunks + chunks // 4, self._pairs.shape[1])
        found = np.zeros(chunks, dtype=np.int64)
        while True:
            pairs, figures = self._pairs[:chunks], self._figures[:chunks]
            _find_collisions(cells, move, extent, discs, ordinary, largest, pairs, figures, found)
            most = int(found.max(initial=0))
            if most <= pairs.shape[1]:
                break
            self._make_room(len(self._pairs), 1 << most.bit_length())
        filled = np.arange(most) < found[:, None]
        place, other = pairs[:, :most][filled].T
        with_disc = other < 0
        other[with_disc] = -1 - obstacle[-1 - other[with_disc]]
        first, depth, when, at_start, at_end = figures[:, :most][filled].T
        return Found(place=place, other=other, first=first, depth=depth, when=when, at_start=at_start, at_end=at_end)


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
