"""People on cells and what comes upon them: closing doors, falling rubble, things that drive through the crowd."""

import numpy as np
import pytest
import shapely

from tropel import Door, Group, Lattice, Obstacle, PathPlans, Simulation, Waypoints, World, events

CELL = 0.4


def simulate(world: World, agents: Group, **options: object) -> Simulation:
    return Simulation(world, agents, planning=PathPlans(), local=Lattice(), dt=0.25, seed=3, **options)


@pytest.mark.parametrize("start", [3.4, 4.6])
def test_who_stands_in_the_cell_of_a_closing_door_leaves_it_on_its_own_side(start: float) -> None:
    exits = {"left": shapely.box(0, 0.8, 0.4, 1.2), "right": shapely.box(7.6, 0.8, 8, 1.2)}
    world = World(shapely.box(0, 0, 8, 2), doors={"door": Door([(4.05, 0), (4.05, 2)], open=True)}, exits=exits)
    beyond = "right" if start < 4.05 else "left"
    sim = simulate(world, Group("one", positions=[(start, 1.0)], goal=beyond))
    while not 4.0 < sim.agents.position[0, 0] < 4.4:
        sim.step()
    sim.at(sim.time, events.CloseDoor(door="door"))
    sim.step()
    side = np.sign(sim.agents.position[0, 0] - 4.05)
    sim.set_goal("right" if side > 0 else "left")
    sim.run(until="empty", limit=sim.time + 20)
    assert len(sim.agents) == 0


def test_nobody_leaves_through_a_door_that_closed_upon_somebody() -> None:
    world = World(
        shapely.box(0, 0, 8, 2),
        doors={"door": Door([(4.05, 0), (4.05, 2)], open=True)},
        exits={"right": shapely.box(7.6, 0.8, 8, 1.2)},
    )
    sim = simulate(world, Group("many", count=20, region=shapely.box(0, 0, 3.6, 2)))
    sim.at(2.0, events.CloseDoor(door="door"))
    sim.run(until=2.5)
    left = sim.agents.id[sim.agents.position[:, 0] < 4.05]
    sim.run(until=30)
    assert 0 < len(left) < 20
    assert set(sim.agents.id.tolist()) == set(left.tolist())


def test_who_is_caught_under_rubble_walks_out_of_it() -> None:
    world = World(shapely.box(0, 0, 8, 8), exits={"out": shapely.box(7.6, 3.6, 8, 4.4)})
    sim = simulate(world, Group("one", positions=[(3.8, 3.8)]))
    sim.at(0.0, events.AddObstacle(name="rubble", radius=0.3, position=(3.8, 3.8)))
    sim.run(until="empty", limit=30)
    assert len(sim.agents) == 0


def test_nobody_steps_into_an_obstacle_that_drives_through_the_crowd() -> None:
    cart = Obstacle(radius=0.6, motion=Waypoints(points=[(1.0, 4.0), (15.0, 4.0)], speed=0.5))
    world = World(shapely.box(0, 0, 16, 8), obstacles={"cart": cart}, exits={"out": shapely.box(0, 3.2, 0.4, 4.8)})
    sim = simulate(world, Group("people", count=200, region=shapely.box(4, 0, 16, 8)))
    stepped = driven_over = 0
    for _ in range(60):
        before = dict(zip(sim.agents.id.tolist(), sim.agents.position.tolist(), strict=True))
        sim.step()
        away = np.linalg.norm(sim.agents.position - world.obstacles.position[0], axis=1)
        for i, place, distance in zip(sim.agents.id.tolist(), sim.agents.position.tolist(), away, strict=True):
            moved = place != before[i]
            stepped += moved
            driven_over += moved and distance < 0.8 - 1e-9
    assert stepped > 1000
    assert driven_over == 0
