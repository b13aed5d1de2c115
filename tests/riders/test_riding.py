"""Bicyclists in the physics engine ride straight, turn, counter-steer and fall."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import mujoco
import numpy as np
import pytest

from tropel.errors import ParameterError
from tropel.riders.bicyclist import mjcf
from tropel.riders.bicyclist.character import Alien, Bicyclist, Human
from tropel.riders.bicyclist.model import bicyclist_model, starting_state
from tropel.riders.bicyclist.ride import Ride


def together(character: Bicyclist, count: int) -> Ride:
    return character.ride(np.repeat(character.straight_state()[np.newaxis], count, axis=0))


@pytest.mark.parametrize(("kind", "segments", "joints"), [(Human, 12, 17), (Alien, 15, 22)])
def test_segments_and_joints_are_those_of_the_paper(kind: type[Bicyclist], segments: int, joints: int) -> None:
    model = kind().model.compiled
    bodies = {model.body(k).name for k in range(1, model.nbody)}
    assert len(bodies - {"frame", "fork", "rear_wheel", "front_wheel", "crank"}) == segments
    names = {model.joint(k).name for k in range(model.njnt)}
    bicycle = {"rear_wheel", "front_wheel", "crank", "steer", "pelvis"}
    assert len(names - {"x", "y", "z", "yaw", "roll", "pitch"} - bicycle) == joints
    assert kind().straight_state().shape == (13 + 2 * (joints + 5),)


def test_hands_and_feet_start_on_grips_and_pedals(bicyclist: Bicyclist) -> None:
    model = bicyclist.model.compiled
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    closed = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    assert len(closed) == 4 * 3 + 1
    assert np.abs(closed).max() < 1e-9
    # And stay there with the pedals anywhere, if the legs move as inverse kinematics says.
    position, velocity = starting_state(bicyclist.model, bicyclist.speed)
    data.qpos[:], data.qvel[:] = position + 1e-3 * velocity, velocity
    mujoco.mj_forward(model, data)
    closed = data.efc_pos[data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY]
    assert np.abs(closed).max() < 1e-4


def test_the_steer_torque_of_the_arms_arrives_at_the_fork(bicyclist: Bicyclist) -> None:
    # Virtual work: what the joints do is what the handlebar receives, for a small turn of it.
    model = bicyclist.model
    compiled, joints = model.compiled, model.joints
    torques = mjcf.steer_synergy(bicyclist.parameters)
    data = mujoco.MjData(compiled)
    data.qvel[joints["steer"]] = 1.0
    mujoco.mj_forward(compiled, data)
    # Let the arms follow the grips: least squares on the velocity of the equality constraints.
    rows = data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
    jacobian = data.efc_J.reshape(-1, compiled.nv)[rows]
    arms = [joints[name] for name in joints if name.startswith(("left_sh", "right_sh", "left_el", "right_el"))]
    rates = np.linalg.lstsq(jacobian[:, arms], -jacobian[:, joints["steer"]], rcond=None)[0]
    work = sum(torques[name] * rates[arms.index(joints[name])] for name in torques)
    assert work == pytest.approx(1.0, abs=1e-6)


def test_gains_are_those_of_the_feasibility_study() -> None:
    # Within a tenth: masses and lengths that the study did not state differ.
    human, alien = Human(), Alien()
    for character, gains, steer in (
        (human, (-80.0, 222.0, -20.6, 15.2), 0.072),
        (alien, (-98.0, 192.0, -28.0, 18.2), 0.182),
    ):
        model = character.model
        at = [np.interp(character.speed, model.gain_speeds, column) for column in model.gains.T]
        np.testing.assert_allclose(at[:4], gains, rtol=0.1)
        assert at[4] == pytest.approx(steer, rel=0.02)


def ride_straight(character: Bicyclist, seconds: float) -> None:
    ride = together(character, 1)
    begin = ride.see().position[0]
    for _ in range(round(seconds / 0.5)):
        ride.advance(0.5, np.zeros(1), np.full(1, character.speed))
        seen = ride.see()
        assert not seen.fallen[0]
        assert abs(seen.lean[0]) < 0.012
        assert abs(seen.heading[0]) < 0.02
    off = seen.position[0] - begin
    assert off[0] == pytest.approx(character.speed * seconds, rel=0.01)
    assert abs(off[1]) < 0.005 * off[0]


def test_riders_ride_straight(bicyclist: Bicyclist) -> None:
    ride_straight(bicyclist, 5.0)


@pytest.mark.long
def test_riders_ride_straight_for_a_minute(bicyclist: Bicyclist) -> None:
    ride_straight(bicyclist, 60.0)


def test_nobody_rides_far_without_hands(human: Human) -> None:
    control = dataclasses.replace(human.control, steer_torque=1e-6)
    with pytest.raises(ParameterError, match="cannot ride straight"):
        dataclasses.replace(human, control=control).straight_state()


@pytest.mark.parametrize(("kind", "inside", "outside"), [(Human, 1.0, 2.0), (Alien, 0.5, 1.6)])
def test_turns_inside_the_range_are_reached_and_outside_riders_fall(
    kind: type[Bicyclist], inside: float, outside: float
) -> None:
    character = kind()
    turns = np.array([-outside, -inside, -0.25 * inside, 0.25 * inside, inside, outside])
    ride = together(character, len(turns))
    for _ in range(10):
        ride.advance(0.6, turns, np.full(len(turns), character.speed))
    seen = ride.see()
    assert seen.fallen.tolist() == [True, False, False, False, False, True]
    np.testing.assert_allclose(seen.heading[1:-1], turns[1:-1], atol=0.03)
    assert (ride.fell_after[[0, -1]] < 4.0).all()


def test_a_turn_to_the_left_begins_to_the_right(bicyclist: Bicyclist) -> None:
    turn = 0.5 if bicyclist.name == "human" else 0.25
    ride = together(bicyclist, 2)
    turns = np.array([turn, -turn])
    steer, heading, aside = [], [], []
    for _ in range(40):
        ride.advance(0.05, turns, np.full(2, bicyclist.speed))
        seen = ride.see()
        steer.append(seen.steer * np.sign(turns))
        heading.append(seen.heading * np.sign(turns))
        aside.append(seen.contact[:, 1] * np.sign(turns))
    # Far more than pedalling does, and to both sides alike.
    for way, least in ((np.array(steer), 0.01), (np.array(heading), 0.02), (np.array(aside), 0.05)):
        assert (way[:20].min(axis=0) < -least).all()
        assert (way[20:].max(axis=0) > least).all()


def test_steps_of_one_two_and_four_milliseconds_agree(human: Human) -> None:
    found = []
    for time_step in (0.001, 0.002, 0.004):
        model = bicyclist_model(human.parameters, time_step)
        ride = Ride(model, 1)
        position, velocity = starting_state(model, human.speed)
        ride.place(np.arange(1), position[np.newaxis], velocity[np.newaxis], np.zeros(1))
        for wanted in (0.5, -0.2):
            ride.advance(1.0, np.array([wanted]), np.full(1, human.speed))
        seen = ride.see()
        found.append([*seen.position[0], seen.heading[0], seen.lean[0], seen.steer[0]])
    off = np.abs(np.diff(found, axis=0)).max(axis=0)
    assert off[:2].max() < 0.05  # of 24 m
    assert off[2:].max() < 0.004


def test_riders_speed_up_and_slow_down(human: Human) -> None:
    ride = together(human, 2)
    for _ in range(8):
        ride.advance(0.5, np.zeros(2), np.array([0.8, 1.1]) * human.speed)
    seen = ride.see()
    assert not seen.fallen.any()
    np.testing.assert_allclose(seen.speed, np.array([0.8, 1.1]) * human.speed, rtol=0.03)


def test_threads_do_not_change_a_bit(human: Human) -> None:
    begin = np.repeat(human.straight_state()[np.newaxis], 5, axis=0)
    turns = np.linspace(-1.0, 1.0, 5)
    rides = [human.ride(begin, threads=threads) for threads in (1, 2)]
    for ride in rides:
        ride.advance(0.4, turns, np.full(5, human.speed))
    for name, value in rides[0].state().items():
        np.testing.assert_array_equal(value, rides[1].state()[name])


def test_physics_that_blows_up_counts_as_a_fall_and_the_others_go_on(
    human: Human, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ride, alone = together(human, 4), together(human, 1)
    joints = human.model.joints
    ride.qvel[0, joints["steer"]] = 1e9
    ride.qpos[1, joints["roll"]] = np.nan
    ride.qvel[2, joints["left_knee"]] = -1e7
    for each in (ride, alone):
        each.advance(0.5, np.zeros(len(each)), np.full(len(each), human.speed))
    assert ride.fallen.tolist() == [True, True, True, False]
    np.testing.assert_array_equal(ride.qpos[3], alone.qpos[0])
    assert not list(tmp_path.iterdir())  # MuJoCo would leave a log of its warnings


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"rider": {"upper_arm": 0.1, "forearm": 0.1}}, "hands do not reach the grips"),
        ({"rider": {"thigh": 0.2, "shank": 0.2}}, "feet do not stay on the pedals"),
        ({"rider": {"tigh": 0.4}}, "did you mean 'thigh'"),
        ({"bicycle": {"gear": float("nan")}}, "gear must be"),
        ({"control": {"speed": "fast"}}, "speed must be"),
        ({"rider": 3}, "must be a table"),
        ({"control": {"slalom_angle": 1.5, "slalom_period": 2.0}}, "falls in the slalom"),
    ],
)
def test_bad_characters_are_refused_with_a_reason(table: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Human.of_table(table, "mine.toml").initial_states(5)
