"""The flock of the public comparisons in plain Python, with its own random numbers. Imports nothing of tropel."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, int, int, int]:
    """Philox4x32-10 after Salmon et al., SC 2011."""
    c0, c1, c2, c3 = counter
    k0, k1 = key
    word = (1 << 32) - 1
    for _ in range(10):
        p0, p1 = c0 * 0xD2511F53, c2 * 0xCD9E8D57
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & word, (p0 >> 32) ^ c3 ^ k1, p0 & word
        k0, k1 = (k0 + 0x9E3779B9) & word, (k1 + 0xBB67AE85) & word
    return c0, c1, c2, c3


def order_of(ids: list[int], seed: int, step: int) -> list[int]:
    """Who has its turn when: by the 64 bits drawn for an id and a step."""
    digest = hashlib.sha256(f"{seed}\0sequential flock: order".encode()).digest()
    key = (int.from_bytes(digest[:4], "little"), int.from_bytes(digest[4:8], "little"))
    drawn = [philox((agent & 0xFFFFFFFF, agent >> 32, step, 0), key)[:2] for agent in ids]
    return sorted(range(len(ids)), key=lambda row: (*drawn[row], ids[row]))


def sequential_step(
    position: Floats,
    heading: Floats,
    order: list[int],
    *,
    vision: Floats,
    stride: Floats,
    period: Floats,
    cohere: float = 0.03,
    separate: float = 0.015,
    match: float = 0.05,
    separation: float = 1.0,
) -> tuple[Floats, Floats]:
    """One step of everybody, as in the declaration of the comparison; periods of 0 are no periods."""
    place, facing = position.copy(), heading.copy()
    around = period > 0.0
    for row in order:
        offset = place - place[row]
        offset[:, around] -= period[around] * np.round(offset[:, around] / period[around])
        distance = np.sqrt((offset**2).sum(axis=1))
        seen = (distance <= vision[row]) & (np.arange(len(place)) != row)
        close = seen & (distance < separation)
        number = max(int(seen.sum()), 1)
        facing[row] += (
            cohere * offset[seen].sum(axis=0) - separate * offset[close].sum(axis=0) + match * facing[seen].sum(axis=0)
        ) / number
        facing[row] /= np.linalg.norm(facing[row])
        place[row] += stride[row] * facing[row]
        place[row, around] %= period[around]
    return place, facing
