"""How speed falls with density by the paper's rule, in a corridor whose last cells lead on to the first ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, PathPlans, Simulation, World

CELL = 0.4
LENGTH, WIDTH = 40.0, 4.0
SECTION = (10.0, 30.0)
SPEED = 1.34


def endless_corridor(count: int, *, dt: float, separation: float = 0.5, seed: int = 1) -> Simulation:
    """Everybody walks to the last column of cells, an exit that is closed, so that nobody leaves."""
    world = World(shapely.box(0, 0, LENGTH, WIDTH), exits={"end": shapely.box(LENGTH - CELL, 0, LENGTH, WIDTH)})
    world.set_exit("end", open=False)
    people = Group("people", count=count, goal="end", desired_speed=SPEED)
    return Simulation(
        world, people, planning=PathPlans(), local=Lattice(separation=separation, headway=0.0), dt=dt, seed=seed,
        watch_collisions=False,
    )  # fmt: skip


def go_on_from_the_first(sim: Simulation) -> None:
    """Who stands on the last column is put on the first, in its own row, where that is free."""
    columns, rows = np.floor(sim.agents.position / CELL).astype(int).T
    taken = set(rows[columns == 0].tolist())
    last = round(LENGTH / CELL) - 1
    for i in np.flatnonzero(columns == last):
        if rows[i] not in taken:
            sim.agents.position[i, 0] = 0.5 * CELL


def measured(
    count: int, *, dt: float = 0.1, settle: float = 20.0, measure: float = 15.0, separation: float = 0.5
) -> tuple[float, float, float]:
    """In the middle: people per square metre, speed along the corridor, and along people's own ways [m/s]."""
    sim = endless_corridor(count, dt=dt, separation=separation)
    people, ahead, way = 0, 0.0, 0.0
    while sim.time < settle + measure:
        before = sim.agents.position.copy()
        sim.step()
        if sim.time > settle:
            inside = (before[:, 0] > SECTION[0]) & (before[:, 0] < SECTION[1])
            move = sim.agents.position[inside] - before[inside]
            people += int(inside.sum())
            ahead += float(move[:, 0].sum())
            way += float(np.linalg.norm(move, axis=1).sum())
        go_on_from_the_first(sim)
    steps = round(measure / dt)
    density = people / steps / ((SECTION[1] - SECTION[0]) * WIDTH)
    return density, ahead / (people * dt), way / (people * dt)


def test_who_is_nearly_alone_walks_at_its_own_speed() -> None:
    density, ahead, way = measured(6, measure=40.0)
    assert density < 0.06
    assert way == pytest.approx(SPEED, rel=0.02)
    assert ahead > SPEED / math.sqrt(2.0)


@pytest.mark.parametrize("dt", [0.1, 0.298])
def test_speed_falls_with_density(dt: float) -> None:
    curve = [measured(int(density * LENGTH * WIDTH), dt=dt) for density in (0.1, 1.0, 2.0, 3.5, 5.0, 6.0)]
    speeds = [ahead for _, ahead, _ in curve]
    assert all(slow < fast for fast, slow in itertools.pairwise(speeds))
    assert speeds[0] > 0.75 * SPEED
    assert speeds[-1] < 0.2 * SPEED
    densities = [density for density, _, _ in curve]
    assert all(thin < thick for thin, thick in itertools.pairwise(densities))
    assert densities[-1] <= 1.0 / CELL**2


def test_a_full_corridor_stands() -> None:
    sim = endless_corridor(round(LENGTH * WIDTH / CELL**2), dt=0.1)
    before = sim.agents.position.copy()
    sim.run(until=3.0)
    np.testing.assert_array_equal(sim.agents.position, before)
