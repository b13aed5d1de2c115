"""A new random order of agents for every step, by counter-based draws: a function of seed, step and ids alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.philox import words

_HALF = np.uint64(32)


@kernel
def _draw(ids, key, step, shift, drawn, tally):
    for m in range(ids.shape[0]):
        a, b, _, _ = words(key, ids[m], step, 0)
        drawn[m] = (np.uint64(a) << _HALF) | np.uint64(b)
        tally[drawn[m] >> shift] += 1


@kernel
def _arrange(ids, drawn, shift, tally, order):
    """A counting sort by the first bits of what was drawn, of which there are about as many values as agents."""
    place = 0
    for k in range(tally.shape[0]):
        here = tally[k]
        tally[k] = place
        place += here
    for m in range(ids.shape[0]):
        k = drawn[m] >> shift
        order[tally[k]] = m
        tally[k] += 1
    # Few share their first bits: the rest is for them. Equal draws are in the order of ids.
    for at in range(1, order.shape[0]):
        m = order[at]
        before = at - 1
        while before >= 0 and (
            drawn[order[before]] > drawn[m] or (drawn[order[before]] == drawn[m] and ids[order[before]] > ids[m])
        ):
            order[before + 1] = order[before]
            before -= 1
        order[before + 1] = m


def random_order(ids: NDArray[np.int64], *, key: np.uint64, step: int) -> NDArray[np.int64]:
    """The numbers 0 to len(ids) - 1 in random order: each order is as likely, and it only depends on who is there."""
    count = len(ids)
    bits = max(count - 1, 1).bit_length()
    shift = np.uint64(64 - bits)
    drawn = np.empty(count, dtype=np.uint64)
    order = np.empty(count, dtype=np.int64)
    tally = np.zeros(1 << bits, dtype=np.int64)
    _draw(ids, key, step, shift, drawn, tally)
    _arrange(ids, drawn, shift, tally, order)
    return order
