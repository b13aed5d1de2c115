"""Squads: roles and succession, orders, the verbs of missions, formations, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from squad_scenes import building, searching
from tropel import (
    Cover,
    Escort,
    Go,
    Group,
    Hold,
    Lattice,
    RetreatTo,
    Search,
    Seek,
    Simulation,
    Squad,
    Wait,
    World,
    events,
)
from tropel.agents.squads.columns import COMMANDER, MEMBER, POST, RETREAT
from tropel.agents.squads.formations import slots
from tropel.errors import CheckpointError, ParameterError
from tropel.recording import read_trajectory
from two_threads import needs_two_threads

FIELD = shapely.box(0, 0, 30, 12)


def squad(stages: Any, *, world: World | None = None, count: int = 4, region: Any = None, more: Any = (), **told: Any):
    group = Group("alpha", count=count, region=region or shapely.box(1, 4, 5, 8), squad=Squad(**told), stages=stages)
    return Simulation(world or World(FIELD), [group, *more], local=Seek(), dt=0.1, seed=1, threads=1)


# Roles ----------------------------------------------------------------------------------------------------------------


def test_the_one_nearest_to_the_mission_commands_and_the_others_are_members() -> None:
    sim = squad([Go((25.0, 6.0))])
    sim.step()
    nearest = int(sim.agents.id[np.argmax(sim.agents.position[:, 0])])
    assert sim.squads["alpha"].commander == nearest
    assert sorted(sim.agents.role.tolist()) == [MEMBER, MEMBER, MEMBER, COMMANDER]
    assert len(sim.squads["alpha"].members) == 3


@pytest.mark.parametrize("count", [2, 4])
def test_a_member_takes_over_the_mission_of_a_commander_that_is_gone(count: int) -> None:
    world = building(2, partitions=False)
    sim = searching(world, squads=1)
    sim.remove_agents(ids=list(range(count, 4)))
    sim.run(until=3.0)
    first, room = sim.squads["alpha"].commander, sim.squads["alpha"].room
    sim.remove_agents(ids=[first])
    sim.run(until=3.5)
    now = sim.squads["alpha"]
    assert now.commander is not None
    assert now.commander != first
    assert now.mission.startswith("search")
    assert room
    sim.run(until=40.0)
    assert set(sim.squads.searched().values()) == {1.0}
    assert [what for _, _, what in sim.squads.log() if "commanded" in what] == [
        f"is commanded by agent {first}",
        f"is commanded by agent {now.commander}",
    ]


def test_newcomers_are_under_the_commander() -> None:
    sim = squad([Go((25.0, 6.0))])
    sim.run(until=1.0)
    (fresh,) = sim.add_agents("alpha", count=1, region=shapely.box(1, 1, 3, 3)).tolist()
    sim.run(until=30.0)
    assert fresh in sim.squads["alpha"].members
    assert np.linalg.norm(sim.agents.position[sim.agents.rows_of([fresh])] - (25.0, 6.0)) < 5.0


# Orders ---------------------------------------------------------------------------------------------------------------


def test_an_order_interrupts_the_mission_which_goes_on_afterwards() -> None:
    sim = squad([Go((25.0, 6.0)), Wait(1.0), Go((25.0, 10.0))])
    sim.at(2.0, events.Order(squad="alpha", stages=[Go((3.0, 2.0))], formation="line"))
    sim.run(until=2.5)
    assert sim.squads["alpha"].interrupted
    assert sim.squads["alpha"].mission == "go to (3, 2)"
    sim.run(until=12.0)
    assert not sim.squads["alpha"].interrupted
    assert sim.squads["alpha"].mission == "go to (25, 6)"
    assert [what for _, _, what in sim.squads.log()][1:] == ["gets an order", "resumes"]
    sim.run(until=36.0)
    assert sim.squads["alpha"].mission == "go to (25, 10)"


def test_an_order_that_is_not_to_resume_replaces_the_mission() -> None:
    sim = squad([Go((25.0, 6.0))])
    sim.run(until=1.0)
    sim.order("alpha", [Go((3.0, 2.0))], resume=False)
    sim.run(until=30.0)
    commander = sim.agents.position[sim.agents.role == COMMANDER][0]
    assert np.linalg.norm(commander - (3.0, 2.0)) < 0.5
    assert not sim.squads["alpha"].interrupted


def test_an_order_before_the_first_step_and_one_to_nobody() -> None:
    sim = squad([Go((25.0, 6.0))])
    sim.order("alpha", [Go((3.0, 2.0))])
    sim.run(until=2.0)
    assert sim.squads["alpha"].interrupted
    sim.remove_agents(group="alpha")
    sim.order("alpha", [Go((5.0, 2.0))])
    sim.run(until=3.0)
    assert sim.squads["alpha"].commander is None


# Verbs ----------------------------------------------------------------------------------------------------------------


def test_a_room_is_held_by_all_at_posts_far_apart_and_for_a_time() -> None:
    world = building(2, partitions=False)
    sim = squad([Hold("north 1", time=12.0), Go((3.0, 6.5))], world=world, region=shapely.box(0.5, 5.3, 4.0, 7.7))
    sim.run(until=17.0)
    held = world.rooms["north 1"]
    assert shapely.contains_xy(held, *sim.agents.position.T).all()
    assert (sim.agents.order[sim.agents.role == MEMBER] == POST).all()
    away = np.linalg.norm(sim.agents.position[:, None] - sim.agents.position[None], axis=2)
    assert away[np.triu_indices(4, 1)].min() > 1.5
    sim.run(until=26.0)
    assert sim.squads["alpha"].mission == "go to (3, 6.5)"


def test_an_escort_stays_with_a_group_through_doors_until_it_is_gone() -> None:
    world = building(2, partitions=False)
    there = shapely.box(10.5, 9.5, 11.5, 12.5)
    world = World(world.walkable, walls=world.walls, rooms=dict(world.rooms), exits={"out": there})
    guest = Group("guest", positions=[(4.5, 3.0)], goal="out", desired_speed=0.8)
    sim = squad([Escort("guest"), Go((1.0, 6.5))], world=world, region=shapely.box(0.5, 0.5, 3, 4), more=[guest])
    farthest = 0.0
    while sim.time < 40.0 and len(sim.population.rows_in("guest")):
        sim.step()
        if sim.time > 3.0 and len(rows := sim.population.rows_in("guest")):
            chief = sim.agents.position[sim.agents.role == COMMANDER][0]
            farthest = max(farthest, float(np.linalg.norm(sim.agents.position[rows[0]] - chief)))
    assert not len(sim.population.rows_in("guest"))
    assert 1.0 < farthest < 5.0
    sim.run(until=sim.time + 1.0)
    assert sim.squads["alpha"].mission == "go to (1, 6.5)"


def test_a_squad_covers_another_one_until_that_begins_its_next_stage() -> None:
    world = building(2, partitions=False)
    bravo = Group("bravo", count=2, region=shapely.box(0.5, 0.5, 3, 4), squad=Squad(),
                  stages=[Hold("north 1", time=12.0), Wait(5.0), Go((9.0, 12.0))])  # fmt: skip
    sim = squad([Cover("bravo"), Hold("south 0")], world=world, region=shapely.box(0.5, 5.3, 3, 7.7), more=[bravo])
    covered = []
    while sim.time < 60.0 and sim.squads["alpha"].mission in ("", "cover bravo"):
        sim.step()
        chief, other = (
            sim.agents.position[(sim.agents.role == COMMANDER) & (sim.agents.group == k)][0] for k in (0, 1)
        )
        line = shapely.LineString([chief, other])
        covered.append(not any(line.intersects(wall) for wall in world.walls))
    assert sim.squads["bravo"].mission == "wait 5 s"
    assert np.mean(covered[-30:]) > 0.8
    assert sim.squads["alpha"].mission == "hold south 0"


def test_a_squad_retreats_around_corners_to_a_point_and_is_told_to() -> None:
    world = building(2)
    sim = squad([RetreatTo((11.0, 12.3)), Wait(9.0)], world=world, region=shapely.box(0.5, 0.3, 3, 1.8), count=3)
    sim.run(until=3.0)
    assert (sim.agents.order[sim.agents.role == MEMBER] == RETREAT).all()
    sim.run(until=40.0)
    commander = sim.agents.position[sim.agents.role == COMMANDER][0]
    assert np.linalg.norm(commander - (11.0, 12.3)) < 0.5


# Formations -----------------------------------------------------------------------------------------------------------


def test_places_in_formations() -> None:
    assert slots("file", 3, 2.0).tolist() == [[-2, 0], [-4, 0], [-6, 0]]
    assert slots("column", 4, 2.0).tolist() == [[-2, 1], [-2, -1], [-4, 1], [-4, -1]]
    assert slots("line", 3, 2.0).tolist() == [[0, 2], [0, -2], [0, 4]]
    assert slots("wedge", 3, 2.0).tolist() == [[-2, 2], [-2, -2], [-4, 4]]
    assert slots("wedge", 0, 2.0).shape == (0, 2)


@pytest.mark.parametrize("formation", ["file", "column", "line", "wedge"])
def test_members_are_in_their_places_on_the_way(formation: Any) -> None:
    sim = squad([Go((28.0, 6.0))], formation=formation, spacing=1.2, count=5)
    sim.run(until=18.0)
    chief = sim.agents.position[sim.agents.role == COMMANDER][0]
    members = sim.agents.position[sim.agents.role == MEMBER]
    wanted = chief + slots(formation, 4, 1.2)
    assert 10.0 < chief[0] < 26.0
    assert np.linalg.norm(members - wanted, axis=1).max() < 0.6


def test_a_line_goes_through_a_door_in_file_and_is_a_line_again_behind_it() -> None:
    walls = [[(12.0, 0.0), (12.0, 5.4)], [(12.0, 6.6), (12.0, 12.0)]]
    sim = squad([Go((29.0, 6.0))], world=World(FIELD, walls=walls), formation="line", spacing=1.2, count=4)
    passed = np.full(4, np.nan)
    while sim.time < 30.0 and np.isnan(passed).any():
        sim.step()
        through = (sim.agents.position[:, 0] > 12.0) & np.isnan(passed)
        passed[through] = sim.time
    assert not np.isnan(passed).any()
    assert np.ptp(passed) > 1.5
    sim.run(until=sim.time + 10.0)
    chief = sim.agents.position[sim.agents.role == COMMANDER][0]
    members = sim.agents.position[sim.agents.role == MEMBER]
    assert np.linalg.norm(members - chief - slots("line", 3, 1.2), axis=1).max() < 1.0


# The same bits --------------------------------------------------------------------------------------------------------


def skirmish(threads: int = 1) -> Simulation:
    """Two squads that search and fight, with an order and a door that is shut."""
    world = building(2, doors=True)
    groups = [
        Group(name, count=4, region=shapely.box(x, 5.3, x + 4.0, 7.7), stages=[Search(list(world.rooms)), Hold(room)],
              squad=Squad(enemies=[other], hits=0.2, rally=2.0, spacing=0.8))
        for name, other, x, room in (("red", "blue", 0.3, "north 0"), ("blue", "red", 7.5, "south 1"))
    ]  # fmt: skip
    sim = Simulation(world, groups, dt=0.1, seed=3, threads=threads)
    sim.at(2.0, events.CloseDoor(door="door north 1"))
    sim.at(3.0, events.Order(squad="red", stages=[RetreatTo("south 0")], formation="file"))
    return sim


@needs_two_threads
def test_two_threads_give_the_same_bits() -> None:
    first, second = skirmish(1), skirmish(2)
    first.run(until=15.0)
    second.run(until=15.0)
    assert first.state_hash() == second.state_hash()


def test_a_run_goes_on_after_a_checkpoint_and_its_record_tells_what_squads_did(tmp_path: Path) -> None:
    whole, part = skirmish(), skirmish()
    whole.run(until=15.0, record=tmp_path / "whole.sqlite")
    part.run(until=6.3, record=tmp_path / "part.sqlite")
    part.save(tmp_path / "part.ckpt")
    rest = skirmish()
    rest.restore(tmp_path / "part.ckpt")
    assert rest.state_hash() == part.state_hash()
    rest.run(until=15.0, record=tmp_path / "part.sqlite")
    assert rest.state_hash() == whole.state_hash()
    assert rest.squads.log() == whole.squads.log()
    assert whole.population.deaths()["id"].size > 0
    news = []
    for name in ("whole", "part"):
        with read_trajectory(tmp_path / f"{name}.sqlite") as recorded:
            found = recorded.squads()
            news.append(list(zip(found["time"].tolist(), found["squad"], found["what"], strict=True)))  # type: ignore[union-attr]
            assert not any("noted" in str(entry.event) for entry in recorded.events)
    assert news[0] == news[1] == whole.squads.log()


def test_checkpoints_of_other_squads_and_crafted_ones_are_refused(tmp_path: Path) -> None:
    sim = skirmish()
    sim.run(until=1.0)
    sim.save(tmp_path / "a.ckpt")
    stored = dict(sim.population.stored())
    for name, value in {
        "squads/rooms": np.array(["room nowhere"] * 4),
        "squads/stance": np.full(2, 9),
        "squads/agenda": np.array([0, -1]),
        "squads/log": np.array([[0, 7, 0, 0]]),
        "squads/seen": stored["squads/seen"][:, :3],
        "squads/claim": np.full(2, 99),
    }.items():
        with pytest.raises((CheckpointError, ValueError)):
            sim.population.restore({**stored, name: value})
    sim.population.restore(stored)
    other = squad([Go((25.0, 6.0))])
    with pytest.raises(CheckpointError):
        other.restore(tmp_path / "a.ckpt")


# What is refused ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"stages": [Search(["nowhere"])]}, "nowhere"),
        ({"stages": [Hold((3.0, 3.0))]}, "hold names rooms and regions"),
        ({"stages": [Escort("nobody")]}, "there is no group 'nobody'"),
        ({"stages": [Cover("bravo")]}, "there is no squad 'bravo'"),
        ({"stages": [Escort("alpha")]}, "because it is that group"),
        ({"stages": [Cover("alpha")]}, "because it is that group"),
        ({"count": 0}, "no agents, so none of them can lead: give it some, or leave squad out"),
        ({"families": 2}, "leave families and follow out"),
        ({"squad": Squad(enemies=["alpha"])}, "its own enemy"),
        ({"squad": Squad(enemies=["nobody"])}, "squad, enemies: there is no group 'nobody'"),
        ({"squad": Squad(retreat="nowhere")}, "nowhere"),
        ({"squad": {"formaton": "line"}}, "formation"),
        ({"squad": None, "stages": [RetreatTo((3.0, 3.0))]}, "is not a squad"),
        ({"squad": 3}, "squad is an object"),
    ],
)
def test_missions_that_make_no_sense(told: dict[str, Any], said: str) -> None:
    fields = {"count": 3, "squad": Squad(), "stages": [Go((25.0, 6.0))], **told}
    with pytest.raises(ParameterError, match=said):
        Simulation(World(FIELD), Group("alpha", **fields))


def test_squads_with_numbers_that_make_no_sense() -> None:
    for wrong in ({"attack_above": 0.5, "retreat_below": 0.9}, {"sight": float("nan")}, {"hits": -1.0}, {"spacing": 0}):
        with pytest.raises(ParameterError):
            Squad(**wrong)
    with pytest.raises(ParameterError, match="formation"):
        Squad(formation="circle")  # type: ignore[arg-type]


def test_squads_are_for_the_plane_and_for_models_that_follow_directions() -> None:
    told = {"count": 3, "squad": Squad(), "goal": "none"}
    with pytest.raises(ParameterError, match="plane world"):
        Simulation(World.box((0, 0, 0), (9, 9, 9)), Group("alpha", **told))
    with pytest.raises(ParameterError, match="squad sets the column role"):
        Simulation(World(FIELD), Group("alpha", **told), local=Lattice())


def test_orders_that_make_no_sense() -> None:
    sim = squad([Go((25.0, 6.0))], more=[Group("people", count=2, goal="none")])
    with pytest.raises(ParameterError, match="there is no squad 'people'"):
        sim.order("people", [Go((3.0, 3.0))])
    with pytest.raises(ParameterError, match="needs stages"):
        sim.at(1.0, events.Order(squad="alpha"))
    with pytest.raises(ParameterError, match="nowhere"):
        sim.at(1.0, events.Order(squad="alpha", stages=[Hold("nowhere")]))
    with pytest.raises(ParameterError, match="not a squad"):
        sim.set_stages([Search(["vault"])], group="people")
    alone = Simulation(World(FIELD), Group("people", count=2, goal="none"))
    with pytest.raises(ParameterError, match="no group was declared"):
        alone.order("people", [Go((3.0, 3.0))])
    with pytest.raises(ParameterError, match="there are no squads"):
        _ = alone.squads


def test_missions_that_can_never_end_and_rooms_out_of_reach_are_found() -> None:
    world = building(2, doors=True)
    world.set_door("door north 1", open=False)
    sim = squad([Hold("north 0"), Go((3.0, 6.5))], world=world, region=shapely.box(0.5, 5.3, 4, 7.7))
    assert "waits_forever" in [finding.code for finding in sim.check()]
    shut = squad([Search(["north 0", "north 1"])], world=world, region=shapely.box(0.5, 5.3, 4, 7.7))
    assert [(f.code, "north 1" in f.message) for f in shut.check()] == [("room_out_of_reach", True)]
    shut.at(5.0, events.OpenDoor(door="door north 1"))
    assert not shut.check()
