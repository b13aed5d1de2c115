"""A chosen part of a crowd is tracked: it has the neighbours that it would have anyway, and the others have none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tropel
from tropel._kernels.arrays import Csr
from tropel.environment.kinetic.model import Kinetic
from tropel.environment.kinetic.plane import InPlane
from tropel.errors import ParameterError, ScenarioError, TropelError
from tropel.scenario import load_builtin, parse_scenario


class Drift(tropel.Model):
    """Goes where it faces and looks at nobody."""

    declares = tropel.ModelDeclaration(senses=False, bodies_may_overlap=True)

    def steer(self, moment: tropel.Moment, out: tropel.Steered) -> None:
        rows = moment.members
        out.velocity[rows] = 0.7 * moment.state.heading[rows]


def leaves_and_boats(environment: tropel.Environment, *, dim: int, seed: int = 0) -> tropel.Simulation:
    world = tropel.World.box((0.0,) * dim, (14.0,) * dim)
    return tropel.Simulation(
        world,
        [
            tropel.Group("leaves", count=80, sense_radius=2.0),
            tropel.Group("boats", count=15, sense_radius=tropel.Uniform(1.0, 4.0)),
        ],
        local={"leaves": Drift(), "boats": tropel.Seek()},
        planning=tropel.Direct(),
        habits=[],
        environment=environment,
        seed=seed,
        dt=0.1,
        watch_collisions=False,
    )


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("seed", range(2))
def test_the_tracked_move_as_on_the_grid_and_the_others_have_no_neighbours(dim: int, seed: int) -> None:
    grid = leaves_and_boats(tropel.Grid(), dim=dim, seed=seed)
    kinetic = leaves_and_boats(Kinetic(track=["boats"], check_always=True), dim=dim, seed=seed)
    met = 0
    for step in range(60):
        # Now and then leaves and boats vanish, and newcomers take their places in the structure.
        if step % 10 == 9:
            for sim in (grid, kinetic):
                sim.remove_agents(ids=[int(sim.agents.id[3]), int(sim.agents.id[sim.agents.group == 1][0])])
                sim.add_agents("leaves", count=4, sense_radius=2.0)
        all_lists, lists = (_copied(sim.sense().csr()) for sim in (grid, kinetic))
        boats = grid.agents.group == 1
        assert np.array_equal(np.diff(lists.indptr)[boats], np.diff(all_lists.indptr)[boats])
        assert not np.diff(lists.indptr)[~boats].any()
        wanted = [all_lists.indices[all_lists.indptr[row] : all_lists.indptr[row + 1]] for row in np.flatnonzero(boats)]
        assert np.array_equal(lists.indices, np.concatenate(wanted))
        met += len(lists.indices)
        for sim in (grid, kinetic):
            sim.step()
        assert np.array_equal(grid.agents.position, kinetic.agents.position), step
    assert met > 100


def _copied(lists: Csr) -> Csr:
    return Csr(lists.indptr.copy(), lists.indices.copy())


def test_lists_are_filled_for_the_tracked_only() -> None:
    kinetic = Kinetic(track=["boats"])
    sim = leaves_and_boats(kinetic, dim=2)
    sim.step()
    sim.sense().csr()
    assert isinstance(kinetic.crowd, InPlane)
    kept = kinetic.crowd._usual
    boats = sim.agents.group == sim.groups.index("boats")
    assert [len(kept.on_list(row)) > 0 for row in range(len(sim.agents))] == boats.tolist()
    assert sim.environment.known_to(0, sim.agents, sim.world).tolist() == []


def test_a_model_that_senses_must_be_tracked() -> None:
    with pytest.raises(ParameterError, match=r"group 'boats' have no.*Seek needs them; add 'boats' to track"):
        leaves_and_boats(Kinetic(track=["leaves"]), dim=2)
    with pytest.raises(ParameterError, match=r"'boat', which is not a group.*boats"):
        leaves_and_boats(Kinetic(track=["boat"]), dim=2)
    with pytest.raises(TropelError, match="track"):
        Kinetic(track="boats")


def test_in_a_file() -> None:
    scene = load_builtin("mixed_hall")
    text = scene.text.replace("[world]", 'environment = { model = "kinetic", track = ["stewards"] }\n\n[world]', 1)
    tracked, grid = (
        parse_scenario(each, source="mixed.toml", folder=Path(".")).build(seed=1) for each in (text, scene.text)
    )
    for _ in range(60):
        tracked.step()
        grid.step()
    assert np.array_equal(tracked.agents.position, grid.agents.position)
    with pytest.raises(ScenarioError, match="'steward', which is not a group"):
        parse_scenario(text.replace('"stewards"]', '"steward"]'), source="mixed.toml", folder=Path(".")).build()
