"""Seek: walk at the desired speed in the planned direction, slow down behind others, step around when that helps.

The smallest honest model, and the template for your own. An agent looks along a fan of directions (straight on, and to
the sides) and takes the one that brings it forward fastest. Along each, others leave a free gap, and the speed is

    v = min(v0, gap / T)            T = `time_gap`

the linear part of the speed-distance relation people show. The gap is what the body can travel along the direction
before it touches another body (straight line against disk, so also exact in 3D). With T of at least two time steps, two
agents that walk at each other stop before they touch.
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
from tropel.agents.state import AgentState, Steered
from tropel.errors import ParameterError, named_parameters


@named_parameters
@dataclass(frozen=True, kw_only=True)
class SeekParameters:
    """Parameters of `Seek`."""

    time_gap: float = 0.8  #: time kept to whoever is ahead [s]
    side_angles: tuple[float, ...] = (0.5, 1.0, 1.4)  #: how far it turns off the planned direction to pass [rad]
    margin: float = 0.02  #: room kept between bodies [m]

    def __post_init__(self) -> None:
        if not self.time_gap > 0.0:
            raise ParameterError(f"Seek: time_gap must be positive, not {self.time_gap!r} s")
        if not self.margin >= 0.0:
            raise ParameterError(f"Seek: margin must not be negative, not {self.margin!r} m")
        if not all(0.0 < angle < math.pi / 2 for angle in self.side_angles):
            raise ParameterError(f"Seek: side_angles must lie between 0 and pi/2, not {self.side_angles!r}")


@kernel
def _free_gap(x, y, z, ex, ey, ez, own, radius, sense_radius, most, cells):
    """How far a body at (x, y, z) can go along the unit vector e before it touches another; at most `most`."""
    gap = most
    dim = cells.position.shape[1]
    x0, x1, y0, y1, z0, z1 = cell_window(cells, x, y, z, sense_radius)
    for cz in range(z0, z1 + 1):
        for cy in range(y0, y1 + 1):
            first, last = cell_run(cells, x0, x1, cy, cz)
            for k in range(first, last):
                if cells.order[k] == own:
                    continue
                dx = cells.position[k, 0] - x
                dy = cells.position[k, 1] - y
                dz = cells.position[k, 2] - z if dim == 3 else 0.0
                ahead = dx * ex + dy * ey + dz * ez
                contact = radius + cells.radius[k]
                if ahead <= 0.0 or ahead - contact >= gap:
                    continue
                away2 = dx * dx + dy * dy + dz * dz
                aside2 = away2 - ahead * ahead
                if away2 > sense_radius * sense_radius or aside2 >= contact * contact:
                    continue
                gap = min(gap, max(ahead - math.sqrt(contact * contact - aside2), 0.0))
    return gap


@parallel_kernel
def _seek(state_position, state_heading, desired_speed, sense_radius, body_radius, directions, members, cells,
          time_gap, margin, turns, out_velocity, out_heading):  # fmt: skip
    dim = state_position.shape[1]
    sides = 2 if dim == 2 else 4
    for m in numba.prange(members.size):
        i = members[m]
        x, y = state_position[i, 0], state_position[i, 1]
        z = state_position[i, 2] if dim == 3 else 0.0
        ex, ey = directions[i, 0], directions[i, 1]
        ez = directions[i, 2] if dim == 3 else 0.0
        length = math.sqrt(ex * ex + ey * ey + ez * ez)
        wanted = desired_speed[i] * min(length, 1.0)
        if length == 0.0 or wanted == 0.0:
            continue
        ex, ey, ez = ex / length, ey / length, ez / length
        radius = body_radius[i] + 0.5 * margin
        most = wanted * time_gap
        speed = _free_gap(x, y, z, ex, ey, ez, i, radius, sense_radius[i], most, cells) / time_gap
        best, vx, vy, vz = speed, speed * ex, speed * ey, speed * ez
        if speed < wanted:
            # Two unit vectors that span, with e, the space to turn in; in 2D only the first is used.
            if dim == 2:
                ux, uy, uz = ey, -ex, 0.0
                wx = wy = wz = 0.0
            else:
                flat = math.sqrt(ex * ex + ey * ey)
                if flat > 1e-9:
                    ux, uy, uz = ey / flat, -ex / flat, 0.0
                else:
                    ux, uy, uz = 1.0, 0.0, 0.0
                wx, wy, wz = uy * ez - uz * ey, uz * ex - ux * ez, ux * ey - uy * ex
            for turn in range(turns.shape[0]):
                cosine, sine = turns[turn, 0], turns[turn, 1]
                if best >= wanted * cosine:
                    break
                for side in range(sides):
                    # Right before left: where both are as good, people pass on the right.
                    sign = sine if side % 2 == 0 else -sine
                    sx, sy, sz = (ux, uy, uz) if side < 2 else (wx, wy, wz)
                    cx, cy, cz = cosine * ex + sign * sx, cosine * ey + sign * sy, cosine * ez + sign * sz
                    speed = _free_gap(x, y, z, cx, cy, cz, i, radius, sense_radius[i], most, cells) / time_gap
                    if speed * cosine > best + 1e-12:
                        best, vx, vy, vz = speed * cosine, speed * cx, speed * cy, speed * cz
        out_velocity[i, 0] = vx
        out_velocity[i, 1] = vy
        if dim == 3:
            out_velocity[i, 2] = vz
        moving = math.sqrt(vx * vx + vy * vy + vz * vz)
        # Who is stopped faces where it wants to go.
        out_heading[i, 0] = vx / moving if moving > 1e-9 else ex
        out_heading[i, 1] = vy / moving if moving > 1e-9 else ey
        if dim == 3:
            out_heading[i, 2] = vz / moving if moving > 1e-9 else ez


class Seek:
    """Walk in the planned direction; slow down behind others, or step around them."""

    def __init__(self, **parameters: Any) -> None:
        self.parameters = SeekParameters(**parameters)
        angles = np.array(self.parameters.side_angles, dtype=np.float64)
        self._turns = np.column_stack([np.cos(angles), np.sin(angles)])

    def steer(
        self,
        state: AgentState,
        near: Any,
        directions: NDArray[np.float64],
        members: NDArray[np.int64],
        dt: float,
        step: int,
        out: Steered,
    ) -> None:
        """Write velocity and heading of the members into `out`."""
        cells: CellList = near.cells
        time_gap = max(self.parameters.time_gap, 2.0 * dt)
        _seek(state.position, state.heading, state.desired_speed, state.sense_radius, state.radius, directions, members,
              cells, time_gap, self.parameters.margin, self._turns, out.velocity, out.heading)  # fmt: skip
