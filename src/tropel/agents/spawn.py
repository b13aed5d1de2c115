"""Placing agents without overlap: random darts first, and a hexagonal packing when darts no longer find room.

Random darts look natural but jam when about half of the area is covered. Beyond that, agents get random sites of a
hexagonal lattice. If even those are too few, the error tells how many would fit.

The file begins with how many agents a group has, and whether there is room and memory for this many, which is checked
before any arrays of that size are made. Then come darts, lattice sites, and the check of positions given by the user.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.compile import allocating_kernel
from tropel._kernels.philox import random_key, uniforms
from tropel.agents.distributions import Normal, Uniform
from tropel.agents.groups import Group, Source
from tropel.agents.room import Region, Room
from tropel.agents.state import AgentState
from tropel.errors import SpawnError
from tropel.foundation.memory import require_memory
from tropel.world import World
from tropel.world.obstacles import inside_discs
from tropel.world.periodic import nearest_images, shifts

#: How many copies of an agent's columns exist at a time: drawn, stored, steered, sorted by cell and recorded.
_COPIES = 5.0
_MANY_NEWCOMERS = 100_000
_MANY_WAITING = 10_000


def size_of(group: Group, world: World, state: AgentState, *, body: float | None) -> int:
    """The number of agents that a group's `count` or `density` means; raises if there is no room or no memory.

    `body` is the radius that their model gives to all of them, whatever was declared [m]; None if it does not.
    """
    count = int(group.count or 0)
    if group.density is not None:
        count = Region(world, group.region, group.name).count_for(group.density)
    least = _least(group.parameters.get("radius", group.radius))
    # For fewer agents, the search for places finds out exactly how many fit.
    if count > _MANY_NEWCOMERS and least > 0.0 and body is None:
        Region(world, group.region, group.name).check_count(count, least, group.name)
    require_memory_for(count, state, group.name)
    return count


def most_at_once(waiting: int, source: Source, world: World, *, body: float | None) -> int:
    """How many of the agents waiting at a source to try to place in one step: at most what its region can hold.

    This is only checked if many wait: trying all of a million in every step, for a region that holds ten, never ends.
    """
    if waiting <= _MANY_WAITING:
        return waiting
    least = _least(source.parameters.get("radius", source.radius)) if body is None else body
    fit = Region(world, source.region, source.group).most(least) if least > 0.0 else 0.0
    return int(min(waiting, max(fit, _MANY_WAITING)))


def require_memory_for(count: int, state: AgentState, who: str) -> None:
    """Raise if this many additional agents would not fit into the memory."""
    columns = [column.filled(1, state.dim).nbytes for column in state.declared.values()]
    require_memory(
        _COPIES * sum(columns) * min(float(count), 1e300),
        f"group '{who}': {count:,} agents",
        "use fewer agents",
        error=SpawnError,
    )


def _least(radius: Any) -> float:
    """A lower bound for radii drawn from this [m]; 0 if nothing is known."""
    if isinstance(radius, Normal | Uniform):
        return max(radius.low or 0.0, 0.0)
    if isinstance(radius, Real):
        return max(float(radius), 0.0)
    return max(float(radius.min(initial=np.inf)), 0.0) if isinstance(radius, np.ndarray) else 0.0


#: Room left between bodies, so that touching neighbours do not count as overlapping after rounding [m].
GAP = 1e-6

#: From this many agents on, ids follow the places, cell by cell of this size [m].
_MANY, _PLACE = 2_000, 4.0

_DARTS_PER_AGENT = 60
#: Darts never cover more than this share of the room grown by one radius; in 2D they jam at 0.547.
_JAMMED = 0.75
_BATCH = 1 << 16
#: The number of sites that are considered, and some more for each agent.
_SITES = 1 << 22
_CELLS_PER_AGENT = 8


@allocating_kernel
def _is_free(place, own_radius, radius, taken, taken_radius, origin, cell, shape, heads, following, placed, index):
    """Whether a body overlaps no other; writes its cell into `index`."""
    dim = taken.shape[1]
    fixed = taken.shape[0]
    for axis in range(dim):
        c = math.floor((place[axis] - origin[axis]) / cell)
        index[axis] = np.int64(min(max(c, 0), shape[axis] - 1))
    for cz in range(max(index[2] - 1, 0), min(index[2] + 1, shape[2] - 1) + 1):
        for cy in range(max(index[1] - 1, 0), min(index[1] + 1, shape[1] - 1) + 1):
            for cx in range(max(index[0] - 1, 0), min(index[0] + 1, shape[0] - 1) + 1):
                other = heads[(cz * shape[1] + cy) * shape[0] + cx]
                while other >= 0:
                    away2 = 0.0
                    for axis in range(dim):
                        there = taken[other, axis] if other < fixed else placed[other - fixed, axis]
                        away2 += (place[axis] - there) ** 2
                    other_radius = taken_radius[other] if other < fixed else radius[other - fixed]
                    if away2 < (own_radius + other_radius) ** 2:
                        return False
                    other = following[other]
    return True


@allocating_kernel
def _accept(candidates, radius, begin, taken, taken_radius, origin, cell, shape, heads, following, low, high, shifts,
            placed):  # fmt: skip
    """Throw candidates one after another for agents `begin…`; returns how many agents are placed in total.

    In periodic space a body has images by `shifts`; those that reach into the world low–high must be free too.
    """
    dim = candidates.shape[1]
    agent = begin
    fixed = taken.shape[0]
    index = np.zeros(3, dtype=np.int64)
    image = np.zeros(dim)
    for k in range(candidates.shape[0]):
        if agent == placed.shape[0]:
            break
        free = True
        # The body itself comes last, so that `index` is its cell.
        for s in range(shifts.shape[0] - 1, -1, -1):
            reaches = True
            for axis in range(dim):
                image[axis] = candidates[k, axis] + shifts[s, axis]
                reaches = reaches and (s == 0 or (low[axis] - cell <= image[axis] <= high[axis] + cell))
            if reaches and free:
                free = _is_free(image, radius[agent], radius, taken, taken_radius, origin, cell, shape, heads,
                                following, placed, index)  # fmt: skip
        if free:
            for axis in range(dim):
                placed[agent, axis] = candidates[k, axis]
            cell_number = (index[2] * shape[1] + index[1]) * shape[0] + index[0]
            following[fixed + agent] = heads[cell_number]
            heads[cell_number] = fixed + agent
            agent += 1
    return agent


def spawn_positions(
    world: World,
    *,
    count: int,
    radius: NDArray[np.float64],
    region: Any,
    seed: int,
    who: str,
    taken: NDArray[np.float64],
    taken_radius: NDArray[np.float64],
    first_draw: int = 0,
    partial: bool = False,
) -> NDArray[np.float64]:
    """Positions for `count` agents in a region, clear of walls, closed doors, obstacles and other agents.

    With `partial` (sources), it returns those that find room by darts instead of raising.
    """
    if count == 0:
        return np.empty((0, world.dim))
    if not (np.isfinite(radius).all() and (radius > 0.0).all()):
        wrong = radius[np.argmin(np.isfinite(radius) & (radius > 0.0))]
        raise SpawnError(f"group '{who}': the radius of a body must be a positive length, not {wrong:g} m")
    grown = radius + GAP / 2.0
    largest = float(grown.max())
    room = Room(world, region, who, largest)
    placed = np.empty((count, world.dim))
    in_vain = room.empty or (not partial and _too_many_for_darts(count, radius, room))
    done = 0 if in_vain else _throw_darts(room, placed, grown, taken, taken_radius, seed, who, first_draw)
    world.wrap(placed[:done])
    if partial or done == count:
        return by_place(placed) if done == count and (radius == radius[0]).all() else placed[:done]
    sites = _hexagonal_sites(room, largest, taken, taken_radius, most=_SITES + 16 * count)
    room.check_count(count, largest, who, fit=max(done, len(sites)))
    order = np.argsort(uniforms(random_key(seed, f"{who}/sites"), np.arange(len(sites)))[:, 0], kind="stable")
    return by_place(sites[order[:count]])


def _too_many_for_darts(count: int, radius: NDArray[np.float64], room: Room) -> bool:
    """Whether darts, millions of them, would be thrown in vain: equal bodies jam long before a room is full."""
    alike = bool((radius == radius[0]).all())
    most = room.most(float(radius.min()))
    return count > most or (alike and count > _MANY and count > _JAMMED * most)


def by_place(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Many points in an order in which neighbours follow each other; a few points stay as they are.

    Agents are stored in the order of their ids, and steps of large crowds take one and a half times as long if
    neighbours are far apart in memory.
    """
    if len(points) < _MANY:
        return points
    # Along the Morton curve: the bits of the cell numbers of all axes interleaved.
    cells = ((points - points.min(axis=0)) / _PLACE).astype(np.int64)
    code = np.zeros(len(points), dtype=np.int64)
    for bit in range(20):
        for axis in range(points.shape[1]):
            code |= ((cells[:, axis] >> bit) & 1) << (bit * points.shape[1] + axis)
    return points[np.argsort(code, kind="stable")]


