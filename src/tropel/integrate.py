"""Velocity to position: the one place where agents move, and where walls are never crossed.

The promise concerns the straight chord between consecutive positions: it touches no wall and no closed door, exactly,
at any speed and time step. In order:

1. the wanted move; solid bodies press on each other and slide past (`pressing.py`);
2. contact: bodies keep their radius from walls, by sliding along them (`_kernels/wall_contact.py`), and stay out of
   round obstacles (`_kernels/disc_contact.py`);
3. the check: if the chord still touches a wall it is shortened to a radius before the first one, or turned along it,
   at last to zero;
4. solid bodies that would push into each other shorten their moves (`bodies.py`), which no wall minds.

The dead are moved by nothing. Solid ones still have a body, which the others walk around. Where a step has two turns
(`turns.py`) each moves only those whose turn it is.

Contact is a matter of looks and is done in rounded arithmetic; only the check, with exact predicates, carries the
promise. In 3D the walls are the faces of a box, which is convex, so that clamping the end point is enough.

In periodic space the end point may lie beyond the seam, where walls and obstacles have images. It is brought back into
the box at the very end; velocity is the displacement before that.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel, parallel_kernel
from tropel._kernels.disc_contact import depth_inside, keep_out, runs_into
from tropel._kernels.discs import DiscGrid
from tropel._kernels.wall_contact import settle
from tropel._kernels.walls import WallGrid, cell_at, chord_blocked
from tropel.agents.state import AgentState, Steered
from tropel.bodies import Bodies
from tropel.errors import ModelError
from tropel.movement import Moves
from tropel.pressing import note_held
from tropel.world import World
from tropel.world.wall_grid import quantised

#: Agents per unit of parallel work.
_CHUNK = 256
_ROWS_TO_WANT = 1 << 14

_WANTED_BEFORE = np.empty(0)

_NOBODY = np.empty(0, dtype=np.bool_)
#: The low and the high side of space without bounds.
_WITHOUT_END = np.array([[-math.inf], [math.inf]])


@kernel
def _keep_on_cells_some(first, last, position, velocity, dead, walls, target, out_velocity):
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
def _keep_on_cells(position, velocity, dead, walls, target, out_velocity):
    """The whole of `integrate` where everybody is on a cell; returns how many targets are not finite."""
    faults = 0
    count = position.shape[0]
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        faults += _keep_on_cells_some(chunk * _CHUNK, min((chunk + 1) * _CHUNK, count), position, velocity, dead,
                                      walls, target, out_velocity)  # fmt: skip
    return faults


@inlined_kernel
def _is_barred(i, position, target, walls):
    """Whether a wall is in the way of somebody on a cell, who stays then: nobody is pushed off, into another's cell.

    The displacement is nothing or a whole cell; the velocity of the move that it is part of is written already.
    """
    x, y = position[i, 0], position[i, 1]
    px, py = target[i, 0], target[i, 1]
    if walls.segments.shape[0] == 0 or (px == x and py == y):
        return False
    cell = np.uint64(cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape))
    near = walls.start[cell] < walls.start[cell + np.uint64(1)] or abs(px - x) + abs(py - y) > walls.reach
    return near and chord_blocked(x, y, px, py, walls)


@kernel
def _move_some(first, last, position, velocity, target, radius, still, on_cells, dt, walls, discs, low, high,
               out_position, out_velocity):  # fmt: skip
    dim = position.shape[1]
    for i in range(np.uint64(first), np.uint64(last)):
        p = out_position[i]
        if still[i]:
            for axis in range(dim):
                p[axis] = position[i, axis]
                out_velocity[i, axis] = velocity[i, axis]
            continue
        if on_cells.size > 0 and on_cells[i]:
            barred = _is_barred(i, position, target, walls)
            for axis in range(dim):
                p[axis] = position[i, axis] if barred else target[i, axis]
                out_velocity[i, axis] = 0.0 if barred else out_velocity[i, axis]
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
def _longest(position, target):
    """A bound for the length of all moves, whatever their direction; nan if one is not finite.

    Of lengths along axes, because squares of absurd steps would overflow.
    """
    longest = 0.0
    faults = 0
    for i in numba.prange(position.shape[0]):
        for axis in range(position.shape[1]):
            longest = max(longest, abs(target[i, axis] - position[i, axis]))
            faults += np.int64(target[i, axis] - target[i, axis] != 0.0)
    return math.nan if faults else math.sqrt(position.shape[1]) * longest


@kernel
def _want_some(first, last, position, velocity, dt, target):
    longest2 = 0.0
    odd = 0.0
    for k in range(first, last):
        for axis in range(position.shape[1]):
            wanted = position[k, axis] + velocity[k, axis] * dt
            target[k, axis] = wanted
            # Differences of a number to itself are zero unless it is infinite or not a number.
            odd += wanted - wanted
        total = 0.0
        for axis in range(position.shape[1]):
            total += (target[k, axis] - position[k, axis]) ** 2
        longest2 = max(longest2, total)
    return longest2 + odd


@parallel_kernel
def _want(position, velocity, dt, target, longest2):
    """Write where everybody wants to be after the step, and the longest move squared of each chunk of agents (nan if
    one is not finite)."""
    count = position.shape[0]
    for chunk in numba.prange(longest2.size):
        first = chunk * _ROWS_TO_WANT
        longest2[chunk] = _want_some(first, min(first + _ROWS_TO_WANT, count), position, velocity, dt, target)


@parallel_kernel
def _move(position, velocity, target, radius, still, on_cells, dt, walls, discs, low, high, out_position, out_velocity,
          longest2):  # fmt: skip
    """Move everybody towards its target, or as far as walls and obstacles let it.

    With `longest2`, one for each chunk of agents, the targets are written here too, as by `_want`; a chunk in which one
    is not finite stays as it is.
    """
    count = position.shape[0]
    for chunk in numba.prange((count + _CHUNK - 1) // _CHUNK):
        first, last = chunk * _CHUNK, min((chunk + 1) * _CHUNK, count)
        if longest2.size > 0:
            longest2[chunk] = _want_some(first, last, position, out_velocity, dt, target)
        if longest2.size == 0 or not math.isnan(longest2[chunk]):
            _move_some(first, last, position, velocity, target, radius, still, on_cells, dt, walls, discs, low, high,
                       out_position, out_velocity)  # fmt: skip


def integrate(
    state: AgentState,
    steered: Steered,
    world: World,
    dt: float,
    *,
    moves: Moves | NDArray[np.uint8] = Moves.FREELY,
    bodies: Bodies | None = None,
) -> None:
    """Move everybody by one step and swap the fresh columns in.

    Afterwards velocity is the displacement over dt, heading and memory are as steered. Rows where `moves_itself` is
    true have their wanted position from the model; the walls hold for them too. Rows `on_cells` stand in the middle of
    cells, however near to walls that is, and have the velocity that the model wrote. Who is not among the `movers`
    (everybody is, unless told otherwise) keeps place and velocity. Where there are solid `bodies`, they do not push
    into each other.
    """
    codes = np.broadcast_to(np.asarray(moves, dtype=np.uint8), len(state))
    movers = codes != Moves.NOT_NOW if (codes == Moves.NOT_NOW).any() else None
    moves_itself = (codes == Moves.ITSELF) | (codes == Moves.EXACTLY)
    moves_itself = moves_itself if moves_itself.any() else None
    on_cells = codes == Moves.EXACTLY if (codes == Moves.EXACTLY).any() else None
    if bodies is None and movers is None and on_cells is not None and on_cells.all():
        if _keep_on_cells(state.position, state.velocity, state.dead, world.wall_grid(1.0), steered.position,
                          steered.velocity):  # fmt: skip
            raise ModelError(_nonsense(state, steered.position))
        _swap_in(state, steered)
        return
    longest, longest2 = 0.0, _WANTED_BEFORE
    if bodies is None and moves_itself is None and not world.is_periodic:
        # Nothing depends on what all want before the first one moves: once through the agents is enough.
        wanted, longest2 = steered.position, np.zeros(-(-len(state) // _CHUNK))
    else:
        wanted, longest = _wanted(state, steered, dt, moves_itself, bodies)
    reach = max(1.0, 2.0 * float(state.radius.max(initial=0.0)))
    walls: WallGrid = world.wall_grid(reach)
    target = wanted if bodies is None else bodies.press(state, wanted, longest, walls, dt)
    # Obstacles come nearer by themselves while the agent makes its step.
    discs: DiscGrid = world.obstacles.grid(quantised(walls.reach + world.obstacles.fastest * dt))
    if world.is_periodic:
        _check_short(state, wanted, longest, world)
    low, high = np.where(world.walled, world.bounds, _WITHOUT_END)
    _move(
        state.position,
        state.velocity,
        target,
        state.radius,
        state.dead if movers is None else (~movers | (state.dead != 0)).view(np.uint8),
        _NOBODY if on_cells is None else on_cells,
        dt,
        walls,
        discs,
        low,
        high,
        steered.position,
        steered.velocity,
        longest2,
    )
    if math.isnan(longest2.max(initial=0.0)):
        raise ModelError(_nonsense(state, wanted))
    if bodies is not None:
        bodies.give_way(state, steered)
        note_held(state.position, wanted, steered.position, dt, state.held)
    world.wrap(steered.position)
    _swap_in(state, steered)


def _wanted(
    state: AgentState, steered: Steered, dt: float, moves_itself: NDArray[np.bool_] | None, bodies: Bodies | None
) -> tuple[NDArray[np.float64], float]:
    """Where everybody wants to be after the step, and a bound for the length of all moves [m]."""
    if bodies is None and moves_itself is not None and moves_itself.all():
        wanted = steered.position
        longest = _longest(state.position, wanted)
    else:
        # Where nothing else is written there, the fresh positions have room for the wanted ones.
        wanted = steered.position if bodies is None and moves_itself is None else np.empty_like(state.position)
        longest2 = np.zeros(-(-len(state) // _ROWS_TO_WANT))
        _want(state.position, steered.velocity, dt, wanted, longest2)
        longest = math.sqrt(longest2.max(initial=0.0))
        if moves_itself is not None:
            wanted[moves_itself] = steered.position[moves_itself]
            longest = _longest(state.position, wanted)
    if math.isnan(longest) or not (longest < math.inf or np.isfinite(wanted).all()):
        raise ModelError(_nonsense(state, wanted))
    return wanted, longest


def _swap_in(state: AgentState, steered: Steered) -> None:
    """Make what was steered the state; its old columns are written in the next step."""
    for name in ("position", "velocity", "heading"):
        fresh = getattr(steered, name)
        setattr(steered, name, state.columns[name])
        state.columns[name] = fresh
    for name, fresh in steered.memory.items():
        steered.memory[name], state.columns[name] = state.columns[name], fresh


def _check_short(state: AgentState, wanted: NDArray[np.float64], longest: float, world: World) -> None:
    """Raise when a body could meet another one on both sides of itself within a step."""
    quarter = 0.25 * world.shortest_period
    if longest + float(state.radius.max(initial=0.0)) < quarter:
        return
    steps = np.linalg.norm(wanted - state.position, axis=1)
    row = int(np.argmax(steps + state.radius))
    if steps[row] + float(state.radius.max()) < quarter:
        return
    raise ModelError(
        f"agent {int(state.id[row])} of {state.radius[row]:g} m radius makes a step of {steps[row]:.3g} m; where space "
        f"repeats after {4.0 * quarter:g} m, step and radius together must be less than a quarter of that: use a "
        f"shorter dt, slower or smaller agents, or a larger world"
    )


def _nonsense(state: AgentState, target: NDArray[np.float64]) -> str:
    row = int(np.flatnonzero(~np.isfinite(target).all(axis=1))[0])
    return (
        f"agent {int(state.id[row])} was steered to {target[row].tolist()} from {state.position[row].tolist()}; "
        f"its steering model returned a velocity or position that is not finite"
    )
