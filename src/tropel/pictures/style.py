"""Colours, fonts and the empty figure that all pictures share, and writing picture files.

Nothing here touches matplotlib's global state: figures are made without pyplot, and every property that a user's
matplotlibrc could spoil (colours, font sizes) is set on the artist itself.
"""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from tropel.errors import RecordingError
from tropel.foundation.files import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure
    from matplotlib.text import Text


#: Pixels per inch of every picture; sizes elsewhere are in pixels.
DPI = 120

PAPER = "#ffffff"
INK = "#262626"
FAINT_INK = "#6b6b6b"
RULE = "#d9d9d6"

FLOOR = "#fcfcfa"
OUTSIDE = "#e4e4df"
WALL = "#33343a"
REGION = "#7f8794"
OBSTACLE = "#9a9a94"
OBSTACLE_EDGE = "#55554f"

# The colours of Okabe and Ito, which people with any colour vision can tell apart.
EXIT = "#009e73"
CLOSED_EXIT = "#8d8d88"
OPEN_DOOR = "#0072b2"
CLOSED_DOOR = "#d55e00"
TARGET = "#aa3377"
THERE = "#0072b2"
LEFT = "#009e73"
DEAD = "#1a1a1a"

#: Hazard colours by kind; the name is always written next to the hazard too.
HAZARDS = {"fire": "#d55e00", "explosion": "#e69f00", "rubble": "#8c6d31", "gas": "#cc79a7", "water": "#56b4e9"}
OTHER_HAZARD = "#aa3377"

GROUPS = ("#0072b2", "#e69f00", "#cc79a7", "#56b4e9", "#d55e00", "#009e73", "#8c6d31", "#4d4d4d")

#: East, north, west, south.
_COMPASS = ("#0072b2", "#e6a800", "#c2410c", "#4a1a66")

TITLE_SIZE = 13.0
TEXT_SIZE = 9.5
SMALL_SIZE = 8.5

#: DejaVu ships with matplotlib, so pictures look the same everywhere.
FONT = "DejaVu Sans"


@functools.cache
def time_colours() -> ListedColormap:
    """Viridis without its lightest tenth, which would vanish on a light floor."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps["viridis"](np.linspace(0.0, 0.9, 256)), name="tropel time")


def group_colours(count: int) -> list[str]:
    """A colour per group: the eight that all people can tell apart, or a colour map if more are needed."""
    from matplotlib import colormaps

    if count <= len(GROUPS):
        return list(GROUPS[:count])
    return [hex_colour(colour) for colour in colormaps["turbo"](np.linspace(0.05, 0.95, count))]


def heading_colours(count: int) -> list[str]:
    """Colours for `count` directions, from x (east) through y (north): they also differ in lightness, and none vanishes
    on a light floor."""
    from matplotlib.colors import LinearSegmentedColormap

    wheel = LinearSegmentedColormap.from_list("tropel heading", [*_COMPASS, _COMPASS[0]])
    return [hex_colour(wheel((k + 0.5) / count)) for k in range(count)]


def hex_colour(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return to_hex(colour)


def mixed(colour: str, other: str, share: float) -> str:
    """A mix of two colours in which the first has the given share."""
    from matplotlib.colors import to_rgb

    return hex_colour([share * a + (1.0 - share) * b for a, b in zip(to_rgb(colour), to_rgb(other), strict=True)])


def exit_fill(colour: str) -> str:
    return mixed(colour, PAPER, 0.45)


def hazard_fill(colour: str) -> str:
    return mixed(colour, PAPER, 0.6)


def label_colour(colour: str) -> str:
    """Dark enough for small text."""
    return mixed(colour, "#000000", 0.75)


def map_colours() -> list[str]:
    """Every colour that may be on a map, including those of smooth edges on a light ground."""
    grounds = [PAPER, FLOOR, OUTSIDE]
    things = [INK, FAINT_INK, WALL, REGION, OBSTACLE, OBSTACLE_EDGE, OPEN_DOOR, CLOSED_DOOR, TARGET]
    for colour in (EXIT, CLOSED_EXIT):
        things += [colour, exit_fill(colour), label_colour(colour)]
    for colour in (*HAZARDS.values(), OTHER_HAZARD):
        things += [colour, hazard_fill(colour)]
    return [*grounds, *things, *(mixed(thing, FLOOR, share) for thing in things for share in (0.33, 0.67))]


def new_figure(width: float, height: float) -> Figure:
    """An empty figure of a size in pixels, drawn by Agg."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI, facecolor=PAPER)
    FigureCanvasAgg(figure)
    return figure


