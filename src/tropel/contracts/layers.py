"""The three kinds of layers, as base classes: one method to write, everything else has a default.

class NorthEast(Planner):
    def direct(self, moment, out):
        out.directions[moment.members] = 0.6, 0.8
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

if TYPE_CHECKING:
    from tropel.contracts.near import Near
    from tropel.world.ground import Ground
    from tropel.world.value_maps import ValueMap


# Behaviours of a layer that can be switched off and on while a simulation runs.
#
# A behaviour is something agents do besides going where they want to without walking through anybody: shunning full
# doors, shying away from fire at a distance, keeping with their family. Without it the crowd is poorer, but as safe,
# and a step may take less time. Switches are set by the event `SetBehaviour`, so a run that is repeated with its events
# is the same to the last bit.


_STORED = "switched_off"


class Behaviours(Mapping[str, bool]):
    """The behaviours of a layer by name, and whether they are on; all are at first."""

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
        """The behaviours that are off by what `state` gave."""
        if _STORED not in stored:
            return []
        names = stored[_STORED]
        if names.ndim != 1 or not set(names.tolist()) <= set(self._on):
            known = ", ".join(self._on)
            raise CheckpointError(
                f"'{_STORED}' in it must be names of behaviours ({known}), not {names.tolist()!r:.60}"
            )
        return list(names.tolist())

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        self.put_back(self.read(stored))

    def put_back(self, off: Iterable[str]) -> None:
        """Switch everything on but these."""
        self.begin()
        for name in off:
            self.switch(name, False)


class Layer(ABC):
    """What planners, environments and models have in common."""

    declares: Declaration = Declaration()
    parameters: Any = ""  #: shown in digests: a resumed run must have the same
    behaviours: Mapping[str, bool] = {}  #: what can be switched off while it runs, and whether it is on
    method: ClassVar[str]  #: the one to write

    def prepare(self, moment: Moment) -> None:
        """Called once, before the first step. Planners come first, then models, which find `moment.guidance.ground`."""
        return

    def state(self) -> dict[str, NDArray[Any]]:
        """What a checkpoint must hold beyond columns of agents: arrays by name."""
        return {}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        """Put back what `state` gave. Check all of it before anything is changed."""
        return

    def set_behaviour(self, name: str, on: bool) -> None:
        """Switch one of the `behaviours`."""
        raise ParameterError(f"{type(self).__name__} has no behaviour '{name}'")

    def offers(self) -> tuple[object, ...]:
        """What overlays and pictures may show of it (`tropel.contracts.offers`)."""
        return ()

    def in_force(self, state: AgentState, name: str) -> NDArray[Any]:
        """A parameter of all agents, with the layer's own value where agents have none of their own (nan)."""
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
    """Says where each agent would like to go."""

    declares: Declaration = Declaration()
    method = "direct"
    inner: tuple[Planner, ...] = ()  #: planners that this one asks
    value_maps: ValueMaps | None = None  #: maps of the user, in planners that publish a ground

    @abstractmethod
    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write `out.directions` of the members: a unit vector, shorter to go slower, zero to stand."""

    def publish(self, moment: Moment, out: Guidance) -> None:
        """Bring the ground up to date for the members, whose model follows it, as `out.ground`."""
        raise ParameterError(f"{type(self).__name__} publishes no ground; plan with one that does, such as PathPlans")

    @classmethod
    def publishes_ground(cls) -> bool:
        return cls.publish is not Planner.publish

    @property
    def ground(self) -> Ground | None:
        """What it has published so far."""
        return None


class Environment(Layer):
    """Says who and what is near."""

    declares: EnvironmentDeclaration = EnvironmentDeclaration()
    method = "sense"

    @abstractmethod
    def sense(self, moment: Moment) -> Near:
        """Who and what is near everybody now. Members are those who will ask."""


class Model(Layer):
    """Decides how each agent moves."""

    declares: ModelDeclaration = ModelDeclaration()
    method = "steer"

    @abstractmethod
    def steer(self, moment: Moment, out: Steered) -> None:
        """Write velocity, heading and memory of the members into `out`, which begins as a copy of the state.

        Models that declare `moves=Moves.ITSELF` write positions instead of velocities, `Moves.EXACTLY` both. A model
        that reacts to collisions reads the column `collided`: 1 where a body overlapped another or an obstacle during
        the last step, whatever the model.
        """

    @property
    def longest_step(self) -> float:
        """How far its agents may go in one step at most [m]."""
        return math.inf

    def settled(self, moment: Moment, before: Floats, wanted: Floats) -> None:
        """Called after contact and collisions, and after events that moved agents: what has really happened.

        The state is that after the move, `before` where everybody was and `wanted` where everybody wanted to be. For
        models that keep books of their own, such as those of a physics engine.
        """
        return

    @classmethod
    def is_told(cls) -> bool:
        """Whether `settled` is written, so that somebody wants to be told."""
        return cls.settled is not Model.settled
