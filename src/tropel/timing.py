"""Wall-clock time per stage of the step."""

from __future__ import annotations

from time import perf_counter

#: The stages of `Simulation.step`, in their order.
STAGES = ("events", "planning", "environment", "local", "integrate", "collisions", "settled", "exits", "record")


class _Stage:
    """The clock of one stage."""

    def __init__(self, timing: Timing, name: str) -> None:
        self._timing, self._name = timing, name
        self._begin = 0.0

    def __enter__(self) -> None:
        self._timing.stage = self._name
        self._begin = perf_counter()

    def __exit__(self, *error: object) -> None:
        self._timing.seconds[self._name] += perf_counter() - self._begin


class Timing:
    """Seconds spent in each stage so far: `with timing("planning"): …`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self.stage = ""  #: the current or last stage
        self._clocks = {name: _Stage(self, name) for name in STAGES}

    def __call__(self, stage: str) -> _Stage:
        return self._clocks[stage]

    @property
    def total(self) -> float:
        return sum(self.seconds.values())
