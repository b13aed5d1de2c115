"""Everything that must be true after a step, checked by brute force: slow; for tests and for hunting bugs.

- The structure is what it claims to be (`checks.py`, `tetra_check.py`).
- A_p is exact: each agent's neighbours are those that brute force finds.
- The list of each agent has everybody up to the distance that it claims, so nobody can come in unnoticed.
- E_p is complete: every edge from an agent, or from somebody that it knows of, to a vertex outside of its circle is
  among the edges on which a walk from vertex to vertex leaves the circle. In 2D.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged
from tropel.agents.state import Floats
from tropel.contracts import Near
from tropel.environment.kinetic.checks import first_fault
from tropel.environment.kinetic.lists import NearLists
from tropel.environment.kinetic.mesh import GHOSTS
from tropel.environment.kinetic.plane import InPlane
from tropel.environment.kinetic.shown import vertex_pairs, walk_around
from tropel.environment.kinetic.space import InSpace
from tropel.errors import ModelError

Rows = NDArray[np.int64]

#: Distances within this share of a radius may go either way where a triangulation is not exactly where agents are.
_ROUNDING = 1e-6


def check_structure(crowd: InPlane | InSpace) -> None:
    """Raise unless the triangulation or tetrahedralisation is valid and Delaunay."""
    if isinstance(crowd, InSpace):
        crowd.structure.check_invariants()
        return
    fault = first_fault(crowd.moving.mesh)
    if fault is not None:
        raise ModelError(f"the triangulation is broken: {fault.what} (at {fault.where})")


def check_near_sets(crowd: InPlane | InSpace, near: Near, radius: Floats, found: Ragged, tracked: Rows | None) -> None:
    """Raise unless these lists, and what is kept to make the next ones, are what brute force finds."""
    rows = np.arange(len(near.state)) if tracked is None else tracked
    position = near.state.position
    for row in range(len(near.state)) if tracked is not None else ():
        if row not in rows and found.length[row]:
            raise ModelError(f"agent {int(near.state.id[row])} is not tracked and has neighbours")
    kept = crowd.kept_lists(near, radius)
    for row, reach in zip(rows.tolist(), kept.complete_to()[rows].tolist(), strict=True):
        away2 = ((position - position[row]) ** 2).sum(axis=1)
        inside = away2 <= radius[row] ** 2
        inside[row] = False
        wanted = np.flatnonzero(inside)
        if isinstance(crowd, InPlane):
            wanted = crowd.known_to(row, wanted, near.state, near.world, float(radius[row]))
        listed = np.sort(found.of(row).astype(np.int64))
        _compare(near, row, listed, wanted, f"within {radius[row]:g} m")
        if not reach >= radius[row]:
            raise ModelError(f"the list of agent {int(near.state.id[row])} is used up, and was not filled again")
        _check_kept(kept, near, row, np.flatnonzero(away2 <= (reach * (1.0 - _ROUNDING)) ** 2))
    if isinstance(crowd, InPlane):
        _check_crossing(crowd, near, radius, found, rows)


def _compare(near: Near, row: int, listed: Rows, wanted: Rows, where: str) -> None:
    if np.array_equal(listed, wanted):
        return
    ids = near.state.id
    missing, wrong = ids[np.setdiff1d(wanted, listed)].tolist(), ids[np.setdiff1d(listed, wanted)].tolist()
    raise ModelError(
        f"the neighbours of agent {int(ids[row])} {where} are not those that brute force finds: "
        f"missing {missing}, wrong {wrong}"
    )


def _check_kept(kept: NearLists, near: Near, row: int, around: Rows) -> None:
    """Raise unless all of these rows are on the list of a row."""
    missing = np.setdiff1d(around[around != row], kept.on_list(row))
    if len(missing):
        ids = near.state.id
        raise ModelError(
            f"the list of agent {int(ids[row])} should have everybody up to what is left of its leash, and agents "
            f"{ids[missing].tolist()} are missing"
        )


def _check_crossing(crowd: InPlane, near: Near, radius: Floats, found: Ragged, rows: Rows) -> None:
    moving = crowd.moving
    mesh, vertices = moving.mesh, moving.vertices_of(near.state.id)
    edges = vertex_pairs(mesh)
    edges = np.concatenate([edges, edges[:, ::-1]])
    edges = edges[(edges >= GHOSTS).all(axis=1)]
    for row in rows.tolist():
        v, reach = int(vertices[row]), float(radius[row])
        known = np.append(vertices[found.of(row)], v)
        away = np.hypot(mesh.x[edges[:, 1]] - mesh.x[v], mesh.y[edges[:, 1]] - mesh.y[v])
        wanted = edges[np.isin(edges[:, 0], known) & (away > reach * (1.0 + _ROUNDING))]
        crossing = {tuple(edge) for edge in walk_around(mesh, v, reach)[1].tolist()}
        missing = [edge for edge in wanted.tolist() if tuple(edge) not in crossing]
        if missing:
            raise ModelError(
                f"of the edges that cross the circle of agent {int(near.state.id[row])}, {len(missing)} are missing"
            )
