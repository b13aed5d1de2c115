"""How walls, round obstacles and closing doors end the move of a disc.

Walls come first: an agent that would touch a wall slides along it, seen from the side where its move begins.

Round obstacles come next: an agent that would walk into one slides along it, and no agent jumps over one. A move is
considered in the frame of the obstacle, which itself moves during the step: the move goes from f to f + d, and must not
come within `contact`, the sum of both radii, of the origin. From the point where it would, only the part along the
surface is left. Its end lies on the tangent plane there, so no point of the chord lies inside the obstacle. Pushing the
end point out radially was rejected: it puts an agent that got past the middle on the far side. Obstacles that do not
push (hazards) are treated as standing still, and an agent that is inside one already only gets no deeper.

Doors come last: agents that stand exactly on the line of a door that closes step off it (`step_off`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.discs import disc_cell
from tropel._kernels.predicates import segments_touch
from tropel._kernels.walls import WallGrid, cell_at, chord_blocked, first_crossing, nearest_on_segment, out_of_reach
from tropel.agents.state import AgentState
from tropel.world import World

#: Bodies closer to a wall than their radius get this share of it back per step, so that no agent is flung away.
_RECOVERY = 0.1


@kernel
def _pushed_out(x, y, px, py, radius, x0, y0, x1, y1, ends):
    """The end p of a move from (x, y), moved out of reach of one wall's face, or of its two end points if `ends`."""
    qx, qy = nearest_on_segment(px, py, x0, y0, x1, y1)
    at_end = (qx == x0 and qy == y0) or (qx == x1 and qy == y1)
    hx, hy = nearest_on_segment(x, y, x0, y0, x1, y1)
    here = math.sqrt((x - hx) ** 2 + (y - hy) ** 2)
    clearance = min(radius, here + _RECOVERY * radius)
    along_x, along_y = x1 - x0, y1 - y0
    side_here = along_x * (y - y0) - along_y * (x - x0)
    side_there = along_x * (py - y0) - along_y * (px - x0)
    if not ends and side_here * side_there <= 0.0 and segments_touch(x, y, px, py, x0, y0, x1, y1):
        # Through the wall: back to the side where the agent stands, even if the wall's end is nearest.
        length = math.sqrt(along_x * along_x + along_y * along_y)
        sign = 1.0 if side_here > 0.0 else -1.0
        return qx - along_y / length * sign * clearance, qy + along_x / length * sign * clearance
    nx, ny = px - qx, py - qy
    away = math.sqrt(nx * nx + ny * ny)
    if at_end == ends and 0.0 < away < clearance:
        return qx + nx * (clearance / away), qy + ny * (clearance / away)
    return px, py


@kernel
def _slide_along_walls(x, y, px, py, radius, walls, cell):
    """Move the end point p of a move from (x, y) out of reach of the walls, to the side that the agent stands on."""
    for _ in range(3):
        touched = False
        # Faces before ends: the end of the next wall must not stop an agent that slides along a wall and clears it.
        for ends in (False, True):
            for k in range(walls.start[cell], walls.start[cell + 1]):
                s = walls.items[k]
                if walls.blocking[s]:
                    x0, y0, x1, y1 = (
                        walls.segments[s, 0],
                        walls.segments[s, 1],
                        walls.segments[s, 2],
                        walls.segments[s, 3],
                    )
                    qx, qy = _pushed_out(x, y, px, py, radius, x0, y0, x1, y1, ends)
                    touched = touched or qx != px or qy != py
                    px, py = qx, qy
        if not touched:
            break
    return px, py


@kernel
def _towards_wall(x, y, px, py, radius, walls):
    """The first wall on the move from (x, y) to p (-1 for none), and the share of the move up to a radius before it."""
    first, s = first_crossing(x, y, px, py, walls)
    if s < 0:
        return s, 0.0
    along_x, along_y = walls.segments[s, 2] - walls.segments[s, 0], walls.segments[s, 3] - walls.segments[s, 1]
    # How fast the move approaches the wall: the more oblique it is, the earlier it must end.
    nearing = abs((px - x) * along_y - (py - y) * along_x) / math.hypot(along_x, along_y)
    return s, max(first - radius / nearing, 0.0) if nearing > 0.0 else 0.0


