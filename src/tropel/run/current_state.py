"""What a simulation is like now: everything that can be read of it without changing anything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.population import Population
from tropel.agents.squads.status import SquadsNow
from tropel.agents.state import AgentState
from tropel.agents.tasks.board import TaskBoard
from tropel.contact.collisions import CollisionLog, CollisionWatch
from tropel.contracts import Environment, Moment, Near, Planner
from tropel.contracts.layers import Layer, ValueMaps
from tropel.encounters.watch import EncounterWatch
from tropel.errors import ParameterError
from tropel.knowing.model import SharedKnowledge
from tropel.run.group_layers import GroupLayers
from tropel.run.stages import Stages, in_view
from tropel.world.ground import Ground


class CurrentState:
    """The part of a simulation that answers questions."""

    population: Population
    layers: GroupLayers
    dt: float  #: length of a step [s]
    step_number: int
    collision_watch: CollisionWatch | None
    encounter_watch: EncounterWatch | None
    _stages: Stages

    @property
    def agents(self) -> AgentState:
        """The agents as a struct of arrays."""
        return self.population.state

    @property
    def squads(self) -> SquadsNow:
        """The squads by name: who commands them, what they do, and what they have searched."""
        return SquadsNow(self.population, self.dt)

    @property
    def groups(self) -> list[str]:
        return self.population.groups

    @property
    def planners(self) -> dict[str, Planner]:
        """Which planner each group follows."""
        return dict(zip(self.groups, self.layers.planners, strict=False))

    @property
    def directions(self) -> NDArray[np.float64]:
        """The planned directions of the last step, a row for each agent then present; none if all follow the ground."""
        return self._stages.guidance.directions

    @property
    def ground(self) -> Ground | None:
        """The ground that a planner has published; None if no group follows it."""
        return self.layers.ground

    def moment(self) -> Moment:
        """What layers would get now: for tests, pictures and your own models."""
        return replace(self._stages.moment(), given=self._stages.guidance)

    def sense(self) -> Near:
        """What is near each agent now."""
        moment = self._stages.moment()
        return in_view(self.environment.sense(moment), moment)

    @property
    def environment(self) -> Environment:
        """The layer that finds what is near."""
        return self.layers.environment

    @property
    def time(self) -> float:
        """Simulated time [s]: the number of steps times dt, never accumulated."""
        return self.step_number * self.dt

    @property
    def collisions(self) -> CollisionLog:
        """Every collision of bodies so far: which bodies, when, how deep."""
        if self.collision_watch is None:
            raise ParameterError("collisions are not watched here; build the simulation with watch_collisions=True")
        return self.collision_watch.log

    @property
    def encounters(self) -> EncounterWatch:
        """Who came near whom, touched and left, and when: `table()`, `to_csv`, `to_parquet`, `subscribe(function)`."""
        if self.encounter_watch is None:
            raise ParameterError("encounters are not watched here; call sim.watch_encounters(distance=1.5) first")
        return self.encounter_watch

    def task_board(self) -> TaskBoard:
        """What there is to work on: `table(dt)`, `parts_table(dt)`, `counts()`."""
        if self.population.tasks is None:
            raise ParameterError(
                "there are no tasks here; give some, if need be none, as  Simulation(…, tasks={})  (in files [tasks])"
            )
        return self.population.tasks

    @property
    def tasks(self) -> dict[str, NDArray[Any] | list[str]]:
        """A row for each task: `task`, `type`, when it was `added`, `begun`, `done` or `dropped` [s], nan if never."""
        return self.task_board().table(self.dt)

    @property
    def task_parts(self) -> dict[str, NDArray[Any] | list[str]]:
        """Who was sent to which task: `task`, `id`, when `assigned`, `arrived`, `ended` [s], and `how` it ended."""
        return self.task_board().parts_table(self.dt)

    def is_put_out(self, hazard: str) -> bool:
        """Whether a hazard went out because somebody did the task of putting it out."""
        board = self.population.tasks
        return board is not None and board.has_put_out(hazard)

    @property
    def knowledge(self) -> SharedKnowledge:
        """What agents know of the changing world: `known_by(id)`, `who_knows("main", "shut")`, `log`."""
        if self.layers.knowledge is None:
            raise ParameterError(
                "everybody knows the world as it is here; build the simulation with knowledge=Knowledge(…) first"
            )
        return self.layers.knowledge

    def all_layers(self) -> list[Layer]:
        """Every layer once, in a fixed order."""
        return self.layers.all()

    def value_maps(self) -> ValueMaps:
        """The value maps that a planner publishes."""
        return self.layers.value_maps()

    @property
    def behaviours(self) -> dict[str, bool]:
        """Behaviours of layers that can be switched off, and whether they are on."""
        return self.layers.behaviours
