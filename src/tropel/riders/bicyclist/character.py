"""The two bicyclists of RIDERS (Brogan and Hodgins 2002) as characters: what maps are built of, and full physics.

A full state is qpos, qvel and the smoothed yaw rate of a rider whose rear wheel touches the ground at the origin and
who faces +x: 57 numbers for the human, 67 for the alien.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from tropel.errors import ParameterError, named_parameters
from tropel.foundation.long_work import report
from tropel.riders.bicyclist.mjcf import TIME_STEP
from tropel.riders.bicyclist.model import BicyclistModel, bicyclist_model, starting_state
from tropel.riders.bicyclist.parameters import (
    BicycleParameters,
    BicyclistParameters,
    ControlParameters,
    RiderParameters,
    bicyclist_parameters,
)
from tropel.riders.bicyclist.ride import Ride
from tropel.riders.character import Character, Floats, Trials
from tropel.riders.maps import MobilityMap

#: A rider settles in for this long after the start [s].
_SETTLING = 3.0
#: A rider rides straight who leans less, and turns away less, after settling in [rad].
_STRAIGHT = 0.15
#: A push that riders must recover from [rad].
_PUSH = 0.1
#: The range of actions is what this share of riders survives, to both sides.
SURVIVORS = 0.95
_SMALLEST_TURN, _LARGEST_TURN = 0.05, 2.0


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Bicyclist(Character):
    """A rider on a bicycle."""

    name: str = "bicyclist"
    bicycle: BicycleParameters = field(default_factory=BicycleParameters)
    rider: RiderParameters = field(default_factory=RiderParameters)
    control: ControlParameters = field(default_factory=ControlParameters)

    state_names: ClassVar[tuple[str, ...]] = ("roll", "yaw_rate")

    def __post_init__(self) -> None:
        if not (0 < len(self.name) <= 100):
            raise ParameterError("a character's name must have 1 to 100 letters")

    @classmethod
    def of_table(cls, named: Mapping[str, Any], where: str) -> Bicyclist:
        """From a character file: what its tables [bicycle], [rider] and [control] do not say is as in this class."""
        tables = {name: value for name, value in named.items() if name != "name"}
        usual = cls()
        for name, values in tables.items():
            if isinstance(values, Mapping) and hasattr(usual, name) and dataclasses.is_dataclass(getattr(usual, name)):
                kept = {
                    one.name: getattr(getattr(usual, name), one.name)
                    for one in dataclasses.fields(getattr(usual, name))
                }
                tables[name] = {**kept, **values}
        made = bicyclist_parameters(tables, where)
        parts = {
            name: getattr(made, name) if name in tables else getattr(usual, name)
            for name in ("bicycle", "rider", "control")
        }
        return cls(name=named.get("name", usual.name), **parts)

    @property
    def speed(self) -> float:  # type: ignore[override]
        return self.control.speed

    @property
    def length(self) -> float:  # type: ignore[override]
        return self.bicycle.wheelbase + 2.0 * self.bicycle.wheel_radius

    @property
    def width(self) -> float:  # type: ignore[override]
        return max(self.rider.grip_width, self.rider.shoulder_width) + 0.1

    @property
    def version(self) -> str:
        return f"bicyclist 1, steps of {TIME_STEP:g} s"

    @property
    def parameters(self) -> BicyclistParameters:
        return BicyclistParameters(bicycle=self.bicycle, rider=self.rider, control=self.control)

    @property
    def model(self) -> BicyclistModel:
        """Compiled when it is first asked for."""
        return bicyclist_model(self.parameters)

    @property
    def action_limit(self) -> float:
        return _turn_limit(self)

    def straight_state(self) -> Floats:
        """The full state of a rider who has settled in on a straight road."""
        return _straight_state(self)

    def initial_states(self, count: int) -> Floats:
        """Evenly spaced along one period of a slalom, after a first one to get into it."""
        control = self.control
        period = control.slalom_period
        begin = self.straight_state()
        ride = self.ride(begin[np.newaxis])
        found = np.empty((count, len(begin)))
        # The heading that is wanted changes with every step of this ride.
        ticks = max(count, round(period / 0.02))
        tick = period / ticks
        samples = np.round(np.arange(count) * ticks / count).astype(np.int64)
        taken = 0
        for number in range(2 * ticks):
            if number >= ticks and taken < count and number - ticks == samples[taken]:
                found[taken] = full_states(ride)[0]
                taken += 1
            wanted = control.slalom_angle * np.sin(2.0 * np.pi * number / ticks)
            ride.advance(tick, np.array([wanted]), np.array([self.speed]))
            if ride.fallen[0]:
                raise ParameterError(
                    f"'{self.name}' falls in the slalom of {control.slalom_angle:g} rad that initial states are taken "
                    "from; give a smaller slalom_angle or a longer slalom_period in [control]"
                )
        return found

    def reduced(self, full_states: Floats) -> Floats:
        roll = self.model.joints["roll"]
        return np.column_stack((full_states[:, roll], full_states[:, -1]))

    def ride(self, full_states: Floats, *, threads: int = 0) -> Ride:
        """Riders with full physics, one for each of these states."""
        model = self.model
        joints = len(model.joints)
        ride = Ride(model, len(full_states), threads=threads)
        rows = np.arange(len(full_states))
        ride.place(rows, full_states[:, :joints], full_states[:, joints : 2 * joints], full_states[:, -1])
        return ride

    def trials(self, full_states: Floats, actions: Floats, times: Floats) -> Trials:
        ride = self.ride(full_states)
        speed = np.full(len(actions), self.speed)
        seen = ride.see()
        begin, facing = seen.position, seen.heading
        cos, sin = np.cos(facing), np.sin(facing)
        shape = (len(actions), len(times))
        position, heading = np.zeros((*shape, 2)), np.zeros(shape)
        lean, steer = np.zeros(shape), np.zeros(shape)
        for k in range(len(times)):
            if k:
                ride.advance(float(times[k] - times[k - 1]), facing + actions, speed)
                seen = ride.see()
            east, north = (seen.position - begin).T
            now = np.stack((cos * east + sin * north, cos * north - sin * east), axis=1)
            columns = ((position, now), (heading, seen.heading - facing), (lean, seen.lean), (steer, seen.steer))
            for kept, values in columns:
                kept[:, k] = values
                if k:
                    # A rider on the ground has no trajectory: everything stays as it was before the fall.
                    kept[seen.fallen, k] = kept[seen.fallen, k - 1]
        return Trials(
            position=position,
            heading=heading,
            lean=lean,
            steer=steer,
            lasts=np.minimum(ride.fell_after, times[-1]),
        )

    def own_map(self) -> MobilityMap:
        from tropel.riders.building import kept_map

        return kept_map(self)


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Human(Bicyclist):
    """The human bicyclist: 12 segments, 17 joints, 12 m/s."""

    name: str = "human"


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Alien(Bicyclist):
    """The alien bicyclist: smaller and slower, with a neck and wrists: 15 segments, 22 joints, 6.7 m/s."""

    name: str = "alien"
    bicycle: BicycleParameters = field(
        default_factory=lambda: BicycleParameters(
            wheelbase=0.80,
            trail=0.06,
            wheel_radius=0.25,
            wheel_mass=1.2,
            frame_mass=5.0,
            fork_mass=1.6,
            bottom_bracket_x=0.32,
            bottom_bracket_z=0.25,
            crank_length=0.13,
            pedal_offset=0.09,
            gear=3.0,
            drag=0.08,
        )
    )
    rider: RiderParameters = field(
        default_factory=lambda: RiderParameters(
            mass=38.0,
            head=True,
            hands=True,
            hip_x=0.15,
            hip_z=0.76,
            torso_length=0.38,
            torso_lean=0.7,
            shoulder_width=0.30,
            upper_arm=0.24,
            forearm=0.25,
            grip_x=0.56,
            grip_z=0.78,
            grip_width=0.42,
            thigh=0.33,
            shank=0.33,
            foot=0.11,
        )
    )
    control: ControlParameters = field(
        default_factory=lambda: ControlParameters(
            speed=6.7, turn_gain=1.6, steer_torque=30.0, drive_torque=30.0, slalom_angle=0.45, slalom_period=5.0
        )
    )


def full_states(ride: Ride) -> Floats:
    """The full states of all riders, each moved to the origin and facing +x, without full turns of the cranks."""
    model = ride.model
    joints = model.joints
    qpos, qvel = np.array(ride.qpos), np.array(ride.qvel)
    yaw = qpos[:, joints["yaw"]]
    east, north = qvel[:, joints["x"]].copy(), qvel[:, joints["y"]].copy()
    qvel[:, joints["x"]] = np.cos(yaw) * east + np.sin(yaw) * north
    qvel[:, joints["y"]] = np.cos(yaw) * north - np.sin(yaw) * east
    qpos[:, [joints["x"], joints["y"], joints["yaw"]]] = 0.0
    turns = 2.0 * np.pi * np.floor(qpos[:, joints["crank"]] / (2.0 * np.pi))
    qpos[:, joints["crank"]] -= turns
    qpos[:, joints["rear_wheel"]] -= model.parameters.bicycle.gear * turns
    qpos[:, joints["front_wheel"]] %= 2.0 * np.pi
    return np.column_stack((qpos, qvel, ride.yaw_rate))


@functools.lru_cache(maxsize=16)
def _straight_state(character: Bicyclist) -> Floats:
    qpos, qvel = starting_state(character.model, character.speed)
    ride = character.ride(np.concatenate((qpos, qvel, [0.0]))[np.newaxis])
    ahead, speed = np.zeros(1), np.array([character.speed])
    for _ in range(10):
        ride.advance(_SETTLING / 10.0, ahead, speed)
        seen = ride.see()
        if seen.fallen[0]:
            raise ParameterError(
                f"'{character.name}' cannot ride straight: the rider falls after {ride.fell_after[0]:.2g} s at "
                f"{character.speed:g} m/s; change speed, steer_torque or the weights in [control], or the trail"
            )
    if abs(seen.lean[0]) > _STRAIGHT or abs(seen.heading[0]) > _STRAIGHT or not _keeps_speed(seen.speed[0], character):
        raise ParameterError(
            f"'{character.name}' cannot ride straight: after {_SETTLING:g} s the rider leans by {seen.lean[0]:.2g} "
            f"rad, has turned by {seen.heading[0]:.2g} rad and rides at {seen.speed[0]:.3g} of {character.speed:g} "
            "m/s; change the weights, drive_gain or drive_torque in [control]"
        )
    state = full_states(ride)[0]
    _check_recovery(character, state)
    state.setflags(write=False)
    return state


def _check_recovery(character: Bicyclist, straight: Floats) -> None:
    """At speed a bicycle without a rider's help takes long to fall; a rider must catch it."""
    pushed = np.array(straight)
    pushed[character.model.joints["roll"]] += _PUSH
    ride = character.ride(pushed[np.newaxis])
    ride.advance(_SETTLING, np.zeros(1), np.array([character.speed]))
    seen = ride.see()
    if seen.fallen[0] or abs(seen.lean[0]) > 0.5 * _PUSH:
        raise ParameterError(
            f"'{character.name}' cannot ride straight: after a push to the side by {_PUSH:g} rad the rider does not "
            "come upright again; change steer_torque or the weights in [control]"
        )


