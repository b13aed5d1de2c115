"""A moment: everything that a layer gets at one point of a step, frozen."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Floats
from tropel.agents.trails import Trails
from tropel.broad_phase import CellGrid
from tropel.contracts.courses import Course
from tropel.errors import ModelError
from tropel.foundation.reductions import ONE_PROCESS, Reductions
from tropel.world import World

if TYPE_CHECKING:
    from tropel.contracts.beliefs import Beliefs
    from tropel.contracts.layers import Environment
    from tropel.contracts.near import Near
    from tropel.world.ground import Ground

Rows = NDArray[np.int64]

#: No agent waits, which is the usual case.
NOBODY_WAITS = np.empty(0, dtype=np.bool_)


@dataclass(kw_only=True)
class Guidance:
    """What planners write and models read: a direction for each agent, the ground, and courses over time."""

    directions: Floats  #: (N, dim): a unit vector, shorter to go slower, zero to stand
    ground: Ground | None = None  #: for models that follow it
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)  #: new columns of planners that have memory
    attributes: dict[str, NDArray[Any]] = field(default_factory=dict)  #: new values of what a planner `sets`
    courses: list[Course] = field(default_factory=list)  #: where agents want to be later on; planners append theirs


@dataclass(frozen=True, kw_only=True)
class Decided:
    """What a decision writes: copies of the columns that it declares, which are swapped in afterwards."""

    attributes: dict[str, NDArray[Any]]  #: what it `sets`
    memory: dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """The frozen state of a step, and the agents a layer works on. Layers read all of it and change none of it."""

    state: AgentState  #: all agents; a layer writes only the rows of `members`, into `out`
    world: World
    members: Rows  #: ascending rows of the agents the layer works on, all alive
    groups: tuple[int, ...]  #: numbers of the groups it works on, even if they have no agents at present
    step: int  #: number of the step
    time: float  #: step · dt [s]
    dt: float  #: [s]
    seed: int  #: of the simulation; random numbers are functions of seed, purpose, id and step
    waiting: NDArray[np.bool_]  #: (N,): agents that have not started yet; empty if no agent waits
    cells: CellGrid  #: all agents by cell, whatever the environment; sorted on the first request
    reduce: Reductions  #: maxima, medians and counts over the whole crowd
    trails: Trails  #: where leaders have walked lately, for those that follow them
    given: Guidance | None = None
    sensed: Near | None = None
    beliefs: Beliefs | None = (
        None  #: what agents believe of doors, hazards, …; None while nobody's knowledge is limited
    )

    @property
    def guidance(self) -> Guidance:
        """What the planners wrote; not available to the planners themselves."""
        if self.given is None:
            raise ModelError("there is no guidance before planning: read it in steer or sense, not in direct")
        return self.given

    @property
    def directions(self) -> Floats:
        """Where each agent would like to go, according to its planner."""
        return self.guidance.directions

    @property
    def near(self) -> Near:
        """The agents, walls and obstacles nearby; only for models that declare `senses`."""
        if self.sensed is None:
            raise ModelError(
                "nothing has been sensed here: `near` is for steer of models that declare senses=True, not for planners"
            )
        return self.sensed

    @classmethod
    def of(
        cls,
        state: AgentState,
        world: World,
        *,
        environment: Environment | None = None,
        directions: Floats | None = None,
        members: Rows | None = None,
        step: int = 0,
        dt: float = 0.05,
        seed: int = 0,
        cells: CellGrid | None = None,
    ) -> Moment:
        """A moment of agents outside of any simulation, for tests and benchmarks; sensed if an environment is given."""
        if cells is None:
            cells = CellGrid.of(state, world, cell=None if environment is None else environment.declares.cell)
        moment = cls(
            state=state,
            world=world,
            members=np.arange(len(state), dtype=np.int64) if members is None else members,
            groups=tuple(range(max(len(state.group_names), int(state.group.max(initial=0)) + 1))),
            step=step,
            time=step * dt,
            dt=dt,
            seed=seed,
            waiting=NOBODY_WAITS,
            cells=cells,
            reduce=ONE_PROCESS,
            trails=Trails(state.dim),
            given=Guidance(directions=np.zeros_like(state.position) if directions is None else directions),
        )
        return moment if environment is None else replace(moment, sensed=environment.sense(moment))
