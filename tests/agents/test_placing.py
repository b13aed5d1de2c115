"""Models say where newcomers may stand: at the start, when they are added, and when a source sends them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel.agents.placing import ANYWHERE, Floats, Placing
from tropel.agents.state import Steered
from tropel.contracts import ModelDeclaration, Moment
from tropel.world import World


class OnPosts(Placing):
    """On posts, one metre apart, the lowest free one first; nobody is wider than a post."""

    body = 0.25

    def settle(self, world: World, positions: Floats, *, who: str, taken: Floats, taken_radius: Floats) -> Floats:
        return np.floor(positions) + 0.5

    def find(self, world: World, *, radius: Floats, taken: Floats, **more: Any) -> Floats:
        posts = [(x + 0.5, y + 0.5) for y in range(10) for x in range(10)]
        there = {tuple(place) for place in taken.tolist()}
        return np.array([post for post in posts if post not in there][: len(radius)])


class Stands(tropel.Model):
    declares = ModelDeclaration(placing=OnPosts())

    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = 0.0


def posts() -> tropel.World:
    return tropel.World(shapely.box(0, 0, 10, 10))


def test_newcomers_stand_where_their_model_puts_them_and_are_as_wide_as_it_says() -> None:
    groups = [
        tropel.Group("given", positions=[(3.1, 3.9)], radius=0.1),
        tropel.Group("some", count=2),
        tropel.Source("late", rate=20.0, total=2, region=shapely.box(0, 0, 10, 10)),
    ]
    sim = tropel.Simulation(posts(), groups, local=Stands(), dt=0.1)
    assert sim.agents.position.tolist() == [[3.5, 3.5], [0.5, 0.5], [1.5, 0.5]]
    for _ in range(10):
        sim.step()
    assert sim.agents.position.tolist()[3:] == [[2.5, 0.5], [3.5, 0.5]]
    sim.add_agents("some", count=1, radius=0.4)
    assert sim.agents.position.tolist()[5:] == [[4.5, 0.5]]
    assert sim.agents.radius.tolist() == [0.25] * 6


def test_each_group_is_placed_by_its_own_model() -> None:
    groups = [tropel.Group("posts", count=1), tropel.Group("free", positions=[(3.1, 3.9)], radius=0.1)]
    sim = tropel.Simulation(posts(), groups, local={"posts": Stands(), "free": tropel.Seek()})
    assert sim.agents.position.tolist() == [[0.5, 0.5], [3.1, 3.9]]
    assert sim.agents.radius.tolist() == [0.25, 0.1]
    sim.set_parameter("radius", 0.3)
    assert sim.agents.radius.tolist() == [0.25, 0.3]


def test_without_a_word_newcomers_stand_anywhere() -> None:
    assert ModelDeclaration().placing is ANYWHERE
    assert ANYWHERE.body is None
    positions = np.array([(1.0, 1.0)])
    nobody = np.empty((0, 2))
    settled = ANYWHERE.settle(posts(), positions, who="a", taken=nobody, taken_radius=np.empty(0))
    assert settled is positions


@pytest.mark.parametrize("cell", [0.4, 0.5])
def test_a_crowd_on_cells_is_placed_on_them(cell: float) -> None:
    world = tropel.World(shapely.box(0, 0, 4, 4), exits={"out": shapely.box(3.5, 0, 4, 4)})
    people = tropel.Group("a", count=5, region=shapely.box(0, 0, 3, 4))
    layers = {"planning": tropel.PathPlans(cell=cell), "local": tropel.Lattice(cell=cell)}
    sim = tropel.Simulation(world, people, **layers, dt=0.1)
    offset = sim.agents.position / cell - np.floor(sim.agents.position / cell)
    np.testing.assert_allclose(offset, 0.5)
    np.testing.assert_array_equal(sim.agents.radius, 0.5 * cell)
