"""`tropel export RUN --html`: a run as one file that any browser plays, without Python and without a network.

viser records what it would send to a page, and puts the recording and its own client into one HTML file. Seconds of
playing are seconds of the run. What makes such a file large is agents times frames, so frames are thinned out where
there are too many, places are rounded to two millimetres and headings to a few degrees, which then compress well.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.arguments import checked_arguments
from tropel.errors import ParameterError
from tropel.pictures.saving import picture_file, picture_path
from tropel.recording import Scene, Trajectory
from tropel.viewer.colours import GROUP
from tropel.viewer.extra import import_viser
from tropel.viewer.frame import Frame
from tropel.viewer.html_legend import first_view, with_legend
from tropel.viewer.recorded_frames import RecordedFrames
from tropel.viewer.server import HOST, start_server, stop_server
from tropel.viewer.stage import Stage
from tropel.viewer.world_drawing import extent

#: Agents times frames in a file, unless told otherwise: at four to seven bytes each, about 20 MB.
MOST_ROWS = 3_000_000
#: Agents times frames beyond which there is no file at all: a browser would need half a gigabyte to open it.
LARGEST_ROWS = 20_000_000
_BYTES_PER_ROW = 7
#: Places are rounded to this [m], a power of two: what is left of a float has many zeros at its end.
_GRAIN = 1.0 / 512.0
#: Headings are rounded so that a full turn has about so many.
_DIRECTIONS = 64

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ExportedHtml:
    """A file that was written, and what of the run is in it."""

    path: Path
    shown: int  #: frames in the file
    recorded: int  #: frames of the run
    fps: float  #: frames per second of the run in the file
    size: int  #: [bytes]

    thinned: bool = False  #: whether frames were left out to keep the file small, without being asked to

    def __str__(self) -> str:
        left_out = f"{self.shown:,} of {self.recorded:,} frames" if self.shown < self.recorded else "every frame"
        why = "; the others are left out to keep it small, more with --fps" if self.thinned else ""
        return f"{self.path} ({self.size / 1e6:.1f} MB, {left_out}, {self.fps:.3g} a second{why})"


@checked_arguments
def export_html(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    fps: float | None = None,
    colour: str = GROUP,
    progress: Callable[[int, int], None] | None = None,
) -> ExportedHtml:
    """Write a run as one HTML file that plays by itself.

    With `fps`, there are at most so many frames per second of the run, and more than a browser can open are an error;
    left out, as many as make a file of about 20 MB. Agents are coloured as in `open_replay`. `progress(current, total)`
    is called after each frame.
    """
    target = picture_path(path, ".html")
    if fps is not None and not (math.isfinite(fps) and fps > 0.0):
        raise ParameterError(f"fps must be above 0, how many frames there are per second of the run, not {fps!r}")
    import_viser()
    frames = RecordedFrames(trajectory)
    frames.check_choice(colour)
    shown = chosen_frames(frames, fps)
    with _unseen_server() as server:
        text = _recorded(server, frames, shown, colour, progress)
    seconds = float(frames.times[shown[-1]] - frames.times[shown[0]])
    exported = ExportedHtml(
        path=target,
        shown=len(shown),
        recorded=len(frames),
        fps=(len(shown) - 1) / seconds if seconds > 0.0 else trajectory.fps,
        size=0,
        thinned=fps is None and len(shown) < len(frames),
    )
    data = with_legend(text, frames=frames, shown=exported, colour=colour).encode()
    with picture_file(target) as file:
        file.write(data)
    return dataclasses.replace(exported, size=len(data))


def chosen_frames(frames: RecordedFrames, fps: float | None) -> Ints:
    """Indices of the frames that are shown: every so many, and the last."""
    count = len(frames)
    some = np.unique(np.linspace(0, count - 1, 9).round().astype(np.int64))
    there = float(np.mean([len(frames.frame(int(index)).id) for index in some]))
    stride = math.ceil(count * there / MOST_ROWS) if fps is None else math.ceil(frames.trajectory.fps / fps - 1e-9)
    shown = np.unique(np.append(np.arange(0, count, max(1, stride)), count - 1))
    if fps is not None and len(shown) * there > LARGEST_ROWS:
        raise ParameterError(
            f"{len(shown):,} frames of {there:,.0f} agents would be a file of about "
            f"{len(shown) * there * _BYTES_PER_ROW / 1e6:,.0f} MB, which browsers do not open: "
            "use a lower fps, or leave it out"
        )
    return shown


@contextlib.contextmanager
def _unseen_server() -> Iterator[Any]:
    """viser records only what a server draws; nobody is told of this one."""
    server = start_server(host=HOST, port=0)
    try:
        yield server
    finally:
        stop_server(server)


def _recorded(
    server: Any, frames: RecordedFrames, shown: Ints, colour: str, progress: Callable[[int, int], None] | None
) -> str:
    stage = Stage(server, frames, pose=first_view(frames.trajectory.scene))
    # There is no panel in a file: what is to be said of a moment stands beside the world.
    said = _add_note(server, frames.trajectory.scene)
    recording = None
    for number, index in enumerate(shown.tolist(), start=1):
        frame = frames.frame(index, colour=colour)
        stage.draw(index, _rounded(frame), colour=colour)
        said.text = " · ".join([f"{frame.time:.1f} s", *frames.counts(frame)])
        if recording is None:
            # What is there now is the beginning; what comes later is recorded as it is drawn.
            recording = server.get_scene_serializer()
        following = shown[min(number, len(shown) - 1)]
        wait = float(frames.times[following] - frames.times[index])
        recording.insert_sleep(wait if wait > 0.0 else 1.0 / frames.trajectory.fps if len(shown) > 1 else 0.0)
        if progress is not None:
            progress(number, len(shown))
    assert recording is not None
    text: str = recording.as_html()
    return text


def _add_note(server: Any, scene: Scene) -> Any:
    """A text above the far right corner of the world: browsers show their warnings on the left."""
    _, high = scene.bounds
    place = (high[0], high[1] + 0.02 * extent(scene), high[2] if scene.dim == 3 else 0.0)
    return server.scene.add_label(
        "/moment", "", position=place, anchor="bottom-right" if scene.dim == 2 else "bottom-center"
    )


def _rounded(frame: Frame) -> Frame:
    position = np.round(frame.position / _GRAIN) * _GRAIN
    if frame.heading.shape[1] == 2:
        turn = 2.0 * np.pi / _DIRECTIONS
        angle = np.round(np.arctan2(frame.heading[:, 1], frame.heading[:, 0]) / turn) * turn
        heading = np.column_stack([np.cos(angle), np.sin(angle)])
    else:
        coarse = np.round(frame.heading * (_DIRECTIONS / 4.0))
        length = np.linalg.norm(coarse, axis=1, keepdims=True)
        heading = np.divide(coarse, length, out=frame.heading.copy(), where=length > 0.0)
    return dataclasses.replace(frame, position=position, heading=heading)
