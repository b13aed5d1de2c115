"""The three kinds of layers, as base classes: one method to write, everything else has a default.

class NorthEast(Planner):
    def direct(self, moment, out):
        out.directions[moment.members] = 0.6, 0.8
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from numpy.typing import NDArray

from tropel.agents.state import AgentState, Column, Floats, Steered
from tropel.contracts.declarations import Declaration, EnvironmentDeclaration, ModelDeclaration
from tropel.contracts.moment import Guidance, Moment
from tropel.errors import ParameterError

if TYPE_CHECKING:
    from tropel.contracts.near import Near
    from tropel.world.terrain import Terrain
    from tropel.world.user_layers import Layer as UserLayer


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
        """What overlays and pictures may show of it (`tropel.offers`)."""
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


class GroundLayers(Protocol):
    """Layers of the user's own that lie on the ground."""

    @property
    def names(self) -> list[str]: ...

    def add(self, name: str, layer: UserLayer) -> None: ...

    def remove(self, name: str) -> None: ...


class Planner(Layer):
    """Says where each agent would like to go."""

    declares: Declaration = Declaration()
    method = "direct"
    inner: tuple[Planner, ...] = ()  #: planners that this one asks
    ground_layers: GroundLayers | None = None  #: what users may lay on the ground, where it is laid

    @abstractmethod
    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write `out.directions` of the members: a unit vector, shorter to go slower, zero to stand."""

    def lay(self, moment: Moment, out: Guidance) -> None:
        """Bring what lies on the ground up to date for the members, whose model follows that, as `out.ground`."""
        raise ParameterError(f"{type(self).__name__} lays nothing on the ground; plan with one that does, as PathPlans")

    @classmethod
    def lays_ground(cls) -> bool:
        return cls.lay is not Planner.lay

    @property
    def ground(self) -> Terrain | None:
        """What it has laid so far."""
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
