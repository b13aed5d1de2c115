"""The stages of a step from planning to settling: what each of them is given, and what becomes of what it writes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tropel._kernels.bulk import clear
from tropel._kernels.philox import random_key
from tropel.agents.state import Steered
from tropel.contact.integrate import integrate
from tropel.contracts import Guidance, Moment, Near
from tropel.contracts.moment import NOBODY_WAITS
from tropel.errors import ModelError
from tropel.phases import Phase
from tropel.settling import Settling

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class Stages:
    """Calls the layers of a simulation, stage by stage, and keeps the memory that they write into."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.guidance = Guidance(directions=np.empty((0, sim.world.dim)))  #: what planners said last
        self._steered = Steered.like(sim.agents, sim.layers.model_memory)
        self._settling = Settling(sim.layers.told)
        self._yield_key = random_key(sim.seed, "who gives way")
        sim.layers.prepare(self.moment(), self.guidance)

    def moment(self) -> Moment:
        """Everybody as they are now, before anything is planned or sensed."""
        sim = self._sim
        waiting = sim.agents.start_time > sim.time + 1e-9 * sim.dt
        sim.cells.begin(sim.agents, sim.world)
        groups = tuple(range(len(sim.groups)))
        return Moment(
            state=sim.agents,
            world=sim.world,
            members=sim.population.members(groups),
            groups=groups,
            step=sim.step_number,
            time=sim.time,
            dt=sim.dt,
            seed=sim.seed,
            waiting=waiting if np.count_nonzero(waiting) else NOBODY_WAITS,
            cells=sim.cells,
            reduce=sim.reduce,
        )

    def plan(self) -> Moment:
        """Ask the planners; the moment that follows has their guidance."""
        sim, moment, guidance = self._sim, self.moment(), self.guidance
        self._settling.begin(sim.agents)
        if sim.layers.somebody_is_directed:
            if guidance.directions.shape != sim.agents.position.shape:
                guidance.directions = np.zeros_like(sim.agents.position)
            clear(guidance.directions)
        guidance.memory = {name: sim.agents.columns[name].copy() for name in sim.layers.planner_memory}
        for planning in sim.layers.plannings:
            planning.plan(self._for_groups(moment, planning.groups), guidance)
        sim.agents.columns |= guidance.memory
        if sim.layers.somebody_is_directed and len(moment.waiting):
            guidance.directions[moment.waiting] = 0.0
        return replace(moment, given=guidance)

    def _for_groups(self, moment: Moment, groups: tuple[int, ...]) -> Moment:
        return replace(moment, members=self._sim.population.members(groups), groups=groups)

    def sense(self, phase: Phase, moment: Moment) -> Moment:
        """Ask the environment, if any model of a phase wants to know who is near."""
        sim = self._sim
        sim.cells.begin(sim.agents, sim.world)
        if not phase.senses:
            return replace(moment, sensed=None)
        near = sim.environment.sense(moment)
        if not isinstance(near, Near):
            raise ModelError(
                f"{type(sim.environment).__name__}.sense returned {type(near).__name__}; it must return a Near, of a "
                f"class that extends tropel.contracts.Near"
            )
        return replace(moment, sensed=near)

    def steer(self, phase: Phase, moment: Moment) -> None:
        """Ask the models of a phase."""
        sim = self._sim
        if len(sim.agents) > len(self._steered):
            self._steered = Steered.like(sim.agents, sim.layers.model_memory)
        else:
            self._steered.shrink(len(sim.agents))
            self._steered.begin(sim.agents, places=sim.layers.somebody_moves_itself)
        for model, groups in phase.models:
            model.steer(self._for_groups(moment, groups), self._steered)

    def integrate(self, phase: Phase, moment: Moment) -> None:
        """Move everybody of a phase."""
        sim, moves = self._sim, self._sim.layers.moves(phase, self._sim.agents)
        self._settling.note(sim.agents, self._steered, moves, sim.dt)
        if sim.collision_watch is not None and phase is sim.layers.phases[-1] and sim.layers.somebody_may_collide:
            # Collisions are looked for afterwards, from where everybody was before.
            sim.cells.sort_now()
        bodies = sim.layers.bodies(phase, moment, self._yield_key)
        integrate(sim.agents, self._steered, sim.world, sim.dt, moves=moves, bodies=bodies, reduce=sim.reduce)

    def note_collisions(self) -> None:
        """Look for collisions in the step that has just been made."""
        sim = self._sim
        if sim.collision_watch is not None and sim.layers.somebody_may_collide:
            sim.collision_watch.look(sim.agents, sim.cells.cell_list, sim.world, step=sim.step_number - 1, dt=sim.dt)

    def settle(self) -> None:
        """Tell the models that want to know what has become of the step."""
        if self._settling.told:
            self._settling.tell(replace(self.moment(), given=self.guidance), self._sim.population.members)

    def begin_to_move(self) -> None:
        """Somebody is about to be moved by an event; call `settle` afterwards."""
        self._settling.begin(self._sim.agents)
