"""How boids react to obstacles and walls: repulsion that grows with nearness, and steering around what is ahead.

Repulsion is a sum over everything with a gap g to the boid's body of less than the sense radius R, with u the direction
to its nearest point:

    - sum of u (1 - g / R)²

Steering checks the path along the velocity, up to the distance L that the boid covers within `look_ahead` and can see.
If a body with twice the radius would touch something there after a distance f, the boid takes the smallest turn that is
free, to either side of the obstacle (in 3D four sides). If none is free, it takes the turn that leads farthest:

    (1 - f / L) · side            side: unit vector across the velocity

Between sides that are equally free, it takes the one away from the centre of the obstacle ahead. Walls in 2D have no
centre; in front of them it turns right.

A boid with a planned direction turns to that side if it is free: the smallest turn may lead back, and could keep a boid
for ever in front of a gap that its planner wants it to pass. The same holds for one that follows its leader's trail.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, kernel
from tropel._kernels.discs import DiscGrid, disc_cell
from tropel._kernels.walls import WallGrid, cell_at, free_of_walls, nearest_on_segment
from tropel.contracts import Near

#: Cosines and sines of the turns that are tried: 20, 40, 60 and 80 degrees.
_TURNS = tuple((math.cos(math.radians(a)), math.sin(math.radians(a))) for a in (20.0, 40.0, 60.0, 80.0))
#: The check ahead uses a body wider by this factor, so that boids do not graze obstacles.
_GROWN = 2.0


class ObstaclesAround(NamedTuple):
    """Obstacles as kernels read them."""

    discs: DiscGrid
    walls: WallGrid
    faces: NDArray[np.float64]  #: (2, 3): low and high faces of a box in 3D, infinite where it has none


_NO_FACES = np.array([[-math.inf] * 3, [math.inf] * 3])


def obstacles_around(near: Near, widest: float) -> tuple[ObstaclesAround, bool]:
    """The obstacles of a neighbourhood, and whether there are any; no body has a larger radius than `widest`.

    Gaps start at the surface of a body, and the check ahead uses a wider one. So the lists hold more than what is
    within the sense radius of a centre.
    """
    world = near.world
    reach = near.reach + _GROWN * widest
    faces = _NO_FACES
    if world.dim == 3:
        faces = np.where(world.walled, world.bounds, _NO_FACES)
    around = ObstaclesAround(world.obstacles.grid(reach), world.wall_grid(reach), faces)
    something = around.discs.radius.size or around.walls.segments.size
    return around, bool(something or (faces is not _NO_FACES and np.isfinite(faces).any()))


@inlined_kernel
def _pushed(px, py, pz, dx, dy, dz, away, gap, reach):
    """A repulsion plus that of one more object, at the offset d."""
    if gap >= reach or away == 0.0:
        return px, py, pz
    share = 1.0 - max(gap, 0.0) / reach
    scale = -share * share / away
    return px + scale * dx, py + scale * dy, pz + scale * dz


@inlined_kernel
def anything_near(position, i, radius, reach, around):
    """Whether anything may be within reach of agent i. Mostly nothing is, and the other functions can be skipped."""
    discs, walls = around.discs, around.walls
    if discs.radius.size > 0:
        cell = disc_cell(position, i, discs)
        if discs.start[cell] < discs.start[cell + 1]:
            return True
    if position.shape[1] == 2:
        if walls.segments.shape[0] == 0:
            return False
        cell = cell_at(position[i, 0], position[i, 1], walls.origin, walls.inverse_cell, walls.shape)
        return walls.start[cell] < walls.start[cell + 1]
    # The check ahead uses bodies twice as wide.
    far = reach + _GROWN * radius
    for axis in range(3):
        if position[i, axis] - far <= around.faces[0, axis] or position[i, axis] + far >= around.faces[1, axis]:
            return True
    return False


@kernel
def repulsion(position, i, radius, reach, around):
    """The repulsion of everything near agent i."""
    dim = position.shape[1]
    x, y = position[i, 0], position[i, 1]
    z = position[i, 2] if dim == 3 else 0.0
    px = py = pz = 0.0
    discs, walls = around.discs, around.walls
    if discs.radius.size > 0:
        cell = disc_cell(position, i, discs)
        for k in range(discs.start[cell], discs.start[cell + 1]):
            m = discs.items[k]
            dx, dy = discs.position[m, 0] - x, discs.position[m, 1] - y
            dz = discs.position[m, 2] - z if dim == 3 else 0.0
            away = math.sqrt(dx * dx + dy * dy + dz * dz)
            px, py, pz = _pushed(px, py, pz, dx, dy, dz, away, away - discs.radius[m] - radius, reach)
    if dim == 2:
        if walls.segments.shape[0] > 0:
            cell = cell_at(x, y, walls.origin, walls.inverse_cell, walls.shape)
            for k in range(walls.start[cell], walls.start[cell + 1]):
                s = walls.items[k]
                if walls.blocking[s]:
                    wall = walls.segments[s]
                    qx, qy = nearest_on_segment(x, y, wall[0], wall[1], wall[2], wall[3])
                    away = math.sqrt((qx - x) ** 2 + (qy - y) ** 2)
                    px, py, pz = _pushed(px, py, pz, qx - x, qy - y, 0.0, away, away - radius, reach)
        return px, py, pz
    for axis in range(3):
        for face in (around.faces[0, axis], around.faces[1, axis]):
            d = face - position[i, axis]
            dx, dy, dz = d if axis == 0 else 0.0, d if axis == 1 else 0.0, d if axis == 2 else 0.0
            if abs(d) < math.inf:
                px, py, pz = _pushed(px, py, pz, dx, dy, dz, abs(d), abs(d) - radius, reach)
    return px, py, pz


@kernel
def _first_disc(x, y, z, ex, ey, ez, body, most, discs, begin, end):
    """How far a body can move along the unit vector e before it touches a round obstacle, and which; -1 for none."""
    free, first = most, -1
    for k in range(begin, end):
        m = discs.items[k]
        dx, dy = discs.position[m, 0] - x, discs.position[m, 1] - y
        dz = discs.position[m, 2] - z if discs.position.shape[1] == 3 else 0.0
        ahead = dx * ex + dy * ey + dz * ez
        contact = body + discs.radius[m]
        away2 = dx * dx + dy * dy + dz * dz
        inside = ahead * ahead - (away2 - contact * contact)
        if ahead > 0.0 and inside > 0.0:
            way = max(ahead - math.sqrt(inside), 0.0)
            if way < free:
                free, first = way, m
    return free, first


@kernel
def _first_face(x, y, z, ex, ey, ez, body, most, around):
    """The same for the faces of a box: the distance and the axis of the first contact, or -1."""
    free, first = most, -1
    for axis in range(3):
        p = x if axis == 0 else (y if axis == 1 else z)
        e = ex if axis == 0 else (ey if axis == 1 else ez)
        way = math.inf
        if e > 0.0:
            way = max(around.faces[1, axis] - body - p, 0.0) / e
        elif e < 0.0:
            way = max(p - around.faces[0, axis] - body, 0.0) / -e
        if way < free:
            free, first = way, axis
    return free, first


@kernel
def _free_distance(x, y, z, ex, ey, ez, body, most, around, begin, end, spatial):
    """How far a body can move along the unit vector e, at most `most`."""
    free, _ = _first_disc(x, y, z, ex, ey, ez, body, most, around.discs, begin, end)
    if spatial:
        return _first_face(x, y, z, ex, ey, ez, body, free, around)[0]
    return free_of_walls(x, y, ex, ey, body, free, around.walls)


@inlined_kernel
def _across(nx, ny, nz, ex, ey, ez, spatial):
    """The component of n across the unit vector e, as a unit vector; any vector across if it is zero."""
    along = nx * ex + ny * ey + nz * ez
    nx, ny, nz = nx - along * ex, ny - along * ey, nz - along * ez
    length = math.sqrt(nx * nx + ny * ny + nz * nz)
    if length < 1e-9:
        if not spatial or abs(ez) < 0.9:
            nx, ny, nz = ey, -ex, 0.0
        else:
            nx, ny, nz = 0.0, ez, -ey
        length = math.sqrt(nx * nx + ny * ny + nz * nz)
    return nx / length, ny / length, nz / length


@kernel
def steering(position, i, radius, vx, vy, vz, sight, wish, around):
    """The direction and strength (up to 1) of the turn of agent i, which has velocity v and looks as far as `sight`.

    `wish` is the planned direction, zero for none.
    """
    spatial = position.shape[1] == 3
    x, y = position[i, 0], position[i, 1]
    z = position[i, 2] if spatial else 0.0
    speed = math.sqrt(vx * vx + vy * vy + vz * vz)
    if speed == 0.0 or sight <= 0.0:
        return 0.0, 0.0, 0.0
    ex, ey, ez = vx / speed, vy / speed, vz / speed
    discs = around.discs
    begin = end = np.int64(0)
    if discs.radius.size > 0:
        cell = disc_cell(position, i, discs)
        begin, end = discs.start[cell], discs.start[cell + 1]
    body = _GROWN * radius
    free, disc = _first_disc(x, y, z, ex, ey, ez, body, sight, discs, begin, end)
    nx = ny = nz = 0.0
    if disc >= 0:
        nx, ny = x - discs.position[disc, 0], y - discs.position[disc, 1]
        nz = z - discs.position[disc, 2] if spatial else 0.0
    if spatial:
        nearer, axis = _first_face(x, y, z, ex, ey, ez, body, free, around)
        if axis >= 0:
            # Away from the face, against the direction of flight.
            nx = -ex if axis == 0 else 0.0
            ny = -ey if axis == 1 else 0.0
            nz = -ez if axis == 2 else 0.0
        free = nearer
    else:
        free = free_of_walls(x, y, ex, ey, body, free, around.walls)
    if free >= sight:
        return 0.0, 0.0, 0.0
    urgency = 1.0 - free / sight
    gx, gy, gz = wish
    wanted = math.sqrt(gx * gx + gy * gy + gz * gz)
    if wanted > 0.0:
        gx, gy, gz = gx / wanted, gy / wanted, gz / wanted
        if _free_distance(x, y, z, gx, gy, gz, body, sight, around, begin, end, spatial) >= sight:
            sx, sy, sz = _across(gx, gy, gz, ex, ey, ez, spatial)
            return urgency * sx, urgency * sy, urgency * sz
    nx, ny, nz = _across(nx, ny, nz, ex, ey, ez, spatial)
    mx, my, mz = ey * nz - ez * ny, ez * nx - ex * nz, ex * ny - ey * nx
    best = -1.0
    sx = sy = sz = 0.0
    for cosine, sine in _TURNS:
        for side in range(4 if spatial else 2):
            ux, uy, uz = (nx, ny, nz) if side < 2 else (mx, my, mz)
            if side % 2 == 1:
                ux, uy, uz = -ux, -uy, -uz
            way = _free_distance(x, y, z, cosine * ex + sine * ux, cosine * ey + sine * uy, cosine * ez + sine * uz,
                                 body, sight, around, begin, end, spatial)  # fmt: skip
            # Only if clearly farther: if both sides are equally free, the one away from the obstacle's centre is taken.
            if way > best + 1e-9 * sight:
                best, sx, sy, sz = way, ux, uy, uz
        if best >= sight:
            break
    return urgency * sx, urgency * sy, urgency * sz
