"""What a bicyclist is made of: the bicycle, the rider on it and how the rider steers, as declared numbers.

A character file is TOML with a table for each of the three classes below. `human.toml` and `alien.toml` are the two
bicyclists of RIDERS (Brogan and Hodgins 2002); lengths are in metres along x (forward) and z (up) from the point where
the rear wheel touches the ground, angles in radians, masses in kilograms.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from tropel.errors import ParameterError, named_parameters, suggest
from tropel.foundation.quantities import number


@named_parameters
@dataclass(frozen=True, kw_only=True)
class BicycleParameters:
    """The bicycle."""

    wheelbase: float = number(1.02, low=0.3, high=3.0, unit="m", about="distance of the points where the wheels touch")
    trail: float = number(0.08, low=0.0, high=0.5, unit="m", about="how far the steer axis meets the ground ahead")
    steer_tilt: float = number(0.314159, low=0.0, high=0.8, unit="rad", about="tilt of the steer axis, backwards")
    steer_damping: float = number(0.2, low=0.0, high=50.0, unit="N·m·s", about="friction of the headset")
    wheel_radius: float = number(0.34, low=0.1, high=1.0, unit="m", about="radius of both wheels")
    wheel_mass: float = number(1.8, low=0.1, high=20.0, unit="kg", about="mass of each wheel")
    frame_mass: float = number(7.0, low=0.5, high=100.0, unit="kg", about="mass of the frame with the cranks")
    fork_mass: float = number(2.5, low=0.2, high=30.0, unit="kg", about="mass of fork and handlebar")
    bottom_bracket_x: float = number(
        0.42, low=0.0, high=3.0, unit="m", about="axle of the cranks, ahead of the rear contact"
    )
    bottom_bracket_z: float = number(0.30, low=0.05, high=1.5, unit="m", about="axle of the cranks, above the ground")
    crank_length: float = number(0.17, low=0.02, high=0.5, unit="m", about="from the axle to the pedal")
    pedal_offset: float = number(0.11, low=0.01, high=0.5, unit="m", about="of each pedal from the plane of the frame")
    gear: float = number(4.2, low=0.3, high=20.0, about="turns of the rear wheel per turn of the cranks")
    drag: float = number(
        0.15, low=0.0, high=20.0, unit="N·m·s", about="resistance at the rear wheel per rate of its turning"
    )
    tyre_friction: float = number(0.8, low=0.05, high=5.0, about="grip of the tyres")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class RiderParameters:
    """The rider: twelve segments and seventeen joints, with a head three more joints, with hands two."""

    mass: float = number(75.0, low=1.0, high=500.0, unit="kg", about="mass of the rider")
    head: bool = False
    hands: bool = False
    hip_x: float = number(0.20, low=-1.0, high=3.0, unit="m", about="hips, ahead of the rear contact")
    hip_z: float = number(1.00, low=0.1, high=3.0, unit="m", about="hips, above the ground")
    torso_length: float = number(0.50, low=0.05, high=2.0, unit="m", about="from the waist to the shoulders")
    torso_lean: float = number(0.75, low=-1.0, high=1.6, unit="rad", about="of the torso, forward")
    shoulder_width: float = number(0.38, low=0.02, high=2.0, unit="m", about="between the shoulders")
    upper_arm: float = number(0.30, low=0.03, high=2.0, unit="m", about="from shoulder to elbow")
    forearm: float = number(0.32, low=0.03, high=2.0, unit="m", about="from elbow to grip")
    grip_x: float = number(0.72, low=0.0, high=3.0, unit="m", about="grips of the handlebar, ahead of the rear contact")
    grip_z: float = number(1.00, low=0.1, high=3.0, unit="m", about="grips, above the ground")
    grip_width: float = number(0.50, low=0.05, high=2.0, unit="m", about="between the grips")
    thigh: float = number(0.44, low=0.05, high=2.0, unit="m", about="from hip to knee")
    shank: float = number(0.44, low=0.05, high=2.0, unit="m", about="from knee to ankle")
    foot: float = number(0.15, low=0.02, high=1.0, unit="m", about="from ankle to pedal")
    foot_pitch: float = number(0.55, low=-1.0, high=1.5, unit="rad", about="how far the heel is raised")
    waist_stiffness: float = number(2500.0, low=0.0, high=1e5, unit="N·m", about="of the servo in each waist joint")
    waist_damping: float = number(150.0, low=0.0, high=1e4, unit="N·m·s", about="of the servo in each waist joint")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class ControlParameters:
    """How the rider rides."""

    speed: float = number(12.0, low=0.5, high=40.0, unit="m/s", about="speed that the rider keeps")
    turn_gain: float = number(0.6, low=0.0, high=20.0, unit="1/s", about="wanted turn rate per error of heading")
    lean_weight: float = number(4000.0, low=0.0, high=1e7, about="of errors of lean, in the cost of balancing")
    lean_rate_weight: float = number(400.0, low=0.0, high=1e7, about="of the rate of lean")
    steer_rate_weight: float = number(400.0, low=0.0, high=1e7, about="of the rate of steer")
    effort: float = number(1.0, above=0.0, high=1e6, about="of steer torque, in the same cost")
    steer_torque: float = number(60.0, above=0.0, high=1e4, unit="N·m", about="strongest steer torque of the arms")
    drive_gain: float = number(1.5, low=0.0, high=100.0, unit="1/s", about="acceleration per error of speed")
    drive_torque: float = number(
        60.0, above=0.0, high=1e4, unit="N·m", about="strongest torque at the rear wheel, either way"
    )
    slalom_angle: float = number(
        0.7, low=0.0, high=1.5, unit="rad", about="heading amplitude of the slalom that gives initial states"
    )
    slalom_period: float = number(8.0, low=0.5, high=60.0, unit="s", about="time of one period of that slalom")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class BicyclistParameters:
    """A bicyclist as a whole."""

    bicycle: BicycleParameters = dataclasses.field(default_factory=BicycleParameters)
    rider: RiderParameters = dataclasses.field(default_factory=RiderParameters)
    control: ControlParameters = dataclasses.field(default_factory=ControlParameters)


_TABLES = {"bicycle": BicycleParameters, "rider": RiderParameters, "control": ControlParameters}


def bicyclist_parameters(tables: dict[str, Any], where: str) -> BicyclistParameters:
    """Parameters from the tables of a character file; `where` begins error messages."""
    made: dict[str, Any] = {}
    for name, values in tables.items():
        if name not in _TABLES:
            raise ParameterError(f"{where}: there is no table [{name}] of a bicyclist; {suggest(name, _TABLES)}")
        if not isinstance(values, dict):
            raise ParameterError(f"{where}: '{name}' must be a table [{name}]")
        try:
            made[name] = _TABLES[name](**values)
        except ParameterError as error:
            raise ParameterError(f"{where}: [{name}] {error}") from None
    return BicyclistParameters(**made)
