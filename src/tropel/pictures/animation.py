"""A run as a short animated GIF."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError, suggest
from tropel.pictures import style
from tropel.pictures.backdrop import Key, draw_backdrop, set_stage
from tropel.pictures.crowd import Crowd, Projectionist
from tropel.pictures.gif import shared_palette, write_gif
from tropel.pictures.moments import Moment, Moments
from tropel.pictures.paths import sampled_frames
from tropel.pictures.saving import picture_file, picture_path
from tropel.recording import FrameData, Trajectory

if TYPE_CHECKING:
    from PIL.Image import Image

Progress = Callable[[int, int], None]

#: How long an animation lasts and how many frames it has, unless told otherwise.
_SECONDS = 10.0
_MOST_FRAMES = 120
#: The last frame stays longer, so that one sees how it ended [s].
_REST = 1.5
#: GIFs count time in hundredths of a second, and browsers slow down what is faster than two of them.
_SHORTEST, _LONGEST = 0.02, 0.5
_SPEED_LEVELS = 10
_HEADINGS = 24
COLOURS = ("group", "speed", "heading")


def animate_run(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    seconds: float | None = None,
    fps: float = 12.0,
    width: int = 800,
    colours: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Draw a run as an animated GIF of at most `width` pixels across.

    The whole run plays within `seconds` at `fps` frames a second; left out, in ten seconds or, if it was shorter, in
    real time. No recorded frame is shown twice, and none but the last for more than half a second.

    `colours` is what agents are coloured by: "group", "speed" or "heading" (in 3D as seen from above). Left out, it is
    what the scene says, or else the group, or the speed if there is only one group.

    `progress(current, total)` is called after each frame.
    """
    target = picture_path(path, ".gif")
    _check(seconds, fps, width)
    frames, delay = _choose_frames(trajectory, seconds, fps)
    film = _Film(trajectory, frames, width, delay, colours)
    samples = [film.draw(int(k)) for k in frames[np.unique(np.linspace(0, len(frames) - 1, 5).round().astype(int))]]
    palette = shared_palette(samples, [*film.key.colours, *style.map_colours()])
    durations = [round(100 * delay) * 10] * len(frames)
    durations[-1] += round(1000 * _REST)

    def drawn() -> Iterator[Image]:
        for number, k in enumerate(frames, start=1):
            yield film.draw(int(k))
            if progress is not None:
                progress(number, len(frames))

    return write_gif(target, drawn(), palette, durations)


def draw_moment(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    time: float,
    width: int = 1200,
    colours: str | None = None,
) -> Path:
    """Draw the recorded frame nearest to a time [s] as a PNG: everybody where it is, coloured as in `animate_run`."""
    target = picture_path(path, ".png")
    _check(None, 1.0, width)
    if not math.isfinite(time):
        raise ParameterError(f"time must be a number of seconds, not {time!r}")
    frames = sampled_frames(trajectory, len(trajectory.frames))
    nearest = int(np.argmin([abs(trajectory.time(int(k)) - time) for k in frames]))
    film = _Film(trajectory, frames[nearest : nearest + 1], width, colours=colours)
    with picture_file(target) as file:
        film.draw(int(frames[nearest])).save(file, format="PNG", optimize=True)
    return target


def _coloured_by(trajectory: Trajectory, colours: str | None) -> str:
    told = colours or trajectory.scene.extra.get("colours")
    if told is None:
        return "speed" if len(trajectory.scene.groups) < 2 else "group"
    if told not in COLOURS:
        near = suggest(told, COLOURS)
        raise ParameterError(f"agents are coloured by group, speed or heading, not by '{told}'; {near}")
    return str(told)


def _check(seconds: float | None, fps: float, width: int) -> None:
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise ParameterError(f"seconds must be a positive number, how long the animation plays, not {seconds!r}")
    if not (math.isfinite(fps) and 0 < fps <= 1 / _SHORTEST):
        raise ParameterError(f"fps must be above 0 and at most {1 / _SHORTEST:g} frames a second, not {fps!r}")
    if not 160 <= width <= 4000:
        raise ParameterError(f"width must be between 160 and 4000 pixels, not {width!r}")


def _choose_frames(trajectory: Trajectory, seconds: float | None, fps: float) -> tuple[NDArray[np.int64], float]:
    """Which recorded frames are shown, and for how long each [s]: a whole number of hundredths of a second."""
    every = sampled_frames(trajectory, len(trajectory.frames))
    simulated = trajectory.time(int(every[-1])) - trajectory.time(int(every[0]))
    if seconds is None:
        seconds = min(_SECONDS, simulated)
        fps = min(fps, _MOST_FRAMES / _SECONDS)
    frames = sampled_frames(trajectory, max(2, round(seconds * fps)))
    return frames, round(float(np.clip(seconds / len(frames), _SHORTEST, _LONGEST)), 2)


class _Film:
    """Draws any frame of a trajectory on the same stage."""

    def __init__(
        self,
        trajectory: Trajectory,
        frames: NDArray[np.int64],
        width: int,
        delay: float = _SHORTEST,
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
        level = _speeds(self._trajectory, k, data) / self.key.fastest * _SPEED_LEVELS
        return np.clip(level, 0, _SPEED_LEVELS - 1).astype(np.int64)

    def _speed_key(self, frames: NDArray[np.int64]) -> Key:
        looked_at = frames[np.unique(np.linspace(0, len(frames) - 1, 16).round().astype(int))]
        speeds = [_speeds(self._trajectory, int(k), self._trajectory.frame(int(k))) for k in looked_at]
        fast = float(np.quantile(np.concatenate([*speeds, [0.0]]), 0.98))
        # A round number, so that the key reads well.
        step = 10.0 ** np.floor(np.log10(max(fast, 0.1))) / 5
        colours = style.time_colours()(np.linspace(0.0, 1.0, _SPEED_LEVELS))
        return Key(
            colours=[style.hex_colour(c) for c in colours], fastest=round(float(np.ceil(fast / step) or 1) * step, 6)
        )


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


def _speeds(trajectory: Trajectory, k: int, data: FrameData) -> NDArray[np.float64]:
    """How fast everybody is in frame k [m/s]; where the file does not say it, from the way over the last second.

    From one frame to the next, people on cells stand or jump: that would be no speed of theirs.
    """
    if data.speed is not None:
        return data.speed
    speeds = np.zeros(len(data.id))
    index = int(np.searchsorted(trajectory.frames, k))
    a_second = max(1, math.ceil(trajectory.fps))
    # Who came since then is looked for in the frame before; of the first frame, those after it tell.
    for other in (index - a_second, index - 1) if index > 0 else (a_second, 1):
        other = int(trajectory.frames[min(max(other, 0), len(trajectory.frames) - 1)])
        before = trajectory.frame(other)
        row = np.searchsorted(before.id, data.id)
        known = np.flatnonzero(row < len(before.id))
        known = known[before.id[row[known]] == data.id[known]]
        known = known[speeds[known] == 0.0]
        apart = abs(trajectory.time(k) - trajectory.time(other))
        if apart > 0.0:
            speeds[known] = np.linalg.norm(data.position[known] - before.position[row[known]], axis=1) / apart
    return speeds
