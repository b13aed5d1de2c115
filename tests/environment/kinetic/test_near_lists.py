"""Near lists in the plane and in space against plain NumPy, in every step."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel._kernels.arrays import Ragged, as_ragged
from tropel._kernels.compile import threads_restored
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contracts import Moment
from tropel.environment.kinetic.lists import NearLists, best_leash
from tropel.environment.kinetic.model import Kinetic
from tropel.world import World

Floats = NDArray[np.float64]


class Flock:
    """Agents in open space, one per square or cubic metre, and their neighbours."""

    def __init__(self, dim: int, rng: np.random.Generator, count: int, radius: Floats | float) -> None:
        self.rng = rng
        self.side = max(count, 1) ** (1 / dim)
        self.world = World.box([0.0] * dim, [self.side] * dim, open=True)
        self.state, self.cells, self.kinetic = AgentState(dim), CellGrid(), Kinetic()
        self.come(count, radius)

    def come(self, count: int, radius: Floats | float) -> None:
        known = len(self.state)
        self.state.add(count, {"sense_radius": radius})
        self.state.position[known:] = self.places(count)

    def places(self, count: int) -> Floats:
        return self.rng.random((count, self.state.dim)) * self.side

    def wander(self, length: float | Floats) -> None:
        step = self.rng.normal(size=self.state.position.shape)
        step *= (length / np.linalg.norm(step, axis=1))[:, None]
        self.move_to(self.state.position + step)

    def move_to(self, position: Floats) -> None:
        self.state.columns["position"] = position

    def find(self, radius: Floats | None = None) -> Ragged:
        self.cells.begin(self.state, self.world)
        near = self.kinetic.sense(Moment.of(self.state, self.world, cells=self.cells))
        return as_ragged(near.lists(self.state.sense_radius if radius is None else radius))

    @property
    def lists(self) -> NearLists:
        assert self.kinetic.crowd is not None
        return self.kinetic.crowd._usual

    @property
    def renewed(self) -> int:
        """How many lists the last step has filled."""
        work = self.lists.work
        return len(self.state) if work.filled else work.renewed

    def check(self, radius: Floats | None = None) -> None:
        """Every agent has exactly those near it that are within its radius, each once."""
        found = self.find(radius)
        place = self.state.position
        radius = self.state.sense_radius if radius is None else radius
        lists = [found.of(row) for row in range(len(place))]
        away = place[None, :, :] - place[:, None, :]
        square = away[..., 0] * away[..., 0] + away[..., 1] * away[..., 1]
        if self.state.dim == 3:
            square += away[..., 2] * away[..., 2]
        wanted = square <= (radius * radius)[:, None]
        np.fill_diagonal(wanted, False)
        table = np.zeros_like(wanted)
        for row, rows in enumerate(lists):
            table[row, rows] = True
        assert np.array_equal(table, wanted)
        assert found.length.sum() == wanted.sum()


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("length", [0.001, 0.03, 0.13])
@pytest.mark.parametrize("dim", [2, 3])
def test_near_is_exact_in_every_step_of_a_random_walk(dim: int, seed: int, length: float) -> None:
    rng = np.random.default_rng(seed)
    flock = Flock(dim, rng, 150, rng.uniform(0.0, 2.5, 150))
    filled = 0
    for _ in range(200):
        flock.check()
        filled += flock.renewed
        flock.wander(length)
    # About what a step uses up, as a share of the margin; small radii have small margins.
    assert filled < {0.001: 0.05, 0.03: 0.4, 0.13: 0.8}[length] * 150 * 200


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dim", [2, 3])
def test_near_is_exact_with_all_speeds_at_once(dim: int, seed: int) -> None:
    """Most stand, some walk, a few fly, one jumps; they take turns."""
    rng = np.random.default_rng(seed)
    flock = Flock(dim, rng, 200, rng.uniform(0.3, 2.0, 200))
    for step in range(200):
        flock.check()
        length = np.zeros(200)
        length[rng.choice(200, 20)] = 0.02
        length[rng.choice(200, 3)] = 0.5
        flock.wander(np.roll(length, step))
        if step % 5 == 0:
            flock.state.position[rng.integers(200)] = flock.places(1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dim", [2, 3])
def test_near_is_exact_while_agents_come_go_and_jump_and_radii_change(dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    flock = Flock(dim, rng, 120, rng.uniform(0.5, 2.0, 120))
    for step in range(200):
        flock.wander(0.02 * (rng.random(len(flock.state)) < 0.7))
        place = flock.state.position
        if step % 5 == 0:
            place[rng.choice(len(place), 2)] = flock.places(2)
        if step % 7 == 0:
            one, other = rng.choice(len(place), 2, replace=False)
            place[one] = place[other]
        if step % 3 == 0:
            flock.state.drop(np.sort(rng.choice(len(place), 3, replace=False)))
            flock.come(3, rng.uniform(0.5, 2.0, 3))
        if step % 11 == 0:
            flock.state.sense_radius[:] = rng.uniform(0.0, 2.0, len(flock.state))
        if step % 4 != 3:  # nobody may ask for a while
            flock.check()
        if step % 50 == 49:  # half of them leave, many come
            flock.state.keep(rng.random(len(flock.state)) < 0.5)
            flock.come(70, 1.0)


@pytest.mark.parametrize("count", [0, 1, 2, 5])
@pytest.mark.parametrize("dim", [2, 3])
def test_a_handful_of_birds(dim: int, count: int) -> None:
    flock = Flock(dim, np.random.default_rng(count), count, 1.0)
    for step in range(12):
        flock.check()
        flock.wander(0.1)
        if step % 4 == 3:
            flock.come(1, 2.0)
    flock.state.keep(np.zeros(len(flock.state), dtype=np.bool_))
    flock.check()
    flock.come(3, 1.0)
    flock.check()


@pytest.mark.parametrize("dim", [2, 3])
def test_creeping_adds_up(dim: int) -> None:
    rng = np.random.default_rng(0)
    flock = Flock(dim, rng, 60, 1.0)
    aside = np.eye(dim)[0]
    flock.state.position[1] = flock.state.position[0] + (1.0 + 1e-9) * aside
    flock.check()
    for _ in range(60):
        flock.move_to(flock.state.position + rng.choice([-1.0, 1.0], (60, dim)) * 1e-11)
        flock.state.position[1] -= 2e-11 * aside
        flock.check()


@pytest.mark.parametrize("dim", [2, 3])
def test_other_radii_have_lists_of_their_own(dim: int) -> None:
    rng = np.random.default_rng(0)
    flock = Flock(dim, rng, 150, 1.2)
    for step in range(60):
        flock.check()
        if step % 3 == 0:
            flock.check(rng.uniform(0.0, 3.0, 150) if step % 2 else np.full(150, 0.7))
        flock.wander(0.03)


@pytest.mark.parametrize("radius", [0.0, 1e-9, 100.0, math.inf])
@pytest.mark.parametrize("dim", [2, 3])
def test_radii_of_zero_and_larger_than_the_world(dim: int, radius: float) -> None:
    rng = np.random.default_rng(0)
    flock = Flock(dim, rng, 60, radius)
    flock.state.sense_radius[::7] = 1.0
    for step in range(40):
        flock.check()
        flock.wander(0.05 if step % 3 else 0.0)
        flock.state.position[5] = flock.state.position[4]


@pytest.mark.parametrize("dim", [2, 3])
def test_all_agents_at_one_point_and_back(dim: int) -> None:
    rng = np.random.default_rng(0)
    flock = Flock(dim, rng, 80, rng.uniform(0.0, 1.5, 80))
    start = flock.state.position.copy()
    for share in [*np.linspace(0.0, 1.0, 15), 1.0, 1.0, *np.linspace(1.0, 0.0, 7)]:
        flock.move_to(start + share * (start[0] - start) if share < 1.0 else np.tile(start[0], (80, 1)))
        flock.check()


@pytest.mark.parametrize("crowd", ["lattice", "plane", "line", "one place"])
@pytest.mark.parametrize("dim", [2, 3])
def test_distances_of_exactly_the_radius_count(dim: int, crowd: str) -> None:
    axis = np.arange(4.0)
    position = np.stack(np.meshgrid(*[axis] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    if crowd == "plane":
        position[:, -1] = 1.0
    elif crowd == "line":
        position = np.outer(np.arange(20.0), np.eye(dim)[1])
    elif crowd == "one place":
        position = np.full((20, dim), 0.5)
    count = len(position)
    flock = Flock(dim, np.random.default_rng(0), count, np.where(np.arange(count) % 2 == 0, 1.0, np.sqrt(2.0)))
    for step in range(10):
        flock.move_to(position + np.array([0.25, 0.5, 0.0])[:dim] * step)
        flock.check()


@pytest.mark.parametrize("dim", [2, 3])
def test_a_crowd_at_rest_fills_no_lists_and_keeps_its_neighbours(dim: int) -> None:
    rng = np.random.default_rng(0)
    flock = Flock(dim, rng, 300, 1.5)
    for _ in range(5):
        flock.check()
    assert flock.renewed == 0
    assert flock.lists.work.found == 0
    flock.state.position[7] += 0.05
    flock.check()  # the first step that shows how long a leash should be
    for _ in range(10):  # one moves among them: only its own list may expire, and few near sets change
        flock.state.position[7] += 0.05
        flock.check()
        assert not flock.lists.work.filled
        assert flock.lists.work.renewed <= 1
        assert 1 <= flock.lists.work.found < 30


@pytest.mark.parametrize("dim", [2, 3])
def test_one_fast_agent_does_not_expire_the_lists_of_others(dim: int) -> None:
    rng = np.random.default_rng(0)
    flock = Flock(dim, rng, 1000, 1.2)
    filled = 0
    for step in range(60):
        flock.wander(1e-3)
        flock.state.position[0] = [1.0 + 0.12 * step, 5.0, 5.0][:dim]
        flock.check()
        filled += flock.renewed if step >= 10 else 0
    assert filled < 50 * 0.1 * 1000


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("dim", [2, 3])
def test_near_is_exact_in_a_quiet_crowd_whose_few_gather_scatter_and_see_farther(dim: int, seed: int) -> None:
    """Cells overflow, movers see far or nothing, radii change, and one jumps across a few cells."""
    rng = np.random.default_rng(seed)
    flock = Flock(dim, rng, 300, np.where(rng.random(300) < 0.02, 8.0, 1.5))
    flock.check()
    quiet = 0
    for step in range(90):
        place = flock.state.position.copy()
        few = rng.choice(300, 12, replace=False)
        if step % 30 < 12:
            place[few] = 0.3 * place[few] + 0.7 * flock.side / 2
        else:
            place[few[:8]] += rng.normal(0.0, 0.1, (8, dim))
            place[few[8]] += 4.0
            place[few[9]] = flock.places(1)[0]
        flock.move_to(place)
        if step % 10 == 5:
            radius = flock.state.sense_radius.copy()
            radius[few[10:]] = rng.uniform(0.0, 9.0, 2)
            flock.state.columns["sense_radius"] = radius
        flock.check()
        quiet += flock.lists._quiet is not None
    assert quiet > 60


def test_the_leash_costs_the_least() -> None:
    radius = 1.5
    wide = np.linspace(1e-3, 3.0, 30_000)
    for move in (1e-3, 0.03, 0.4):
        cost = 8.0 * (radius + wide) ** 2 * 2.0 * move / wide + 2.2 * 4.0 * radius * wide
        assert 2.0 * best_leash(radius, move) == pytest.approx(wide[np.argmin(cost)], abs=2e-4)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_number_of_threads_does_not_show(dim: int) -> None:
    found = []
    for threads in (1, 2):
        with threads_restored(threads):
            rng = np.random.default_rng(0)
            flock = Flock(dim, rng, 500, rng.uniform(0.5, 2.0, 500))
            steps = []
            for _ in range(20):
                flock.wander(0.05)
                found_now = flock.find()
                steps.extend(found_now.of(row).copy() for row in range(500))
            found.append(np.concatenate(steps))
    assert np.array_equal(found[0], found[1])
