"""People of a lattice crowd are put on vacant cells, one each."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Door, Group, Lattice, Obstacle, Orbit, PathPlans, Seek, Simulation, Source, World, events
from tropel.errors import SpawnError
from tropel.local.lattice.placing import CellRoom
from tropel.world.raster import lattice_cells

CELL = 0.4
HALL = shapely.box(0, 0, 12, 8) - shapely.Polygon([(3, 2), (6, 3), (4, 6)])


def room(world: World, *, taken: Any = (), radius: float = 0.2) -> CellRoom:
    places = np.array(taken, dtype=np.float64).reshape(-1, 2)
    return CellRoom(world, cell=CELL, taken=places, taken_radius=np.full(len(places), radius))


def cells(positions: np.ndarray) -> set[tuple[int, int]]:
    return {(int(x), int(y)) for x, y in np.floor(positions / CELL).tolist()}


def spawn(
    space: CellRoom, count: int, *, region: Any = None, seed: int = 1, partial: bool = False, draw: int = 0
) -> Any:
    return space.spawn(count=count, region=region, seed=seed, who="people", first_draw=draw, partial=partial)


@pytest.mark.parametrize("region", [None, shapely.box(0, 0, 5, 5), shapely.Point(6, 4).buffer(3.0)])
def test_everybody_gets_a_free_cell_of_its_own_in_its_region(region: Any) -> None:
    world = World(HALL, obstacles={"pillar": Obstacle(radius=0.6, position=(9, 4))})
    raster = lattice_cells(world)
    centres = raster.centre(np.argwhere(raster.free))
    fit = centres if region is None else centres[shapely.contains_xy(region, *centres.T)]
    for count in (1, len(fit) // 3, len(fit)):
        positions = spawn(room(world), count, region=region)
        assert len(cells(positions)) == count
        assert cells(positions) <= cells(fit)
        np.testing.assert_allclose(np.mod(positions / CELL, 1.0), 0.5)


def test_one_more_than_there_are_cells_is_an_error_that_says_how_many_fit() -> None:
    space = room(World(shapely.box(0, 0, 2, 2)))
    with pytest.raises(SpawnError, match=r"group 'people': 26 agents do not fit on the 25 vacant cells of 0.4 m"):
        spawn(space, 26)
    assert len(spawn(space, 26, partial=True)) == 25
    with pytest.raises(SpawnError, match=r"6 agents do not fit on the 5 vacant cells of 0\.4 m in its region"):
        spawn(space, 6, region=shapely.box(0, 0, 0.4, 2))


def test_draws_depend_on_seed_and_step_and_on_nothing_else() -> None:
    world = World(HALL)
    same = [spawn(room(world), 50) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert cells(spawn(room(world), 50, seed=2)) != cells(same[0])
    assert cells(spawn(room(world), 50, draw=3)) != cells(same[0])


def test_every_cell_is_drawn_about_as_often() -> None:
    world = World(shapely.box(0, 0, 2, 2))
    counts = np.zeros((5, 5))
    for seed in range(400):
        for x, y in cells(spawn(room(world), 5, seed=seed)):
            counts[y, x] += 1
    # 400 draws of 5 in 25: 80 each, with a deviation of 8.
    assert np.abs(counts - 80).max() < 36


def test_cells_in_reach_of_somebody_or_of_a_moving_obstacle_are_not_vacant() -> None:
    cart = Obstacle(radius=0.5, motion=Orbit(center=(9, 4), radius=1.0, period=8.0))
    world = World(HALL, obstacles={"cart": cart})
    body, wide = np.array([1.1, 6.3]), 0.45
    space = room(world, taken=[body], radius=wide)
    positions = spawn(space, int(space.vacant.sum()))
    assert np.linalg.norm(positions - body, axis=1).min() >= wide + 0.2 - 1e-5
    assert np.linalg.norm(positions - world.obstacles.position[0], axis=1).min() >= 0.5 + 0.2 - 1e-5
    raster = lattice_cells(world)
    gaps = raster.centre(np.argwhere(raster.free & ~space.vacant))
    near = np.minimum(
        np.linalg.norm(gaps - body, axis=1) - wide,
        np.linalg.norm(gaps - world.obstacles.position[0], axis=1) - 0.5,
    )
    assert (near < 0.2 + 1e-5).all()


def test_given_places_become_the_nearest_vacant_cells_on_their_side_of_walls() -> None:
    world = World(shapely.box(0, 0, 8, 4), walls=[[(4.1, 0), (4.1, 4)]])
    places = np.array([[1.0, 1.0], [1.01, 1.02], [4.05, 2.2], [4.15, 2.2], [0.0, 0.0], [8.0, 4.0]])
    settled = room(world).settle(places, who="people")
    assert len(cells(settled)) == len(places)
    np.testing.assert_allclose(settled[0], (1.0, 1.0))
    assert np.linalg.norm(settled[1] - places[1]) < 0.6
    assert settled[2, 0] < 4.1 < settled[3, 0]
    np.testing.assert_allclose(settled[4:], [(0.2, 0.2), (7.8, 3.8)])


def test_a_place_without_a_vacant_cell_near_is_refused() -> None:
    space = room(World(shapely.box(0, 0, 0.8, 0.8)))
    with pytest.raises(SpawnError, match=r"group 'people': no vacant cell of 0\.4 m near"):
        space.settle(np.full((5, 2), 0.3), who="people")


def test_groups_sources_and_newcomers_never_share_cells() -> None:
    world = World(
        shapely.box(0, 0, 8, 4), exits={"out": shapely.box(7.6, 0, 8, 4)}, regions={"in": shapely.box(0, 0, 2, 4)}
    )
    sim = Simulation(
        world,
        [Group("a", count=30), Group("b", positions=[(1.0, 1.0)] * 9), Source("a", rate=30.0, region="in", total=80)],
        planning=PathPlans(), local=Lattice(headway=0.0), dt=0.1, seed=1,
    )  # fmt: skip
    for step in range(60):
        if step == 20:
            sim.add_agents("b", count=12)
        sim.step()
        assert len(cells(sim.agents.position)) == len(sim.agents)
    assert sim.population.emitted == [80]


def test_who_does_not_stand_on_cells_is_not_put_on_them_and_keeps_its_room() -> None:
    world = World(shapely.box(0, 0, 8, 4), exits={"out": shapely.box(7.6, 0, 8, 4)})
    sim = Simulation(
        world, [Group("walkers", count=20, radius=0.25), Group("people", count=40)],
        planning=PathPlans(), local={"walkers": Seek(), "people": Lattice()}, dt=0.1, seed=1,
    )  # fmt: skip
    walkers, people = sim.agents.position[:20], sim.agents.position[20:]
    assert (np.abs(np.mod(walkers / CELL, 1.0) - 0.5) > 1e-3).any(axis=1).all()
    away = np.linalg.norm(walkers[:, None] - people[None], axis=2)
    assert away.min() >= 0.25 + 0.2 - 1e-5


def test_who_comes_in_when_a_door_closes_or_something_falls_stands_in_neither() -> None:
    world = World(
        shapely.box(0, 0, 8, 2),
        doors={"door": Door([(4.2, 0), (4.2, 2)], open=True)},
        exits={"out": shapely.box(7.6, 0, 8, 2)},
    )
    sim = Simulation(world, Group("people", count=1), planning=PathPlans(), local=Lattice(), dt=0.1, seed=1)
    sim.step()
    sim.at(0.1, events.CloseDoor(door="door"))
    sim.at(0.1, lambda at: at.add_agents("people", count=94))
    sim.step()
    raster = lattice_cells(world)
    assert raster.free[tuple(raster.index_of(sim.agents.position).T)].all()
