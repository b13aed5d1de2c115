"""Working memory for the steps of a mesh, and what a step reports."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.environment.kinetic.certificates import PACES
from tropel.environment.kinetic.mesh import Mesh
from tropel.environment.kinetic.vertices import MOST_AROUND

#: Entries of a step's report: certificates looked at, and failed; vertices that were reinserted.
LOOKED_AT, FAILED, REINSERTED, REPORTED = 0, 1, 2, 3


class Desk(NamedTuple):
    """Working memory for repairs."""

    old_x: NDArray[np.float64]  #: (V,): before the step
    old_y: NDArray[np.float64]
    true_x: NDArray[np.float64]  #: (V,): where the vertex really is; it may be slightly aside in the mesh
    true_y: NDArray[np.float64]
    stirred: NDArray[np.uint8]  #: (V,): whether it has moved, as one of few, since certificates were last looked at
    calm: NDArray[np.uint8]  #: (V,): steps in which it was slower than its class
    waiting: NDArray[np.int32]  #: (V,): vertices that went back
    recheck: NDArray[np.int32]  #: (V,)
    due: NDArray[np.int32]  #: half-edges
    turned: NDArray[np.int32]  #: half-edges of triangles that have turned over
    border: NDArray[np.int32]
    outside: NDArray[np.int32]
    walls: NDArray[np.uint8]
    cut: NDArray[np.int32]  #: (K, 2): constrained edges of vertices that are reinserted
    crossing: NDArray[np.int32]
    most: NDArray[np.float64]  #: (PACES,)


def new_desk(mesh: Mesh) -> Desk:
    vertices, half_edges = len(mesh.x), len(mesh.corner)
    old_x, old_y, true_x, true_y = (column.copy() for column in (mesh.x, mesh.y) * 2)
    return Desk(
        old_x=old_x,
        old_y=old_y,
        true_x=true_x,
        true_y=true_y,
        stirred=np.zeros(vertices, dtype=np.uint8),
        calm=np.zeros(vertices, dtype=np.uint8),
        waiting=np.zeros(vertices, dtype=np.int32),
        recheck=np.zeros(vertices, dtype=np.int32),
        due=np.zeros(half_edges, dtype=np.int32),
        turned=np.zeros(2 * half_edges, dtype=np.int32),
        border=np.zeros(MOST_AROUND, dtype=np.int32),
        outside=np.zeros(MOST_AROUND, dtype=np.int32),
        walls=np.zeros(MOST_AROUND, dtype=np.uint8),
        cut=np.zeros((half_edges, 2), dtype=np.int32),
        crossing=np.zeros(half_edges, dtype=np.int32),
        most=np.zeros(PACES),
    )
