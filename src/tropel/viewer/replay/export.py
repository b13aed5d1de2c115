"""`tropel export RUN --html`: a run as one file that any browser plays, without Python and without a network.

viser records what it would send to a page, and puts the recording and its own client into one HTML file. One second of
playback is one second of the run. The size of such a file grows with agents times frames. So frames are thinned out if
there are too many, and positions are rounded to two millimetres and headings to a few degrees, which compresses well.

Below the world the file shows which run it is, what colours mean and what was left out. The recording itself holds only
the world, no panel. The legend is plain HTML next to it, without scripts: viser's client reads its first camera from
the address, so a link is enough for a view from above.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import math
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.pictures import style
from tropel.pictures.style import picture_file, picture_path
from tropel.recording import Scene, Trajectory
from tropel.viewer.camera import Pose, free_pose, plan_pose
from tropel.viewer.colours import GROUP
from tropel.viewer.frame import Frame
from tropel.viewer.replay.frames import RecordedFrames, RunDrawing
from tropel.viewer.server import HOST, import_viser, start_server, stop_server
from tropel.viewer.world_drawing import extent

#: Further groups are not listed.
_MOST_GROUPS = 12

#: A strip above the time bar of viser's client.
_STYLE = (
    "position:fixed;left:0;right:0;bottom:40px;z-index:10;padding:3px 12px;display:flex;flex-wrap:wrap;gap:0 1.6em;"
    "align-items:baseline;background:rgba(255,255,255,.85);color:#222;font:14px/1.5 system-ui,sans-serif;"
    "pointer-events:none"
)
#: The shape of the window is unknown when the file is written; most are at least this wide, relative to their height.
_ASPECT = 1.5
#: Margin around the world, for this strip and for the text above the world.
_MARGIN = 1.22
_LINK = "color:#1560a8;pointer-events:auto"


def first_view(scene: Scene) -> Pose:
    """The view of a file until a user turns it."""
    return _views(scene)["from above" if scene.dim == 2 else "in space"]


def _views(scene: Scene) -> dict[str, Pose]:
    return {
        "from above": plan_pose(scene, aspect=_ASPECT, margin=_MARGIN),
        "in space": free_pose(scene, aspect=_ASPECT, margin=_MARGIN),
    }


def with_legend(page: str, *, frames: RecordedFrames, shown: ExportedHtml, colour: str) -> str:
    """The page with a title and a legend."""
    trajectory = frames.trajectory
    title = html.escape(trajectory.scene.title or trajectory.path.stem)
    facts = [f"{frames.times[0]:.3g} to {frames.times[-1]:.4g} s of the run; times below start at its first frame"]
    if frames.times[0] == 0.0:
        facts = [f"{frames.times[-1]:.4g} s"]
    if trajectory.scene.seed is not None:
        facts.append(f"seed {trajectory.scene.seed}")
    if shown.shown < shown.recorded:
        facts.append(f"{shown.shown:,} of {shown.recorded:,} recorded frames")
    box = (
        f'<div id="legend" style="{_STYLE}"><b>{title}</b><span>{_key(frames, colour)}</span>'
        f'<span style="color:#555;font-size:12px">{html.escape(" · ".join(facts))} · '
        f"Space: play or pause · drag to turn · {_links(trajectory.scene)}</span></div>"
    )
    page = page.replace("<title>Viser</title>", f"<title>{title}</title>", 1)
    end = page.rindex("</body>")
    return page[:end] + box + page[end:]


def _links(scene: Scene) -> str:
    """Links to the same file, seen from elsewhere."""
    links = [
        f'<a style="{_LINK}" href="{html.escape(address_of(pose))}">{name}</a>' for name, pose in _views(scene).items()
    ]
    return f"view {' or '.join(links)}"


def address_of(pose: Pose) -> str:
    """A pose as the end of an address, in the form that viser's client reads."""
    vectors = {"Position": pose.position, "LookAt": pose.look_at, "Up": pose.up}
    numbers = {"Fov": pose.angle, "Near": pose.near, "Far": pose.far}
    parts = [f"initialCamera{name}={','.join(f'{part:.6g}' for part in vector)}" for name, vector in vectors.items()]
    return "?" + "&".join(parts + [f"initialCamera{name}={number:.6g}" for name, number in numbers.items()])


