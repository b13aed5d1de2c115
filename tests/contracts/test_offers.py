"""Offers: what can be shown of a layer is the same whether it is alone or inside of another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Blend, Direct, FlowField, Group, Lattice, PathPlans, Seek, Simulation, VectorField, World
from tropel.contracts.offers import (
    OfferedBottlenecks,
    OfferedCongestion,
    OfferedField,
    OfferedOccupancy,
    OfferedPainting,
    offered,
)


def hall() -> World:
    return World(shapely.box(0, 0, 20, 10), exits={"east": shapely.box(19, 4, 20, 6)})


def simulation(planner: Any, *, local: Any = None, **options: Any) -> Simulation:
    people = Group("people", positions=[(2.2, 2.2), (3.4, 5.0)])
    return Simulation(hall(), people, planning=planner, local=local or Seek(), dt=0.1, threads=1, **options)


def on_cells(**options: Any) -> Simulation:
    return simulation(PathPlans(cell=0.4, **options), local=Lattice(cell=0.4))


def painted(points: Any) -> Any:
    return np.ones_like(points)


def test_a_layer_that_says_nothing_offers_nothing() -> None:
    assert Direct().offers() == ()
    assert offered([Direct(), Seek()], object) == []


@pytest.mark.parametrize(
    "layer", [FlowField(), PathPlans(), VectorField(painted), Blend([(1.0, "flow_field")]), Lattice()]
)
def test_a_layer_can_be_asked_before_it_is_prepared(layer: Any) -> None:
    assert layer.offers()


def test_what_a_planner_offers_twice_is_found_once() -> None:
    planner = PathPlans(congestion=True)
    simulation(planner)
    for kind in (OfferedField, OfferedBottlenecks, OfferedCongestion):
        assert len(offered([planner, planner, Blend([(1.0, planner)])], kind)) == (2 if kind is OfferedField else 1)
        assert len(offered([planner, PathPlans(congestion=True)], kind)) == (1 if kind is OfferedCongestion else 2)


def test_a_field_names_its_goals_and_is_the_one_that_agents_follow() -> None:
    planner = FlowField()
    simulation(planner)
    (field,) = offered([planner], OfferedField)
    assert field.planner is planner
    assert field.alone
    assert list(field.goals()) == list(planner.unreachable()) == ["nearest exit"]
    assert field.field("nearest exit") is planner.field("nearest exit")
    field.field("east")
    assert list(field.goals()) == ["nearest exit", "east"]
    assert np.array_equal(field.draw(hall()).free, field.field("east").raster.free)


def test_planners_pass_on_what_those_inside_of_them_offer() -> None:
    within, behind = FlowField(cell=0.4), FlowField(cell=0.5)
    blend = Blend([(1.0, within), (1.0, VectorField(painted, fallback=behind))])
    simulation(blend)
    fields = offered([blend], OfferedField)
    assert [field.planner for field in fields] == [within, behind]
    assert not any(field.alone for field in fields)
    assert [painting.alone for painting in offered([blend], OfferedPainting)] == [False]
    assert [painting.alone for painting in offered([VectorField(painted)], OfferedPainting)] == [True]


def test_a_painting_is_what_was_painted() -> None:
    points = np.array([[1.0, 2.0], [3.0, 4.0]])
    (painting,) = offered([VectorField(lambda at: at / 10.0)], OfferedPainting)
    assert np.array_equal(painting.at(points), points / 10.0)


def test_occupied_cells_are_those_that_people_stand_in() -> None:
    sim = on_cells()
    sim.step()
    (crowd,) = offered(sim.layers.models, OfferedOccupancy)
    raster, occupied = crowd.raster(), crowd.occupied()
    assert occupied.shape == raster.shape
    wanted = {tuple(cell) for cell in raster.index_of(sim.agents.position).tolist()}
    assert {tuple(cell) for cell in np.argwhere(occupied).tolist()} == wanted


def test_congestion_is_offered_where_bottlenecks_are_watched() -> None:
    assert offered(on_cells().planners.values(), OfferedCongestion) == []
    sim = on_cells(congestion={"high": 4.0, "low": 2.0, "area": 3.0})
    (watched,) = offered(sim.planners.values(), OfferedCongestion)
    (places,) = offered(sim.planners.values(), OfferedBottlenecks)
    assert [each.bottleneck for each in watched.counted()] == list(places.find())
    assert all(each.area == 3.0 and each.count == 0 and not each.congested for each in watched.counted())
    assert list(watched.filters()) == []
    assert watched.raster() is sim.ground.raster


def test_there_may_be_other_bottlenecks_when_the_version_is_another() -> None:
    sim = on_cells()
    (places,) = offered(sim.planners.values(), OfferedBottlenecks)
    before = places.version()
    sim.step()
    assert places.version() == before
    sim.set_goal("east")
    sim.step()
    assert places.version() != before
