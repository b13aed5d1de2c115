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

#: More cells of a map, or pixels of a picture, than this are refused before any work is done. A picture of one colour
#: is a small file, whatever its size.
MOST_CELLS = 1 << 26
MOST_PIXELS = 1 << 24
#: Others that Pillow knows have decoders that few have looked at, or start other programs.
_FORMATS = ("PNG", "JPEG", "BMP", "GIF", "WEBP", "TIFF")


def read_pixels(file: Path, *, most: int = MOST_PIXELS) -> NDArray[np.uint8]:
    """Red, green, blue and opacity (height, width, 4) of a picture of at most so many pixels; the top row first."""
    from PIL import Image, UnidentifiedImageError

    try:
        with open_input(file, largest=LARGEST_PICTURE) as content, warnings.catch_warnings():
            # Pillow warns of large pictures that `check_size` refuses right after.
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)
            with Image.open(content, formats=_FORMATS) as picture:
                check_size(picture.height, picture.width, str(file), most=most)
                return np.array(_in_eight_bits(picture).convert("RGBA"))
    except Image.DecompressionBombError as error:
        raise GeometryError(f"{file}: it has too many pixels (at most {most:,}); make it coarser") from error
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


def check_size(height: int, width: int, source: str, *, most: int = MOST_CELLS) -> None:
    if height * width > most:
        raise GeometryError(f"{source}: {width} × {height} cells are too many (at most {most:,}); make it coarser")
