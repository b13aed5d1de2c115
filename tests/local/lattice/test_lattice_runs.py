"""Long runs in which everything happens: nobody is lost, doubled or in a wall, and layers are what a recount says."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from lattice_reference import PlainLattice

from tropel import Door, Group, Lattice, Normal, Obstacle, PathPlans, Simulation, Source, Target, Uniform, World, events
from tropel._kernels.compile import SMALL_RUN
from tropel.world.raster import lattice_cells
from two_threads import needs_two_threads

DT = 0.2
CELL = 0.4


def busy_hall(*, seed: int = 5, crowd: int = 120, scale: int = 1, threads: int | None = None) -> Simulation:
    """Rooms with doors, exits of which one is smaller than a cell, pillars, targets that take people in and do not."""
    wide, high = 20.0 * scale, 12.0 * scale
    world = World(
        shapely.box(0, 0, wide, high) - shapely.Polygon([(5, 3), (8, 4), (6, 8)]),
        walls=[[(wide / 2, 0), (wide / 2, 5)], [(wide / 2, 7), (wide / 2, high)]],
        doors={"door": Door([(wide / 2, 5), (wide / 2, 7)], open=True)},
        exits={"east": shapely.box(wide - 0.4, 4, wide, 6), "slit": shapely.box(0, 1.95, 0.05, 2.05)},
        obstacles={"pillar": Obstacle(radius=0.5, position=(13, 4))},
        targets={
            "bar": Target(position=(15, 10), radius=0.5),
            "well": Target(position=(2, 10), radius=0.1, absorbs=True),
        },
        regions={"lobby": shapely.box(1, 4, 4, 8)},
    )  # fmt: skip
    agents = [
        Group("walkers", count=crowd, desired_speed=Normal(1.3, 0.2, low=0.5, high=1.9), delay=Uniform(0.0, 3.0)),
        Group("guests", count=crowd // 3, goal="bar", desired_speed=Uniform(0.4, 1.5)),
        Group("thirsty", count=crowd // 4, goal="well"),
        Source("walkers", rate=4.0, region="lobby", total=60, arrivals="random"),
    ]
    return Simulation(
        world, agents, planning=PathPlans(), local=Lattice(), dt=DT, seed=seed, threads=threads, watch_collisions=False
    )


def schedule(sim: Simulation, seed: int, last: float) -> None:
    """Doors, exits, obstacles, goals and people change at random times."""
    generator = np.random.default_rng(seed)

    def at() -> float:
        return float(generator.uniform(0.0, last))

    for _ in range(4):
        sim.at(at(), events.CloseDoor(door="door"))
        sim.at(at(), events.OpenDoor(door="door"))
    sim.at(at(), events.CloseExit(exit="east"))
    sim.at(at(), events.OpenExit(exit="east"))
    for number in range(3):
        begin = at()
        place = tuple(generator.uniform((1, 1), (19, 11)).tolist())
        sim.at(begin, events.AddObstacle(name=f"rubble {number}", radius=0.7, position=place))
        sim.at(begin + 0.3 * (last - begin), events.RemoveObstacle(name=f"rubble {number}"))
    for goal in ("bar", "well", "slit", "nearest target", "none", "nearest exit"):
        sim.at(at(), events.SetGoal(goal=goal, group=str(generator.choice(["walkers", "guests", "thirsty"]))))
    sim.at(0.5 * at(), events.AddTarget(name="stage", position=(17.0, 2.0)))
    sim.at(last - 1.0, events.SetGoal(goal="stage", group="guests"))
    # Between two changes of the ground: who comes in just then has a test of its own.
    sim.at(at() + 1e-3, events.AddAgents(group="guests", count=5, goal="slit"))
    sim.at(at(), events.RemoveAgents(region="lobby"))


def rows_and_columns(sim: Simulation) -> np.ndarray:
    raster = sim.ground.raster
    return np.floor((sim.agents.position - raster.origin) / CELL + 1e-9).astype(int)[:, ::-1]


def recount(sim: Simulation) -> np.ndarray:
    """The occupancy layer from scratch."""
    occupied = np.zeros(sim.ground.raster.shape, dtype=int)
    np.add.at(occupied, tuple(rows_and_columns(sim).T), 1)
    return occupied


def without_border(layer: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    rows, columns = shape[0] + 4, shape[1] + 4
    padded = layer[: rows * columns].reshape(rows, columns)
    assert padded.sum() == padded[2:-2, 2:-2].sum() == layer.sum(), "somebody stands on the border"
    return padded[2:-2, 2:-2]


class Watch:
    """Looks at a simulation after every step of a run."""

    def __init__(self, sim: Simulation) -> None:
        self.sim = sim
        self.removed: set[int] = set()
        self.known: set[int] = set(sim.agents.id.tolist())
        self.place = dict(zip(sim.agents.id.tolist(), map(tuple, rows_and_columns(sim).tolist()), strict=True))
        remove = sim.population.remove

        def noted(**what):  # type: ignore[no-untyped-def]
            gone = remove(**what)
            self.removed |= set(gone.tolist())
            return gone

        sim.population.remove = noted  # type: ignore[method-assign]

    def step(self) -> None:
        sim = self.sim
        lattice = sim.layers.models[0]
        assert isinstance(lattice, Lattice)
        left_before = len(sim.population.departures()["id"])
        sim.step()
        occupied = recount(sim)
        assert occupied.max(initial=0) <= 1, "two agents in one cell"
        left = len(sim.population.departures()["id"]) - left_before
        if left == 0:
            np.testing.assert_array_equal(without_border(lattice.occupied, occupied.shape), occupied)
        self._everybody_is_there()
        self._nobody_is_in_a_wall()

    def _everybody_is_there(self) -> None:
        sim = self.sim
        here, gone = set(sim.agents.id.tolist()), set(sim.population.departures()["id"].tolist())
        assert len(here) == len(sim.agents)
        assert len(gone) == len(sim.population.departures()["id"])
        assert not here & gone
        assert not (here | gone) & self.removed
        assert here | gone | self.removed == set(range(sim.agents.next_id))

    def _nobody_is_in_a_wall(self) -> None:
        """But for those on whom something has fallen: they stay where they are."""
        sim = self.sim
        free = lattice_cells(sim.world, CELL).free
        places = dict(zip(sim.agents.id.tolist(), map(tuple, rows_and_columns(sim).tolist()), strict=True))
        for number, place in places.items():
            if not free[place]:
                assert self.place.get(number, place) == place, f"agent {number} walked into a wall"
        self.place = places


@pytest.mark.filterwarnings("ignore:.*have no path to")
@settings(max_examples=6)
@given(seed=st.integers(0, 10_000))
def test_nobody_is_lost_doubled_or_in_a_wall_and_the_occupancy_layer_equals_a_recount(seed: int) -> None:
    sim = busy_hall(seed=seed)
    schedule(sim, seed, last=24.0)
    watch = Watch(sim)
    while sim.step_number < 120:
        watch.step()
    assert len(sim.population.departures()["id"]) > 20


@pytest.mark.filterwarnings("ignore:.*have no path to")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_plans_that_were_repaired_are_those_of_a_plain_search(seed: int) -> None:
    sim = busy_hall(seed=seed, crowd=40)
    schedule(sim, seed, last=10.0)
    sim.run(until=12.0)
    terrain, world = sim.ground, sim.world
    free = lattice_cells(world, CELL).free
    np.testing.assert_array_equal(terrain.raster.free, free)
    np.testing.assert_array_equal(terrain.short_lengths(), replace(terrain, _short=None).short_lengths())
    for goal, plan in terrain.plan_of_goal.items():
        units = terrain.units[plan]
        goal_cells = [tuple(cell) for cell in np.argwhere(units == 0).tolist()]
        plain = PlainLattice(free=free, goals={0: goal_cells}, gamma=0.6, separation=0.5, cell=CELL).ways[0]
        for cell in np.ndindex(*free.shape):
            expected = plain.get(cell)
            if expected is None:
                assert units[cell] >= 1 << 62, f"goal {goal}: a way from {cell} that does not exist"
            else:
                assert units[cell] / 2744210 == pytest.approx(expected, abs=1e-6)


def test_who_is_deep_under_what_falls_stays_and_who_is_at_its_rim_walks_out() -> None:
    world = World(shapely.box(0, 0, 8, 4), targets={"there": Target(position=(7, 2))})
    people = Group("people", count=150, goal="there")
    sim = Simulation(world, people, planning=PathPlans(), local=Lattice(headway=0.0), dt=0.2, seed=1)
    sim.at(1.0, events.AddObstacle(name="rubble", position=(3, 2), radius=1.0))
    sim.run(until=1.0)
    away = np.linalg.norm(sim.agents.position - (3, 2), axis=1)
    deep, rim = away < 0.5, (away > 0.8) & (away < 1.0)
    places = sim.agents.position.copy()
    watch = Watch(sim)
    for _ in range(40):
        watch.step()
    assert deep.any()
    assert rim.any()
    np.testing.assert_array_equal(sim.agents.position[deep], places[deep])
    assert (np.linalg.norm(sim.agents.position[rim] - (3, 2), axis=1) > 1.0).all()


# Determinism ------------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*have no path to")
@needs_two_threads
def test_one_thread_and_two_give_the_same_bits() -> None:
    hashes = []
    for threads in (1, 2):
        sim = busy_hall(scale=3, crowd=2400, threads=threads)
        schedule(sim, 1, last=4.0)
        used = set()
        sim.run(until=5.0, progress=lambda _, used=used: used.add(numba.get_num_threads()))
        assert used == {threads}
        assert len(sim.agents) > SMALL_RUN
        assert len(sim.population.departures()["id"]) > 0
        hashes.append(sim.state_hash())
    assert hashes[0] == hashes[1]


@pytest.mark.filterwarnings("ignore:.*have no path to")
def test_a_resumed_run_has_the_bits_of_one_that_was_never_stopped(tmp_path: Path) -> None:
    going_on = busy_hall()
    schedule(going_on, 7, last=12.0)
    going_on.run(until=6.0)
    going_on.save(tmp_path / "half")
    resumed = busy_hall()
    schedule(resumed, 7, last=12.0)
    resumed.restore(tmp_path / "half")
    while going_on.step_number < 70:
        assert resumed.state_hash() == going_on.state_hash(), f"step {going_on.step_number}"
        going_on.step()
        resumed.step()
    assert resumed.state_hash() == going_on.state_hash()


def test_a_run_that_went_on_can_go_back_to_its_checkpoint(tmp_path: Path) -> None:
    sim = busy_hall()
    sim.run(until=3.0)
    sim.save(tmp_path / "checkpoint")
    sim.run(until=6.0)
    first = sim.state_hash()
    sim.restore(tmp_path / "checkpoint")
    sim.run(until=6.0)
    assert sim.state_hash() == first


def test_another_seed_is_another_run() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        hashes = set()
        for seed in (1, 2):
            sim = busy_hall(seed=seed)
            sim.run(until=2.0)
            hashes.add(sim.state_hash())
    assert len(hashes) == 2
