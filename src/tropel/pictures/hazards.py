"""Drawing hazards: the inner disc filled, the outer ring dashed, in the colour of their kind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.pictures import style
from tropel.pictures.viewport import Viewport

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from PIL.ImageDraw import ImageDraw
    from PIL.ImageFont import FreeTypeFont

#: Dashes of a ring, and the gaps between them, in pixels.
_DASH, _GAP = 8.0, 6.0


@dataclass(frozen=True, kw_only=True)
class HazardDisc:
    """A hazard as it was in one frame."""

    name: str
    kind: str
    centre: tuple[float, ...]
    inner: float  #: [m]
    outer: float  #: [m]

    @property
    def colour(self) -> str:
        return style.HAZARDS.get(self.kind, style.OTHER_HAZARD)

    @property
    def fill(self) -> str:
        return style.hazard_fill(self.colour)


def read_hazards(recorded: dict[str, dict[str, Any]]) -> dict[str, HazardDisc]:
    """The hazards that a trajectory records for a frame."""
    return {
        name: HazardDisc(
            name=name,
            kind=str(entry["kind"]),
            centre=tuple(entry["position"]),
            inner=float(entry["inner"]),
            outer=float(entry["outer"]),
        )
        for name, entry in recorded.items()
    }


def draw_hazards(axes: Axes, hazards: Iterable[HazardDisc], view: Viewport) -> None:
    """Draw hazards on a map."""
    from matplotlib.patches import Circle

    for hazard in hazards:
        place = tuple(view.flat(hazard.centre)[0])
        axes.add_patch(
            Circle(
                place,
                hazard.outer,
                fill=False,
                edgecolor=hazard.colour,
                linewidth=1.2,
                linestyle=(0, (4, 3)),
                zorder=6.2,
            )
        )
        axes.add_patch(
            Circle(place, hazard.inner, facecolor=hazard.fill, edgecolor=hazard.colour, linewidth=1.2, zorder=2.5)
        )


def sketch_hazards(draw: ImageDraw, hazards: Iterable[HazardDisc], view: Viewport, corner: tuple[int, int]) -> None:
    """Draw hazards at twice the size on the part of an animation's map that begins at `corner`."""
    for hazard in hazards:
        x, y = _place(hazard, view, corner)
        inner, outer = 2.0 * hazard.inner * view.scale, 2.0 * hazard.outer * view.scale
        draw.ellipse((x - inner, y - inner, x + inner, y + inner), fill=hazard.fill, outline=hazard.colour, width=3)
        for begin, end in _dashes(outer):
            draw.arc((x - outer, y - outer, x + outer, y + outer), begin, end, fill=hazard.colour, width=3)


def name_hazards(
    draw: ImageDraw,
    hazards: Iterable[HazardDisc],
    view: Viewport,
    corner: tuple[int, int],
    font: FreeTypeFont,
    *,
    targets: Iterable[tuple[float, ...]] = (),
) -> None:
    """Write the names of hazards above their inner discs; below where a target is, which has its own name above."""
    taken = [np.asarray(target) for target in targets]
    for hazard in hazards:
        x, y = _place(hazard, view, corner)
        away = 2.0 * hazard.inner * view.scale + 6.0
        below = any(np.linalg.norm(target - np.asarray(hazard.centre)) <= hazard.inner for target in taken)
        draw.text(
            (x, y + away if below else y - away),
            style.shortened(hazard.name, 20),
            fill=style.label_colour(hazard.colour),
            font=font,
            anchor="ma" if below else "ms",
            stroke_width=4,
            stroke_fill=style.FLOOR,
        )


def _place(hazard: HazardDisc, view: Viewport, corner: tuple[int, int]) -> tuple[float, float]:
    x, y = 2.0 * (view.pixels(np.array([hazard.centre]))[0] - corner)
    return float(x), float(y)


def _dashes(radius: float) -> Iterator[tuple[float, float]]:
    """Angles [degrees] at which the dashes of a ring begin and end; `radius` is in (doubled) pixels."""
    count = max(8, round(2.0 * np.pi * radius / (2.0 * (_DASH + _GAP))))
    share = _DASH / (_DASH + _GAP)
    for k in range(count):
        yield 360.0 * k / count, 360.0 * (k + share) / count
