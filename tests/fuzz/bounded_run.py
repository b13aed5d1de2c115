"""A run of a few steps, after each of which what is promised of all runs is looked at."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.run.loop import StopRule, Summary
from tropel.simulation import Simulation
from wall_crossings import closed_lines, crossings

#: A run ends after so many steps, or when this many agents times steps are done.
STEPS, AGENT_STEPS = 40, 60_000
#: More agents or walls than this are not compared: it would take longer than the step.
_COMPARED = 500


class BrokenPromiseError(Exception):
    """Positions that are no numbers, or an agent beyond a wall."""


class BoundedRun:
    """Takes the place of `Simulation.run` in `execute`."""

    def __init__(self) -> None:
        self.sim: Simulation | None = None

    def __call__(self, sim: Simulation, *, until: Any, limit: float, build: Any, **files: Any) -> Summary:
        self.sim = sim
        self.rule = StopRule(sim, until, limit)
        self.first = sim.step_number
        self.agent_steps = 0
        self.before = self._seen()
        return sim.run(until=self._is_over, limit=limit, progress=False, **files)

    def _is_over(self, sim: Simulation) -> bool:
        self._look(sim)
        self.agent_steps += len(sim.agents)
        done = sim.step_number - self.first
        return done >= STEPS or self.agent_steps >= AGENT_STEPS or self.rule.why_stop() is not None

    def _look(self, sim: Simulation) -> None:
        if not np.isfinite(sim.agents.position).all():
            raise BrokenPromiseError("nan")
        ids, places, walls = self.before
        self.before = self._seen()
        now, after, walls_now = self.before
        if walls is None or walls_now is None or not shapely.equals_exact(walls, walls_now):
            return  # a door that closes moves those who stand in it aside
        both = np.intersect1d(ids, now)
        first, then = places[np.searchsorted(ids, both)], after[np.searchsorted(now, both)]
        if len(both) and crossings(first, then, walls):
            raise BrokenPromiseError("wall crossed")

    def _seen(self) -> tuple[NDArray[np.int64], NDArray[np.float64], Any]:
        sim = self.sim
        assert sim is not None
        walls = None
        if len(sim.agents) <= _COMPARED and sim.world.dim == 2 and not sim.world.period.any():
            walls = closed_lines(sim.world)
            if shapely.get_num_coordinates(walls) > _COMPARED:
                walls = None
        return sim.agents.id.copy(), sim.agents.position.copy(), walls
