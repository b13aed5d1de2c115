"""Moves, as far as walls and obstacles let them go.

Contact comes first, in rounded arithmetic: bodies slide along walls (`walls.py`) and stay out of round obstacles
(`discs.py`). Then the chord is checked with exact predicates; one that still touches a wall is shortened to a radius
before the first one, or turned along it, at last to zero. Only the check carries the promise that nobody crosses a
wall; contact is a matter of looks. In 3D the walls are the faces of a box, which is convex, so that clamping the end
point is enough.

Agents that move exactly stand where they are put, however near to walls that is. If a wall is in the way they stay.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.discs import DiscGrid
from tropel._kernels.walls import WallGrid, cell_at, chord_blocked
from tropel.agents.state import AgentState, Steered
from tropel.contact.discs import depth_inside, keep_out, runs_into
from tropel.contact.moves import EXACTLY, NOT_NOW, HowTheyMove, code_of, codes_of
from tropel.contact.walls import settle
from tropel.contact.wanted import not_finite, want_some
from tropel.movement import Moves
from tropel.world import World
from tropel.world.wall_grid import quantised

#: Agents per unit of parallel work.
_CHUNK = 256

_WANTED_BEFORE = np.empty(0)
#: The low and the high side of space without bounds.
_WITHOUT_END = np.array([[-math.inf], [math.inf]])


@inlined_kernel
def _is_barred(i, position, target, walls):
    """Whether a wall is in the way of an agent that moves exactly, or not at all."""
    x, y = position[i, 0], position[i, 1]
    px, py = target[i, 0], target[i, 1]
    if walls.segments.shape[0] == 0 or (px == x and py == y):
        return False
    cell = np.uint64(cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape))
    near = walls.start[cell] < walls.start[cell + np.uint64(1)] or abs(px - x) + abs(py - y) > walls.reach
    return near and chord_blocked(x, y, px, py, walls)


@kernel
def _move_some_exactly(first, last, position, velocity, dead, walls, target, out_velocity):
    faults = 0
    for i in range(np.uint64(first), np.uint64(last)):
        if dead[i]:
            out_velocity[i, 0], out_velocity[i, 1] = velocity[i, 0], velocity[i, 1]
        faults += np.int64(target[i, 0] - target[i, 0] != 0.0) | np.int64(target[i, 1] - target[i, 1] != 0.0)
        if _is_barred(i, position, target, walls):
            # The targets are the new positions, so that nothing is written for all the others.
            target[i, 0], target[i, 1] = position[i, 0], position[i, 1]
            out_velocity[i, 0] = out_velocity[i, 1] = 0.0
    return faults


@parallel_kernel
def _move_exactly(position, velocity, dead, walls, target, out_velocity):
    """The whole of `integrate` where everybody moves exactly; returns how many targets are not finite."""
    faults = 0
    count = position.shape[0]
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        faults += _move_some_exactly(chunk * _CHUNK, min((chunk + 1) * _CHUNK, count), position, velocity, dead,
                                     walls, target, out_velocity)  # fmt: skip
    return faults


@kernel
def _move_some(first, last, position, velocity, target, radius, dead, codes, dt, walls, discs, low, high,
               out_position, out_velocity):  # fmt: skip
    dim = position.shape[1]
    for i in range(np.uint64(first), np.uint64(last)):
        p = out_position[i]
        how = code_of(codes, i)
        if dead[i] or how == NOT_NOW:
            for axis in range(dim):
                p[axis] = position[i, axis]
                out_velocity[i, axis] = velocity[i, axis]
            continue
        if how == EXACTLY:
            # The place and the velocity that the model wrote are there already.
            if _is_barred(i, position, out_position, walls):
                for axis in range(dim):
                    p[axis] = position[i, axis]
                    out_velocity[i, axis] = 0.0
            continue
        for axis in range(dim):
            p[axis] = target[i, axis]
        if discs.radius.size > 0:
            keep_out(position, i, p, radius[i], discs, dt)
        held = False
        if dim == 2:
            x, y = settle(position[i, 0], position[i, 1], p[0], p[1], radius[i], walls)
            held = x != p[0] or y != p[1]
            p[0], p[1] = x, y
        else:
            for axis in range(dim):
                margin = min(radius[i], 0.5 * (high[axis] - low[axis]))
                inside = min(max(p[axis], low[axis] + margin), high[axis] - margin)
                held = held or inside != p[axis]
                p[axis] = inside
        # A wall may have turned the move into an obstacle; then the agent stays, unless one presses on it there.
        if (
            held
            and discs.radius.size > 0
            and runs_into(position, i, p, radius[i], discs, dt)
            and depth_inside(position, i, position[i], radius[i], discs, dt)
            <= max(depth_inside(position, i, p, radius[i], discs, dt), 0.0)
        ):
            for axis in range(dim):
                p[axis] = position[i, axis]
        for axis in range(dim):
            out_velocity[i, axis] = (p[axis] - position[i, axis]) / dt


@parallel_kernel
def _move(position, velocity, target, radius, dead, codes, dt, walls, discs, low, high, out_position, out_velocity,
          longest2):  # fmt: skip
    """Move everybody towards its target, or as far as walls and obstacles let it.

    With `longest2`, one for each chunk of agents, the targets are written here too, as by `want_some`; a chunk in
    which one is not finite stays as it is.
    """
    count = position.shape[0]
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        first, last = chunk * _CHUNK, min((chunk + 1) * _CHUNK, count)
        if longest2.size > 0:
            longest2[chunk] = want_some(first, last, position, out_velocity, dt, target)
        if longest2.size == 0 or not math.isnan(longest2[chunk]):
            _move_some(first, last, position, velocity, target, radius, dead, codes, dt, walls, discs, low, high,
                       out_position, out_velocity)  # fmt: skip


def walls_around(widest: float, world: World) -> WallGrid:
    """The walls, by cells that list all that a body, `widest` [m] at most, can touch from anywhere in the cell."""
    return world.wall_grid(max(1.0, 2.0 * widest))


def move_exactly(state: AgentState, steered: Steered, world: World) -> None:
    """Let everybody have the place and the velocity that its model wrote, unless a wall is in the way."""
    if _move_exactly(state.position, state.velocity, state.dead, world.wall_grid(1.0), steered.position,
                     steered.velocity):  # fmt: skip
        raise not_finite(state, steered.position)


def move_freely(state: AgentState, steered: Steered, world: World, dt: float, widest: float) -> None:
    """Find out where everybody wants to be, and move there as far as can be, in one pass through the agents."""
    longest2 = np.zeros(-(-len(state) // _CHUNK))
    _move_in(state, steered, world, dt, Moves.FREELY, widest, steered.position, longest2)
    if math.isnan(longest2.max(initial=0.0)):
        raise not_finite(state, steered.position)


def move_towards(
    target: NDArray[np.float64],
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    moves: HowTheyMove,
    widest: float,
) -> None:
    """Write the places that agents reach on the way to their targets, and the velocities of these moves."""
    _move_in(state, steered, world, dt, moves, widest, target, _WANTED_BEFORE)


def _move_in(
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    moves: HowTheyMove,
    widest: float,
    target: NDArray[np.float64],
    longest2: NDArray[np.float64],
) -> None:
    walls = walls_around(widest, world)
    # Obstacles come nearer by themselves while the agent makes its step.
    discs: DiscGrid = world.obstacles.grid(quantised(walls.reach + world.obstacles.fastest * dt))
    low, high = np.where(world.walled, world.bounds, _WITHOUT_END)
    _move(state.position, state.velocity, target, state.radius, state.dead, codes_of(moves), dt, walls, discs, low,
          high, steered.position, steered.velocity, longest2)  # fmt: skip
