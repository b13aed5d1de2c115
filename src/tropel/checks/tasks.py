"""Tasks that nobody will do: they take more agents than there are, or agents that nobody is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from tropel.agents.stages.agendas import NOTHING
from tropel.agents.stages.work import Work
from tropel.agents.state import POINT
from tropel.agents.tasks.task import Task
from tropel.checks.finding import Finding, people
from tropel.events import AddAgents, Drift, SetParameter, SetStages, Surge
from tropel.events.base import Event
from tropel.events.tasks import AddTask

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Events after which more agents may be able to do something.
_HELPING = (AddAgents, Drift, SetParameter, SetStages, Surge)


def check_tasks(sim: Simulation) -> Iterator[Finding]:
    """Tasks with too few agents that can do them, if nothing is known to change that."""
    board = sim.population.tasks
    events = [event for _, _, event in sim.events]
    unknown = sim.replayed is not None or any(not isinstance(event, Event) for event in events)
    if board is None or unknown or sim.population.sources or any(isinstance(event, _HELPING) for event in events):
        return
    told = [(posted.name, posted.task, posted.aim.number == POINT) for posted in board.posted if posted.is_open]
    told += [(event.name, event.task(), False) for event in events if isinstance(event, AddTask)]
    for name, task, is_point in told:
        able = _able(sim, task, is_point)
        if able < task.agents:
            asked = " of that strength or skill" if task.needs else ""
            takes = "1 agent" if task.agents == 1 else f"{task.agents} agents"
            yield Finding(
                code="task_without_team",
                message=f"task '{name}' takes {takes}{asked}, but only {people(able)} can work on it",
                remedy=f'let more people work (a stage  work = "{task.type}"), or ask for fewer, or less',
                agents=able,
            )


def _able(sim: Simulation, task: Task, is_point: bool) -> int:
    """How many agents have a stage in which they work on a task, and what it needs."""
    state, agendas = sim.agents, sim.population.agendas
    works = np.array(
        [
            any(isinstance(stage, Work) and stage.work in ("any", task.type) for stage in agendas[number].stages)
            for number in range(len(agendas))
        ]
        + [False]
    )
    able = works[np.where(state.agenda == NOTHING, len(agendas), state.agenda)] & (state.dead == 0)
    for attribute, least in task.needs.items():
        able &= state.columns[attribute] >= least
    if task.groups is not None:
        able &= np.isin(state.group, [sim.groups.index(group) for group in task.groups])
    if is_point:
        able &= ~sim.layers.on_cells[state.group]
    return int(np.count_nonzero(able))
