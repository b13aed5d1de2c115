"""Events for tasks: new ones appear, and others are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from tropel.agents.tasks.task import Task
from tropel.errors import ParameterError, suggest
from tropel.events.base import Event, Named
from tropel.world.places import PlaceField

if TYPE_CHECKING:
    from tropel.simulation import Simulation


class AddTask(Task, Event):
    """Add a task for those that work; tasks are then shared out anew. A name is used once in a run."""

    kind: Literal["add_task"] = "add_task"
    name: str
    place: Annotated[PlaceField | None, Named("goal")] = None
    hazard: Annotated[str | None, Named("hazard")] = None

    def check(self, sim: Simulation, step: int) -> None:
        board = sim.task_board()
        board.check(self.name, self.task(), sim.world, sim.groups, sim.agents.declared)
        if any(posted.name == self.name for posted in board.posted):
            raise ParameterError(f"there is a task '{self.name}' already; choose another name")
        coming = [event for _, _, event in sim.events if isinstance(event, AddTask) and event.name == self.name]
        if len(coming) > 1:
            raise ParameterError(f"two events add the task '{self.name}'; choose another name for one of them")

    def task(self) -> Task:
        return Task.model_validate({name: getattr(self, name) for name in Task.model_fields})

    def apply(self, sim: Simulation) -> None:
        sim.add_task(self.name, self.task())


class RemoveTask(Event):
    """Drop a task, unless it is done; whoever was working on it is free for others."""

    kind: Literal["remove_task"] = "remove_task"
    name: str

    def check(self, sim: Simulation, step: int) -> None:
        known = [posted.name for posted in sim.task_board().posted]
        known += [event.name for _, _, event in sim.events if isinstance(event, AddTask)]
        functions = any(not isinstance(event, Event) for _, _, event in sim.events)
        if self.name not in known and not functions:
            raise ParameterError(f"there is no task '{self.name}'; {suggest(self.name, known)}")

    def apply(self, sim: Simulation) -> None:
        sim.remove_task(self.name)
