"""Events for stages: another list of things to do, and signals that people wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from tropel.agents.squads.squad import Formation
from tropel.agents.stages.stage import StageField
from tropel.errors import ParameterError
from tropel.events.base import Event, GroupName, Named
from tropel.foundation.field_types import NotNegativeWhole

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class SetStages(Event):
    """Give a group, agents by their ids, or all agents another list of stages; they begin with its first one."""

    kind: Literal["set_stages"] = "set_stages"
    stages: Annotated[tuple[StageField, ...], Named("goal"), Field(min_length=1)]
    group: GroupName = None
    ids: Annotated[tuple[NotNegativeWhole, ...] | None, Field(description="of the agents that are meant")] = None
    repeat: Annotated[bool, Field(description="whether the first stage follows the last")] = False

    def check(self, sim: Simulation, step: int) -> None:
        for stage in self.stages:
            try:
                stage.to_file()
            except ParameterError as error:
                raise ParameterError(f"{error}; call sim.set_stages in a function that is scheduled instead") from None
        sim.check_stages(self.stages, group=self.group, ids=self.ids)

    def apply(self, sim: Simulation) -> None:
        sim.set_stages(self.stages, group=self.group, ids=self.ids, repeat=self.repeat)


class Order(Event):
    """Give a squad something else to do, or another formation.

    Its mission goes on afterwards, unless `resume` is false. Nothing happens if nobody of the squad is left by then.
    """

    kind: Literal["order"] = "order"
    squad: Annotated[str, Named("group")]
    stages: Annotated[tuple[StageField, ...], Named("goal"), Field(description="what it does")] = ()
    formation: Annotated[Formation | None, Field(description="how it moves from now on")] = None
    resume: Annotated[bool, Field(description="whether it takes up its mission again afterwards")] = True

    def check(self, sim: Simulation, step: int) -> None:
        if not self.stages and self.formation is None:
            raise ParameterError("an order needs stages, a formation, or both")
        for stage in self.stages:
            try:
                stage.to_file()
            except ParameterError as error:
                raise ParameterError(f"{error}; call sim.order in a function that is scheduled instead") from None
        sim.check_order(self.squad, self.stages)

    def apply(self, sim: Simulation) -> None:
        sim.order(self.squad, self.stages, formation=self.formation, resume=self.resume)


class Signal(Event):
    """Give a signal that people may wait for: the gate is called, the gun goes off."""

    kind: Literal["signal"] = "signal"
    name: str

    def apply(self, sim: Simulation) -> None:
        sim.signal(self.name)
