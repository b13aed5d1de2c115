"""A recorded run as frames, read one at a time, because runs may be far larger than the memory.

`RunDrawing` draws them on a viser server, for a page or for a file.
"""

from __future__ import annotations

import dataclasses
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, RecordingError, suggest
from tropel.pictures.frames import readable_top, speeds_in_frame
from tropel.pictures.hazards import HazardDisc
from tropel.pictures.recorded_world import RecordedWorld, WorldAt
from tropel.recording import FrameData, Trajectory
from tropel.recording.people import LEFT
from tropel.viewer import camera, colours
from tropel.viewer.agents_drawing import AgentsDrawing
from tropel.viewer.colours import DENSITY, GROUP, SPEED, TIME_TO_EXIT, Scale, density_around
from tropel.viewer.frame import Discs, Frame
from tropel.viewer.world_drawing import ThingsDrawing, draw_world, extent

Floats = NDArray[np.float64]

#: Number of frames, spread over the run, that determine the upper end of a colour scale.
_LOOKED_AT = 12


class RecordedFrames:
    """The frames of a trajectory by index, from 0. May be used by several threads."""

    def __init__(self, trajectory: Trajectory) -> None:
        if len(trajectory.frames) == 0:
            raise RecordingError(
                f"{trajectory.path} has no frames, so there is nothing to show: if it is still being written, "
                "wait for its first frames; otherwise run it again"
            )
        self.trajectory = trajectory
        self.times: Floats = trajectory.frames / trajectory.fps
        self._moments = RecordedWorld(trajectory)
        self._deaths = trajectory.deaths()
        self._people = trajectory.people()
        left = None if self._people is None else self._people.gone[self._people.fate == LEFT]
        self._left_at = None if left is None else np.sort(left)
        self._scales: dict[str, Scale | None] = {GROUP: None}
        self._reading = threading.Lock()

    def __len__(self) -> int:
        return len(self.times)

    @property
    def choices(self) -> list[str]:
        """The choices for colouring agents."""
        return [GROUP, SPEED, DENSITY, *([TIME_TO_EXIT] if self._left_at is not None and len(self._left_at) else [])]

    @property
    def knows_who_left(self) -> bool:
        return self._left_at is not None

    def counts(self, frame: Frame) -> list[str]:
        """The counts of a frame: how many agents are there, have left, have died."""
        said = [f"{frame.living:,} there"]
        said += [f"{frame.left:,} left"] if self.knows_who_left and frame.exits else []
        return said + ([f"{frame.died:,} died"] if frame.died else [])

    @property
    def has_end(self) -> bool:
        """Whether the run was closed; otherwise more of it may follow later."""
        return self._people is not None or self.trajectory.summary is not None

    def check_choice(self, choice: str) -> str:
        if choice not in self.choices:
            raise ParameterError(f"agents cannot be coloured by '{choice}' here; {suggest(choice, self.choices)}")
        return choice

    def index_at(self, time: float) -> int:
        """The last frame that is not after a time, or the first one."""
        # With a small tolerance: a time that was shown with few digits still means its own frame.
        return max(0, int(np.searchsorted(self.times, time + 1e-6, side="right")) - 1)

    def frame(self, index: int, *, colour: str = GROUP) -> Frame:
        """A frame to draw, with the numbers that its colours stand for."""
        k = int(self.trajectory.frames[index])
        with self._reading:
            data = self.trajectory.frame(k)
            moment = self._moments.at(k)
            moment = dataclasses.replace(moment, targets=moment.targets | moment.moving_targets)
            value = self._values(colour, k, data)
        return self._drawn(index, k, data, moment, value)

    def bodies(self, index: int) -> FrameData:
        """Only what is recorded about the agents in a frame."""
        with self._reading:
            return self.trajectory.frame(int(self.trajectory.frames[index]))

    def area_wkt(self, index: int) -> str:
        """The walkable area in a frame, ignoring doors; empty in open space."""
        with self._reading:
            return self._moments.area(int(self.trajectory.frames[index]))

    def scale(self, colour: str) -> Scale | None:
        """One scale for the whole run, from zero to a value that few agents exceed; None for groups."""
        if colour not in self._scales:
            some = np.unique(np.linspace(0, len(self) - 1, _LOOKED_AT).round().astype(np.int64))
            seen = [self.frame(int(index), colour=colour).value for index in some]
            values = np.concatenate([value for value in seen if value is not None] or [np.empty(0)])
            dim = self.trajectory.scene.dim
            unit = {SPEED: "m/s", DENSITY: "1/m²" if dim == 2 else "1/m³", TIME_TO_EXIT: "s"}[colour]
            self._scales[colour] = Scale(low=0.0, high=readable_top(values[np.isfinite(values)]), unit=unit)
        return self._scales[colour]

    def close(self) -> None:
        with self._reading:
            self.trajectory.close()

    def _values(self, colour: str, k: int, data: FrameData) -> Floats | None:
        self.check_choice(colour)
        if colour == SPEED:
            return speeds_in_frame(self.trajectory, k, data)
        if colour == DENSITY:
            return density_around(data.position)
        if colour == TIME_TO_EXIT:
            return self._time_until_gone(k, data)
        return None

    def _time_until_gone(self, k: int, data: FrameData) -> Floats:
        """The time until agents left in this run [s]; NaN for agents that never did."""
        people = self._people
        assert people is not None
        gone = np.full(len(data.id), np.nan)
        row = np.searchsorted(people.id, data.id)
        known = np.flatnonzero(row < len(people.id))
        known = known[people.id[row[known]] == data.id[known]]
        known = known[people.fate[row[known]] == LEFT]
        gone[known] = people.gone[row[known]]
        return np.maximum(gone - self.trajectory.time(k), 0.0)

    def _drawn(self, index: int, k: int, data: FrameData, moment: WorldAt, value: Floats | None) -> Frame:
        scene = self.trajectory.scene
        time = float(self.times[index])
        died = self._deaths["id"][self._deaths["frame"] <= k]
        left = 0 if self._left_at is None else int(np.searchsorted(self._left_at, time, side="right"))
        return Frame(
            step=round(time / scene.dt),
            time=time,
            id=data.id,
            position=data.position,
            heading=data.heading,
            radius=data.radius,
            group=np.clip(data.group, 0, max(len(scene.groups) - 1, 0)),
            dead=np.isin(data.id, died),
            value=value,
            doors=moment.doors,
            exits=moment.exits,
            obstacles=_discs(moment.obstacles, scene.dim),
            hazards=_hazard_discs(moment.hazards, scene.dim),
            targets=_target_discs(moment, scene.targets, scene.dim),
            left=left,
            died=len(died),
        )


