"""Flow through doors and speed by density of the lattice crowd, beside people: the tables in docs/measurements.md.

python benchmarks/lattice_flow.py [SEEDS]
"""

from __future__ import annotations

import math
import sys

import numpy as np
import shapely

from tropel import Group, Lattice, PathPlans, Simulation, World
from tropel.agents.distributions import Normal

CELL, SPEED = 0.4, 1.34
ROOM, BEHIND, PEOPLE = 8.0, 4.0, 150
LENGTH, WIDTH = 40.0, 4.0
RULES = {"paper": {"headway": 0.0}, "calibrated": {}, "constant headway": {"headway_spread": 0.0}}


def door_flow(width: float, *, seed: int, offset: float = 0.0, dt: float = 0.1, **rule: float) -> float:
    """People per second through a door, between the first and the last fifth of a crowd."""
    low = (ROOM - width) / 2 + offset
    world = World(
        shapely.box(0, 0, ROOM + BEHIND, ROOM),
        walls=[[(ROOM, 0), (ROOM, low)], [(ROOM, low + width), (ROOM, ROOM)]],
        exits={"out": shapely.box(ROOM + BEHIND - 1.0, 0, ROOM + BEHIND, ROOM)},
    )
    crowd = Group(
        "crowd",
        count=PEOPLE,
        region=shapely.box(0.2, 0.2, ROOM - 0.5, ROOM - 0.2),
        desired_speed=Normal(SPEED, 0.26, low=0.5, high=CELL / dt),
    )
    sim = Simulation(world, crowd, planning=PathPlans(), local=Lattice(**rule), dt=dt, seed=seed, threads=1)
    passed: dict[int, float] = {}
    while len(passed) < 0.8 * PEOPLE and sim.time < 600.0:
        sim.step()
        for number in sim.agents.id[sim.agents.position[:, 0] > ROOM].tolist():
            passed.setdefault(number, sim.time)
    times = sorted(passed.values())
    first, last = round(0.2 * PEOPLE), round(0.8 * PEOPLE)
    return (last - first) / (times[last - 1] - times[first - 1])


def corridor(density: float, *, seed: int, dt: float = 0.1, **rule: float) -> tuple[float, float]:
    """Density [1/m²] and speed [m/s] in the middle of a corridor; from its end people go on to its beginning."""
    world = World(shapely.box(0, 0, LENGTH, WIDTH), exits={"end": shapely.box(LENGTH - CELL, 0, LENGTH, WIDTH)})
    world.set_exit("end", open=False)
    people = Group("people", count=int(density * LENGTH * WIDTH), goal="end", desired_speed=SPEED)
    sim = Simulation(world, people, planning=PathPlans(), local=Lattice(**rule), dt=dt, seed=seed, threads=1)
    count, ahead, steps = 0, 0.0, 0
    while sim.time < 50.0:
        before = sim.agents.position.copy()
        sim.step()
        if sim.time > 25.0:
            inside = (before[:, 0] > 10.0) & (before[:, 0] < 30.0)
            count, steps = count + int(inside.sum()), steps + 1
            ahead += float((sim.agents.position[inside, 0] - before[inside, 0]).sum())
        columns, rows = np.floor(sim.agents.position / CELL).astype(int).T
        vacant = ~np.isin(rows, rows[columns == 0])
        sim.agents.position[(columns == round(LENGTH / CELL) - 1) & vacant, 0] = 0.5 * CELL
    return count / steps / (20.0 * WIDTH), ahead / (count * dt)


def weidmann(density: float) -> float:
    return max(SPEED * (1.0 - math.exp(-1.913 * (1.0 / density - 1.0 / 5.4))), 0.0)


def main() -> None:
    seeds = range(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
    for dt in (0.05, 0.1, 0.25):
        for name, rule in RULES.items():
            print(f"{name}, dt = {dt:g} s: specific flow [1/(m s)] (people: 1.92 - 0.07 / width), mean of the seeds")
            for width in (0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 2.0, 2.5):
                flows = [door_flow(width, seed=seed, dt=dt, **rule) / width for seed in seeds]
                print(f"  {width:.1f} m: {np.mean(flows):.2f} ± {np.std(flows):.2f} ({1.92 - 0.07 / width:.2f})")
            print(f"{name}, dt = {dt:g} s: speed [m/s] by density [1/m²] (Weidmann)")
            for density in (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0):
                points = np.array([corridor(density, seed=seed, dt=dt, **rule) for seed in seeds])
                found, speed = points.mean(axis=0)
                print(f"  {found:.2f}: {speed:.2f} ± {points[:, 1].std():.2f} ({weidmann(found):.2f})", flush=True)
    print("calibrated: specific flow of a door moved over the cells by 0, 0.05, …, 0.35 m")
    for width in (0.8, 1.0, 1.2, 1.6):
        flows = [np.mean([door_flow(width, seed=seed, offset=0.05 * k) for seed in seeds]) / width for k in range(8)]
        print(f"  {width:.1f} m: " + " ".join(f"{flow:.2f}" for flow in flows), flush=True)


if __name__ == "__main__":
    main()
