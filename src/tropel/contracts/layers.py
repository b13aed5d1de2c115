"""The kinds of layers as base classes, each with one method to write and defaults for everything else.

class NorthEast(Planner):
    def direct(self, moment, out):
        out.directions[moment.members] = 0.6, 0.8

A layer may have behaviours that can be switched off and on during a run (`Behaviours`, which comes first). `Layer` has
what all kinds share; `Planner`, `Habit`, `Environment` and `Model` follow.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Column, Floats, Steered
from tropel.contracts.declarations import Declaration, EnvironmentDeclaration, ModelDeclaration
from tropel.contracts.moment import Guidance, Moment
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.world.periodic import nearest_images

if TYPE_CHECKING:
    from tropel.contracts.near import Near
    from tropel.world import World
    from tropel.world.ground import Ground
    from tropel.world.value_maps import ValueMap


_STORED = "switched_off"


class Behaviours(Mapping[str, bool]):
    """The behaviours of a layer by name, and whether they are on; all are at first.

    A behaviour is something agents do besides walking to their goal without walking through each other: avoiding full
    doors, shying away from fire at a distance, keeping with their family. Without it the crowd is poorer but just as
    safe, and a step may take less time. The event `SetBehaviour` switches behaviours, so a run that is repeated with
    its events is identical to the last bit.
    """

    def __init__(self, *names: str) -> None:
        self._on = dict.fromkeys(names, True)

    def __getitem__(self, name: str) -> bool:
        return self._on[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._on)

    def __len__(self) -> int:
        return len(self._on)

    def switch(self, name: str, on: bool) -> None:
        if name not in self._on:
            raise ParameterError(f"there is no behaviour '{name}'; {suggest(name, self._on)}")
        self._on[name] = bool(on)

    def begin(self) -> None:
        """Switch everything on."""
        self._on = dict.fromkeys(self._on, True)

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint stores: nothing while everything is on."""
        off = sorted(name for name, on in self._on.items() if not on)
        return {_STORED: np.array(off)} if off else {}

    def read(self, stored: Mapping[str, NDArray[Any]]) -> list[str]:
        """The behaviours that are off according to what `state` returned."""
        if _STORED not in stored:
            return []
        names = stored[_STORED]
        if names.ndim != 1 or not set(names.tolist()) <= set(self._on):
            known = ", ".join(self._on)
            raise CheckpointError(f"'{_STORED}' must be names of behaviours ({known}), not {names.tolist()!r:.60}")
        return list(names.tolist())

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.put_back(self.read(stored))

    def put_back(self, off: Iterable[str]) -> None:
        """Switch everything on except these."""
        self.begin()
        for name in off:
            self.switch(name, False)


class Layer(ABC):
    """What planners, environments and models have in common."""

    declares: Declaration = Declaration()
    parameters: Any = ""  #: part of digests: a resumed run must have the same
    behaviours: Mapping[str, bool] = {}  #: what can be switched off during a run, and whether it is on
    method: ClassVar[str]  #: the method to write

    def prepare(self, moment: Moment) -> None:
        """Called once, before the first step: planners first, then models, which can read `moment.guidance.ground`."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint must hold besides the columns of agents: arrays by name."""
        return {}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `state` returned. Check all of it before changing anything."""
        return

    def set_behaviour(self, name: str, on: bool) -> None:
        """Switch one of the `behaviours`."""
        raise ParameterError(f"{type(self).__name__} has no behaviour '{name}'")

    def offers(self) -> tuple[object, ...]:
        """What overlays and pictures may show of it (`tropel.contracts.offers`)."""
        return ()

    def in_force(self, state: AgentState, name: str) -> NDArray[Any]:
        """A parameter of all agents, with the layer's own value for agents that have none (nan)."""
        return state.columns[name]

    @property
    def all_columns(self) -> tuple[Column, ...]:
        """Parameters and memory."""
        return (*self.declares.columns, *self.declares.memory)

    @property
    def memory_names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.declares.memory)

    def describe(self) -> str:
        """Name and parameters, for digests and error messages."""
        kind = type(self)
        return f"{kind.__module__}.{kind.__qualname__}({self.parameters})"


class ValueMaps(Protocol):
    """Value maps that a planner publishes on the ground."""

    @property
    def names(self) -> list[str]: ...

    def add(self, name: str, value_map: ValueMap) -> None: ...

    def remove(self, name: str) -> None: ...


