"""Run everything once, in a process in which Numba checks array bounds. Argument: the folder of busy_scenes.py."""

from __future__ import annotations

import sys

import numba
import numpy as np
import shapely

import tropel
from tropel._kernels.compile import compiled_kernels, parallel_kernel
from tropel._kernels.philox import random_key, uniform
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.local.dynamical import Dynamical
from tropel.testing import check_neighbours, check_planner, check_steering


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


def main() -> None:
    try:
        third_coordinate(np.zeros((10, 2)), np.zeros(10))
    except (IndexError, SystemError):
        print("bounds are checked")
    sys.path.insert(0, sys.argv[1])
    from busy_scenes import SCENES, steps

    for name, build in SCENES.items():
        sim = steps(build(), 50)
        near = sim.environment.sense(sim.agents, sim.world)
        near.csr(), near.cells, near.walls_csr(), near.obstacles_csr()
        near.rows_by_cell(np.arange(0, len(sim.agents), 2))
        print(name, "has run with", len(sim.agents), "agents")
    close_a_door_on_somebody()
    uniform(random_key(1, "bounds"), 7, 3, 0)
    check_planner(tropel.Direct())
    check_neighbours(tropel.Grid())
    check_steering(tropel.Seek())
    check_steering(CollisionFreeSpeed(), dims=(2,))
    check_steering(Dynamical(classes="apart"), ids_matter=True)
    print("contracts are kept")
    print("never called:", *sorted(k.py_func.__qualname__ for k in compiled_kernels() if not k.signatures))


if __name__ == "__main__":
    main()
