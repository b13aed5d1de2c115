"""The switch that checks everything in every step: silent on scenes of all kinds, loud about every kind of mistake."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import shapely

import tropel
from tropel.environment.kinetic.lists import NearLists
from tropel.environment.kinetic.model import Kinetic
from tropel.environment.kinetic.plane import InPlane
from tropel.environment.kinetic.space import InSpace
from tropel.errors import ModelError
from tropel.scenario import parse_scenario

HALL = shapely.box(0.0, 0.0, 20.0, 14.0)
EAST = shapely.box(19.0, 5.0, 20.0, 9.0)


def walled_hall(environment: Kinetic, seed: int) -> tropel.Simulation:
    """People of all radii cross a hall with walls and a door; some arrive, some leave, and some are thrown about."""
    world = tropel.World(
        HALL,
        walls=[
            [(8.0, 0.0), (8.0, 6.0)],
            [(8.0, 8.0), (8.0, 14.0)],
            [(12.0, 3.0), (15.0, 6.0)],
            [(3.0, 9.0), (6.0, 9.0)],
        ],
        doors={"door": [(8.0, 6.0), (8.0, 8.0)]},
        exits={"east": EAST},
    )
    people = [
        tropel.Group("people", count=60, region=HALL, goal="east", sense_radius=tropel.Uniform(0.3, 4.0)),
        tropel.Source(group="people", region=shapely.box(0.0, 0.0, 4.0, 4.0), rate=3.0, goal="east"),
    ]
    sim = tropel.Simulation(world, people, environment=environment, seed=seed, threads=1)
    draws = np.random.default_rng(seed)

    def throw(sim: tropel.Simulation) -> None:
        sim.world.set_door("door", open=bool(draws.integers(2)))
        row = int(draws.integers(len(sim.agents)))
        sim.agents.position[row] = draws.uniform((0.5, 0.5), (19.5, 13.5))

    sim.every(0.4, throw)
    return sim


def flock(environment: Kinetic, seed: int) -> tropel.Simulation:
    box = tropel.World.box((0.0,) * 3, (9.0,) * 3)
    birds = tropel.Group("birds", count=60, sense_radius=tropel.Uniform(0.5, 3.0))
    return tropel.Simulation(box, birds, local=tropel.Flocking(), environment=environment, seed=seed, threads=1)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("visibility", ["near", "approachable", "visible"])
def test_it_finds_nothing_wrong_among_walls_and_doors(visibility: str, seed: int) -> None:
    sim = walled_hall(Kinetic(visibility=visibility, check_always=True), seed)
    for _ in range(60):
        sim.step()
    assert len(sim.agents) > 40


def test_it_finds_nothing_wrong_in_space() -> None:
    sim = flock(Kinetic(check_always=True), 0)
    for _ in range(60):
        sim.step()


def _plane(kinetic: Kinetic) -> InPlane:
    assert isinstance(kinetic.crowd, InPlane)
    return kinetic.crowd


def _forget_one(kinetic: Kinetic) -> None:
    """Somebody is struck from a list."""
    kept = _plane(kinetic)._usual
    longest = int(np.argmax(kept._maybe.length))
    assert kept._maybe.length[longest] > 3
    kept._maybe.length[longest] = 1


def _turn_over(kinetic: Kinetic) -> None:
    corner = _plane(kinetic).moving.mesh.corner
    corner[[0, 1]] = corner[[1, 0]]


def _claim_too_much(kinetic: Kinetic) -> None:
    _plane(kinetic)._usual.leash += 5.0


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_forget_one, "not those that brute force finds: missing|should have everybody"),
        (_turn_over, "the triangulation is broken"),
        (_claim_too_much, "should have everybody up to what is left of its leash"),
    ],
)
def test_it_finds_what_is_wrong_in_the_plane(damage: Callable[[Kinetic], None], message: str) -> None:
    kinetic = Kinetic(check_always=True)
    sim = walled_hall(kinetic, 0)
    sim.step()
    kinetic.check_always = False
    sim.sense().csr()
    damage(kinetic)
    kinetic.check_always = True
    with pytest.raises(ModelError, match=message):
        sim.sense()


def test_it_finds_lists_that_are_never_filled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    sim = walled_hall(Kinetic(check_always=True), 0)
    sim.step()
    # Whoever leaves its leash gets no other list.
    monkeypatch.setattr(NearLists, "_renew_some", lambda self, slots, around: True)
    monkeypatch.setattr(NearLists, "_fill", lambda self, state, position, cells, radius: self._find_all())
    with pytest.raises(ModelError, match=r"brute force|used up|should have"):
        sim.run(until=3.0)


def test_it_finds_what_is_wrong_in_space() -> None:
    kinetic = Kinetic(check_always=True)
    sim = flock(kinetic, 0)
    sim.step()
    sim.sense().csr()
    assert isinstance(kinetic.crowd, InSpace)
    kept = kinetic.crowd._usual
    kept._maybe.length[int(np.argmax(kept._maybe.length))] = 0
    with pytest.raises(ModelError, match=r"brute force|should have everybody"):
        sim.sense()
    other = flock(Kinetic(check_always=True), 0)
    other.step()
    other.sense()
    assert isinstance(other.environment, Kinetic)
    assert isinstance(other.environment.crowd, InSpace)
    vertices = other.environment.crowd.structure.arrays.tet_vertex
    one = int(np.flatnonzero(vertices[:, 0] >= 0)[0])
    vertices[one, [0, 1]] = vertices[one, [1, 0]]
    with pytest.raises(ModelError, match="the tetrahedralisation is broken"):
        other.sense()


def test_it_moves_nobody_elsewhere_and_can_be_set_in_files() -> None:
    text = """
name = "checked"
environment = { model = "kinetic", check_always = CHECK }
[world]
walkable = { box = [0.0, 0.0, 8.0, 6.0] }
[world.exits]
east = { box = [7.0, 2.0, 8.0, 4.0] }
[[groups]]
name = "people"
count = 12
"""
    sims = [
        parse_scenario(text.replace("CHECK", value), source="x.toml", folder=Path(".")).build()
        for value in ("true", "false")
    ]
    for sim in sims:
        for _ in range(40):
            sim.step()
    assert isinstance(sims[0].environment, Kinetic)
    assert sims[0].environment.check_always
    assert sims[0].state_hash() == sims[1].state_hash()
