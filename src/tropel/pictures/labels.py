"""Names on a map, placed so that they do not cover each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tropel.pictures.style import FONT, SMALL_SIZE, shortened

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

#: Pixels between a thing and its name, and between two names.
_GAP = 5.0
_LONGEST = 26

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class Label:
    """A name for what is within a box (left, bottom, right, top; in metres)."""

    text: str
    box: Box
    colour: str
    sides: Sequence[str] = ("above", "below", "right", "left")  #: where to try, best first
    required: bool = True  #: written elsewhere, at last over another one, where none of its sides is free
    weight: str = "normal"


def place_labels(axes: Axes, labels: Sequence[Label], *, avoid: Sequence[Box] = ()) -> None:
    """Write each label at the first of its places that is on the map and free; earlier labels have the first choice.

    `avoid` are boxes in metres that names should rather not cover; nor do they cover texts that are there already.
    """
    from matplotlib.patheffects import withStroke

    taken: list[Box] = [_in_pixels(axes, box) for box in avoid]
    taken += [_extent(text) for text in axes.texts]
    inside = _extent(axes)
    for label in labels:
        text = axes.text(
            0.0,
            0.0,
            "\n".join(shortened(line, _LONGEST, end=8) for line in label.text.splitlines()),
            fontsize=SMALL_SIZE,
            family=FONT,
            color=label.colour,
            weight=label.weight,
            ha="center",
            va="center",
            zorder=20,
            parse_math=False,
            path_effects=[withStroke(linewidth=2.6, foreground="#ffffffdd")],
        )
        extent = text.get_window_extent()
        best: tuple[float, Box, float, float, int] | None = None
        for x, y, rotation in _places(axes, label, extent.width, extent.height):
            across, up = (extent.width, extent.height) if rotation == 0 else (extent.height, extent.width)
            box = (x - across / 2, y - up / 2, x + across / 2, y + up / 2)
            cost = sum(_overlap(box, other) for other in taken) + (across * up - _overlap(box, inside))
            if best is None or cost < best[0] - 1e-6:
                best = (cost, box, x, y, rotation)
            if cost <= 1e-6:
                break
        if best is None or (best[0] > 1e-6 and not label.required):
            text.remove()
            continue
        _, box, x, y, rotation = best
        right, up = axes.transData.inverted().transform((x, y))
        text.set_position((float(right), float(up)))
        text.set_rotation(rotation)
        taken.append((box[0] - _GAP / 2, box[1] - _GAP / 2, box[2] + _GAP / 2, box[3] + _GAP / 2))


def _places(axes: Axes, label: Label, width: float, height: float) -> Iterator[tuple[float, float, int]]:
    """Centres in pixels, and rotations in degrees, in order of preference."""
    x0, y0, x1, y1 = _in_pixels(axes, label.box)
    middle_x, middle_y = (x0 + x1) / 2, (y0 + y1) / 2
    beside = width / 2 + _GAP
    over = height / 2 + _GAP
    places: dict[str, tuple[float, float, int]] = {
        "above": (middle_x, y1 + over, 0),
        "below": (middle_x, y0 - over, 0),
        "right": (x1 + beside, middle_y, 0),
        "left": (x0 - beside, middle_y, 0),
        "along right": (x1 + over, middle_y, 270),
        "along left": (x0 - over, middle_y, 90),
        "inside": (middle_x, middle_y, 0),
        "corner": (x0 + beside, y1 - over, 0),
        "low corner": (x0 + beside, y0 + over, 0),
    }
    for side in label.sides:
        if side != "inside" or (width <= x1 - x0 and height <= y1 - y0):
            yield places[side]
    if not label.required:
        return
    for side in ("above", "below", "right", "left"):
        x, y, rotation = places[side]
        if side not in label.sides:
            yield x, y, rotation
    # Then a line further off, for names of things that stand close together.
    yield middle_x, y1 + over + height + _GAP, 0
    yield middle_x, y0 - over - height - _GAP, 0


def _extent(drawn: Artist) -> Box:
    box = drawn.get_window_extent()
    return (box.x0, box.y0, box.x1, box.y1)


def _in_pixels(axes: Axes, box: Box) -> Box:
    (x0, y0), (x1, y1) = axes.transData.transform([box[:2], box[2:]])
    return (x0, y0, x1, y1)


def _overlap(one: Any, other: Any) -> float:
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    return max(width, 0.0) * max(height, 0.0)
