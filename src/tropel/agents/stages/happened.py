"""Events that have happened, as far as somebody may wait for them: by kind and by the names that they hold."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken

#: Nothing like it has happened.
NEVER = -1

#: The kind of an event, and its fields that hold texts.
Happening = tuple[str, tuple[tuple[str, str], ...]]


class Happenings:
    """The last step of every event that has happened. Events with the same names count as the same one."""

    def __init__(self) -> None:
        self._last: dict[Happening, int] = {}

    def note(self, kind: str, fields: Mapping[str, Any], *, step: int) -> None:
        """Note an event of a kind; of its fields, those that are texts count."""
        names = sorted((name, value) for name, value in fields.items() if isinstance(value, str) and name != "kind")
        self._last[kind, tuple(names)] = step

    def last(self, kind: str, fields: Mapping[str, str]) -> int:
        """The last step in which an event of a kind with these fields happened; NEVER if none did."""
        wanted = set(fields.items())
        return max(
            (s for (known, names), s in self._last.items() if known == kind and wanted <= {*names}), default=NEVER
        )

    def state(self) -> dict[str, NDArray[Any]]:
        known = sorted(self._last)
        return {
            "happened/what": np.array([json.dumps(each) for each in known], dtype=str),
            "happened/step": np.array([self._last[each] for each in known], dtype=np.int64),
        }

    def read(self, stored: Mapping[str, NDArray[Any]]) -> dict[Happening, int]:
        """What `state` returned, checked."""
        texts = texts_of(stored, "happened/what")
        steps = taken(stored, "happened/step", dtype="int64", shape=(len(texts),), low=0)
        return {_read(text): step for text, step in zip(texts, steps.tolist(), strict=True)}

    def known(self) -> dict[Happening, int]:
        return dict(self._last)

    def put_back(self, last: Mapping[Happening, int]) -> None:
        self._last = dict(last)


def _read(text: str) -> Happening:
    try:
        kind, names = json.loads(text)
        pairs = tuple((name, value) for name, value in names)
        if all(isinstance(each, str) for each in (kind, *(part for pair in pairs for part in pair))):
            return kind, pairs
    except (ValueError, TypeError, RecursionError):
        pass
    raise CheckpointError(f"'happened/what' holds {text[:60]!r}, which is not an event")


def texts_of(stored: Mapping[str, NDArray[Any]], name: str) -> list[str]:
    """A stored list of texts, checked."""
    if name not in stored:
        raise CheckpointError(f"'{name}' is missing")
    array = stored[name]
    if array.dtype.kind != "U" or array.ndim != 1:
        raise CheckpointError(f"'{name}' must be a list of texts, not {array.dtype} of shape {array.shape}")
    return [str(text) for text in array.tolist()]
