"""The board of tasks: which there are, who does them, since when, and when they were done.

Everything is known by the numbers of tasks and the ids of agents, so that it is the same on all processes that share a
crowd and in any order of rows. The column `task` repeats what the board says, for those that look at agents.

A task is open until it is done or dropped. Its team is complete while as many agents as it takes have been sent to it;
it is worked on in every step in which all of them are there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from tropel.agents.goals import Aim, aim_of
from tropel.agents.stages.happened import texts_of
from tropel.agents.state import POINT, Column
from tropel.agents.tasks.task import NO_TASK, Task
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.stored_arrays import taken
from tropel.world import World
from tropel.world.shapes import FARTHEST

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

#: It has not come to that yet.
NOT_YET = -1
#: How a task, or somebody's part in it, stands.
OPEN, DONE, DROPPED = 0, 1, 2
#: How somebody's part in a task ended.
ENDS = ("", "done", "dropped out", "sent elsewhere", "task dropped")
STILL, WITH_TASK, OUT, ELSEWHERE, CANCELLED = range(len(ENDS))
#: What happened, the name of the task, and the ids of the agents concerned.
News = tuple[str, str, list[int]]
#: No sensible run has more.
MOST_TASKS = 100_000


@dataclass(eq=False, kw_only=True)
class Posted:
    """A task on the board."""

    name: str
    task: Task
    aim: Aim
    added: int  #: the step
    begun: int = NOT_YET  #: the first step in which it was worked on
    ended: int = NOT_YET
    worked: int = 0  #: steps
    status: int = OPEN

    @property
    def is_open(self) -> bool:
        return self.status == OPEN

    def is_done_after(self, dt: float) -> bool:
        return self.worked * dt >= self.task.work - 1e-9 * dt


@dataclass(eq=False, kw_only=True)
class Part:
    """Somebody's part in a task."""

    task: int
    agent: int  #: id
    assigned: int  #: the step
    arrived: int = NOT_YET
    ended: int = NOT_YET
    how: int = STILL


