"""Scattered obstacles: the same places as by looking at every pair, found without doing so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Obstacle, World
from tropel._kernels.philox import random_key, uniforms
from tropel.agents.distributions import Uniform, draw
from tropel.errors import GeometryError, ScenarioError
from tropel.scenario import obstacles as scattering
from tropel.scenario.loading import parse_scenario
from tropel.scenario.obstacles import scatter
from tropel.world.periodic import nearest_images


def _by_pairs(world: World, *, count: int, radius: Any, gap: float, seed: int) -> np.ndarray:
    """One dart after the other, each compared with everything that is there."""
    radii = draw(radius, seed=seed, purpose="stones/radius", ids=np.arange(count))
    key, numbers = random_key(seed, "stones/places"), np.arange(200 * count)
    unit = np.hstack([uniforms(key, numbers), uniforms(key, numbers, draw=1)])[:, : world.dim]
    darts = world.bounds[0] + unit * (world.bounds[1] - world.bounds[0])
    taken, taken_radius = world.obstacles.position, world.obstacles.radius
    walls = shapely.linestrings(world.segments.reshape(-1, 2, 2))
    placed: list[np.ndarray] = []
    for dart in darts:
        own = radii[len(placed)] + gap
        away = np.linalg.norm(nearest_images(taken - dart, world.period), axis=1)
        blocked = world.dim == 2 and len(walls) and shapely.distance(walls, shapely.Point(dart)).min() <= own
        if blocked or (away < taken_radius + own).any():
            continue
        taken, taken_radius = np.vstack([taken, dart]), np.append(taken_radius, radii[len(placed)])
        placed.append(dart)
        if len(placed) == count:
            break
    return np.array(placed)


def _worlds() -> dict[str, World]:
    def pillars(z: tuple[float, ...]) -> dict[str, Obstacle]:
        return {
            "big": Obstacle(radius=4.0, position=(6.0, 6.0, *z)),
            "small": Obstacle(radius=0.1, position=(15.0, 15.0, *z)),
        }

    return {
        "area": World(shapely.box(0, 0, 20, 20), walls=[[(2, 12), (18, 18)]], obstacles=pillars(())),
        "periodic": World(bounds=(0, 0, 20, 20), periodic=True, obstacles=pillars(())),
        "box": World.box((0, 0, 0), (20, 20, 20), obstacles=pillars((10.0,))),
        "periodic box": World.box((0, 0, 0), (20, 20, 20), periodic="xy", obstacles=pillars((10.0,))),
    }


@pytest.mark.parametrize("gap", [0.0, 0.4])
@pytest.mark.parametrize("where", ["area", "periodic", "box", "periodic box"])
def test_places_are_those_found_by_looking_at_every_pair(where: str, gap: float) -> None:
    told: dict[str, Any] = {"count": 60, "radius": Uniform(0.2, 0.9), "gap": gap, "seed": 3}
    expected = _by_pairs(_worlds()[where], **told)
    world = _worlds()[where]
    scatter(world, "stones", region=None, **told)
    assert world.obstacles.names[2:] == [f"stones_{k + 1}" for k in range(60)]
    np.testing.assert_array_equal(world.obstacles.position[2:], expected)


def test_what_a_dart_is_compared_with_does_not_grow_with_the_number_of_obstacles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compared = 0
    is_near = scattering.nearest_images

    def counted(offset: np.ndarray, period: np.ndarray) -> np.ndarray:
        nonlocal compared
        compared += len(offset)
        return is_near(offset, period)

    monkeypatch.setattr(scattering, "nearest_images", counted)
    work = []
    for count in (100, 400):
        compared = 0
        side = 2.0 * count**0.5
        scatter(World(bounds=(0, 0, side, side)), "stones", count=count, radius=0.2, region=None, gap=0.1, seed=0)
        work.append(compared / count)
    assert work[1] < 1.5 * work[0] + 1.0


def test_more_than_a_region_can_hold_are_refused_before_a_dart_is_thrown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scattering, "_darts", lambda *_: pytest.fail("darts were thrown"))
    world = World(shapely.box(0, 0, 10, 10))
    with pytest.raises(GeometryError, match=r"only \d+ of 5000 obstacles .* found room"):
        scatter(world, "stones", count=5000, radius=0.2, region=None, gap=0.0, seed=0)


def test_a_count_without_sense_names_file_and_key() -> None:
    text = """name = "strewn"
[world]
walkable = { box = [0, 0, 12, 8] }
[world.scatter]
stones = { count = 1000000000000000, radius = 0.2 }
[[groups]]
name = "few"
count = 3
"""
    with pytest.raises(ScenarioError, match=r"^strewn\.toml, line 5: world\.scatter\.stones: .* use fewer of them"):
        parse_scenario(text, source="strewn.toml", folder=Path()).build()
