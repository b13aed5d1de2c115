"""Run everything once, in a process in which Numba checks array bounds. Argument: the folder of busy_scenes.py."""

from __future__ import annotations

import sys

import numba
import numpy as np
import shapely

import tropel
from tropel._kernels.arrays import clear, copy
from tropel._kernels.compile import compiled_kernels, parallel_kernel
from tropel._kernels.philox import random_key, uniform
from tropel.analysis import subflocks
from tropel.contracts import ModelDeclaration
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.local.dynamical.model import Dynamical
from tropel.local.flocking.model import all_same
from tropel.planning.fields.field import GridField
from tropel.planning.flow.model import FlowField
from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.harmonic import solve_harmonic
from tropel.planning.harmonic.grid import find_unknowns, first_estimate
from tropel.planning.harmonic.sweeps import solve_by_sweeps
from tropel.planning.harmonic.vectors import unit_vectors
from tropel.planning.path_plans.bottlenecks import find_bottlenecks
from tropel.testing import check_neighbours, check_planner, check_steering
from tropel.world.ground import Ground
from tropel.world.influence import influence_filter
from tropel.world.raster import Raster, lattice_cells, rasterise


@parallel_kernel
def third_coordinate(position, out):
    for i in numba.prange(position.shape[0]):
        out[i] = position[i, 2]


def close_a_door_on_somebody() -> None:
    world = tropel.World(shapely.box(0, 0, 8, 8), doors={"door": tropel.Door([(4, 0), (4, 8)], open=True)})
    sim = tropel.Simulation(world, tropel.Group("people", positions=[(2.0, 2.0), (3.0, 3.0)]))
    sim.agents.position[0] = 4.0, 2.0
    sim.at(0.0, tropel.events.CloseDoor(door="door"))
    sim.step()


def walk_on_cells() -> None:
    """A lattice crowd with families, a leader and a layer that moves."""
    wall = shapely.box(3.6, 0, 4.4, 3.2) | shapely.box(3.6, 4.8, 4.4, 8)
    world = tropel.World(shapely.box(0, 0, 8, 8) - wall, exits={"slit": shapely.box(7.95, 3, 8, 5)})
    agents = [tropel.Group("guide", count=1), tropel.Group("people", count=60, families=4, follow="guide")]
    swing = tropel.ValueMap(tropel.Disc(outer=2.0), motion=tropel.Orbit(center=(4, 4), radius=5.0, period=5.0))
    planner = tropel.PathPlans(value_maps={"swing": swing}, congestion=True)
    tropel.Simulation(world, agents, planning=planner, local=tropel.Lattice(), dt=0.2).run(until=12.0)


class Onwards(tropel.Model):
    """Everybody keeps its velocity."""

    declares = ModelDeclaration(periodic_space=True)

    def steer(self, moment, out) -> None:
        near = moment.near
        near.csr(), near.obstacles_csr(), near.walls_csr()
        out.velocity[moment.members] = moment.state.velocity[moment.members]


def go_over_seams() -> None:
    """In periodic space, in 2D and 3D, past obstacles at the seam; and away in open space."""
    for dim in (2, 3):
        ball = {"ball": tropel.Obstacle(radius=0.7, position=[0.1] * dim)}
        torus = tropel.World.box([0.0] * dim, [6.0] * dim, periodic=True, obstacles=ball, targets={"t": [5.5] * dim})
        space = tropel.World.box([0.0] * dim, [6.0] * dim, open=True, targets={"t": [5.5] * dim})
        for world, model, count in ((torus, Onwards(), 60), (space, Onwards(), 600), (torus, CollisionFreeSpeed(), 60)):
            if dim == 2 or isinstance(model, Onwards):
                group = tropel.Group("some", count=count, radius=0.02, sense_radius=1.5, goal="t")
                sim = tropel.Simulation(world, group, local=model)
                sim.agents.velocity[:] = np.random.default_rng(4).normal(size=sim.agents.velocity.shape) * 3.0
                for _ in range(60):
                    sim.step()


