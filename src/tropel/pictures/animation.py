"""A run as an animation, GIF or MP4, or one moment of it as a PNG.

A GIF has one palette for all frames, so that nothing flickers. An MP4 is written by ffmpeg through imageio.
"""

from __future__ import annotations

import contextlib
import importlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import MissingExtraError, ParameterError, RecordingError
from tropel.foundation.arguments import Seconds, checked_arguments
from tropel.foundation.files import temporary_name
from tropel.pictures import style
from tropel.pictures.frames import RunFrames
from tropel.pictures.paths import sampled_frames
from tropel.pictures.style import picture_file, picture_path
from tropel.recording import Trajectory

if TYPE_CHECKING:
    from PIL.Image import Image


Colour = tuple[int, int, int]

#: A GIF has 256 colours; one of them stands for "as in the previous frame".
_MOST_COLOURS = 255


def shared_palette(samples: Sequence[Image], exact: Iterable[str]) -> list[Colour]:
    """A palette for frames like the samples; it contains the `exact` colours unchanged."""
    from PIL import Image, ImageColor

    kept = [_rgb(ImageColor.getrgb(colour)) for colour in exact]
    sheet = Image.new("RGB", (max(s.width for s in samples), sum(s.height for s in samples)))
    down = 0
    for sample in samples:
        sheet.paste(sample, (0, down))
        down += sample.height
    room = _MOST_COLOURS - len(kept)
    found = sheet.quantize(room, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).getpalette() or []
    mixed = [_rgb(found[k : k + 3]) for k in range(0, 3 * room, 3) if k + 3 <= len(found)]
    return list(dict.fromkeys([*kept, *mixed]))


def write_gif(path: Path, frames: Iterable[Image], palette: Sequence[Colour], durations: Sequence[int]) -> Path:
    """Write frames (RGB), each shown for its duration in milliseconds, in an endless loop."""
    from PIL import Image

    colours = Image.new("P", (1, 1))
    colours.putpalette(_bytes(palette))

    def reduced() -> Iterator[Image.Image]:
        for frame in frames:
            yield frame.quantize(palette=colours, dither=Image.Dither.NONE)

    every = reduced()
    with picture_file(path) as file:
        # Unchanged pixels become transparent, which takes a third of the space where a crowd stands still.
        # The whole file has one palette: with one per frame, players may show the same colour differently.
        next(every).save(
            file,
            format="GIF",
            save_all=True,
            append_images=every,
            duration=list(durations),
            loop=0,
            disposal=1,
            optimize=True,
            palette=_bytes([*palette, _unused(palette)]),
            transparency=len(palette),
        )
    return path


def _unused(palette: Sequence[Colour]) -> Colour:
    """A colour that is not in the palette, for the entry that is never shown."""
    taken = set(palette)
    return next((0, 0, blue) for blue in range(256) if (0, 0, blue) not in taken)


def _bytes(colours: Iterable[Colour]) -> bytes:
    return bytes(part for colour in colours for part in colour)


def _rgb(parts: Sequence[int]) -> Colour:
    return (parts[0], parts[1], parts[2])


Progress = Callable[[int, int], None]

#: Default duration of an animation [s], and its largest number of frames.
_SECONDS = 10.0
_MOST_FRAMES = 120
#: The last frame stays longer, to show how the run ended [s].
_REST = 1.5
#: GIFs count time in hundredths of a second, and browsers slow down anything faster than two of them.
_SHORTEST, _LONGEST = 0.02, 0.5


@checked_arguments
def animate_run(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    seconds: Seconds | None = None,
    fps: float = 12.0,
    width: int = 800,
    colours: str | None = None,
    progress: Progress | None = None,
) -> Path:
    """Draw a run as an animated GIF of at most `width` pixels across.

    The whole run plays within `seconds` at `fps` frames a second. By default it plays in ten seconds, or in real time
    if it was shorter. No recorded frame is shown twice, and none but the last for more than half a second.

    `colours` selects what agents are coloured by: "group", "speed" or "heading" (in 3D as seen from above). By default
    it is what the scene specifies, otherwise the group, or the speed if there is only one group.

    `progress(current, total)` is called after each frame.
    """
    target = picture_path(path, ".gif")
    _check(seconds, fps, width)
    frames, delay = _choose_frames(trajectory, seconds, fps)
    film = RunFrames(trajectory, frames, width, delay, colours)
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


