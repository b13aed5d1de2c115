"""The frames of a run as pictures, all on the same stage: what GIFs and movies are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, suggest
from tropel.pictures import style
from tropel.pictures.backdrop import Key, draw_backdrop, set_stage
from tropel.pictures.crowd import Crowd, Projectionist
from tropel.pictures.moments import Moment, Moments
from tropel.pictures.recorded_speeds import readable_top, speeds_in_frame
from tropel.recording import FrameData, Trajectory

if TYPE_CHECKING:
    from PIL.Image import Image

_SPEED_LEVELS = 10
_HEADINGS = 24
COLOURS = ("group", "speed", "heading")


class Film:
    """Draws any frame of a trajectory on the same stage."""

    def __init__(
        self,
        trajectory: Trajectory,
        frames: NDArray[np.int64],
        width: int,
        delay: float,
        colours: str | None = None,
    ) -> None:
        self._trajectory = trajectory
        self._moments = Moments(trajectory)
        self._deaths = trajectory.deaths()
        self._stage = set_stage(_bounds(trajectory, frames), trajectory.scene, width)
        self._by = by = _coloured_by(trajectory, colours)
        if by == "heading":
            self.key = Key(colours=style.heading_colours(_HEADINGS), headings=True)
        else:
            self.key = self._speed_key(frames) if by == "speed" else _group_key(trajectory)
        self._facts = _facts(trajectory, frames, delay)
        self._projectionists: dict[object, Projectionist] = {}

    def draw(self, k: int) -> Image:
        moment = self._moments.at(k)
        data = self._trajectory.frame(k)
        if moment.fixtures not in self._projectionists:
            self._projectionists[moment.fixtures] = self._projectionist(moment)
        dead = np.isin(data.id, self._deaths["id"][self._deaths["frame"] <= k])
        lying = int(dead.sum())
        return self._projectionists[moment.fixtures].draw(
            Crowd(
                data=data,
                colour=self._colour(k, data),
                obstacles=list(moment.obstacles.values()),
                hazards=list(moment.hazards.values()),
                targets=list(moment.moving_targets.values()),
                dead=dead if lying else None,
            ),
            time=f"{self._trajectory.time(k):.1f} s",
            count=f"{len(data.id) - lying:,} there" + (f", {lying:,} dead" if lying else ""),
        )

    def _projectionist(self, moment: Moment) -> Projectionist:
        scene = self._trajectory.scene
        title = scene.title or self._trajectory.path.stem
        backdrop = draw_backdrop(self._stage, scene, moment, title=title, facts=self._facts, key=self.key)
        return Projectionist(backdrop, self._stage, self.key.colours)

    def _colour(self, k: int, data: FrameData) -> NDArray[np.int64]:
        if self._by == "heading":
            turn = np.arctan2(data.heading[:, 1], data.heading[:, 0]) / (2.0 * np.pi)
            return np.floor(_HEADINGS * (turn % 1.0)).astype(np.int64) % _HEADINGS
        if self._by == "group":
            return np.clip(data.group, 0, len(self.key.colours) - 1).astype(np.int64)
        level = speeds_in_frame(self._trajectory, k, data) / self.key.fastest * _SPEED_LEVELS
        return np.clip(level, 0, _SPEED_LEVELS - 1).astype(np.int64)

    def _speed_key(self, frames: NDArray[np.int64]) -> Key:
        looked_at = frames[np.unique(np.linspace(0, len(frames) - 1, 16).round().astype(int))]
        speeds = [speeds_in_frame(self._trajectory, int(k), self._trajectory.frame(int(k))) for k in looked_at]
        fastest = readable_top(np.concatenate([*speeds, [0.0]]))
        colours = style.time_colours()(np.linspace(0.0, 1.0, _SPEED_LEVELS))
        return Key(colours=[style.hex_colour(c) for c in colours], fastest=fastest)


def _coloured_by(trajectory: Trajectory, colours: str | None) -> str:
    told = colours or trajectory.scene.extra.get("colours")
    if told is None:
        return "speed" if len(trajectory.scene.groups) < 2 else "group"
    if told not in COLOURS:
        near = suggest(told, COLOURS)
        raise ParameterError(f"agents are coloured by group, speed or heading, not by '{told}'; {near}")
    return str(told)


def _group_key(trajectory: Trajectory) -> Key:
    names = trajectory.scene.groups
    return Key(colours=style.group_colours(len(names)), names=names)


def _facts(trajectory: Trajectory, frames: NDArray[np.int64], delay: float) -> list[str]:
    agents = int((trajectory.summary or {}).get("agents", 0)) or len(trajectory.ids())
    facts = [f"{agents:,} agent{'s' * (agents != 1)}"]
    if trajectory.scene.seed is not None:
        facts.append(f"seed {trajectory.scene.seed}")
    if len(frames) > 1:
        pace = (trajectory.time(int(frames[-1])) - trajectory.time(int(frames[0]))) / ((len(frames) - 1) * delay)
        facts.append(f"{pace:.2g} × real time" if abs(pace - 1) > 0.07 else "real time")
    return facts


def _bounds(trajectory: Trajectory, frames: NDArray[np.int64]) -> NDArray[np.float64]:
    """The box to be seen. Nobody leaves a walkable area; in open space they may go anywhere."""
    bounds = np.asarray(trajectory.scene.bounds, dtype=np.float64)
    if trajectory.scene.walkable_wkt:
        return bounds
    for k in frames:
        corners = np.vstack([bounds, trajectory.frame(int(k)).position.reshape(-1, bounds.shape[1])])
        bounds = np.array([corners.min(axis=0), corners.max(axis=0)])
    return bounds
