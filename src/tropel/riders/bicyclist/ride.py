"""Many bicyclists with full physics at once, stepped by MuJoCo on several threads."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.riders.bicyclist.control import Controller
from tropel.riders.bicyclist.model import BicyclistModel
from tropel.riders.bicyclist.posture import Floats
from tropel.riders.engine import mujoco_package

#: A rider who leans or pitches farther has fallen [rad].
FALLEN_ROLL, FALLEN_PITCH = 1.0, 0.5
#: Faster than this is not riding any more: the physics has blown up [m/s or rad/s].
_BLOWN_UP = 1e4
#: Fewer riders are not worth a thread.
_RIDERS_PER_THREAD = 8
#: Falls are looked for every so many steps.
_LOOK_EVERY = 5
#: The yaw rate that is told is smoothed over this time, as pedalling makes it ripple [s].
YAW_RATE_SMOOTHING = 0.1


@dataclass(frozen=True)
class Seen:
    """What can be seen of N riders."""

    position: Floats  #: (N, 2): centre of mass on the ground [m]
    contact: Floats  #: (N, 2): where the rear wheel touches the ground [m]
    heading: Floats  #: (N,) [rad]
    lean: Floats  #: (N,) [rad]
    steer: Floats  #: (N,) [rad]
    crank: Floats  #: (N,) [rad]
    speed: Floats  #: (N,) [m/s]
    yaw_rate: Floats  #: (N,), smoothed [rad/s]
    fallen: NDArray[np.bool_]  #: (N,)


class Ride:
    """N riders of one model. A rider who has fallen is not moved any more."""

    def __init__(self, model: BicyclistModel, count: int, *, threads: int = 0) -> None:
        mujoco = mujoco_package()
        self.model = model
        self._mujoco = mujoco
        self._error = mujoco.batch.SimulationError
        self._stage = int(mujoco.mjtStage.mjSTAGE_POS)
        # Waking a thread takes about as long as a few riders' steps.
        threads = threads or max(1, min(os.cpu_count() or 1, count // _RIDERS_PER_THREAD))
        self._batch: Any = mujoco.batch.Batch(model.compiled, nsim=count, nthread=threads)
        self.qpos: Floats = self._batch.bind("qpos")
        self.qvel: Floats = self._batch.bind("qvel")
        self._ctrl: Floats = self._batch.bind("ctrl")
        self._warm: Floats = self._batch.bind("qacc_warmstart")
        self._com: Floats = self._batch.bind("subtree_com")
        self._frame = int(model.compiled.body("frame").id)
        self._controller = Controller(model)
        self.yaw_rate = np.zeros(count)
        self.fallen = np.ones(count, dtype=np.bool_)  # nobody rides before being placed
        self.fell_after = np.full(count, np.inf)  #: since they were placed [s]
        self._since = np.zeros(count)
        self._columns = [model.joints[name] for name in ("yaw", "roll", "pitch", "steer", "crank", "x", "y")]

    def __len__(self) -> int:
        return len(self.fallen)

    @property
    def time_step(self) -> float:
        return float(self.model.compiled.opt.timestep)

    def place(self, rows: NDArray[np.int64], qpos: Floats, qvel: Floats, yaw_rate: Floats) -> None:
        """Begin anew in these states."""
        self.qpos[rows], self.qvel[rows], self.yaw_rate[rows] = qpos, qvel, yaw_rate
        self._ctrl[rows] = 0.0
        self._warm[rows] = 0.0
        self._since[rows] = 0.0
        self.fell_after[rows] = np.inf
        self.fallen[rows] = False
        self._find_falls(rows)
        if rows.size:
            self._call(self._batch.forward, np.sort(rows), stage=self._stage)

    def advance(self, seconds: float, wanted_heading: Floats, wanted_speed: Floats) -> None:
        """Ride on for some time."""
        steps = max(1, round(seconds / self.time_step))
        rows = np.flatnonzero(~self.fallen)
        if not rows.size:
            return
        some: Any = slice(None) if len(rows) == len(self) else rows
        gains = self._gains(rows)
        keep = np.exp(-self.time_step / YAW_RATE_SMOOTHING)
        yaw = self._columns[0]
        for step in range(1, steps + 1):
            ctrl = self._ctrl[some]
            self._controller.write(
                ctrl, self.qpos[some], self.qvel[some], gains, wanted_heading[some], wanted_speed[some]
            )
            self._ctrl[some] = ctrl
            self._call(self._batch.step, rows, stage=self._stage if step == steps else 0)
            rate = self.qvel[some, yaw]
            self.yaw_rate[some] = rate + keep * (self.yaw_rate[some] - rate)
            if step % _LOOK_EVERY and step < steps:
                continue
            self._since[some] += self.time_step * ((step - 1) % _LOOK_EVERY + 1)
            self._find_falls(rows)
            if self.fallen[rows].any():
                standing = ~self.fallen[rows]
                rows, gains = rows[standing], gains[standing]
                some = rows
            if not rows.size:
                return

    def _gains(self, rows: NDArray[np.int64]) -> Floats:
        return self._controller.gains_at(self._controller.forward_speed(self.qpos[rows], self.qvel[rows]))

    def _call(self, method: Any, rows: NDArray[np.int64], *, stage: int) -> None:
        """Call MuJoCo; those whose physics it gives up on count as fallen, the others go on."""
        before = self._mujoco.get_mju_user_warning()
        # Otherwise MuJoCo prints a warning for each, and writes a file into the working directory.
        self._mujoco.set_mju_user_warning(_ignore)
        try:
            method(ids=rows, stage=stage)
        except self._error as error:
            self._fall(np.asarray(error.ids, dtype=np.int64))
        finally:
            self._mujoco.set_mju_user_warning(before)

    def _find_falls(self, rows: NDArray[np.int64]) -> None:
        _, roll, pitch = self._columns[:3]
        # Written so that nan counts as wrong.
        fine = (np.abs(self.qpos[rows, roll]) <= FALLEN_ROLL) & (np.abs(self.qpos[rows, pitch]) <= FALLEN_PITCH)
        fine &= np.abs(self.qvel[rows]).max(axis=1) <= _BLOWN_UP
        self._fall(rows[~fine & ~self.fallen[rows]])

    def _fall(self, rows: NDArray[np.int64]) -> None:
        self.fallen[rows] = True
        self.fell_after[rows] = self._since[rows]

    def see(self) -> Seen:
        """Where everybody is."""
        yaw, roll, _, steer, crank, x, y = self._columns
        return Seen(
            position=np.array(self._com[:, self._frame, :2]),
            contact=self.qpos[:, [x, y]],
            heading=np.array(self.qpos[:, yaw]),
            lean=np.array(self.qpos[:, roll]),
            steer=np.array(self.qpos[:, steer]),
            crank=np.array(self.qpos[:, crank]),
            speed=self._controller.forward_speed(self.qpos, self.qvel),
            yaw_rate=np.array(self.yaw_rate),
            fallen=np.array(self.fallen),
        )

    def state(self) -> dict[str, Any]:
        """All that decides what comes next."""
        return {
            "qpos": np.array(self.qpos),
            "qvel": np.array(self.qvel),
            "warm": np.array(self._warm),
            "yaw_rate": np.array(self.yaw_rate),
            "fallen": np.array(self.fallen),
            "since": np.array(self._since),
            "fell_after": np.array(self.fell_after),
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.qpos[:], self.qvel[:], self._warm[:] = state["qpos"], state["qvel"], state["warm"]
        self.yaw_rate[:], self.fallen[:] = state["yaw_rate"], state["fallen"]
        self._since[:], self.fell_after[:] = state["since"], state["fell_after"]
        if len(self):
            self._call(self._batch.forward, np.flatnonzero(~self.fallen), stage=self._stage)


def _ignore(message: str) -> None:
    """What MuJoCo warns of is found by looking at the riders."""
