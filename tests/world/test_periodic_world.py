"""Building periodic and open worlds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel.errors import GeometryError, ScenarioError
from tropel.scenario import load_scenario
from tropel.world import Obstacle, World
from tropel.world.periodic import images_of_discs, nearest_images


def test_a_box_of_two_dimensions_has_walls_seams_or_nothing_at_its_sides() -> None:
    walled = World.box((0, 0), (4, 2))
    assert walled.walkable is not None
    assert walled.walkable.equals(shapely.box(0, 0, 4, 2))
    assert (walled.dim, walled.period.tolist(), walled.walled.tolist()) == (2, [0, 0], [True, True])
    torus = World.box((0, 0), (4, 2), periodic=True)
    assert (torus.period.tolist(), len(torus.segments), torus.unbounded.any()) == ([4, 2], 0, False)
    corridor = World.box((0, 0), (4, 2), periodic="x")
    assert corridor.period.tolist() == [4, 0]
    # Two walls, each with an image on either side.
    assert len(corridor.segments) == 6
    assert sorted(set(corridor.segments[:, 1])) == [0.0, 2.0]
    assert World.box((0, 0), (4, 2), open=True).unbounded.tolist() == [True, True]


def test_the_high_side_is_a_period_from_the_low_one_also_when_rounded() -> None:
    world = World.box((0.1, -0.3), (0.7, 1e7 / 3), periodic=True)
    assert (world.bounds[0] + world.period == world.bounds[1]).all()


def test_places_are_wrapped_into_the_box() -> None:
    world = World.box((-1.0, 2.0), (4.0, 9.0), periodic="x")
    places = np.array([[-1.0, 0.0], [4.0, 20.0], [np.nextafter(-1.0, -2.0), 3.0], [3.9, 3.0], [-16.5, 3.0]])
    world.wrap(places)
    np.testing.assert_array_equal(places[:, 1], [0.0, 20.0, 3.0, 3.0, 3.0])
    np.testing.assert_allclose(places[:, 0], [-1.0, -1.0, -1.0, 3.9, 3.5])
    assert (places[:, 0] >= -1.0).all()
    assert (places[:, 0] < 4.0).all()


def test_nearest_images_are_the_shortest_of_all_offsets() -> None:
    rng = np.random.default_rng(1)
    period = np.array([3.0, 0.0, 5.0])
    offset = rng.uniform(-20.0, 20.0, (200, 3))
    found = nearest_images(offset, period)
    turns = np.arange(-9, 10)
    for axis, length in enumerate(period):
        every = offset[:, axis, None] + length * turns
        np.testing.assert_allclose(np.abs(found[:, axis]), np.abs(every).min(axis=1), atol=1e-12)


def test_images_of_discs_are_those_that_reach_into_the_box() -> None:
    low, high = np.zeros(2), np.array([10.0, 6.0])
    position = np.array([[0.5, 3.0], [5.0, 3.0], [9.8, 0.1]])
    rows, centres = images_of_discs(position, np.ones(3), low, high, high - low)
    assert rows[:3].tolist() == [0, 1, 2]
    assert sorted(zip(rows[3:].tolist(), centres[3:].round(9).tolist(), strict=True)) == [
        (0, [10.5, 3.0]),
        (2, [-0.2, 0.1]),
        (2, [-0.2, 6.1]),
        (2, [9.8, 6.1]),
    ]


def test_obstacles_are_where_they_are_inside_of_the_box() -> None:
    world = World.box((0, 0), (10, 10), periodic=True, obstacles={"o": Obstacle(position=(12, -1), radius=1)})
    assert world.obstacles.position.tolist() == [[2, 9]]
    world.obstacles.move("o", (-3, 31))
    assert world.obstacles.position.tolist() == [[7, 1]]
    world.obstacles.add("m", Obstacle(motion=lambda t: (9.5 + t, 5.0), radius=1), time=1.0, dt=0.5)
    np.testing.assert_allclose(world.obstacles.position[1], [0.5, 5.0])
    np.testing.assert_allclose(world.obstacles.velocity[1], [1.0, 0.0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: World(shapely.box(0, 0, 5, 5), periodic=True), "cannot be joined: give a periodic world bounds"),
        (lambda: World.box((0, 0), (5, 5), periodic="z"), "name axes among x, y"),
        (lambda: World.box((0, 0, 0), (5, 5, 5), periodic=""), "name axes among x, y, z"),
        (
            lambda: World(bounds=(0, 0, 5, 5), periodic=True, walls=[[(4, 1), (6, 1)]]),
            "wall 0 reaches beyond the side of a periodic world",
        ),
        (
            lambda: World(bounds=(0, 0, 5, 5), periodic="y", exits={"out": shapely.box(1, 4, 2, 6)}),
            "exit 'out' reaches beyond",
        ),
        (
            lambda: World.box((0, 0), (5, 5), periodic=True, obstacles={"o": Obstacle(position=(1, 1), radius=2.5)}),
            "less than half",
        ),
        (lambda: World.box((0, 0), (5, 5), periodic=True, targets={"t": (6, 1)}), "outside the box"),
        (lambda: World.box((0, 0), (5, 5, 5)), "2 coordinates"),
    ],
)
def test_worlds_that_cannot_be_are_refused(build: object, message: str) -> None:
    with pytest.raises(GeometryError, match=message):
        build()  # type: ignore[operator]


SCENE = """
name = "test"
dt = 0.1
until = 1.0
[world]
{world}
[[groups]]
name = "boids"
count = 5
goal = "none"
sense_radius = 1.0
[local]
model = "collision_free_speed"
"""


def loaded(folder: Path, world: str) -> World:
    path = folder / "scene.toml"
    path.write_text(SCENE.format(world=world))
    return load_scenario(path).build().world


def described(folder: Path, world: str) -> World:
    """The world alone: the model of the scene is one for the plane."""
    path = folder / "scene.toml"
    path.write_text(SCENE.format(world=world))
    return load_scenario(path).world()


def test_scenario_files_make_periodic_and_open_worlds(tmp_path: Path) -> None:
    assert loaded(tmp_path, "bounds = [0, 0, 150, 100]\nperiodic = true").period.tolist() == [150, 100]
    assert loaded(tmp_path, 'bounds = [0, 0, 150, 100]\nperiodic = "y"').period.tolist() == [0, 100]
    box = "box = { low = [0, 0, 0], high = [9, 9, 9] }"
    assert described(tmp_path, box + "\nopen = true").unbounded.all()
    assert described(tmp_path, box + '\nperiodic = "xz"').period.tolist() == [9, 0, 9]


def test_scenario_files_say_what_cannot_be_periodic_or_open(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="periodic joins the sides"):
        loaded(tmp_path, "walkable = { box = [0, 0, 5, 5] }\nperiodic = true")
    with pytest.raises(ScenarioError, match="open is for a 3D box"):
        loaded(tmp_path, "bounds = [0, 0, 5, 5]\nopen = true")


def test_a_region_of_a_box_that_is_no_box_is_refused() -> None:
    square = [(1, 1), (4, 1), (4, 4), (1, 4)]
    with pytest.raises(GeometryError, match=r"region 'nest': regions of World\.box are boxes, given by"):
        World.box((0, 0), (20, 20), regions={"nest": square})
