"""What is wrong with a lattice crowd is said at once, in words that help."""

from __future__ import annotations

import math
from typing import Any

import pytest
import shapely

from tropel import Direct, FlowField, Group, Lattice, PathPlans, Simulation, World, events
from tropel.errors import GeometryError, ParameterError, SpawnError


def hall(**parts: Any) -> World:
    return World(shapely.box(0, 0, 8, 2), exits={"out": shapely.box(7.6, 0, 8, 2)}, **parts)


def simulate(world: World, *groups: Group, **layers: Any) -> Simulation:
    given = {"planning": PathPlans(), "local": Lattice(), "dt": 0.1} | layers
    return Simulation(world, list(groups), **given)


def test_more_agents_than_cells_says_how_many_fit() -> None:
    with pytest.raises(SpawnError, match="101 agents do not fit on the 100 vacant cells"):
        simulate(hall(), Group("people", count=101))
    assert len(simulate(hall(), Group("people", count=100)).agents) == 100


@pytest.mark.parametrize("cell", [0.25, 0.4, 0.5])
def test_all_cells_can_be_filled_by_several_groups_however_wide_people_are(cell: float) -> None:
    layers = {"planning": PathPlans(cell=cell), "local": Lattice(cell=cell)}
    fit = int(8 / cell) * int(2 / cell)
    sim = simulate(
        hall(), Group("wide", count=fit // 2, radius=0.3), Group("narrow", count=fit - fit // 2, radius=0.1), **layers
    )
    assert len(sim.agents) == fit
    with pytest.raises(SpawnError, match="1 agents do not fit on the 0 vacant cells"):
        sim.add_agents("wide", count=1)


def test_goals_that_cannot_be_reached_are_a_warning_with_number_and_place() -> None:
    world = hall(
        walls=[[(4.2, 0), (4.2, 2)]], regions={"west": shapely.box(0, 0, 4, 2), "east": shapely.box(5, 0, 7, 2)}
    )
    with pytest.warns(UserWarning, match=r"12 of 17 agents have no path to 'nearest exit'") as caught:
        sim = simulate(world, Group("cut off", count=12, region="west"), Group("fine", count=5, region="east"))
    low, high = sim.agents.position[:12].min(axis=0), sim.agents.position[:12].max(axis=0)
    assert f"between ({low[0]:.4g}, {low[1]:.4g}) and ({high[0]:.4g}, {high[1]:.4g})" in str(caught[0].message)
    before = sim.agents.position[:12].copy()
    sim.run(until=2.0)
    assert (sim.agents.position[:12] == before).all()


def test_cells_of_two_sizes_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"cells of 0.4 m, but its planner has 0.5 m"):
        simulate(hall(), Group("people", count=1), planning=PathPlans(cell=0.5))


@pytest.mark.parametrize("planner", [FlowField(), Direct()])
def test_a_planner_that_lays_nothing_is_refused(planner: Any) -> None:
    name = type(planner).__name__
    said = f"Lattice follows the ground, but {name} publishes none; plan with .* such as PathPlans"
    with pytest.raises(ParameterError, match=said):
        simulate(hall(), Group("people", count=1), planning=planner)


def test_two_lattices_in_one_simulation_are_refused() -> None:
    with pytest.raises(ParameterError, match="two Lattice models share one world"):
        simulate(hall(), Group("a", count=1), Group("b", count=1), local={"a": Lattice(), "b": Lattice()})
    shared = Lattice()
    simulate(hall(), Group("a", count=1), Group("b", count=1), local={"a": shared, "b": shared}).step()


def test_a_world_may_be_used_by_one_simulation_after_the_other() -> None:
    world = hall()
    hashes = set()
    for _ in range(2):
        sim = simulate(world, Group("people", count=20), seed=4)
        sim.run(until=2.0)
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


def test_a_box_in_3d_is_refused() -> None:
    with pytest.raises(ParameterError, match="needs a 2D world"):
        simulate(World.box((0, 0, 0), (4, 4, 4), targets={"there": (1, 1, 1)}), Group("people", count=1, goal="there"))


@pytest.mark.parametrize("cell", [0.0, -0.4, math.nan, math.inf])
def test_cells_that_are_no_length_are_refused(cell: float) -> None:
    for layer in (Lattice, PathPlans):
        with pytest.raises(ParameterError, match=f"{layer.__name__}: cell must be a .*number"):
            layer(cell=cell)


@pytest.mark.parametrize("separation", [0.0, -1.0, 1.5, math.nan])
def test_separation_lies_between_zero_and_one(separation: float) -> None:
    with pytest.raises(ParameterError, match="separation must be a number from 0 to 1, 0 excluded"):
        Lattice(separation=separation)


def test_misspelt_parameters_are_named() -> None:
    with pytest.raises(ParameterError, match="separation"):
        Lattice(seperation=0.5)


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, math.nan])
def test_gamma_lies_between_zero_and_one(gamma: float) -> None:
    with pytest.raises(ParameterError, match="gamma"):
        PathPlans(gamma=gamma)


def test_a_hall_narrower_than_a_cell_has_no_place_to_stand() -> None:
    world = World(shapely.box(0, 0, 8, 0.3), exits={"out": shapely.box(7, 0, 8, 0.3)})
    with pytest.raises((SpawnError, GeometryError), match=r"cells of 0\.4 m"):
        simulate(world, Group("people", count=1))


def test_an_event_for_a_goal_that_does_not_exist_is_refused() -> None:
    sim = simulate(hall(), Group("people", count=3))
    with pytest.raises(ParameterError, match="did you mean 'out'"):
        sim.at(0.1, events.SetGoal(goal="outt"))
