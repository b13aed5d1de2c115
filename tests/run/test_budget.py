"""Budgets: which behaviours are left out and when, by clocks that tests hold in their hands."""

from __future__ import annotations

import io
import itertools
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget_scenes import NAMES, Clock, budget, juggler
from rich.console import Console

from tropel import Budget, Simulation, events, read_trajectory
from tropel.errors import ParameterError
from tropel.run.budget import BudgetReport


def run(sim: Simulation, clock: Clock, steps: int, **more: Any) -> BudgetReport:
    summary = sim.run(until=sim.time + steps * sim.dt, budget=budget(clock, **more))
    assert summary.budget is not None
    return summary.budget


def switches(report: BudgetReport) -> list[tuple[int, str, bool]]:
    return [(each.step, each.name, each.on) for each in report.switches]


# What is left out ---------------------------------------------------------------------------------------------------


def test_nothing_is_left_out_while_the_rate_holds() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 3.5, a=2, b=2, c=2), 100)
    assert report.switches == ()
    assert report.left_out == ()
    assert report.holds
    assert report.reached == pytest.approx(1000 / 9.5)
    assert report.held == report.windows == 24


def test_what_is_missed_least_is_left_out_first_and_no_more_than_needed() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 6, a=5, b=5, c=3.9), 60)
    # A window of four steps after one to settle down; the last set takes 9.9 ms and leaves no room.
    assert switches(report) == [(5, "a", False), (10, "b", False)]
    assert report.left_out == ("a", "b")
    assert report.kept == ("c",)
    assert report.holds
    assert report.last == pytest.approx(1000 / 9.9)


def test_the_order_is_that_of_the_budget() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 6, a=5, b=5, c=3.9), 60, order=("c", "b", "a"))
    assert [name for _, name, _ in switches(report)][:2] == ["c", "b"]
    assert run(juggler(), Clock(juggler(), 50), 60, order=()).switches == ()


def test_what_costs_nothing_is_not_left_out_for_long() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 5, a=0, b=9, c=1), 30)
    assert switches(report) == [(5, "a", False), (10, "b", False), (15, "a", True)]
    assert report.left_out == ("b",)
    assert report.shares["a"] == 0.0
    assert report.shares["b"] == pytest.approx(9 / 15)


@pytest.mark.parametrize("seed", range(25))
def test_the_set_that_stays_holds_the_rate_and_nothing_more_would_fit(seed: int) -> None:
    random = np.random.default_rng(seed)
    costs = dict(zip(NAMES, random.uniform(0.0, 8.0, size=3).tolist(), strict=True))
    base = float(random.uniform(1.0, 9.5))
    sim = juggler()
    clock = Clock(sim, base, **costs)
    seen: Counter[tuple[str, ...]] = Counter()

    def note(sim: Simulation) -> None:
        if sim.step_number > 500:
            seen[tuple(name for name, on in sim.behaviours.items() if on)] += 1

    sim.run(until=100.0, budget=budget(clock), progress=note)
    [(kept, times)] = seen.most_common(1)
    assert times > 0.75 * sum(seen.values())

    def takes(names: tuple[str, ...]) -> float:
        return base + sum(costs[name] for name in names)

    fitting = [
        names for n in range(4) for names in itertools.combinations(NAMES, n) if takes(names) <= 10.0
    ]  # all sets that hold the rate
    assert kept in fitting
    for name in set(NAMES) - set(kept):
        # With the tenth of the time that is asked for as room.
        assert takes((*kept, name)) > 9.0
        if takes(kept) <= 9.0:
            assert tuple(sorted((*kept, name))) not in fitting


def test_when_nothing_more_can_be_left_out_the_report_says_so() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 20, a=1, b=1, c=1), 60)
    assert report.left_out == NAMES
    assert not report.holds
    assert report.held == 0
    assert report.verdict == "not held: 50, and there is nothing more to leave out"


def test_a_run_shorter_than_a_window_says_that_nothing_is_known() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 20), 3)
    assert report.holds is None
    assert report.reached == pytest.approx(50)
    assert "shorter than a window" in report.verdict


def test_behaviours_that_no_layer_has_are_no_matter_unless_they_are_asked_for() -> None:
    sim = juggler()
    assert sim.run(until=2.0, budget=Budget(steps_per_second=1e9, window=2)).budget.left_out == ()
    with pytest.raises(ParameterError, match="Budget: no layer here has the behaviour 'd'; known: a, b, c"):
        sim.run(until=2.0, budget=Budget(order=("d",)))


# Coming back --------------------------------------------------------------------------------------------------------


