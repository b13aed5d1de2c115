"""A painted field from an image file, as drawn with any painting program.

Two ways to draw vectors in colours:

"xy":  red is the x direction and green is y: 128 is none, 255 is 1 to the right or up, 1 is 1 to the left or down.
       Blue is ignored. Opacity is the strength.
"hue": the hue is the angle: red is to the right, yellow-green (90°) up, cyan (180°) to the left, violet (270°) down.
       Saturation times brightness times opacity is the strength: in black, white, grey and transparent places nothing
       is painted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tropel.errors import GeometryError, ParameterError, suggest
from tropel.planning.painted_fields import ArrayField
from tropel.world.picture_file import read_pixels

ENCODINGS = ("xy", "hue")
#: Pixels of an image: each becomes a vector, on the way to which it takes about 200 bytes.
MOST_VECTORS = 1 << 22


def image_field(
    path: str | Path, *, cell: float, origin: Sequence[float] | None = None, encoding: str = "hue"
) -> ArrayField:
    """Read a painted field: a pixel is a square of `cell` [m], the image's lower left corner is at `origin` [m]."""
    if encoding not in ENCODINGS:
        raise ParameterError(f"there is no encoding '{encoding}' of vectors in images; {suggest(encoding, ENCODINGS)}")
    file = Path(path)
    if not file.is_file():
        raise ParameterError(f"there is no image '{file}' to read a painted field from; check the path")
    try:
        pixels = read_pixels(file, most=MOST_VECTORS)
    except GeometryError as error:
        raise ParameterError(f"no painted field can be made of an image: {error}") from error
    upward = pixels[::-1].astype(np.float64)  # files begin with the top row
    vectors = _from_red_and_green(upward) if encoding == "xy" else _from_hue(upward / 255.0)
    return ArrayField(vectors, origin=origin, cell=cell)


def _from_red_and_green(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    vectors = np.clip((pixels[..., :2] - 128.0) / 127.0, -1.0, 1.0)
    return np.asarray(vectors * (pixels[..., 3:] / 255.0))


def _from_hue(pixels: NDArray[np.float64]) -> NDArray[np.float64]:
    red, green, blue, opacity = np.moveaxis(pixels, -1, 0)
    most, least = pixels[..., :3].max(axis=-1), pixels[..., :3].min(axis=-1)
    spread = most - least
    safe = np.where(spread > 0.0, spread, 1.0)
    sixths = np.where(
        most == red,
        ((green - blue) / safe) % 6.0,
        np.where(most == green, (blue - red) / safe + 2.0, (red - green) / safe + 4.0),
    )
    angle = sixths * (np.pi / 3.0)
    # Saturation times brightness is the spread of the three colours.
    return np.asarray((spread * opacity)[..., None] * np.stack([np.cos(angle), np.sin(angle)], axis=-1))
