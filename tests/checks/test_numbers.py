"""Speeds, radii and time steps that no walking person has."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Door, Flocking, Group, Lattice, PathPlans, Simulation, Source, World, events

ROOM = shapely.box(0.0, 0.0, 40.0, 40.0)
OUT = {"out": shapely.box(36.0, 10.0, 40.0, 30.0)}


def room(**more: Any) -> World:
    return World(ROOM, exits=OUT, **more)


def codes(crowd: Group | Source, *, dt: float = 0.01, world: World | None = None, **layers: Any) -> list[str]:
    return [found.code for found in Simulation(world or room(), crowd, dt=dt, **layers).check()]


@pytest.mark.parametrize(("speed", "expected"), [(1.34, []), (12.0, []), (13.4, ["fast"]), (134.0, ["fast"])])
def test_speeds_above_a_sprint(speed: float, expected: list[str]) -> None:
    assert codes(Group("people", count=5, desired_speed=speed)) == expected
    assert codes(Source("people", rate=1.0, region=shapely.box(1, 1, 30, 30), desired_speed=speed)) == expected


@pytest.mark.parametrize(("speed", "expected"), [(0.3, []), (0.05, []), (0.01, ["slow"]), (0.0, ["slow"])])
def test_speeds_near_zero(speed: float, expected: list[str]) -> None:
    assert codes(Group("people", count=5, desired_speed=speed)) == expected
    assert codes(Group("statues", count=5, desired_speed=speed, goal="none")) == []


def test_a_speed_that_an_event_sets_later_is_a_note() -> None:
    sim = Simulation(room(), Group("people", count=5, desired_speed=0.0))
    sim.at(5.0, events.SetParameter(name="desired_speed", value=1.3))
    assert [found.severity for found in sim.check()] == ["note"]


@pytest.mark.parametrize(("radius", "expected"), [(0.25, []), (1.0, []), (1.1, ["wide"]), (2.5, ["wide"])])
def test_bodies_wider_than_people(radius: float, expected: list[str]) -> None:
    assert codes(Group("people", count=5, radius=radius)) == expected


def test_only_those_concerned_are_counted() -> None:
    speeds = np.array([1.0, 1.2, 20.0, 25.0, 1.5])
    (found,) = Simulation(room(), Group("people", count=5, desired_speed=speeds), dt=0.01).check()
    assert found.agents == 2
    assert "2 people of group 'people'" in found.message
    assert "25 m/s" in found.message


@pytest.mark.parametrize(("width", "expected"), [(0.8, []), (0.5, []), (0.45, ["wider_than_door"])])
def test_doors_narrower_than_bodies(width: float, expected: list[str]) -> None:
    door = {"flap": Door([(5.0, 5.0), (5.0, 5.0 + width)])}
    crowd = Group("people", count=5, radius=0.25, region=shapely.box(10, 10, 30, 30))
    assert codes(crowd, world=room(doors=door)) == expected


@pytest.mark.parametrize(("dt", "expected"), [(0.05, []), (0.14, []), (0.2, ["long_steps"]), (1.0, ["long_steps"])])
def test_steps_longer_than_a_body(dt: float, expected: list[str]) -> None:
    crowd = Group("people", count=5, radius=0.2, desired_speed=1.34)
    assert codes(crowd, dt=dt) == expected
    if expected:
        (found,) = Simulation(room(), crowd, dt=dt).check()
        assert f"dt = {dt:g} s" in found.message
        assert "at most 0.15 s" in found.remedy


def test_flocks_vehicles_and_cells_have_numbers_of_their_own() -> None:
    odd: dict[str, Any] = {"count": 5, "desired_speed": 30.0, "radius": 2.0, "goal": "none"}
    assert codes(Group("birds", **odd), dt=0.5, local=Flocking()) == []
    flyers = Simulation(World.box((0, 0, 0), (90, 90, 90)), Group("flyers", **odd), dt=0.5)
    assert flyers.check() == []
    assert codes(Group("people", count=5), dt=0.5, planning=PathPlans(), local=Lattice()) == []
