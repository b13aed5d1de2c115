"""Rooms: found from walls and doors, joined exactly where a body can go, and planned door by door."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

import tropel
from tropel.planning.roadmap.places import GoalPlace
from tropel.planning.rooms.floor_plan import read_floor_plan
from tropel.world import Door, Target, World

RADIUS = 0.3


def house(seed: int, *, side: int = 4, room: float = 3.0) -> World:
    """A house of side × side rooms with doors of random widths, some missing, some double; some too narrow."""
    rng = np.random.default_rng(seed)
    walls, doors = [], {}
    for k in range(1, side):
        for j in range(side):
            for turned in (False, True):
                at, begin, end = k * room, j * room, (j + 1) * room
                middle, half = rng.uniform(begin + 1.0, end - 1.0), rng.choice([0.2, 0.35, 0.5])

                def line(one: float, other: float, at: float = at, turned: bool = turned) -> list[tuple[float, float]]:
                    ends = [(at, one), (at, other)]
                    return [end[::-1] for end in ends] if turned else ends

                if rng.random() < 0.3:
                    walls.append(line(begin, end))
                    continue
                walls += [line(begin, middle - half), line(middle + half, end)]
                name = f"{k} {j} {turned}"
                if half == 0.5 and rng.random() < 0.5:
                    doors[f"{name} a"], doors[f"{name} b"] = (
                        Door(line(middle - half, middle)),
                        Door(line(middle, middle + half)),
                    )
                else:
                    doors[name] = Door(line(middle - half, middle + half))
    far = side * room
    return World(shapely.box(0, 0, far, far), walls=walls, doors=doors,
                 targets={"goal": Target(position=(far - 1.5, far - 1.5), radius=0.3)})  # fmt: skip


def exact_pieces(world: World, radius: float) -> list[shapely.Polygon]:
    """Where the centre of a body can be with doors as they are, by growing everything solid: no rooms involved."""
    solid = [*world.walls, *(door.line for door in world.doors.values() if not door.open)]
    free = world.walkable.buffer(-radius, quad_segs=16) - shapely.union_all(solid).buffer(radius, quad_segs=16)
    return [piece for piece in shapely.get_parts(free) if piece.area > 1e-6]


@pytest.mark.parametrize("seed", range(6))
def test_a_gross_path_exists_exactly_when_start_and_goal_are_connected(seed: int) -> None:
    world = house(seed)
    planner = tropel.Rooms(clearance=0.0)
    rng = np.random.default_rng(100 + seed)
    for name in world.doors:
        world.set_door(name, open=True)
    sim = tropel.Simulation(world, tropel.Group("nobody", count=0), planning=planner)
    assert len(sim.agents) == 0
    seen = set()
    for _ in range(12):
        for name in world.doors:
            world.set_door(name, open=bool(rng.random() < 0.6))
        pieces = exact_pieces(world, RADIUS)
        shut = np.array([not door.open for door in world.doors.values()])
        for _ in range(15):
            places = [(rng.integers(0, 4, 2) + 0.5) * 3.0 for _ in range(2)]
            one, other = (next(k for k, piece in enumerate(pieces) if piece.covers(shapely.Point(p))) for p in places)
            place = GoalPlace(points=places[1][None], reach=np.zeros(1), moves=False, name="there")
            found = planner.gross_path(RADIUS, places[0], place, shut)
            assert (found is not None) == (one == other)
            seen.add(one == other)
    assert seen == {True, False}


def test_rooms_are_the_pieces_between_walls_and_doors() -> None:
    walls = [[(3, 0), (3, 2)], [(3, 3), (3, 6)], [(6, 0), (6, 6)], [(4, 2), (5, 3)]]
    world = World(shapely.box(0, 0, 9, 6), walls=walls, doors={"a": Door([(3, 2), (3, 3)])})
    plan = read_floor_plan(world, 0.3)
    assert len(plan.rooms) == 3
    beside = [tuple(plan.rooms_at(np.array(place), 0.0)) for place in ((1.0, 2.5), (3.6, 5.0))]
    assert [set(portal.rooms) for portal in plan.portals] == [{room for (room,) in beside}]
    assert np.allclose(plan.portals[0].point, (3.0, 2.5))
    assert len(read_floor_plan(world, 0.6).portals) == 0  # too narrow


def test_regions_given_by_hand_are_rooms_of_their_own() -> None:
    world = World(shapely.box(0, 0, 12, 4), regions={"west": shapely.box(0, 0, 4, 4), "east": shapely.box(8, 0, 12, 4)},
                  targets={"goal": Target(position=(11, 2), radius=0.4)})  # fmt: skip
    plan = read_floor_plan(world, 0.3, ["west", "east"])
    assert len(plan.rooms) == 3
    assert len(plan.portals) == 2
    planner = tropel.Rooms(regions=["west", "east"])
    people = tropel.Group("people", positions=[[1.0, 2.0]], goal="goal")
    sim = tropel.Simulation(world, people, planning=planner, dt=0.05)
    sim.run(until=15.0)
    assert np.linalg.norm(sim.agents.position[0] - (11, 2)) < 0.8
    assert planner.spent["rooms entered"] == 2


def detour(**planner: object) -> tuple[tropel.Simulation, tropel.Rooms]:
    """Two rooms with a near and a far door; the near one is shut."""
    world = World(shapely.box(0, 0, 12, 10), walls=[[(6, 0), (6, 2)], [(6, 3), (6, 8)], [(6, 9), (6, 10)]],
                  doors={"near": Door([(6, 2), (6, 3)]), "far": Door([(6, 8), (6, 9)], open=True)},
                  targets={"goal": Target(position=(10, 2), radius=0.5)})  # fmt: skip
    made = tropel.Rooms(**planner)  # type: ignore[arg-type]
    leader = tropel.Group("leader", positions=[[1.5, 2.5]], goal="goal", sense_radius=2.0)
    return tropel.Simulation(world, leader, planning=made, dt=0.05, seed=3), made


def test_a_shut_door_is_known_at_once_or_when_it_is_seen() -> None:
    nearest = {}
    for doors in ("known", "seen"):
        sim, _ = detour(doors=doors)
        away = np.inf
        while sim.time < 40.0 and np.linalg.norm(sim.agents.position[0] - (10, 2)) > 0.8:
            sim.step()
            away = min(
                away,
                float(np.linalg.norm(sim.agents.position[0] - (6, 2.5))) if sim.agents.position[0, 0] < 6 else away,
            )
        assert np.linalg.norm(sim.agents.position[0] - (10, 2)) <= 0.8
        nearest[doors] = away
    assert nearest["seen"] < 2.1
    assert nearest["known"] > 2.5


def test_doors_touch_the_gross_graph_alone() -> None:
    sim, planner = detour()
    sim.run(until=1.0)
    before = planner.spent.copy()
    charts = dict(planner.charts)
    nodes = {key: len(chart.graph.nodes) for key, chart in charts.items()}
    sim.at(1.0, tropel.events.OpenDoor(door="near"))
    sim.run(until=1.2)
    assert planner.spent["gross queries"] > before["gross queries"]
    assert planner.spent["tests"] == before["tests"]
    assert {key: len(chart.graph.nodes) for key, chart in planner.charts.items()} == nodes


def test_a_room_gets_its_roadmap_when_it_is_entered_and_keeps_it() -> None:
    sim, planner = detour()
    sim.run(until=0.1)
    assert len(planner.charts) == 1
    sim.run(until=20.0)
    assert len(planner.charts) == 2
    assert planner.spent["charts"] == 2
