"""Mobility maps: what a character can do next, tried out beforehand and stored as trajectories.

After Brogan & Hodgins, "Simulation level of detail for multiagent control", AAMAS 2002. A map has S initial states and
A actions. For each pair it holds the trajectory that a trial gave: where the centre of mass went, where the character
faced, and how it leaned and steered, at times a fixed interval apart. Trials start at the origin and face +x, and an
action is the wanted change of heading [rad]. Trials end early if the character falls.

A map is one .npz file without pickle. Nothing that a file says is trusted: sizes are compared with the bytes present,
and every array is checked before it is used, because kernels check no indices.
"""

from __future__ import annotations

import json
import math
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError, ParameterError
from tropel.foundation.files import open_input, replacing
from tropel.foundation.stored_arrays import archive_fault, read_arrays, taken, write_archive

if TYPE_CHECKING:
    from scipy.interpolate import CubicSpline

Floats = NDArray[np.float64]

#: How each name of a reduced state is found in a trajectory: the column, and how often it is differentiated.
STATE_VARIABLES = {
    "roll": ("lean", 0),
    "roll_rate": ("lean", 1),
    "yaw_rate": ("heading", 1),
    "steer": ("steer", 0),
    "steer_rate": ("steer", 1),
}

LARGEST_MAP = 256 << 20  #: [bytes]
MOST_STATES, MOST_ACTIONS, MOST_TIMES = 100_000, 200, 2_000
_MOST_TEXT = 64 << 10
#: Nothing that moves by a map goes farther than this in one trial [m].
_FARTHEST = 1e5
_MARK = b"tropel mobility map 1 "
_ABOUT = "about.json"


