"""What agents know: seen with their own eyes, told by friends, held by a group, brought up to date by a manager."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel.contracts import Moment
from tropel.events import AddHazard, Announce, CloseDoor, OpenDoor, RemoveHazard, SetBehaviour
from tropel.knowing.model import LOOKING, SHARING, UPDATING

HALL = shapely.box(0.0, 0.0, 40.0, 6.0)


def hall(**more: Any) -> tropel.World:
    """A hall with a door across it at x = 30."""
    doors = {"gate": tropel.Door([(30.0, 0.0), (30.0, 6.0)], open=True)}
    return tropel.World(HALL, doors=doors, exits={"out": shapely.box(39.0, 2.0, 40.0, 4.0)}, **more)


def standing(places: Any, *, name: str = "a", facing: tuple[float, float] = (1.0, 0.0), **fields: Any) -> Any:
    return tropel.Group(name, positions=places, goal="none", **fields)


def simulation(world: tropel.World, *groups: tropel.Group, knowledge: Any, facing: Any = (1.0, 0.0)) -> Any:
    sim = tropel.Simulation(world, groups, knowledge=knowledge, planning=tropel.Direct(), dt=0.1, seed=1)
    sim.agents.heading[:] = facing
    return sim


def knowing(sim: tropel.Simulation, thing: str = "gate", state: str = "shut") -> list[int]:
    return sim.knowledge.who_knows(thing, state).tolist()


# Seeing ---------------------------------------------------------------------------------------------------------


def test_a_door_is_known_to_be_shut_by_those_that_see_it() -> None:
    places = [(25.0, 3.0), (12.0, 3.0), (35.0, 3.0)]
    sim = simulation(hall(), standing(places), knowledge=tropel.Knowledge(sight=10.0, share=False))
    sim.at(1.0, CloseDoor(door="gate"))
    sim.run(until=0.9)
    assert knowing(sim) == []
    sim.run(until=2.0)
    assert knowing(sim) == [0, 2]
    assert sim.knowledge.known_by(0)["door gate"][:4] == ("door gate", "shut", 1.5, 0)
    assert sim.knowledge.known_by(1)["door gate"].source == "the start"
    sim.world.set_door("gate", open=True)
    sim.run(until=3.0)
    assert knowing(sim) == []
    assert sim.knowledge.log["state"].tolist() == ["shut", "shut", "open", "open"]


def test_walls_hide_doors_and_so_do_backs() -> None:
    wall = [[(20.0, 0.0), (20.0, 6.0)]]
    behind_wall = simulation(hall(walls=wall), standing([(18.0, 3.0)]), knowledge=tropel.Knowledge(sight=30.0))
    behind_wall.at(0.5, CloseDoor(door="gate"))
    behind_wall.run(until=2.0)
    assert knowing(behind_wall) == []
    group = standing([(25.0, 3.0), (25.0, 4.0)], parameters={"view_angle": math.pi / 2})
    turned = simulation(hall(), group, knowledge=tropel.Knowledge(share=False), facing=[(1.0, 0.0), (-1.0, 0.0)])
    turned.at(0.5, CloseDoor(door="gate"))
    turned.run(until=2.0)
    assert knowing(turned) == [0]


def test_sight_and_earshot_may_differ_from_agent_to_agent() -> None:
    group = standing([(25.0, 3.0), (25.0, 4.0)], parameters={"sight": np.array([20.0, 1.0])})
    sim = simulation(hall(), group, knowledge=tropel.Knowledge(share=False))
    sim.at(0.5, CloseDoor(door="gate"))
    sim.run(until=2.0)
    assert knowing(sim) == [0]


def test_lines_of_sight_are_those_of_brute_force() -> None:
    rng = np.random.default_rng(5)
    walls = [shapely.LineString(rng.uniform(1.0, 19.0, (2, 2))) for _ in range(8)]
    area = shapely.box(0.0, 0.0, 20.0, 20.0)
    doors = {"d": tropel.Door([(9.0, 10.0), (11.0, 10.0)], open=False)}
    world = tropel.World(area, walls=walls, doors=doors)
    places = rng.uniform(0.5, 19.5, (120, 2))
    turn = rng.uniform(-math.pi, math.pi, 120)
    angle = math.radians(120.0)
    group = standing(places, radius=0.05, parameters={"view_angle": angle})
    knowledge = tropel.Knowledge(sight=9.0, share=False, at_first="plan")
    sim = simulation(world, group, knowledge=knowledge, facing=np.stack([np.cos(turn), np.sin(turn)], axis=1))
    position, heading = sim.agents.position.copy(), sim.agents.heading.copy()
    sim.step()
    expected = []
    for k in range(120):
        for point in ((9.5, 10.0), (10.0, 10.0), (10.5, 10.0)):
            offset = np.array(point) - position[k]
            away = np.linalg.norm(offset)
            line = shapely.LineString([position[k], position[k] + 0.999 * offset])
            hidden = any(line.intersects(w) for w in walls) or line.intersects(doors["d"].line)
            if away <= 9.0 and math.acos(np.clip(offset @ heading[k] / away, -1, 1)) <= angle / 2 and not hidden:
                expected.append(k)
                break
    assert 5 < len(expected) < 100
    assert knowing(sim, "d", "shut") == expected


def test_hazards_and_obstacles_are_known_when_seen_and_gone_when_their_place_is_seen_empty() -> None:
    sim = simulation(hall(), standing([(20.0, 3.0), (3.0, 3.0)]), knowledge=tropel.Knowledge(sight=8.0, share=False))
    sim.at(1.0, AddHazard(name="fire", position=(25.0, 3.0), inner=0.5))
    sim.at(1.0, tropel.events.AddObstacle(name="rubble", position=(24.0, 1.0), radius=0.4))
    sim.run(until=2.0)
    assert knowing(sim, "fire", "there") == [0]
    assert knowing(sim, "rubble", "there") == [0]
    sim.at(3.0, RemoveHazard(name="fire"))
    sim.run(until=4.0)
    assert knowing(sim, "fire", "there") == []
    assert knowing(sim, "fire", "gone") == [0]
    assert sim.knowledge.known_by(1)["hazard fire"].state == "unknown"


def test_targets_and_enemies_are_known_by_the_place_where_they_were_seen() -> None:
    raiders = standing([(10.0, 3.0), (11.0, 3.0), (38.0, 3.0)], name="raiders")
    guards = standing([(5.0, 3.0), (5.0, 5.0)], name="guards", parameters={"sight": np.array([8.0, 0.5])})
    world = hall(targets={"flag": tropel.Target(motion=lambda t: (8.0 + t, 3.0))})
    told = {"guards": tropel.Knowledge(sight=8.0, enemies=["raiders"], earshot=5.0)}
    sim = simulation(world, raiders, guards, knowledge=told)
    sim.step()
    seen = sim.knowledge.beliefs(sim.agents, sim.world).enemies(np.array([3, 4]))
    assert seen.many.tolist() == [2, 0]
    assert seen.place[0].tolist() == [10.0, 3.0]
    assert np.isnan(seen.time[1])
    assert sim.knowledge.known_by(3)["target flag"].place == (8.0, 3.0)
    assert sim.knowledge.known_by(4)["target flag"].place is None
    sim.run(until=1.2)
    seen = sim.knowledge.beliefs(sim.agents, sim.world).enemies(np.array([3, 4]))
    assert seen.many.tolist() == [2, 2]
    assert sim.knowledge.known_by(4)["group raiders"].source == 3
    assert sim.knowledge.known_by(0) == {}  # raiders know everything


# Sharing --------------------------------------------------------------------------------------------------------


def line_of_people(**told: Any) -> Any:
    """Ten people two metres apart; only the last one sees the gate."""
    places = [(8.0 + 2.0 * k, 3.0) for k in range(10)]
    sim = simulation(hall(), standing(places), knowledge=tropel.Knowledge(sight=4.5, earshot=2.5, hop=1.0, **told))
    sim.at(0.5, CloseDoor(door="gate"))
    return sim


def test_word_goes_one_hop_further_per_interval() -> None:
    sim = line_of_people()
    for hops in range(1, 10):
        sim.run(until=hops + 0.5)
        assert knowing(sim) == list(range(9 - hops, 10))
    log = sim.knowledge.log
    assert dict(zip(log["holder"].tolist(), log["source"].tolist(), strict=True)) == {9: 9} | {
        k: k + 1 for k in range(9)
    }


@pytest.mark.parametrize("off", ["share", "earshot", "behaviour"])
def test_without_sharing_nobody_is_told(off: str) -> None:
    sim = line_of_people(**({"share": False} if off == "share" else {}))
    if off == "earshot":
        sim.set_parameter("earshot", 0.0)
    if off == "behaviour":
        sim.at(0.0, SetBehaviour(name=SHARING, on=False))
    sim.run(until=12.0)
    assert knowing(sim) == [9]


def test_the_newest_word_wins() -> None:
    sim = line_of_people()
    sim.run(until=20.0)
    assert len(knowing(sim)) == 10
    sim.at(20.5, OpenDoor(door="gate"))
    sim.run(until=22.5)
    assert knowing(sim, "gate", "open") == [7, 8, 9]  # two hops later
    sim.run(until=30.5)
    assert knowing(sim, "gate", "shut") == []


def test_walls_keep_word_from_spreading_and_friends_are_told_but_strangers_are_not() -> None:
    wall = [[(22.0, 3.5), (22.0, 6.0)], [(22.0, 3.5), (24.0, 3.5)]]
    kinds = {"near": (21.5, 5.0), "friends": (23.0, 2.0), "strangers": (23.5, 1.0)}
    groups = [standing([(23.0, 3.0)], name="seer"), *(standing([at], name=name) for name, at in kinds.items())]
    own = tropel.Knowledge(sight=8.0, earshot=4.0, friends=["friends", "near"])
    deaf = tropel.Knowledge(sight=0.0, earshot=4.0)
    told = {"seer": own, "near": deaf, "friends": deaf, "strangers": deaf}
    sim = simulation(hall(walls=wall), *groups, knowledge=told)
    sim.at(0.5, CloseDoor(door="gate"))
    sim.run(until=5.0)
    assert knowing(sim) == [0, 2]
    heard = {"near": tropel.Knowledge(sight=0.0, earshot=4.0, through_walls=True)}
    sim = simulation(hall(walls=wall), *groups, knowledge=told | heard)
    sim.at(0.5, CloseDoor(door="gate"))
    sim.run(until=5.0)
    assert knowing(sim) == [0, 1, 2]


def test_who_hears_what_is_what_brute_force_finds() -> None:
    rng = np.random.default_rng(7)
    walls = [shapely.LineString(rng.uniform(1.0, 19.0, (2, 2))) for _ in range(6)]
    world = tropel.World(shapely.box(0.0, 0.0, 20.0, 20.0), walls=walls, doors={"d": [(0.2, 0.2), (0.4, 0.2)]})
    places = rng.uniform(0.5, 19.5, (150, 2))
    earshot = rng.uniform(0.0, 4.0, 150)
    group = standing(places, radius=0.05, parameters={"earshot": earshot})
    sim = simulation(world, group, knowledge=tropel.Knowledge(sight=0.0, hop=0.1))
    position = sim.agents.position.copy()
    sim.announce("d", "open", ids=range(0, 150, 15))
    sim.announce("d", "shut", ids=range(7, 150, 15))  # of the same age: whoever has heard one keeps it
    believed = sim.knowledge.table.state[:, 0].copy()
    when = sim.knowledge.table.when[:, 0].copy()
    sim.step()
    assert (sim.agents.position == position).all()
    sim.step()
    expected = believed.copy()
    for i in range(150):
        heard = [
            j for j in range(150)
            if when[j] > when[i] and np.linalg.norm(position[i] - position[j]) <= earshot[i]
            and not any(shapely.LineString([position[i], position[j]]).intersects(w) for w in walls)
        ]  # fmt: skip
        if heard:
            expected[i] = believed[min(heard)]
    assert (expected != believed).sum() > 10
    assert (sim.knowledge.table.state[:, 0] == expected).all()


# Who holds it, and the manager ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("held_by", "expected"), [("agent", [0]), ("group", [0, 1]), ("world", [0, 1, 2])])
def test_what_one_sees_is_known_to_all_that_share_a_holder(held_by: Any, expected: list[int]) -> None:
    groups = [standing([(28.0, 3.0), (3.0, 3.0)], name="a"), standing([(2.0, 1.0)], name="b")]
    sim = simulation(hall(), *groups, knowledge=tropel.Knowledge(sight=5.0, held_by=held_by, share=False))
    sim.at(0.5, CloseDoor(door="gate"))
    sim.run(until=2.0)
    assert knowing(sim) == expected
    assert sim.knowledge.log["holder"].tolist() == [{"agent": 0, "group": "a", "world": "world"}[held_by]]


def test_the_manager_updates_slowly_and_eyes_are_faster() -> None:
    knowledge = tropel.Knowledge(sight=5.0, held_by="group", update=10.0)
    sim = simulation(hall(), standing([(3.0, 3.0)]), knowledge=knowledge)
    sim.at(0.5, CloseDoor(door="gate"))
    sim.run(until=9.9)
    assert knowing(sim) == []
    sim.run(until=10.2)
    assert knowing(sim) == [0]
    assert sim.knowledge.known_by(0)["door gate"].source == "the manager"
    patched = simulation(hall(), standing([(3.0, 3.0), (28.0, 3.0)]), knowledge=knowledge)
    patched.at(0.5, CloseDoor(door="gate"))
    patched.run(until=1.0)
    assert knowing(patched) == [0, 1]
    off = simulation(hall(), standing([(3.0, 3.0)]), knowledge=knowledge)
    off.at(0.0, SetBehaviour(name=UPDATING, on=False))
    off.at(0.5, CloseDoor(door="gate"))
    off.run(until=12.0)
    assert knowing(off) == []


def test_the_plan_of_a_building_has_all_doors_open() -> None:
    world = tropel.World(HALL, doors={"gate": tropel.Door([(30.0, 0.0), (30.0, 6.0)], open=False)})
    for at_first, expected in (("plan", []), ("start", [0])):
        told = tropel.Knowledge(sight=5.0, at_first=at_first)
        sim = simulation(world, standing([(3.0, 3.0)]), knowledge=told)
        sim.step()
        assert knowing(sim) == expected


def test_newcomers_know_what_their_group_knew_at_first() -> None:
    sim = simulation(hall(), standing([(28.0, 3.0)]), knowledge=tropel.Knowledge(sight=5.0, share=False))
    sim.at(0.5, CloseDoor(door="gate"))
    sim.at(2.0, lambda sim: sim.add_agents("a", positions=[(3.0, 3.0)], goal="none"))
    sim.run(until=4.0)
    assert knowing(sim) == [0]
    assert knowing(sim, "gate", "open") == [1]
    sim.remove_agents(ids=[0])
    sim.run(until=5.0)
    assert knowing(sim, "gate", "open") == [1]


# Announcements --------------------------------------------------------------------------------------------------


def test_announcements_reach_those_that_are_meant_true_or_not() -> None:
    sim = simulation(hall(regions={"west": shapely.box(0, 0, 10, 6)}), standing([(3.0, 3.0), (15.0, 3.0)]),
                     knowledge=tropel.Knowledge(sight=1.0, share=False))  # fmt: skip
    sim.at(1.0, Announce(door="gate", state="shut", region="west"))  # a lie
    sim.at(2.0, CloseDoor(door="gate"))
    sim.at(3.0, Announce(door="gate", ids=(1,)))
    sim.run(until=1.5)
    assert knowing(sim) == [0]
    sim.run(until=3.5)
    assert knowing(sim) == [0, 1]
    assert sim.knowledge.known_by(1)["door gate"].source == "an announcement"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ({"state": "shut"}, "exactly one"),
        ({"door": "gate", "exit": "out"}, "exactly one"),
        ({"door": "gate", "state": "gone"}, "open or shut"),
        ({"hazard": "gate"}, "no hazard 'gate'"),
        ({"door": "gat"}, "gate"),
        ({"door": "gate", "group": "b"}, "knows everything"),
    ],
)
def test_announcements_that_make_no_sense_are_refused(event: dict[str, Any], said: str) -> None:
    groups = standing([(3.0, 3.0)]), standing([(5.0, 3.0)], name="b")
    sim = simulation(hall(), *groups, knowledge={"a": tropel.Knowledge()})
    with pytest.raises(tropel.TropelError, match=said):
        sim.at(1.0, Announce(**event))


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"sight": -1.0}, "sight"),
        ({"sight": math.nan}, "sight"),
        ({"hop": 0.0}, "hop"),
        ({"update": -3.0}, "update"),
        ({"held_by": "nobody"}, "held_by"),
        ({"sigth": 3.0}, "sight"),
        ({"friends": "b"}, "list of groups"),
        ({"friends": ["b"], "enemies": ["b"]}, "friends and enemies"),
        ({"friends": ["nobody"]}, "not a group"),
        ({"most_plans": 0}, "most_plans"),
    ],
)
def test_wrong_parameters_are_refused(told: dict[str, Any], said: str) -> None:
    with pytest.raises(tropel.TropelError, match=said):
        simulation(hall(), standing([(3.0, 3.0)]), standing([(5.0, 3.0)], name="b"), knowledge=tropel.Knowledge(**told))


def test_what_cannot_be_limited_or_asked_for_is_refused() -> None:
    group = tropel.Group("a", count=2, region=shapely.box(1, 1, 5, 5))
    with pytest.raises(tropel.TropelError, match="follows the ground"):
        tropel.Simulation(hall(), group, local=tropel.Lattice(), knowledge=tropel.Knowledge())
    with pytest.raises(tropel.TropelError, match="no group 'b'"):
        simulation(hall(), standing([(3.0, 3.0)]), knowledge={"b": tropel.Knowledge()})
    with pytest.raises(tropel.TropelError, match=r"Knowledge\(…\)"):
        simulation(hall(), standing([(3.0, 3.0)]), knowledge="all")
    free = simulation(hall(), standing([(3.0, 3.0)]), knowledge=None)
    with pytest.raises(tropel.TropelError, match="knows the world as it is"):
        free.announce("gate")
    sim = simulation(hall(), standing([(3.0, 3.0)]), knowledge=tropel.Knowledge())
    with pytest.raises(tropel.TropelError, match="nothing called 'gat'"):
        sim.knowledge.who_knows("gat", "shut")
    with pytest.raises(tropel.TropelError, match="'shut' or 'open'"):
        sim.knowledge.who_knows("gate", "gone")
    with pytest.raises(tropel.TropelError, match="no agent 7"):
        sim.knowledge.known_by(7)
    blind = tropel.Group("a", positions=[(3.0, 3.0)], goal="none", parameters={"sight": 3.0})
    with pytest.raises(tropel.TropelError, match="sight"):
        simulation(hall(), blind, knowledge=None)


def test_an_empty_group_and_a_world_without_doors_are_fine() -> None:
    world = tropel.World(shapely.box(0, 0, 5, 5))
    sim = tropel.Simulation(world, tropel.Group("a", count=0), knowledge=tropel.Knowledge(held_by="group"))
    sim.run(until=1.0)
    sim = tropel.Simulation(world, tropel.Group("a", count=3, goal="none"), knowledge=tropel.Knowledge())
    sim.run(until=1.0)
    assert len(sim.knowledge.log["time"]) == 0


def test_in_space_and_across_a_seam_things_are_seen_and_told() -> None:
    world = tropel.World.box((0, 0, 0), (10, 10, 10), periodic=True, targets={"star": (9.5, 5.0, 5.0)})
    group = standing([(0.5, 5.0, 5.0), (3.0, 5.0, 5.0)], parameters={"sight": np.array([2.0, 0.1])})
    told = tropel.Knowledge(sight=2.0, earshot=3.0, at_first="plan")
    sim = tropel.Simulation(world, group, knowledge=told, local=tropel.Flocking(), planning=tropel.Direct(), dt=0.1)
    sim.at(0.2, tropel.events.MoveTarget(name="star", position=(9.0, 5.0, 5.0)))
    sim.run(until=0.6)
    assert sim.knowledge.known_by(0)["target star"].time == pytest.approx(0.5)
    sim.run(until=1.2)
    assert sim.knowledge.known_by(1)["target star"].source == 0


# Checkpoints ----------------------------------------------------------------------------------------------------


def busy(threads: int = 1) -> tropel.Simulation:
    world = hall(targets={"flag": tropel.Target(motion=lambda t: (8.0 + 0.3 * t, 3.0))})
    groups = [
        tropel.Group("a", count=30, region=shapely.box(1, 0.5, 25, 5.5), goal="out"),
        tropel.Group("b", count=20, region=shapely.box(1, 0.5, 25, 5.5), goal="flag"),
    ]
    told = {
        "a": tropel.Knowledge(sight=8.0, earshot=2.0, enemies=["b"], update=4.0),
        "b": tropel.Knowledge(sight=6.0, held_by="group", friends=["a"]),
    }
    sim = tropel.Simulation(world, groups, knowledge=told, seed=4, threads=threads)
    sim.at(1.0, CloseDoor(door="gate"))
    sim.at(2.0, AddHazard(name="fire", position=(35.0, 3.0), inner=0.5, replan=True))
    sim.at(3.0, OpenDoor(door="gate"))
    sim.at(3.5, RemoveHazard(name="fire"))
    sim.at(3.0, SetBehaviour(name=LOOKING, on=False))
    sim.at(4.0, SetBehaviour(name=LOOKING, on=True))
    return sim


def test_a_resumed_run_has_the_same_bits(tmp_path: Path) -> None:
    sim, again = busy(), busy()
    sim.run(until=3.2)
    sim.save(tmp_path / "half")
    sim.run(until=7.0)
    again.restore(tmp_path / "half")
    assert len(again.knowledge.log["time"]) > 20
    again.run(until=7.0)
    assert again.state_hash() == sim.state_hash()
    other = busy()
    other.run(until=7.0)
    assert other.state_hash() == sim.state_hash()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("ids", -7), ("state", 99), ("when", -5), ("source", -9), ("things", "x"), ("kind", 3)),
        *(("places", None), ("first_state", 99), ("first_when", 7), ("log_thing", 99)),
    ],
)
def test_damaged_knowledge_is_refused_and_nothing_is_changed(name: str, value: Any) -> None:
    sim = busy()
    sim.run(until=2.0)
    layer = sim.layers.knowledge
    assert layer is not None
    stored, before = layer.state(), sim.state_hash()
    damaged = [stored[name][:-1]]
    if value is not None:
        damaged.append(np.full(stored[name].shape, value, dtype=stored[name].dtype))
    for wrong in damaged:
        with pytest.raises(tropel.TropelError):
            layer.restore(stored | {name: wrong})
    assert sim.state_hash() == before


def test_questions_may_be_asked_right_after_a_resume(tmp_path: Path) -> None:
    sim, again = busy(), busy()
    sim.remove_agents(ids=[3, 17])
    sim.run(until=2.0)
    sim.save(tmp_path / "half")
    again.restore(tmp_path / "half")
    assert knowing(again) == knowing(sim) != []
    assert again.knowledge.known_by(40) == sim.knowledge.known_by(40)


def test_knowledge_is_absent_from_the_moment_unless_it_is_limited() -> None:
    seen: list[Any] = []

    class Spy(tropel.Direct):
        def direct(self, moment: Moment, out: Any) -> None:
            seen.append(moment.beliefs)
            super().direct(moment, out)

    world, group = hall(), standing([(3.0, 3.0)])
    tropel.Simulation(world, group, planning=Spy()).step()
    tropel.Simulation(world, group, planning=Spy(), knowledge=tropel.Knowledge()).step()
    assert seen[0] is None
    assert seen[1] is not None


def test_threads_do_not_change_what_is_known() -> None:
    """More people than `SMALL_RUN`, from which on kernels run on several threads."""
    hashes = []
    for threads in (1, 2):
        world = tropel.World(
            shapely.box(0, 0, 80, 60),
            doors={f"d{k}": tropel.Door([(10.0 * k, 30.0), (10.0 * k + 3.0, 30.0)]) for k in range(1, 7)},
            exits={"out": shapely.box(78, 20, 80, 40)},
        )
        group = tropel.Group("a", count=2200, goal="out", parameters={"view_angle": 3.0})
        told = tropel.Knowledge(sight=12.0, earshot=2.0, hop=0.2, look=0.1, at_first="plan")
        sim = tropel.Simulation(world, group, knowledge=told, planning=tropel.Direct(), seed=3, threads=threads)
        for _ in range(9):
            sim.step()
        assert len(sim.knowledge.log["time"]) > 100
        hashes.append(sim.state_hash())
    assert hashes[0] == hashes[1]
