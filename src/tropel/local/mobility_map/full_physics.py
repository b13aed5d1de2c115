"""Riders in a physics engine: the search is the same, and what they decide is done by hands and feet.

Riders have places in a batch of bodies (`riders/full.py`), found by id. One that comes enters in the full state of the
map nearest to its lean and rate of turn. What that changes is measured: `largest_jump`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Floats, Steered
from tropel.contracts import Moment
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.local.mobility_map.following import Ride
from tropel.riders.character import Character
from tropel.riders.maps import MobilityMap

#: Most riders that can enter after the beginning, as a share of those at the beginning, and at least so many.
_SPARE, _LEAST_SPARE = 0.25, 8
_NOBODY = -1


class FullPhysics:
    """The riders of one model that a physics engine moves."""

    def __init__(self, character: Character, found: MobilityMap, count: int) -> None:
        from tropel.riders.full import FullRiders

        places = count + max(_LEAST_SPARE, math.ceil(_SPARE * count))
        self._riders = FullRiders(character, places, map=found, threads=1)
        self._ids = np.full(places, _NOBODY, dtype=np.int64)
        self._heading = np.zeros(places)  #: what each wants to face [rad]
        self.largest_jump = np.zeros(2)  #: of lean [rad] and rate of turn [rad/s], when riders entered

    def enter(self, moment: Moment, rows: NDArray[np.int64], out: Steered, ride: Ride) -> NDArray[np.int64]:
        """Give these rows a place each; returns those for which there is none left."""
        state = moment.state
        gone = (self._ids != _NOBODY) & (state.row_of(self._ids) < 0)
        if gone.any():
            self._riders.remove(np.flatnonzero(gone))
            self._ids[gone] = _NOBODY
        new = rows[~np.isin(state.id[rows], self._ids)]
        new = new[np.argsort(state.id[new], kind="stable")]
        free = np.flatnonzero(self._ids == _NOBODY)[: len(new)]
        entering, left = new[: len(free)], new[len(free) :]
        if len(entering):
            facing = np.arctan2(out.heading[entering, 1], out.heading[entering, 0])
            jump = self._riders.place(
                free,
                state.position[entering],
                facing,
                ride.pose[entering, 1],
                ride.pose[entering, 0],
                speed=ride.pace[entering] * self._riders.character.speed,
            )
            self._ids[free], self._heading[free] = state.id[entering], facing
            jumps = [np.abs(jump.lean).max(), np.abs(jump.yaw_rate).max()]
            self.largest_jump = np.maximum(self.largest_jump, jumps)
        return left

    def decide(self, state: Any, rows: NDArray[np.int64], turn: Floats) -> None:
        """Note what these rows want to turn by, from where they face now."""
        places, known = self._places(state.id[rows])
        self._heading[places] = self._riders.poses.heading[places] + turn[rows[known]]

    def move(self, moment: Moment, rows: NDArray[np.int64], out: Steered, ride: Ride, speed: Floats) -> None:
        """Let a step pass, and write where it took these rows."""
        state = moment.state
        places, known = self._places(state.id[rows])
        rows = rows[known]
        before = self._riders.poses.position[places]
        wanted = np.zeros(len(self._ids))
        wanted[places] = speed[rows]
        poses = self._riders.tick(moment.dt, self._heading, wanted)
        out.velocity[rows] = (poses.position[places] - before) / moment.dt
        facing = poses.heading[places]
        out.heading[rows] = np.column_stack([np.cos(facing), np.sin(facing)])
        ride.pose[rows, 3] = (poses.lean[places] - ride.pose[rows, 1]) / moment.dt
        ride.pose[rows, 4] = (poses.steer[places] - ride.pose[rows, 2]) / moment.dt
        ride.pose[rows, 0], ride.pose[rows, 1] = poses.yaw_rate[places], poses.lean[places]
        ride.pose[rows, 2] = poses.steer[places]
        ride.lean[rows], ride.steer[rows], ride.turn_rate[rows] = (
            ride.pose[rows, 1],
            ride.pose[rows, 2],
            ride.pose[rows, 0],
        )
        ride.crank[rows] = poses.crank[places] % math.tau
        ride.pace[rows] = np.clip(poses.speed[places] / self._riders.character.speed, 0.0, 10.0)
        ride.fallen[rows] = np.maximum(ride.fallen[rows], poses.fallen[places])

    def leave(self, ids: NDArray[np.int64]) -> None:
        """Take riders out, who have fallen or were moved by something else."""
        places, _ = self._places(ids)
        if len(places):
            self._riders.remove(places)
            self._ids[places] = _NOBODY

    def _places(self, ids: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Places of those ids that have one, and which these are."""
        order = np.argsort(self._ids, kind="stable")
        at = np.minimum(np.searchsorted(self._ids, ids, sorter=order), len(order) - 1)
        places = order[at]
        known = self._ids[places] == ids
        return places[known], known

    def state(self) -> dict[str, NDArray[Any]]:
        kept = {f"full_{name}": np.asarray(value) for name, value in self._riders.state().items()}
        return kept | {"full_ids": self._ids, "full_heading": self._heading, "full_jump": self.largest_jump}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        count = len(self._ids)
        ids = taken(stored, "full_ids", dtype="int64", shape=(count,), low=_NOBODY)
        heading = taken(stored, "full_heading", dtype="float64", shape=(count,))
        jump = taken(stored, "full_jump", dtype="float64", shape=(2,), low=0.0)
        inside = {name.removeprefix("full_"): array for name, array in stored.items() if name.startswith("full_")}
        for name in ("ids", "heading", "jump"):
            inside.pop(name, None)
        if not inside:
            raise CheckpointError("the state of the riders in the physics engine is missing")
        self._riders.restore(inside)
        self._ids, self._heading, self.largest_jump = ids, heading, jump
