"""Velocity to position: the one place where agents move, and where walls are never crossed.

The promise concerns the straight chord between consecutive positions: it touches no wall and no closed door, exactly,
at any speed and time step. In order:

1. the wanted move;
2. contact: bodies keep their radius from walls (by sliding along them) and stay out of round obstacles;
3. the check: if the chord still touches a wall it is shortened to just before the first one, at last to zero.

Contact is a matter of looks and is done in rounded arithmetic; only the check, with exact predicates, carries the
promise. In 3D the walls are the faces of a box, which is convex, so that clamping the end point is enough.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import kernel, parallel_kernel
from tropel._kernels.discs import DiscGrid, disc_cell
from tropel._kernels.walls import WallGrid, cell_at, chord_blocked, clip_to_box, crossing_fraction, nearest_on_segment
from tropel.agents.state import AgentState, Steered
from tropel.errors import ModelError
from tropel.world import World

#: Bodies pressed closer to a wall than their radius get this share of it back per step, so that nobody is flung away.
_RECOVERY = 0.1

#: A shortened move ends this far [m] before the wall it would have touched.
_MARGIN = 1e-6


@kernel
def _first_crossing(ax, ay, bx, by, walls):
    """How far along a → b the first wall is met, looking along the whole chord; rounded."""
    length = math.sqrt((bx - ax) ** 2 + (by - ay) ** 2)
    size = 1.0 / walls.inverse_cell
    t0, t1 = clip_to_box(
        ax,
        ay,
        bx,
        by,
        walls.origin[0] - size,
        walls.origin[1] - size,
        walls.origin[0] + (walls.shape[0] + 1) * size,
        walls.origin[1] + (walls.shape[1] + 1) * size,
    )
    first = 1.0
    if t0 > t1:
        return first
    stops = int((t1 - t0) * length / walls.reach) + 2
    for k in range(stops):
        t = t0 + (t1 - t0) * (k / (stops - 1))
        if t * length > first * length + walls.reach:
            break
        cell = cell_at(ax + t * (bx - ax), ay + t * (by - ay), walls.origin, walls.inverse_cell, walls.shape)
        first = min(first, crossing_fraction(ax, ay, bx, by, walls, cell))
    return first


@kernel
def _slide_along_walls(x, y, px, py, radius, walls, cell):
    """Push the end point p of a move from (x, y) out of the walls' reach, seen from the side the agent stands on."""
    for _ in range(3):
        touched = False
        for k in range(walls.start[cell], walls.start[cell + 1]):
            s = walls.items[k]
            if not walls.blocking[s]:
                continue
            x0, y0, x1, y1 = walls.segments[s, 0], walls.segments[s, 1], walls.segments[s, 2], walls.segments[s, 3]
            hx, hy = nearest_on_segment(x, y, x0, y0, x1, y1)
            here = math.sqrt((x - hx) ** 2 + (y - hy) ** 2)
            clearance = min(radius, here + _RECOVERY * radius)
            qx, qy = nearest_on_segment(px, py, x0, y0, x1, y1)
            nx, ny = px - qx, py - qy
            away = math.sqrt(nx * nx + ny * ny)
            # On the far side of the wall the normal points the wrong way: it must look to where the agent stands.
            along_x, along_y = x1 - x0, y1 - y0
            side_here = along_x * (y - y0) - along_y * (x - x0)
            side_there = along_x * (py - y0) - along_y * (px - x0)
            interior = (qx != x0 or qy != y0) and (qx != x1 or qy != y1)
            if interior and (side_here * side_there <= 0.0 or away == 0.0):
                length = math.sqrt(along_x * along_x + along_y * along_y)
                sign = 1.0 if side_here > 0.0 else -1.0
                nx, ny = -along_y / length * sign, along_x / length * sign
                px, py = qx + nx * clearance, qy + ny * clearance
                touched = True
            elif away < clearance and away > 0.0:
                scale = clearance / away
                px, py = qx + nx * scale, qy + ny * scale
                touched = True
        if not touched:
            break
    return px, py


@kernel
def _settle(x, y, px, py, radius, walls):
    """The end of a move from (x, y) towards p that touches no wall."""
    if walls.segments.shape[0] == 0 or (px == x and py == y):
        return px, py
    dx, dy = px - x, py - y
    length = math.sqrt(dx * dx + dy * dy)
    sx, sy = px, py
    if length + radius <= walls.reach:
        cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
        if walls.start[cell] == walls.start[cell + 1]:
            return px, py
        sx, sy = _slide_along_walls(x, y, px, py, radius, walls, cell)
    if not chord_blocked(x, y, sx, sy, walls):
        return sx, sy
    # Sliding led across another wall, or the step is longer than what is looked at around the agent: go straight, stop
    # in time.
    first = _first_crossing(x, y, px, py, walls)
    for gap in (radius, _MARGIN):
        share = first - gap / length
        if share > 0.0 and not chord_blocked(x, y, x + share * dx, y + share * dy, walls):
            return x + share * dx, y + share * dy
    return x, y


