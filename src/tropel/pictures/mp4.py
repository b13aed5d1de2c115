"""A run as an MP4 movie, written by ffmpeg through imageio."""

from __future__ import annotations

import contextlib
import importlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import MissingExtraError, ParameterError, RecordingError
from tropel.foundation.arguments import Seconds, checked_arguments
from tropel.pictures.frames import RunFrames
from tropel.pictures.paths import sampled_frames
from tropel.pictures.style import picture_path
from tropel.recording import Trajectory
from tropel.recording.atomic import temporary_name

if TYPE_CHECKING:
    from PIL.Image import Image

#: By default, longer runs are played faster [s].
_LONGEST = 60.0
#: The last frame stays longer, to show how the run ended [s].
_REST = 1.5
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
    _check(seconds, fps, width)
    imageio = import_imageio()
    every = sampled_frames(trajectory, len(trajectory.frames))
    simulated = trajectory.time(int(every[-1])) - trajectory.time(int(every[0]))
    plays = min(_LONGEST, simulated) if seconds is None else seconds
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


def _check(seconds: float | None, fps: float, width: int) -> None:
    if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
        raise ParameterError(f"seconds must be a positive number, the duration of the movie, not {seconds!r}")
    if not (math.isfinite(fps) and 0 < fps <= _MOST_FPS):
        raise ParameterError(f"fps must be above 0 and at most {_MOST_FPS:g} frames a second, not {fps!r}")
    if not 160 <= width <= 4000:
        raise ParameterError(f"width must be between 160 and 4000 pixels, not {width!r}")


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