def fly_in_flocks() -> None:
    """Led flocks that hunt each other, among obstacles, over the seam and in a box, telling others apart or not."""
    for dim in (2, 3):
        for told in ({}, {"blind_angle": 1.0}, {"nearest": 4, "combine": "priorities"}):
            ball = {"ball": tropel.Obstacle(radius=0.5, position=(3.0,) * dim)}
            world = tropel.World.box((0.0,) * dim, (6.0,) * dim, periodic=dim == 2, obstacles=ball)
            tropel.Simulation(
                world, tropel.Group("flock", count=40, sense_radius=2.0), local=tropel.Flocking(**told)
            ).step()
            groups = [tropel.Group("prey", count=40), tropel.Group("hunters", count=5, follow="prey")]
            prey, hunters = tropel.Flocking(flee=["hunters"], **told), tropel.Flocking(chase=["prey"], **told)
            world = tropel.World.box((0.0,) * dim, (9.0,) * dim)
            tropel.Simulation(world, groups, local={"prey": prey, "hunters": hunters}).run(until=0.5)


def plan_and_repair() -> None:
    """Flow layers with everything they know, and a field in 3D."""
    free = np.random.default_rng(1).random((40, 50)) > 0.2
    goal = np.zeros_like(free)
    goal[0, 0] = goal[39, 49] = True
    for corner_cutting in (False, True):
        layer = PathPlan(free | goal, goal, corner_cutting=corner_cutting)
        layer.change(free=np.roll(free, 1, axis=0) | goal, goal=np.flipud(goal), most_touched=1.0)
        layer.change(terrain=np.full(free.shape, 3.0), most_touched=1.0)
        layer.policy()
        raster = Raster(origin=np.zeros(2), cell=0.4, free=layer.free)
        units = layer.units[None]
        find_bottlenecks(Ground(raster=raster, moves=layer.moves, log_gamma=-0.5, units=units, plan_of_goal={0: 0}))
    hall = rasterise(tropel.World(shapely.box(0, 0, 8, 8), walls=[[(4, 1), (4, 8)]]))
    corner = np.zeros_like(hall.free)
    corner[2:4, 2:4] = True
    FlowField().solve(hall, corner).directions()
    world = tropel.World.box((0, 0, 0), (4, 4, 4), obstacles={"b": tropel.Obstacle(radius=1.0, position=(2, 2, 2))})
    box = rasterise(world)
    everywhere = np.full((*box.shape, 3), 3**-0.5)
    field = GridField(raster=box, goal=~box.free, value=np.zeros(box.shape), vectors=everywhere)
    field.sample(np.random.default_rng(1).uniform(-1.0, 5.0, (300, 3)), world)


def spread_influence() -> None:
    """Of hazards on the map, at its edge and off it."""
    free = np.random.default_rng(3).random((30, 40)) > 0.2
    raster = Raster(origin=np.zeros(2), cell=1.0, free=free)
    for centre in ((20.0, 15.0), (0.5, 29.5), (-3.0, 12.0), (45.0, 33.0)):
        influence_filter(raster, centre, 1.0, 8.0, 1.0)
    influence_filter(raster, (39.9, 0.1), 1.0, 500.0, 1.0)
    hall = tropel.World(shapely.box(0, 0, 8, 8), walls=[[(4.1, 1), (4.1, 8)]])
    influence_filter(lattice_cells(hall), (2.0, 4.0), 0.5, 3.0, 1.0)


