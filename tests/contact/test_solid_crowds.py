"""Solid bodies in whole runs: crowds of every symmetry and of none, for each model that declares such bodies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import tropel
from body_distances import closest_in_step, contacts, distances
from tropel.contracts import ModelDeclaration, Moves
from tropel.errors import ParameterError
from two_threads import needs_two_threads

Floats = NDArray[np.float64]

#: Rounding, and what bodies may come closer than touching because of it [m].
HAIR = 3e-9


class Headlong(tropel.Model):
    """Straight to the goal, without a look at anybody."""

    declares = ModelDeclaration(solid_bodies=True)

    def steer(self, moment, out):
        members = moment.members
        out.velocity[members] = moment.directions[members] * moment.state.desired_speed[members, None]


def solid(model: Any) -> Any:
    """A model with solid bodies that others can press on, made from its class; none where it has no such thing."""
    try:
        made = model(solid_bodies=True)
    except (ParameterError, TypeError):
        made = model()
    return made if made.declares.solid_bodies and made.declares.moves is not Moves.EXACTLY else None


def is_model(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, tropel.Model) and found is not tropel.Model


#: Whatever can be had from the package with solid bodies, and one that leaves all to them.
MODELS: dict[str, Any] = {
    name: getattr(tropel, name)
    for name in sorted(tropel.__all__)
    if is_model(getattr(tropel, name)) and solid(getattr(tropel, name)) is not None
} | {"Headlong": Headlong}


class Towards(tropel.Planner):
    """Each agent heads for a point of its own, and stands when it is there."""

    def __init__(self, goals: Floats, within: float = 0.1) -> None:
        self.goals = goals
        self.within = within

    def direct(self, moment, out):
        members = moment.members
        way = self.goals[moment.state.id[members]] - moment.state.position[members]
        length = np.linalg.norm(way, axis=1, keepdims=True)
        out.directions[members] = np.where(length > self.within, way / np.maximum(length, 1e-12), 0.0)


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """Who stands where, how wide, and where everybody wants to be."""

    position: Floats
    goals: Floats
    radius: Any = 0.2
    room: shapely.Polygon | None = None  #: has walls; open space when left out

    def simulation(self, model: Any, dt: float, *, seed: int = 1, threads: int = 1) -> tropel.Simulation:
        dim = self.position.shape[1]
        edge = float(np.abs(np.concatenate([self.position, self.goals])).max()) + 5.0
        if self.room is not None:
            world = tropel.World(self.room)
        elif dim == 2:
            world = tropel.World(bounds=(-edge, -edge, edge, edge))
        else:
            world = tropel.World.box((-edge,) * 3, (edge,) * 3)
        sight = np.maximum(3.0, 10.0 * np.resize(self.radius, len(self.position)))
        people = tropel.Group("people", positions=self.position, radius=self.radius, sense_radius=sight)
        return tropel.Simulation(
            world, people, planning=Towards(self.goals), local=model, dt=dt, seed=seed, threads=threads
        )


def ring(count: int, radius: float | tuple[float, ...] = 0.2, room: shapely.Polygon | None = None) -> Crowd:
    """Bodies on a circle, a few millimetres from their neighbours, that want to the opposite sides."""
    radii = np.resize(radius, count)
    angle = 2.0 * np.pi * np.arange(count) / count
    away = (radii.max() + 0.001) / np.sin(np.pi / count)
    position = away * np.column_stack([np.cos(angle), np.sin(angle)])
    return Crowd(position=position, goals=-position, radius=radii, room=room)


def blocks(rows: int, columns: int, stagger: float = 0.0, room: shapely.Polygon | None = None) -> Crowd:
    """Two regular blocks, face to face, that walk through each other; the second is shifted sideways [m]."""
    x, y = np.meshgrid(0.42 * np.arange(columns) + 0.25, 0.42 * (np.arange(rows) - 0.5 * (rows - 1)))
    west = np.column_stack([-x.ravel(), y.ravel()])
    east = np.column_stack([x.ravel(), y.ravel() + stagger])
    position = np.concatenate([west, east])
    return Crowd(position=position, goals=position + np.repeat([(6.0, 0.0), (-6.0, 0.0)], len(west), axis=0), room=room)


def mirrored_lines(count: int) -> Crowd:
    """Two lines side by side; each changes places with its image in the other, the outer ones towards the middle."""
    along = 0.405 * (np.arange(count) - 0.5 * (count - 1))
    position = np.concatenate([np.column_stack([along, np.full(count, side)]) for side in (0.21, -0.21)])
    return Crowd(position=position, goals=-position)


def collapsing_lattice(side: int, dim: int) -> Crowd:
    """A regular block of which all want to the middle."""
    axis = 0.41 * (np.arange(side) - 0.5 * (side - 1))
    position = np.stack(np.meshgrid(*[axis] * dim), axis=-1).reshape(-1, dim)
    return Crowd(position=position, goals=np.zeros_like(position))


SYMMETRIC: dict[str, Callable[[], Crowd]] = {
    "head-on pair": lambda: ring(2),
    "triangle": lambda: ring(3),
    "ring of 60": lambda: ring(60),
    "ring of 250": lambda: ring(250),
    "ring of two sizes": lambda: ring(240, (0.2, 0.12)),
    "ring in a room": lambda: ring(60, room=shapely.box(-4.3, -4.3, 4.3, 4.3)),
    "RVO2's circle": lambda: ring(250, 1.5),  # the bodies of its example, from where they begin to touch
    "counterflow": lambda: blocks(8, 6),
    "staggered counterflow": lambda: blocks(8, 6, stagger=0.21),
    "counterflow between walls": lambda: blocks(8, 6, room=shapely.box(-9.0, -1.7, 9.0, 1.7)),
    "mirrored lines": lambda: mirrored_lines(40),
    "collapsing lattice": lambda: collapsing_lattice(12, 2),
}


def check_solid(sim: tropel.Simulation, steps: int) -> None:
    """Nobody comes closer to anybody than touching, or, once overlapping, than they have been; by all pairs.

    The collision watch must see the same.
    """
    touching, was = contacts(sim.agents.radius), distances(sim.agents.position)
    apart = bool((was >= touching).all())
    least = np.minimum(touching, was)
    for step in range(steps):
        before = sim.agents.position.copy()
        sim.step()
        closest = closest_in_step(before, sim.agents.position)
        assert (closest >= least - HAIR).all(), f"step {step}: {(least - closest).max():.3g} m too close"
        least = np.maximum(least, np.minimum(touching, distances(sim.agents.position)))
    assert sim.collisions.begun.sum() == 0
    assert not (apart and len(sim.collisions))


@pytest.mark.parametrize("dt", [0.01, 0.05, 0.5])
@pytest.mark.parametrize("crowd", SYMMETRIC)
@pytest.mark.parametrize("model", MODELS)
def test_bodies_stay_solid_at_any_symmetry(model: str, crowd: str, dt: float) -> None:
    check_solid(SYMMETRIC[crowd]().simulation(solid(MODELS[model]), dt), steps=25)


def test_bodies_stay_solid_at_any_symmetry_in_three_dimensions() -> None:
    for model in (tropel.Seek(), Headlong()):
        check_solid(collapsing_lattice(5, 3).simulation(model, 0.05), steps=25)


@given(count=st.integers(3, 300), dt=st.floats(0.005, 0.5), model=st.sampled_from(list(MODELS)))
@example(count=250, dt=0.05, model="Seek")
@settings(max_examples=25)
def test_rings_of_any_size_stay_solid(count: int, dt: float, model: str) -> None:
    check_solid(ring(count).simulation(solid(MODELS[model]), dt), steps=12)


@given(
    seed=st.integers(0, 10**6),
    count=st.integers(2, 150),
    crowding=st.sampled_from([0.1, 0.5, 0.8, 2.0]),  # area of the bodies over that of the place; above, they overlap
    dt=st.sampled_from([0.01, 0.05, 0.2, 0.5]),
    model=st.sampled_from(list(MODELS)),
    walled=st.booleans(),
)
@settings(max_examples=40)
def test_random_crowds_stay_solid(seed: int, count: int, crowding: float, dt: float, model: str, walled: bool) -> None:
    generator = np.random.default_rng(seed)
    radius = generator.uniform(0.1, 0.3, count)
    half = 0.5 * np.sqrt((np.pi * radius**2).sum() / crowding) + 0.4
    position = generator.uniform(0.35 - half, half - 0.35, (count, 2))
    goals = generator.permutation(position) + generator.normal(0.0, 0.1, (count, 2))
    room = shapely.box(-half, -half, half, half) if walled else None
    crowd = Crowd(position=position, goals=goals, radius=radius, room=room)
    check_solid(crowd.simulation(solid(MODELS[model]), dt, seed=seed), steps=12)


@pytest.mark.parametrize("count", [8, 20])
def test_rings_dissolve(count: int) -> None:
    # So wide that the goals leave room for the last to arrive.
    place = 5.0 * ring(count).position / np.linalg.norm(ring(count).position, axis=1, keepdims=True)
    crowd = Crowd(position=place, goals=-place)
    sim = crowd.simulation(tropel.Seek(), 0.05)
    check_solid(sim, steps=1200)
    assert np.linalg.norm(sim.agents.position - crowd.goals, axis=1).max() < 0.5


def test_walls_hold_while_bodies_give_way() -> None:
    for name in ("ring in a room", "counterflow between walls"):
        crowd = SYMMETRIC[name]()
        assert crowd.room is not None
        for model in MODELS.values():
            sim = crowd.simulation(solid(model), 0.2)
            for _ in range(40):
                sim.step()
                # The rooms are convex, so chords between points inside of them are inside.
                assert shapely.contains_properly(crowd.room, shapely.points(sim.agents.position)).all()


@needs_two_threads
def test_a_large_ring_is_the_same_on_one_thread_and_on_two() -> None:
    hashes = []
    for threads in (1, 2):
        sim = ring(3000).simulation(tropel.Seek(), 0.05, threads=threads)
        for _ in range(15):
            sim.step()
        hashes.append(sim.state_hash())
    assert hashes[0] == hashes[1]
