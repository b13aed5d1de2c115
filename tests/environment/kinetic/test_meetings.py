"""Collisions and encounters from the lists of the kinetic environment: the same logs as from cells, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tropel
from tropel.environment.kinetic.meetings import SteadyRadii
from tropel.environment.kinetic.model import Kinetic
from tropel.environment.kinetic.plane import InPlane
from tropel.scenario import load_builtin
from tropel.scenario.schema import EnvironmentSpec


class Wild(tropel.Model):
    """Everybody goes anywhere, and a few go far."""

    declares = tropel.ModelDeclaration()

    def __init__(self, seed: int, *, jumps: bool) -> None:
        self.parameters = f"{seed}, {jumps}"
        self._seed, self._jumps = seed, jumps

    def steer(self, moment: tropel.Moment, out: tropel.Steered) -> None:
        draws = np.random.default_rng((self._seed, moment.step))
        velocity = draws.normal(0.0, 1.5, (4 * len(moment.state) + 8, moment.state.dim))
        if self._jumps:
            velocity[::40] *= 25.0
        out.velocity[moment.members] = velocity[moment.members]


def wild_crowd(environment: tropel.Environment, *, dim: int, seed: int, jumps: bool) -> tropel.Simulation:
    side = 14.0 if dim == 2 else 7.0
    pillars = {name: tropel.Obstacle(radius=0.5, position=(at,) * dim) for name, at in (("one", 2.0), ("two", 5.0))}
    people = tropel.Group("a", count=200, radius=tropel.Uniform(0.02, 0.2), goal="none", sense_radius=1.0)
    sim = tropel.Simulation(
        tropel.World.box((0.0,) * dim, (side,) * dim, obstacles=pillars),
        people,
        planning=tropel.Direct(),
        local=Wild(seed, jumps=jumps),
        habits=[],
        environment=environment,
        seed=seed,
        dt=0.1,
        watch_collisions=True,
    )
    sim.watch_encounters(0.6)
    return sim


def what_happened(sim: tropel.Simulation) -> dict[str, NDArray[Any]]:
    logs = {"collision": vars(sim.collisions), "encounter": vars(sim.encounters.table())}
    return {f"{kind} {name}": np.asarray(column) for kind, log in logs.items() for name, column in log.items()}


def same(one: tropel.Simulation, other: tropel.Simulation) -> None:
    ours, theirs = what_happened(one), what_happened(other)
    for name, column in ours.items():
        np.testing.assert_array_equal(column, theirs[name], err_msg=name)
    assert np.array_equal(one.agents.collided, other.agents.collided)


def answered(kinetic: Kinetic, monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How often pairs were asked for and known, by purpose."""
    counts: dict[str, int] = {}
    asked = kinetic.pairs_within

    def count(purpose: str, *values: Any) -> Any:
        found = asked(purpose, *values)
        counts[purpose] = counts.get(purpose, 0) + (found is not None)
        return found

    monkeypatch.setattr(kinetic, "pairs_within", count)
    return counts


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("jumps", [False, True])
@pytest.mark.parametrize("dim", [2, 3])
def test_logs_are_those_of_the_grid_to_the_last_bit(
    dim: int, jumps: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinetic = Kinetic()
    ours = wild_crowd(kinetic, dim=dim, seed=seed, jumps=jumps)
    theirs = wild_crowd(tropel.Grid(), dim=dim, seed=seed, jumps=jumps)
    counts = answered(kinetic, monkeypatch)
    for step in range(25):
        for sim in (ours, theirs):
            if step % 8 == 7:
                sim.remove_agents(ids=[step])
                sim.add_agents("a", count=5, radius=0.1, goal="none", sense_radius=1.0)
            sim.step()
    assert counts == {"collisions": 25, "encounters": 25}
    same(ours, theirs)
    assert len(ours.collisions) > 50


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("scene", ["corridor", "thin_wall", "mixed_hall", "chase3d"])
def test_scenes_log_the_same(scene: str, seed: int) -> None:
    """Also where walls cut lists, and where agents move in two phases: there the cells are searched."""
    sims = []
    for environment in (EnvironmentSpec(model="kinetic"), EnvironmentSpec(model="grid")):
        scenario = load_builtin(scene)
        spec = scenario.spec.model_copy(update={"environment": environment, "watch_collisions": True})
        sims.append(replace(scenario, spec=spec).build(seed=seed))
        sims[-1].watch_encounters(1.0)
        for _ in range(60):
            sims[-1].step()
    assert np.array_equal(sims[0].agents.id, sims[1].agents.id)
    assert np.array_equal(sims[0].agents.position, sims[1].agents.position)
    same(*sims)


def test_walls_that_are_edges_do_not_keep_bodies_from_being_compared() -> None:
    """Two bodies that overlap through a thin wall are logged whatever they know of each other."""
    world = tropel.World([(0, 0), (6, 0), (6, 4), (0, 4)], walls=[[(3, 0), (3, 4)]])
    logs = []
    for environment in (tropel.Grid(), Kinetic(visibility="visible"), Kinetic(visibility="approachable")):
        people = tropel.Group("people", positions=[(2.9, 2.0), (3.1, 2.0)], radius=0.2, goal="none")
        sim = tropel.Simulation(
            world, people, local=Wild(0, jumps=False), environment=environment, dt=0.01, watch_collisions=True
        )
        sim.step()
        logs.append([column.tolist() for name, column in vars(sim.collisions).items() if name != "obstacles"])
    assert len(logs[0][0]) == 1
    assert logs[1] == logs[0]
    assert logs[2] == logs[0]


def test_lists_hold_for_many_steps() -> None:
    """Radii stay the same while extents change a little, or all lists would have to be filled in every step."""
    draws, steady = np.random.default_rng(0), SteadyRadii()
    slots = np.arange(100)
    changed, last = 0, np.zeros(100)
    for _ in range(50):
        extent = 0.2 + draws.uniform(0.0, 0.07, 100)
        radius = steady.radii(slots, extent, 120)
        assert (radius >= 2.0 * extent).all()
        changed += int((radius != last).sum())
        last = radius
    assert changed == 100
    assert (steady.radii(slots, np.full(100, 5.0), 120) >= 10.0).all()
    assert (steady.radii(slots, np.full(100, 0.2), 120) < 1.3).all()
    kinetic = Kinetic()
    sim = load_builtin("hall").build(seed=1)
    sim = tropel.Simulation(
        sim.world, tropel.Group("people", count=100, sense_radius=2.0), environment=kinetic, seed=1, dt=0.05
    )
    filled = 0
    for step in range(40):
        sim.step()
        assert isinstance(kinetic.crowd, InPlane)
        work = kinetic.crowd._meeting["collisions"][0].work
        filled += (100 if work.filled else work.renewed) if step >= 10 else 0
    assert filled < 0.35 * 30 * 100
