"""Behaviours of a layer that can be switched off and on while a simulation runs.

A behaviour is something agents do besides going where they want to without walking through anybody: shunning full
doors, shying away from fire at a distance, keeping with their family. Without it the crowd is poorer, but as safe, and
a step may take less time. Switches are set by the event `SetBehaviour`, so a run that is repeated with its events is
the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError, ParameterError, suggest

_STORED = "switched_off"


class Behaviours(Mapping[str, bool]):
    """The behaviours of a layer by name, and whether they are on; all are at first."""

    def __init__(self, *names: str) -> None:
        self._on = dict.fromkeys(names, True)

    def __getitem__(self, name: str) -> bool:
        return self._on[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._on)

    def __len__(self) -> int:
        return len(self._on)

    def switch(self, name: str, on: bool) -> None:
        if name not in self._on:
            raise ParameterError(f"there is no behaviour '{name}'; {suggest(name, self._on)}")
        self._on[name] = bool(on)

    def begin(self) -> None:
        """Switch everything on."""
        self._on = dict.fromkeys(self._on, True)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint stores: nothing while everything is on."""
        off = sorted(name for name, on in self._on.items() if not on)
        return {_STORED: np.array(off)} if off else {}

    def read(self, stored: Mapping[str, NDArray[Any]]) -> list[str]:
        """The behaviours that are off by what `state` gave."""
        if _STORED not in stored:
            return []
        names = stored[_STORED]
        if names.ndim != 1 or not set(names.tolist()) <= set(self._on):
            known = ", ".join(self._on)
            raise CheckpointError(
                f"'{_STORED}' in it must be names of behaviours ({known}), not {names.tolist()!r:.60}"
            )
        return list(names.tolist())

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.put_back(self.read(stored))

    def put_back(self, off: Iterable[str]) -> None:
        """Switch everything on but these."""
        self.begin()
        for name in off:
            self.switch(name, False)
