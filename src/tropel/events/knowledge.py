"""Events for knowledge: announcements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tropel.errors import ParameterError
from tropel.events.base import Event, GroupName, Named
from tropel.foundation.field_types import NotNegativeWhole

if TYPE_CHECKING:
    from tropel.simulation import Simulation

_THINGS = ("door", "exit", "hazard", "obstacle", "target")


class Announce(Event):
    """Tell agents whose knowledge is limited what a door, exit, hazard, obstacle or target is like.

    Without `state` they are told the truth. All are told, or those that meet all conditions.
    """

    kind: Literal["announce"] = "announce"
    door: Annotated[str | None, Named("door")] = None
    exit: Annotated[str | None, Named("exit")] = None
    hazard: Annotated[str | None, Named("hazard", even_gone=True)] = None
    obstacle: Annotated[str | None, Named("obstacle", even_gone=True)] = None
    target: Annotated[str | None, Named("target", even_gone=True)] = None
    state: Annotated[
        Literal["open", "shut", "there", "gone"] | None,
        Field(description="what they are told, true or not; as it is, if left out"),
    ] = None
    group: GroupName = None
    ids: Annotated[tuple[NotNegativeWhole, ...] | None, Field(description="of the agents that are meant")] = None
    region: Annotated[str | None, Named("region")] = None

    @property
    def about(self) -> str:
        """The thing that is announced, such as "door main"."""
        named = [(kind, getattr(self, kind)) for kind in _THINGS if getattr(self, kind) is not None]
        if len(named) != 1:
            raise ParameterError(f"announce: name exactly one of {', '.join(_THINGS)}, not {len(named)}")
        return " ".join(named[0])

    def check(self, sim: Simulation, step: int) -> None:
        kind = self.about.partition(" ")[0]
        words = ("open", "shut") if kind in ("door", "exit") else ("there", "gone")
        if self.state is not None and self.state not in words:
            raise ParameterError(f"announce: a {kind} is {words[0]} or {words[1]}, not {self.state}")
        known = sim.knowledge.told
        if self.group is not None and self.group not in known:
            raise ParameterError(f"announce: group '{self.group}' knows everything anyway; leave the event out")

    def apply(self, sim: Simulation) -> None:
        sim.announce(self.about, self.state, group=self.group, ids=self.ids, region=self.region)
