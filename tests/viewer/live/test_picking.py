"""What a click means."""

from __future__ import annotations

import numpy as np
import pytest
from live_scenes import box, two_rooms

from tropel.viewer.frame import frame_of
from tropel.viewer.live.disturbances import Ray, agent_at, door_at, place_of, thing_at

ABOVE = (8.0, 4.0, 30.0)
DOORS = {"middle": np.array([[10.0, 4.0, 10.0, 6.0]])}


@pytest.mark.parametrize("place", [(3.0, 4.0), (0.0, 0.0), (17.5, 9.0)])
def test_a_ray_meets_the_ground_where_it_was_aimed(place: tuple[float, float]) -> None:
    sim = two_rooms(count=1)
    np.testing.assert_allclose(place_of(Ray.through(ABOVE, (*place, 0.0)), sim.scene), place, atol=1e-9)


def test_a_ray_into_the_sky_means_no_place() -> None:
    assert place_of(Ray.of(ABOVE, (0.0, 0.3, 1.0)), two_rooms(count=1).scene) is None


def test_in_space_a_click_is_as_deep_as_the_middle_and_inside() -> None:
    sim = box()
    assert place_of(Ray.through((5.0, -20.0, 3.0), (5.0, 4.0, 3.0)), sim.scene) == pytest.approx([5.0, 4.0, 3.0])
    outside = place_of(Ray.of((5.0, -20.0, 3.0), (1.0, 1.0, 1.0)), sim.scene)
    assert outside is not None
    assert (outside <= sim.world.bounds[1]).all()


def test_every_agent_is_found_where_it_stands() -> None:
    sim = two_rooms()
    frame = frame_of(sim)
    for agent, (x, y) in zip(frame.id.tolist(), frame.position.tolist(), strict=True):
        assert agent_at(Ray.through(ABOVE, (x, y, 0.2)), frame) == agent


def test_far_from_everybody_nobody_is_found() -> None:
    assert agent_at(Ray.through(ABOVE, (15.0, 8.0, 0.0)), frame_of(two_rooms())) is None


@pytest.mark.parametrize(
    ("place", "door"), [((10.0, 5.9), "middle"), ((10.1, 4.5), "middle"), ((10.0, 7.5), None), ((12.0, 5.0), None)]
)
def test_a_door_is_found_next_to_its_line(place: tuple[float, float], door: str | None) -> None:
    assert door_at(np.array(place), DOORS, Ray.through(ABOVE, (*place, 0.0))) == door


@pytest.mark.parametrize(
    ("place", "thing"),
    [((14.2, 5.3), ("obstacle", "pillar")), ((2.0, 2.0), ("target", "corner")), ((17.0, 2.0), None)],
)
def test_things_are_found_by_kind_and_name(place: tuple[float, float], thing: object) -> None:
    assert thing_at(Ray.through(ABOVE, (*place, 0.0)), frame_of(two_rooms())) == thing
