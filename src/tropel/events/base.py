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
    until: str = ""  #: the field that says when what is added is over by itself [s]
    even_gone: bool = False  #: whether it may have been removed before


#: A group that is there, or everybody.
GroupName = Annotated[str | None, Named("group")]


@readable_errors
class Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def check(self, sim: Simulation, step: int) -> None:
        """Raise when it can be seen beforehand that the event, all its names given, cannot be applied at a step."""

    def apply(self, sim: Simulation) -> None:
        raise TypeError(f"{type(self).__name__} does not say what it does")
