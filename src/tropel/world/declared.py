"""Parts of a world that are known by name, in the order of adding: named sets, doors, and boxes given by corners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from tropel.errors import GeometryError, ParameterError, UnknownNameError, suggest
from tropel.foundation.arguments import checked_arguments
from tropel.world import shapes
from tropel.world.goals import Exit
from tropel.world.motion import Position
from tropel.world.shapes import ShapeLike

Item = TypeVar("Item")


class ReadOnlyNames(Mapping[str, Item]):
    """Items of a world by name, read-only: a change made here would not reach the arrays of kernels."""

    def __init__(self, items: dict[str, Item], *, what: str, instead: str) -> None:
        self._items = items
        self.what = what  #: what an item is called in messages
        self.instead = instead  #: how such items are changed

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._items

    def __getitem__(self, name: str) -> Item:
        if name not in self:
            raise UnknownNameError(f"there is no {self.what} '{name}'; {suggest(str(name), self._items)}")
        return self._items[name]

    def __setitem__(self, name: Any, item: Any) -> NoReturn:
        raise ParameterError(f"the {self.what} '{name}' cannot be set like that; {self.instead}")

    def __delitem__(self, name: Any) -> NoReturn:
        raise ParameterError(f"the {self.what} '{name}' cannot be deleted like that; {self.instead}")

    def __repr__(self) -> str:
        return f"{{{', '.join(f'{name!r}: {item!r}' for name, item in self._items.items())}}}"


class NamedSet(ReadOnlyNames[Item]):
    """Items by name. Subclasses for one kind of item add the arrays that kernels read, with a row per item."""

    what: str

    def __init__(self) -> None:
        super().__init__({}, what=self.what, instead="use its methods add, move and remove, or an event")

    @property
    def names(self) -> list[str]:
        return list(self._items)

    def find(self, name: str) -> Item:
        return self[name]

    def check_new(self, name: str) -> None:
        """Raise if the name is taken."""
        if name in self._items:
            a = "an" if self.what[0] in "aeiou" else "a"
            raise GeometryError(f"there is {a} {self.what} '{name}' already; remove it first or choose another name")


# What a world is built from: doors, exits and regions by name, and boxes.

Box = tuple[NDArray[np.float64], NDArray[np.float64]]


class Door:
    """A line that agents cannot cross while it is closed."""

    @checked_arguments
    def __init__(self, line: ShapeLike, *, open: bool = False) -> None:
        self.line = shapes.polyline(line, "door")
        self.open = bool(open)


def named_doors(doors: dict[str, Door]) -> ReadOnlyNames[Door]:
    return ReadOnlyNames(doors, what="door", instead="pass doors to World(…); set_door or an event opens and closes")


def named_exits(exits: dict[str, Exit]) -> ReadOnlyNames[Exit]:
    return ReadOnlyNames(exits, what="exit", instead="pass exits to World(…); set_exit or an event opens and closes")


def named_regions(regions: dict[str, Item]) -> ReadOnlyNames[Item]:
    return ReadOnlyNames(regions, what="region", instead="pass regions to World(…)")


def named_rooms(rooms: dict[str, Item]) -> ReadOnlyNames[Item]:
    return ReadOnlyNames(rooms, what="room", instead="pass rooms to World(…)")


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


def box_corners(low: Position, high: Position, what: str, dim: int) -> Box:
    a, b = shapes.point(low, what, dim=dim), shapes.point(high, what, dim=dim)
    if (a >= b).any():
        raise GeometryError(f"{what}: the low corner {a.tolist()} must be below the high corner {b.tolist()}")
    return a, b