def _throw_darts(
    room: Room,
    placed: NDArray[np.float64],
    radius: NDArray[np.float64],
    taken: NDArray[np.float64],
    taken_radius: NDArray[np.float64],
    seed: int,
    who: str,
    first_draw: int,
) -> int:
    reach = (float(radius.max()) + taken_radius)[:, None]
    # Across the seam any agent may be near.
    near = ((taken >= room.low - reach) & (taken <= room.high + reach) | (room.period > 0.0)).all(axis=1)
    taken, taken_radius = np.ascontiguousarray(taken[near]), np.ascontiguousarray(taken_radius[near])
    following = np.full(len(taken) + len(placed), -1, dtype=np.int64)
    cell = 2.0 * max(float(radius.max()), float(taken_radius.max(initial=0.0)))
    extent = room.high - room.low
    # Larger cells than needed are also correct, and in a large empty room much faster than many empty cells.
    while np.prod(np.ceil(extent / cell) + 2) > min(max(_CELLS_PER_AGENT * len(following), 1 << 12), 1 << 24):
        cell *= 2.0
    shape = np.ones(3, dtype=np.int64)
    shape[: room.dim] = np.ceil(extent / cell).astype(np.int64) + 2
    origin = room.low - cell
    heads = np.full(int(shape.prod()), -1, dtype=np.int64)
    index = np.clip(((taken - origin) // cell).astype(np.int64), 0, shape[: room.dim] - 1)
    strides = np.array([1, shape[0], shape[0] * shape[1]])[: room.dim]
    _chain(index @ strides, heads, following)
    key = random_key(seed, f"{who}/darts")
    moves = shifts(room.period)
    thrown, done = 0, 0
    most = _DARTS_PER_AGENT * len(placed) + 1000
    while done < len(placed) and thrown < most:
        batch = min(_BATCH, max(64, 4 * (len(placed) - done)))
        darts = np.arange(thrown, thrown + batch)
        unit = uniforms(key, darts, step=first_draw)
        if room.dim == 3:
            unit = np.hstack([unit, uniforms(key, darts, step=first_draw, draw=1)[:, :1]])
        candidates = room.keep(room.low + unit * extent)
        done = _accept(candidates, radius, done, taken, taken_radius, origin, cell, shape, heads, following,
                       *room.world.bounds, moves, placed)  # fmt: skip
        thrown += batch
    return done


def _chain(cells: NDArray[np.int64], heads: NDArray[np.int64], following: NDArray[np.int64]) -> None:
    """Link the rows of each cell into a list: `heads` has its last row, `following` the next one after each row."""
    order = np.argsort(cells, kind="stable")
    before, after = order[:-1], order[1:]
    same = cells[before] == cells[after]
    following[after[same]] = before[same]
    heads[cells] = np.arange(len(cells))


def _hexagonal_sites(
    room: Room, radius: float, taken: NDArray[np.float64], taken_radius: NDArray[np.float64], *, most: int
) -> NDArray[np.float64]:
    """Sites of a hexagonal (3D: face-centred cubic) lattice that are free for bodies of the radius.

    Bodies so small that there would be more than `most` sites are placed further apart.
    """
    if room.empty:
        return np.empty((0, room.dim))
    radius = max(radius, 0.5 * (float(np.prod(room.high - room.low)) / most) ** (1.0 / room.dim))
    step = 2.0 * radius
    rise = step * math.sqrt(3.0) / 2.0
    ranges: Sequence[NDArray[np.float64]]
    if room.dim == 2:
        ys = np.arange(room.low[1], room.high[1] + 1e-12, rise)
        xs = np.arange(room.low[0], room.high[0] + step, step)
        y, x = np.meshgrid(ys, xs, indexing="ij")
        x = x + (np.arange(len(ys)) % 2 * radius)[:, None]
        points = np.column_stack([x.ravel(), y.ravel()])
    else:
        half = step / math.sqrt(2.0)
        ranges = [np.arange(room.low[k], room.high[k] + 1e-12, half) for k in range(3)]
        i, j, k = np.meshgrid(*[np.arange(len(r)) for r in ranges], indexing="ij")
        even = ((i + j + k) % 2 == 0).ravel()
        points = np.column_stack([ranges[0][i].ravel(), ranges[1][j].ravel(), ranges[2][k].ravel()])[even]
    # The first and the last in a row must not touch across the seam.
    last = np.where(room.period > 0.0, np.minimum(room.high, room.low + room.period - step), room.high)
    points = room.keep(points[(points <= last).all(axis=1)])
    return points[~inside_discs(points, taken, taken_radius + radius, room.world)]


def check_positions(world: World, positions: Any, *, who: str) -> NDArray[np.float64]:
    """Positions given by the user, checked: right shape, finite, inside the area, not on a wall."""
    try:
        points = np.array(positions, dtype=np.float64, ndmin=2)
    except (TypeError, ValueError) as error:
        raise SpawnError(f"group '{who}': positions must be an array of shape (N, {world.dim})") from error
    if points.size == 0:
        return np.empty((0, world.dim))
    if points.ndim != 2 or points.shape[1] != world.dim:
        raise SpawnError(f"group '{who}': positions must have shape (N, {world.dim}), not {points.shape}")
    bad: NDArray[np.bool_] = np.asarray(~np.isfinite(points).all(axis=1))
    why = "is not finite"
    if not bad.any():
        if world.walkable is not None:
            # Strictly inside: an agent exactly on a wall belongs to neither side of it.
            inside = shapely.contains_xy(world.walkable, points[:, 0], points[:, 1])
            bad = ~np.asarray(inside, dtype=bool)
            why = "is outside the walkable area"
        elif world.dim == 3 or world.is_periodic:
            outside = (points < world.bounds[0]) | (points > world.bounds[1])
            bad = np.any(outside & ~world.unbounded, axis=1)
            why = "is outside the box"
    if not bad.any() and world.dim == 2 and len(world.segments):
        lines = shapely.linestrings(world.segments.reshape(-1, 2, 2))
        on_wall, _ = shapely.STRtree(lines).query(shapely.points(points), predicate="intersects")
        bad[on_wall] = True
        why = "is exactly on a wall or door"
    if not bad.any():
        obstacles = world.obstacles
        bad = inside_discs(points, obstacles.position, obstacles.radius, world)
        if bad.any():
            away = nearest_images(points[np.argmax(bad)] - obstacles.position, world.period)
            nearest = np.argmin(np.linalg.norm(away, axis=1) - obstacles.radius)
            why = f"is inside the obstacle '{obstacles.names[nearest]}'"
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        more = int(bad.sum()) - 1
        tail = f" (and {more} more)" if more else ""
        raise SpawnError(
            f"group '{who}': position {row} at {points[row].tolist()} {why}{tail}; move it to a free place"
        )
    world.wrap(points)
    return points
