"""How a rider rides: balance and heading through the hands, speed through the pedals, for many riders at once.

The wanted lean follows from the error of heading; steer torque brings the bicycle there and keeps it (LQR on the lumped
Whipple model, `whipple.py`). Nothing tells the rider to counter-steer: leaning to the left takes a moment of steering
to the right, and the gains do that.

    wanted lean    φd = atan(v k (ψd - ψ) / g)
    steer torque   T  = -K (φ - φd, δ - δs φd, φ′, δ′) + Ts φd
    wheel torque   W  = a m r (vd - v) + drag · spin, times gear as tangential forces on the pedals, to the legs by Jᵀ
"""

from __future__ import annotations

import numpy as np

from tropel.riders.bicyclist import mjcf, posture
from tropel.riders.bicyclist.model import BicyclistModel
from tropel.riders.bicyclist.posture import Floats
from tropel.riders.bicyclist.whipple import GRAVITY


class Controller:
    """Torques of N riders; knows the model and nothing of the engine."""

    def __init__(self, model: BicyclistModel) -> None:
        self._model = model
        joints = model.joints
        self._yaw, self._roll, self._steer, self._crank = (joints[n] for n in ("yaw", "roll", "steer", "crank"))
        self._x, self._y = joints["x"], joints["y"]
        self._steering = model.actuators["steering"]
        at_rest = {name: posture.leg_angles(model.parameters, side, np.zeros(())) for name, side in mjcf.SIDES.items()}
        self._legs = [
            (
                side,
                at_rest[name],
                [joints[f"{name}_{joint}"] for joint in mjcf.LEG[:2]],
                [model.actuators[f"{name}_{joint}"] for joint in mjcf.LEG],
            )
            for name, side in mjcf.SIDES.items()
        ]
        self._pelvis = joints["pelvis"]

    def gains_at(self, speed: Floats) -> Floats:
        """(N, 6): see `BicyclistModel.gains`."""
        model = self._model
        return np.stack([np.interp(speed, model.gain_speeds, column) for column in model.gains.T], axis=1)

    def forward_speed(self, qpos: Floats, qvel: Floats) -> Floats:
        yaw = qpos[:, self._yaw]
        return qvel[:, self._x] * np.cos(yaw) + qvel[:, self._y] * np.sin(yaw)

    def write(
        self, ctrl: Floats, qpos: Floats, qvel: Floats, gains: Floats, wanted_heading: Floats, wanted_speed: Floats
    ) -> None:
        """Write the controls (N, nu) of all riders."""
        control = self._model.parameters.control
        speed = self.forward_speed(qpos, qvel)
        error = wanted_heading - qpos[:, self._yaw]
        error -= 2.0 * np.pi * np.rint(error / (2.0 * np.pi))
        lean = np.arctan(speed * control.turn_gain * error / GRAVITY)
        torque = gains[:, 5] * lean
        torque -= gains[:, 0] * (qpos[:, self._roll] - lean)
        torque -= gains[:, 1] * (qpos[:, self._steer] - gains[:, 4] * lean)
        torque -= gains[:, 2] * qvel[:, self._roll]
        torque -= gains[:, 3] * qvel[:, self._steer]
        ctrl[:, self._steering] = np.clip(torque, -control.steer_torque, control.steer_torque)
        self._pedal(ctrl, qpos, speed, wanted_speed)

    def _pedal(self, ctrl: Floats, qpos: Floats, speed: Floats, wanted_speed: Floats) -> None:
        parameters = self._model.parameters
        bicycle, rider, control = parameters.bicycle, parameters.rider, parameters.control
        radius = bicycle.wheel_radius
        wheel = control.drive_gain * self._model.mass * radius * (wanted_speed - speed) + bicycle.drag * speed / radius
        push = np.clip(wheel, -control.drive_torque, control.drive_torque) * bicycle.gear / bicycle.crank_length
        crank = qpos[:, self._crank]
        cos, sin = np.cos(crank), np.sin(crank)
        for side, rest, (hip, knee), actuators in self._legs:
            # Each foot pushes while its pedal is in front; together they push evenly.
            force = push * 0.5 * (1.0 + side * cos)
            force_x, force_z = -force * side * sin, -force * side * cos
            pedal_x = bicycle.bottom_bracket_x + side * bicycle.crank_length * cos
            pedal_z = bicycle.bottom_bracket_z - side * bicycle.crank_length * sin
            thigh = rest[0] + qpos[:, self._pelvis] + qpos[:, hip]
            shank = rest[1] + qpos[:, self._pelvis] + qpos[:, hip] + qpos[:, knee]
            knee_x, knee_z = rider.hip_x - rider.thigh * np.sin(thigh), rider.hip_z - rider.thigh * np.cos(thigh)
            ankle_x, ankle_z = knee_x - rider.shank * np.sin(shank), knee_z - rider.shank * np.cos(shank)
            for actuator, at_x, at_z in zip(
                actuators, (rider.hip_x, knee_x, ankle_x), (rider.hip_z, knee_z, ankle_z), strict=True
            ):
                ctrl[:, actuator] = force_x * (pedal_z - at_z) - force_z * (pedal_x - at_x)