class Planner(Layer):
    """Decides where each agent would like to go."""

    declares: Declaration = Declaration()
    method = "direct"
    inner: tuple[Planner, ...] = ()  #: planners that this one uses
    value_maps: ValueMaps | None = None  #: the user's value maps, in planners that publish a ground

    @abstractmethod
    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write `out.directions` of the members: a unit vector, shorter to go slower, zero to stand."""

    def publish(self, moment: Moment, out: Guidance) -> None:
        """Update the ground for the members, whose model follows it, as `out.ground`."""
        raise ParameterError(f"{type(self).__name__} publishes no ground; plan with one that does, such as PathPlans")

    @classmethod
    def publishes_ground(cls) -> bool:
        return cls.publish is not Planner.publish

    @property
    def ground(self) -> Ground | None:
        """What it has published so far."""
        return None


class Habit(Layer):
    """Something agents do with their planned direction before their model steers: keep right, stay together."""

    method = "adjust"
    binds: ClassVar[tuple[str, ...]] = ()  #: the columns, `family` or `leader`, that agents act on by this habit

    @abstractmethod
    def adjust(self, moment: Moment, directions: Floats) -> None:
        """Change the rows of the members in `directions`, which starts as a copy of the planned directions.

        As planned directions they are unit vectors, shorter to go slower, zero to stand.
        """

    def is_idle(self, moment: Moment) -> bool:
        """Whether there is nothing to do in this step, such as keeping away from fire where there is none."""
        return False


class Environment(Layer):
    """Finds which agents, walls and obstacles are near each agent."""

    declares: EnvironmentDeclaration = EnvironmentDeclaration()
    method = "sense"
    lists_are_read = False  #: whether a model declares that it reads `near.lists`; the engine says so before `prepare`

    @abstractmethod
    def sense(self, moment: Moment) -> Near:
        """What is near each agent now. The members are the agents whose neighbours will be read."""

    def tally(self) -> dict[str, int | str]:
        """What it has done so far, by name, for the summary of a run."""
        return {}

    def pairs_within(
        self, purpose: str, state: AgentState, before: Floats, extent: Floats
    ) -> NDArray[np.uint32] | None:
        """Pairs of rows (P, 2) whose extents [m] reached each other when agents were at `before` (N, dim), each once.

        That is |xi - xj| ≤ extent[i] + extent[j], walls or not; a few more pairs do no harm. An environment that knows
        them from what it keeps overrides this, and returns None if it was last asked to sense agents that were
        elsewhere; others leave it to the cells. It is called after agents have moved, in every step with the same
        `purpose`, such as "collisions", for which similar extents may be expected.
        """
        return None

    @classmethod
    def knows_pairs(cls) -> bool:
        """Whether the class overrides `pairs_within`, so that it is worth asking."""
        return cls.pairs_within is not Environment.pairs_within

    def known_to(self, row: int, state: AgentState, world: World) -> NDArray[np.int64]:
        """Rows of the agents that the agent in a row knows of now, ascending, without changing anything; for displays.

        Environments in which agents do not know of everybody within their sense radius override it.
        """
        offset = nearest_images(state.position - state.position[row], world.period)
        near = (offset**2).sum(axis=1) <= state.sense_radius[row] ** 2
        near[row] = False
        return np.flatnonzero(near)


class Model(Layer):
    """Decides how each agent moves."""

    declares: ModelDeclaration = ModelDeclaration()
    method = "steer"

    @abstractmethod
    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity, heading and memory of the members into `out`, which starts as a copy of the state.

        Models that declare `moves=Moves.ITSELF` write positions instead of velocities, `Moves.EXACTLY` both. A model
        that reacts to collisions reads the column `collided`. It is 1 if a body overlapped another body or an obstacle
        during the last step, whatever the model.
        """

    @property
    def longest_step(self) -> float:
        """How far its agents may go in one step [m]."""
        return math.inf

    def settled(self, moment: Moment, before: Floats, wanted: Floats) -> None:
        """Called with what really happened: after contact and collisions, and after events that moved agents.

        The state is the one after the move. `before` is where agents were, and `wanted` where they wanted to be. This
        is for models that keep records of their own, such as those of a physics engine.
        """
        return

    @classmethod
    def is_told(cls) -> bool:
        """Whether the class overrides `settled`, so that it must be called."""
        return cls.settled is not Model.settled