def solve_harmonic_fields() -> None:
    """Both kinds of walls in 2D and 3D, and both solvers."""
    for shape in ((90, 110), (9, 10, 11)):
        free = np.random.default_rng(2).random(shape) > 0.1
        target = np.zeros(shape, dtype=np.bool_)
        target.flat[0] = target.flat[-1] = True
        for walls in ("fixed", "reflecting"):
            log_u = solve_harmonic(free | target, target, walls=walls)
            unit_vectors(log_u, target, mirrored=walls == "reflecting")
        unknowns = find_unknowns(free | target, target, np.where(target, 0.0, np.nan), None)
        solve_by_sweeps(unknowns, first_estimate(unknowns, np.ones(unknowns.count)), factor=1.5, most=20)
    many = np.ones((14, 14, 14), dtype=np.bool_)
    corner = np.zeros_like(many)
    corner[0, 0, 0] = True
    solve_harmonic(many, corner)


def fly_one_after_the_other() -> None:
    """In periodic and open space, with cells that get full in the middle of a step."""
    for dim in (2, 3):
        for periodic in (True, False):
            world = tropel.World.box([0.0] * dim, [9.0] * dim, periodic=periodic, open=True)
            places = np.random.default_rng(dim).uniform(0.0, 9.0, (200, dim))
            birds = tropel.Group(
                "birds", positions=places, radius=0.01, sense_radius=2.0, desired_speed=1.5, goal="none"
            )
            sim = tropel.Simulation(world, birds, local=tropel.SequentialFlock(cohere=0.5), dt=1.0)
            for _ in range(6):
                sim.step()
            period = world.period if periodic else None
            subflocks(sim.agents.position, within=0.7, period=period)


def handle_large_arrays() -> None:
    """What small crowds do without a kernel, or with another."""
    for count in (1 << 13, 1 << 18):
        column = np.zeros(count)
        all_same(column)
        copy(column, column.copy())
        clear(column)


def main() -> None:
    try:
        third_coordinate(np.zeros((10, 2)), np.zeros(10))
    except (IndexError, SystemError):
        print("bounds are checked")
    sys.path.insert(0, sys.argv[1])
    from busy_scenes import SCENES, steps

    for name, build in SCENES.items():
        sim = steps(build(), 50)
        near = sim.sense()
        near.csr(), near.neighbours(), near.cells.cell_list, near.walls_csr(), near.obstacles_csr()
        near.rows_by_cell(np.arange(0, len(sim.agents), 2))
        print(name, "has run with", len(sim.agents), "agents")
    close_a_door_on_somebody()
    go_over_seams()
    uniform(random_key(1, "bounds"), 7, 3, 0)
    plan_and_repair()
    spread_influence()
    walk_on_cells()
    fly_one_after_the_other()
    fly_in_flocks()
    handle_large_arrays()
    solve_harmonic_fields()
    check_planner(tropel.Direct())
    check_planner(FlowField, dims=(2,))
    check_planner(tropel.Harmonic(cell=0.5, cache=False))
    lane = tropel.Stroke([(0.0, 5.0), (10.0, 5.0)], width=3.0)
    check_planner(tropel.Blend([(0.7, FlowField()), (0.3, tropel.VectorField(lane))]), dims=(2,))
    check_planner(tropel.VectorField(lane, fallback=FlowField()), dims=(2,))
    upwards = tropel.ArrayField(np.full((2, 2, 2, 3), 3**-0.5), origin=(0.0, 0.0, 0.0), cell=5.0)
    check_planner(tropel.VectorField(upwards), dims=(3,))
    check_neighbours(tropel.Grid())
    check_steering(tropel.Seek())
    check_steering(CollisionFreeSpeed(), dims=(2,))
    check_steering(tropel.ORCA(), dims=(2,), ids_matter=True)
    check_steering(tropel.SocialForce(), dims=(2,))
    check_steering(tropel.Lattice, planner=tropel.PathPlans, dims=(2,), ids_matter=True)
    check_steering(Dynamical(classes="apart"), ids_matter=True)
    check_steering(tropel.Flocking(), ids_matter=True)
    print("contracts are kept")
    print("never called:", *sorted(k.py_func.__qualname__ for k in compiled_kernels() if not k.is_compiled))


if __name__ == "__main__":
    main()
