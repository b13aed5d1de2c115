"""People on cells and continuous walkers in one world: neither walks through the other, and all get where they go."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel import events
from tropel.contracts import ModelDeclaration
from tropel.errors import ParameterError
from tropel.world.motion import position_at

Floats = NDArray[np.float64]
CELL = 0.4
SOLID: dict[str, Callable[[], Any]] = {
    "seek": tropel.Seek,
    "dynamical": tropel.Dynamical,
    "collision_free_speed": lambda: tropel.CollisionFreeSpeed(solid_bodies=True),
    "orca": lambda: tropel.ORCA(solid_bodies=True),
    "social_force": lambda: tropel.SocialForce(solid_bodies=True),
}


def counter_flow(
    model: Any = None, *, people: int = 40, seed: int = 1, threads: int = 1, door: bool = False, dt: float = 0.05
) -> tropel.Simulation:
    """A lattice crowd walks east and continuous walkers walk west in a corridor, or through a door of 1.6 m."""
    area: Any = shapely.box(0, 0, 24, 4)
    if door:
        area = area - shapely.box(11.6, 0, 12.4, 1.2) - shapely.box(11.6, 2.8, 12.4, 4)
    world = tropel.World(area, exits={"east": shapely.box(23.2, 0, 24, 4), "west": shapely.box(0, 0, 0.8, 4)})
    return tropel.Simulation(
        world,
        [
            tropel.Group("cells", count=people, region=shapely.box(1.2, 0, 10.4, 4), goal="east"),
            tropel.Group("walkers", count=people, region=shapely.box(13.6, 0, 22.8, 4), goal="west"),
        ],
        planning=tropel.PathPlans(),
        local={"cells": tropel.Lattice(), "walkers": tropel.Seek() if model is None else model},
        dt=dt,
        seed=seed,
        threads=threads,
    )


def deepest_reach_into_cells(sim: tropel.Simulation) -> float:
    """How deep a walker's body reaches into the circle inscribed in somebody's cell [m]: all pairs, plain NumPy."""
    state = sim.agents
    on_cells = state.group == 0
    if on_cells.all() or not on_cells.any():
        return -np.inf
    apart = np.linalg.norm(state.position[on_cells][:, None] - state.position[~on_cells][None], axis=2)
    return float((0.5 * CELL + state.radius[~on_cells] - apart).max())


def check_cells(sim: tropel.Simulation) -> None:
    """Everybody on cells stands in the middle of one, alone."""
    place = sim.agents.position[sim.agents.group == 0] / CELL - 0.5
    np.testing.assert_allclose(place, np.round(place), atol=1e-9)
    assert len(np.unique(np.round(place), axis=0)) == len(place)


@pytest.mark.parametrize("door", [False, True], ids=["corridor", "door"])
@pytest.mark.parametrize("model", SOLID)
def test_both_kinds_get_through_each_other_and_nobody_through_a_body(model: str, door: bool) -> None:
    sim = counter_flow(SOLID[model](), door=door, people=20 if door else 40)
    people = len(sim.agents)
    deepest = -np.inf
    while len(sim.agents) and sim.time < 180.0:
        sim.step()
        deepest = max(deepest, deepest_reach_into_cells(sim))
        if sim.step_number % 10 == 0:
            check_cells(sim)
    assert len(sim.population.departures()["id"]) == people
    assert -0.05 < deepest < 1e-6, "they meet, and do not overlap"
    assert sim.collisions.begun.sum() == 0


class Runs(tropel.Model):
    """Everybody runs in a direction of its own, another one each second, without looking."""

    def __init__(self, *, solid: bool = True) -> None:
        self.declares = ModelDeclaration(solid_bodies=solid)

    def steer(self, moment, out):
        angle = 2.4 * moment.state.id[moment.members] + 1.7 * int(moment.step * moment.dt)
        out.velocity[moment.members] = 2.0 * np.column_stack([np.cos(angle), np.sin(angle)])


def melee(*, seed: int, solid: bool, threads: int = 1) -> tropel.Simulation:
    """A lattice crowd on its way between targets in a hall full of blind runners of all sizes."""
    world = tropel.World(
        shapely.box(0, 0, 12, 12) - shapely.box(5.2, 5.2, 6.8, 6.8),
        targets={
            "left": tropel.Target(position=(1, 6), radius=1.0),
            "right": tropel.Target(position=(11, 6), radius=1.0),
        },
    )
    sim = tropel.Simulation(
        world,
        [
            tropel.Group("cells", count=120, goal="left", desired_speed=tropel.Uniform(0.7, 1.8)),
            tropel.Group("runners", count=60, goal="none", radius=tropel.Uniform(0.1, 0.3)),
        ],
        planning={"cells": tropel.PathPlans(), "runners": tropel.Direct()},
        local={"cells": tropel.Lattice(), "runners": Runs(solid=solid)},
        seed=seed,
        dt=0.1,
        threads=threads,
    )
    for k in range(1, 8):
        sim.at(10.0 * k, events.SetGoal(goal="right" if k % 2 else "left", group="cells"))
    sim.at(15.0, events.AddHazard(name="blast", inner=1.5, position=(3, 3), until=15.5))
    return sim


@pytest.mark.parametrize("seed", [1, 2])
def test_over_a_long_random_run_bodies_stay_apart_and_on_their_cells(seed: int) -> None:
    sim = melee(seed=seed, solid=True)
    ids = sim.agents.id.copy()
    deepest = -np.inf
    travelled = 0.0
    for _ in range(800):
        before = sim.agents.position.copy()
        sim.step()
        travelled += float(np.abs(sim.agents.position - before)[sim.agents.group == 0].sum())
        check_cells(sim)
        deepest = max(deepest, deepest_reach_into_cells(sim))
    assert sim.agents.id.tolist() == ids.tolist()
    assert deepest < 1e-6
    assert travelled > 120 * 20.0, "the crowd walks to and fro"
    assert sim.agents.dead.sum() > 0


def test_runners_without_solid_bodies_do_run_into_people_on_cells() -> None:
    sim = melee(seed=1, solid=False)
    deepest = -np.inf
    for _ in range(100):
        sim.step()
        check_cells(sim)
        deepest = max(deepest, deepest_reach_into_cells(sim))
    assert deepest > 0.1
    log = sim.collisions
    group = dict(zip(sim.agents.id.tolist(), sim.agents.group.tolist(), strict=True))
    kinds = {(group[a], group[b]) for a, b in zip(log.id_a.tolist(), log.id_b.tolist(), strict=True)}
    assert kinds == {(0, 1), (1, 1)}, "between kinds and among runners, never among people on cells"


def test_nobody_on_cells_steps_where_a_walker_is_about_to_be() -> None:
    """A body of 0.6 m just clears the next cell when it stands, and would not after another step towards it."""
    world = tropel.World(shapely.box(0, 0, 4, 0.8), exits={"out": shapely.box(3.6, 0, 4, 0.8)})
    sim = tropel.Simulation(
        world,
        [
            tropel.Group("cells", positions=[(1.0, 0.2)], goal="out"),
            tropel.Group("walkers", positions=[(1.9, 0.4)], goal="none", radius=0.3),
        ],
        planning=tropel.PathPlans(),
        local={"cells": tropel.Lattice(separation=1.0), "walkers": Still()},
        dt=0.1,
    )
    for velocity, free in (((0.0, 0.0), True), ((-2.5, 0.0), False)):
        sim.agents.velocity[1] = velocity
        sim.agents.credit[:] = 1.0
        sim.agents.position[0] = 1.0, 0.2
        sim.step()
        assert (sim.agents.position[0, 0] > 1.1) == free


class Still(tropel.Model):
    declares = ModelDeclaration(solid_bodies=True)

    def steer(self, moment, out):
        out.velocity[moment.members] = 0.0


def test_moving_obstacles_occupy_cells_like_bodies() -> None:
    def crossing(*, robot: bool) -> float:
        motion = tropel.Waypoints(points=((6.0, 0.2), (6.0, 3.8)), speed=0.3)
        world = tropel.World(
            shapely.box(0, 0, 12, 4),
            exits={"out": shapely.box(11.2, 0, 12, 4)},
            obstacles={"robot": tropel.Obstacle(radius=0.5, motion=motion)} if robot else {},
        )
        sim = tropel.Simulation(
            world,
            tropel.Group("cells", count=60, region=shapely.box(0, 0, 4.8, 4)),
            planning=tropel.PathPlans(),
            local=tropel.Lattice(),
        )
        deepest = -np.inf
        while len(sim.agents):
            centre = np.array(position_at(motion, sim.time, what="robot", dim=2))
            before = dict(zip(sim.agents.id.tolist(), sim.agents.position.tolist(), strict=True))
            sim.step()
            moved = [
                before[n] != place
                for n, place in zip(sim.agents.id.tolist(), sim.agents.position.tolist(), strict=True)
            ]
            away = np.linalg.norm(sim.agents.position - centre, axis=1)[moved]
            deepest = max(deepest, float((0.5 + 0.5 * CELL - away).max(initial=-np.inf)))
        return deepest

    assert crossing(robot=True) < 1e-6
    assert crossing(robot=False) > 0.3


# Velocity -------------------------------------------------------------------------------------------------------


def test_a_lone_walker_on_cells_has_its_speed_in_every_step_and_not_in_pulses() -> None:
    world = tropel.World(shapely.box(0, 0, 20, 4), exits={"out": shapely.box(19.2, 0, 20, 4)})
    sim = tropel.Simulation(
        world,
        tropel.Group("one", positions=[(0.6, 2.0)], desired_speed=1.1),
        planning=tropel.PathPlans(),
        local=tropel.Lattice(),
        dt=0.05,
    )
    while sim.agents.position[0, 0] < 0.9:
        sim.step()
    for _ in range(200):
        sim.step()
        assert np.linalg.norm(sim.agents.velocity[0]) == pytest.approx(1.1)
        np.testing.assert_allclose(sim.agents.velocity[0] / 1.1, sim.agents.heading[0])
    sim.set_parameter("desired_speed", 0.0)
    sim.step()
    assert not sim.agents.velocity.any()


def test_velocities_add_up_to_the_way_also_in_a_jam() -> None:
    world = tropel.World(
        shapely.box(0, 0, 12, 6) - shapely.box(8, 0, 8.4, 2.4) - shapely.box(8, 3.6, 8.4, 6),
        exits={"out": shapely.box(11.2, 0, 12, 6)},
    )
    sim = tropel.Simulation(
        world,
        tropel.Group("cells", count=150, region=shapely.box(0, 0, 8, 6), desired_speed=tropel.Uniform(0.8, 1.6)),
        planning=tropel.PathPlans(),
        local=tropel.Lattice(),
    )
    begin = dict(zip(sim.agents.id.tolist(), sim.agents.position.copy(), strict=True))
    summed = {number: np.zeros(2) for number in begin}
    for _ in range(200):
        sim.step()
        for number, velocity in zip(sim.agents.id.tolist(), sim.agents.velocity, strict=True):
            summed[number] += sim.dt * velocity
    ways = np.array([place - begin[n] for n, place in zip(sim.agents.id.tolist(), sim.agents.position, strict=True)])
    told = np.array([summed[n] for n in sim.agents.id.tolist()])
    assert len(ways) > 40
    # The last move is still being counted, and time comes in steps.
    assert np.linalg.norm(ways - told, axis=1).max() < 5.0 * CELL
    assert np.linalg.norm((ways - told).mean(axis=0)) < 0.5 * CELL
    speed = np.linalg.norm(sim.agents.velocity, axis=1)
    assert (speed == 0.0).any(), "those who are blocked stand"


def test_the_body_of_somebody_on_cells_is_its_cell() -> None:
    sim = counter_flow()
    assert (sim.agents.radius[sim.agents.group == 0] == 0.5 * CELL).all()
    sim.set_parameter("radius", 0.15)
    assert (sim.agents.radius == np.where(sim.agents.group == 0, 0.5 * CELL, 0.15)).all()


# One world, one crowd on cells ----------------------------------------------------------------------------------


def test_threads_and_a_resume_give_the_same_bits(tmp_path: Path) -> None:
    straight = melee(seed=3, solid=True)
    straight.run(until=17.0)
    first, second = (melee(seed=3, solid=True, threads=2) for _ in range(2))
    first.run(until=9.7)
    first.save(tmp_path / "checkpoint")
    second.restore(tmp_path / "checkpoint")
    second.run(until=17.0)
    assert second.state_hash() == straight.state_hash()


def test_threads_make_no_difference_to_a_large_mixed_crowd() -> None:
    hashes = set()
    for threads in (1, 2):
        world = tropel.World(shapely.box(0, 0, 60, 30), exits={"east": shapely.box(58, 0, 60, 30)})
        sim = tropel.Simulation(
            world,
            [tropel.Group("cells", count=1_800), tropel.Group("walkers", count=900)],
            planning=tropel.PathPlans(),
            local={"cells": tropel.Lattice(), "walkers": tropel.Seek()},
            dt=0.1,
            threads=threads,
        )
        for _ in range(25):
            sim.step()
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


def test_a_pure_lattice_run_senses_nothing_and_counts_no_collisions() -> None:
    class Alarmed(tropel.Grid):
        def sense(self, moment):
            raise AssertionError("nobody asked")

    world = tropel.World(shapely.box(0, 0, 8, 8), exits={"out": shapely.box(7.2, 0, 8, 8)})
    sim = tropel.Simulation(
        world,
        tropel.Group("cells", count=200, region=shapely.box(0, 0, 7, 8)),
        planning=tropel.PathPlans(),
        local=tropel.Lattice(),
        environment=Alarmed(),
    )
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0
    assert len(sim.collisions) == 0


def test_a_goal_that_walkers_had_first_is_laid_for_the_crowd_on_cells_later() -> None:
    world = tropel.World(
        shapely.box(0, 0, 12, 4),
        exits={"out": shapely.box(11.2, 0, 12, 4)},
        targets={"desk": tropel.Target(position=(6.0, 3.0), radius=0.6, absorbs=True)},
    )
    sim = tropel.Simulation(
        world,
        [
            tropel.Group("cells", count=6, region=shapely.box(0, 0, 2, 4)),
            tropel.Group("walkers", count=6, region=shapely.box(2.4, 0, 5, 4)),
        ],
        planning=tropel.PathPlans(),
        local={"cells": tropel.Lattice(), "walkers": tropel.Seek()},
    )
    sim.at(0.5, events.SetGoal(goal="desk", group="walkers"))
    sim.at(1.0, events.SetGoal(goal="desk", group="cells"))
    sim.run(until="empty", limit=60.0)
    assert len(sim.agents) == 0
    assert set(sim.population.departures()["goal"].tolist()) == {world.goal_numbers["desk"]}


def test_two_lattices_or_two_planners_for_them_are_refused() -> None:
    world = tropel.World(shapely.box(0, 0, 8, 8), exits={"out": shapely.box(7.2, 0, 8, 8)})
    groups = [tropel.Group("a", count=3), tropel.Group("b", count=3)]
    one = tropel.Lattice()
    with pytest.raises(ParameterError, match="two Lattice models share one world; give the same one"):
        tropel.Simulation(world, groups, planning=tropel.PathPlans(), local={"a": one, "b": tropel.Lattice()})
    with pytest.raises(ParameterError, match=r"two planners .* give the same planner"):
        tropel.Simulation(world, groups, planning={"a": tropel.PathPlans(), "b": tropel.PathPlans()}, local=one)


def test_walkers_may_have_path_plans_of_their_own_in_any_order_of_groups() -> None:
    for order in (1, -1):
        world = tropel.World(shapely.box(0, 0, 12, 4), exits={"out": shapely.box(11.2, 0, 12, 4)})
        groups = [
            tropel.Group("cells", count=20, region=shapely.box(0, 0, 5, 4)),
            tropel.Group("walkers", count=5, region=shapely.box(6, 0, 11, 4)),
        ]
        sim = tropel.Simulation(
            world,
            groups[::order],
            planning={"cells": tropel.PathPlans(congestion=True), "walkers": tropel.PathPlans(gamma=0.7)},
            local={"cells": tropel.Lattice(), "walkers": tropel.Seek()},
        )
        assert sim.ground is sim.planners["cells"].ground is not None
        assert sim.ground.log_gamma == pytest.approx(np.log(0.6))
        sim.add_value_map("open", tropel.ValueMap(tropel.Openness()))
        assert sim.planners["cells"].value_maps.names == ["open"]
        assert sim.planners["walkers"].value_maps.names == []
        sim.run(until="empty", limit=60.0)
        assert len(sim.agents) == 0
