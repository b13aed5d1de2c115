"""Writing animated GIFs with one palette for all frames, so that nothing flickers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tropel.pictures.saving import picture_file

if TYPE_CHECKING:
    from PIL.Image import Image

Colour = tuple[int, int, int]

#: A GIF has 256; one of them stands for "as in the frame before".
_MOST_COLOURS = 255


def shared_palette(samples: Sequence[Image], exact: Iterable[str]) -> list[Colour]:
    """The colours of frames like the samples, of which the exact ones are kept as they are."""
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
    """Write frames (RGB) that are shown for so many milliseconds each, and over again at the end."""
    from PIL import Image

    colours = Image.new("P", (1, 1))
    colours.putpalette(_bytes(palette))

    def reduced() -> Iterator[Image.Image]:
        for frame in frames:
            yield frame.quantize(palette=colours, dither=Image.Dither.NONE)

    every = reduced()
    with picture_file(path) as file:
        # Pixels that stay as they are become transparent, which takes a third of the space where a crowd stands still.
        # One palette for the whole file: with one in each frame, players may show the same colour differently.
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
    """A colour that is not in the palette, for the entry that is never seen."""
    taken = set(palette)
    return next((0, 0, blue) for blue in range(256) if (0, 0, blue) not in taken)


def _bytes(colours: Iterable[Colour]) -> bytes:
    return bytes(part for colour in colours for part in colour)


def _rgb(parts: Sequence[int]) -> Colour:
    return (parts[0], parts[1], parts[2])
