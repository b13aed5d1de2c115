"""What a checkpoint holds about the agents; it is read and checked before any of it is restored."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.bonds import Bonds
from tropel.agents.squads.squads import Squads
from tropel.agents.stages.agendas import Agenda
from tropel.agents.stages.happened import Happening
from tropel.agents.state import CHOSEN_EXIT
from tropel.agents.tasks.board import TaskBoard
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.world.shapes import FARTHEST

if TYPE_CHECKING:
    from tropel.agents.population import Population

#: A source has sent at most this multiple of what its rate implies, plus this many: arrivals may be random.
_MANY_TIMES = 4.0
_MANY_MORE = 1000.0


@dataclass(frozen=True, kw_only=True)
class StoredPeople:
    """Everything about the agents that a checkpoint holds, as `Population.put_back` takes it."""

    columns: dict[str, NDArray[Any]]
    next_id: int
    came: tuple[list[int], list[int], list[float]]  #: how many, of which group, when
    left: dict[str, NDArray[Any]]  #: id, number of the goal, time
    died: dict[str, NDArray[Any]]
    waiting: list[int]
    emitted: list[int]
    agendas: list[Agenda]
    happened: dict[Happening, int]
    bonds: Bonds
    tasks: TaskBoard | None = None
    squads: Squads | None = None


def stored_people(population: Population) -> dict[str, NDArray[Any]]:
    """Everything about the agents that the future depends on, as arrays."""
    return {
        **{f"agents/{name}": array for name, array in population.state.snapshot().items()},
        **{f"left/{name}": array for name, array in population.departures().items()},
        **{f"died/{name}": array for name, array in population.deaths().items()},
        **population.records.came_together(),
        "sources/waiting": np.array(population.waiting, dtype=np.int64),
        "sources/emitted": np.array(population.emitted, dtype=np.int64),
        **population.agendas.state(),
        **population.happened.state(),
        **population.bonds.state(),
        **({} if population.tasks is None else population.tasks.state()),
        **({} if population.squads is None else population.squads.state()),
    }


def people_as_they_are(population: Population) -> StoredPeople:
    """What `Population.put_back` needs to return to the current state."""
    return StoredPeople(
        columns=dict(population.state.columns),
        next_id=population.state.next_id,
        came=population.records.came_lists(),
        left=population.departures(),
        died=population.deaths(),
        waiting=list(population.waiting),
        emitted=list(population.emitted),
        agendas=population.agendas.known(),
        happened=population.happened.known(),
        bonds=population.bonds,
        tasks=population.tasks,
        squads=population.squads,
    )


def read_people(
    population: Population, arrays: Mapping[str, NDArray[Any]], *, goals: int, time: float = math.inf
) -> StoredPeople:
    """What `Population.stored` returned, in a world with this many goals, at a time [s] of the run."""
    own = {name.removeprefix("agents/"): array for name, array in arrays.items() if name.startswith("agents/")}
    columns, next_id = population.state.read(own)
    groups = len(population.groups)
    if len(columns["group"]) and columns["group"].max() >= groups:
        raise CheckpointError(f"'agents/group' holds {columns['group'].max()}; there are {groups} groups")
    for name in ("goal", "leaves_by", CHOSEN_EXIT.name):
        if name in columns and len(columns[name]) and columns[name].max() >= goals:
            raise CheckpointError(f"'agents/{name}' holds {columns[name].max()}; the world has {goals} goals")
    agendas = population.agendas.read(arrays, goals=goals)
    _check_stages(columns, agendas)
    _check_inside(population, columns["position"])
    # Times are multiples of dt, but rounded in different places.
    latest = time * (1.0 + 1e-9)
    return StoredPeople(
        columns=columns,
        next_id=next_id,
        came=_came(arrays, groups, next_id, latest),
        left=_left(arrays, goals, next_id, latest),
        died=_died(arrays, population.state.dim, next_id, latest),
        waiting=_sent(population, arrays, "waiting", next_id, time),
        emitted=_sent(population, arrays, "emitted", next_id, time),
        agendas=agendas,
        happened=population.happened.read(arrays),
        bonds=population.bonds.read(arrays, goals=goals, agendas=len(agendas), next_id=next_id),
        tasks=None if population.tasks is None else population.tasks.read(arrays, goals=goals, next_id=next_id),
        squads=None
        if population.squads is None
        else population.squads.read(arrays, agendas=[len(each.planned) for each in agendas], next_id=next_id),
    )


def _check_stages(columns: Mapping[str, NDArray[Any]], agendas: Sequence[Agenda]) -> None:
    """Raise if an agent has a list of stages that does not exist, or is beyond its end."""
    own = columns["agenda"]
    if len(own) and own.max() >= len(agendas):
        raise CheckpointError(f"'agents/agenda' holds {own.max()}; there are {len(agendas)} lists of stages")
    lengths = np.array([*(len(agenda.planned) for agenda in agendas), 1])  # the last for agents without a list
    if (columns["stage"] >= lengths[own]).any():
        raise CheckpointError("'agents/stage' holds a number beyond the end of a list of stages")


def _check_inside(population: Population, position: NDArray[Any]) -> None:
    """Raise if an agent is outside the walls of the world, which no agent can leave in a run, whatever its model."""
    world = population.world
    outside = ((position < world.bounds[0]) | (position > world.bounds[1])) & world.walled
    if outside.any():
        place = position[outside.any(axis=1)][0].tolist()
        raise CheckpointError(f"'agents/position' holds {place}, which is outside of the walls of this world")


def _came(
    arrays: Mapping[str, NDArray[Any]], groups: int, next_id: int, latest: float
) -> tuple[list[int], list[int], list[float]]:
    count = taken(arrays, "came/count", dtype="int64", shape=(None,), low=0, high=next_id)
    if sum(count.tolist()) != next_id:
        raise CheckpointError(f"'came/count' adds up to {sum(count.tolist())}, but {next_id} agents have come")
    group = taken(arrays, "came/group", dtype="int32", shape=count.shape, low=0, high=groups - 1)
    time = taken(arrays, "came/time", dtype="float64", shape=count.shape, low=0.0, high=latest)
    return count.tolist(), group.tolist(), time.tolist()


def _left(arrays: Mapping[str, NDArray[Any]], goals: int, next_id: int, latest: float) -> dict[str, NDArray[Any]]:
    ids = taken(arrays, "left/id", dtype="int64", shape=(None,), low=0, high=next_id - 1)
    return {
        "id": ids,
        "goal": taken(arrays, "left/goal", dtype="int32", shape=ids.shape, low=0, high=goals - 1),
        "time": taken(arrays, "left/time", dtype="float64", shape=ids.shape, low=0.0, high=latest),
    }


def _died(arrays: Mapping[str, NDArray[Any]], dim: int, next_id: int, latest: float) -> dict[str, NDArray[Any]]:
    ids = taken(arrays, "died/id", dtype="int64", shape=(None,), low=0, high=next_id - 1)
    return {
        "id": ids,
        "time": taken(arrays, "died/time", dtype="float64", shape=ids.shape, low=0.0, high=latest),
        "position": taken(
            arrays, "died/position", dtype="float64", shape=(len(ids), dim), low=-FARTHEST, high=FARTHEST
        ),
    }


def _sent(
    population: Population, arrays: Mapping[str, NDArray[Any]], what: str, next_id: int, time: float
) -> list[int]:
    """How many agents of each source wait, or have come in; at most what it can have sent, as each needs a place."""
    name = f"sources/{what}"
    counts = taken(arrays, name, dtype="int64", shape=(len(population.sources),), low=0).tolist()
    for source, count in zip(population.sources, counts, strict=True):
        span = max(min(time, source.end) - source.begin, 0.0)
        most = min(_MANY_TIMES * source.rate * span + _MANY_MORE, math.inf if source.total is None else source.total)
        if count > (next_id if what == "emitted" else most):
            raise CheckpointError(f"'{name}' holds {count}, more than the source of '{source.group}' has sent")
    return counts
