"""The position of a key in a TOML text, so that an error can name the key and the line."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

_TABLE = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"^\s*([A-Za-z0-9_\-\"'. ]+?)\s*=")

Path = tuple[str | int, ...]


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line (from 1) of the key at `path`, or of the nearest enclosing key or table that has its own line."""
    lines = _lines_by_path(text)
    wanted = tuple(path)
    while wanted:
        if wanted in lines:
            return lines[wanted]
        wanted = wanted[:-1]
    return None


def dotted(path: Sequence[str | int]) -> str:
    """A path in readable form: groups[0].region."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else str(part)
    return text


@functools.lru_cache(maxsize=1)
def _lines_by_path(text: str) -> dict[Path, int]:
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _TABLE.match(line):
            names = _names(match.group(2))
            table = _resolve(names, counts, new_entry=match.group(1) == "[[")
            found.setdefault(table, number)
            for length in range(1, len(table)):
                found.setdefault(table[:length], number)
        elif match := _KEY.match(line):
            path = (*table, *_names(match.group(1)))
            found.setdefault(path, number)
    return found


def _names(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def _resolve(names: list[str], counts: dict[Path, int], *, new_entry: bool) -> Path:
    """The path of a table header: entries of arrays of tables get their index."""
    path: Path = ()
    for depth, name in enumerate(names):
        path = (*path, name)
        last = depth == len(names) - 1
        if last and new_entry:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path
