"""What a simulation is like now: everything that can be read of it without changing anything."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tropel.agents.population import Population
from tropel.agents.state import AgentState
from tropel.contact.collisions import CollisionLog, CollisionWatch
from tropel.contracts import Environment, Moment, Near, Planner
from tropel.contracts.layers import Layer, ValueMaps
from tropel.encounters.watch import EncounterWatch
from tropel.errors import ParameterError
from tropel.run.group_layers import GroupLayers
from tropel.run.stages import Stages
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
        return self.environment.sense(self._stages.moment())

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
