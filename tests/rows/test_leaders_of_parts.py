"""Leaders of a crowd that two processes share: both decide the same as one that has everybody."""

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
from tropel.agents.goals import aim_of
from tropel.agents.leaders import check_follows
from tropel.agents.state import AgentState
from tropel.errors import ParameterError
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


def crowd(how: str, seed: int) -> tropel.Simulation:
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
    return sim


def check_alike(sim: tropel.Simulation, seed: int, act: Callable[[Any, AgentState, Reductions], None]) -> None:
    """Two processes that act, each with a part of the crowd, come to what one comes to."""
    order = np.random.default_rng(seed).permutation(len(sim.agents))
    cut = len(order) // 2
    halves = order[:cut], order[cut:]
    # Each part sees some of the other's agents as ghosts.
    parts = [part(sim.agents, own, other[:5]) for own, other in (halves, halves[::-1])]
    bonds = [deepcopy(sim.population.bonds) for _ in parts]
    meeting = Meeting()

    def decide(rank: int) -> None:
        act(bonds[rank], parts[rank], Shared(meeting, rank))

    threads = [threading.Thread(target=decide, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60.0)
        assert not thread.is_alive()
    act(sim.population.bonds, sim.agents, sim.reduce)
    whole = outcome(sim.population.bonds, [sim.agents])
    assert outcome(bonds[0], parts) == whole
    assert outcome(bonds[1], parts) == whole


@pytest.mark.parametrize("how", ["nearest", "central"])
@pytest.mark.parametrize("seed", range(4))
def test_two_processes_find_the_successors_that_one_finds(how: str, seed: int) -> None:
    sim = crowd(how, seed)
    led = sim.agents.columns["leader"]
    sim.agents.dead[sim.agents.row_of(np.unique(led[led >= 0])[:3])] = 1
    check_alike(sim, seed, lambda bonds, state, reduce: bonds.keep_up(state, dt=0.05, reduce=reduce))


@pytest.mark.parametrize("old_is_there", [True, False])
@pytest.mark.parametrize("how", ["nearest", "central", 5, None])
def test_two_processes_set_the_leader_that_one_sets(how: str | int | None, old_is_there: bool) -> None:
    for seed in range(3):
        sim = crowd("nearest", seed)
        if not old_is_there:
            sim.agents.dead[sim.agents.rows_of([int(sim.population.bonds.own_leader[0])])] = 1
        agent = int(sim.agents.id[(sim.agents.group == 0) & (sim.agents.dead == 0)][-1]) if how is None else None

        def act(bonds: Any, state: AgentState, reduce: Reductions, agent: int | None = agent) -> None:
            living = np.flatnonzero((state.group == 0) & (state.dead == 0))
            bonds.set_leader(state, 0, living, how, agent, "group 'a'", reduce=reduce)

        check_alike(sim, seed, act)


@pytest.mark.parametrize(
    "told",
    [
        {"leader": "nearest"}, {"leader": "central"}, {"leader": 1}, {"leader": "nearest", "goal": (3.0, 6.0)},
        {"follow": "guides"}, {"follow": "guides", "leader": "central"}, {"follow": "guides", "leader": 2},
        {"follow": "nobody left"},
    ],
)  # fmt: skip
def test_two_processes_bind_newcomers_as_one_does(told: dict[str, Any]) -> None:
    """The agents of group 'b' come again, as it were: whatever they followed is forgotten."""
    for seed in range(3):
        sim = crowd("nearest", seed)
        newcomers = tropel.Group("b", count=12, **{"goal": "none", **told})
        goal, end = aim_of(sim.world, newcomers.goal, "b"), aim_of(sim.world, "end", "b")
        sim.agents.goal[sim.agents.group == 2] = goal.number
        sim.agents.goal_point[sim.agents.group == 2] = goal.point

        def act(bonds: Any, state: AgentState, reduce: Reductions, told: Any = (newcomers, end)) -> None:
            newcomers, end = told
            rows = np.flatnonzero(state.group == 2)
            state.columns["leader"][rows] = -1
            led_by = np.flatnonzero(state.group == 1) if newcomers.follow == "guides" else np.empty(0, dtype=np.int64)
            bonds.bind(newcomers, state, 2, rows, who="group 'b'", led_by=None if newcomers.follow is None else led_by,
                       aim=end, reduce=reduce)  # fmt: skip

        check_alike(sim, seed, act)
        leader = sim.agents.columns["leader"][sim.agents.group == 2]
        assert (leader >= 0).sum() == (12 if newcomers.follow == "guides" else 11)


def test_two_processes_find_the_circle_that_one_finds() -> None:
    sim = crowd("nearest", 0)
    leader = sim.agents.columns["leader"]
    leader[:3] = [1, 2, 0]
    said: list[str] = []

    def act(bonds: Any, state: AgentState, reduce: Reductions) -> None:
        with pytest.raises(ParameterError, match="which follows") as error:
            check_follows(state, reduce)
        said.append(str(error.value))

    check_alike(sim, 0, act)
    assert (
        said[0]
        == said[1]
        == said[2]
        == "agent 0, which follows 1, which follows 2, which follows 0: one of them must lead"
    )
