"""Threats: who is seen, who attacks and who retreats; and combat against its own formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Go, Group, Hold, Normal, Seek, Simulation, Squad, World
from tropel.agents.squads.columns import ATTACK
from tropel.agents.squads.combat import fallen, hostility
from tropel.agents.squads.threat import ATTACKS, CALM, RETREATS, confidence, next_stance

FIELD = shapely.box(0, 0, 30, 12)


def meeting(ours: int, theirs: int, *, stages: Any = None, world: World | None = None, courage: Any = 0.5, **told: Any):
    us = Group("us", count=ours, region=shapely.box(1, 3, 5, 9), squad=Squad(enemies=["them"], rally=0.5, **told),
               stages=stages or [Go((28.0, 6.0))], parameters={"courage": courage})  # fmt: skip
    them = Group("them", count=theirs, region=shapely.box(13, 3, 17, 9), goal="none")
    return Simulation(world or World(FIELD), [us, them], local=Seek(), dt=0.1, seed=2, threads=1)


def test_stances_have_hysteresis() -> None:
    squad = Squad(attack_above=1.2, retreat_below=0.7)
    for sure, before, after in [
        (1.3, CALM, ATTACKS), (1.0, CALM, CALM), (0.6, CALM, RETREATS), (1.0, ATTACKS, ATTACKS),
        (0.6, ATTACKS, RETREATS), (0.9, RETREATS, RETREATS), (3.0, RETREATS, RETREATS),
    ]:  # fmt: skip
        assert next_stance(before, sure, squad, may_retreat=True) == after
    assert next_stance(ATTACKS, 0.1, squad, may_retreat=False) == ATTACKS
    assert confidence(np.array([0.5, 0.5, 1.0]), 2) == pytest.approx(2.0)


def test_the_many_attack_and_the_few_retreat_and_resume() -> None:
    many, few = meeting(6, 3, sight=14.0), meeting(2, 6, sight=14.0)
    many.run(until=2.0)
    few.run(until=2.0)
    assert many.squads["us"].stance == "attacks"
    assert (many.agents.order[many.agents.group == 0] == ATTACK).all()
    assert few.squads["us"].stance == "retreats"
    assert few.squads["us"].interrupted
    few.run(until=15.0)
    said = [what for _, _, what in few.squads.log()]
    assert "retreats" in said
    assert "resumes" in said


def test_courage_counts_as_numbers_do() -> None:
    stances = []
    for courage in (0.1, 0.9):
        sim = meeting(4, 4, sight=14.0, courage=courage)
        sim.run(until=2.0)
        stances.append(sim.squads["us"].stance)
    assert stances == ["retreats", "attacks"]


def test_nobody_assesses_what_it_does_not_see_nor_if_told_not_to() -> None:
    hidden = World(FIELD, walls=[[(9.0, 0.0), (9.0, 12.0)]])
    for told in ({"world": hidden, "sight": 14.0}, {"sight": 5.0}, {"assess": False, "sight": 14.0}):
        sim = meeting(2, 6, **told)
        sim.run(until=2.0)
        assert sim.squads["us"].stance == "carries on"


def test_nobody_retreats_from_a_stage_that_is_critical() -> None:
    sim = meeting(2, 6, sight=14.0, stages=[Go((28.0, 6.0), critical=True)])
    sim.run(until=3.0)
    assert sim.squads["us"].stance == "carries on"


def test_whoever_holds_a_room_does_not_follow_enemies_out_of_it() -> None:
    world = World(FIELD, rooms={"west": shapely.box(0, 0, 8, 12)})
    kept = meeting(6, 3, sight=20.0, world=world, stages=[Hold("west")])
    kept.run(until=8.0)
    assert kept.squads["us"].stance == "attacks"
    assert (kept.agents.position[kept.agents.group == 0, 0] < 8.5).all()
    gone = meeting(6, 3, sight=20.0, world=world, stages=[Go("west")])
    gone.run(until=8.0)
    assert (gone.agents.position[gone.agents.group == 0, 0] > 8.5).any()


# Combat ---------------------------------------------------------------------------------------------------------------


def test_combat_strikes_the_nearest_enemy_in_reach_with_the_probability_of_its_formula() -> None:
    world = World(FIELD, walls=[[(10.0, 0.0), (10.0, 12.0)]])
    draw = np.random.default_rng(4)
    position = draw.uniform((8.5, 5.0), (11.5, 7.0), (24, 2))
    group = np.repeat([0, 1, 2], 8)
    hostile = hostility(["a", "b", "c"], {0: ("b",), 1: ("a",)})
    radius, ids, living = np.full(24, 0.1), draw.permutation(24).astype(np.int64), np.arange(22)
    strikers = np.array([0, 3, 5, 9, 12, 21 - 8])
    hits, reach = np.array([0.5, 1.0, 2.0, 0.7, 0.3, 0.9]), np.full(6, 0.8)
    rate = np.zeros(24)
    for i, strength in zip(strikers.tolist(), hits.tolist(), strict=True):
        foes = [
            (np.linalg.norm(position[j] - position[i]) - 0.2, j)
            for j in living.tolist()
            if hostile[group[i], group[j]] and (position[j, 0] < 10.0) == (position[i, 0] < 10.0)
        ]
        if foes and min(foes)[0] <= 0.8:
            rate[min(foes)[1]] += strength
    assert (rate > 0.0).sum() >= 3
    runs, dt = 3000, 0.4
    down = np.zeros(24)
    for step in range(runs):
        found = fallen(
            world, strikers=strikers, hits=hits, reach=reach, hostile=hostile, living=living, group=group, ids=ids,
            position=position, radius=radius, dt=dt, seed=1, step=step,
        )  # fmt: skip
        assert (np.diff(ids[found]) > 0).all()
        down[found] += 1
    wanted = 1.0 - np.exp(-dt * rate)
    assert np.abs(down / runs - wanted).max() < 4.0 * np.sqrt(0.25 / runs)
    assert (down[rate == 0.0] == 0).all()


def test_rows_in_another_order_give_the_same_people() -> None:
    draw = np.random.default_rng(7)
    position, group, ids = draw.uniform((2, 2), (6, 6), (20, 2)), np.repeat([0, 1], 10), np.arange(20)
    hits = draw.uniform(1.0, 3.0, 20)
    hostile = hostility(["a", "b"], {0: ("b",), 1: ("a",)})
    told = {"reach": np.full(20, 1.0), "hostile": hostile, "living": np.arange(20), "radius": np.full(20, 0.2)}
    order = draw.permutation(20)
    one = fallen(World(FIELD), strikers=np.arange(20), hits=hits, group=group, ids=ids, position=position, dt=0.5,
                 seed=1, step=3, **told)  # fmt: skip
    other = fallen(World(FIELD), strikers=np.arange(20), hits=hits[order], group=group[order], ids=ids[order],
                   position=position[order], dt=0.5, seed=1, step=3, **told)  # fmt: skip
    assert len(one)
    assert ids[one].tolist() == ids[order][other].tolist()


def test_the_fallen_are_recorded_as_dead_and_a_fallen_commander_is_succeeded() -> None:
    told = {"hits": 1.0, "reach": 1.0, "sight": 14.0}
    us = Group("us", count=6, region=shapely.box(1, 3, 5, 9), squad=Squad(enemies=["them"], **told),
               stages=[Go((28.0, 6.0), critical=True)], desired_speed=Normal(1.3, 0.1, low=1.0))  # fmt: skip
    them = Group("them", count=6, region=shapely.box(9, 3, 13, 9), squad=Squad(enemies=["us"], **told),
                 stages=[Go((1.0, 6.0), critical=True)])  # fmt: skip
    sim = Simulation(World(FIELD), [us, them], local=Seek(), dt=0.1, seed=5, threads=1)
    sim.run(until=40.0)
    dead = sim.population.deaths()["id"]
    assert len(dead) >= 6
    assert set(sim.agents.id[sim.agents.dead != 0].tolist()) == set(dead.tolist())
    assert sum("commanded" in what for _, _, what in sim.squads.log()) > 2


def test_without_hits_nobody_falls() -> None:
    sim = meeting(6, 3, sight=14.0)
    sim.run(until=10.0)
    assert not len(sim.population.deaths()["id"])
