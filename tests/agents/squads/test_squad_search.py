"""Rooms are searched to the last corner, once, and by whoever can reach them."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra

from squad_scenes import building, entered, searching
from tropel import Group, Search, Seek, Simulation, Squad, events
from tropel.agents.squads.floor import Floor
from tropel.agents.squads.sight import seen_from


def test_a_point_is_seen_if_no_wall_is_in_between() -> None:
    world = building(2)
    draw = np.random.default_rng(1)
    eyes, points = draw.uniform((0, 0), (12, 13), (6, 2)), draw.uniform((0, 0), (12, 13), (200, 2))
    walls = shapely.union_all(world.walls)
    lines = shapely.linestrings(np.stack(np.broadcast_arrays(eyes[:, None], points[None]), axis=2))
    wanted = (~shapely.intersects(lines, walls) & (shapely.length(lines) <= 7.0)).any(axis=0)
    found = seen_from(world, eyes, points, 7.0)
    assert np.array_equal(found, wanted)
    assert 20 < found.sum() < 180


def test_walking_distances_are_those_of_a_graph_of_cells() -> None:
    world = building(2, doors=True)
    world.set_door("door north 1", open=False)
    floor = Floor(world)
    free = floor.raster.free
    here = floor.raster.centre((26, 3))
    assert free[26, 3]
    number = np.arange(free.size).reshape(free.shape)
    edges = []
    for dr, dc in ((0, 1), (1, 0), (1, 1), (1, -1)):
        a = number[: free.shape[0] - dr, max(-dc, 0) : free.shape[1] - max(dc, 0)]
        b = number[dr:, max(dc, 0) : free.shape[1] + min(dc, 0)]
        both = free.reshape(-1)[a] & free.reshape(-1)[b]
        edges.append(np.stack([a[both], b[both], np.full(both.sum(), floor.cell * np.hypot(dr, dc))], axis=1))
    a, b, length = np.concatenate(edges).T
    graph = coo_array((length, (a.astype(int), b.astype(int))), shape=(free.size, free.size)).tocsr()
    wanted = dijkstra(graph, directed=False, indices=number[26, 3])
    found = floor.walk(here).reshape(-1)
    # From the start itself one may step onto any cell in sight nearby, which is shorter than over cells.
    reached = np.isfinite(wanted)
    assert np.array_equal(np.isfinite(found), reached)
    assert (found[reached] <= wanted[reached] + 1e-9).all()
    assert (found[reached] >= wanted[reached] - 0.2).all()
    behind = floor.cells_at(np.array([[9.0, 12.0]]))[0]
    assert not np.isfinite(found[behind])


def test_the_next_point_of_a_walk_is_straight_ahead_and_on_it() -> None:
    world = building(2)
    floor = Floor(world)
    here, there = np.array([1.0, 1.0]), np.array([11.0, 12.0])
    walls = shapely.union_all(world.walls)
    way = [here]
    for _ in range(20):
        walk = floor.walk(way[-1])
        cell = floor.nearest_cell(there, walk)
        assert cell is not None
        way.append(floor.ahead(way[-1], cell, walk, 0.2))
        assert shapely.distance(shapely.LineString(way[-2:]), walls) > 0.15
        if np.linalg.norm(way[-1] - there) < 0.3:
            break
    assert np.linalg.norm(way[-1] - there) < 0.3
    assert shapely.LineString(way).length < 1.15 * float(floor.walk(here).reshape(-1)[cell])


@pytest.mark.parametrize(
    ("columns", "seed"), [(2, 1), *(pytest.param(n, s, marks=pytest.mark.long) for n in (2, 3, 4) for s in (2, 3, 4))]
)
def test_two_squads_enter_every_room_once_and_without_sharing_twice(columns: int, seed: int) -> None:
    world = building(columns)
    shared = searching(world, seed=seed)
    found = entered(shared, 90.0)
    assert all(found.values())
    assert sum(len(squads) for squads in found.values()) == len(world.rooms)
    each_alone = entered(searching(world, seed=seed, share=False), 150.0)
    assert sum(len(squads) for squads in each_alone.values()) == 2 * len(world.rooms)
    taken = [what for _, _, what in shared.squads.log() if what.startswith("searches")]
    assert sorted(taken) == sorted(f"searches {name}" for name in world.rooms)


def test_a_room_is_searched_when_every_part_of_it_has_been_in_sight_of_somebody_in_it() -> None:
    world = building(1)
    sim = searching(world, squads=1)
    walls = shapely.union_all(world.walls)
    parts = {name: _spots(world, room) for name, room in world.rooms.items()}
    seen = {name: np.zeros(len(spots), dtype=bool) for name, spots in parts.items()}
    while sim.time < 60.0 and min(sim.squads.searched().values(), default=0.0) < 1.0:
        for name, room in world.rooms.items():
            for eye in sim.agents.position[shapely.contains_xy(room, *sim.agents.position.T)]:
                lines = shapely.linestrings(np.stack([np.broadcast_to(eye, parts[name].shape), parts[name]], axis=1))
                seen[name] |= ~shapely.intersects(lines, walls) & (shapely.length(lines) <= 6.0)
        sim.step()
        for name, share in sim.squads.searched().items():
            assert share < 1.0 or seen[name].mean() > 0.99
    assert sim.squads.searched() == {"south 0": 1.0, "north 0": 1.0}


def _spots(world: object, room: shapely.Polygon) -> np.ndarray:
    """Spots of a room that are clear of walls, on another raster than that of squads."""
    x, y = np.meshgrid(np.arange(0.35, 6.0, 0.31), np.arange(0.35, 13.0, 0.31))
    spots = np.stack([x.ravel(), y.ravel()], axis=1)
    walls = shapely.union_all([*world.walls, room.exterior])  # type: ignore[attr-defined]
    clear = shapely.distance(shapely.points(spots), walls) > 0.3
    return np.asarray(spots[clear & shapely.contains_xy(room, *spots.T)])


def test_a_squad_whose_room_is_shut_takes_another_and_comes_back_when_it_is_opened() -> None:
    world = building(2, doors=True, partitions=False)
    sim = searching(world, squads=1)
    sim.step()
    first = sim.squads["alpha"].room
    sim.at(0.5, events.CloseDoor(door=f"door {first}"))
    sim.at(14.0, events.OpenDoor(door=f"door {first}"))
    sim.run(until=1.5)
    assert sim.squads["alpha"].room not in ("", first)
    sim.run(until=13.0)
    assert sim.squads.searched()[first] == 0.0
    sim.run(until=32.0)
    assert sim.squads.searched()[first] == 1.0


def test_a_search_is_over_when_all_that_can_be_reached_is_seen() -> None:
    world = building(2, doors=True, partitions=False)
    world.set_door("door south 0", open=False)
    group = Group("alpha", count=2, region=shapely.box(1, 5.5, 4, 7.5), squad=Squad(spacing=0.7),
                  stages=[Search(list(world.rooms)), Search(["north 0"])])  # fmt: skip
    sim = Simulation(world, group, local=Seek(), dt=0.1, seed=1, threads=1)
    sim.run(until=40.0)
    assert sim.squads["alpha"].mission == "search north 0"
    assert sim.squads.searched()["south 0"] == 0.0
    assert min(share for name, share in sim.squads.searched().items() if name != "south 0") == 1.0


def test_squads_of_other_sides_tell_each_other_nothing() -> None:
    world = building(1, partitions=False)
    begin = [shapely.box(0.3, 5.3, 2.5, 7.7), shapely.box(3.5, 5.3, 5.7, 7.7)]
    groups = [
        Group(name, count=2, region=begin[k], squad=Squad(side=name), stages=[Search(list(world.rooms))])
        for k, name in enumerate(("red", "blue"))
    ]
    sim = Simulation(world, groups, local=Seek(), dt=0.1, seed=1, threads=1)
    sim.run(until=40.0)
    for name in ("red", "blue"):
        assert set(sim.squads.searched(name).values()) == {1.0}


def test_a_claim_of_a_squad_that_is_gone_is_free_again() -> None:
    sim = searching(building(2, partitions=False))
    sim.run(until=1.0)
    sim.remove_agents(group="bravo")
    sim.run(until=40.0)
    assert sim.squads["bravo"].commander is None
    assert set(sim.squads.searched("alpha").values()) == {1.0}
