"""Not a fuzzer of tropel: cases that go wrong in every way that the frame must notice, one after the other."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tropel.errors import ScenarioError

from .outcome import Outcome, accepted, of_error

WAYS = ("works", "refuses", "says nothing", "raises", "aborts", "loops", "waits", "grows", "wants too much")


class Broken:
    name = "broken"
    seconds = 1.0
    share = 0.0

    def prepare(self, folder: Path) -> None:
        pass

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        (folder / "case.json").write_text(json.dumps(chance.random()))

    def run(self, folder: Path) -> Outcome:
        way = folder.name.removeprefix("broken_")
        try:
            self._go_wrong(WAYS[int(way)])
        except Exception as error:
            return of_error(error, ("case.json",))
        return accepted()

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        pass

    def _go_wrong(self, way: str) -> None:
        kept = []
        if way == "refuses":
            raise ScenarioError("case.json: is wrong")
        if way == "says nothing":
            raise ScenarioError("is wrong")
        if way == "raises":
            raise KeyError(way)
        if way == "aborts":
            os.abort()
        if way == "wants too much":
            np.ones(1 << 32)
        while way in ("loops", "grows", "waits"):
            kept += [np.ones(1 << 22)] if way == "grows" else []
            time.sleep(100.0 if way == "waits" else 0.0)
