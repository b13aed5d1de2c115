"""Velocity to position: the one place where agents move, and the order in which contact is dealt with.

Contact comes first, in rounded arithmetic: bodies slide along walls and stay out of round obstacles (`walls.py`).
Then the chord is checked with exact predicates; a chord that still touches a wall is shortened to end a radius before
the first one, or turned along it, at last to zero. Only this check carries the promise that nobody crosses a wall;
contact is a matter of looks. In 3D the walls are the faces of a box, which is convex, so clamping the end point is
enough.

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
from tropel.contact.bodies import Bodies
from tropel.contact.fidgeting import note_held
from tropel.contact.walls import depth_inside, keep_out, runs_into, settle
from tropel.contact.wanted import (
    EXACTLY,
    NOT_NOW,
    HowTheyMove,
    check_short,
    code_of,
    codes_of,
    not_finite,
    want_some,
    wanted_ends,
)
from tropel.contracts.declarations import Moves
from tropel.foundation.reductions import ONE_PROCESS, Reductions
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


# Velocity to position: the one place where agents move, and the order in which contact is dealt with.
#
# The promise concerns the straight chord between consecutive positions: it touches no wall and no closed door, exactly,
# at any speed and time step. Solid bodies do not push into each other, also between two steps.
#
# The dead are moved by nothing. Solid ones still have a body, which the others walk around. Where a step has several
# phases each moves only the agents of its models.
#
# In periodic space the end point may lie beyond the seam, where walls and obstacles have images. It is brought back
# into the box at the very end; velocity is the displacement before that.


def integrate(
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    *,
    moves: HowTheyMove = Moves.FREELY,
    bodies: Bodies | None = None,
    reduce: Reductions = ONE_PROCESS,
) -> None:
    """Move everybody by one step and swap the fresh columns in.

    `moves` says how: one value where all agents are alike, else a code of `Moves` for each row. Afterwards velocity is
    the displacement over dt, except for agents that move exactly, which keep what the model wrote; heading and memory
    are as steered. Where there are solid `bodies`, they do not push into each other.
    """
    widest = reduce.largest(state.radius)
    # Where nothing depends on what all want before the first one moves, once through the agents is enough.
    at_once = bodies is None and not world.is_periodic
    if at_once and moves is Moves.FREELY:
        move_freely(state, steered, world, dt, widest)
    elif at_once and moves is Moves.EXACTLY and world.dim == 2:
        move_exactly(state, steered, world)
    else:
        _move_together(state, steered, world, dt, moves, bodies, widest, reduce)
    _swap_in(state, steered)


def _move_together(
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    moves: HowTheyMove,
    bodies: Bodies | None,
    widest: float,
    reduce: Reductions,
) -> None:
    """The order of contact: each stage works on the ends of moves that the one before it has left."""
    wanted, own_longest = wanted_ends(state, steered, dt, moves, keep_apart=bodies is not None)
    longest = reduce.largest(np.array([own_longest]))
    if world.is_periodic:
        check_short(state, wanted, longest, widest, world)
    target = wanted
    if bodies is not None:
        target = bodies.press(state, wanted, longest, walls_around(widest, world), dt, moves)
    # Walls and discs, then the exact check of the chord.
    move_towards(target, state, steered, world, dt, moves, widest)
    if bodies is not None:
        # A part of a move that crosses no wall crosses none either.
        bodies.give_way(state, steered, moves)
        note_held(state.position, wanted, steered.position, dt, state.held)
    world.wrap(steered.position)


def _swap_in(state: AgentState, steered: Steered) -> None:
    """Make what was steered the state; its old columns are written in the next step."""
    for name in ("position", "velocity", "heading"):
        fresh = getattr(steered, name)
        setattr(steered, name, state.columns[name])
        state.columns[name] = fresh
    for name, fresh in steered.memory.items():
        steered.memory[name], state.columns[name] = state.columns[name], fresh
