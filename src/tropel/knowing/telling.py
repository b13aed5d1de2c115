"""Telling each other: whoever is within earshot takes over what a friend knows better, one hop at a time.

All listen to what the others knew before the hop, so that word goes one hop further whatever the order of agents. The
newest observation wins; of hostile groups the one that counted most; then the speaker with the lowest id.
"""

from __future__ import annotations

import numba
import numpy as np

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.neighbours import count_runs, run_of, view_of
from tropel._kernels.walls import chord_blocked

_NOBODY = np.int64(-1)


@inlined_kernel
def _is_better(k, one, other, counted, state, when):
    """Whether holder `one` knows more of thing k than holder `other`: 1 for more, 0 for as much, -1 for less."""
    if when[one, k] != when[other, k]:
        return 1 if when[one, k] > when[other, k] else -1
    if counted[k] and state[one, k] != state[other, k]:
        return 1 if state[one, k] > state[other, k] else -1
    return 0


@parallel_kernel
def listen(rows, position, earshot, group, id, dead, holder, hears, through_walls, near, walls, counted, state, when,
           best):  # fmt: skip
    """Write the row of the friend that knows most of each thing, for each of the rows; -1 if nobody knows more."""
    spatial = position.shape[1] == 3
    for n in numba.prange(rows.size):
        i = np.int64(rows[n])
        h = holder[i]
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if spatial else 0.0
        reach2 = earshot[i] * earshot[i]
        for k in range(counted.size):
            best[n, k] = _NOBODY
        view = view_of(near, i, x, y, z, earshot[i])
        for run in range(count_runs(near, view)):
            first, last, shift_x, shift_y, shift_z = run_of(near, view, run)
            for m in range(first, last):
                j = np.int64(near.met[m])
                g = holder[j]
                if j == i or g < 0 or g == h or dead[j] or not hears[group[i], group[j]]:
                    continue
                dx, dy = near.met_position[0, m] - (x + shift_x), near.met_position[1, m] - (y + shift_y)
                dz = near.met_position[2, m] - (z + shift_z) if spatial else 0.0
                if dx * dx + dy * dy + dz * dz > reach2:
                    continue
                tested = False
                for k in range(counted.size):
                    known = best[n, k]
                    if known == _NOBODY:
                        takes = _is_better(k, g, h, counted, state, when) > 0
                    else:
                        than = _is_better(k, g, holder[known], counted, state, when)
                        takes = than > 0 or (than == 0 and id[j] < id[known])
                    if not takes:
                        continue
                    if not tested:
                        # Walls are looked for only when there is something to tell.
                        through = spatial or through_walls[group[i]]
                        px, py = near.met_position[0, m], near.met_position[1, m]
                        if not through and chord_blocked(x + shift_x, y + shift_y, px, py, walls):
                            break
                        tested = True
                    best[n, k] = j


@kernel
def take_over(rows, best, holder, id, counted, slot_of_thing, state, when, place, new_state, new_when, new_source,
              new_place):  # fmt: skip
    """Enter what the rows have heard; several rows may share a holder, which takes the best of it."""
    for n in range(rows.size):
        h = holder[rows[n]]
        for k in range(counted.size):
            j = best[n, k]
            if j == _NOBODY:
                continue
            g = holder[j]
            better = when[g, k] > new_when[h, k]
            if when[g, k] == new_when[h, k]:
                if counted[k] and state[g, k] != new_state[h, k]:
                    better = state[g, k] > new_state[h, k]
                else:
                    # Another member of the same holder has heard it in this hop, from somebody else.
                    heard_now = new_when[h, k] != when[h, k] or new_state[h, k] != state[h, k]
                    better = heard_now and id[j] < new_source[h, k]
            if not better:
                continue
            new_state[h, k], new_when[h, k], new_source[h, k] = state[g, k], when[g, k], id[j]
            slot = slot_of_thing[k]
            if slot >= 0:
                for axis in range(place.shape[2]):
                    new_place[h, slot, axis] = place[g, slot, axis]
