"""Counter-based random numbers: Philox4x32-10 (Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as
1, 2, 3", SC 2011).

A number is a pure function of (key, agent id, step, draw), so it is the same on any number of threads or ranks and
before and after a resume. The key is a 64-bit digest of the run's seed and the purpose of the draw.

Counter layout: id (64 bits), step (40 bits), draw (24 bits). Each counter gives four 32-bit words, which make two
53-bit uniforms.
"""

from __future__ import annotations

import hashlib
import math

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel

_M0 = np.uint64(0xD2511F53)
_M1 = np.uint64(0xCD9E8D57)
_W0 = np.uint32(0x9E3779B9)
_W1 = np.uint32(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
#: One over the standard deviation of the sum of eight 16-bit numbers.
_BELL = math.sqrt(12.0 / (8.0 * (65536.0**2 - 1.0)))
_TO_UNIT = 1.0 / 9007199254740992.0  # 2 ** -53


def random_key(seed: int, purpose: str) -> np.uint64:
    """The key for one purpose of one run; different purposes never share numbers."""
    digest = hashlib.sha256(f"{int(seed)}\0{purpose}".encode()).digest()
    return np.uint64(int.from_bytes(digest[:8], "little"))


@inlined_kernel
def philox4x32(c0, c1, c2, c3, k0, k1):
    """Ten rounds on a counter of four and a key of two 32-bit words; reproduces the published test vectors."""
    for _ in range(10):
        p0 = np.uint64(c0) * _M0
        p1 = np.uint64(c2) * _M1
        high0 = np.uint32(p0 >> _SHIFT)
        low0 = np.uint32(p0 & _LOW)
        high1 = np.uint32(p1 >> _SHIFT)
        low1 = np.uint32(p1 & _LOW)
        c0, c1, c2, c3 = np.uint32(high1 ^ c1 ^ k0), low1, np.uint32(high0 ^ c3 ^ k1), low0
        k0 = np.uint32(k0 + _W0)
        k1 = np.uint32(k1 + _W1)
    return c0, c1, c2, c3


@inlined_kernel
def words(key, agent_id, step, draw):
    """Four independent 32-bit words for (agent, step, draw)."""
    who = np.uint64(agent_id)
    when = np.uint64(step)
    c0 = np.uint32(who & _LOW)
    c1 = np.uint32(who >> _SHIFT)
    c2 = np.uint32(when & _LOW)
    c3 = np.uint32(((when >> _SHIFT) << np.uint64(24)) | (np.uint64(draw) & np.uint64(0xFFFFFF)))
    k0 = np.uint32(np.uint64(key) & _LOW)
    k1 = np.uint32(np.uint64(key) >> _SHIFT)
    return philox4x32(c0, c1, c2, c3, k0, k1)


@inlined_kernel
def uniform_pair(key, agent_id, step, draw):
    """Two independent uniforms in [0, 1) for (agent, step, draw)."""
    a, b, c, d = words(key, agent_id, step, draw)
    first = np.float64((np.uint64(a) << np.uint64(21)) ^ (np.uint64(b) >> np.uint64(11))) * _TO_UNIT
    second = np.float64((np.uint64(c) << np.uint64(21)) ^ (np.uint64(d) >> np.uint64(11))) * _TO_UNIT
    return first, second


@inlined_kernel
def uniform(key, agent_id, step, draw):
    """A uniform in [0, 1) for (agent, step, draw)."""
    return uniform_pair(key, agent_id, step, draw)[0]


@inlined_kernel
def bell(key, agent_id, step, draw):
    """A nearly normal number of mean 0 and variance 1 for (agent, step, draw), at a third of the cost of a normal.

    It is the sum of eight 16-bit uniforms: it ends at ±4.9, and its fourth moment is 2.85 instead of 3.
    """
    total = np.uint64(0)
    for word in words(key, agent_id, step, draw):
        total += (np.uint64(word) & np.uint64(0xFFFF)) + (np.uint64(word) >> np.uint64(16))
    return (np.float64(total) - 8 * 32767.5) * _BELL


@inlined_kernel
def normal_pair(key, agent_id, step, draw):
    """Two independent standard normals for (agent, step, draw), by the Box–Muller transform (trigonometric form)."""
    u, v = uniform_pair(key, agent_id, step, draw)
    length = math.sqrt(-2.0 * math.log(1.0 - u))
    angle = 2.0 * math.pi * v
    return length * math.cos(angle), length * math.sin(angle)


@kernel
def _fill_uniforms(key, ids, step, draw, out):
    for i in range(ids.size):
        out[i, 0], out[i, 1] = uniform_pair(key, ids[i], step, draw)


@kernel
def _fill_normals(key, ids, step, draw, out):
    for i in range(ids.size):
        out[i, 0], out[i, 1] = normal_pair(key, ids[i], step, draw)


def uniforms(key: np.uint64, ids: NDArray[np.int64], step: int = 0, draw: int = 0) -> NDArray[np.float64]:
    """A pair of uniforms in [0, 1) for each id, shape (len(ids), 2)."""
    out = np.empty((len(ids), 2))
    _fill_uniforms(np.uint64(key), np.ascontiguousarray(ids, dtype=np.int64), step, draw, out)
    return out


def normals(key: np.uint64, ids: NDArray[np.int64], step: int = 0, draw: int = 0) -> NDArray[np.float64]:
    """A pair of standard normals for each id, shape (len(ids), 2)."""
    out = np.empty((len(ids), 2))
    _fill_normals(np.uint64(key), np.ascontiguousarray(ids, dtype=np.int64), step, draw, out)
    return out
