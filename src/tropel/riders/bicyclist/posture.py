"""Where the joints of a rider are while hands and feet are on the bicycle: inverse kinematics of arms and legs.

All points are in the frame of the upright bicycle: x forward, y left, z up, origin where the rear wheel touches the
ground. Bodies of the model stand there when all joint angles are zero, so that the loops through handlebar and pedals
start closed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.riders.bicyclist.parameters import BicyclistParameters

Floats = NDArray[np.float64]

#: Distance of the waist joint from the hips, as a share of the torso.
_WAIST = 0.2
#: Length of a hand as a share of the forearm with hand.
HAND_SHARE = 0.3
LEFT, RIGHT = 1.0, -1.0


@dataclass(frozen=True)
class Arm:
    shoulder: Floats
    elbow: Floats
    wrist: Floats
    grip: Floats
    elbow_axis: Floats


@dataclass(frozen=True)
class Leg:
    hip: Floats
    knee: Floats
    ankle: Floats
    pedal: Floats
    knee_flexion: float


def waist(parameters: BicyclistParameters) -> Floats:
    rider = parameters.rider
    up = np.array([np.sin(rider.torso_lean), 0.0, np.cos(rider.torso_lean)])
    return np.array([rider.hip_x, 0.0, rider.hip_z]) + _WAIST * rider.torso_length * up


def neck(parameters: BicyclistParameters) -> Floats:
    rider = parameters.rider
    up = np.array([np.sin(rider.torso_lean), 0.0, np.cos(rider.torso_lean)])
    return waist(parameters) + rider.torso_length * up


def arm(parameters: BicyclistParameters, side: float) -> Arm:
    """An arm whose hand holds its grip; the elbow points down and outwards."""
    rider = parameters.rider
    shoulder = neck(parameters) + np.array([0.0, side * 0.5 * rider.shoulder_width, 0.0])
    grip = np.array([rider.grip_x, side * 0.5 * rider.grip_width, rider.grip_z])
    reach = grip - shoulder
    distance = float(np.linalg.norm(reach))
    upper, lower = rider.upper_arm, rider.forearm
    if not abs(upper - lower) < distance < 0.999 * (upper + lower):
        raise ParameterError(
            f"the hands do not reach the grips: they are {distance:.3g} m from the shoulders, the arms span "
            f"{abs(upper - lower):.3g} to {upper + lower:.3g} m; change upper_arm, forearm, grip_x or grip_z in [rider]"
        )
    along = reach / distance
    outward = np.array([0.0, side, -1.0])
    bend = outward - (outward @ along) * along
    bend /= np.linalg.norm(bend)
    foot = (upper**2 - lower**2 + distance**2) / (2.0 * distance)
    elbow = shoulder + foot * along + np.sqrt(upper**2 - foot**2) * bend
    axis = np.cross(elbow - shoulder, grip - elbow)
    share = 1.0 - HAND_SHARE if rider.hands else 1.0
    return Arm(shoulder, elbow, elbow + share * (grip - elbow), grip, axis / np.linalg.norm(axis))


def pedal(parameters: BicyclistParameters, side: float, crank: Floats) -> Floats:
    """Pedal positions (…, 2) as (x, z) in the plane of the frame; the left pedal is in front at crank angle 0."""
    bicycle = parameters.bicycle
    return np.stack(
        (
            bicycle.bottom_bracket_x + side * bicycle.crank_length * np.cos(crank),
            bicycle.bottom_bracket_z - side * bicycle.crank_length * np.sin(crank),
        ),
        axis=-1,
    )


def leg_angles(parameters: BicyclistParameters, side: float, crank: Floats) -> Floats:
    """Directions (…, 3) of thigh, shank and foot in the plane of the frame: turns about +y of a vector pointing down.

    The foot keeps its pitch through the whole turn of the crank.
    """
    rider = parameters.rider
    at = pedal(parameters, side, crank)
    ankle = at + rider.foot * np.array([-np.cos(rider.foot_pitch), np.sin(rider.foot_pitch)])
    reach = ankle - np.array([rider.hip_x, rider.hip_z])
    distance = np.linalg.norm(reach, axis=-1)
    if np.any(distance >= 0.999 * (rider.thigh + rider.shank)) or np.any(distance <= abs(rider.thigh - rider.shank)):
        raise ParameterError(
            f"the feet do not stay on the pedals: hips and ankles are {distance.min():.3g} to {distance.max():.3g} m "
            f"apart, thigh and shank span {abs(rider.thigh - rider.shank):.3g} to {rider.thigh + rider.shank:.3g} m; "
            "change thigh, shank, hip_x or hip_z in [rider]"
        )
    # A turn by θ about +y takes the direction down to (-sin θ, -cos θ) in (x, z).
    whole = np.arctan2(-reach[..., 0], -reach[..., 1])
    at_hip = np.arccos((rider.thigh**2 + distance**2 - rider.shank**2) / (2.0 * rider.thigh * distance))
    at_knee = np.pi - np.arccos((rider.thigh**2 + rider.shank**2 - distance**2) / (2.0 * rider.thigh * rider.shank))
    thigh = whole - at_hip
    shank = thigh + at_knee
    foot = np.full_like(thigh, np.arctan2(-np.cos(rider.foot_pitch), np.sin(rider.foot_pitch)))
    return np.stack((thigh, shank, foot), axis=-1)


def leg(parameters: BicyclistParameters, side: float) -> Leg:
    """A leg at crank angle 0."""
    bicycle, rider = parameters.bicycle, parameters.rider
    leg_angles(parameters, side, np.linspace(0.0, 2.0 * np.pi, 73))  # raises unless the feet stay on the pedals
    thigh, shank, _ = leg_angles(parameters, side, np.zeros(()))
    y = side * bicycle.pedal_offset
    hip = np.array([rider.hip_x, y, rider.hip_z])
    knee = hip + rider.thigh * np.array([-np.sin(thigh), 0.0, -np.cos(thigh)])
    ankle = knee + rider.shank * np.array([-np.sin(shank), 0.0, -np.cos(shank)])
    x, z = pedal(parameters, side, np.zeros(()))
    return Leg(hip, knee, ankle, np.array([x, y, z]), float(shank - thigh))
