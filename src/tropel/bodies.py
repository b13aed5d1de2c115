"""Bodies that do not push into each other: they slide past, and who would still collide takes a shorter step.

Steering models see where others stand, not what walls and obstacles will make of their moves. So the moves of a step
may still bring two bodies together.

First, before walls are looked at, a move that leads into another body loses the part that does and keeps the part along
it: bodies slide past each other. Who has nothing left of the move shuffles, a short step in a random direction; without
it a few bodies in a door can hold each other for ever.

Then, when walls and obstacles have had their say, moves are compared in continuous time, pair by pair. Where two would
come closer than touching (or closer than they are, if they touch already) one of them gives way: it goes only half of
its way, then a quarter, at last it stays. Whoever has the lower random draw of this step keeps its move; nobody makes
way for somebody who stays. Steps only get shorter, so this ends, and at the end no pair comes closer than it may. A
part of a move that crosses no wall crosses none either, so the promise of `integrate` holds.

Each round looks at the moves of the round before, so the result does not depend on order or threads.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.cells import CellList, cell_run, cell_window
from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.philox import uniform_pair, uniforms
from tropel.agents.state import AgentState, Steered

#: How far moves go in the rounds of giving way.
_SHARES = np.array([1.0, 0.5, 0.25, 0.0])

#: How often a move is turned aside before it is taken as it is.
_SLIDES = 3

#: Whoever keeps less than this share of the move is stuck, and shuffles by so much of it in a random direction.
_STUCK, _SHUFFLE = 0.05, 0.3

#: Bodies may come this much closer than touching [m], so that rounding does not stop those who slide past each other.
TOLERANCE = 1e-9


@kernel
def _closest(dx, dy, dz, mx, my, mz):
    """Closest distance of two points at the offset d, during a step in which the offset changes by m."""
    m2 = mx * mx + my * my + mz * mz
    t = min(max(-(dx * mx + dy * my + dz * mz) / m2, 0.0), 1.0) if m2 > 0.0 else 0.0
    return math.sqrt((dx + t * mx) ** 2 + (dy + t * my) ** 2 + (dz + t * mz) ** 2)


@parallel_kernel
def _one_round(position, ends, radius, solid, draw, notch, cells, shares, widest, longest, out_notch, lowered):
    dim = position.shape[1]
    for i in numba.prange(position.shape[0]):
        out_notch[i] = notch[i]
        lowered[i] = 0
        share = shares[notch[i]]
        if not solid[i] or share == 0.0:
            continue
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if dim == 3 else 0.0
        ax, ay = share * (ends[i, 0] - x), share * (ends[i, 1] - y)
        az = share * (ends[i, 2] - z) if dim == 3 else 0.0
        own = math.sqrt(ax * ax + ay * ay + az * az)
        x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, radius[i] + widest + own + longest)
        for cz in range(z0, z1 + 1):
            for cy in range(y0, y1 + 1):
                first, last = cell_run(cells, x0, x1, cy, cz)
                for k in range(first, last):
                    dx, dy = cells.position[0, k] - x, cells.position[1, k] - y
                    dz = cells.position[2, k] - z if dim == 3 else 0.0
                    apart2 = dx * dx + dy * dy + dz * dz
                    contact = radius[i] + cells.radius[k]
                    if apart2 > (contact + own + longest) ** 2:
                        continue
                    j = cells.order[k]
                    if j == i or not solid[j]:
                        continue
                    other = shares[notch[j]]
                    # Among two who move, the lower draw goes first; equal draws are as good as impossible.
                    if other > 0.0 and (draw[i] < draw[j] or (draw[i] == draw[j] and i < j)):
                        continue
                    mx = other * (ends[j, 0] - position[j, 0]) - ax
                    my = other * (ends[j, 1] - position[j, 1]) - ay
                    mz = other * (ends[j, 2] - position[j, 2]) - az if dim == 3 else 0.0
                    if _closest(dx, dy, dz, mx, my, mz) < min(contact, math.sqrt(apart2)) - TOLERANCE:
                        lowered[i] = 1
        if lowered[i]:
            out_notch[i] = notch[i] + 1


@kernel
def _past_others(i, position, target, radius, solid, cells, x, y, z, mx, my, mz, longest, window):
    """What is left of agent i's move m when it loses what leads into others."""
    dim = position.shape[1]
    own = math.sqrt(mx * mx + my * my + mz * mz)
    x0, x1, y0, y1, z0, z1 = window
    for _ in range(_SLIDES):
        touched = False
        for cz in range(z0, z1 + 1):
            for cy in range(y0, y1 + 1):
                first, last = cell_run(cells, x0, x1, cy, cz)
                for k in range(first, last):
                    dx, dy = cells.position[0, k] - x, cells.position[1, k] - y
                    dz = cells.position[2, k] - z if dim == 3 else 0.0
                    apart2 = dx * dx + dy * dy + dz * dz
                    contact = radius[i] + cells.radius[k]
                    if apart2 > (contact + own + longest) ** 2 or apart2 == 0.0:
                        continue
                    j = cells.order[k]
                    if j == i or not solid[j]:
                        continue
                    apart = math.sqrt(apart2)
                    nx, ny, nz = dx / apart, dy / apart, dz / apart
                    away = (target[j, 0] - position[j, 0]) * nx + (target[j, 1] - position[j, 1]) * ny
                    if dim == 3:
                        away += (target[j, 2] - position[j, 2]) * nz
                    gap = max(apart - contact, 0.0)
                    # Behind somebody who goes on there is all the room; two who meet have half of it each.
                    room = gap + away if away >= 0.0 else 0.5 * gap
                    nearing = mx * nx + my * ny + mz * nz
                    if nearing > room:
                        mx -= (nearing - room) * nx
                        my -= (nearing - room) * ny
                        mz -= (nearing - room) * nz
                        touched = True
        if not touched:
            break
    return mx, my, mz


