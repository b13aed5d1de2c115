"""Sampling a field: smooth in the open, on the right side of walls, zero where there is no way."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from tropel import World
from tropel.errors import ParameterError
from tropel.planning.fields.field import GridField
from tropel.planning.flow.model import FlowField
from tropel.world.raster import Raster, rasterise


def field_of(raster: Raster, vectors: np.ndarray, **more: object) -> GridField:
    nowhere = np.zeros(raster.shape, dtype=bool)
    return GridField(raster=raster, goal=nowhere, value=np.zeros(raster.shape), vectors=vectors, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("dim", [2, 3])
def test_between_free_cells_vectors_are_interpolated_linearly(dim: int) -> None:
    generator = np.random.default_rng(4)
    size = (6.0, 5.0, 4.0)[:dim]
    world = World(bounds=(0, 0, *size)) if dim == 2 else World.box((0, 0, 0), size)
    raster = rasterise(world, cell=0.5)
    angle = generator.uniform(-0.6, 0.6, raster.shape)
    vectors = np.zeros((*raster.shape, dim))
    vectors[..., 0], vectors[..., 1] = np.cos(angle), np.sin(angle)
    points = generator.uniform(0.3, np.array(size) - 0.3, (500, dim))
    expected = np.zeros_like(points)
    for row, point in enumerate(points):
        low = np.floor(point / 0.5 - 0.5).astype(int)
        part = point / 0.5 - 0.5 - low
        for corner in np.ndindex(*(2,) * dim):
            weight = np.prod(np.where(corner, part, 1.0 - part))
            expected[row] += weight * vectors[tuple((low + corner)[::-1])]
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(field_of(raster, vectors).sample(points, world), expected, atol=1e-6)


@pytest.mark.parametrize("angle", np.linspace(0.0, np.pi, 13))
def test_nobody_is_told_what_is_true_behind_the_wall(angle: float) -> None:
    along = np.array([np.cos(angle), np.sin(angle)])
    across = np.array([-along[1], along[0]])
    wall = shapely.LineString([5.0 - 20.0 * along, 5.0 + 20.0 * along])
    world = World(shapely.box(0, 0, 10, 10), walls=[wall])
    raster = rasterise(world)
    centres = raster.centre(np.argwhere(np.ones(raster.shape, dtype=bool)))
    left = ((centres - 5.0) @ across).reshape(raster.shape) > 0.0
    generator = np.random.default_rng(1)
    away = generator.uniform(1e-6, 0.5, 800) * generator.choice([-1.0, 1.0], 800)
    points = 5.0 + generator.uniform(-3.0, 3.0, (800, 1)) * along + away[:, None] * across
    told = []
    for behind in (-along, across, -across):
        field = field_of(raster, np.where(left[..., None], along, behind))
        told.append(field.sample(points, world))
    on_the_left = away > 0.0
    np.testing.assert_array_equal(told[0][on_the_left], told[1][on_the_left])
    np.testing.assert_array_equal(told[0][on_the_left], told[2][on_the_left])
    # In the open along the wall, and away from it before its clearance ends.
    np.testing.assert_allclose(told[0][away > 0.42] @ along, 1.0, atol=1e-6)
    assert (told[0] @ across)[(away > 0.0) & (away < 0.05)].min() > 0.3


def test_free_places_without_a_way_give_no_direction_and_are_reported() -> None:
    world = World(
        shapely.box(0, 0, 10, 6),
        walls=[[(6, 0), (6, 6)], [(8, 0), (8, 2), (10, 2)]],
        targets={"target": (1, 3)},
    )
    raster = rasterise(world)
    goal = np.zeros(raster.shape, dtype=bool)
    goal[tuple(raster.index_of((1.0, 3.0)))] = True
    field = FlowField().solve(raster, goal)
    lost = field.unreachable()
    behind = raster.centre(np.argwhere(raster.free))[:, 0] > 6.0
    assert lost.cells == behind.sum()
    assert len(lost.regions) == 2
    assert lost.sizes[0] > lost.sizes[1]
    assert lost.area == pytest.approx(lost.cells * 0.04)
    assert all(x > 6.0 for x, _ in lost.regions)
    assert "no path to the goal" in str(lost)
    directions = field.sample(np.array([[7.0, 4.0], [9.0, 1.0], [5.9, 4.0], [3.0, 3.0]]), world)
    assert (directions[:2] == 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(directions[2:], axis=1), 1.0)
    assert str(FlowField().solve(raster, raster.free).unreachable()) == "every free cell leads to the goal"


@pytest.mark.parametrize(("dim", "area"), [(2, "16 m²"), (3, "64 m³")])
def test_what_is_unreachable_is_an_area_or_a_volume(dim: int, area: str) -> None:
    raster = Raster(origin=np.zeros(dim), cell=2.0, free=np.ones((2,) * dim, dtype=bool), clearance=0.2)
    nowhere = np.full(raster.shape, -np.inf)
    field = GridField(raster=raster, goal=nowhere > 0, value=nowhere, vectors=np.zeros((*raster.shape, dim)))
    assert f"({area})" in str(field.unreachable())


def test_who_is_far_from_any_free_cell_stands() -> None:
    world = World(shapely.box(0, 0, 4, 4) | shapely.box(4, 1, 9, 1.3))
    raster = rasterise(world)
    goal = np.zeros(raster.shape, dtype=bool)
    goal[10, 10] = True
    field = FlowField().solve(raster, goal)
    np.testing.assert_array_equal(field.sample(np.array([[8.0, 1.15]]), world), [[0.0, 0.0]])


def test_points_beyond_the_raster_are_led_back() -> None:
    world = World(bounds=(0, 0, 4, 4))
    raster = rasterise(world)
    goal = np.zeros(raster.shape, dtype=bool)
    goal[10, 10] = True
    outside = np.array([[-1.0, 2.1], [5.0, 2.1], [2.1, -3.0]])
    directions = FlowField().solve(raster, goal).sample(outside, world)
    np.testing.assert_allclose(directions, [[1, 0], [-1, 0], [0, 1]], atol=0.1)


def test_arrays_of_another_shape_are_refused() -> None:
    raster = Raster(origin=np.zeros(2), cell=1.0, free=np.ones((3, 4), dtype=bool))
    with pytest.raises(ParameterError, match=r"vectors of a field on a raster \(3, 4\) must be \(3, 4, 2\)"):
        field_of(raster, np.zeros((4, 3, 2)))
