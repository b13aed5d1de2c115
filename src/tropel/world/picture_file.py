"""Pictures as arrays of pixels, whatever their colours are stored as."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.errors import GeometryError
from tropel.input_files import LARGEST_PICTURE, open_input

if TYPE_CHECKING:
    from PIL.Image import Image

#: More cells or pixels than this are refused before any work is done.
MOST_CELLS = 1 << 26
#: Others that Pillow knows have decoders that few have looked at, or start other programs.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")


def read_pixels(file: Path) -> NDArray[np.uint8]:
    """Red, green, blue and opacity (height, width, 4) of a picture; the first row is the top one."""
    from PIL import Image, UnidentifiedImageError

    try:
        with open_input(file, largest=LARGEST_PICTURE) as content, warnings.catch_warnings():
            # Pillow warns of large pictures that `check_size` refuses right after.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(content, formats=_FORMATS) as picture:
                check_size(picture.height, picture.width, str(file))
                return np.array(_in_eight_bits(picture).convert("RGBA"))
    except UnidentifiedImageError as error:
        raise GeometryError(f"{file}: not a picture that can be read; use {', '.join(_FORMATS)}") from error
    except GeometryError:
        raise
    except OSError as error:
        raise GeometryError(f"cannot read the picture {file}: {error.strerror or error}") from error
    except Exception as error:
        # Decoders raise whatever their parts raise: errors of zlib and struct, SyntaxError, IndexError, …
        raise GeometryError(
            f"cannot read the picture {file}: {error or type(error).__name__}; it may be damaged, save it again"
        ) from error


def _in_eight_bits(picture: Image) -> Image:
    """Grey of 16 bits as 8: Pillow would make white of all that is brighter than 255 of 65535."""
    from PIL import Image

    if not picture.mode.startswith("I"):
        return picture
    return Image.fromarray(np.clip(np.asarray(picture).astype(np.int64) >> 8, 0, 255).astype(np.uint8))


def check_size(height: int, width: int, source: str) -> None:
    if height * width > MOST_CELLS:
        raise GeometryError(
            f"{source}: {width} × {height} cells are too many (at most {MOST_CELLS:,}); make it coarser"
        )