@checked_arguments
def draw_moment(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    time: float,
    width: int = 1200,
    colours: str | None = None,
) -> Path:
    """Draw the recorded frame nearest to a time [s] as a PNG: all agents, coloured as in `animate_run`."""
    target = picture_path(path, ".png")
    _check(None, 1.0, width)
    if not math.isfinite(time):
        raise ParameterError(f"time must be a number of seconds, not {time!r}")
    frames = sampled_frames(trajectory, len(trajectory.frames))
    nearest = int(np.argmin([abs(trajectory.time(int(k)) - time) for k in frames]))
    film = RunFrames(trajectory, frames[nearest : nearest + 1], width, _SHORTEST, colours)
    with picture_file(target) as file:
        film.draw(int(frames[nearest])).save(file, format="PNG", optimize=True)
    return target


def _check(seconds: float | None, fps: float, width: int, *, most_fps: float = 1 / _SHORTEST) -> None:
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise ParameterError(f"seconds must be a positive number, the duration of the animation, not {seconds!r}")
    if not (math.isfinite(fps) and 0 < fps <= most_fps):
        raise ParameterError(f"fps must be above 0 and at most {most_fps:g} frames a second, not {fps!r}")
    if not 160 <= width <= 4000:
        raise ParameterError(f"width must be between 160 and 4000 pixels, not {width!r}")


def _choose_frames(trajectory: Trajectory, seconds: float | None, fps: float) -> tuple[NDArray[np.int64], float]:
    """The recorded frames to show, and how long to show each [s]: a whole number of hundredths of a second."""
    every = sampled_frames(trajectory, len(trajectory.frames))
    simulated = trajectory.time(int(every[-1])) - trajectory.time(int(every[0]))
    if seconds is None:
        seconds = min(_SECONDS, simulated)
        fps = min(fps, _MOST_FRAMES / _SECONDS)
    frames = sampled_frames(trajectory, max(2, round(seconds * fps)))
    return frames, round(float(np.clip(seconds / len(frames), _SHORTEST, _LONGEST)), 2)


#: By default, longer runs are played faster [s].
_LONGEST_MP4 = 60.0
_MOST_FPS = 60.0


@checked_arguments
def film_run(
    trajectory: Trajectory,
    path: str | os.PathLike[str],
    *,
    seconds: Seconds | None = None,
    fps: float = 25.0,
    width: int = 1280,
    progress: Callable[[int, int], None] | None = None,
) -> Path:
    """Draw a run as an MP4 movie of at most `width` pixels across; needs the extra `view`.

    The whole run plays within `seconds`. By default it plays in real time, or in a minute if it was longer. At most
    `fps` frames are shown per second, and no recorded frame twice. `progress(current, total)` is called after each.
    """
    target = picture_path(path, ".mp4")
    _check(seconds, fps, width, most_fps=_MOST_FPS)
    imageio = import_imageio()
    every = sampled_frames(trajectory, len(trajectory.frames))
    simulated = trajectory.time(int(every[-1])) - trajectory.time(int(every[0]))
    plays = min(_LONGEST_MP4, simulated) if seconds is None else seconds
    frames = sampled_frames(trajectory, max(2, round(plays * fps)))
    rate = min(fps, len(frames) / plays) if plays > 0.0 else fps
    film = RunFrames(trajectory, frames, width, 1.0 / rate)
    with _written(imageio, target, rate) as add:
        for number, k in enumerate(frames, start=1):
            picture = _even(film.draw(int(k)))
            add(picture)
            if progress is not None:
                progress(number, len(frames))
        for _ in range(round(_REST * rate)):
            add(picture)
    return target


def import_imageio() -> Any:
    """The imageio module with its ffmpeg, or an error that names the extra to install."""
    try:
        importlib.import_module("imageio_ffmpeg")
        return importlib.import_module("imageio.v2")
    except ImportError as error:
        raise MissingExtraError("writing MP4 movies", "view") from error


def _even(picture: Image) -> NDArray[np.uint8]:
    """The pixels; an odd last row or column is doubled, because the encoder needs even numbers of both."""
    pixels = np.asarray(picture.convert("RGB"), dtype=np.uint8)
    return np.pad(pixels, ((0, pixels.shape[0] % 2), (0, pixels.shape[1] % 2), (0, 0)), mode="edge")


@contextlib.contextmanager
def _written(imageio: Any, path: Path, rate: float) -> Any:
    """A function that adds a frame to a movie, which becomes `path` if the block ends without an error."""
    temporary = temporary_name(path).with_suffix(".mp4")
    try:
        writer = imageio.get_writer(
            temporary, format="FFMPEG", fps=rate, codec="libx264", pixelformat="yuv420p", quality=7, macro_block_size=2
        )
        with writer:
            yield writer.append_data
        os.replace(temporary, path)
    except OSError as error:
        raise RecordingError(
            f"cannot write the movie {path} ({error.strerror or error}): an earlier one there is unchanged; "
            "check that the directory is writable and has room"
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink()
