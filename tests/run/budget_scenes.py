"""A simulation whose behaviours cost what a test says, on a clock that a test holds in its hands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import shapely
from numpy.typing import NDArray

from tropel import Budget, Direct, Group, Simulation, World
from tropel.contracts import Guidance, Moment
from tropel.contracts.layers import Behaviours

NAMES = ("a", "b", "c")


class Juggling(Direct):
    """A planner that can do several things at once. People walk a little slower for each, so that a switch shows."""

    def __init__(self) -> None:
        super().__init__()
        self.behaviours = Behaviours(*NAMES)

    def set_behaviour(self, name: str, on: bool) -> None:
        self.behaviours.switch(name, on)

    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.directions[moment.members] *= 1.0 - 0.1 * sum(self.behaviours.values())

    def state(self) -> dict[str, NDArray[Any]]:
        return self.behaviours.state()

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.behaviours.restore(stored)


def juggler() -> Simulation:
    world = World(shapely.box(0, 0, 2000, 4), exits={"out": shapely.box(1999, 0, 2000, 4)})
    people = Group("people", positions=[(1.0, 1.0), (1.0, 3.0)])
    return Simulation(world, people, planning=Juggling(), habits=[], dt=0.1)


class Clock:
    """Wall time in which each step takes `base` and what its behaviours cost, in milliseconds."""

    def __init__(self, sim: Simulation, base: float | Callable[[int], float], **costs: float) -> None:
        self.sim, self.base, self.costs = sim, base, costs
        self.now = 0.0
        self._inside = False

    def __call__(self) -> float:
        if self._inside:
            self.now += 1e-3 * self.step_takes()
        self._inside = not self._inside
        return self.now

    def step_takes(self) -> float:
        base = self.base(self.sim.step_number) if callable(self.base) else self.base
        return base + sum(cost for name, cost in self.costs.items() if self.sim.behaviours[name])


def budget(clock: Callable[[], float], **more: Any) -> Budget:
    """100 steps per second, so 10 ms each; windows of 4 steps."""
    return Budget(**{"steps_per_second": 100, "window": 4, "settle": 1, "order": NAMES, "clock": clock, **more})
