"""Things of a world that are known by their names, in the order of adding."""

from __future__ import annotations

from typing import Generic, TypeVar

from tropel.errors import GeometryError, ParameterError, suggest

Item = TypeVar("Item")


class NamedSet(Generic[Item]):
    """Items by name. The set of one kind of thing adds the arrays that kernels see, with a row per item."""

    what: str  #: what an item is called in messages

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, name: str) -> bool:
        return name in self._items

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    @property
    def names(self) -> list[str]:
        return list(self._items)

    def find(self, name: str) -> Item:
        if name not in self._items:
            raise ParameterError(f"there is no {self.what} '{name}'; {suggest(name, self._items)}")
        return self._items[name]

    def check_new(self, name: str) -> None:
        """Raise when the name is taken."""
        if name in self._items:
            a = "an" if self.what[0] in "aeiou" else "a"
            raise GeometryError(f"there is {a} {self.what} '{name}' already; remove it first or choose another name")
