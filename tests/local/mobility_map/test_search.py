"""The search among futures: equal to brute force, and what it promises of obstacles, roads and blends."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import reference_search as reference
import shapely

from tropel import FollowPath, Group, Riders, Simulation, World
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Guidance, Moment
from tropel.environment.grid import Grid

SPREAD = 12.0


def crowd(model: Riders, seed: int, count: int) -> AgentState:
    """Riders and people on foot anywhere, in any state."""
    random = np.random.default_rng(seed)
    state = AgentState(2, model.all_columns)
    angle = random.uniform(-math.pi, math.pi, count)
    heading = np.column_stack([np.cos(angle), np.sin(angle)])
    on_foot = np.arange(count) % 3 == 2
    speed = np.where(on_foot, 1.3, model.map.speed)
    low, high = model.map.states.min(axis=0), model.map.states.max(axis=0)
    state.add(
        count,
        {
            "position": random.uniform(-SPREAD, SPREAD, (count, 2)),
            "velocity": speed[:, None] * heading,
            "heading": heading,
            "radius": np.where(on_foot, 0.25, 0.9),
            "half_axis": np.where(on_foot, 0.0, model.character.length / 2 - 0.9),
            "map_state": 0,
            "map_line": random.integers(0, model.map.states.shape[0] * len(model.map.actions), count),
            "map_time": random.uniform(0.0, 4.8, count),
            "map_base": angle,
            "map_reduced": random.uniform(low, high, (count, len(low))),
            "map_pose": 0.1,
            "pace": random.choice([1.0, 0.6, 0.2], count),
        },
    )
    state.group[:] = on_foot
    return state


def decided(model: Riders, state: AgentState, world: World, directions: Any) -> Steered:
    """What the riders among the agents decide."""
    moment = Moment.of(
        state, world, environment=Grid(), directions=directions, members=np.flatnonzero(state.group == 0), dt=0.1
    )
    model.prepare(moment)
    out = Steered.like(state, model.memory_names)
    model.steer(moment, out)
    return out


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("count", [1, 12])
def test_the_search_equals_brute_force(seed: int, count: int) -> None:
    model = Riders(character="car", horizon=1.2, margin=0.15)
    world = World(shapely.box(-20, -16, 20, 16).difference(shapely.box(3, -2, 5, 8)))
    state = crowd(model, seed, count)
    state.map_reduced[:] = np.abs(state.map_reduced)
    random = np.random.default_rng(seed + 100)
    angles = random.uniform(-math.pi, math.pi, count)
    directions = np.column_stack([np.cos(angles), np.sin(angles)])
    out = decided(model, state, world, directions)
    walls = [shapely.LineString(segment.reshape(2, 2)) for segment in world.segments]
    bodies = [
        {
            "position": state.position[j],
            "angle": math.atan2(state.heading[j, 1], state.heading[j, 0]),
            "velocity": state.velocity[j] if state.group[j] else state.pace[j] * model.map.speed * state.heading[j],
            "line": None if state.group[j] else divmod(int(state.map_line[j]), len(model.map.actions)),
            "time": float(state.map_time[j]),
            "base": float(state.map_base[j]),
            "radius": float(state.radius[j]),
            "half": float(state.half_axis[j]),
            "pace": float(state.pace[j]),
            "reduced": state.map_reduced[j],
        }
        for j in range(count)
    ]
    braked = 0
    for i in np.flatnonzero(state.group == 0).tolist():
        line = _straight(state.position[i], angles[i])
        s, action, other, share, braking = reference.choice(
            model.map, bodies[i], line, [body for j, body in enumerate(bodies) if j != i], walls,
            knots=13, ratio=model.ratio, horizon=1.2, margin=0.15,
        )  # fmt: skip
        found = {name: out.memory[f"map_{name}"][i] for name in ("state", "action", "other", "share")}
        assert (found["state"], found["action"], found["other"]) == (s, action, other)
        assert found["share"] == pytest.approx(share, abs=1e-9)
        assert out.memory["braking"][i] == pytest.approx(braking, abs=1e-12)
        braked += braking > 0.0
    assert count == 1 or braked > 0


def _straight(place: Any, angle: float) -> Any:
    along = np.array([math.cos(angle), math.sin(angle)])
    return lambda distance: (place + distance * along, angle)


def test_a_road_is_looked_up_where_the_rider_will_be() -> None:
    circle = [(30 * math.cos(a), 30 * math.sin(a)) for a in np.linspace(0, math.tau, 25)[:-1]]
    planner, model = FollowPath(circle, closed=True), Riders(character="car")
    state = AgentState(2, (*model.all_columns, *planner.all_columns))
    state.add(1, {"position": [[30.0, 0.0]], "heading": [[0.0, 1.0]], "radius": 0.9})
    world = World(bounds=(-60, -60, 60, 60))
    moment = Moment.of(state, world, environment=Grid())
    guidance = Guidance(
        directions=np.zeros((1, 2)), memory={name: state.columns[name].copy() for name in planner.memory_names}
    )
    planner.direct(moment, guidance)
    from tropel.local.mobility_map.search import wanted_at
    from tropel.local.mobility_map.ways import ways_of

    object.__setattr__(moment, "given", guidance)
    ways, _ = ways_of(moment, speed=8.0, brake=1.0)
    for distance in (0.0, 1.3, 10.0, 47.0, 200.0):
        x, y, dx, dy = wanted_at.py_func(ways, 0, distance)
        angle = distance / 30.0
        assert (x, y) == pytest.approx((30 * math.cos(angle), 30 * math.sin(angle)), abs=0.05)
        assert (dx, dy) == pytest.approx((-math.sin(angle), math.cos(angle)), abs=0.01)


def ridden(seed: int, **told: Any) -> tuple[Simulation, Riders]:
    """A few cars in a street that a wall narrows, for 8 s."""
    area = shapely.box(0, 0, 120, 12).difference(shapely.box(60, 4, 64, 12))
    road = FollowPath([(0.0, 8.0), (120.0, 8.0)], stop=False)
    riders = Group("cars", count=3, region=shapely.box(3, 6, 40, 10), goal="none", radius=0.9)
    model = Riders(character="car", **told)
    sim = Simulation(World(area), [riders], planning=road, local=model, dt=0.05, seed=seed)
    for _ in range(160):
        sim.step()
    return sim, model


def test_cars_that_look_as_far_as_they_need_to_brake_mostly_get_past_a_wall() -> None:
    """At 8 m/s and 4 m/s² that is 2 s. Of 15 cars (seeds 0 to 4) 3 have an accident; with the default of 1 s all do."""
    fallen = np.array([ridden(seed, horizon=2.0)[0].agents.fallen for seed in range(5)])
    assert fallen.mean() <= 0.3


@pytest.mark.parametrize("seed", range(3))
def test_without_looking_ahead_the_same_riders_have_accidents(seed: int) -> None:
    sim, model = ridden(seed, horizon=0.0)
    assert sim.agents.fallen.any()
    assert {cause for _, _, cause in model.accidents} <= {"hit a wall or an obstacle", "hit another body"}
    assert (sim.agents.position[:, 0] < 60.0)[sim.agents.fallen > 0].all()
