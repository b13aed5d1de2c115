"""Writing pictures: whole or not at all."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tropel.errors import RecordingError
from tropel.recording.atomic import replacing

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def picture_path(path: str | os.PathLike[str], suffix: str) -> Path:
    """The path of a picture to be made, checked before any work is done."""
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise RecordingError(f"cannot draw to '{path.name}': its name must end in {suffix}")
    if not path.parent.is_dir():
        raise RecordingError(f"cannot draw to {path}: the directory {path.parent} does not exist, create it first")
    if path.is_dir():
        raise RecordingError(f"cannot draw to {path}: a directory of that name is in the way")
    return path


@contextlib.contextmanager
def picture_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that becomes `path` when the block ends well; after an error `path` is what it was before."""
    try:
        with replacing(path) as file:
            yield file
    except OSError as error:
        raise RecordingError(
            f"cannot write the picture {path} ({error.strerror or error}): an earlier one there is unchanged; "
            "check that the directory is writable and has room"
        ) from error


def save_figure(figure: Figure, path: Path) -> Path:
    """Write a figure as PNG."""
    with picture_file(path) as file:
        figure.savefig(file, format="png", facecolor=figure.get_facecolor())
    return path
