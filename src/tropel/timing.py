"""Wall-clock time per stage of the step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter

#: The stages of `Simulation.step`, in their order.
STAGES = ("events", "planning", "environment", "local", "integrate", "collisions", "exits", "record")


class Timing:
    """Seconds spent in each stage so far: `with timing("planning"): …`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self.stage = ""  #: the current or last stage

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        self.stage = stage
        begin = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] += perf_counter() - begin

    @property
    def total(self) -> float:
        return sum(self.seconds.values())