@kernel
def _shuffled(mx, my, mz, dim, key, agent, step):
    """A short move in a random direction, turned with the wanted move m, so that a turned crowd does the same."""
    u, v = uniform_pair(key, agent, step, 1)
    angle = 2.0 * math.pi * u
    if dim == 2:
        c, s = _SHUFFLE * math.cos(angle), _SHUFFLE * math.sin(angle)
        return c * mx - s * my, s * mx + c * my, 0.0
    size = _SHUFFLE * math.sqrt(mx * mx + my * my + mz * mz)
    up = 2.0 * v - 1.0
    flat = size * math.sqrt(max(1.0 - up * up, 0.0))
    return flat * math.cos(angle), flat * math.sin(angle), size * up


@parallel_kernel
def _slide(position, target, radius, solid, ids, key, step, cells, widest, longest, out):
    dim = position.shape[1]
    for i in numba.prange(position.shape[0]):
        for axis in range(dim):
            out[i, axis] = target[i, axis]
        if not solid[i]:
            continue
        x, y = position[i, 0], position[i, 1]
        z = position[i, 2] if dim == 3 else 0.0
        ax, ay = target[i, 0] - x, target[i, 1] - y
        az = target[i, 2] - z if dim == 3 else 0.0
        own2 = ax * ax + ay * ay + az * az
        if own2 == 0.0:
            continue
        window = cell_window(cells, x, y, z, radius[i] + widest + math.sqrt(own2) + longest)
        mx, my, mz = _past_others(i, position, target, radius, solid, cells, x, y, z, ax, ay, az, longest, window)
        if mx * mx + my * my + mz * mz < _STUCK * _STUCK * own2:
            sx, sy, sz = _shuffled(ax, ay, az, dim, key, ids[i], step)
            mx, my, mz = _past_others(i, position, target, radius, solid, cells, x, y, z, sx, sy, sz, longest, window)
        out[i, 0], out[i, 1] = x + mx, y + my
        if dim == 3:
            out[i, 2] = z + mz


@dataclass(frozen=True)
class Bodies:
    """Who is solid in this step, and how they find each other."""

    near: Any
    solid: NDArray[np.bool_]
    key: np.uint64
    step: int

    def slide(self, state: AgentState, target: NDArray[np.float64]) -> NDArray[np.float64]:
        """The ends of the wanted moves, turned aside where they lead into another body."""
        step2 = ((target - state.position) ** 2).sum(axis=1)
        longest = math.sqrt(float(step2.max(initial=0.0)))
        widest = float(state.radius.max(initial=0.0))
        out = np.empty_like(target)
        _slide(
            state.position,
            target,
            state.radius,
            self.solid,
            state.id,
            self.key,
            self.step,
            self.near.cells,
            widest,
            longest,
            out,
        )
        return out

    def give_way(self, state: AgentState, steered: Steered) -> None:
        """Shorten the moves from `state.position` to `steered.position` until no two solid bodies collide."""
        cells: CellList = self.near.cells
        ends = steered.position
        draw = uniforms(self.key, state.id, step=self.step)[:, 0]
        step2 = ((ends - state.position) ** 2).sum(axis=1)
        longest = math.sqrt(float(step2.max(initial=0.0)))
        widest = float(state.radius.max(initial=0.0))
        # Who does not move at all cannot give way, so others must.
        notch = np.where(step2 > 0.0, 0, len(_SHARES) - 1).astype(np.uint8)
        fresh = np.zeros(len(state), dtype=np.uint8)
        lowered = np.zeros(len(state), dtype=np.uint8)
        while True:
            _one_round(
                state.position,
                ends,
                state.radius,
                self.solid,
                draw,
                notch,
                cells,
                _SHARES,
                widest,
                longest,
                fresh,
                lowered,
            )
            if not lowered.any():
                break
            notch, fresh = fresh, notch
        held = (notch > 0) & (step2 > 0.0)
        if held.any():
            share = _SHARES[notch[held]][:, None]
            ends[held] = state.position[held] + share * (ends[held] - state.position[held])
            steered.velocity[held] *= share
