"""What agents can see: the cone of view around their heading, and whether walls hide something.

The column `view_angle` is the opening of the cone, the same for every model. Whoever has one sees others and changing
things only if some part of them is inside; the default, a full turn, leaves nothing out.
"""

from __future__ import annotations

import math

import numpy as np

from tropel._kernels.compile import inlined_kernel
from tropel.agents.state import AgentState, Column, Floats

ALL_ROUND = 2.0 * math.pi

VIEW_ANGLE = Column(
    name="view_angle",
    default=ALL_ROUND,
    unit="rad",
    low=0.0,
    high=ALL_ROUND,
    about="objects outside this cone are not seen",
)


@inlined_kernel
def is_in_cone(dx, dy, dz, size, hx, hy, hz, view_angle):
    """Whether any part of a disc or ball of this size at the offset d is in the cone of view around the unit vector h.

    A body that the eye is inside of is seen whatever the cone.
    """
    if view_angle >= ALL_ROUND:
        return True
    away = math.sqrt(dx * dx + dy * dy + dz * dz)
    if away <= size:
        return True
    cosine = (dx * hx + dy * hy + dz * hz) / away
    return math.acos(min(max(cosine, -1.0), 1.0)) - math.asin(size / away) <= 0.5 * view_angle


def view_angles(state: AgentState) -> Floats:
    """The opening of the cone of each agent [rad]; a full turn for agents outside of any simulation, without any."""
    angles = state.columns.get(VIEW_ANGLE.name)
    return np.full(len(state), ALL_ROUND) if angles is None else angles


def somebody_is_limited(state: AgentState) -> bool:
    """Whether any agent has a cone of view that leaves something out."""
    angles = state.columns.get(VIEW_ANGLE.name)
    return angles is not None and float(angles.min(initial=ALL_ROUND)) < ALL_ROUND