@dataclass(frozen=True, eq=False, kw_only=True)
class MobilityMap:
    """The trajectories of a character from S states by A actions at T times."""

    character: str
    digest: str  #: of the character's parameters and controller, in hexadecimal
    speed: float  #: nominal [m/s]
    state_names: tuple[str, ...]  #: the K variables of the reduced state
    states: Floats  #: (S, K): where each fan begins
    actions: Floats  #: (A,), ascending: wanted change of heading [rad]
    times: Floats  #: (T,), from 0, a fixed interval apart [s]
    position: Floats  #: (S, A, T, 2): centre of mass, from the origin [m]
    heading: Floats  #: (S, A, T): from 0, without jumps of a full turn [rad]
    lean: Floats  #: (S, A, T): to the left [rad]
    steer: Floats  #: (S, A, T): to the left [rad]
    lasts: Floats  #: (S, A): time of the fall [s]; the last of `times` if there was none
    weights: Floats = field(default_factory=lambda: np.empty(0))  #: (K,) of the distance; by default 1/range²
    full_states: Floats | None = None  #: (S, F): what a physics engine needs to begin in each state
    provenance: Mapping[str, str | float] = field(default_factory=dict)  #: versions, seed, number of trials …

    def __post_init__(self) -> None:
        if not self.weights.size:
            object.__setattr__(self, "weights", range_weights(self.states))
        fault = self._fault()
        if fault:
            raise ParameterError(f"the mobility map of '{self.character}' cannot be used: {fault}")

    def _fault(self) -> str:
        """What is wrong with it; nothing if it can be used."""
        s, a, t = len(self.states), len(self.actions), len(self.times)
        if not (1 <= s <= MOST_STATES and 2 <= a <= MOST_ACTIONS and 2 <= t <= MOST_TIMES):
            return f"it has {s} states, {a} actions and {t} times"
        unknown = [name for name in self.state_names if name not in STATE_VARIABLES]
        if unknown or not self.state_names:
            return f"the state must consist of {', '.join(STATE_VARIABLES)}, not {list(self.state_names)}"
        shapes = {
            "states": (s, len(self.state_names)),
            "weights": (len(self.state_names),),
            "position": (s, a, t, 2),
            "heading": (s, a, t),
            "lean": (s, a, t),
            "steer": (s, a, t),
            "lasts": (s, a),
        }
        for name, shape in shapes.items():
            array = getattr(self, name)
            if array.shape != shape:
                return f"'{name}' has the shape {array.shape}, not {shape}"
        for name in (*shapes, "actions", "times"):
            array = getattr(self, name)
            if array.dtype != np.float64 or not np.isfinite(array).all() or np.abs(array).max() > _FARTHEST:
                return f"'{name}' must hold finite numbers (float64) of at most {_FARTHEST:g}"
        steps = np.diff(self.times)
        if self.times[0] != 0.0 or not np.allclose(steps, steps[0], rtol=1e-6, atol=0.0) or steps[0] <= 0.0:
            return "'times' must begin at 0 and go on in equal intervals"
        if not (np.diff(self.actions) > 0.0).all() or np.abs(self.actions).max() > math.pi:
            return "'actions' must ascend, within half a turn to either side"
        if (self.weights < 0.0).any() or not self.weights.any():
            return "'weights' must not be negative, and not all zero"
        if (self.lasts < 0.0).any() or (self.lasts > self.times[-1] * (1.0 + 1e-9)).any():
            return f"'lasts' must be from 0 to {self.times[-1]:g} s"
        if not 0.0 < self.speed <= 1e3:
            return f"its speed of {self.speed:g} m/s is not between 0 and 1000"
        if np.abs(self.position[:, :, 0]).max() > 1e-3 or np.abs(self.heading[:, :, 0]).max() > 1e-3:
            return "every trajectory must begin at the origin, with the heading 0"
        return ""

    @property
    def interval(self) -> float:
        """Between two times [s]."""
        return float(self.times[-1]) / (len(self.times) - 1)

    @property
    def duration(self) -> float:
        """Of a trial without a fall [s]."""
        return float(self.times[-1])

    @property
    def action_limit(self) -> float:
        """The largest turn to either side [rad]."""
        return float(np.abs(self.actions).max())

    @cached_property
    def variables(self) -> Floats:
        """The reduced state along each trajectory, (S, A, T, K); rates are those of the splines."""
        slopes = {name: self.spline(name)(self.times, 1) for name in ("lean", "heading", "steer")}
        found = []
        for name in self.state_names:
            column, times = STATE_VARIABLES[name]
            found.append(getattr(self, column) if times == 0 else np.moveaxis(slopes[column], 0, 2))
        return np.ascontiguousarray(np.stack(found, axis=-1))

    def spline(self, name: str) -> CubicSpline:
        """`position`, `heading`, `lean` or `steer` between the times, for all states and actions; time comes first."""
        from scipy.interpolate import CubicSpline

        return CubicSpline(self.times, np.moveaxis(getattr(self, name), 2, 0), axis=0)

    def nearest_state(self, state: Floats) -> int:
        """The initial state with the least weighted squared distance (their eq. 3); the first of equals."""
        return int(np.argmin((self.weights * (self.states - state) ** 2).sum(axis=1)))

    def sharpest_turn(self) -> float:
        """The largest curvature that lasts [1/m]: what a trial without a fall turned over its quickest second.

        The quickest second of each trajectory is measured, and the median over the states of the best of its actions,
        to the side on which less is possible. A path that bends more cannot be followed from most states.
        """
        knots = max(1, round(1.0 / self.interval))
        if knots >= len(self.times):
            knots = len(self.times) - 1
        turned = (self.heading[:, :, knots:] - self.heading[:, :, :-knots]) / (knots * self.interval)
        lasting = self.lasts >= self.duration * (1.0 - 1e-9)
        left = np.where(lasting, turned.max(axis=2), 0.0).max(axis=1)
        right = np.where(lasting, -turned.min(axis=2), 0.0).max(axis=1)
        return float(min(np.median(left), np.median(right))) / self.speed

    def save(self, path: Path | str) -> None:
        """Write it as one .npz file, in single precision, which is far finer than a trial."""
        about = {
            "character": self.character,
            "digest": self.digest,
            "speed": self.speed,
            "state_names": list(self.state_names),
            "provenance": dict(self.provenance),
        }
        arrays: dict[str, NDArray[Any]] = {
            "states": self.states,
            "weights": self.weights,
            "actions": self.actions,
            "times": self.times,
            "lasts": self.lasts,
        }
        arrays |= {name: getattr(self, name).astype(np.float32) for name in ("position", "heading", "lean", "steer")}
        if self.full_states is not None:
            arrays["full_states"] = self.full_states
        with replacing(Path(path)) as file:
            write_archive(file, arrays, mark=_MARK, texts={_ABOUT: json.dumps(about, indent=1).encode()})

    @classmethod
    def load(cls, path: Path | str, *, digest: str | None = None) -> MobilityMap:
        """Read a file; if a digest is given, a map that was built for another character is refused."""
        try:
            about, arrays = _read(Path(path))
            found = cls(**_checked_texts(about), **_checked_arrays(arrays))
        except (CheckpointError, ParameterError, OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise ParameterError(
                f"'{path}' is not a mobility map: {reason}; build it again with  tropel riders build"
            ) from None
        if digest is not None and found.digest != digest:
            raise ParameterError(
                f"'{path}' was built for another character: its digest is {found.digest[:12]}…, but that of "
                f"'{found.character}' as it is now is {digest[:12]}…; build it again with  "
                f"tropel riders build {found.character}"
            )
        return found


def range_weights(states: Floats) -> Floats:
    """1/range² of each variable (the squared form of their eq. 4); 0 for one that never changes."""
    spread = np.ptp(np.asarray(states, dtype=np.float64), axis=0)
    weights = np.where(spread > 0.0, 1.0 / np.maximum(spread, 1e-12) ** 2, 0.0)
    return weights if weights.any() else np.ones_like(weights)


def _read(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    with open_input(path, largest=LARGEST_MAP) as file:
        fault = archive_fault(file, mark=_MARK)
        if fault:
            raise ValueError(fault)
        size = file.seek(0, 2)
        file.seek(0)
        with zipfile.ZipFile(file) as archive:
            arrays = read_arrays(archive, size=size)
            if archive.getinfo(_ABOUT).file_size > _MOST_TEXT:
                raise ValueError("its description is too long")
            about = json.loads(archive.read(_ABOUT))
    if not isinstance(about, dict):
        raise ValueError("its description is not a table")
    return about, arrays


def _checked_texts(about: dict[str, Any]) -> dict[str, Any]:
    name, digest, speed = about["character"], about["digest"], about["speed"]
    if not (isinstance(name, str) and 0 < len(name) <= 100 and isinstance(digest, str) and 0 < len(digest) <= 128):
        raise ValueError("name and digest of the character must be texts")
    if isinstance(speed, bool) or not isinstance(speed, int | float):
        raise ValueError("its speed must be a number")
    names, provenance = about["state_names"], about.get("provenance", {})
    if not (isinstance(names, list) and 0 < len(names) <= 20 and all(isinstance(text, str) for text in names)):
        raise ValueError("'state_names' must be a list of names")
    if not (
        isinstance(provenance, dict) and all(isinstance(value, str | int | float) for value in provenance.values())
    ):
        raise ValueError("'provenance' must be a table of texts and numbers")
    return {
        "character": name,
        "digest": digest,
        "speed": float(speed),
        "state_names": tuple(names),
        "provenance": provenance,
    }


def _checked_arrays(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
    """Shapes and values agree with each other in `MobilityMap._fault`; here come types and numbers of dimensions."""
    found: dict[str, Any] = {
        "states": taken(arrays, "states", dtype="float64", shape=(None, None)),
        "weights": taken(arrays, "weights", dtype="float64", shape=(None,)),
        "actions": taken(arrays, "actions", dtype="float64", shape=(None,)),
        "times": taken(arrays, "times", dtype="float64", shape=(None,)),
        "lasts": taken(arrays, "lasts", dtype="float64", shape=(None, None)),
    }
    for name, shape in {
        "position": (None, None, None, 2),
        "heading": (None, None, None),
        "lean": (None, None, None),
        "steer": (None, None, None),
    }.items():
        found[name] = taken(arrays, name, dtype="float32", shape=shape).astype(np.float64)
    if "full_states" in arrays:
        found["full_states"] = taken(arrays, "full_states", dtype="float64", shape=(len(found["states"]), None))
    return found
