"""What a world is declared with: doors, exits and regions by name, and boxes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.arguments import checked_arguments
from tropel.errors import GeometryError
from tropel.world import shapes
from tropel.world.goals import Exit
from tropel.world.motion import Place
from tropel.world.named_set import Item, ReadOnlyNames
from tropel.world.shapes import ShapeLike

Box = tuple[NDArray[np.float64], NDArray[np.float64]]


class Door:
    """A line that nobody passes while it is closed."""

    @checked_arguments
    def __init__(self, line: ShapeLike, *, open: bool = False) -> None:
        self.line = shapes.polyline(line, "door")
        self.open = bool(open)


def named_doors(doors: dict[str, Door]) -> ReadOnlyNames[Door]:
    return ReadOnlyNames(doors, what="door", instead="give doors to World(…); set_door or an event opens and closes")


def named_exits(exits: dict[str, Exit]) -> ReadOnlyNames[Exit]:
    return ReadOnlyNames(exits, what="exit", instead="give exits to World(…); set_exit or an event opens and closes")


def named_regions(regions: dict[str, Item]) -> ReadOnlyNames[Item]:
    return ReadOnlyNames(regions, what="region", instead="give regions to World(…)")


def as_door(name: str, door: Door | ShapeLike) -> Door:
    if isinstance(door, Door):
        return Door(door.line, open=door.open)
    return Door(shapes.polyline(door, f"door '{name}'"))


def two_corners(name: str, box: Any) -> tuple[Any, Any]:
    try:
        low, high = box
    except (TypeError, ValueError) as error:
        raise GeometryError(
            f"region '{name}': regions of World.box are boxes, given by a low and a high corner, not {box!r}"
        ) from error
    return low, high


def box_corners(low: Place, high: Place, what: str, dim: int) -> Box:
    a, b = shapes.point(low, what, dim=dim), shapes.point(high, what, dim=dim)
    if (a >= b).any():
        raise GeometryError(f"{what}: the low corner {a.tolist()} must be below the high corner {b.tolist()}")
    return a, b
