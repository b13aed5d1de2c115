"""What all events have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import BaseModel, ConfigDict

from tropel.errors import readable_errors

if TYPE_CHECKING:
    from tropel.simulation import Simulation


@dataclass(frozen=True)
class Named:
    """Marks a field of an event that holds the name of something, or names as keys; `events/names.py` checks them."""

    kind: str  #: of what: "door", "obstacle", …
    does: Literal["needs", "adds", "removes"] = "needs"
    until: str = ""  #: the field with the time [s] at which what is added ends by itself
    even_gone: bool = False  #: whether it may have been removed already


#: An existing group, or None for all agents.
GroupName = Annotated[str | None, Named("group")]


@readable_errors
class Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def check(self, sim: Simulation, step: int) -> None:
        """Raise if it is clear beforehand that the event cannot be applied at a step; its names are checked already."""

    def apply(self, sim: Simulation) -> None:
        raise TypeError(f"{type(self).__name__} does not define apply, so it does nothing")
