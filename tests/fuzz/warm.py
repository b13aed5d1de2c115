"""Not a fuzzer: the scenes that all others start from, unchanged, so that their kernels are there."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from tropel.scenario import load_scenario
from tropel.scenario.execute import execute

from .bounded_run import BoundedRun
from .outcome import Outcome, accepted


class Warm:
    name = "warm"
    seconds = 900.0
    share = 0.0

    def prepare(self, folder: Path) -> None:
        pass

    def make(self, chance: random.Random, folder: Path, prepared: Path) -> None:
        for file in Path(__file__).with_name("scenarios").glob("*.toml"):
            shutil.copyfile(file, folder / file.name)

    def run(self, folder: Path) -> Outcome:
        for file in sorted(folder.glob("*.toml")):
            execute(load_scenario(file), out=folder / file.stem, threads=1, progress=False, watch=BoundedRun())
        shutil.rmtree(folder)
        return accepted()

    def shrink(self, folder: Path, still: Callable[[], bool]) -> None:
        pass
