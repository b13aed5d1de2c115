"""Shortest paths on a raster from every cell to a goal, in one best-first pass, and their repair after a change.

Cells wait in buckets 2 ** 21 units wide, less than the length of any move. So a cell taken from a bucket is final:
anything that could shorten its path lies in an earlier bucket. This is Dijkstra's algorithm without a heap; a heap took
4 times as long, and buckets as chains of entries 30 times as long. Cells may wait more than once; entries are skipped
if their cell has got a shorter length in the meantime.

A repair has two passes (after Ramalingam & Reps, "An incremental algorithm for a generalization of the shortest-path
problem", 1996). First, from near to far, cells lose their path if they have lost the neighbour that it led over. Then
these cells, and cells with new neighbours, get paths again, best first. Lengths are integers and the shortest is
unique, so the result has the bits of a fresh solve.
"""

from __future__ import annotations

import numba
import numpy as np

from tropel._kernels.compile import allocating_kernel, inlined_kernel, kernel, parallel_kernel
from tropel._kernels.grid_moves import FAR, MOVE_X, MOVE_Y, move_cost

_BITS = 21
_ROOM = 1 << 12


@kernel
def _bucket_count(dearest):
    """How many buckets are in use at a time: a power of two."""
    count = 4
    while count < (dearest >> _BITS) + 2:
        count *= 2
    return count


@allocating_kernel
def _with_room(cells, count, more):
    """The same buckets, with room for this many more cells in each."""
    buckets, room = cells.shape
    fullest = count.max()
    if fullest + more <= room:
        return cells
    wider = np.empty((buckets, 2 * (fullest + more)), dtype=np.int32)
    wider[:, :fullest] = cells[:, :fullest]
    return wider


@allocating_kernel
def _longer(listed, used, more):
    """The same list, with room for this many more entries."""
    if used + more <= listed.size:
        return listed
    longer = np.empty(2 * (used + more), dtype=np.int64)
    longer[:used] = listed[:used]
    return longer


# Work on one bucket is in kernels that allocate nothing: reference counting would make it 20 times slower.


@inlined_kernel
def _spread_bucket(bucket, ground, distance, cells, count, noted, notes):
    """Shorten the paths of the neighbours of a bucket's cells; returns how many, each of which enters a bucket."""
    buckets = count.size
    slot = bucket & (buckets - 1)
    entered = 0
    for k in range(count[slot]):
        c = np.int64(cells[slot, k])
        length = distance[c]
        if length >> _BITS != bucket:
            continue
        moves = ground.moves[c]
        for m in range(8):
            if moves >> m & 1:
                there = c + MOVE_Y[m] * ground.across + MOVE_X[m]
                longer = length + move_cost(c, there, m, ground.diagonal, ground.terrain)
                if longer < distance[there]:
                    distance[there] = longer
                    other = (longer >> _BITS) & (buckets - 1)
                    cells[other, count[other]] = there
                    count[other] += 1
                    if noted.size:
                        noted[notes + entered] = there
                    entered += 1
    count[slot] = 0
    return entered


@allocating_kernel
def _spread(ground, seeds, distance, noting, most):
    """Shorten the paths of all cells that have a shorter one over the seeds. Lengths of seeds are set and ascending.

    With `noting`, returns a list of all cells whose path has become shorter (some more than once) and its length; -1 as
    soon as it is longer than `most`, with the work unfinished.
    """
    buckets = _bucket_count(ground.dearest)
    cells = np.empty((buckets, _ROOM), dtype=np.int32)
    count = np.zeros(buckets, dtype=np.int64)
    noted = np.empty(_ROOM if noting else 0, dtype=np.int64)
    notes = waiting = next_seed = 0
    bucket = np.int64(0)
    while waiting > 0 or next_seed < seeds.size:
        if waiting == 0:
            bucket = max(bucket, distance[seeds[next_seed]] >> _BITS)
        slot = bucket & (buckets - 1)
        while next_seed < seeds.size and distance[seeds[next_seed]] >> _BITS <= bucket:
            cells = _with_room(cells, count, 1)
            cells[slot, count[slot]] = seeds[next_seed]
            count[slot] += 1
            waiting += 1
            next_seed += 1
        here = count[slot]
        cells = _with_room(cells, count, 8 * here)
        if noting:
            noted = _longer(noted, notes, 8 * here)
        entered = _spread_bucket(bucket, ground, distance, cells, count, noted, notes)
        waiting += entered - here
        bucket += 1
        if noting:
            notes += entered
            if notes > most:
                return noted, np.int64(-1)
    return noted, np.int64(notes)


@allocating_kernel
def solve(ground, goal, distance):
    """Write the length of the shortest path to the cells `goal`, FAR where there is none."""
    distance[:] = FAR
    for k in range(goal.size):
        distance[goal[k]] = 0
    _spread(ground, goal, distance, False, 0)


@parallel_kernel
def solve_all(ground, goals, start, distance):
    """The same for several goals: row g for the cells goals[start[g] : start[g + 1]]."""
    for g in numba.prange(distance.shape[0]):
        solve(ground, goals[start[g] : start[g + 1]], distance[g])


@kernel
def _has_support(c, ground, distance):
    """Whether the path of a cell still leads over one of its neighbours."""
    for m in range(8):
        if ground.moves[c] >> m & 1:
            there = c + MOVE_Y[m] * ground.across + MOVE_X[m]
            if distance[there] + move_cost(c, there, m, ground.diagonal, ground.terrain) == distance[c]:
                return True
    return False