def _keeps_speed(speed: float, character: Bicyclist) -> bool:
    return abs(speed - character.speed) < 0.15 * character.speed


@functools.lru_cache(maxsize=16)
def _turn_limit(character: Bicyclist) -> float:
    """The largest turn that riders survive from anywhere in the slalom: a coarse ladder of turns, then a fine one."""
    begin = character.initial_states(6)
    times: Floats = np.arange(51, dtype=np.float64) * 0.1
    low, high = 0.0, _LARGEST_TURN
    ladders = (np.geomspace(_SMALLEST_TURN, _LARGEST_TURN, 9), np.linspace(0.0, 1.0, 9))
    for number, ladder in enumerate(ladders):
        turns = ladder if number == 0 else low + (high - low) * ladder[1:-1]
        report(f"range of turns of '{character.name}'", number, len(ladders))
        both = np.concatenate((turns, -turns))
        tried = character.trials(np.repeat(begin, len(both), axis=0), np.tile(both, len(begin)), times)
        stays = (tried.lasts >= times[-1]).reshape(len(begin), 2, len(turns)).mean(axis=0).min(axis=0)
        falls = np.flatnonzero(stays < SURVIVORS)
        if falls.size and falls[0] == 0 and number == 0:
            raise ParameterError(
                f"'{character.name}' falls in turns as small as {_SMALLEST_TURN:g} rad; "
                "change turn_gain, steer_torque or the weights in [control]"
            )
        first = int(falls[0]) if falls.size else len(turns)
        high = float(turns[first]) if first < len(turns) else high
        low = float(turns[first - 1]) if first else low
    report(f"range of turns of '{character.name}'", len(ladders), len(ladders))
    return low
