"""Ways to share out tasks, against the optimum and each other."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from tropel.contracts.sharing import Market, Sharing
from tropel.deciding.sharing import AtRandom, Auction, Greedy, Optimal
from tropel.errors import CheckpointError, ParameterError


def market(cost: Any, wanted: Any = None, priority: Any = None) -> Market:
    cost = np.asarray(cost, dtype=np.float64)
    tasks, agents = cost.shape
    return Market(
        tasks=np.arange(tasks) + 5,
        wanted=np.ones(tasks, dtype=np.int64) if wanted is None else np.asarray(wanted, dtype=np.int64),
        priority=np.zeros(tasks) if priority is None else np.asarray(priority, dtype=np.float64),
        agents=np.arange(agents) * 3 + 1,
        cost=cost,
        step=7,
        seed=3,
    )


def random_costs(seed: int, places: int, agents: int, *, unable: float = 0.0) -> np.ndarray:
    """Costs in which every place can be filled: that of place k by agent k."""
    random = np.random.default_rng(seed)
    cost = random.uniform(0.0, 100.0, (places, agents))
    cost[random.random(cost.shape) < unable] = np.inf
    cost[np.arange(places), np.arange(places)] = random.uniform(50.0, 100.0, places)
    return cost


def matched(sharing: Sharing, cost: np.ndarray) -> np.ndarray:
    chosen = sharing.match(cost, market(cost))
    steps = 1
    while chosen is None:
        chosen = sharing.go_on()
        steps += 1
        assert steps < 100_000
    return chosen


@pytest.mark.parametrize("unable", [0.0, 0.5])
@pytest.mark.parametrize("sharing", [Optimal(), Auction(slack=0.1), Greedy(), AtRandom()])
def test_every_place_gets_one_agent_that_can_do_it(sharing: Sharing, unable: float) -> None:
    for seed in range(20):
        cost = random_costs(seed, 8, 12, unable=unable)
        chosen = matched(sharing, cost)
        assert len(set(chosen.tolist())) == 8
        assert np.isfinite(cost[np.arange(8), chosen]).all()


def test_optimal_sharing_has_the_least_cost_of_all() -> None:
    for seed in range(10):
        cost = random_costs(seed, 4, 6, unable=0.3)
        least = min(sum(cost[k, j] for k, j in enumerate(some)) for some in itertools.permutations(range(6), 4))
        assert cost[np.arange(4), matched(Optimal(), cost)].sum() == pytest.approx(least)


@pytest.mark.parametrize("slack", [5.0, 0.5, 0.01])
@pytest.mark.parametrize(("places", "agents"), [(1, 1), (6, 6), (10, 25), (20, 20)])
def test_an_auction_is_within_its_bound_of_the_optimum(slack: float, places: int, agents: int) -> None:
    for seed in range(10):
        cost = random_costs(seed, places, agents, unable=0.3)
        rows, columns = linear_sum_assignment(cost)
        least = cost[rows, columns].sum()
        found = cost[np.arange(places), matched(Auction(slack=slack, bids=50), cost)].sum()
        assert least - 1e-9 <= found <= least + places * slack + 1e-9


def test_an_auction_ends_the_same_however_many_bids_a_step_has() -> None:
    cost = np.repeat(random_costs(1, 5, 15), 3, axis=0)  # teams of three bid for the same agents
    whole = matched(Auction(bids=1_000_000), cost)
    assert len(set(whole.tolist())) == 15
    for bids in (1, 7):
        total = cost[np.arange(15), matched(Auction(bids=bids), cost)].sum()
        assert abs(total - cost[np.arange(15), whole].sum()) <= 15 * 0.5


def test_no_step_of_an_auction_has_more_than_its_bids() -> None:
    class Counted(Auction):
        count = 0

        def _bid(self, place: int) -> int:
            self.count += 1
            return super()._bid(place)

    auction = Counted(bids=4, slack=0.1)
    cost = np.repeat(random_costs(3, 4, 12), 3, axis=0)
    chosen = auction.match(cost, market(cost))
    steps = 1
    while chosen is None:
        assert auction.count == 4 * steps
        steps += 1
        chosen = auction.go_on()
    assert steps > 2
    assert auction.count <= 4 * steps


def test_an_auction_goes_on_after_a_resume() -> None:
    cost = random_costs(4, 12, 12)
    whole, half = Auction(bids=5, slack=0.1), Auction(bids=5, slack=0.1)
    assert whole.match(cost, market(cost)) is None
    assert half.match(cost, market(cost)) is None
    resumed = Auction(bids=5, slack=0.1)
    resumed.restore(half.state())
    ends = []
    for auction in (whole, resumed):
        while (chosen := auction.go_on()) is None:
            pass
        ends.append(chosen.tolist())
    assert ends[0] == ends[1]
    assert resumed.state() == {}
    damaged = {**half.state(), "place": np.zeros(12, dtype=np.int64)}
    with pytest.raises(CheckpointError, match="one place to two agents"):
        resumed.restore(damaged)


def test_greedy_takes_the_cheapest_pair_first_and_pays_for_it_later() -> None:
    cost = np.array([[1.0, 2.0], [2.0, 9.0]])
    assert matched(Greedy(), cost).tolist() == [0, 1]
    assert matched(Optimal(), cost).tolist() == [1, 0]
    # The only agent for the second task is not taken for the first.
    assert matched(Greedy(), np.array([[1.0, 2.0], [2.0, np.inf]])).tolist() == [1, 0]


def test_random_sharing_depends_on_seed_and_step_alone() -> None:
    cost = random_costs(5, 6, 30)
    first, again = (AtRandom().match(cost, market(cost)) for _ in range(2))
    assert first.tolist() == again.tolist()
    later = Market(**{**vars(market(cost)), "step": 8})
    assert AtRandom().match(cost, later).tolist() != first.tolist()


def test_only_whole_teams_are_admitted_by_priority_and_then_the_cheapest_first() -> None:
    cost = np.array([[9.0, 9.0, 9.0], [1.0, 1.0, 1.0], [5.0, 5.0, 5.0]])
    assert Optimal().admitted(market(cost, wanted=[2, 2, 1])).tolist() == [1, 2]
    assert Optimal().admitted(market(cost, wanted=[2, 2, 1], priority=[1.0, 0.0, 0.0])).tolist() == [0, 2]
    assert Optimal().admitted(market(cost, wanted=[4, 3, 1])).tolist() == [1]
    assert Optimal().admitted(market(np.empty((2, 0)))).tolist() == []


def test_admitted_teams_can_always_be_filled_and_no_other_fits_in() -> None:
    random = np.random.default_rng(0)
    for _ in range(60):
        tasks, agents = random.integers(1, 6), random.integers(1, 9)
        cost = random.uniform(0.0, 9.0, (tasks, agents))
        cost[random.random(cost.shape) < 0.5] = np.inf
        given = market(cost, wanted=random.integers(1, 4, tasks))
        admitted = Optimal().admitted(given)
        assert _fits(given, admitted)
        for row in set(range(tasks)) - set(admitted.tolist()):
            assert not _fits(given, np.array(sorted([*admitted.tolist(), row])))


def _fits(given: Market, rows: np.ndarray) -> bool:
    """Whether all teams can be filled, by brute force: the least cost of a matrix in which "cannot" is very dear."""
    able = np.isfinite(given.cost[given.slots(rows)])
    if able.shape[0] > able.shape[1]:
        return False
    return able[linear_sum_assignment(~able)].all()


@pytest.mark.parametrize("wrong", [{"slack": 0.0}, {"bids": 0}, {"bids": 1.5}, {"slack": float("nan")}, {"speed": 1}])
def test_wrong_parameters_of_an_auction_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Auction(**wrong)
