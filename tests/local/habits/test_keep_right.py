"""Keep right, as a habit before any model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from tropel import FlowField, Grid, Group, KeepRight, Lattice, Normal, Seek, Simulation, World
from tropel.agents.state import AgentState
from tropel.contracts import Moment
from tropel.errors import ParameterError

Floats = NDArray[np.float64]

OPEN = World(bounds=(-60, -60, 60, 60))


def adjusted(position: Any, directions: Any, heading: Any, *, angle: float = 1.0, world: World = OPEN) -> Floats:
    """The directions after the habit."""
    state = AgentState(2)
    state.add(len(position), {"position": np.asarray(position, dtype=float), "heading": np.asarray(heading)})
    planned = np.array(directions, dtype=float)
    moment = Moment.of(state, world, environment=Grid(), directions=planned.copy())
    KeepRight(angle=angle).adjust(moment, planned)
    return planned


def reference(position: Floats, directions: Floats, heading: Floats, angle: float) -> Floats:
    out = directions.copy()
    for i, planned in enumerate(directions):
        length = float(np.linalg.norm(planned))
        if length == 0.0:
            continue
        e = planned / length
        total = 0.0
        for j, place in enumerate(position):
            offset = place - position[i]
            away = float(np.linalg.norm(offset))
            if i != j and away <= 3.0 and offset @ e > 0.0:
                aside = float(e[0] * offset[1] - e[1] * offset[0])
                total += max(-2.0 * float(heading[j] @ e) - 1.0, 0.0) * math.exp(-away / 4.0 - (aside / 1.5) ** 2)
        turn = angle * math.tanh(total)
        c, s = math.cos(turn), math.sin(turn)
        out[i] = length * np.array([c * e[0] + s * e[1], c * e[1] - s * e[0]])
    return out


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("angle", [1.0, -0.7])
def test_directions_turn_by_the_formula(seed: int, angle: float) -> None:
    draws = np.random.default_rng(seed)
    faces, way = draws.uniform(0, 2 * math.pi, (2, 40))
    position = draws.uniform(0, 8, (40, 2))
    heading = np.column_stack([np.cos(faces), np.sin(faces)])
    directions = np.column_stack([np.cos(way), np.sin(way)]) * draws.choice([0.0, 0.5, 1.0], 40)[:, None]
    found = adjusted(position, directions, heading, angle=angle)
    np.testing.assert_allclose(found, reference(position, directions, heading, angle), atol=1e-12)


def test_people_behind_a_wall_do_not_count() -> None:
    places, ways = [(0.0, 0.0), (2.0, 0.0)], [(1.0, 0.0), (-1.0, 0.0)]
    assert adjusted(places, ways, ways)[0, 1] < -0.1
    walled = World(bounds=(-60, -60, 60, 60), walls=[[(1.0, -5.0), (1.0, 5.0)]])
    np.testing.assert_array_equal(adjusted(places, ways, ways, world=walled), ways)


def crossing_time(local: Any, habits: Any, *, seed: int) -> float:
    """When 30 against 30 have passed each other in a corridor of 2 m, at most three minutes [s]."""
    area = shapely.union_all([shapely.box(0, 0, 6, 6), shapely.box(6, 2, 14, 4), shapely.box(14, 0, 20, 6)])
    world = World(area, exits={"east": shapely.box(19, 0, 20, 6), "west": shapely.box(0, 0, 1, 6)})
    speed = Normal(1.34, 0.26, low=0.5)
    groups = [
        Group("right", count=30, region=shapely.box(1.2, 0, 5.8, 6), goal="east", desired_speed=speed),
        Group("left", count=30, region=shapely.box(14.2, 0, 18.8, 6), goal="west", desired_speed=speed),
    ]
    sim = Simulation(world, groups, planning=FlowField(), local=local, habits=habits, seed=seed, threads=1)
    sim.run(until="empty", limit=180.0)
    return sim.time


def test_it_works_before_another_model_and_does_nothing_when_left_out() -> None:
    with_it = [crossing_time(Seek(), [KeepRight()], seed=seed) for seed in range(3)]
    without = [crossing_time(Seek(), [], seed=seed) for seed in range(3)]
    assert max(with_it) < 60.0
    assert sum(with_it) < 0.6 * sum(without)


def test_a_crowd_on_cells_has_no_planned_directions_to_change() -> None:
    world = World(shapely.box(0, 0, 4, 4), exits={"out": shapely.box(3.2, 1.2, 4, 2.8)})
    with pytest.raises(ParameterError, match=r"group 'p' has habits.*Lattice follows the ground"):
        Simulation(world, Group("p", count=2), local=Lattice(), habits=[KeepRight()])


@pytest.mark.parametrize(
    ("habits", "says"),
    [([Seek()], "is not a habit"), ({"q": [KeepRight()]}, "there is no group 'q'")],
)
def test_habits_that_make_no_sense_are_refused(habits: Any, says: str) -> None:
    world = World(shapely.box(0, 0, 4, 4), exits={"out": shapely.box(3.2, 1.2, 4, 2.8)})
    with pytest.raises(ParameterError, match=says):
        Simulation(world, Group("p", count=2), habits=habits)