@kernel
def _cut_off_bucket(bucket, ground, before, is_goal, distance, cells, count, lost, losses):
    """Remove the path of a bucket's cells that have lost it; cells whose path led over them enter a bucket.

    Returns how many lost their path, and how many entered.
    """
    buckets = count.size
    slot = bucket & (buckets - 1)
    across, down = ground.across, distance.size // ground.across
    new = entered = 0
    for k in range(count[slot]):
        c = np.int64(cells[slot, k])
        length = distance[c]
        if length == FAR or (is_goal[c] and length == 0) or _has_support(c, ground, distance):
            continue
        distance[c] = FAR
        lost[losses + new] = c
        new += 1
        iy, ix = c // across, c % across
        for m in range(8):
            jy, jx = iy + MOVE_Y[m], ix + MOVE_X[m]
            if jy < 0 or jx < 0 or jy >= down or jx >= across:
                continue
            there = jy * across + jx
            was = length + move_cost(c, there, m, ground.diagonal, before)
            now = length + move_cost(c, there, m, ground.diagonal, ground.terrain)
            if distance[there] == was or distance[there] == now:
                other = (distance[there] >> _BITS) & (buckets - 1)
                cells[other, count[other]] = there
                count[other] += 1
                entered += 1
    count[slot] = 0
    return new, entered


@allocating_kernel
def _cut_off(ground, before, suspects, is_goal, distance, most):
    """Remove the path of all cells whose path has lost its support; returns them as a list, and its length.

    `suspects` are sorted by length, `before` is the terrain that lengths were computed with. Returns -1 as soon as
    there are more than `most`.
    """
    buckets = _bucket_count(ground.dearest)
    cells = np.empty((buckets, _ROOM), dtype=np.int32)
    count = np.zeros(buckets, dtype=np.int64)
    lost = np.empty(_ROOM, dtype=np.int64)
    losses = waiting = next_suspect = 0
    bucket = np.int64(0)
    keys = distance[suspects] >> _BITS
    while waiting > 0 or next_suspect < suspects.size:
        if waiting == 0:
            bucket = max(bucket, keys[next_suspect])
        slot = bucket & (buckets - 1)
        while next_suspect < suspects.size and keys[next_suspect] <= bucket:
            cells = _with_room(cells, count, 1)
            cells[slot, count[slot]] = suspects[next_suspect]
            count[slot] += 1
            waiting += 1
            next_suspect += 1
        here = count[slot]
        cells = _with_room(cells, count, 8 * here)
        lost = _longer(lost, losses, here)
        new, entered = _cut_off_bucket(bucket, ground, before, is_goal, distance, cells, count, lost, losses)
        losses += new
        waiting += entered - here
        bucket += 1
        if losses > most:
            return lost, np.int64(-1)
    return lost, np.int64(losses)


@allocating_kernel
def _ascending(cells, distance):
    return cells[np.argsort(distance[cells], kind="mergesort")]


@kernel
def _without_support(ground, near, is_goal, distance, found):
    """List the cells with a path that no longer leads over any neighbour; returns their number."""
    count = 0
    for k in range(near.size):
        c = near[k]
        if distance[c] == FAR or (is_goal[c] and distance[c] == 0) or _has_support(c, ground, distance):
            continue
        found[count] = c
        count += 1
    return count


@kernel
def _joined(ground, candidates, is_goal, distance, found):
    """Give cells the shortest path over a neighbour; lists those whose path became shorter, returns their number."""
    count = 0
    for k in range(candidates.size):
        c = candidates[k]
        best = np.int64(0) if is_goal[c] else np.int64(FAR)
        for m in range(8):
            if ground.moves[c] >> m & 1:
                there = c + MOVE_Y[m] * ground.across + MOVE_X[m]
                best = min(best, distance[there] + move_cost(c, there, m, ground.diagonal, ground.terrain))
        if best < distance[c]:
            distance[c] = best
            found[count] = c
            count += 1
    return count


@allocating_kernel
def repair(ground, before, near, is_goal, distance, most):
    """Update lengths after a change of moves, terrain or goals.

    `ground` is the new one and `before` the terrain of the old one. The longest move of the old one must not be longer
    than that of `ground`. `near` are all cells with changed moves, costs or goals. Returns a list of the cells whose
    lengths may have changed, and its length; -1 if it is longer than `most`: then lengths are invalid.
    """
    # Cells that have support now may lose it later together with a neighbour, and are examined then.
    doubtful = np.empty(near.size, dtype=np.int64)
    count = _without_support(ground, near, is_goal, distance, doubtful)
    suspects = _ascending(doubtful[:count], distance)
    lost, losses = _cut_off(ground, before, suspects, is_goal, distance, most)
    if losses < 0:
        return lost, np.int64(-1)
    candidates = np.concatenate((lost[:losses], near))
    seeds = np.empty(candidates.size, dtype=np.int64)
    count = _joined(ground, candidates, is_goal, distance, seeds)
    noted, notes = _spread(ground, _ascending(seeds[:count], distance), distance, True, most)
    if notes < 0:
        return lost, np.int64(-1)
    changed = np.concatenate((lost[:losses], seeds[:count], noted[:notes]))
    return changed, np.int64(changed.size)
