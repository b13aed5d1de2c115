"""When a run is over: at a time, when nobody is left, or when a condition holds."""

from __future__ import annotations

import math
from numbers import Real
from typing import TYPE_CHECKING, Any

from tropel.errors import ParameterError
from tropel.event_queue import step_at

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class StopRule:
    """`until` is a time [s], "empty" or a predicate of the simulation; `limit` [s] ends the run in any case."""

    def __init__(self, sim: Simulation, until: Any, limit: float | None) -> None:
        self.sim = sim
        self.until, self.last_step = _checked(sim, until, limit)

    def why_stop(self) -> str | None:
        """Why the run is over now; None when it goes on."""
        sim = self.sim
        if self.until == "empty":
            if (
                sim.population.living == 0
                and not sim.population.more_will_come(sim.time)
                and not sim.events.adds_agents()
                and not (sim.replayed is not None and sim.replayed.adds_agents(sim.step_number))
            ):
                return "everybody has left" if len(sim.agents) == 0 else "nobody alive is left"
        elif self.until is not None and self.until(sim):
            return "the condition to stop holds"
        if sim.step_number >= self.last_step:
            return "the time is up"
        return None


def _checked(sim: Simulation, until: Any, limit: float | None) -> tuple[Any, float]:
    if limit is not None and not limit > 0:
        raise ParameterError(f"limit must be a positive number of seconds, not {limit!r}")
    last = math.inf if limit is None or math.isinf(limit) else step_at(limit, sim.dt)
    if isinstance(until, Real):
        until = float(until)
    if until is None or isinstance(until, float):
        if until is None and limit is None:
            raise ParameterError("say when to stop: until= seconds, 'empty' or a predicate, or limit= seconds")
        if until is not None and not (math.isfinite(until) and until >= 0):
            raise ParameterError(f"until must be a finite number of seconds that is not negative, not {until!r}")
        return None, min(last, math.inf if until is None else step_at(until, sim.dt))
    if until != "empty" and not callable(until):
        raise ParameterError(f"until is a time in seconds, 'empty' or a predicate of the simulation, not {until!r}")
    if limit is None:
        raise ParameterError("give a limit in seconds too: a run until 'empty' may otherwise never end")
    return until, last
