"""A task: what is to be done where, by how many, for how long, and who is fit for it."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tropel.agents.state import Column
from tropel.errors import readable_errors
from tropel.foundation.field_types import Finite, PositiveWhole
from tropel.world.places import PlaceField
from tropel.world.shapes import Length

#: A parameter of agents that tasks may ask for, as traits of models are.
STRENGTH = Column(name="strength", default=0.5, low=0.0, high=1.0, about="of the body, for tasks that need it")
#: No task.
NO_TASK = -1
TASK = Column(
    name="task",
    dtype="int32",
    default=NO_TASK,
    low=NO_TASK,
    kept=True,
    about="number of the task that it goes to or works on; -1 for none",
)


@readable_errors
class Task(BaseModel):
    """Work at a place: it is done when `agents` people were there together for `work` seconds.

    Time in which fewer are there does not count, and is not lost either. With `hazard`, the hazard of that name goes
    out when the task is done; agents within reach of its rim work on it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    work: Annotated[Finite, Field(ge=0.0, le=1e9, description="for how long they have to work together [s]")]
    place: Annotated[
        PlaceField | None, Field(description="where; if left out, at the middle of the hazard, as a point")
    ] = None
    agents: Annotated[PositiveWhole, Field(le=1_000_000, description="how many it takes")] = 1
    within: Annotated[Length, Field(description="how near a body must be to a target, door, point or hazard [m]")] = 0.5
    priority: Annotated[Finite, Field(description="tasks of a higher one get their people first")] = 0.0
    type: Annotated[str, Field(min_length=1, description="what it is; the stage  work = …  names one")] = "task"
    needs: Annotated[
        dict[str, Finite], Field(description="attributes that somebody must have, each with the least value")
    ] = {}
    suits: Annotated[
        dict[str, Finite],
        Field(description="attributes that help; one unit is worth so many seconds of the way"),
    ] = {}
    groups: Annotated[
        tuple[str, ...] | None, Field(min_length=1, description="who may do it; anybody that works if left out")
    ] = None
    hazard: Annotated[str | None, Field(description="the hazard that goes out when it is done")] = None

    @model_validator(mode="after")
    def _somewhere(self) -> Task:
        if self.place is None and self.hazard is None:
            raise ValueError("say where: give a place, or the hazard that is to go out")
        return self
