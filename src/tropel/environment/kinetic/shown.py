"""What displays show of a triangulation in the plane: its edges, and the near set of one agent (LAYERS figure 5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.contracts.offers import Neighbourhood
from tropel.environment.kinetic.mesh import GHOSTS, Mesh


def edges_of(mesh: Mesh, *, constrained: bool) -> Floats:
    """(E, 2, 2): the ends of all ordinary edges, or of all constrained ones, without those to ghosts."""
    ends = vertex_pairs(mesh, constrained=constrained)
    ends = ends[(ends >= GHOSTS).all(axis=1)]
    return np.stack([mesh.x[ends], mesh.y[ends]], axis=-1)


def vertex_pairs(mesh: Mesh, *, constrained: bool | None = None) -> NDArray[np.int32]:
    """(E, 2): the vertices of each edge once; of all, of the ordinary or of the constrained ones."""
    half_edges = np.flatnonzero((mesh.corner >= 0) & (mesh.twin > np.arange(len(mesh.twin))))
    if constrained is not None:
        half_edges = half_edges[(mesh.constrained[half_edges] != 0) == constrained]
    return np.stack([mesh.corner[_after(half_edges)], mesh.corner[_after(_after(half_edges))]], axis=1)


def neighbourhood_of(mesh: Mesh, v: int, reach: float, agents: NDArray[np.int32]) -> Neighbourhood:
    """Those approachable from a vertex, and the edges from them to vertices outside of the circle."""
    inside, ends = walk_around(mesh, v, reach)
    rows = inside[np.isin(inside, agents)]
    return Neighbourhood(
        here=np.array([mesh.x[v], mesh.y[v]]),
        reach=reach,
        known=np.stack([mesh.x[rows], mesh.y[rows]], axis=-1),
        crossing=np.stack([mesh.x[ends], mesh.y[ends]], axis=-1),
    )


def walk_around(mesh: Mesh, v: int, reach: float) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The vertices within reach that a walk from v meets, and the edges (M, 2) on which it would leave the circle."""
    inside, crossing = {v: None}, []
    waiting = [v]
    while waiting:
        u = waiting.pop()
        for w in _next_to(mesh, u):
            if w < GHOSTS or w in inside:
                continue
            if np.hypot(mesh.x[w] - mesh.x[v], mesh.y[w] - mesh.y[v]) <= reach:
                inside[w] = None
                waiting.append(w)
            else:
                crossing.append((u, w))
    return np.array([w for w in inside if w != v], dtype=np.int64), np.array(crossing, dtype=np.int64).reshape(-1, 2)


def _after(half_edges: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.where(half_edges % 3 == 2, half_edges - 2, half_edges + 1)


def _next_to(mesh: Mesh, v: int) -> list[int]:
    """The vertices next to a vertex."""
    found = []
    first = h = int(mesh.star[v])
    while True:
        after, before = (h + 1 if h % 3 != 2 else h - 2), (h - 1 if h % 3 != 0 else h + 2)
        found.append(int(mesh.corner[after]))
        across = int(mesh.twin[after])
        if across < 0:
            return [*found, int(mesh.corner[before])]
        h = across + 1 if across % 3 != 2 else across - 2
        if h == first:
            return found
