"""Riders with full physics inside a simulation: placed where a mobility map says they are, and moved tick by tick.

    riders = FullRiders(find_character("human"), 20)
    riders.place(rows, position, heading, lean, yaw_rate)
    poses = riders.tick(0.1, wanted_heading, wanted_speed)

A rider enters in the full state of the map that is nearest to the lean and yaw rate given. Riders who fall, or whose
physics blows up, stay where they were; the others go on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import CheckpointError, ParameterError
from tropel.riders.bicyclist.character import Bicyclist
from tropel.riders.bicyclist.ride import Ride
from tropel.riders.character import Character, Floats, map_of
from tropel.riders.maps import MobilityMap

Rows = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Poses:
    """How N riders are; those who are not there have zeros."""

    position: Floats  #: (N, 2): centre of mass on the ground [m]
    heading: Floats  #: (N,) [rad], without jumps of a full turn
    speed: Floats  #: (N,), forward [m/s]
    lean: Floats  #: (N,), to the left [rad]
    steer: Floats  #: (N,), to the left [rad]
    crank: Floats  #: (N,) [rad]
    yaw_rate: Floats  #: (N,), smoothed [rad/s]
    fallen: NDArray[np.bool_]  #: (N,)


@dataclass(frozen=True, kw_only=True)
class Jump:
    """How far the full state that a rider entered with is from what was asked for."""

    lean: Floats  #: [rad]
    yaw_rate: Floats  #: [rad/s]


class FullRiders:
    """Places for N riders of one character; `place` fills some of them and `remove` empties them."""

    def __init__(self, character: Character, count: int, *, map: MobilityMap | None = None, threads: int = 0) -> None:
        if not isinstance(character, Bicyclist):
            raise ParameterError(
                f"'{character.name}' has no full physics; only bicyclists have: use  physics = \"map\"  instead"
            )
        if not (isinstance(count, int | np.integer) and 1 <= count <= 100_000):
            raise ParameterError(f"FullRiders: the number of riders must be from 1 to 100000, not {count!r:.40}")
        self.character = character
        self._map = map_of(character) if map is None else map
        width = 2 * len(character.model.joints) + 1
        if self._map.full_states is None or self._map.full_states.shape[1] != width:
            raise ParameterError(
                f"the map of '{character.name}' has no full states, which riders with full physics start from; "
                f"build it again with  tropel riders build {character.name}"
            )
        self._ride = Ride(character.model, int(count), threads=threads)
        self._there = np.zeros(count, dtype=np.bool_)
        self._last = Poses(
            position=np.zeros((count, 2)),
            fallen=np.zeros(count, dtype=np.bool_),
            **{name: np.zeros(count) for name in ("heading", "speed", "lean", "steer", "crank", "yaw_rate")},
        )

    def __len__(self) -> int:
        return len(self._there)

    @property
    def poses(self) -> Poses:
        """Of the last tick."""
        return self._last

    def place(
        self,
        rows: ArrayLike,
        position: ArrayLike,
        heading: ArrayLike,
        lean: ArrayLike,
        yaw_rate: ArrayLike,
        *,
        speed: ArrayLike | None = None,
    ) -> Jump:
        """Put riders in these places, each in the full state of the map that is nearest; returns how near that is."""
        chosen = self._rows(rows)
        at = _finite("position", position, (len(chosen), 2))
        facing, leaning, turning = (
            _finite(name, values, (len(chosen),))
            for name, values in (("heading", heading), ("lean", lean), ("yaw_rate", yaw_rate))
        )
        pace = np.full(len(chosen), self.character.speed)
        if speed is not None:
            pace = _finite("speed", speed, (len(chosen),))
        wanted = np.column_stack((leaning, turning))
        nearest = [self._map.nearest_state(state) for state in wanted]
        assert self._map.full_states is not None
        full = self._map.full_states[nearest]
        joints = self.character.model.joints
        qpos, qvel = np.array(full[:, : len(joints)]), np.array(full[:, len(joints) : -1])
        # Everything that turns or rolls does so in proportion to the speed.
        qvel *= (pace / self.character.speed)[:, np.newaxis]
        along, across = qvel[:, joints["x"]].copy(), qvel[:, joints["y"]].copy()
        qvel[:, joints["x"]] = np.cos(facing) * along - np.sin(facing) * across
        qvel[:, joints["y"]] = np.sin(facing) * along + np.cos(facing) * across
        qpos[:, joints["yaw"]] = facing
        self._ride.place(chosen, qpos, qvel, full[:, -1])
        off = at - self._ride.see().position[chosen]
        qpos[:, [joints["x"], joints["y"]]] += off
        self._ride.place(chosen, qpos, qvel, full[:, -1])
        self._there[chosen] = True
        self._last = self._seen()
        return Jump(lean=self._map.states[nearest, 0] - leaning, yaw_rate=self._map.states[nearest, 1] - turning)

    def remove(self, rows: ArrayLike) -> None:
        """Empty places."""
        chosen = self._rows(rows)
        self._there[chosen] = False
        self._ride.fallen[chosen] = True  # is not stepped any more
        self._last = self._seen()

    def tick(self, dt: float, wanted_heading: ArrayLike, wanted_speed: ArrayLike) -> Poses:
        """Ride on for `dt` seconds, a multiple of the time step of the physics, towards headings and speeds (N,)."""
        steps = dt / self._ride.time_step
        if not (np.isfinite(steps) and steps >= 0.5 and abs(steps - round(steps)) < 1e-6):
            raise ParameterError(
                f"full physics has steps of {self._ride.time_step:g} s: a tick must be a multiple of it, not {dt:g} s"
            )
        shape = (len(self),)
        heading, speed = _finite("wanted_heading", wanted_heading, shape), _finite("wanted_speed", wanted_speed, shape)
        self._ride.advance(dt, heading, np.maximum(speed, 0.0))
        self._last = self._seen()
        return self._last

    def _seen(self) -> Poses:
        """What there is to see; riders who have fallen are held as they were, for blown-up physics has no position."""
        now, last = self._ride.see(), self._last
        down = now.fallen & self._there

        def settled(new: Floats, old: Floats) -> Floats:
            held = down if new.ndim == 1 else down[:, np.newaxis]
            there = self._there if new.ndim == 1 else self._there[:, np.newaxis]
            return np.where(there, np.where(held, old, new), 0.0)

        names = [field.name for field in dataclasses.fields(Poses) if field.name != "fallen"]
        columns = {name: settled(getattr(now, name), getattr(last, name)) for name in names}
        columns["speed"] = np.where(down, 0.0, columns["speed"])
        return Poses(fallen=down, **columns)

    def _rows(self, rows: ArrayLike) -> Rows:
        chosen = np.asarray(rows, dtype=np.int64).reshape(-1)
        if chosen.size and not (chosen.min() >= 0 and chosen.max() < len(self)):
            raise ParameterError(f"FullRiders: rows must be from 0 to {len(self) - 1}")
        if len(np.unique(chosen)) != len(chosen):
            raise ParameterError("FullRiders: a row is given twice")
        return chosen

    def state(self) -> dict[str, Any]:
        """All that decides what comes next, as arrays; MuJoCo's own state is among them."""
        kept = {f"ride_{name}": value for name, value in self._ride.state().items()}
        kept |= {f"last_{field.name}": np.array(getattr(self._last, field.name)) for field in dataclasses.fields(Poses)}
        return {**kept, "there": np.array(self._there)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state` returned, with the same bits."""
        for name, value in self.state().items():
            given = state.get(name)
            if not isinstance(given, np.ndarray) or given.shape != value.shape or given.dtype != value.dtype:
                raise CheckpointError(
                    f"the checkpoint does not fit riders with full physics of '{self.character.name}': '{name}' is "
                    "missing or of another size"
                )
        self._there[:] = state["there"]
        self._ride.restore({name.removeprefix("ride_"): state[name] for name in state if name.startswith("ride_")})
        self._last = Poses(**{field.name: np.array(state[f"last_{field.name}"]) for field in dataclasses.fields(Poses)})


def _finite(name: str, values: ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.broadcast_to(np.asarray(values, dtype=np.float64), shape)
    except ValueError:
        raise ParameterError(f"FullRiders: {name} must have the shape {shape}, not {np.shape(values)}") from None
    if not np.isfinite(array).all():
        raise ParameterError(f"FullRiders: {name} must be finite")
    return array
