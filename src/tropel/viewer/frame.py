"""The state that is drawn: copies, taken between two steps, so that drawing never touches a running step.

A frame knows nothing about the engine. Recorded runs can be turned into frames as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from tropel.simulation import Simulation

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Discs:
    """Round things by name, with position and radius."""

    names: Sequence[str] = ()
    position: Floats  #: (N, dim) [m]
    radius: Floats  #: [m]
    kinds: Sequence[str] = ()  #: of hazards, such as "fire"
    outer: Floats | None = None  #: of hazards: the distance up to which they are avoided [m]


def no_discs(dim: int) -> Discs:
    return Discs(position=np.empty((0, dim)), radius=np.empty(0))


@dataclass(frozen=True, eq=False, kw_only=True)
class Frame:
    """Everything that is drawn at one moment."""

    step: int
    time: float  #: [s]
    id: NDArray[np.int64]
    position: Floats
    heading: Floats
    radius: Floats
    group: NDArray[np.int32]
    dead: NDArray[np.bool_]
    value: Floats | None = None  #: what agents are coloured by, unless by group
    doors: dict[str, bool] = field(default_factory=dict)  #: name → whether it is open
    exits: dict[str, bool] = field(default_factory=dict)
    obstacles: Discs
    hazards: Discs
    targets: Discs
    left: int = 0  #: number of agents that have left so far
    died: int = 0

    @property
    def living(self) -> int:
        return int(len(self.id) - self.dead.sum())


def frame_of(sim: Simulation, *, value: Floats | None = None) -> Frame:
    """The current state of the simulation; call it only between two steps."""
    agents, world = sim.agents, sim.world
    goals = world.goals()
    target_rows = [world.goal_numbers[name] for name in world.targets]
    hazards = world.hazards
    return Frame(
        step=sim.step_number,
        time=sim.time,
        id=agents.id.copy(),
        position=agents.position.copy(),
        heading=agents.heading.copy(),
        radius=agents.radius.copy(),
        group=agents.group.copy(),
        dead=agents.dead != 0,
        value=value,
        doors={name: door.open for name, door in world.doors.items()},
        exits={name: exit.open for name, exit in world.exits.items()},
        obstacles=Discs(
            names=list(world.obstacles.names),
            position=world.obstacles.position.copy(),
            radius=world.obstacles.radius.copy(),
        ),
        hazards=Discs(
            names=list(hazards.names),
            position=hazards.position.copy(),
            radius=hazards.inner.copy(),
            kinds=[hazards[name].kind for name in hazards.names],
            outer=hazards.outer.copy(),
        ),
        targets=Discs(
            names=list(world.targets),
            position=goals.position[target_rows].copy(),
            radius=np.array([target.radius for target in world.targets.values()]),
        ),
        left=sim.population.departed,
        died=int(agents.dead.sum()),
    )


def in_space(points: Any) -> NDArray[np.float32]:
    """Points in the plane or in space as (N, 3); a plane is at height 0."""
    points = np.asarray(points, dtype=np.float32)
    if points.shape[-1] == 3:
        return points
    return np.concatenate([points, np.zeros((*points.shape[:-1], 1), dtype=np.float32)], axis=-1)
