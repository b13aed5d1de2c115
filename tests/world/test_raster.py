"""A raster is free where shapely says so, and no step between free neighbours crosses a wall."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel import Door, Obstacle, Orbit, World
from tropel.errors import GeometryError, ParameterError
from tropel.world.raster import Raster, rasterise

HALL = shapely.box(0, 0, 12, 8) - shapely.Polygon([(3, 2), (6, 3), (4, 6)])


def random_walls(seed: int, count: int = 14) -> list[list[tuple[float, float]]]:
    generator = np.random.default_rng(seed)
    starts = generator.uniform((0, 0), (12, 8), (count, 2))
    ends = starts + generator.normal(0.0, 2.0, (count, 2))
    return [[tuple(a), tuple(b)] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]


def centres_of(raster: Raster) -> np.ndarray:
    return raster.centre(np.argwhere(np.ones(raster.shape, dtype=bool)))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cell=st.floats(0.15, 0.7), clearance=st.floats(0.0, 0.5))
def test_free_is_what_shapely_measures(seed: int, cell: float, clearance: float) -> None:
    world = World(HALL, walls=random_walls(seed), obstacles={"pillar": Obstacle(radius=0.5, position=(9, 4))})
    raster = rasterise(world, cell=cell, clearance=clearance)
    points = shapely.points(centres_of(raster))
    solid = shapely.union_all([HALL.boundary, *world.walls, shapely.Point(9, 4).buffer(0.5, quad_segs=200)])
    away = shapely.distance(points, solid)
    reach = max(clearance, 0.7072 * cell)
    expected = (shapely.contains(HALL, points) & (away >= reach)).reshape(raster.shape)
    in_doubt = (np.abs(away - reach) < 1e-4).reshape(raster.shape)
    np.testing.assert_array_equal(raster.free[~in_doubt], expected[~in_doubt])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), cell=st.floats(0.15, 0.9), origin=st.floats(-1e5, 1e5))
def test_no_step_between_free_neighbours_crosses_a_wall(seed: int, cell: float, origin: float) -> None:
    walls = [shapely.transform(shapely.LineString(w), lambda p: p + origin) for w in random_walls(seed)]
    hall = shapely.transform(HALL, lambda p: p + origin)
    raster = rasterise(World(hall, walls=walls), cell=cell, clearance=0.0)
    solid = shapely.STRtree([*walls, *shapely.get_parts(hall.boundary)])
    for sy, sx in ((0, 1), (1, 0), (1, 1), (1, -1)):
        ny, nx = raster.shape
        index = np.argwhere(raster.free)
        there = index + np.array([sy, sx])
        inside = (there[:, 0] < ny) & (there[:, 1] < nx) & (there[:, 1] >= 0)
        index, there = index[inside], there[inside]
        both = raster.free[tuple(there.T)]
        chords = shapely.linestrings(np.stack([raster.centre(index[both]), raster.centre(there[both])], axis=1))
        assert solid.query(chords, predicate="intersects").size == 0


def test_a_smaller_margin_would_let_walls_through() -> None:
    # The wall passes between two centres of a diagonal step at 0.6 cells from both.
    raster = rasterise(World(bounds=(0, 0, 4, 4), walls=[[(0.0, 3.0), (3.0, 0.0)]]), cell=1.0, clearance=0.0)
    assert not raster.free[1, 1]
    assert not raster.free[0, 2]
    away = np.abs(centres_of(raster) @ (1, 1) - 3.0) / np.sqrt(2.0)
    assert (away[raster.free.ravel()] > 0.707).all()


def test_doors_block_only_while_they_are_closed() -> None:
    world = World(shapely.box(0, 0, 6, 4), doors={"door": Door([(3, 0), (3, 4)], open=True)})
    row, column = rasterise(world).index_of((2.95, 2.0))
    assert rasterise(world).free[row, column]
    world.set_door("door", open=False)
    assert not rasterise(world).free[row, column]


def test_obstacles_block_when_they_stand_and_not_when_they_move() -> None:
    world = World(bounds=(0, 0, 10, 10), obstacles={"pillar": Obstacle(radius=1.0, position=(3, 3))})
    assert not rasterise(world).free[tuple(rasterise(world).index_of((3.0, 3.0)))]
    world = World(
        bounds=(0, 0, 10, 10),
        obstacles={"cart": Obstacle(radius=1.0, motion=Orbit(center=(3, 3), radius=0.1, period=5))},
    )
    assert rasterise(world).free.all()


def test_a_box_has_cells_in_three_axes() -> None:
    world = World.box((0, 0, 0), (6, 4, 2), obstacles={"ball": Obstacle(radius=0.8, position=(3, 2, 1))})
    raster = rasterise(world, cell=0.25, clearance=0.1)
    assert raster.shape == (8, 16, 24)
    away = np.linalg.norm(centres_of(raster) - (3, 2, 1), axis=1) - 0.8
    np.testing.assert_array_equal(raster.free.ravel(), away >= 0.8661 * 0.25)


@pytest.mark.parametrize("dim", [2, 3])
def test_indices_and_centres_are_inverse(dim: int) -> None:
    shape = (4, 5, 7)[3 - dim :]
    raster = Raster(origin=np.arange(dim) - 0.3, cell=0.7, free=np.ones(shape, dtype=bool))
    for index in itertools.product(*(range(n) for n in shape)):
        assert tuple(raster.index_of(raster.centre(index))) == index
    assert tuple(raster.index_of(np.full(dim, -99.0))) == (0,) * dim
    assert tuple(raster.index_of(np.full(dim, 99.0))) == tuple(n - 1 for n in shape)


def test_the_digest_tells_rasters_apart() -> None:
    world = World(shapely.box(0, 0, 6, 4), doors={"door": Door([(3, 0), (3, 4)], open=True)})
    digests = {rasterise(world).digest(), rasterise(world, cell=0.1).digest(), rasterise(world, clearance=0.3).digest()}
    assert rasterise(world).digest() in digests
    world.set_door("door", open=False)
    assert len(digests | {rasterise(world).digest()}) == 4


def test_a_map_larger_than_memory_is_refused_before_it_is_made() -> None:
    with pytest.raises(GeometryError, match=r"1000000000 × 1000000000 cells of 1e-06 m would need .* use cells of"):
        rasterise(World(shapely.box(0, 0, 1000, 1000)), cell=1e-6)


@pytest.mark.parametrize(("wrong", "what"), [({"cell": 0.0}, "cell"), ({"clearance": -0.1}, "clearance")])
def test_meaningless_lengths_are_refused(wrong: dict[str, float], what: str) -> None:
    with pytest.raises(ParameterError, match=what):
        rasterise(World(shapely.box(0, 0, 4, 4)), **wrong)
