"""MuJoCo models, as MJCF text: the bare bicycle of the Whipple benchmark and bicyclists with an articulated rider.

x points forward, y left, z up; roll, yaw and steer are positive to the left. Choices that matter:

- Tyres are thin ellipsoids. Cylinders touch the ground at two points and made the weave unstable.
- The Jacobian is dense: the sparse one of MuJoCo 4.0.0 has wrong factors in Newton's method for these models.
- `autoreset` is off: otherwise a model that blows up starts anew, upright, and counts as a survivor.
- The rider is joined to the bicycle by `connect` constraints at grips and pedals, so that all forces on the handlebar
  and the cranks pass through hands and feet.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable
from typing import Any

import numpy as np

from tropel.riders.bicyclist import posture
from tropel.riders.bicyclist.parameters import BicyclistParameters
from tropel.riders.bicyclist.posture import LEFT, RIGHT, Floats
from tropel.riders.bicyclist.whipple import RigidPart, Wheel, WhippleBicycle

#: Step of the physics [s]; 1, 2 and 4 ms agree (`tests/riders`).
TIME_STEP = 0.002

#: Joints of the rider in the order of the model, per part of the body.
WAIST = ("waist_roll", "waist_pitch", "waist_yaw")
NECK = ("neck_roll", "neck_pitch", "neck_yaw")
SIDES = {"left": LEFT, "right": RIGHT}
ARM = ("shoulder_x", "shoulder_y", "shoulder_z", "elbow")
LEG = ("hip", "knee", "ankle")

#: Shares of the body's mass (Dempster and Gaughran 1965); both sides are named once.
_SHARES = {
    "pelvis": 0.142,
    "torso": 0.355,
    "head": 0.081,
    "upper_arm": 0.028,
    "forearm": 0.016,
    "hand": 0.006,
    "thigh": 0.100,
    "shank": 0.0465,
    "foot": 0.0145,
}
#: Thickness of segments relative to the torso's length.
_RADII = {"pelvis": 0.22, "torso": 0.24, "head": 0.2, "upper_arm": 0.09, "forearm": 0.07, "hand": 0.06, "thigh": 0.13,
          "shank": 0.1, "foot": 0.07}  # fmt: skip


def _text(values: Iterable[float] | Floats) -> str:
    return " ".join(f"{float(value):.12g}" for value in values)


def _add(parent: ET.Element, tag: str, **attributes: Any) -> ET.Element:
    """An element with attributes; sequences become numbers in a row, a trailing underscore is dropped from names."""
    return ET.SubElement(parent, tag, {name.rstrip("_"): _plain(value) for name, value in attributes.items()})


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.12g}"
    return str(value) if isinstance(value, str | int) else _text(value)


def _world(name: str, time_step: float) -> tuple[ET.Element, ET.Element]:
    root = ET.Element("mujoco", {"model": name})
    _add(root, "compiler", angle="radian", autolimits="true", inertiafromgeom="auto")
    option = _add(
        *(root, "option"),
        timestep=time_step,
        gravity=(0.0, 0.0, -9.81),
        integrator="implicitfast",
        cone="elliptic",
        impratio=10,
        solver="Newton",
        iterations=50,
        tolerance=1e-8,
        jacobian="dense",
    )
    _add(option, "flag", autoreset="disable")
    default = _add(root, "default")
    # Only tyres and ground touch.
    _add(default, "geom", contype=0, conaffinity=0)
    world = _add(root, "worldbody")
    _add(world, "geom", name="ground", type="plane", size=(0.0, 0.0, 1.0), contype=1, conaffinity=1, condim=3)
    return root, world


def _root_joints(frame: ET.Element) -> None:
    for name, axis in (("x", (1, 0, 0)), ("y", (0, 1, 0)), ("z", (0, 0, 1))):
        _add(frame, "joint", name=name, type="slide", axis=axis)
    for name, axis in (("yaw", (0, 0, 1)), ("roll", (-1, 0, 0)), ("pitch", (0, 1, 0))):
        _add(frame, "joint", name=name, type="hinge", axis=axis)


def _wheel(parent: ET.Element, name: str, at: Floats, wheel: Wheel, friction: float, damping: float) -> None:
    body = _add(parent, "body", name=name, pos=at)
    _add(body, "joint", name=name, type="hinge", axis=(0, 1, 0), damping=damping)
    inertia = (wheel.diametral, wheel.axial, wheel.diametral)
    _add(body, "inertial", pos=(0.0, 0.0, 0.0), mass=wheel.mass, diaginertia=inertia)
    _add(
        *(body, "geom"),
        type="ellipsoid",
        size=(wheel.radius, 0.01, wheel.radius),
        condim=3,
        priority=1,  # otherwise stiffness is averaged with that of the ground, and the tyres slip
        contype=1,
        conaffinity=1,
        friction=(friction, 0.005, 0.0001),
        solref=(0.005, 1.0),
        solimp=(0.95, 0.99, 0.001),
    )


def _rigid(body: ET.Element, part: RigidPart, origin: Floats) -> None:
    xx, yy, zz, xz = part.inertia
    centre = np.array([part.centre[0], 0.0, part.centre[1]]) - origin
    _add(body, "inertial", pos=centre, mass=part.mass, fullinertia=(xx, yy, zz, 0.0, xz, 0.0))


def steer_axis(tilt: float) -> Floats:
    return np.array([-np.sin(tilt), 0.0, np.cos(tilt)])


def whipple_mjcf(bicycle: WhippleBicycle, *, time_step: float = TIME_STEP) -> str:
    """The bare bicycle with a rigid rider, for comparison with the linear model."""
    root, world = _world("whipple", time_step)
    frame = _add(world, "body", name="frame", pos=(0.0, 0.0, 0.0))
    _root_joints(frame)
    _rigid(frame, bicycle.body, np.zeros(3))
    _wheel(frame, "rear_wheel", np.array([0.0, 0.0, bicycle.rear_wheel.radius]), bicycle.rear_wheel, 1.0, 0.0)
    pivot = np.array([bicycle.wheelbase + bicycle.trail, 0.0, 0.0])
    fork = _add(frame, "body", name="fork", pos=pivot)
    _add(fork, "joint", name="steer", type="hinge", axis=steer_axis(bicycle.steer_tilt))
    _rigid(fork, bicycle.fork, pivot)
    hub = np.array([bicycle.wheelbase, 0.0, bicycle.front_wheel.radius])
    _wheel(fork, "front_wheel", hub - pivot, bicycle.front_wheel, 1.0, 0.0)
    return ET.tostring(root, encoding="unicode")


def bicyclist_mjcf(parameters: BicyclistParameters, *, time_step: float = TIME_STEP) -> str:
    """The bicycle with its rider; all joints at zero is the riding posture with the left pedal in front."""
    root, world = _world("bicyclist", time_step)
    frame = _add(world, "body", name="frame", pos=(0.0, 0.0, 0.0))
    _root_joints(frame)
    equality = ET.Element("equality")
    tendon = ET.Element("tendon")
    actuator = ET.Element("actuator")
    _bicycle(frame, parameters)
    _rider(frame, parameters, equality, tendon, actuator)
    gear = parameters.bicycle.gear
    _add(
        *(equality, "joint"),
        joint1="rear_wheel",
        joint2="crank",
        polycoef=(0.0, gear, 0.0, 0.0, 0.0),
        solref=(0.004, 1.0),
    )
    root.extend([equality, tendon, actuator])
    return ET.tostring(root, encoding="unicode")


def _bicycle(frame: ET.Element, parameters: BicyclistParameters) -> None:
    bicycle, rider = parameters.bicycle, parameters.rider
    radius, mass = bicycle.wheel_radius, bicycle.wheel_mass
    # Most of a wheel's mass is in its rim and tyre.
    wheel = Wheel(radius=radius, mass=mass, axial=0.85 * mass * radius**2, diametral=0.45 * mass * radius**2)
    axle = np.array([0.0, 0.0, radius])
    _wheel(frame, "rear_wheel", axle, wheel, bicycle.tyre_friction, bicycle.drag)

    bracket = np.array([bicycle.bottom_bracket_x, 0.0, bicycle.bottom_bracket_z])
    saddle = np.array([rider.hip_x, 0.0, rider.hip_z - 0.15 * rider.torso_length])
    pivot = np.array([bicycle.wheelbase + bicycle.trail, 0.0, 0.0])
    axis = steer_axis(bicycle.steer_tilt)
    low_head = pivot + axis * (2.0 * radius + 0.04) / axis[2]
    high_head = pivot + axis * max(rider.grip_z - 0.04, 2.0 * radius + 0.1) / axis[2]
    tubes = [(axle, bracket), (axle, saddle), (bracket, saddle), (bracket, low_head), (saddle, high_head)]
    cranks = 0.1 * bicycle.frame_mass
    lengths = np.array([np.linalg.norm(end - begin) for begin, end in tubes])
    for (begin, end), share in zip(tubes, lengths / lengths.sum(), strict=True):
        tube_mass = float(share * (bicycle.frame_mass - cranks))
        _add(frame, "geom", type="capsule", fromto=[*begin, *end], size=(0.015,), mass=tube_mass)

    fork = _add(frame, "body", name="fork", pos=pivot)
    _add(fork, "joint", name="steer", type="hinge", axis=axis, damping=bicycle.steer_damping)
    hub = np.array([bicycle.wheelbase, 0.0, radius]) - pivot
    grips = [np.array([rider.grip_x, side * 0.5 * rider.grip_width, rider.grip_z]) - pivot for side in (LEFT, RIGHT)]
    parts = [(hub, low_head - pivot), (low_head - pivot, high_head - pivot), (grips[0], grips[1])]
    for (begin, end), share in zip(parts, (0.5, 0.2, 0.3), strict=True):
        _add(fork, "geom", type="capsule", fromto=[*begin, *end], size=(0.015,), mass=share * bicycle.fork_mass)
    _wheel(fork, "front_wheel", hub, wheel, bicycle.tyre_friction, 0.0)

    crank = _add(frame, "body", name="crank", pos=bracket)
    _add(crank, "joint", name="crank", type="hinge", axis=(0, 1, 0))
    for side in (LEFT, RIGHT):
        begin = np.array([0.0, side * 0.6 * bicycle.pedal_offset, 0.0])
        end = np.array([side * bicycle.crank_length, side * 0.6 * bicycle.pedal_offset, 0.0])
        _add(crank, "geom", type="capsule", fromto=[*begin, *end], size=(0.012,), mass=0.5 * cranks)


def _segment(
    parent: ET.Element, name: str, origin: Floats, at: Floats, tip: Floats, mass: float, size: float
) -> ET.Element:
    """A body at `at` that reaches to `tip`, inside a parent whose body is at `origin`."""
    body = _add(parent, "body", name=name, pos=at - origin)
    _add(body, "geom", type="capsule", fromto=[0.0, 0.0, 0.0, *(tip - at)], size=(size,), mass=mass)
    return body


def _rider(
    frame: ET.Element, parameters: BicyclistParameters, equality: ET.Element, tendon: ET.Element, actuator: ET.Element
) -> None:
    rider = parameters.rider
    masses = {name: share * rider.mass for name, share in _SHARES.items()}
    if not rider.head:
        masses["torso"] += masses.pop("head")
    if not rider.hands:
        masses["forearm"] += masses.pop("hand")
    sizes = {name: share * rider.torso_length for name, share in _RADII.items()}
    saddle = np.array([rider.hip_x, 0.0, rider.hip_z])
    waist, neck = posture.waist(parameters), posture.neck(parameters)

    pelvis = _add(frame, "body", name="pelvis", pos=saddle)
    # A stiff hinge on the saddle: the pelvis can only give way a little.
    _add(
        pelvis,
        "joint",
        name="pelvis",
        type="hinge",
        axis=(0, 1, 0),
        stiffness=120.0 * rider.mass,
        damping=4.0 * rider.mass,
    )
    wide = [0.0, -parameters.bicycle.pedal_offset, 0.0, 0.0, parameters.bicycle.pedal_offset, 0.0]
    _add(pelvis, "geom", type="capsule", fromto=wide, size=(0.8 * sizes["pelvis"],), mass=masses["pelvis"])

    torso = _segment(pelvis, "torso", saddle, waist, neck, masses["torso"], 0.7 * sizes["torso"])
    for name, axis in zip(WAIST, ((-1, 0, 0), (0, 1, 0), (0, 0, 1)), strict=True):
        _add(torso, "joint", name=name, type="hinge", axis=axis)
        _servo(actuator, name, rider.waist_stiffness, rider.waist_damping)
    if rider.head:
        up = (neck - waist) / np.linalg.norm(neck - waist)
        tip = neck + 0.45 * rider.torso_length * up
        head = _segment(torso, "head", waist, neck, tip, masses["head"], sizes["head"])
        for name, axis in zip(NECK, ((-1, 0, 0), (0, 1, 0), (0, 0, 1)), strict=True):
            _add(head, "joint", name=name, type="hinge", axis=axis)
            _servo(actuator, name, 0.1 * rider.waist_stiffness, 0.1 * rider.waist_damping)

    for name, side in SIDES.items():
        _arm(torso, waist, parameters, name, side, masses, sizes, equality)
    coefficients = steer_synergy(parameters)
    steering = _add(tendon, "fixed", name="steering")
    for joint, coefficient in coefficients.items():
        _add(steering, "joint", joint=joint, coef=coefficient)
    _add(actuator, "motor", name="steering", tendon="steering")
    if rider.hands:
        for name in SIDES:
            _servo(actuator, f"{name}_wrist", 40.0, 2.0)
    for name, side in SIDES.items():
        _leg(pelvis, saddle, parameters, name, side, masses, sizes, equality, tendon, actuator)


def _servo(actuator: ET.Element, joint: str, stiffness: float, damping: float) -> None:
    _add(actuator, "position", name=joint, joint=joint, kp=stiffness, kv=damping)


def _arm(
    torso: ET.Element,
    waist: Floats,
    parameters: BicyclistParameters,
    name: str,
    side: float,
    masses: dict[str, float],
    sizes: dict[str, float],
    equality: ET.Element,
) -> None:
    arm = posture.arm(parameters, side)
    weight = parameters.rider.mass / 75.0
    passive = {"damping": 1.0 * weight, "stiffness": 4.0 * weight, "armature": 0.002}
    upper = _segment(
        torso, f"{name}_upper_arm", waist, arm.shoulder, arm.elbow, masses["upper_arm"], sizes["upper_arm"]
    )
    for joint, axis in zip(ARM[:3], ((1, 0, 0), (0, 1, 0), (0, 0, 1)), strict=True):
        _add(upper, "joint", name=f"{name}_{joint}", type="hinge", axis=axis, **passive)
    fore = _segment(upper, f"{name}_forearm", arm.shoulder, arm.elbow, arm.wrist, masses["forearm"], sizes["forearm"])
    _add(fore, "joint", name=f"{name}_elbow", type="hinge", axis=arm.elbow_axis, **passive)
    last, origin = fore, arm.elbow
    if parameters.rider.hands:
        last = _segment(fore, f"{name}_hand", arm.elbow, arm.wrist, arm.grip, masses["hand"], sizes["hand"])
        _add(last, "joint", name=f"{name}_wrist", type="hinge", axis=arm.elbow_axis, armature=0.002)
        origin = arm.wrist
    _add(
        *(equality, "connect"),
        name=f"{name}_grip",
        body1=last.attrib["name"],
        body2="fork",
        anchor=arm.grip - origin,
        solref=(0.004, 1.0),
    )


def _leg(
    pelvis: ET.Element,
    saddle: Floats,
    parameters: BicyclistParameters,
    name: str,
    side: float,
    masses: dict[str, float],
    sizes: dict[str, float],
    equality: ET.Element,
    tendon: ET.Element,
    actuator: ET.Element,
) -> None:
    leg = posture.leg(parameters, side)
    weight = parameters.rider.mass / 75.0
    passive = {"type": "hinge", "axis": (0, 1, 0), "damping": 0.3 * weight, "armature": 0.005 * weight}
    thigh = _segment(pelvis, f"{name}_thigh", saddle, leg.hip, leg.knee, masses["thigh"], sizes["thigh"])
    _add(thigh, "joint", name=f"{name}_hip", **passive)
    shank = _segment(thigh, f"{name}_shank", leg.hip, leg.knee, leg.ankle, masses["shank"], sizes["shank"])
    # Knees bend one way only; without the limit they flip over at the top of the stroke.
    bend = (0.03 - leg.knee_flexion, 2.7 - leg.knee_flexion)
    _add(shank, "joint", name=f"{name}_knee", range_=bend, **passive)
    foot = _segment(shank, f"{name}_foot", leg.knee, leg.ankle, leg.pedal, masses["foot"], sizes["foot"])
    _add(foot, "joint", name=f"{name}_ankle", **passive)
    _add(
        *(equality, "connect"),
        name=f"{name}_pedal",
        body1=f"{name}_foot",
        body2="crank",
        anchor=leg.pedal - leg.ankle,
        solref=(0.004, 1.0),
    )
    # The pedal holds a point of the foot only; this keeps its pitch.
    pitch = _add(
        *(tendon, "fixed"),
        name=f"{name}_foot_pitch",
        stiffness=120.0 * weight,
        damping=3.0 * weight,
        springlength=(0.0, 0.0),
    )
    for joint in LEG:
        _add(pitch, "joint", joint=f"{name}_{joint}", coef=1.0)
        _add(actuator, "motor", name=f"{name}_{joint}", joint=f"{name}_{joint}")


def steer_synergy(parameters: BicyclistParameters) -> dict[str, float]:
    """Torques of shoulders and elbows that together turn the handlebar with 1 N·m, half from each hand: Jᵀ f."""
    bicycle = parameters.bicycle
    axis = steer_axis(bicycle.steer_tilt)
    pivot = np.array([bicycle.wheelbase + bicycle.trail, 0.0, 0.0])
    torques = {}
    for name, side in SIDES.items():
        arm = posture.arm(parameters, side)
        lever = arm.grip - pivot
        lever = lever - (lever @ axis) * axis
        force = 0.5 * np.cross(axis, lever) / (lever @ lever)
        shoulder_axes = (np.eye(3)[i] for i in range(3))
        for joint, about in zip(ARM[:3], shoulder_axes, strict=True):
            torques[f"{name}_{joint}"] = float(np.cross(about, arm.grip - arm.shoulder) @ force)
        torques[f"{name}_elbow"] = float(np.cross(arm.elbow_axis, arm.grip - arm.elbow) @ force)
    return torques
