"""Trees of tables, lists and values, as files are read: walking, reading and changing them by path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Path = tuple[str | int, ...]


def paths(tree: Any, here: Path = ()) -> Iterator[Path]:
    """The place of everything within a tree, what is further in first."""
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        yield from paths(value, (*here, key))
        yield (*here, key)


def at(tree: Any, path: Path) -> Any:
    for part in path:
        tree = tree[part]
    return tree


def put(tree: Any, path: Path, value: Any) -> None:
    at(tree, path[:-1])[path[-1]] = value


def remove(tree: Any, path: Path) -> None:
    del at(tree, path[:-1])[path[-1]]
