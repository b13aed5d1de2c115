"""Stay together: families wait for their slowest member and take one exit, with any continuous model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import CollisionFreeSpeed, Dynamical, Group, Simulation, StayTogether, Walk, World
from tropel.errors import ParameterError


def arrivals(local: Any, habits: Any, *, seed: int) -> dict[int, float]:
    """When four people with different speeds, two of them slow, leave a corridor of 30 m."""
    world = World(shapely.box(0, 0, 32, 3), exits={"out": shapely.box(31, 0, 32, 3)})
    quick = Group("quick", count=2, region=shapely.box(0, 0, 2, 3), desired_speed=1.5, parameters={"family": 1})
    slow = Group("slow", count=2, region=shapely.box(0, 0, 2, 3), desired_speed=0.7, parameters={"family": 1})
    sim = Simulation(world, [quick, slow], local=local, habits=habits, seed=seed, threads=1)
    left: dict[int, float] = {}
    while len(sim.agents) and sim.time < 120.0:
        before = set(sim.agents.id.tolist())
        sim.step()
        left |= dict.fromkeys(before - set(sim.agents.id.tolist()), sim.time)
    return left


@pytest.mark.parametrize("model", [Walk, CollisionFreeSpeed, Dynamical])
def test_the_quick_wait_for_the_slow(model: Any) -> None:
    for seed in range(3):
        together = arrivals(model(), [StayTogether()], seed=seed)
        assert len(together) == 4
        assert max(together.values()) - min(together.values()) < 6.0
        assert max(together.values()) < 1.3 * 30.0 / 0.7


def test_without_the_habit_they_part() -> None:
    with pytest.raises(ParameterError, match="family"):
        arrivals(Walk(), [], seed=0)
    loose = arrivals(Walk(), [StayTogether(reach=1e6)], seed=0)
    assert max(loose.values()) - min(loose.values()) > 15.0


def test_a_family_between_two_exits_takes_one_of_them() -> None:
    whole = 0
    families = 0
    for seed in range(4):
        world = World(
            shapely.box(0, 0, 20, 8), exits={"west": shapely.box(0, 3, 0.5, 5), "east": shapely.box(19.5, 3, 20, 5)}
        )
        people = Group("people", count=16, region=shapely.box(8, 1, 12, 7), families=4)
        sim = Simulation(world, people, seed=seed, threads=1)
        family = dict(zip(sim.agents.id.tolist(), sim.agents.family.tolist(), strict=True))
        side: dict[int, set[bool]] = {}
        while len(sim.agents) and sim.time < 90.0:
            before = dict(zip(sim.agents.id.tolist(), sim.agents.position[:, 0].tolist(), strict=True))
            sim.step()
            for gone in set(before) - set(sim.agents.id.tolist()):
                side.setdefault(family[gone], set()).add(before[gone] > 10.0)
        assert len(sim.agents) == 0
        whole += sum(len(exits) == 1 for exits in side.values())
        families += len(side)
    assert whole >= 0.9 * families


def test_nobody_is_drawn_through_a_wall() -> None:
    # Two halves of a room; the members of a family in each of them cannot see each other.
    world = World(
        shapely.box(0, 0, 20, 8),
        walls=[[(0, 4), (18, 4)]],
        exits={"out": shapely.box(19, 0, 20, 8)},
    )
    people = Group("p", positions=[(2.0, 2.0), (2.0, 6.0)], parameters={"family": 7})
    sim = Simulation(world, people, habits=[StayTogether()], threads=1)
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0


def test_the_order_of_rows_does_not_matter() -> None:
    def directions(order: list[int]) -> np.ndarray:
        world = World(shapely.box(0, 0, 20, 8), exits={"out": shapely.box(19, 0, 20, 8)})
        places = [(2.0, 2.0), (2.0, 6.0), (9.0, 3.0), (5.0, 1.0), (1.0, 7.0)]
        people = Group("p", positions=places, parameters={"family": 7})
        sim = Simulation(world, people, habits=[StayTogether()], threads=1)
        for name, column in sim.agents.columns.items():
            sim.agents.columns[name] = column[order]
        sim.step()
        return sim.agents.velocity[np.argsort(sim.agents.id)]

    np.testing.assert_array_equal(directions([0, 1, 2, 3, 4]), directions([3, 0, 4, 2, 1]))
