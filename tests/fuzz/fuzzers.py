"""The fuzzers by name. One more is a module with a class like these, entered here."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from .outcome import Outcome


class Fuzzer(Protocol):
    """Makes cases as files in a folder, and tries what is in a folder."""

    name: str
    seconds: float  #: a case that takes longer hangs
    share: float  #: of the cases, when several fuzzers take turns

    def prepare(self, folder: Path) -> None:
        """What all cases need, once, before the first."""

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        """Write a case into an empty folder; depends on nothing but `chance` and the folder that was prepared."""

    def run(self, folder: Path) -> Outcome:
        """Try the case in a folder."""

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        """Make the case in the folder smaller as long as `still` says that it is the same finding."""


def names() -> list[str]:
    return ["scenario", "damaged", "kills", "cache"]


@functools.cache
def fuzzer(name: str) -> Fuzzer:
    if name == "warm":
        from .warm import Warm

        return Warm()
    if name == "scenario":
        from .scenario_files import ScenarioFiles

        return ScenarioFiles()
    if name == "damaged":
        from .damaged_files import DamagedFiles

        return DamagedFiles()
    if name == "kills":
        from .kills import Kills

        return Kills()
    if name == "cache":
        from .kernel_cache import KernelCache

        return KernelCache()
    raise ValueError(f"there is no fuzzer '{name}'; known: {', '.join(names())}")
