"""Moves on the lattice take their true time."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, PathPlans, Simulation, Target, World, events
from tropel.errors import ModelError

CELL = 0.4
DIRECTIONS = np.radians(np.arange(0, 360, 10))
FAR = 24.0


def corridor(length: float = 40.0, **walker: object) -> Simulation:
    world = World(shapely.box(0, 0, length, 1.2), targets={"end": Target(position=(length - 0.2, 0.6), radius=0.1)})
    options = {"positions": [(0.2, 0.6)], "goal": "end"} | walker
    return Simulation(world, Group("walker", **options), planning=PathPlans(), local=Lattice(), dt=0.1, seed=1)


def walk(direction: float, speed: float, dt: float) -> tuple[float, float, float]:
    """Length of the way [m] of a single walker to a target in a direction, time it took [s], and the straight line."""
    middle = np.array([FAR + 1.0, FAR + 1.0])
    target = middle + FAR * np.array([math.cos(direction), math.sin(direction)])
    target = (np.floor(target / CELL) + 0.5) * CELL  # the middle of a cell, which alone is the goal
    world = World(shapely.box(0, 0, 50, 50), targets={"there": Target(position=tuple(target), radius=0.1)})
    sim = Simulation(
        world, Group("walker", positions=[tuple(middle)], goal="there", desired_speed=speed),
        planning=PathPlans(), local=Lattice(), dt=dt, seed=1,
    )  # fmt: skip
    begin = last = sim.agents.position[0].copy()
    length, end = 0.0, 0.0
    while sim.time < 1.3 * FAR / speed:
        sim.step()
        here = sim.agents.position[0].copy()
        if (here != last).any():
            length, end = length + float(np.linalg.norm(here - last)), sim.time
        last = here
    assert np.linalg.norm(last - target) < 0.75 * CELL
    return length, end, float(np.linalg.norm(last - begin))


@pytest.mark.parametrize(("speed", "dt"), [(1.34, 0.1), (0.7, 0.2), (2.0, 0.2)])
def test_a_single_walker_has_its_speed_in_every_direction(speed: float, dt: float) -> None:
    longest = 1.0
    for direction in DIRECTIONS:
        length, time, straight = walk(float(direction), speed, dt)
        assert length / time == pytest.approx(speed, rel=0.02)
        # The octagon in which an 8-neighbour metric measures circles: at most 1 / cos(22.5°) longer.
        assert length / straight <= 1.0 / math.cos(math.radians(22.5)) + 1e-9
        longest = max(longest, length / straight)
    assert longest > 1.07  # the lattice's own mistake is there, and is not hidden by some other


@pytest.mark.parametrize("dt", [0.013, 0.05, 0.1, 0.25, 0.298])
@pytest.mark.parametrize("speed", [0.31, 1.0, 1.34])
def test_no_time_is_lost_or_won_over_a_long_way(speed: float, dt: float) -> None:
    sim = corridor(desired_speed=speed)
    sim.dt = dt
    steps = int(12.0 / dt)
    for _ in range(steps):
        sim.step()
    walked = float(sim.agents.position[0, 0]) - 0.2
    # What is left over is kept: whatever the step, never more than a move behind, and never ahead.
    assert walked <= speed * steps * dt + 1e-9
    assert walked > speed * steps * dt - CELL - 1e-9


def test_a_step_that_fits_a_move_exactly_is_never_missed() -> None:
    for speed in (1.0, 1.34, 1.7, 0.3):
        sim = corridor(desired_speed=speed)
        sim.dt = CELL / speed
        for _ in range(80):
            sim.step()
        assert sim.agents.position[0, 0] == pytest.approx(0.2 + 80 * CELL)


def test_who_is_blocked_saves_up_no_more_than_one_move() -> None:
    world = World(
        shapely.box(0, 0, 40, 0.4),
        doors={"door": [(4.2, 0), (4.2, 0.4)]},
        targets={"end": Target(position=(39.8, 0.2), radius=0.1)},
    )
    with pytest.warns(UserWarning, match="1 of 1 agents have no path to 'end'"):
        sim = Simulation(
            world, Group("walker", positions=[(3.8, 0.2)], goal="end", desired_speed=1.0),
            planning=PathPlans(), local=Lattice(), dt=0.1, seed=1,
        )  # fmt: skip
    sim.at(20.0, events.OpenDoor(door="door"))
    sim.run(until=20.0)
    assert sim.agents.credit[0] == pytest.approx(CELL)
    begin = sim.agents.position[0, 0]
    sim.run(until=30.0)
    assert sim.agents.position[0, 0] - begin <= 10.0 + CELL + 1e-9


@pytest.mark.parametrize("slow", [0.0, 0.02])
def test_who_becomes_faster_does_not_spend_what_it_saved_while_slow(slow: float) -> None:
    sim = corridor(desired_speed=slow)
    sim.run(until=15.0)
    assert sim.agents.position[0, 0] == pytest.approx(0.2)
    sim.set_parameter("desired_speed", 1.0)
    sim.run(until=25.0)
    assert 10.0 - 2 * CELL <= sim.agents.position[0, 0] - 0.2 <= 10.0 + 2 * CELL


def test_who_has_no_speed_or_no_goal_stands() -> None:
    for walker in ({"desired_speed": 0.0}, {"goal": "none"}):
        sim = corridor(**walker)
        sim.run(until=3.0)
        np.testing.assert_allclose(sim.agents.position, [[0.2, 0.6]])


def test_nobody_starts_before_its_delay_is_over_or_saves_up_time_meanwhile() -> None:
    sim = corridor(desired_speed=1.0, delay=5.0)
    sim.run(until=5.3)
    np.testing.assert_allclose(sim.agents.position, [[0.2, 0.6]])
    sim.run(until=15.0)
    assert 10.0 - CELL <= sim.agents.position[0, 0] - 0.2 + 1e-9 <= 10.0 + 1e-6


def test_steps_too_long_for_a_cell_are_refused_with_the_longest_that_is_not() -> None:
    sim = corridor(desired_speed=1.34)
    sim.dt = 0.35
    with pytest.raises(ModelError, match="dt must be at most") as caught:
        sim.step()
    found = re.search(r"at most ([\d.]+) s", str(caught.value))
    assert found is not None
    longest = float(found.group(1))
    assert longest == pytest.approx(CELL / 1.34, rel=1e-3)
    sim = corridor(desired_speed=1.34)
    sim.dt = longest
    sim.step()
    sim.dt = longest + 0.001
    with pytest.raises(ModelError, match="too long"):
        sim.step()


def test_headings_are_the_way_of_the_last_move() -> None:
    sim = corridor(positions=[(0.2, 0.2)], desired_speed=1.0)
    seen = set()
    for _ in range(40):
        before = sim.agents.position[0].copy()
        sim.step()
        move = sim.agents.position[0] - before
        if move.any():
            np.testing.assert_allclose(sim.agents.heading[0], move / np.linalg.norm(move), atol=1e-12)
            np.testing.assert_allclose(sim.agents.velocity[0], 1.0 * sim.agents.heading[0], atol=1e-12)
            seen.add(tuple(np.sign(np.rint(move / CELL)).astype(int).tolist()))
    assert seen == {(1, 0), (1, 1)}


def test_the_way_to_a_wide_exit_is_no_longer_than_that_to_a_narrow_one() -> None:
    times = []
    for low, high in ((2.0, 2.4), (0.0, 4.0)):
        world = World(shapely.box(0, 0, 40, 4), exits={"out": shapely.box(39.6, low, 40, high)})
        walker = Group("walker", positions=[(0.2, 2.2)], desired_speed=1.0)
        sim = Simulation(world, walker, planning=PathPlans(), local=Lattice(), dt=0.1, seed=1)
        sim.run(until="empty", limit=100.0)
        times.append(sim.time)
    assert times[1] <= 1.02 * times[0]