@kernel
def _turned_along(x, y, px, py, radius, walls):
    """A move from (x, y) to p that meets a wall: straight to one radius before it, then along it as far as possible."""
    s, share = _towards_wall(x, y, px, py, radius, walls)
    if s < 0:
        return x, y
    dx, dy = px - x, py - y
    along_x, along_y = walls.segments[s, 2] - walls.segments[s, 0], walls.segments[s, 3] - walls.segments[s, 1]
    length = math.hypot(along_x, along_y)
    along_x, along_y = along_x / length, along_y / length
    rest = (1.0 - share) * (dx * along_x + dy * along_y)
    sx, sy = x + share * dx, y + share * dy
    qx, qy = sx + rest * along_x, sy + rest * along_y
    if not chord_blocked(x, y, qx, qy, walls):
        return qx, qy
    _, share = _towards_wall(x, y, qx, qy, radius, walls)
    qx, qy = x + share * (qx - x), y + share * (qy - y)
    if share > 0.0 and not chord_blocked(x, y, qx, qy, walls):
        return qx, qy
    if not chord_blocked(x, y, sx, sy, walls):
        return sx, sy
    return x, y


@inlined_kernel
def _none_within(x, y, reach, walls, cell):
    for k in range(walls.start[cell], walls.start[cell + 1]):
        s = walls.items[k]
        if not out_of_reach(x, y, walls, s, reach) and walls.blocking[s]:
            return False
    return True


@inlined_kernel
def settle(x, y, px, py, radius, walls):
    """The end of a move from (x, y) towards p that touches no wall."""
    if walls.segments.shape[0] == 0 or (px == x and py == y):
        return px, py
    cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
    reach = math.sqrt((px - x) ** 2 + (py - y) ** 2) + radius
    if reach > walls.reach:
        # The move is longer than the reach of the agent's cell: the walls that matter are those around its end.
        cell = cell_at(px, py, walls.origin, walls.inverse_cell, walls.shape)
    elif _none_within(x, y, reach, walls, cell):
        return px, py
    sx, sy = _slide_along_walls(x, y, px, py, radius, walls, cell)
    if not chord_blocked(x, y, sx, sy, walls):
        return sx, sy
    if not chord_blocked(x, y, px, py, walls):
        return px, py
    return _turned_along(x, y, px, py, radius, walls)


#: A move enters an obstacle when it comes closer than this share of the contact distance; the rest is rounding.
_ENTERS = 1.0 - 1e-9

_NEVER = 2.0


@kernel
def _length(x, y, z):
    return math.hypot(math.hypot(x, y), z)


@kernel
def _entry(fx, fy, fz, dx, dy, dz, contact):
    """When, between 0 and 1, the move by d from f comes within `contact` of the origin; 2 if it does not."""
    length = _length(dx, dy, dz)
    if length == 0.0:
        return _NEVER
    ux, uy, uz = dx / length, dy / length, dz / length
    inward = -(fx * ux + fy * uy + fz * uz)
    if inward <= 0.0:
        return _NEVER
    if _length(fx, fy, fz) <= contact:
        return 0.0
    # The distance of the line from the origin; the square root below is half of the chord inside the circle.
    aside = _length(fx + inward * ux, fy + inward * uy, fz + inward * uz)
    if aside >= contact:
        return _NEVER
    t = max(inward - math.sqrt((contact - aside) * (contact + aside)), 0.0) / length
    return t if t <= 1.0 else _NEVER


