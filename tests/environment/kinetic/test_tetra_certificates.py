"""Certificates: nothing within the tolerance may change a sign, and they are not much smaller than they have to be."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.predicates_3d import in_sphere, orientation_3d
from tropel.environment.kinetic.tetra_arrays import TetraArrays, glue, make_arrays
from tropel.environment.kinetic.tetra_certificates import tolerances_of

Floats = NDArray[np.float64]


@kernel
def _tolerances(m):
    """Of the tetrahedron alone, and with its last face, below 0 if that is in doubt."""
    alone, _, _ = tolerances_of(m, 0, 0)
    together, in_doubt, _ = tolerances_of(m, 0, 8)
    return alone, -1.0 if in_doubt else together


def two_tets(points: Floats) -> TetraArrays | None:
    """Tetrahedron 0 of the first four points, and the fifth behind its last face; None if they lie otherwise."""
    if orientation_3d(*points[:4].ravel()) <= 0 or orientation_3d(*points[[0, 1, 2, 4]].ravel()) >= 0:
        return None
    arrays = make_arrays(5, 2)
    arrays.position[:, :3] = points
    arrays.tet_vertex[:] = [[0, 1, 2, 3], [1, 0, 2, 4]]
    glue(arrays, 3, 7)
    return arrays


def five_points(rng: np.random.Generator, kind: str) -> Floats:
    if kind == "random":
        return rng.random((5, 3))
    if kind == "flat":
        return rng.random((5, 3)) * [1.0, 1.0, 0.01]
    on_sphere = rng.normal(size=(5, 3))
    on_sphere /= np.linalg.norm(on_sphere, axis=1)[:, None]
    return on_sphere + 1e-3 * rng.normal(size=(5, 3))


def worst_moves(points: Floats, size: int) -> Floats:
    """The direction for each of the first `size` points in which its determinant falls fastest."""

    def value(p: Floats) -> float:
        rows = p[: size - 1] - p[size - 1]
        if size == 5:
            rows = np.c_[rows, (rows * rows).sum(axis=1)]
            return -float(np.linalg.det(rows))
        return float(np.linalg.det(rows))

    step = 1e-6
    gradient = np.zeros((5, 3))
    for i in range(size):
        for axis in range(3):
            there, back = points.copy(), points.copy()
            there[i, axis] += step
            back[i, axis] -= step
            gradient[i, axis] = value(there) - value(back)
    length = np.linalg.norm(gradient, axis=1)
    return -gradient / np.where(length > 0.0, length, 1.0)[:, None]


@pytest.mark.parametrize("kind", ["random", "flat", "nearly cospherical"])
def test_no_move_within_the_tolerance_changes_a_sign(kind: str) -> None:
    rng = np.random.default_rng(0)
    tried, sharp = 0, []
    while tried < 150:
        points = five_points(rng, kind)
        arrays = two_tets(points)
        if arrays is None:
            continue
        tet, face = _tolerances(arrays)
        outside = in_sphere(*points.ravel()) < 0
        assert outside or face < 0.0
        tried += 1
        moves = [random / np.linalg.norm(random, axis=1)[:, None] for random in rng.normal(size=(20, 5, 3))]
        for move in [worst_moves(points, 4), *moves]:
            assert orientation_3d(*(points + tet * move)[:4].ravel()) > 0
        if outside and face > 0.0:
            for move in [worst_moves(points, 5), *moves]:
                moved = points + face * move
                assert orientation_3d(*moved[:4].ravel()) > 0
                assert in_sphere(*moved.ravel()) < 0
            fails = next((f for f in (1, 1.5, 2, 3, 5, 10, 30) if _fails(points, f * face)), 100)
            sharp.append(fails)
    assert np.median(sharp) <= 10.0


def _fails(points: Floats, length: float) -> bool:
    moved = points + length * worst_moves(points, 5)
    return bool(orientation_3d(*moved[:4].ravel()) <= 0 or in_sphere(*moved.ravel()) >= 0)
