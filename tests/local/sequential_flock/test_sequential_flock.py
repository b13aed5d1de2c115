"""The flock of the public comparisons, against a plain version of the same rules."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sequential_reference import order_of, sequential_step

import tropel
from tropel._kernels.philox import random_key
from tropel.agents.state import AgentState, Steered
from tropel.analysis import polarisation
from tropel.contracts import Moment
from tropel.errors import ParameterError
from tropel.local.sequential_flock.model import random_order

Floats = NDArray[np.float64]


def flock(
    *, count: int = 150, side: float = 20.0, dim: int = 2, periodic: Any = True, seed: int = 3, threads: int = 1,
    vision: Any = 3.0, speed: Any = 1.0, **parameters: Any,
) -> tropel.Simulation:  # fmt: skip
    world = tropel.World.box([0.0] * dim, [side] * dim, periodic=periodic, open=True)
    places = np.random.default_rng(count).uniform(0.0, side, (count, dim))
    birds = tropel.Group("birds", positions=places, radius=0.01, sense_radius=vision, desired_speed=speed, goal="none")
    model = tropel.SequentialFlock(**parameters)
    return tropel.Simulation(world, birds, local=model, dt=1.0, seed=seed, threads=threads, watch_collisions=False)


@pytest.mark.parametrize("periodic", [True, "x", False])
@pytest.mark.parametrize("dim", [2, 3])
def test_every_step_is_that_of_the_plain_version(dim: int, periodic: Any) -> None:
    rng = np.random.default_rng(5)
    rules = {"cohere": 0.05, "separate": 0.4, "match": 0.1, "separation": 1.5}
    vision, speed = rng.uniform(1.0, 4.0, 150), rng.uniform(0.2, 1.5, 150)
    sim = flock(dim=dim, periodic=periodic, vision=vision, speed=speed, side=20.0 if dim == 2 else 10.0, **rules)
    sim.step()
    for step in range(1, 12):
        order = order_of(sim.agents.id.tolist(), 3, step)
        period = sim.world.period
        place, facing = sequential_step(
            sim.agents.position, sim.agents.heading, order, vision=vision, stride=speed, period=period, **rules
        )
        sim.step()
        gap = np.abs(sim.agents.position - place)
        gap[:, period > 0.0] = np.minimum(gap, np.abs(gap - period))[:, period > 0.0]
        assert gap.max() < 1e-12
        np.testing.assert_allclose(sim.agents.heading, facing, rtol=0.0, atol=1e-12)


def test_a_crowded_cell_is_laid_out_anew_in_the_middle_of_a_step() -> None:
    """All fly to one corner, whose cell has room for a few more than were there."""
    sim = flock(count=300, side=12.0, periodic=False, vision=2.0, speed=4.0, random_start=False, cohere=0.0, match=0.0)
    towards = 1.0 - sim.agents.position
    sim.agents.heading[:] = towards / np.linalg.norm(towards, axis=1, keepdims=True)
    for step in range(4):
        place, _ = sequential_step(
            sim.agents.position,
            sim.agents.heading,
            order_of(sim.agents.id.tolist(), 3, step),
            vision=np.full(300, 2.0),
            stride=np.full(300, 4.0),
            period=np.zeros(2),
            cohere=0.0,
            match=0.0,
        )
        sim.step()
        np.testing.assert_allclose(sim.agents.position, place, rtol=0.0, atol=1e-12)


def test_who_comes_later_sees_where_the_others_have_gone() -> None:
    """Of two who match headings only, the second turns to the heading that the first has already."""
    sim = flock(count=2, cohere=0.0, separate=0.0, match=1.0, random_start=False)
    sim.agents.position[:] = (5.0, 5.0), (6.0, 5.0)
    sim.agents.heading[:] = (1.0, 0.0), (0.0, 1.0)
    first = order_of([0, 1], 3, 0)[0]
    sim.step()
    halfway = math.sqrt(0.5)
    assert sim.agents.heading[first] == pytest.approx([halfway, halfway])
    late = sim.agents.heading[1 - first]
    assert late[first] == pytest.approx(halfway / math.hypot(1.0 + halfway, halfway))


def test_a_flock_from_a_random_start_becomes_parallel_and_not_without_matching() -> None:
    ends = {}
    for match in (0.3, 0.0):
        sim = flock(count=200, side=50.0, vision=15.0, match=match, cohere=0.0)
        sim.step()
        if not match:
            assert polarisation(sim.agents.heading) < 0.2
        for _ in range(100):
            sim.step()
        ends[match] = polarisation(sim.agents.heading)
    assert ends[0.3] > 0.95
    assert ends[0.0] < 0.2


def test_velocity_is_the_way_flown_also_over_the_seam() -> None:
    sim = flock(side=8.0)
    for _ in range(5):
        sim.step()
        np.testing.assert_allclose(sim.agents.velocity, sim.agents.heading, atol=1e-12)
        assert ((sim.agents.position >= 0.0) & (sim.agents.position < 8.0)).all()


def test_the_same_bits_on_any_number_of_threads_and_after_a_resume(tmp_path: Path) -> None:
    sims = [flock(count=5000, side=100.0, threads=threads) for threads in (1, 2)]
    for _ in range(6):
        for sim in sims:
            sim.step()
    sims[0].save(tmp_path / "checkpoint.npz")
    resumed = flock(count=5000, side=100.0)
    resumed.restore(tmp_path / "checkpoint.npz")
    for sim in (*sims, resumed):
        for _ in range(3):
            sim.step()
    assert len({sim.state_hash() for sim in (*sims, resumed)}) == 1


def test_rows_in_another_order_fly_the_same_bits() -> None:
    sim = flock()
    sim.step()
    out = Steered.like(sim.agents, ["flying"])
    out.begin(sim.agents)
    model = sim.all_layers()[-1]
    moment = Moment.of(sim.agents, sim.world, environment=sim.environment, dt=1.0, step=1)
    model.steer(moment, out)
    rows = np.random.default_rng(1).permutation(150)
    mixed = AgentState(2, model.all_columns)
    mixed.columns = {name: column[rows] for name, column in sim.agents.columns.items()}
    mixed_out = Steered.like(mixed, ["flying"])
    mixed_out.begin(mixed)
    model.steer(Moment.of(mixed, sim.world, environment=sim.environment, dt=1.0, step=1), mixed_out)
    np.testing.assert_array_equal(mixed_out.position, out.position[rows])
    np.testing.assert_array_equal(mixed_out.heading, out.heading[rows])


def test_newcomers_begin_in_all_directions_or_along_their_heading() -> None:
    for dim in (2, 3):
        sim = flock(count=4000, side=400.0, vision=0.0, dim=dim)
        sim.step()
        np.testing.assert_allclose(np.linalg.norm(sim.agents.heading, axis=1), 1.0)
        np.testing.assert_allclose(sim.agents.heading.T @ sim.agents.heading / 4000, np.eye(dim) / dim, atol=0.03)
    sim = flock(count=50, vision=0.0, random_start=False)
    sim.step()
    assert (sim.agents.heading == (1.0, 0.0)).all()


def test_who_waits_is_seen_but_does_not_move() -> None:
    sim = flock(count=2, random_start=False, cohere=1.0)
    sim.agents.position[:] = (5.0, 5.0), (5.0, 7.0)
    sim.agents.stage[1], sim.agents.stage_until[1] = -1, 3.0
    sim.step()
    assert sim.agents.position[1].tolist() == [5.0, 7.0]
    assert sim.agents.heading[0, 1] > 0.5
    for _ in range(3):
        sim.step()
    assert sim.agents.position[1].tolist() != [5.0, 7.0]


@pytest.mark.parametrize("count", [1, 2, 3, 100, 4097])
def test_the_random_order_is_that_of_the_drawn_numbers(count: int) -> None:
    ids = np.sort(np.random.default_rng(count).permutation(3 * count)[:count]).astype(np.int64)
    key = random_key(9, "sequential flock: order")
    assert random_order(ids, key=key, step=4).tolist() == order_of(ids.tolist(), 9, 4)


def test_everybody_comes_first_as_often() -> None:
    key = random_key(1, "sequential flock: order")
    ids = np.arange(6)
    orders = np.array([random_order(ids, key=key, step=step) for step in range(6000)])
    for place in range(6):
        counts = np.bincount(orders[:, place], minlength=6)
        assert abs(counts - 1000).max() < 5.0 * math.sqrt(1000)


def test_agents_of_other_models_are_neither_seen_nor_moved() -> None:
    world = tropel.World.box((0.0, 0.0), (20.0, 20.0), open=True)
    places = np.random.default_rng(1).uniform(0.0, 20.0, (60, 2))

    def run(groups: list[tropel.Group]) -> tropel.Simulation:
        models = {"birds": tropel.SequentialFlock(), "people": tropel.Seek()}
        local = {group.name: models[group.name] for group in groups}
        sim = tropel.Simulation(world, groups, local=local, dt=1.0, seed=2, watch_collisions=False)
        for _ in range(5):
            sim.step()
        return sim

    birds = tropel.Group("birds", positions=places, radius=0.01, desired_speed=1.0, goal="none")
    people = tropel.Group("people", positions=places + 0.5, radius=0.01, desired_speed=1.0, goal="none")
    alone, together = run([birds]), run([birds, people])
    np.testing.assert_allclose(together.agents.position[:60], alone.agents.position, rtol=0.0, atol=1e-12)
    assert (together.agents.position[60:] == places + 0.5).all()


@pytest.mark.parametrize(("name", "value"), [("cohere", math.nan), ("separation", -1.0), ("match", math.inf)])
def test_parameters_that_make_no_sense_are_named(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=name):
        tropel.SequentialFlock(**{name: value})
    with pytest.raises(ParameterError, match="cohere"):
        tropel.SequentialFlock(coher=1.0)
