"""What the hash of a simulation covers, and when events happen."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from busy_scenes import SCENES, busy_hall, hall, steps
from hypothesis import given, settings
from hypothesis import strategies as st

import tropel
from tropel import events
from tropel.events.queue import step_at


@pytest.mark.parametrize("scene", SCENES)
def test_the_same_seed_gives_the_same_hash_and_another_one_another(scene: str) -> None:
    first, again, other = (steps(SCENES[scene](seed=seed), 10).state_hash() for seed in (5, 5, 6))
    assert first == again
    assert first != other


class Counting(tropel.Direct):
    """A planner with a memory."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def state(self) -> dict[str, Any]:
        return {"count": np.array(self.count)}

    def restore(self, stored: dict[str, Any]) -> None:
        self.count = int(stored["count"])


def _shift_one_bit(sim: tropel.Simulation) -> None:
    sim.agents.position[7, 1] = np.nextafter(sim.agents.position[7, 1], np.inf)


def _set_counter(sim: tropel.Simulation) -> None:
    sim.all_layers()[1].count += 1


def _swap_two(sim: tropel.Simulation) -> None:
    sim.agents.position[[3, 4]] = sim.agents.position[[4, 3]]


@pytest.mark.parametrize(
    "change",
    [
        _shift_one_bit,
        _swap_two,
        _set_counter,
        tropel.Simulation.step,
        lambda sim: sim.set_goal("desk", group="followers"),
        lambda sim: sim.set_parameter("sense_radius", 2.0),
        lambda sim: sim.remove_agents(ids=[int(sim.agents.id[-1])]),
        lambda sim: sim.world.set_door("north", open=True),
        lambda sim: sim.world.set_exit("east", open=False),
        lambda sim: sim.world.obstacles.move("pillar", (15.0, 4.1)),
        lambda sim: sim.world.obstacles.remove("robot"),
        lambda sim: sim.world.move_target("stall", (3.0, 11.0)),
        lambda sim: sim.at(4.0, events.OpenDoor(door="north")),
        lambda sim: sim.population.waiting.__setitem__(0, 1),
    ],
)
def test_whatever_the_future_depends_on_changes_the_hash(change: Callable[[tropel.Simulation], Any]) -> None:
    sim = steps(hall(planning=Counting()), 4)
    before = sim.state_hash()
    assert sim.state_hash() == before
    change(sim)
    assert sim.state_hash() != before


def test_the_hash_does_not_depend_on_what_was_only_looked_at() -> None:
    sim, other = steps(busy_hall(), 20), steps(busy_hall(), 20)
    near = sim.sense()
    near.csr(), near.neighbours(), near.cells.cell_list, near.walls_csr(), near.obstacles_csr()
    sim.world.goals()
    assert sim.state_hash() == other.state_hash()
    assert steps(sim, 30).state_hash() == steps(other, 30).state_hash()


# When events happen ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("dt", "time", "step"),
    [(0.1, 0.3, 3), (0.1, 0.7, 7), (0.05, 0.15, 3), (0.1, 0.30001, 4), (0.1, 0.29999, 3), (0.1, 0.0, 0), (0.3, 0.9, 3)],
)
def test_an_event_happens_at_the_first_step_that_is_not_before_its_time(dt: float, time: float, step: int) -> None:
    happened: list[int] = []
    sim = hall(dt=dt)
    sim.at(time, lambda sim: happened.append(sim.step_number))
    steps(sim, step + 2)
    assert happened == [step]


@given(step=st.integers(0, 10**6), dt=st.sampled_from([0.01, 0.02, 0.025, 0.04, 0.05, 0.1, 0.2, 0.25, 1.0 / 3.0]))
@settings(max_examples=200)
def test_the_time_of_a_step_means_that_step(step: int, dt: float) -> None:
    assert step_at(step * dt, dt) == step
    assert step_at(float(Fraction(step) * Fraction(str(dt))), dt) == step
    assert step_at((step + 0.001) * dt, dt) == step + 1