def _places(places: list[Any], dim: int) -> Floats:
    return np.array(places, dtype=np.float64).reshape(-1, dim)


def _discs(things: dict[str, tuple[tuple[float, ...], float]], dim: int) -> Discs:
    return Discs(
        names=list(things),
        position=_places([place for place, _ in things.values()], dim),
        radius=np.array([radius for _, radius in things.values()], dtype=np.float64),
    )


def _hazard_discs(hazards: dict[str, HazardDisc], dim: int) -> Discs:
    return Discs(
        names=list(hazards),
        position=_places([hazard.centre for hazard in hazards.values()], dim),
        radius=np.array([hazard.inner for hazard in hazards.values()], dtype=np.float64),
        kinds=[hazard.kind for hazard in hazards.values()],
        outer=np.array([hazard.outer for hazard in hazards.values()], dtype=np.float64),
    )


def _target_discs(moment: WorldAt, declared: dict[str, dict[str, Any]], dim: int) -> Discs:
    radii = [float(declared.get(name, {}).get("radius", 0.0)) for name in moment.targets]
    return Discs(
        names=list(moment.targets),
        position=_places(list(moment.targets.values()), dim),
        radius=np.array(radii, dtype=np.float64),
    )


class RunDrawing:
    """Draws any frame of a recorded run."""

    def __init__(self, server: Any, frames: RecordedFrames, *, pose: camera.Pose | None = None) -> None:
        self._server = server
        self._frames = frames
        self.scene = frames.trajectory.scene
        self._area = self.scene.walkable_wkt
        camera.set_first(server, pose or camera.first_pose(self.scene))
        draw_world(server, self.scene)
        self._agents = AgentsDrawing(server, dim=self.scene.dim, extent=extent(self.scene))
        self._things = ThingsDrawing(server, self.scene)

    def draw(self, index: int, frame: Frame, *, colour: str) -> colours.Scale | None:
        """Draw a frame; returns what its colours stand for."""
        coloured, scale = colours.colours_of(
            frame, groups=max(1, len(self.scene.groups)), scale=self._frames.scale(colour)
        )
        area = self._frames.area_wkt(index)
        with self._server.atomic():
            if area != self._area:
                # In files of other programs walls may come and go.
                self._area = area
                draw_world(self._server, dataclasses.replace(self.scene, walkable_wkt=area))
            self._things.draw(frame)
            self._agents.draw(frame, coloured)
        return scale