def add_axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a position in pixels, from the top left corner of the figure."""
    across, down = figure.get_size_inches() * DPI
    axes = figure.add_axes((left / across, 1.0 - (top + height) / down, width / across, height / down))
    axes.set_facecolor(PAPER)
    for spine in axes.spines.values():
        spine.set_edgecolor(FAINT_INK)
        spine.set_linewidth(0.8)
    axes.tick_params(colors=FAINT_INK, labelcolor=INK, labelsize=SMALL_SIZE, length=3, width=0.8, labelfontfamily=FONT)
    axes.grid(visible=False)
    return axes


def add_text(figure: Figure, left: float, top: float, text: str, **properties: Any) -> Text:
    """Text at a position in pixels, from the top left corner of the figure."""
    across, down = figure.get_size_inches() * DPI
    known = {"fontsize": TEXT_SIZE, "color": INK, "family": FONT, "ha": "left", "va": "top", "parse_math": False}
    return figure.text(left / across, 1.0 - top / down, text, **{**known, **properties})


def label_axes(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Label the axes, with units, and the panel."""
    axes.set_xlabel(x, fontsize=TEXT_SIZE, color=INK, family=FONT, labelpad=4)
    axes.set_ylabel(y, fontsize=TEXT_SIZE, color=INK, family=FONT, labelpad=5)
    if title:
        axes.set_title(title, fontsize=TEXT_SIZE, color=INK, family=FONT, loc="left", pad=7, parse_math=False)


def open_panel(axes: Axes) -> None:
    """Style a plot that stands on its x axis: no frame at the top and right, faint horizontal lines behind."""
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(visible=True, axis="y", color=RULE, linewidth=0.7)
    axes.set_axisbelow(True)


def shortened(text: str, length: int, *, end: int = 0) -> str:
    """Text of at most `length` characters, with `end` of them from its end (where names often differ)."""
    if len(text) <= length:
        return text
    return text[: length - 1 - end].rstrip() + "…" + text[len(text) - end :].lstrip()


def legend_above(axes: Axes, *, side: str = "left", columns: int = 4, **properties: Any) -> None:
    """A legend above the panel, at its left or right end."""
    place: dict[str, Any] = {"loc": f"lower {side}", "bbox_to_anchor": (0.0 if side == "left" else 1.0, 1.0)}
    text: dict[str, Any] = {"prop": {"size": TEXT_SIZE, "family": FONT}, "labelcolor": INK}
    axes.legend(ncols=columns, frameon=False, borderaxespad=0.2, columnspacing=1.6, **place, **text, **properties)


def picture_path(path: str | os.PathLike[str], suffix: str) -> Path:
    """The path of a picture to write, checked before any work is done."""
    path = Path(path)
    if path.suffix.lower() != suffix:
        raise RecordingError(f"cannot draw to '{path.name}': its name must end in {suffix}")
    if not path.parent.is_dir():
        raise RecordingError(f"cannot draw to {path}: the directory {path.parent} does not exist, create it first")
    if path.is_dir():
        raise RecordingError(f"cannot draw to {path}: it is a directory; choose another name")
    return path


@contextlib.contextmanager
def picture_file(path: Path) -> Iterator[IO[bytes]]:
    """A file that becomes `path` if the block ends without an error; after an error `path` is unchanged."""
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
