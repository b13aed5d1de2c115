"""Combat, as simple as it can be: whoever has an enemy within reach may put it out of action.

Everybody of a squad with `hits` above zero that is not retreating strikes at the nearest living enemy within `reach`
(free distance between the bodies) that it sees. An enemy at whom n people strike is put out of action within dt with
the probability

    1 - exp(-dt · Σ hits)          the sum over those n

All strike at once, from the positions at the beginning of the step. So equal squads that all reach each other follow
Lanchester's square law: losses per second are hits times the number of opponents. Those out of action lie where they
fell for the rest of the run and count among the dead.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.philox import random_key, uniforms
from tropel.agents.squads.sight import is_seen
from tropel.world import World

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@kernel
def _strike(strikers, reach, group, hostile, living, ids, position, radius, walls, struck):
    """Write the row of the nearest enemy within reach of each striker, -1 for none; ties go to the lower id."""
    for n in range(strikers.size):
        i = strikers[n]
        best, nearest = -1, reach[n]
        for m in range(living.size):
            j = living[m]
            if j == i or not hostile[group[i], group[j]]:
                continue
            dx, dy = position[j, 0] - position[i, 0], position[j, 1] - position[i, 1]
            free = np.sqrt(dx * dx + dy * dy) - radius[i] - radius[j]
            if free > nearest or (free == nearest and best >= 0 and ids[j] > ids[best]):
                continue
            if is_seen(position[i, 0], position[i, 1], position[j, 0], position[j, 1], np.inf, walls):
                best, nearest = j, free
        struck[n] = best


def fallen(
    world: World, *, strikers: Ints, hits: Floats, reach: Floats, hostile: NDArray[np.bool_], living: Ints, group: Ints,
    ids: Ints, position: Floats, radius: Floats, dt: float, seed: int, step: int,
) -> Ints:  # fmt: skip
    """The rows of those put out of action in this step, by id. `hostile` tells which groups fight which (G, G)."""
    target = np.empty(len(strikers), dtype=np.int64)
    _strike(strikers, reach, group, hostile, living, ids, position, radius, world.wall_grid(2.0), target)
    order = np.lexsort((hits, target))  # sums in an order that does not depend on rows
    order = order[target[order] >= 0]
    struck, first = np.unique(target[order], return_index=True)
    if not len(struck):
        return struck
    rate = np.add.reduceat(hits[order], first)
    drawn = uniforms(random_key(seed, "combat"), ids[struck], step=step)[:, 0]
    down = struck[drawn < -np.expm1(-dt * rate)]
    return down[np.argsort(ids[down], kind="stable")]


def hostility(groups: Sequence[str], enemies: dict[int, tuple[str, ...]]) -> NDArray[np.bool_]:
    """Which groups (G, G) strike at which, by number."""
    found = np.zeros((len(groups), len(groups)), dtype=np.bool_)
    for number, names in enemies.items():
        for name in names:
            found[number, list(groups).index(name)] = True
    return found
