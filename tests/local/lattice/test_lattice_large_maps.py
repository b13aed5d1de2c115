"""Ways longer than 32 bits can hold, and ground a thousand times as dear as plain ground."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, PathPlans, Simulation, Target, World

#: Units of a straight move over plain ground.
CELL, STRAIGHT = 0.4, 2744210


def corridor(cells: int, **plans: object) -> Simulation:
    world = World(shapely.box(0, 0, cells * CELL, 3 * CELL), targets={"end": Target(position=(0.2, 0.6), radius=0.1)})
    people = Group("people", count=cells // 4, goal="end", desired_speed=2.0)
    return Simulation(
        world, people, planning=PathPlans(**plans), local=Lattice(separation=1.0, headway=0.0), dt=0.2, seed=1
    )


def test_people_walk_on_where_the_lowest_32_bits_of_their_way_begin_anew() -> None:
    sim = corridor(4000)
    start = sim.agents.position.copy()
    units = sim.ground.units[0]
    assert units.max() > 2 << 32
    sim.run(until=8.0)
    cells = (start[:, 0] - sim.agents.position[:, 0]) / CELL
    queue = start[:, 0] < 60  # at the end of the corridor they wait for each other
    behind = ~queue
    # Everybody far from the end makes 40 steps towards it; who catches up with others makes a few fewer.
    assert cells[behind].min() > 20
    assert np.median(cells[behind]) == pytest.approx(40, abs=1)


def test_people_keep_to_cheap_ground_beside_the_dearest() -> None:
    width, height = 60, 7
    terrain = np.full((height, width), 1000.0)
    terrain[3] = 1.0
    world = World(
        shapely.box(0, 0, width * CELL, height * CELL), targets={"end": Target(position=(0.2, 1.4), radius=0.1)}
    )
    people = Group("people", count=1, goal="end", desired_speed=2.0, region=shapely.box(22, 0, 24, 0.4))
    sim = Simulation(world, people, planning=PathPlans(terrain=terrain), local=Lattice(), dt=0.2, seed=1)
    assert sim.ground.dropped_bits > 0
    rows = []
    while sim.agents.position[0, 0] > 1.0 and sim.step_number < 200:
        sim.step()
        rows.append(int(sim.agents.position[0, 1] // CELL))
    assert sim.agents.position[0, 0] <= 1.0
    assert rows.index(3) < 8
    assert set(rows[rows.index(3) :]) == {3}