def _key(frames: RecordedFrames, colour: str) -> str:
    """A square per group, or the colours from low to high between two numbers."""
    scale = frames.scale(colour)
    if colour == GROUP or scale is None:
        names = frames.trajectory.scene.groups
        squares = [
            f'<span style="color:{shade}">■</span> {html.escape(name)}'
            for shade, name in zip(style.group_colours(len(names)), names, strict=True)
        ]
        more = [f"and {len(squares) - _MOST_GROUPS} more"] if len(squares) > _MOST_GROUPS else []
        return " &ensp; ".join(squares[:_MOST_GROUPS] + more)
    shades = [style.hex_colour(style.time_colours()(k / 11.0)) for k in range(12)]
    bar = "".join(f'<span style="color:{shade}">█</span>' for shade in shades)
    return f"{colour} {scale.low:.3g} {bar} {scale.high:.3g} {html.escape(scale.unit)}"


#: Agents times frames in a file by default: at four to seven bytes each, about 20 MB.
MOST_ROWS = 3_000_000
#: With more agents times frames than this no file is written: a browser would need half a gigabyte to open it.
LARGEST_ROWS = 20_000_000
_BYTES_PER_ROW = 7
#: Positions are rounded to this [m], a power of two, so that the floats have many zeros at their end.
_GRAIN = 1.0 / 512.0
#: Headings are rounded to about this many directions in a full turn.
_DIRECTIONS = 64

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class ExportedHtml:
    """A written file, and how much of the run is in it."""

    path: Path
    shown: int  #: frames in the file
    recorded: int  #: frames of the run
    fps: float  #: frames per second of the run in the file
    size: int  #: [bytes]

    thinned: bool = False  #: whether frames were left out to keep the file small, without the user asking for it

    def __str__(self) -> str:
        left_out = f"{self.shown:,} of {self.recorded:,} frames" if self.shown < self.recorded else "every frame"
        why = "; the others are left out to keep it small, use --fps for more" if self.thinned else ""
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

    With `fps`, the file has at most that many frames per second of the run; more than a browser can open are an error.
    By default it has as many as make a file of about 20 MB. Agents are coloured as in `open_replay`.
    `progress(current, total)` is called after each frame.
    """
    target = picture_path(path, ".html")
    if fps is not None and not (math.isfinite(fps) and fps > 0.0):
        raise ParameterError(f"fps must be above 0, the number of frames per second of the run, not {fps!r}")
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
    """Indices of the frames to show: every n-th one, and the last."""
    count = len(frames)
    some = np.unique(np.linspace(0, count - 1, 9).round().astype(np.int64))
    there = float(np.mean([len(frames.frame(int(index)).id) for index in some]))
    stride = math.ceil(count * there / MOST_ROWS) if fps is None else math.ceil(frames.trajectory.fps / fps - 1e-9)
    shown = np.unique(np.append(np.arange(0, count, max(1, stride)), count - 1))
    if fps is not None and len(shown) * there > LARGEST_ROWS:
        raise ParameterError(
            f"{len(shown):,} frames of {there:,.0f} agents would make a file of about "
            f"{len(shown) * there * _BYTES_PER_ROW / 1e6:,.0f} MB, which browsers cannot open: "
            "use a lower fps, or leave it out"
        )
    return shown


@contextlib.contextmanager
def _unseen_server() -> Iterator[Any]:
    """viser records only what a server draws; the address of this one is not published."""
    server = start_server(host=HOST, port=0)
    try:
        yield server
    finally:
        stop_server(server)


def _recorded(
    server: Any, frames: RecordedFrames, shown: Ints, colour: str, progress: Callable[[int, int], None] | None
) -> str:
    stage = RunDrawing(server, frames, pose=first_view(frames.trajectory.scene))
    # A file has no panel, so the text about a moment is next to the world.
    said = _add_note(server, frames.trajectory.scene)
    recording = None
    for number, index in enumerate(shown.tolist(), start=1):
        frame = frames.frame(index, colour=colour)
        stage.draw(index, _rounded(frame), colour=colour)
        said.text = " · ".join([f"{frame.time:.1f} s", *frames.counts(frame)])
        if recording is None:
            # What is there now is the beginning; everything later is recorded as it is drawn.
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
    """A text above the far right corner of the world, because browsers show their warnings on the left."""
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