@kernel
def _slid(fx, fy, fz, dx, dy, dz, contact):
    """The end of the move by d from f that slides along the obstacle instead of entering it."""
    t = _entry(fx, fy, fz, dx, dy, dz, _ENTERS * contact)
    if t == _NEVER:
        ex, ey, ez = fx + dx, fy + dy, fz + dz
        away = _length(ex, ey, ez)
        if away >= _ENTERS * contact:
            return ex, ey, ez
        # Inside from the start (for example, because the obstacle was placed there) and not out yet.
        if away == 0.0:
            return contact, 0.0, 0.0
        return ex / away * contact, ey / away * contact, ez / away * contact
    qx, qy, qz = fx + t * dx, fy + t * dy, fz + t * dz
    away = _length(qx, qy, qz)
    nx, ny, nz = (qx / away, qy / away, qz / away) if away > 0.0 else (1.0, 0.0, 0.0)
    rx, ry, rz = (1.0 - t) * dx, (1.0 - t) * dy, (1.0 - t) * dz
    into = min(rx * nx + ry * ny + rz * nz, 0.0)
    return nx * contact + rx - into * nx, ny * contact + ry - into * ny, nz * contact + rz - into * nz


@kernel
def _relative(position, i, p, discs, m, dt):
    """Start and displacement, both relative to the obstacle, and the obstacle's centre at the end of the step."""
    if not discs.pushes[m]:
        dt = 0.0
    cx = discs.position[m, 0] + discs.velocity[m, 0] * dt
    cy = discs.position[m, 1] + discs.velocity[m, 1] * dt
    fx = position[i, 0] - discs.position[m, 0]
    fy = position[i, 1] - discs.position[m, 1]
    cz = fz = ez = 0.0
    if position.shape[1] == 3:
        cz = discs.position[m, 2] + discs.velocity[m, 2] * dt
        fz = position[i, 2] - discs.position[m, 2]
        ez = p[2] - cz
    return fx, fy, fz, p[0] - cx - fx, p[1] - cy - fy, ez - fz, cx, cy, cz


@kernel
def _contact(fx, fy, fz, radius, discs, m):
    """How close a body may come to the centre of obstacle m, which lies at -f relative to the body."""
    contact = discs.radius[m] + radius
    return contact if discs.pushes[m] else min(contact, _length(fx, fy, fz))


@kernel
def _candidates(position, i, p, radius, discs):
    """First and last + 1 of the obstacles to check, and whether these are indices into the list of the agent's cell."""
    dz = p[2] - position[i, 2] if position.shape[1] == 3 else 0.0
    step = math.sqrt((p[0] - position[i, 0]) ** 2 + (p[1] - position[i, 1]) ** 2 + dz * dz)
    if not step + radius <= discs.reach:
        return 0, discs.radius.size, False
    cell = disc_cell(position, i, discs)
    return discs.start[cell], discs.start[cell + 1], True


@kernel
def keep_out(position, i, p, radius, discs, dt):
    """Change the end point p of agent i's move so that it slides along obstacles, or stops at the first one."""
    spatial = position.shape[1] == 3
    wx, wy, wz = p[0], p[1], p[2] if spatial else 0.0
    first, last, listed = _candidates(position, i, p, radius, discs)
    for _ in range(3):
        touched = False
        for k in range(first, last):
            m = discs.items[k] if listed else k
            fx, fy, fz, dx, dy, dz, cx, cy, cz = _relative(position, i, p, discs, m, dt)
            ex, ey, ez = _slid(fx, fy, fz, dx, dy, dz, _contact(fx, fy, fz, radius, discs, m))
            if ex != fx + dx or ey != fy + dy or ez != fz + dz:
                touched = True
                p[0], p[1] = cx + ex, cy + ey
                if spatial:
                    p[2] = cz + ez
        if not touched:
            return
    if not runs_into(position, i, p, radius, discs, dt):
        return
    # Sliding along one obstacle leads into another: go as far as the first of them.
    p[0], p[1] = wx, wy
    if spatial:
        p[2] = wz
    share = 1.0
    for k in range(first, last):
        m = discs.items[k] if listed else k
        fx, fy, fz, dx, dy, dz, _, _, _ = _relative(position, i, p, discs, m, dt)
        share = min(share, _entry(fx, fy, fz, dx, dy, dz, _contact(fx, fy, fz, radius, discs, m)))
    for axis in range(position.shape[1]):
        p[axis] = position[i, axis] + share * (p[axis] - position[i, axis])


