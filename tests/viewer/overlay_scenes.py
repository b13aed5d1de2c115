"""Small simulations that have something for every overlay."""

from __future__ import annotations

from typing import Any

import numpy as np

from tropel import Environment, Flocking, FlowField, Group, Lattice, PathPlans, Seek, Simulation, World

#: The wall between the rooms stands here, and the gap in it is so wide [m].
WALL_X, GAP = 8.0, 1.6


def rooms(**things: Any) -> World:
    """Two rooms of 8 m by 8 m with a gap between them, and an exit in the right one."""
    return World(
        [(0.0, 0.0), (16.0, 0.0), (16.0, 8.0), (0.0, 8.0)],
        walls=[[(WALL_X, 0.0), (WALL_X, 4.0 - GAP / 2)], [(WALL_X, 4.0 + GAP / 2), (WALL_X, 8.0)]],
        exits={"east": [(15.2, 3.0), (16.0, 3.0), (16.0, 5.0), (15.2, 5.0)]},
        regions={"left": [(0.5, 0.5), (7.5, 0.5), (7.5, 7.5), (0.5, 7.5)]},
        **things,
    )


def walkers(count: int = 40, *, seed: int = 5, planning: Any = None) -> Simulation:
    """People who sense each other."""
    people = Group("people", count=count, region="left", radius=0.2, desired_speed=1.3)
    planner = FlowField(cell=0.4) if planning is None else planning
    return Simulation(rooms(), people, planning=planner, local=Seek(), dt=0.1, seed=seed, threads=1)


def walled(count: int, *, environment: Environment) -> Simulation:
    """People on both sides of a wall, near enough to sense each other."""
    beside_the_wall = [(WALL_X - 1.0, 0.5), (WALL_X + 1.0, 0.5), (WALL_X + 1.0, 7.5), (WALL_X - 1.0, 7.5)]
    people = Group("people", count=count, region=beside_the_wall, radius=0.2, desired_speed=1.3, sense_radius=1.0)
    return Simulation(rooms(), people, local=Seek(), environment=environment, dt=0.1, seed=5, threads=1)


def on_cells(count: int = 100, *, congestion: Any = False, seed: int = 5) -> Simulation:
    """A crowd on cells."""
    people = Group("people", count=count, region="left", desired_speed=1.3)
    planner = PathPlans(cell=0.4, congestion=congestion)
    return Simulation(rooms(), people, planning=planner, local=Lattice(cell=0.4), dt=0.1, seed=seed, threads=1)


def flyers(count: int = 30) -> Simulation:
    world = World.box((0.0, 0.0, 0.0), (10.0, 8.0, 6.0), targets={})
    birds = Group("birds", count=count, goal="none")
    return Simulation(world, birds, dt=0.1, seed=2, threads=1)


def school(count: int = 40) -> Simulation:
    """Boids in a box whose sides are joined."""
    fish = Group("fish", count=count, goal="none", desired_speed=1.0, sense_radius=2.0)
    world = World.box((0.0, 0.0), (8.0, 6.0), periodic=True)
    return Simulation(world, fish, local=Flocking(), dt=0.1, seed=2, threads=1)


def steps(sim: Simulation, count: int) -> Simulation:
    for _ in range(count):
        sim.step()
    return sim


def cells_of(position: np.ndarray, origin: Any, cell: float) -> set[tuple[int, int]]:
    """Rows and columns of the cells that points are in."""
    return {(int((y - origin[1]) // cell), int((x - origin[0]) // cell)) for x, y in position.tolist()}