@kernel
def _out_of_obstacles(position, i, p, radius, discs, dt):
    """Keep the end point p of agent i's move out of round obstacles; a step that would jump over one stops at it."""
    dim = position.shape[1]
    if discs.radius.size == 0:
        return
    step2 = 0.0
    for axis in range(dim):
        step2 += (p[axis] - position[i, axis]) ** 2
    everything = math.sqrt(step2) + radius > discs.reach
    cell = disc_cell(position, i, discs)
    first = 0 if everything else discs.start[cell]
    last = discs.radius.size if everything else discs.start[cell + 1]
    for k in range(first, last):
        m = k if everything else discs.items[k]
        contact = discs.radius[m] + radius
        # Relative to the obstacle, which moves by itself during the step.
        along2 = along_from = from2 = end2 = 0.0
        for axis in range(dim):
            f = position[i, axis] - discs.position[m, axis]
            e = p[axis] - (discs.position[m, axis] + discs.velocity[m, axis] * dt)
            d = e - f
            along2 += d * d
            along_from += d * f
            from2 += f * f
            end2 += e * e
        if from2 >= contact * contact and along2 > 0.0 and along_from < 0.0:
            inside = along_from * along_from - along2 * (from2 - contact * contact)
            t = (-along_from - math.sqrt(inside)) / along2 if inside > 0.0 else 2.0
            if t <= 1.0 and end2 > contact * contact:
                # In at one side and out at the other within one step: stay at the point of entry.
                for axis in range(dim):
                    p[axis] = position[i, axis] + t * (p[axis] - position[i, axis])
                end2 = 0.0
                for axis in range(dim):
                    e = p[axis] - (discs.position[m, axis] + discs.velocity[m, axis] * dt)
                    end2 += e * e
        away = math.sqrt(end2)
        if away < contact:
            for axis in range(dim):
                centre = discs.position[m, axis] + discs.velocity[m, axis] * dt
                if away > 0.0:
                    p[axis] = centre + (p[axis] - centre) * (contact / away)
                elif axis == 0:
                    p[axis] = centre + contact


@parallel_kernel
def _move(position, target, radius, dt, walls, discs, low, high, walled_box, out_position, out_velocity):
    dim = position.shape[1]
    for i in numba.prange(position.shape[0]):
        p = out_position[i]
        for axis in range(dim):
            p[axis] = target[i, axis]
        _out_of_obstacles(position, i, p, radius[i], discs, dt)
        if dim == 2:
            p[0], p[1] = _settle(position[i, 0], position[i, 1], p[0], p[1], radius[i], walls)
        elif walled_box:
            for axis in range(dim):
                margin = min(radius[i], 0.5 * (high[axis] - low[axis]))
                p[axis] = min(max(p[axis], low[axis] + margin), high[axis] - margin)
        for axis in range(dim):
            out_velocity[i, axis] = (p[axis] - position[i, axis]) / dt
            out_position[i, axis] = p[axis]


def integrate(state: AgentState, steered: Steered, world: World, dt: float, *, moves_itself: NDArray[np.bool_]) -> None:
    """Move everybody by one step and swap the fresh columns in.

    Afterwards velocity is the displacement over dt, heading and memory are as steered. Rows where `moves_itself` is
    true have their wanted position from the model; the walls hold for them too.
    """
    target = state.position + steered.velocity * dt
    if moves_itself.any():
        target[moves_itself] = steered.position[moves_itself]
    _refuse_nonsense(state, target)
    reach = max(1.0, 2.0 * float(state.radius.max(initial=0.0)))
    walls: WallGrid = world.wall_grid(reach)
    discs: DiscGrid = world.obstacles.grid(walls.reach)
    low, high = world.bounds
    _move(
        state.position,
        target,
        state.radius,
        dt,
        walls,
        discs,
        low,
        high,
        world.dim == 3,
        steered.position,
        steered.velocity,
    )
    for name in ("position", "velocity", "heading"):
        fresh = getattr(steered, name)
        setattr(steered, name, state.columns[name])
        state.columns[name] = fresh
    for name, fresh in steered.memory.items():
        steered.memory[name], state.columns[name] = state.columns[name], fresh


def _refuse_nonsense(state: AgentState, target: NDArray[np.float64]) -> None:
    if np.isfinite(target).all():
        return
    row = int(np.flatnonzero(~np.isfinite(target).all(axis=1))[0])
    raise ModelError(
        f"agent {int(state.id[row])} was steered to {target[row].tolist()} from {state.position[row].tolist()}; "
        f"its steering model returned a velocity that is not finite"
    )
