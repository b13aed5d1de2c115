"""Cells of a lattice crowd: free where shapely says so, and no step between free neighbours crosses a wall."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from tropel import Door, Obstacle, Orbit, World
from tropel.errors import GeometryError, ParameterError
from tropel.world.raster import Raster, lattice_cells

CELL = 0.4
SIZE = (12.0, 8.0)


def random_polygon(generator: np.random.Generator) -> shapely.Polygon:
    """A hall with holes, of which some have corners and sides on the grid."""
    hall = shapely.box(0, 0, *SIZE)
    for _ in range(int(generator.integers(1, 5))):
        middle = generator.uniform((1, 1), (11, 7))
        angles = np.sort(generator.uniform(0, 2 * math.pi, int(generator.integers(3, 8))))
        corners = middle + generator.uniform(0.3, 2.0) * np.column_stack([np.cos(angles), np.sin(angles)])
        if generator.random() < 0.5:
            corners = np.round(corners / CELL) * CELL
        hole = shapely.Polygon(corners).buffer(0)
        hall = hall - hole
    parts = [part for part in shapely.get_parts(hall) if part.geom_type == "Polygon"]
    return max(parts, key=lambda part: part.area)


def random_lines(generator: np.random.Generator, count: int) -> list[shapely.LineString]:
    """Thin walls: anyhow, from grid point to grid point, and along grid lines."""
    lines = []
    for _ in range(count):
        begin = generator.uniform((0, 0), SIZE)
        end = begin + generator.normal(0.0, 2.0, 2)
        kind = generator.integers(0, 3)
        if kind >= 1:
            begin, end = np.round(begin / CELL) * CELL, np.round(end / CELL) * CELL
        if kind == 2:
            end = np.where(generator.random() < 0.5, (end[0], begin[1]), (begin[0], end[1]))
        if np.linalg.norm(end - begin) > 0.1:
            lines.append(shapely.LineString([begin, end]))
    return lines


def chords(raster: Raster) -> np.ndarray:
    """All steps between free neighbours: diagonal ones only where both cells beside them are free."""
    free, lines = raster.free, []
    rows, columns = raster.shape
    for y, x in np.argwhere(free).tolist():
        for dy, dx in ((0, 1), (1, 0), (1, 1), (1, -1)):
            v, u = y + dy, x + dx
            if v < rows and 0 <= u < columns and free[v, u] and free[v, x] and free[y, u]:
                lines.append([raster.centre([y, x]), raster.centre([v, u])])
    return shapely.linestrings(np.array(lines).reshape(-1, 2, 2))


@settings(max_examples=40)
@given(seed=st.integers(0, 100_000), cell=st.sampled_from([0.4, 0.4, 0.25, 0.33, 0.7]))
def test_no_step_between_free_neighbours_crosses_a_wall(seed: int, cell: float) -> None:
    generator = np.random.default_rng(seed)
    hall = random_polygon(generator)
    walls, doors = random_lines(generator, 5), random_lines(generator, 2)
    world = World(hall, walls=walls, doors={f"door {k}": Door(line) for k, line in enumerate(doors)})
    solid = shapely.STRtree([*walls, *doors, *shapely.get_parts(hall.boundary)])
    assert solid.query(chords(lattice_cells(world, cell)), predicate="intersects").size == 0


@settings(max_examples=40)
@given(seed=st.integers(0, 100_000))
def test_free_is_what_shapely_measures(seed: int) -> None:
    generator = np.random.default_rng(seed)
    hall = random_polygon(generator)
    walls = random_lines(generator, 4)
    disk = (generator.uniform((0, 0), SIZE), generator.uniform(0.1, 1.5))
    world = World(hall, walls=walls, obstacles={"disk": Obstacle(radius=disk[1], position=tuple(disk[0]))})
    raster = lattice_cells(world, CELL)
    index = np.array(list(np.ndindex(*raster.shape)))
    centres = raster.centre(index)
    half = 0.5 * CELL
    squares = shapely.box(*(centres - half - 1e-4).T, *(centres + half + 1e-4).T)
    middle = shapely.box(*(centres - half + 1e-4).T, *(centres + half - 1e-4).T)
    away = np.linalg.norm(centres - disk[0], axis=1) - disk[1]
    solid = shapely.union_all([hall.boundary, *walls])
    clear = shapely.covers(hall, middle) & ~shapely.intersects(squares, solid) & (away > half + 1e-3)
    blocked = ~shapely.contains(hall, shapely.points(centres)) | (away < half - 1e-3)
    blocked |= shapely.intersects(shapely.box(*(centres - half + 1e-3).T, *(centres + half - 1e-3).T), solid)
    free = raster.free.reshape(-1)
    assert free[clear].all()
    assert not free[blocked].any()
    assert (clear | blocked).mean() > 0.4


@pytest.mark.parametrize("cells", [1, 2, 3, 7])
@pytest.mark.parametrize("place", [(0, 0), (3, 5), (-7, 11)])
def test_a_door_of_some_cells_on_the_grid_has_that_many_free_cells(cells: int, place: tuple[int, int]) -> None:
    x, y = place[0] * 10 * CELL, place[1] * 10 * CELL
    rooms = shapely.union_all(
        [
            shapely.box(x, y, x + 10 * CELL, y + 10 * CELL),
            shapely.box(x + 11 * CELL, y, x + 21 * CELL, y + 10 * CELL),
            shapely.box(x + 10 * CELL, y + CELL, x + 11 * CELL, y + (1 + cells) * CELL),
        ]
    )
    free = lattice_cells(World(rooms), CELL).free
    assert free.shape == (10, 21)
    assert free[:, 10].sum() == cells
    assert free[1 : 1 + cells, 10].all()
    assert free[:, :10].all()
    assert free[:, 11:].all()


@pytest.mark.parametrize("horizontal", [False, True])
@pytest.mark.parametrize("at", [5 * CELL, 5.5 * CELL, 5 * CELL + 1e-12, 5 * CELL - 1e-12])
def test_a_thin_wall_takes_one_row_of_cells_and_lets_nobody_through(at: float, horizontal: bool) -> None:
    line = [(0.0, at), (4.0, at)] if horizontal else [(at, 0.0), (at, 4.0)]
    free = lattice_cells(World(shapely.box(0, 0, 4, 4), walls=[line]), CELL).free
    free = free if horizontal else free.T
    blocked = np.flatnonzero(~free.any(axis=1))
    assert blocked.size == 1
    assert free.sum() == 90


def test_a_gap_between_thin_walls_on_a_grid_line_is_as_wide_as_its_cells() -> None:
    world = World(shapely.box(0, 0, 8, 4), walls=[[(4, 0), (4, 1.2)], [(4, 2.4), (4, 4)]])
    free = lattice_cells(world, CELL).free
    assert free[3:6].all()
    assert (~free).sum() == 7
    # And one of one cell, between walls through the middle of cells, is open too.
    world = World(shapely.box(0, 0, 8, 4), walls=[[(4.2, 0), (4.2, 2.0)], [(4.2, 2.4), (4.2, 4)]])
    free = lattice_cells(world, CELL).free
    assert free[5].all()
    assert (~free).sum() == 9


def test_doors_take_cells_only_while_they_are_closed() -> None:
    world = World(shapely.box(0, 0, 6, 4), doors={"door": Door([(3.0, 0), (3.0, 4)], open=True)})
    assert lattice_cells(world).free.all()
    world.set_door("door", open=False)
    assert (~lattice_cells(world).free).sum() == 10
    world.set_door("door", open=True)
    assert lattice_cells(world).free.all()


def test_an_obstacle_takes_the_cells_whose_inscribed_circle_it_overlaps() -> None:
    for radius, place in itertools.product((0.05, 0.2, 0.61, 1.3), ((2.0, 2.0), (2.2, 2.2), (1.93, 2.08))):
        world = World(bounds=(0, 0, 4, 4), obstacles={"pillar": Obstacle(radius=radius, position=place)})
        raster = lattice_cells(world)
        index = np.array(list(np.ndindex(*raster.shape)))
        away = np.linalg.norm(raster.centre(index) - place, axis=1)
        sure = np.abs(away - radius - 0.2) > 1e-5
        np.testing.assert_array_equal(raster.free.reshape(-1)[sure], (away > radius + 0.2)[sure])
    # Two that touch a cell's circle without reaching into it leave it free.
    world = World(bounds=(0, 0, 4, 4), obstacles={"disk": Obstacle(radius=0.2, position=(2.2, 2.2))})
    assert (~lattice_cells(world).free).sum() == 1


def test_obstacles_that_move_take_no_cells() -> None:
    cart = Obstacle(radius=1.0, motion=Orbit(center=(3, 3), radius=0.1, period=5))
    assert lattice_cells(World(bounds=(0, 0, 10, 10), obstacles={"cart": cart})).free.all()


@pytest.mark.parametrize("origin", [0.0, 1e3, -123.4, 1e5 + 0.1])
def test_cells_are_the_same_wherever_the_world_lies(origin: float) -> None:
    def moved(shape: shapely.Geometry) -> shapely.Geometry:
        return shapely.transform(shape, lambda p: p + origin)

    hall = shapely.box(0, 0, 8, 6) - shapely.box(2, 2, 3.2, 4.4)
    wall = shapely.LineString([(4.2, 1.0), (6.9, 4.1)])
    here = lattice_cells(World(hall, walls=[wall])).free
    there = lattice_cells(World(moved(hall), walls=[moved(wall)])).free
    np.testing.assert_array_equal(here, there)


@pytest.mark.parametrize("cell", [0.0, -1.0, math.nan, math.inf])
def test_cells_that_are_no_length_are_refused(cell: float) -> None:
    with pytest.raises(ParameterError, match="positive length"):
        lattice_cells(World(shapely.box(0, 0, 4, 4)), cell)


def test_a_box_in_3d_and_a_map_too_large_are_refused() -> None:
    with pytest.raises(ParameterError, match="2D world"):
        lattice_cells(World.box((0, 0, 0), (1, 1, 1)))
    with pytest.raises(GeometryError, match="would need"):
        lattice_cells(World(shapely.box(0, 0, 1e6, 1e6)), 0.01)
