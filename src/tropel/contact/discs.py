"""Round obstacles during one step: who would walk into one slides along it, and nobody jumps over one.

A move and an obstacle are looked at in the frame of the obstacle, which moves by itself during the step: the move goes
from f to f + d, and must not come within `contact`, the sum of both radii, of the origin. From the point where it
would, only the part along the surface is left; its end lies on the tangent plane there, and so does no point of the
chord inside it. Pushing the end point out radially was rejected: it puts whoever got past the middle on the far side.

Obstacles that do not push (hazards) are taken as standing still where they are, and who is inside already only gets no
deeper.
"""

from __future__ import annotations

import math

from tropel._kernels.compile import kernel
from tropel._kernels.discs import disc_cell

#: A move enters an obstacle when it comes this share of the contact distance too near; less is rounding.
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
    # The point of the line nearest to the origin, and half of the line's way through.
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
        # Inside from the start (the obstacle was put there, say) and not out yet.
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
    """Start, displacement (both seen from the obstacle) and the obstacle's centre at the end of the step."""
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
    """How near a body may come to the centre of obstacle m, which it sees at -f."""
    contact = discs.radius[m] + radius
    return contact if discs.pushes[m] else min(contact, _length(fx, fy, fz))


@kernel
def _candidates(position, i, p, radius, discs):
    """First and last + 1 of the obstacles to look at, and whether these are places in the list of the agent's cell."""
    dz = p[2] - position[i, 2] if position.shape[1] == 3 else 0.0
    step = math.sqrt((p[0] - position[i, 0]) ** 2 + (p[1] - position[i, 1]) ** 2 + dz * dz)
    if not step + radius <= discs.reach:
        return 0, discs.radius.size, False
    cell = disc_cell(position, i, discs)
    return discs.start[cell], discs.start[cell + 1], True


@kernel
def keep_out(position, i, p, radius, discs, dt):
    """Change the end point p of agent i's move so that it slides along obstacles, or stops at the first."""
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
    # Sliding along one leads into another: go as far as the first of them.
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
    """How deep [m] p is inside the obstacle it is deepest in at the end of the step; not positive when in none."""
    deepest = -math.inf
    first, last, listed = _candidates(position, i, p, radius, discs)
    for k in range(first, last):
        m = discs.items[k] if listed else k
        fx, fy, fz, dx, dy, dz, _, _, _ = _relative(position, i, p, discs, m, dt)
        deepest = max(deepest, _ENTERS * _contact(fx, fy, fz, radius, discs, m) - _length(fx + dx, fy + dy, fz + dz))
    return deepest
