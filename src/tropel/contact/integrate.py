"""Velocity to position: the only place where agents move, and the order in which contact is handled.

The promise concerns the straight chord between consecutive positions: it touches no wall and no closed door, exactly,
at any speed and time step. Solid bodies do not move into each other, not even between two steps.

Contact comes first, in rounded arithmetic: bodies slide along walls and stay out of round obstacles (`walls.py`).
Then the chord is checked with exact predicates. A chord that still touches a wall is shortened to end one radius before
the first wall, or turned along it, or in the end reduced to zero. Only this check carries the promise that nobody
crosses a wall; contact makes the motion look right. In 3D the walls are the faces of a box, which is convex, so
clamping the end point is enough.

Agents that move exactly stand where their model puts them, however close to a wall that is. If a wall blocks the move,
they stay.

Nothing moves the dead. Dead agents with a solid body still have it, and the others walk around it. If a step has
several phases, each phase moves only the agents of its own models.

In periodic space the end point may lie beyond the seam, where walls and obstacles have images. It is wrapped back into
the box at the very end; velocity is the displacement before that.

The file has the kernels first, then the moves they make up (`move_exactly`, `move_freely`, `move_towards`), then
`integrate`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

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
#: The low and the high side of unbounded space.
_WITHOUT_END = np.array([[-math.inf], [math.inf]])


@inlined_kernel
def _is_barred(i, position, target, walls):
    """Whether a wall blocks an agent that moves exactly, or not at all."""
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
            # The targets are the new positions, so nothing needs to be written for agents that are not blocked.
            target[i, 0], target[i, 1] = position[i, 0], position[i, 1]
            out_velocity[i, 0] = out_velocity[i, 1] = 0.0
    return faults


@parallel_kernel
def _move_exactly(position, velocity, dead, walls, target, out_velocity):
    """All of `integrate` when every agent moves exactly; returns how many targets are not finite."""
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
            # The place and the velocity that the model wrote are already in the output.
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
        # A wall may have turned the move into an obstacle. Then the agent stays, unless an obstacle pushes it there.
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
    """Move each agent to its target, or as far towards it as walls and obstacles allow.

    With `longest2`, one entry per chunk of agents, the targets are written here too, as by `want_some`. A chunk with a
    target that is not finite is left as it is.
    """
    count = position.shape[0]
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        first, last = chunk * _CHUNK, min((chunk + 1) * _CHUNK, count)
        if longest2.size > 0:
            longest2[chunk] = want_some(first, last, position, out_velocity, dt, target)
        if longest2.size == 0 or not math.isnan(longest2[chunk]):
            _move_some(first, last, position, velocity, target, radius, dead, codes, dt, walls, discs, low, high,
                       out_position, out_velocity)  # fmt: skip


def move_exactly(state: AgentState, steered: Steered, world: World) -> None:
    """Give each agent the place and the velocity that its model wrote, unless a wall blocks the move."""
    if _move_exactly(state.position, state.velocity, state.dead, world.wall_grid(1.0), steered.position,
                     steered.velocity):  # fmt: skip
        raise not_finite(state, steered.position)


class Surroundings(NamedTuple):
    """What ends the moves of a step besides other agents."""

    walls: WallGrid
    discs: DiscGrid
    low: NDArray[np.float64]  #: the low sides of a walled box, else minus infinity
    high: NDArray[np.float64]


def surroundings(widest: float, world: World, dt: float) -> Surroundings:
    """Everything that bodies of at most `widest` [m] can touch."""
    walls = world.wall_grid(max(1.0, 2.0 * widest))
    # Moving obstacles approach during the agent's step.
    discs = world.obstacles.grid(quantised(walls.reach + world.obstacles.fastest * dt))
    low, high = np.where(world.walled, world.bounds, _WITHOUT_END)
    return Surroundings(walls, discs, low, high)


def move_freely(state: AgentState, steered: Steered, world: World, dt: float, widest: float) -> None:
    """Compute where each agent wants to be and move it there as far as possible, in one pass over the agents."""
    longest2 = np.zeros(-(-len(state) // _CHUNK))
    _move(state.position, state.velocity, steered.position, state.radius, state.dead, codes_of(Moves.FREELY), dt,
          *surroundings(widest, world, dt), steered.position, steered.velocity, longest2)  # fmt: skip
    if math.isnan(longest2.max(initial=0.0)):
        raise not_finite(state, steered.position)


def move_towards(
    target: NDArray[np.float64],
    state: AgentState,
    steered: Steered,
    around: Surroundings,
    dt: float,
    moves: HowTheyMove,
) -> None:
    """Write the places that agents reach on their moves towards the targets, and the velocities of these moves."""
    _move(state.position, state.velocity, target, state.radius, state.dead, codes_of(moves), dt, *around,
          steered.position, steered.velocity, _WANTED_BEFORE)  # fmt: skip


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
    """Move all agents by one step and swap the new columns in.

    `moves` tells how: one value if all agents move alike, else a code of `Moves` for each row. Afterwards velocity is
    the displacement over dt, except for agents that move exactly, which keep the velocity that the model wrote. Heading
    and memory are as steered. Solid `bodies` do not move into each other.
    """
    widest = reduce.largest(state.radius)
    # When no move depends on what the other agents want, one pass over the agents is enough.
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
    """The order of contact: each stage works on the ends of the moves that the previous stage leaves."""
    wanted, own_longest = wanted_ends(state, steered, dt, moves, keep_apart=bodies is not None)
    longest = reduce.largest(np.array([own_longest]))
    if world.is_periodic:
        check_short(state, wanted, longest, widest, world)
    target = wanted
    around = surroundings(widest, world, dt)
    if bodies is not None:
        # Walls turn wishes before bodies meet. Otherwise an agent that slides along a wall runs into its neighbour
        # unseen, and both stop: at a door post for good.
        move_towards(wanted, state, steered, around, dt, moves)
        wishes = steered.position.copy()
        target = bodies.solve_contacts(state, wishes, longest, around.walls, dt, moves)
    # Walls and discs, then the exact check of the chord.
    move_towards(target, state, steered, around, dt, moves)
    if bodies is not None:
        # A part of a move that crosses no wall crosses no wall either.
        bodies.give_way(state, steered, moves)
        note_held(state.position, wanted, steered.position, dt, state.held)
    world.wrap(steered.position)


def _swap_in(state: AgentState, steered: Steered) -> None:
    """Make the steered columns the state; the old columns are overwritten in the next step."""
    for name in ("position", "velocity", "heading"):
        fresh = getattr(steered, name)
        setattr(steered, name, state.columns[name])
        state.columns[name] = fresh
    for name, fresh in steered.memory.items():
        steered.memory[name], state.columns[name] = state.columns[name], fresh
