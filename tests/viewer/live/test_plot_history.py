"""What live plots show, against what the run itself knows."""

from __future__ import annotations

import numpy as np
import pytest
from overlay_scenes import rooms, steps, walkers

from tropel import Direct, Group, Hazard, Seek, Simulation, World
from tropel.viewer.live.plots_tab import History, evacuated, exit_flows, mean_speed, shown_exits


def noted(sim: Simulation, count: int, most: int = 240) -> History:
    history = History(most)
    history.step_done(sim)
    for _ in range(count):
        sim.step()
        history.step_done(sim)
    return history


def test_the_history_is_bounded_and_still_covers_the_whole_run() -> None:
    sim = walkers(10)
    history = noted(sim, 400, most=16)
    time = history.step_time().time
    assert 7 <= len(time) <= 15
    apart = np.diff(time)
    assert time[0] <= apart[0] + 1.0
    assert np.allclose(apart, apart[0])
    assert sim.time - time[-1] <= apart[0] + 1e-9


def test_speed_is_the_mean_of_the_living() -> None:
    sim = walkers(20)
    history = noted(sim, 12)
    speeds = history.speed()
    assert speeds.time[-1] == pytest.approx(1.2)
    assert speeds.lines["mean speed"][-1] == pytest.approx(np.hypot(*sim.agents.velocity.T).mean())


def test_the_dead_and_the_absent_have_no_speed() -> None:
    world = rooms(hazards={"fire": Hazard(inner=1.0, position=(2.0, 2.0))})
    people = Group("people", positions=[(2.0, 2.0), (6.0, 6.0)], desired_speed=1.0)
    sim = steps(Simulation(world, people, local=Seek(), dt=0.1, threads=1), 5)
    assert mean_speed(sim) == pytest.approx(float(np.linalg.norm(sim.agents.velocity[1])))
    sim.remove_agents()
    assert np.isnan(mean_speed(sim))


def test_times_of_stages_add_up_to_what_was_spent() -> None:
    sim = walkers(10)
    history = History()
    spent = []
    for _ in range(42):
        history.step_done(sim)
        spent.append(sim.timing.total)
        sim.step()
    curves = history.step_time()
    # Notes are taken after the steps 2, 7, 12, …: the first steps compile kernels and do not count.
    assert np.allclose(curves.time, np.arange(0.7, 4.0, 0.5))
    milliseconds = sum(curves.lines.values())
    assert np.allclose(milliseconds * 5, 1e3 * np.diff(np.array(spent)[2::5]))


def test_evacuated_and_flows_are_the_departures() -> None:
    sim = steps(walkers(30), 200)
    left = sim.population.departed
    assert left > 10
    so_far = evacuated(sim, most=50)
    assert len(so_far.time) == 51
    assert so_far.lines["left"][0] == 0
    assert so_far.lines["left"][-1] == left
    times = sim.population.departures()["time"]
    middle = so_far.time[25]
    assert so_far.lines["left"][25] == (times <= middle + 1e-9).sum()
    flows = exit_flows(sim, shown_exits(sim))
    assert list(flows.lines) == ["east"]
    assert 2.0 * flows.lines["east"].sum() == left, "flow times 2 s, over all intervals"
    few = exit_flows(sim, shown_exits(sim), most=4)
    assert len(few.time) <= 4


def test_deaths_are_shown_when_there_are_any() -> None:
    world = rooms(hazards={"fire": Hazard(inner=1.0, position=(2.0, 2.0))})
    sim = steps(Simulation(world, Group("people", positions=[(2.0, 2.0), (6.0, 6.0)]), dt=0.1, threads=1), 5)
    assert evacuated(sim).lines["died"][-1] == 1
    assert "died" not in evacuated(steps(walkers(2), 2)).lines


def test_nothing_has_happened_before_the_first_step() -> None:
    sim = walkers(3)
    assert evacuated(sim).lines["left"].tolist() == [0.0]
    assert len(exit_flows(sim, ["east"]).time) == 0
    history = History()
    history.step_done(sim)
    assert len(history.speed().time) == 0
    assert len(history.step_time().time) == 0


def test_many_exits_share_a_line() -> None:
    exits = {f"exit {k}": [(15.5, k), (16.0, k), (16.0, k + 0.8), (15.5, k + 0.8)] for k in range(8)}
    world = World([(0.0, 0.0), (16.0, 0.0), (16.0, 8.0), (0.0, 8.0)], exits=exits)
    people = Group("people", positions=[(15.3, k + 0.4) for k in range(8)], desired_speed=1.0)
    sim = steps(Simulation(world, people, planning=Direct(), local=Seek(), dt=0.1, threads=1), 21)
    flows = exit_flows(sim, shown_exits(sim))
    assert list(flows.lines) == [*(f"exit {k}" for k in range(5)), "others"]
    assert 2.0 * flows.lines["others"].sum() == (sim.population.departures()["goal"] >= 5).sum() == 3


def test_a_restarted_run_has_a_history_of_its_own() -> None:
    history = noted(walkers(3), 30)
    assert len(history.speed().time) > 1
    history.step_done(walkers(3))
    assert len(history.speed().time) == 0
