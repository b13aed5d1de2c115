"""Succession in a crowd that two processes share: both decide the same as one that has everybody."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel.agents.state import AgentState
from tropel.foundation.reductions import Reductions
from tropel.world import Target


class Meeting:
    """Where two threads, each a process with its part of the crowd, exchange what they have."""

    def __init__(self) -> None:
        self._barrier = threading.Barrier(2, timeout=30.0)
        self._told: list[Any] = [None, None]

    def exchange(self, rank: int, mine: Any) -> list[Any]:
        self._told[rank] = mine
        self._barrier.wait()
        both = list(self._told)
        self._barrier.wait()
        return both


class Shared(Reductions):
    """Reductions over both parts."""

    def __init__(self, meeting: Meeting, rank: int) -> None:
        self._both: Callable[[Any], list[Any]] = lambda mine: meeting.exchange(rank, mine)

    def largest(self, values: NDArray[Any], *, initial: float = 0.0) -> float:
        return max(self._both(float(values.max(initial=initial))))

    def any(self, flag: bool | np.bool_) -> bool:
        return any(self._both(bool(flag)))

    def count(self, number: int) -> int:
        return sum(self._both(number))

    def counts(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        one, other = self._both(numbers.copy())
        return np.asarray(one + other)

    def union(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.unique(np.concatenate(self._both(values.copy())))

    def median(self, values: NDArray[np.float64]) -> float:
        return float(np.median(np.concatenate(self._both(values.copy()))))


def part(state: AgentState, own: NDArray[np.int64], others: NDArray[np.int64]) -> AgentState:
    mine = AgentState(state.dim, state.declared.values())
    mine.put_back({name: array[own] for name, array in state.columns.items()}, state.next_id)
    mine.look_at({name: array[others] for name, array in state.columns.items()})
    return mine


def outcome(bonds: Any, states: Sequence[AgentState]) -> dict[str, Any]:
    names = ("leader", "handover", "goal", "goal_point", "agenda", "stage", "stage_since", "stage_until")
    rows = np.concatenate([state.id[: state.owned] for state in states])
    order = np.argsort(rows)
    told = {
        name: np.concatenate([state.columns[name][: state.owned] for state in states])[order].tolist() for name in names
    }
    return told | {name: array.tolist() for name, array in bonds.state().items()}


@pytest.mark.parametrize("how", ["nearest", "central"])
@pytest.mark.parametrize("seed", range(4))
def test_two_processes_find_the_successors_that_one_finds(how: str, seed: int) -> None:
    world = tropel.World(
        shapely.box(0, 0, 20, 8), walls=[[(9, 0), (9, 5)]], targets={"end": Target(position=(18, 4), radius=0.5)}
    )
    groups = [
        tropel.Group("a", count=12, goal="end", leader=how, sense_radius=2.0),
        tropel.Group("guides", count=3, goal="end", sense_radius=2.0),
        tropel.Group("b", count=12, goal="none", follow="guides", sense_radius=2.0),
    ]
    sim = tropel.Simulation(world, groups, local=tropel.Flocking(), dt=0.05, seed=seed, threads=1)
    for _ in range(5):
        sim.step()
    led = sim.agents.columns["leader"]
    sim.agents.dead[sim.agents.row_of(np.unique(led[led >= 0])[:3])] = 1
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(sim.agents))
    cut = len(order) // 2
    halves = order[:cut], order[cut:]
    # Each part sees some of the other's agents as ghosts.
    parts = [part(sim.agents, own, other[:5]) for own, other in (halves, halves[::-1])]
    bonds = [deepcopy(sim.population.bonds) for _ in parts]
    meeting = Meeting()

    def decide(rank: int) -> None:
        bonds[rank].keep_up(parts[rank], dt=0.05, reduce=Shared(meeting, rank))

    threads = [threading.Thread(target=decide, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    sim.population.bonds.keep_up(sim.agents, dt=0.05, reduce=sim.reduce)
    whole = outcome(sim.population.bonds, [sim.agents])
    assert outcome(bonds[0], parts) == whole
    assert outcome(bonds[1], parts) == whole
