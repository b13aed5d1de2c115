"""The environment that is expected to be faster: what it takes, that it says so, and that a resume keeps the choice."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import tropel
from tropel.agents.state import Steered
from tropel.contracts import Model, ModelDeclaration, Moment
from tropel.environment.auto import Auto, Crowd, grid_lists_take, kinetic_lists_take
from tropel.errors import CheckpointError
from tropel.scenario import parse_scenario


class Crowded(Model):
    """Goes slower the more agents are near; reads lists, in any order."""

    declares = ModelDeclaration(reads_lists=True, periodic_space=True)

    def steer(self, moment: Moment, out: Steered) -> None:
        near = moment.near.lists(moment.state.sense_radius)
        count = near.length if hasattr(near, "length") else np.diff(near.indptr)
        slow = 1.0 / (1.0 + count[moment.members])
        out.velocity[moment.members] = slow[:, None] * moment.guidance.directions[moment.members]


def crowd(
    environment: tropel.Environment,
    *,
    count: int = 2000,
    radius: float = 3.0,
    dt: float = 0.1,
    speed: float = 1.3,
    model: Model | None = None,
    period: bool = False,
) -> tropel.Simulation:
    """One agent per square metre."""
    edge = math.sqrt(count)
    space = {"periodic": True} if period else {"open": True}
    goal = (0.5 * edge, 0.5 * edge) if period else (1e4, 0.5 * edge)
    world = tropel.World.box((0.0, 0.0), (edge, edge), targets={"far": goal}, **space)
    place = edge * np.random.default_rng(1).random((count, 2))
    people = tropel.Group("people", positions=place, goal="far", sense_radius=radius, desired_speed=speed)
    return tropel.Simulation(
        world, people, planning=tropel.Direct(), local=model or Crowded(), environment=environment, dt=dt,
        watch_collisions=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("radius", "dt", "speed", "taken"),
    [(3.0, 0.1, 1.3, "Grid"), (10.0, 0.01, 1.3, "Kinetic"), (3.0, 0.1, 0.0, "Kinetic")],
)
def test_it_takes_what_the_benchmark_found_to_be_faster(radius: float, dt: float, speed: float, taken: str) -> None:
    auto = Auto()
    sim = crowd(auto, count=6000, radius=radius, dt=dt, speed=speed)
    sim.step()
    assert type(auto.chosen).__name__ == taken
    assert "ns per agent and step" in auto.why


def test_models_that_walk_cells_get_the_grid() -> None:
    auto = Auto()
    crowd(auto, radius=10.0, dt=0.01, model=tropel.Seek())
    assert isinstance(auto.chosen, tropel.Grid)
    assert "no model reads lists" in auto.why


def test_periodic_worlds_and_empty_ones_get_the_grid() -> None:
    auto = Auto()
    crowd(auto, radius=10.0, dt=0.01, period=True).step()
    assert isinstance(auto.chosen, tropel.Grid)
    auto = Auto()
    crowd(auto, count=1).step()
    assert isinstance(auto.chosen, tropel.Grid)


@pytest.mark.parametrize(("radius", "dt"), [(3.0, 0.1), (10.0, 0.01)])
def test_agents_move_as_in_the_environment_that_was_taken(radius: float, dt: float) -> None:
    auto = Auto()
    sims = [crowd(auto, radius=radius, dt=dt)]
    sims += [crowd(environment, radius=radius, dt=dt) for environment in (tropel.Grid(), tropel.Kinetic())]
    for sim in sims:
        for _ in range(8):
            sim.step()
    places = [sim.agents.position.tobytes() for sim in sims]
    assert places[0] == places[1] == places[2]


def test_the_summary_of_a_run_says_which_was_taken() -> None:
    text = """
        name = "hall"
        environment = "auto"
        world.walkable.polygon = [[0, 0], [10, 0], [10, 8], [0, 8]]
        world.exits.out.polygon = [[9, 3], [10, 3], [10, 5], [9, 5]]
        groups = [{ name = "people", count = 10, goal = "out" }]
    """
    result = parse_scenario(text, source="hall.toml", folder=Path()).build(seed=1).run(until=1.0)
    assert result.environment["environment"] == "grid: no model reads lists, and cells are the same in both"
    assert "no model reads lists" in str(result)


def test_a_resume_keeps_the_choice() -> None:
    first, other = Auto(), Auto()
    crowd(first, count=6000, radius=10.0, dt=0.01).step()
    resumed = crowd(other, count=10, radius=10.0, dt=0.01)
    assert isinstance(other.chosen, tropel.Grid)
    other.restore(first.state())
    assert isinstance(other.chosen, tropel.Kinetic)
    assert other.why == first.why
    resumed.step()
    with pytest.raises(CheckpointError, match="must be 'grid' or 'kinetic'"):
        other.restore({"chosen": np.array("os.system"), "why": np.array("")})


def test_the_estimate_follows_what_matters() -> None:
    """Longer radii make finding anew more expensive, longer moves keeping; nothing is ever free."""
    usual = {"agents": 10_000, "dim": 2, "density": 1.0, "moving": 1.0}
    near, far = (Crowd(radius=radius, move=0.013, **usual) for radius in (3.0, 10.0))
    fast = Crowd(radius=10.0, move=0.3, **usual)
    assert grid_lists_take(near) < grid_lists_take(far) == grid_lists_take(fast)
    assert kinetic_lists_take(near) < kinetic_lists_take(far) < kinetic_lists_take(fast)
    assert kinetic_lists_take(Crowd(radius=0.0, move=0.0, **{**usual, "moving": 0.0})) > 0.0
