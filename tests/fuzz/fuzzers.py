"""The fuzzers by name. One more is a module with a class like these, entered here."""

from __future__ import annotations

import functools
import importlib
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
    return ["scenario", "damaged", "api", "kills", "cache"]


#: Modules and classes, which are imported when they are asked for.
_CLASSES = {
    "scenario": ("scenario_files", "ScenarioFiles"),
    "damaged": ("damaged_files", "DamagedFiles"),
    "api": ("api_calls", "ApiCalls"),
    "kills": ("kills", "Kills"),
    "cache": ("kernel_cache", "KernelCache"),
    "warm": ("warm", "Warm"),
    "broken": ("broken", "Broken"),
}


@functools.cache
def fuzzer(name: str) -> Fuzzer:
    module, kind = _CLASSES[name]
    made: Fuzzer = getattr(importlib.import_module(f".{module}", __package__), kind)()
    return made
