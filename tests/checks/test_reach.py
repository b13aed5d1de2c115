"""People without a path to their goals are named, with the reason; everybody else is not."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from layouts import random_rooms, school

from tropel import (
    Direct,
    Door,
    FlowField,
    Go,
    Group,
    Lattice,
    Obstacle,
    PathPlans,
    Simulation,
    Source,
    Target,
    Uniform,
    Wait,
    World,
    events,
)
from tropel.checks.finding import Finding
from tropel.checks.reach import cut_off

SEEDS = range(6)


def warnings_of(sim: Simulation) -> list[Finding]:
    return [finding for finding in sim.check() if finding.severity == "warning"]


def in_room(sim: Simulation, room: shapely.Polygon) -> np.ndarray:
    return np.asarray(shapely.contains_xy(room, *sim.agents.position.T))


@pytest.mark.parametrize("seed", SEEDS)
def test_in_a_school_where_every_door_is_open_nothing_is_found(seed: int) -> None:
    sim = Simulation(school(seed).world, Group("pupils", density=0.15, radius=0.2), seed=seed)
    assert sim.check() == []
    assert not cut_off(sim).any()


@pytest.mark.parametrize("seed", SEEDS)
def test_behind_one_closed_door_exactly_the_people_in_that_room_are_named(seed: int) -> None:
    name = f"room {seed * 2}"
    plan = school(seed, closed=(name,))
    sim = Simulation(plan.world, Group("pupils", density=0.15, radius=0.2), seed=seed)
    inside = in_room(sim, plan.rooms[name])
    assert (cut_off(sim) == inside).all()
    assert inside.any()
    (found,) = sim.check()
    assert (found.code, found.severity, found.group) == ("no_path_door", "warning", "pupils")
    assert found.agents == inside.sum()
    assert found.place is not None
    assert plan.rooms[name].contains(shapely.Point(found.place))
    assert f"door '{name}' is closed" in found.message


@pytest.mark.parametrize("seed", SEEDS)
def test_a_door_that_an_event_opens_later_is_only_a_note(seed: int) -> None:
    plan = school(seed, closed=("room 3",))
    sim = Simulation(plan.world, Group("pupils", density=0.15), seed=seed)
    sim.at(40.0, events.OpenDoor(door="room 3"))
    (found,) = sim.check()
    assert (found.code, found.severity) == ("no_path_door", "note")
    assert "from 40 s on" in found.message
    other = Simulation(school(seed, closed=("room 3", "room 5")).world, Group("pupils", density=0.15), seed=seed)
    other.at(40.0, events.OpenDoor(door="room 5"))
    assert [found.severity for found in other.check()] == ["warning", "note"]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_door_narrower_than_bodies_is_measured(seed: int) -> None:
    plan = school(seed, widths={"room 4": 0.34})
    sim = Simulation(plan.world, Group("pupils", density=0.15, radius=0.2), seed=seed)
    assert (cut_off(sim) == in_room(sim, plan.rooms["room 4"])).all()
    narrow = next(found for found in sim.check() if found.code == "no_path_narrow")
    assert "at most 0.34 m" in narrow.message
    assert "0.40 m wide" in narrow.message
    wide_enough = Simulation(
        school(seed, widths={"room 4": 0.42}).world, Group("pupils", density=0.15, radius=0.2), seed=seed
    )
    assert wide_enough.check() == []


@pytest.mark.parametrize("seed", SEEDS)
def test_of_different_bodies_only_the_wide_ones_are_cut_off(seed: int) -> None:
    plan = school(seed, widths={f"room {k}": 0.5 for k in range(12)})
    sim = Simulation(plan.world, Group("pupils", density=0.15, radius=Uniform(low=0.15, high=0.35)), seed=seed)
    inside = np.any([in_room(sim, room) for room in plan.rooms.values()], axis=0)
    too_wide = sim.agents.radius > 0.25
    # Bodies that fit within a thousandth are left to either side.
    clear = np.abs(sim.agents.radius - 0.25) > 5e-4
    assert (cut_off(sim) == (inside & too_wide))[clear].all()
    assert 0 < cut_off(sim).sum() < inside.sum()


@pytest.mark.parametrize("seed", range(20))
def test_any_building_of_rooms_agrees_with_a_search_from_room_to_room(seed: int) -> None:
    rooms = random_rooms(seed, widths=(0.3, 0.5, 1.2))
    for radius in (0.1, 0.2, 0.4):
        sim = Simulation(rooms.world(), Group("people", positions=rooms.centres(), radius=radius))
        assert (cut_off(sim) == ~rooms.connected(2.0 * radius)).all()
        assert sum(found.agents for found in sim.check() if found.code.startswith("no_path")) == cut_off(sim).sum()


@pytest.mark.parametrize("seed", range(10))
def test_everybody_is_judged_by_the_own_body(seed: int) -> None:
    rooms = random_rooms(seed, widths=(0.3, 0.4, 0.5, 0.6, 1.2))
    rng = np.random.default_rng(seed)
    places = np.repeat(rooms.centres(), 5, axis=0) + rng.uniform(-0.5, 0.5, (100, 2))
    radius = rng.uniform(0.1, 0.4, 100)
    clear = np.abs(radius[:, None] - np.array([0.15, 0.2, 0.25, 0.3])).min(axis=1) > 1e-3
    sim = Simulation(rooms.world(), Group("people", positions=places, radius=radius))
    expected = [not rooms.connected(2.0 * own)[k // 5] for k, own in enumerate(radius)]
    assert (cut_off(sim) == expected)[clear].all()


@pytest.mark.parametrize("seed", range(8))
def test_a_crowd_on_cells_agrees_too(seed: int) -> None:
    rooms = random_rooms(seed, widths=(1.6,))
    crowd = Group("people", positions=rooms.centres())
    sim = Simulation(rooms.world(), crowd, planning=PathPlans(), local=Lattice())
    assert (cut_off(sim) == ~rooms.connected(0.4)).all()
    told = [found for found in sim.check() if found.code.startswith("no_path")]
    assert sum(found.agents for found in told) == cut_off(sim).sum()


def two_rooms(**world: object) -> World:
    """Two rooms of 5 m with a gap of 1.2 m between them, and the exit in the right one."""
    walls = [[(5.0, 0.0), (5.0, 1.9)], [(5.0, 3.1), (5.0, 5.0)]]
    exits = {"out": shapely.box(9.0, 2.0, 10.0, 3.0)}
    return World(shapely.box(0.0, 0.0, 10.0, 5.0), **{"walls": walls, "exits": exits, **world})  # type: ignore[arg-type]


LEFT = Group("people", count=10, region=shapely.box(0.5, 0.5, 4.0, 4.5), radius=0.2)


def test_walls_obstacles_and_pieces_are_told_apart() -> None:
    def code(world: World) -> list[str]:
        return [found.code for found in warnings_of(Simulation(world, LEFT))]

    assert code(two_rooms()) == []
    assert code(two_rooms(walls=[[(5.0, 0.0), (5.0, 5.0)]])) == ["no_path_walls"]
    column = Obstacle(radius=0.61, position=(5.0, 2.5))
    assert code(two_rooms(obstacles={"column": column})) == ["no_path_obstacles"]
    assert code(two_rooms(obstacles={"column": Obstacle(radius=0.3, position=(5.0, 2.5))})) == ["no_path_narrow"]
    assert code(two_rooms(obstacles={"column": Obstacle(radius=0.1, position=(5.0, 2.5))})) == []
    apart = shapely.union(shapely.box(0.0, 0.0, 5.0, 5.0), shapely.box(5.1, 0.0, 10.0, 5.0))
    separate = World(apart, exits={"out": shapely.box(9.0, 2.0, 10.0, 3.0)})
    assert code(separate) == ["no_path_pieces", "pieces"]


def test_an_obstacle_that_moves_blocks_nothing() -> None:
    from tropel import Waypoints

    moving = Obstacle(radius=0.61, motion=Waypoints(points=((5.0, 2.5), (8.0, 4.0)), speed=0.5))
    assert Simulation(two_rooms(obstacles={"cart": moving}), LEFT).check() == []


def test_an_obstacle_that_is_removed_later_is_only_a_note() -> None:
    sim = Simulation(two_rooms(obstacles={"column": Obstacle(radius=0.61, position=(5.0, 2.5))}), LEFT)
    sim.at(10.0, events.RemoveObstacle(name="column"))
    assert [found.severity for found in sim.check()] == ["note"]


def test_a_function_may_open_a_door_but_not_a_wall() -> None:
    door = {"gap": [(5.0, 1.9), (5.0, 3.1)]}
    for world, severity in (
        (two_rooms(doors=door), "note"),
        (two_rooms(walls=[[(5.0, 0.0), (5.0, 5.0)]]), "warning"),
    ):
        if "gap" in world.doors:
            world.set_door("gap", open=False)
        sim = Simulation(world, LEFT)
        sim.at(5.0, lambda sim: None)
        assert [found.severity for found in sim.check()] == [severity]


def test_two_doors_in_a_row_are_both_named() -> None:
    walls = [[(x, 0.0), (x, 1.9)] for x in (3.0, 6.0)] + [[(x, 3.1), (x, 5.0)] for x in (3.0, 6.0)]
    doors = {name: [(x, 1.9), (x, 3.1)] for name, x in (("first", 3.0), ("second", 6.0))}
    world = two_rooms(walls=walls, doors=doors)
    for name in doors:
        world.set_door(name, open=False)
    (found,) = Simulation(world, Group("people", count=5, region=shapely.box(0.0, 0.0, 3.0, 5.0))).check()
    assert "doors 'first' and 'second' are closed" in found.message


@pytest.mark.parametrize("planner", [Direct(), FlowField()])
def test_a_target_is_a_goal_too_whatever_the_planner(planner: Direct | FlowField) -> None:
    target = {"stage": Target(position=(8.0, 2.5), radius=0.3)}
    crowd = Group("people", count=10, region=shapely.box(0.5, 0.5, 4.0, 4.5), goal="stage")
    open_way = Simulation(two_rooms(targets=target), crowd, planning=planner)
    assert open_way.check() == []
    blocked = Simulation(two_rooms(targets=target, walls=[[(5.0, 0.0), (5.0, 5.0)]]), crowd, planning=planner)
    (found,) = blocked.check()
    assert found.code == "no_path_walls"
    assert "the target 'stage'" in found.message
    assert found.agents == 10


def test_people_without_a_goal_are_not_concerned() -> None:
    world = two_rooms(walls=[[(5.0, 0.0), (5.0, 5.0)]])
    assert Simulation(world, Group("people", count=5, region=shapely.box(0, 0, 4, 5), goal="none")).check() == []


def test_people_who_stand_close_to_a_wall_are_on_their_side_of_it() -> None:
    world = two_rooms(walls=[[(5.0, 0.0), (5.0, 5.0)]])
    close = [[4.95, 1.0], [5.05, 1.0], [4.99, 4.0], [5.01, 4.0]]
    sim = Simulation(world, Group("people", positions=close, radius=0.2))
    assert cut_off(sim).tolist() == [True, False, True, False]


def test_newcomers_of_a_source_are_checked_before_they_come() -> None:
    region = shapely.box(0.5, 0.5, 9.0, 4.5)
    good = Simulation(two_rooms(), Source("people", rate=1.0, region=region))
    assert good.check() == []
    bad = Simulation(two_rooms(walls=[[(5.0, 0.0), (5.0, 5.0)]]), Source("people", rate=1.0, region=region))
    (found,) = bad.check()
    assert (found.code, found.severity) == ("no_path_source", "warning")
    # Bodies of 0.2 m fit into 4.3 m of the left room, and 3.8 m of the right one.
    share = (4.8 - 0.5) / (4.8 - 0.5 + 9.0 - 5.2)
    assert f"{share:.0%}" in found.message


# Goals of later stages ------------------------------------------------------------------------------------------------


def errand(*stages: object, repeat: bool = False, **world: object) -> list[Finding]:
    """What is said of people in the left of two rooms; the vault is behind a wall without a door."""
    walls = [[(5.0, 0.0), (5.0, 1.9)], [(5.0, 3.1), (5.0, 5.0)], [(8.0, 3.0), (8.0, 5.0)], [(8.0, 3.0), (10.0, 3.0)]]
    places = {"targets": {"kiosk": (2.0, 2.0), "vault": (9.0, 4.0)}, "exits": {"out": shapely.box(9.0, 0.5, 10.0, 1.5)}}
    group = Group("people", count=10, region=shapely.box(0.5, 0.5, 4.0, 4.5), radius=0.2, stages=stages, repeat=repeat)
    sim = Simulation(two_rooms(**{"walls": walls, **places, **world}), group)
    return [found for found in sim.check() if found.code.startswith("no_path")]


def test_goals_of_later_stages_are_looked_at_too() -> None:
    assert errand(Go("kiosk"), Wait(1.0), Go("out")) == []
    (found,) = errand(Go("kiosk"), Wait(1.0), Go("vault"), Go("out"))
    assert found.code == "no_path_walls"
    assert found.severity == "warning"
    assert found.agents == 10
    assert "cannot reach the target 'vault', where they go later, from around" in found.message
    (at_once,) = errand(Go("vault"), Go("out"))
    assert "later" not in at_once.message


def test_stages_that_are_over_are_not_looked_at_unless_the_list_repeats() -> None:
    closed = {"doors": {"gap": Door([(5.0, 1.9), (5.0, 3.1)], open=False)}}
    for repeat, expected in ((False, 0), (True, 1)):
        walls = [[(5.0, 0.0), (5.0, 1.9)], [(5.0, 3.1), (5.0, 5.0)]]
        world = two_rooms(walls=walls, targets={"kiosk": (2.0, 2.0), "vault": (9.0, 4.0)}, **closed)
        sim = Simulation(world, Group("one", positions=[(3.0, 3.0)], stages=[Go("vault"), Go("kiosk")], repeat=repeat))
        sim.agents.stage[:], sim.agents.goal[:] = 1, world.goal_numbers["kiosk"]
        assert sum(found.code == "no_path_door" for found in sim.check()) == expected


def test_a_stage_that_a_condition_may_end_is_no_reason_to_warn() -> None:
    assert errand(Go("kiosk"), Go("vault", until={"after": 30.0}), Go("out")) == []


def test_a_door_that_opens_before_the_later_stage_is_a_note() -> None:
    walls = [[(5.0, 0.0), (5.0, 1.9)], [(5.0, 3.1), (5.0, 5.0)]]
    world = two_rooms(
        walls=walls, targets={"kiosk": (2.0, 2.0)}, doors={"gap": Door([(5.0, 1.9), (5.0, 3.1)], open=False)}
    )
    sim = Simulation(world, Group("one", positions=[(3.0, 3.0)], stages=[Go("kiosk"), Go("out")]))
    assert [found.severity for found in sim.check() if found.code == "no_path_door"] == ["warning"]
    sim.at(5.0, events.OpenDoor(door="gap"))
    assert [found.severity for found in sim.check() if found.code == "no_path_door"] == ["note"]
