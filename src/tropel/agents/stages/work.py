"""The verb `work`: be there for tasks, go where one is and work, until none is left; and waiting for a task."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from tropel.agents.stages.stage import Aims, Condition, Mask, Now, Outlook, Setting, Stage
from tropel.agents.stages.verbs import Critical, Over, stand_aside
from tropel.errors import ParameterError, readable_errors


@readable_errors
@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Work(Stage):
    """Do tasks of a type, one after the other, as they are shared out; over when none is left.

    Whoever has no task stands. With `stay`, people wait for more tasks when all are done.
    """

    work: Annotated[str, Field(min_length=1, description='a type of tasks, such as "fire", or "any"')]
    stay: Annotated[bool, Field(description="wait for more tasks when all are done")] = False
    until: Over = None
    critical: Critical = False

    def check(self, setting: Setting, who: str) -> None:
        if setting.tasks is None:
            raise ParameterError(
                f"{who}: there are no tasks to work on; give some, as  Simulation(…, tasks={{…}})  or  [tasks.NAME]"
            )

    def begin(self, now: Now, aims: Aims, *, place: int) -> None:
        stand_aside(now)

    def is_over(self, now: Now) -> Mask:
        over = not self.stay and now.tasks is not None and now.tasks.nothing_left(self.work)
        return np.full(len(now.members), over, dtype=np.bool_)

    def alike(self) -> Hashable:
        return Work, self.work, self.stay

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "people stay for more tasks" if self.stay else ""

    def __str__(self) -> str:
        what = "tasks" if self.work == "any" else f"tasks of the type '{self.work}'"
        return f"work on {what}" + ("" if self.until is None else f", until {self.until}")


@readable_errors
@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Done(Condition):
    """A task is done."""

    done: Annotated[str, Field(min_length=1, description="the name of a task")]

    def check(self, setting: Setting, who: str) -> None:
        if setting.tasks is None:
            raise ParameterError(f"{who}: there is no task '{self.done}'; this simulation has no tasks")

    def holds(self, now: Now, aims: Aims) -> Mask:
        return np.full(len(now.members), now.tasks is not None and now.tasks.is_done(self.done), dtype=np.bool_)

    def never(self, outlook: Outlook, aims: Aims) -> str:
        return "" if outlook.task(self.done) else f"there is no task '{self.done}', and no event adds it"

    def __str__(self) -> str:
        return f"the task '{self.done}' is done"