def test_what_was_left_out_comes_back_when_the_load_is_over() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, lambda step: 15.0 if step < 40 else 2.0, a=1, b=1, c=1), 120)
    told = switches(report)
    assert [(name, on) for _, name, on in told[:3]] == [(name, False) for name in NAMES]
    # What is missed most comes back first.
    assert [(name, on) for _, name, on in told[3:]] == [("c", True), ("b", True), ("a", True)]
    assert min(step for step, _, on in told if on) >= 40
    assert report.left_out == ()


def test_without_room_nothing_comes_back() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, 9.5, a=1), 400)
    assert switches(report) == [(5, "a", False), *switches(report)[1:]]
    assert not any(on for _, _, on in switches(report))


def test_what_did_not_fit_is_tried_again_after_twice_as_long_each_time_up_to_a_bound() -> None:
    sim = juggler()
    # Left out it leaves room, but not for itself.
    report = run(sim, Clock(sim, 8.5, a=3), 900, order=("a",), patience=2)
    tries = [step for step, _, on in switches(report) if on]
    # A window of four steps, and one to settle down after each switch.
    assert [later - earlier for earlier, later in itertools.pairwise(tries)] == [
        2 * 1 + 4 + 4 * quiet for quiet in (4, 8, 16, 32, 64, 64)
    ]
    assert all(b[2] != a[2] for a, b in itertools.pairwise(switches(report)))


def test_one_slow_window_leaves_nothing_out_for_good() -> None:
    sim = juggler()
    report = run(sim, Clock(sim, lambda step: 40.0 if 22 <= step < 26 else 3.0, a=1, b=1, c=1), 200)
    assert len(report.switches) == 2
    assert report.left_out == ()


def test_what_somebody_has_switched_off_by_hand_stays_off() -> None:
    sim = juggler()
    sim.at(0.0, events.SetBehaviour(name="c", on=False))
    report = run(sim, Clock(sim, 1, a=1, b=1, c=1), 100)
    assert report.switches == ()
    assert report.left_out == ("c",)


def test_what_somebody_switches_by_hand_is_no_longer_the_budgets() -> None:
    sim = juggler()
    sim.at(2.0, events.SetBehaviour(name="a", on=False))
    report = run(sim, Clock(sim, lambda step: 15.0 if step < 40 else 2.0, a=1, b=1, c=1), 120)
    assert report.left_out == ("a",)


# What is told -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "parquet"])
def test_decisions_are_recorded_as_events_of_their_step(kind: str, tmp_path: Path) -> None:
    sim = juggler()
    clock = Clock(sim, 5, a=0, b=9, c=1)
    summary = sim.run(until=3.0, budget=budget(clock), record=tmp_path / f"run.{kind}")
    with read_trajectory(tmp_path / f"run.{kind}") as recorded:
        told = [(each.step, each.event) for each in recorded.events]
    assert told == [
        (each.step, {"kind": "set_behaviour", "name": each.name, "on": each.on, "by": "budget"})
        for each in summary.budget.switches
    ]
    assert len(told) == 3


def test_a_decision_never_waits_for_a_step_that_is_not_made() -> None:
    for steps in range(1, 20):
        sim = juggler()
        run(sim, Clock(sim, 20, a=1), steps)
        assert len(sim.events) == 0


def test_the_summary_says_what_was_wanted_reached_and_left_out() -> None:
    sim = juggler()
    summary = sim.run(until=3.0, budget=budget(Clock(sim, 5, a=0, b=9, c=1)))
    console = Console(width=100, file=io.StringIO())
    console.print(summary.table())
    text = " ".join(console.file.getvalue().replace("│", " ").split())
    assert "steps per second wanted 100" in text
    assert "held: 167" in text
    assert "behaviours left out b" in text
    assert "behaviours kept a, c" in text
    assert "switched 3 times" in text
    told = json.loads(json.dumps(summary.as_dict()))["budget"]
    assert told["left_out"] == ["b"]
    assert [each["name"] for each in told["switches"]] == ["a", "b", "a"]
    assert juggler().run(until=1.0).budget is None


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"steps_per_second": 0}, "steps_per_second must be a positive number"),
        ({"steps_per_second": float("nan")}, "steps_per_second must be a positive number"),
        ({"window": 0}, "window must be a whole number of at least 1"),
        ({"window": 2.5}, "window must be a whole number"),
        ({"settle": -1}, "settle must be a whole number that is not negative"),
        ({"patience": True}, "patience must be a whole number"),
        ({"room": 1.0}, "room must be a number from 0 to 1, 1 excluded"),
        ({"order": ("a", "a")}, "order must name each behaviour once"),
        ({"order": "congestion"}, "order must be a list, each a string"),
        ({"fps": 60}, "Budget has no parameter 'fps'"),
    ],
)
def test_wrong_budgets_are_refused(wrong: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Budget(**wrong)
