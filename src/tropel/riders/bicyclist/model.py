"""A bicyclist as a compiled model, and what its controller needs to know about it."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tropel.errors import ParameterError
from tropel.riders.bicyclist import mjcf, posture
from tropel.riders.bicyclist.parameters import BicyclistParameters
from tropel.riders.bicyclist.posture import Floats
from tropel.riders.bicyclist.whipple import LinearBicycle, RigidPart, Wheel, WhippleBicycle, linearise
from tropel.riders.engine import mujoco_package

#: Gains are tabulated at these shares of the nominal speed, and interpolated.
_SPEED_SHARES = np.linspace(0.3, 1.5, 25)


@dataclass(frozen=True, eq=False)
class BicyclistModel:
    """The compiled model, where its joints are, and the gains by speed."""

    parameters: BicyclistParameters
    compiled: Any
    joints: dict[str, int]  #: column of each joint in qpos and qvel, which are alike: all joints have one axis
    actuators: dict[str, int]
    lumped: WhippleBicycle
    linear: LinearBicycle
    gain_speeds: Floats  #: (G,) [m/s]
    gains: Floats  #: (G, 6): the four gains, then steer and steer torque of a steady turn, per radian of lean
    mass: float  #: of everything [kg]


@functools.lru_cache(maxsize=16)
def bicyclist_model(parameters: BicyclistParameters, time_step: float = mjcf.TIME_STEP) -> BicyclistModel:
    """Build and compile it; done once for the same parameters."""
    mujoco = mujoco_package()
    compiled = mujoco.MjModel.from_xml_string(mjcf.bicyclist_mjcf(parameters, time_step=time_step))
    joints = {compiled.joint(index).name: index for index in range(compiled.njnt)}
    actuators = {compiled.actuator(index).name: index for index in range(compiled.nu)}
    lumped = lumped_bicycle(compiled, parameters)
    linear = linearise(lumped)
    control = parameters.control
    speeds = _SPEED_SHARES * control.speed
    weights = (control.lean_weight, 0.0, control.lean_rate_weight, control.steer_rate_weight)
    gains = np.empty((len(speeds), 6))
    for row, speed in zip(gains, speeds, strict=True):
        row[:4] = linear.balancing_gains(float(speed), weights, control.effort)
        row[4:] = linear.steady_turn(float(speed))
    if not np.isfinite(gains).all():
        raise ParameterError("no steer torque balances this bicycle; change its trail, masses or speed")
    return BicyclistModel(
        parameters, compiled, joints, actuators, lumped, linear, speeds, gains, float(compiled.body_mass.sum())
    )


def lumped_bicycle(compiled: Any, parameters: BicyclistParameters) -> WhippleBicycle:
    """The four rigid parts that the model consists of while rider and cranks keep still."""
    mujoco = mujoco_package()
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    names = [compiled.body(index).name for index in range(1, compiled.nbody)]
    apart = {"fork", "front_wheel", "rear_wheel"}
    bicycle = parameters.bicycle

    def part(members: list[str]) -> RigidPart:
        masses = np.array([compiled.body(name).mass[0] for name in members])
        centres = np.array([data.body(name).xipos for name in members])
        centre = masses @ centres / masses.sum()
        inertia = np.zeros((3, 3))
        for name, mass, at in zip(members, masses, centres, strict=True):
            turned = data.body(name).ximat.reshape(3, 3)
            off = at - centre
            inertia += turned @ np.diag(compiled.body(name).inertia) @ turned.T
            inertia += mass * ((off @ off) * np.eye(3) - np.outer(off, off))
        return RigidPart(
            mass=float(masses.sum()),
            centre=(float(centre[0]), float(centre[2])),
            inertia=(float(inertia[0, 0]), float(inertia[1, 1]), float(inertia[2, 2]), float(inertia[0, 2])),
        )

    def wheel(name: str) -> Wheel:
        body = compiled.body(name)
        across, along = float(min(body.inertia)), float(max(body.inertia))
        return Wheel(radius=bicycle.wheel_radius, mass=float(body.mass[0]), diametral=across, axial=along)

    return WhippleBicycle(
        wheelbase=bicycle.wheelbase,
        trail=bicycle.trail,
        steer_tilt=bicycle.steer_tilt,
        rear_wheel=wheel("rear_wheel"),
        front_wheel=wheel("front_wheel"),
        body=part([name for name in names if name not in apart]),
        fork=part(["fork"]),
    )


def starting_state(model: BicyclistModel, speed: float) -> tuple[Floats, Floats]:
    """qpos and qvel of a rider who rides upright along +x at this speed and pedals."""
    parameters, joints = model.parameters, model.joints
    position, velocity = np.zeros(len(joints)), np.zeros(len(joints))
    spin = speed / parameters.bicycle.wheel_radius
    cadence = spin / parameters.bicycle.gear
    velocity[joints["x"]] = speed
    velocity[joints["rear_wheel"]] = velocity[joints["front_wheel"]] = spin
    velocity[joints["crank"]] = cadence
    little = 1e-4
    for name, side in mjcf.SIDES.items():
        ahead = posture.leg_angles(parameters, side, np.array(little))
        behind = posture.leg_angles(parameters, side, np.array(-little))
        rates = (ahead - behind) / (2.0 * little) * cadence
        relative = np.diff(rates, prepend=0.0)  # each joint turns its segment relative to the one before
        for joint, rate in zip(mjcf.LEG, relative, strict=True):
            velocity[joints[f"{name}_{joint}"]] = rate
    return position, velocity
