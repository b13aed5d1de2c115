"""Things of a world that are known by their names, in the order of adding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, TypeVar

from tropel.errors import GeometryError, ParameterError, UnknownNameError, suggest

Item = TypeVar("Item")


class ReadOnlyNames(Mapping[str, Item]):
    """Items of a world by name, to be looked at: what is laid in or taken out here would miss the arrays of kernels."""

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
    """Items by name. The set of one kind of thing adds the arrays that kernels see, with a row per item."""

    what: str

    def __init__(self) -> None:
        super().__init__({}, what=self.what, instead="call its methods add, move and remove, or let an event do it")

    @property
    def names(self) -> list[str]:
        return list(self._items)

    def find(self, name: str) -> Item:
        return self[name]

    def check_new(self, name: str) -> None:
        """Raise when the name is taken."""
        if name in self._items:
            a = "an" if self.what[0] in "aeiou" else "a"
            raise GeometryError(f"there is {a} {self.what} '{name}' already; remove it first or choose another name")