class TaskBoard:
    """All tasks by number, in the order in which they were added, and all parts that agents had in them."""

    def __init__(self, tasks: Mapping[str, Task], dim: int) -> None:
        self._dim = dim
        self._told = dict(tasks)
        self.posted: list[Posted] = []
        self.parts: list[Part] = []
        self.present: dict[int, Part] = {}  #: by the id of the agent
        self._rows: tuple[Ints, Ints, NDArray[np.bool_]] | None = None  #: the same as arrays
        self.available: Ints = np.empty(0, dtype=np.int64)  #: ids of the agents that work, when they were last asked
        self.news = True  #: whether tasks have to be shared out anew
        self.market: tuple[Ints, Ints] | None = None  #: places in teams and agents of a sharing that goes on
        self.happened: list[News] = []  #: since observers were last told; no part of checkpoints

    # Tasks ------------------------------------------------------------------------------------------------------

    def post_all(self, world: World, groups: Sequence[str], columns: Mapping[str, Column]) -> None:
        """Add the tasks that the simulation was given."""
        for name, task in self._told.items():
            self.add(name, task, world, groups, columns, step=0)

    def check(self, name: str, task: Task, world: World, groups: Sequence[str], columns: Mapping[str, Column]) -> None:
        """Raise if a task asks for something that does not exist; the place is checked when it is added."""
        who = f"task '{name}'"
        for group in task.groups or ():
            if group not in groups:
                raise ParameterError(f"{who}: there is no group '{group}'; {suggest(group, groups)}")
        known = {key for key, column in columns.items() if not column.vector and not column.width}
        for attribute in (*task.needs, *task.suits):
            if attribute not in known:
                raise ParameterError(
                    f"{who}: agents have no attribute '{attribute}'; {suggest(attribute, known)} (traits such as "
                    f"courage belong to models that use them, such as Dynamical)"
                )

    def add(
        self,
        name: str,
        task: Task,
        world: World,
        groups: Sequence[str],
        columns: Mapping[str, Column],
        *,
        step: int,
    ) -> None:
        """Add a task."""
        if any(posted.name == name for posted in self.posted):
            raise ParameterError(f"there is, or was, a task '{name}' already; choose another name")
        if len(self.posted) >= MOST_TASKS:
            raise ParameterError(f"task '{name}': there are {MOST_TASKS:,} tasks already")
        self.check(name, task, world, groups, columns)
        who = f"task '{name}'"
        if task.hazard is not None and task.hazard not in world.hazards:
            known = suggest(task.hazard, world.hazards.names)
            raise ParameterError(f"{who}: there is no hazard '{task.hazard}'; {known}")
        aim = aim_of(world, task.place if task.place is not None else _middle(task, world), who)
        if aim.number < 0 and aim.number != POINT:
            raise ParameterError(f"{who}: its place must be one place or a point, not '{task.place}'")
        if aim.number >= 0 and world.goals().absorbs[aim.number]:
            raise ParameterError(f"{who}: people leave at '{task.place}', so nobody can work there")
        self.posted.append(Posted(name=name, task=task, aim=aim, added=step))
        self.news = True

    def number(self, name: str) -> int:
        """The number of a task."""
        for number, each in enumerate(self.posted):
            if each.name == name:
                return number
        raise ParameterError(f"there is no task '{name}'; {suggest(name, [each.name for each in self.posted])}")

    def is_done(self, name: str) -> bool:
        return any(each.name == name and each.status == DONE for each in self.posted)

    def has_put_out(self, hazard: str) -> bool:
        """Whether a hazard went out because its task was done."""
        return any(each.status == DONE and each.task.hazard == hazard for each in self.posted)

    def end(self, number: int, status: int, *, step: int) -> None:
        """End a task; those that worked on it are free."""
        posted = self.posted[number]
        posted.status, posted.ended = status, step
        self.happened.append(("done" if status == DONE else "dropped", posted.name, self.team(number)))
        self.leave(self.team(number), WITH_TASK if status == DONE else CANCELLED, step=step)
        self.news = True

    # Agents -----------------------------------------------------------------------------------------------------

    def at_present(self) -> tuple[Ints, Ints, NDArray[np.bool_]]:
        """Ids of the agents that have a task, ascending; its number; and whether they are there."""
        if self._rows is None:
            agents = sorted(self.present)
            parts = [self.present[agent] for agent in agents]
            self._rows = (
                np.array(agents, dtype=np.int64),
                np.array([part.task for part in parts], dtype=np.int64),
                np.array([part.arrived != NOT_YET for part in parts], dtype=np.bool_),
            )
        return self._rows

    def arrive(self, there: NDArray[np.bool_], *, step: int) -> None:
        """Note which of the agents `at_present` are at their task; who was there once has arrived."""
        agents, _, known = self.at_present()
        for agent in agents[there & ~known].tolist():
            self.present[agent].arrived = step
            self.happened.append(("arrived", self.posted[self.present[agent].task].name, [agent]))
            self._rows = None

    def team(self, number: int) -> list[int]:
        """Ids of the agents that have been sent to a task, ascending."""
        agents, tasks, _ = self.at_present()
        return agents[tasks == number].tolist()

    def task_of(self, agent: int) -> int:
        """The number of the task that an agent has now."""
        part = self.present.get(agent)
        return NO_TASK if part is None else part.task

    def leave(self, agents: Iterable[int], how: int, *, step: int) -> None:
        """End the part that agents have in their tasks."""
        for agent in agents:
            part = self.present.pop(agent)
            part.ended, part.how = step, how
            if how in (OUT, ELSEWHERE):
                self.happened.append((ENDS[how], self.posted[part.task].name, [agent]))
            self._rows = None

    def assign(self, agent: int, number: int, *, step: int) -> None:
        """Send an agent to a task."""
        part = Part(task=number, agent=agent, assigned=step)
        self.happened.append(("assigned", self.posted[number].name, [agent]))
        self.parts.append(part)
        self.present[agent] = part
        self._rows = None

    def begin(self, number: int, *, step: int) -> None:
        """A complete team is there for the first time."""
        self.posted[number].begun = step
        self.happened.append(("begun", self.posted[number].name, self.team(number)))

    def per_task(self, of: NDArray[np.bool_] | None = None) -> Ints:
        """How many agents each task has; with a mask, how many of those `at_present` that it marks."""
        tasks = self.at_present()[1]
        return np.bincount(tasks if of is None else tasks[of], minlength=len(self.posted))

    def wanted(self) -> Ints:
        """How many agents each task takes."""
        return np.array([each.task.agents for each in self.posted], dtype=np.int64)

    def nothing_left(self, kind: str) -> bool:
        """Whether no task of a type ("any" for all) is open."""
        return not any(each.is_open and kind in ("any", each.task.type) for each in self.posted)

    # Tables -----------------------------------------------------------------------------------------------------

    def counts(self) -> dict[str, int]:
        """How many tasks are done, begun, given to somebody, waiting and dropped."""
        found = dict.fromkeys(("done", "begun", "assigned", "waiting", "dropped"), 0)
        teams = self.per_task()
        for number, each in enumerate(self.posted):
            if each.is_open:
                key = "begun" if each.begun != NOT_YET else "assigned" if teams[number] else "waiting"
            else:
                key = "done" if each.status == DONE else "dropped"
            found[key] += 1
        return found

    def table(self, dt: float) -> dict[str, NDArray[Any] | list[str]]:
        """A row for each task: `task`, `type`, `added`, `begun`, `done`, `dropped` [s] (nan if that was not)."""
        times = {
            "added": [each.added for each in self.posted],
            "begun": [each.begun for each in self.posted],
            "done": [each.ended if each.status == DONE else NOT_YET for each in self.posted],
            "dropped": [each.ended if each.status == DROPPED else NOT_YET for each in self.posted],
        }
        return {
            "task": [each.name for each in self.posted],
            "type": [each.task.type for each in self.posted],
            **{name: _seconds(steps, dt) for name, steps in times.items()},
        }

    def parts_table(self, dt: float) -> dict[str, NDArray[Any] | list[str]]:
        """A row for each part that somebody had: `task`, `id`, `assigned`, `arrived`, `ended` [s], and `how`."""
        return {
            "task": [self.posted[part.task].name for part in self.parts],
            "id": np.array([part.agent for part in self.parts], dtype=np.int64),
            "assigned": _seconds([part.assigned for part in self.parts], dt),
            "arrived": _seconds([part.arrived for part in self.parts], dt),
            "ended": _seconds([part.ended for part in self.parts], dt),
            "how": [ENDS[part.how] for part in self.parts],
        }

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        told = [json.dumps({"name": p.name, "task": p.task.model_dump(mode="json")}) for p in self.posted]
        numbers = [[p.added, p.begun, p.ended, p.worked, p.status, p.aim.number] for p in self.posted]
        parts = [[p.task, p.agent, p.assigned, p.arrived, p.ended, p.how] for p in self.parts]
        places, agents = self.market or (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
        return {
            "tasks/told": np.array(told, dtype=str),
            "tasks/numbers": np.array(numbers, dtype=np.int64).reshape(-1, 6),
            "tasks/point": np.array([p.aim.point for p in self.posted], dtype=np.float64).reshape(-1, self._dim),
            "tasks/parts": np.array(parts, dtype=np.int64).reshape(-1, 6),
            "tasks/available": self.available,
            "tasks/flags": np.array([self.news, self.market is not None], dtype=np.uint8),
            "tasks/places": places,
            "tasks/agents": agents,
        }

    def read(self, stored: Mapping[str, NDArray[Any]], *, goals: int, next_id: int) -> TaskBoard:
        """The board that `state` returned, checked."""
        made = TaskBoard(self._told, self._dim)
        texts = texts_of(stored, "tasks/told")
        numbers = taken(stored, "tasks/numbers", dtype="int64", shape=(len(texts), 6), low=POINT)
        point = taken(
            stored, "tasks/point", dtype="float64", shape=(len(texts), self._dim), low=-FARTHEST, high=FARTHEST
        )
        for text, row, place in zip(texts, numbers.tolist(), point.tolist(), strict=True):
            added, begun, ended, worked, status, number = row
            steps_fit = min(added, worked) >= 0 and min(begun, ended) >= NOT_YET
            if not steps_fit or status not in (OPEN, DONE, DROPPED) or not (number == POINT or 0 <= number < goals):
                raise CheckpointError(f"'tasks/numbers' holds {row}, which is no task of this run")
            name, task = _read_task(text)
            made.posted.append(
                Posted(name=name, task=task, aim=Aim(number, tuple(place)), added=added, begun=begun, ended=ended,
                       worked=worked, status=status)
            )  # fmt: skip
        parts = taken(stored, "tasks/parts", dtype="int64", shape=(None, 6), low=-1)
        for row in parts.tolist():
            task, agent, assigned, arrived, ended, how = row
            fits = 0 <= task < len(texts) and 0 <= agent < next_id and assigned >= 0 and 0 <= how < len(ENDS)
            part = Part(task=task, agent=agent, assigned=assigned, arrived=arrived, ended=ended, how=how)
            still = ended == NOT_YET
            if not fits or still != (how == STILL) or (still and agent in made.present):
                raise CheckpointError(f"'tasks/parts' holds {row}, which is nobody's part in a task")
            if still and not made.posted[task].is_open:
                raise CheckpointError(
                    f"'tasks/parts' lets agent {agent} work on '{made.posted[task].name}', which is over"
                )
            made.parts.append(part)
            if still:
                made.present[agent] = part
        made.available = taken(stored, "tasks/available", dtype="int64", shape=(None,), low=0, high=next_id - 1)
        news, goes_on = taken(stored, "tasks/flags", dtype="uint8", shape=(2,), low=0, high=1).tolist()
        made.news = bool(news)
        if goes_on:
            places = taken(stored, "tasks/places", dtype="int64", shape=(None,), low=0, high=len(texts) - 1)
            agents = taken(stored, "tasks/agents", dtype="int64", shape=(None,), low=0, high=next_id - 1)
            made.market = places, agents
        return made


def _middle(task: Task, world: World) -> list[float]:
    """Where the hazard of a task is now."""
    hazards = world.hazards
    place: list[float] = hazards.position[hazards.names.index(str(task.hazard))].tolist()
    return place


def _seconds(steps: Sequence[int], dt: float) -> Floats:
    return np.array([np.nan if step == NOT_YET else step * dt for step in steps], dtype=np.float64)


def _read_task(text: str) -> tuple[str, Task]:
    try:
        told = json.loads(text)
        if isinstance(told["name"], str):
            return told["name"], Task.model_validate(told["task"])
    except (ValueError, TypeError, KeyError, RecursionError, ValidationError):
        pass
    raise CheckpointError(f"'tasks/told' holds {text[:60]!r}, which is not a task")
