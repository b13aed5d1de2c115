"""What all events have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from tropel.agents.distributions import Distribution
from tropel.errors import ParameterError, readable_errors, suggest
from tropel.field_types import Finite

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: A parameter as events and files give it.
Value = Finite | Distribution


@readable_errors
class Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def check(self, sim: Simulation) -> None:
        """Raise when it can be seen beforehand that the event cannot be applied."""

    def apply(self, sim: Simulation) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it does")


def known(name: str, names: Any, what: str) -> None:
    if name not in names:
        raise ParameterError(f"there is no {what} '{name}'; {suggest(name, names)}")


def known_group(name: str | None, sim: Simulation) -> None:
    if name is not None:
        known(name, sim.groups, "group")
