"""When a run is over: at a time, when nobody is left, or when a condition holds."""

from __future__ import annotations

import math
import reprlib
from typing import TYPE_CHECKING, Any

from tropel.arguments import LATEST
from tropel.errors import ParameterError, is_finite
from tropel.event_queue import step_at
from tropel.quantities import is_number

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
    never = limit is None or (is_number(limit) and limit == math.inf)
    if not (never or (is_finite(limit) and 0 < limit <= LATEST)):  # type: ignore[operator]
        raise ParameterError(
            f"limit must be a positive number of seconds, infinite or at most {LATEST:g}, not {reprlib.repr(limit)}"
        )
    last = math.inf if never else step_at(float(limit), sim.dt)  # type: ignore[arg-type]
    if until is None:
        if limit is None:
            raise ParameterError("say when to stop: until= seconds, 'empty' or a predicate, or limit= seconds")
        return None, last
    if is_number(until):
        if not (is_finite(until) and 0 <= until <= LATEST):
            raise ParameterError(
                f"until must be a finite number of seconds that is not negative, at most {LATEST:g}, not {until!r}"
            )
        return None, min(last, step_at(float(until), sim.dt))
    if not (isinstance(until, str) and until == "empty") and (not callable(until) or isinstance(until, type)):
        raise ParameterError(
            f"until is a time in seconds, 'empty' or a predicate of the simulation, not {reprlib.repr(until)}"
        )
    if limit is None:
        raise ParameterError("give a limit in seconds too: a run until 'empty' may otherwise never end")
    return until, last
