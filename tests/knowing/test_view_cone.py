"""The cone of view is the same for every model that senses: what is outside of it might as well not be there."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel.agents.seeing import is_in_cone
from tropel.environment.grid import Grid
from tropel.environment.kinetic.model import Kinetic
from tropel.errors import TropelError

MODELS: dict[str, tuple[Any, float, float]] = {
    # how to make it, how far away the other is [m], and at which angle to the heading something still matters [°]
    "walk": (tropel.Walk, 0.7, 32.0),
    "seek": (tropel.Seek, 0.6, 35.0),
    "collision_free_speed": (tropel.CollisionFreeSpeed, 0.6, 150.0),
    "social_force": (tropel.SocialForce, 0.6, 150.0),
    "orca": (tropel.ORCA, 0.6, 35.0),
    "dynamical": (lambda: tropel.Dynamical(noise=0.0), 0.6, 60.0),
    "time_gap": (lambda: tropel.Dynamical(preset="pedestrian", noise=0.0), 0.6, 40.0),
    "flocking": (lambda: tropel.Flocking(), 0.6, 150.0),
}


def first_velocity(model: Any, *, away: float, at: float | None, view: float, environment: Any = Grid) -> np.ndarray:
    """The velocity of an agent that walks along x after one step; another stands at an angle to its heading."""
    places = [(0.0, 0.0)]
    if at is not None:
        places.append((away * math.cos(math.radians(at)), away * math.sin(math.radians(at))))
    world = tropel.World(bounds=(-50.0, -50.0, 50.0, 50.0), targets={"far": (40.0, 0.0)})
    group = tropel.Group(
        "a", positions=places, goal="far", desired_speed=[1.3] + [0.2] * (len(places) - 1), radius=0.2,
        parameters={"view_angle": view},
    )  # fmt: skip
    sim = tropel.Simulation(
        world, group, local=model(), planning=tropel.Direct(), habits=[], environment=environment(), dt=0.05
    )
    sim.agents.heading[:] = (1.0, 0.0)
    sim.agents.velocity[:] = np.array([[1.0, 0.0], [0.0, 0.0]])[: len(places)]
    sim.step()
    return np.array(sim.agents.velocity[0])


@pytest.mark.parametrize("name", MODELS)
def test_one_outside_of_the_cone_is_ignored_and_one_ahead_is_not(name: str) -> None:
    model, away, angle = MODELS[name]
    narrow = math.radians(20.0)
    alone = first_velocity(model, away=away, at=None, view=narrow)
    assert (first_velocity(model, away=away, at=0.0, view=narrow) != alone).any()
    # At this angle the other matters to agents that see all around, so that it is the cone that leaves it out.
    assert (first_velocity(model, away=away, at=angle, view=2.0 * math.pi) != alone).any()
    assert (first_velocity(model, away=away, at=angle, view=narrow) == alone).all()
    assert (first_velocity(model, away=away, at=180.0, view=narrow) == alone).all()


@pytest.mark.parametrize("environment", [Grid, Kinetic])
def test_neighbours_in_view_are_those_of_brute_force(environment: Any) -> None:
    rng = np.random.default_rng(3)
    world = tropel.World(shapely.box(0, 0, 12, 12))
    group = tropel.Group(
        "a", positions=rng.uniform(0.5, 11.5, (150, 2)), radius=0.05, goal="none",
        parameters={"view_angle": tropel.Uniform(0.0, 2.0 * math.pi)},
    )  # fmt: skip
    sim = tropel.Simulation(world, group, environment=environment(), planning=tropel.Direct())
    turn = rng.uniform(-math.pi, math.pi, 150)
    state = sim.agents
    state.heading[:] = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    near = sim.sense().csr()
    for i in range(150):
        offset = state.position - state.position[i]
        away = np.linalg.norm(offset, axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            angle = np.arccos(np.clip(offset @ state.heading[i] / away, -1.0, 1.0)) - np.arcsin(
                np.minimum(state.radius / away, 1.0)
            )
        seen = (away <= state.sense_radius[i]) & ((angle <= 0.5 * state.view_angle[i]) | (away <= state.radius))
        seen[i] = False
        assert set(near.indices[near.indptr[i] : near.indptr[i + 1]].tolist()) == set(np.flatnonzero(seen).tolist())


def test_whoever_sees_all_around_costs_no_lists() -> None:
    world = tropel.World(shapely.box(0, 0, 10, 10))
    sim = tropel.Simulation(world, tropel.Group("a", count=20, goal="none"), seed=1)
    assert type(sim.sense()).__name__ == "GridNear"
    sim.set_parameter("view_angle", math.pi)
    assert type(sim.sense()).__name__ == "NearInView"


def test_a_body_is_seen_as_soon_as_some_of_it_is_in_the_cone() -> None:
    right = math.pi / 2  # a cone of 45 degrees to either side
    assert is_in_cone(1.0, 1.0 + 1e-6, 0.0, 0.1, 1.0, 0.0, 0.0, right)
    assert not is_in_cone(1.0, 1.3, 0.0, 0.1, 1.0, 0.0, 0.0, right)
    assert is_in_cone(-0.05, 0.0, 0.0, 0.1, 1.0, 0.0, 0.0, right)  # inside of it
    assert is_in_cone(-1.0, 0.0, 0.0, 0.1, 1.0, 0.0, 0.0, 2.0 * math.pi)


def pursuit(*, view: float, target: tuple[float, float], walls: Any = ()) -> tropel.Simulation:
    world = tropel.World(bounds=(-30.0, -30.0, 30.0, 30.0), targets={"prey": target}, walls=walls)
    group = tropel.Group("a", positions=[(0.0, 0.0)], goal="prey", parameters={"view_angle": view})
    sim = tropel.Simulation(world, group, local=tropel.Dynamical(noise=0.0), planning=tropel.Direct(), dt=0.05)
    sim.agents.heading[:] = (1.0, 0.0)
    return sim


def test_a_target_behind_a_narrow_view_is_not_pursued() -> None:
    blind = pursuit(view=math.pi / 2, target=(-10.0, 1.0))
    blind.run(until=5.0)
    assert blind.agents.position[0, 0] > 4.0
    assert abs(blind.agents.position[0, 1]) < 1e-6
    sees = pursuit(view=2.0 * math.pi, target=(-10.0, 1.0))
    sees.run(until=15.0)
    assert sees.agents.position[0, 0] < -5.0


def test_a_target_in_the_cone_is_pursued_and_one_behind_a_wall_is_not() -> None:
    sees = pursuit(view=math.pi / 2, target=(10.0, 4.0))
    sees.run(until=12.0)
    assert np.linalg.norm(sees.agents.position[0] - [10.0, 4.0]) < 1.0
    hidden = pursuit(view=math.pi / 2, target=(10.0, 8.0), walls=[[(-5.0, 5.0), (25.0, 5.0)]])
    hidden.run(until=5.0)
    assert abs(hidden.agents.position[0, 1]) < 1e-6


def test_a_lost_target_is_looked_for_where_it_was_seen_last() -> None:
    sim = pursuit(view=math.pi / 2, target=(8.0, 3.0))
    sim.run(until=1.0)
    sim.at(1.0, tropel.events.MoveTarget(name="prey", position=(-20.0, -20.0)))
    sim.run(until=5.0)
    on_the_way = sim.agents.position[0].copy()
    towards = (np.array([8.0, 3.0]) - on_the_way) / np.linalg.norm(np.array([8.0, 3.0]) - on_the_way)
    assert sim.agents.heading[0] @ towards > 0.95
    sim.run(until=14.0)
    assert sim.agents.position[0, 0] > 9.0  # there it goes on


def test_what_was_seen_last_is_in_checkpoints(tmp_path: Path) -> None:
    sim, again = (pursuit(view=math.pi / 2, target=(8.0, 3.0)) for _ in range(2))
    for each in (sim, again):
        each.at(1.0, tropel.events.MoveTarget(name="prey", position=(-20.0, -20.0)))
    sim.run(until=3.0)
    sim.save(tmp_path / "half")
    sim.run(until=6.0)
    again.restore(tmp_path / "half")
    again.run(until=6.0)
    assert again.state_hash() == sim.state_hash()


def test_a_cone_is_refused_where_it_would_do_nothing() -> None:
    world = tropel.World(shapely.box(0, 0, 10, 10), exits={"out": shapely.box(9, 4, 10, 6)})
    group = tropel.Group("a", count=3, region=shapely.box(1, 1, 5, 9), parameters={"view_angle": 1.0})
    with pytest.raises(TropelError, match="view_angle"):
        tropel.Simulation(world, group, local=tropel.Lattice())
    wide = tropel.Group("a", count=3, parameters={"view_angle": 7.0})
    with pytest.raises(TropelError, match="view_angle must be"):
        tropel.Simulation(world, wide)
