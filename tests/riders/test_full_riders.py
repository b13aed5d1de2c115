"""Riders with full physics inside a simulation."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from tropel.errors import CheckpointError, MissingExtraError, ParameterError
from tropel.riders import engine
from tropel.riders.bicyclist.character import Bicyclist, Human
from tropel.riders.character import find_character, map_of
from tropel.riders.full import FullRiders


def test_riders_enter_where_they_are_told_to(bicyclist: Bicyclist) -> None:
    riders = FullRiders(bicyclist, 4)
    map_ = map_of(bicyclist)
    middle = map_.states[[10, 60]]
    jump = riders.place([1, 3], [[5.0, -2.0], [100.0, 7.0]], [0.5, -2.0], middle[:, 0], middle[:, 1])
    np.testing.assert_array_equal(jump.lean, 0.0)
    np.testing.assert_array_equal(jump.yaw_rate, 0.0)
    poses = riders.poses
    np.testing.assert_allclose(poses.position[[1, 3]], [[5.0, -2.0], [100.0, 7.0]], atol=1e-9)
    np.testing.assert_allclose(poses.heading[[1, 3]], [0.5, -2.0])
    np.testing.assert_allclose(poses.lean[[1, 3]], middle[:, 0])
    assert not poses.position[[0, 2]].any()
    assert not poses.fallen.any()


def test_riders_do_what_their_map_says(bicyclist: Bicyclist) -> None:
    # A rider that enters in an initial state of the map and turns by one of its actions follows that trajectory.
    map_, riders = map_of(bicyclist), FullRiders(bicyclist, 6)
    states, actions = np.array([0, 20, 40, 55, 70, 90]), np.array([0, 3, 9, 5, 7, 4])
    place = np.column_stack((np.zeros(6), 10.0 * np.arange(6)))
    facing = np.linspace(-1.5, 1.5, 6)
    riders.place(np.arange(6), place, facing, *map_.states[states].T)
    wanted = facing + map_.actions[actions]
    for tick in range(1, 11):
        poses = riders.tick(0.1, wanted, bicyclist.speed)
        x, y = map_.position[states, actions, tick].T
        moved = np.column_stack((np.cos(facing) * x - np.sin(facing) * y, np.sin(facing) * x + np.cos(facing) * y))
        np.testing.assert_allclose(poses.position, place + moved, atol=2e-3)
        np.testing.assert_allclose(poses.lean, map_.lean[states, actions, tick], atol=2e-3)


def test_a_restored_ride_has_the_same_bits(human: Human) -> None:
    first, second = FullRiders(human, 3), FullRiders(human, 3)
    first.place([0, 2], np.zeros((2, 2)), [0.0, 1.0], [0.1, -0.2], [0.0, 0.1])
    first.tick(0.1, 0.3, human.speed)
    stored = first.state()
    second.restore(stored)
    for _ in range(3):
        after, again = first.tick(0.1, [0.5, 0.0, 1.5], human.speed), second.tick(0.1, [0.5, 0.0, 1.5], human.speed)
    for name in ("position", "heading", "lean", "steer", "crank", "yaw_rate", "speed"):
        np.testing.assert_array_equal(getattr(after, name), getattr(again, name))
    for name, value in first.state().items():
        np.testing.assert_array_equal(value, second.state()[name])
    with pytest.raises(CheckpointError, match="does not fit"):
        FullRiders(human, 4).restore(stored)


def test_the_order_of_rows_does_not_change_a_bit(human: Human) -> None:
    forward, backward = FullRiders(human, 3), FullRiders(human, 3)
    place, facing, lean = np.arange(6.0).reshape(3, 2), np.array([0.0, 1.0, 2.0]), np.array([0.1, 0.0, -0.3])
    forward.place([0, 1, 2], place, facing, lean, np.zeros(3))
    backward.place([2, 1, 0], place, facing, lean, np.zeros(3))
    one = forward.tick(0.1, facing + 0.3, human.speed)
    other = backward.tick(0.1, (facing + 0.3)[::-1], human.speed)
    np.testing.assert_array_equal(one.position, other.position[::-1])


def test_blown_up_physics_leaves_a_fallen_rider_and_finite_poses(human: Human) -> None:
    riders = FullRiders(human, 2)
    riders.place([0, 1], np.zeros((2, 2)), 0.0, 0.0, 0.0)
    before = riders.poses.position[0]
    riders._ride.qvel[0] = 1e12
    poses = riders.tick(0.1, 0.0, human.speed)
    assert poses.fallen.tolist() == [True, False]
    np.testing.assert_array_equal(poses.position[0], before)
    assert poses.speed[0] == 0.0
    assert poses.position[1, 0] == pytest.approx(1.2, abs=0.1)
    assert all(np.isfinite(value).all() for name, value in riders.state().items() if name.startswith("last"))
    riders.place([0], [[3.0, 0.0]], 0.0, 0.0, 0.0)
    assert not riders.tick(0.1, 0.0, human.speed).fallen.any()


def test_a_rider_who_leaves_is_gone(human: Human) -> None:
    riders = FullRiders(human, 2)
    riders.place([0, 1], np.ones((2, 2)), 0.0, 0.0, 0.0)
    riders.remove([0])
    poses = riders.tick(0.1, 0.0, human.speed)
    assert not poses.position[0].any()
    assert not poses.fallen.any()
    assert poses.position[1, 0] > 2.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda riders: riders.tick(0.0995, 0.0, 12.0), "multiple"),
        (lambda riders: riders.tick(float("nan"), 0.0, 12.0), "multiple"),
        (lambda riders: riders.tick(0.1, float("nan"), 12.0), "finite"),
        (lambda riders: riders.tick(0.1, [1.0, 2.0, 3.0], 12.0), "shape"),
        (lambda riders: riders.place([5], [[0.0, 0.0]], 0.0, 0.0, 0.0), "rows"),
        (lambda riders: riders.place([0, 0], [0.0, 0.0], 0.0, 0.0, 0.0), "twice"),
        (lambda riders: riders.place([0], [[0.0, np.inf]], 0.0, 0.0, 0.0), "finite"),
    ],
)
def test_wrong_calls_are_refused(human: Human, call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call(FullRiders(human, 2))


def test_a_car_has_no_full_physics() -> None:
    with pytest.raises(ParameterError, match="no full physics"):
        FullRiders(find_character("car"), 2)


def test_without_mujoco_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name.startswith("mujoco"):
            raise ImportError(name)
        return usual(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"tropel\[riders\]"):
        engine.mujoco_package()
