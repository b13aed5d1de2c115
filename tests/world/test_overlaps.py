"""Points inside of discs, against looking at every pair."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from tropel.world import World
from tropel.world import obstacles as overlaps
from tropel.world.obstacles import inside_discs
from tropel.world.periodic import nearest_images


def _by_pairs(points: np.ndarray, centres: np.ndarray, radius: np.ndarray, world: World) -> np.ndarray:
    away = nearest_images(points[:, None] - centres[None], world.period)
    return ((away**2).sum(axis=2) < radius**2).any(axis=1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(
    "world",
    [
        World(shapely.box(0, 0, 10, 10)),
        World(bounds=(0, 0, 10, 10), periodic=True),
        World(bounds=(0, 0, 10, 10), periodic="x"),
        World.box((0, 0, 0), (10, 10, 10)),
        World.box((0, 0, 0), (10, 10, 10), periodic="xz"),
    ],
    ids=["area", "periodic", "periodic in x", "box", "periodic box"],
)
def test_the_same_points_are_inside_as_by_looking_at_every_pair(world: World, seed: int) -> None:
    random = np.random.default_rng(seed)
    points = random.uniform(0, 10, (3000, world.dim))
    centres = random.uniform(-0.5, 10.5, (300, world.dim))
    centres = np.clip(centres, 0, 9.999) if world.is_periodic else centres
    radius = 10.0 ** random.uniform(-3, 0, 300)
    radius[0] = 4.0
    expected = _by_pairs(points, centres, radius, world)
    assert 0 < expected.sum() < len(points)
    np.testing.assert_array_equal(inside_discs(points, centres, radius, world), expected)


def test_to_be_on_the_surface_is_to_be_outside() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    points = np.array([[5.0, 5.5], [5.0, np.nextafter(5.5, 0.0)]])
    assert inside_discs(points, np.array([[5.0, 5.0]]), np.array([0.5]), world).tolist() == [False, True]


def test_nothing_is_inside_of_nothing() -> None:
    world = World(shapely.box(0, 0, 10, 10))
    nothing = np.empty((0, 2))
    assert inside_discs(nothing, np.array([[5.0, 5.0]]), np.array([0.5]), world).shape == (0,)
    assert not inside_discs(np.array([[5.0, 5.0]]), nothing, np.empty(0), world).any()


def test_pairs_are_held_a_bounded_number_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where every point is inside of every disc."""
    monkeypatch.setattr(overlaps, "_MOST_PAIRS", 5000)
    most = 0
    within = overlaps._Points.within

    def counted(self: overlaps._Points, reach: float, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nonlocal most
        pairs = within(self, reach, places)
        most = max(most, len(pairs[0]))
        return pairs

    monkeypatch.setattr(overlaps._Points, "within", counted)
    points = np.random.default_rng(0).uniform(4, 6, (1000, 2))
    inside = inside_discs(points, np.full((400, 2), 5.0), np.full(400, 5.0), World(shapely.box(0, 0, 10, 10)))
    assert inside.all()
    assert 0 < most <= 5000