@kernel
def runs_into(position, i, p, radius, discs, dt):
    """Whether agent i's move to p enters an obstacle."""
    first, last, listed = _candidates(position, i, p, radius, discs)
    for k in range(first, last):
        m = discs.items[k] if listed else k
        fx, fy, fz, dx, dy, dz, _, _, _ = _relative(position, i, p, discs, m, dt)
        contact = _ENTERS * _contact(fx, fy, fz, radius, discs, m)
        if _entry(fx, fy, fz, dx, dy, dz, contact) != _NEVER or _length(fx + dx, fy + dy, fz + dz) < contact:
            return True
    return False


@kernel
def depth_inside(position, i, p, radius, discs, dt):
    """Depth [m] of p inside the obstacle it is deepest in at the end of the step; not positive outside of all."""
    deepest = -math.inf
    first, last, listed = _candidates(position, i, p, radius, discs)
    for k in range(first, last):
        m = discs.items[k] if listed else k
        fx, fy, fz, dx, dy, dz, _, _, _ = _relative(position, i, p, discs, m, dt)
        deepest = max(deepest, _ENTERS * _contact(fx, fy, fz, radius, discs, m) - _length(fx + dx, fy + dy, fz + dz))
    return deepest


# Closing doors. An agent exactly on the door's line is on neither side, and no move away from there would keep clear of
# the closed door. So it first steps back to the side it came from.
Floats = NDArray[np.float64]

#: How far agents step back [m]; the smaller steps serve where another wall is closer than that.
_STEPS_BACK = (1e-3, 1e-5, 1e-7)


def step_off(state: AgentState, world: World, door: str, *, dt: float) -> None:
    """Clear the line of a door that is about to close; `dt` [s] is the step that led agents there. The dead stay."""
    segments = world.door_segments(door)
    standing = np.zeros(len(state), dtype=np.bool_)
    _on_any(state.position, segments, standing)
    walls = world.wall_grid(1.0)
    for row in np.flatnonzero(standing & (state.dead == 0)):
        place = state.position[row]
        for back in _paths_back(place, -dt * state.velocity[row], segments):
            aside = place + back
            if _clear(*place, *aside, segments, walls):
                state.position[row] = aside
                world.wrap(state.position[row : row + 1])
                break


def _paths_back(place: Floats, back: Floats, segments: Floats) -> Iterator[Floats]:
    """First back the way it came, then straight off the line: to the side it came from, and finally to the other."""
    length = float(np.hypot(*back))
    if length > 0.0:
        for step in _STEPS_BACK:
            yield back * (min(step, length) / length)
    for x0, y0, x1, y1 in segments:
        if not segments_touch(*place, *place, x0, y0, x1, y1):
            continue
        normal = np.array([y0 - y1, x1 - x0]) / np.hypot(x1 - x0, y1 - y0)
        if float(normal @ back) < 0.0:
            normal = -normal
        for side in (normal, -normal):
            for step in _STEPS_BACK:
                yield step * side


@kernel
def _on_any(position, segments, out):
    for i in range(position.shape[0]):
        x, y = position[i, 0], position[i, 1]
        for s in range(segments.shape[0]):
            if segments_touch(x, y, x, y, segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]):
                out[i] = True


@kernel
def _clear(x: float, y: float, px: float, py: float, segments: Floats, walls: WallGrid) -> bool:
    """Whether the step to p crosses no wall and no other part of the door, and leaves the parts that (x, y) is on."""
    if chord_blocked(x, y, px, py, walls):
        return False
    for s in range(segments.shape[0]):
        x0, y0, x1, y1 = segments[s, 0], segments[s, 1], segments[s, 2], segments[s, 3]
        on_it = segments_touch(x, y, x, y, x0, y0, x1, y1)
        if segments_touch(px, py, px, py, x0, y0, x1, y1) or (
            not on_it and segments_touch(x, y, px, py, x0, y0, x1, y1)
        ):
            return False
    return True
