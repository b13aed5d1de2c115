"""Flow fields around hazards that planners avoid: what paths cost, which door is taken, and repairs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import shapely

import tropel
from tropel.world.influence import DEAREST, with_path_costs
from tropel.world.raster import rasterise

TWO_DOORS = {"near": shapely.box(19, 4, 20, 6), "far": shapely.box(19, 15, 20, 17)}


def hall(exits=TWO_DOORS, walls=(), **hazards):
    return tropel.World(shapely.box(0, 0, 20, 20), exits=exits, walls=list(walls), hazards=hazards)


def fire(place, **given):
    return tropel.Hazard(**{"inner": 1.0, "position": place, "replan": True, **given})


def simulation(world, *, planner=None, count=30, seed=2, **given):
    people = tropel.Group("people", count=count, region=shapely.box(1, 1, 6, 9))
    return tropel.Simulation(world, people, planning=planner or tropel.FlowField(), seed=seed, **given)


def field(world, planner=None):
    planner = planner or tropel.FlowField()
    simulation(world, planner=planner, count=1)
    return planner.field("nearest exit")


def test_costs_are_those_of_the_values_of_cells():
    world = hall(a=fire((8.0, 8.0), intensity=1.5), b=fire((10.0, 9.0), inner=0.5, outer=3.0))
    bare = rasterise(world, hazards=False)
    cost = with_path_costs(rasterise(world), bare, world, 4.0).cost
    x, y = np.meshgrid((np.arange(100) + 0.5) * 0.2, (np.arange(100) + 0.5) * 0.2)
    value = np.ones((100, 100))
    for cx, cy, inner, outer, intensity in ((8.0, 8.0, 1.0, 4.0, 1.5), (10.0, 9.0, 0.5, 3.0, 1.0)):
        away = np.hypot(x - cx, y - cy)
        value *= np.clip((away - inner) / (outer - inner), 0.0, 1.0) ** intensity
    with np.errstate(divide="ignore"):
        wanted = np.minimum(1.0 + 4.0 * (1.0 / value - 1.0), DEAREST)
    assert np.abs(np.log2(cost / wanted)).max() <= 0.25 + 1e-9
    assert len(np.unique(cost)) <= 11


def test_a_wall_ends_the_cost():
    world = hall(walls=[[(10.0, 0.0), (10.0, 18.0)]], fire=fire((8.5, 8.0)))
    cost = with_path_costs(rasterise(world), rasterise(world, hazards=False), world, 4.0).cost
    assert cost[:, 51:].max() == 1.0
    assert cost[40, 44] > 4.0


def test_without_a_hazard_to_plan_around_fields_have_the_same_bits():
    plain, beside = field(hall()), field(hall(fire=fire((8.0, 8.0), replan=False)))
    assert beside.raster.cost is None
    for name in ("value", "vectors"):
        assert np.array_equal(getattr(plain, name), getattr(beside, name))
    assert np.array_equal(plain.directions(), beside.directions(), equal_nan=True)


def test_a_detour_is_taken_if_there_is_another_door_and_only_then():
    place = (18.0, 6.5)
    for exits, direct in ((TWO_DOORS, False), ({"near": TWO_DOORS["near"]}, True)):
        found = field(hall(exits, fire=fire(place, inner=0.5, outer=5.0)))
        start = np.array([[10.0, 5.0]])
        towards_near = bool(found.sample(start, hall(exits))[0, 1] < 0.5)
        assert towards_near == direct
        assert found.reachable[tuple(found.raster.index_of(start[0]))]
    assert field(hall(fire=fire(place, inner=0.5, outer=0.5))).sample(start, hall())[0, 1] < 0.5


def test_paths_keep_away_and_a_larger_cost_keeps_them_farther():
    closest = []
    for cost in (0.0, 1.0, 4.0):
        planner = tropel.FlowField(hazard_cost=cost)
        found = field(hall({"far": shapely.box(19, 9, 20, 11)}, fire=fire((10.0, 10.0))), planner)
        place, nearest = np.array([[3.0, 10.1]]), math.inf
        for _ in range(400):
            place = place + 0.1 * found.sample(place, hall())
            nearest = min(nearest, float(np.hypot(*(place[0] - 10.0))))
        assert place[0, 0] > 18.0
        closest.append(nearest)
    assert closest[0] < 1.4
    assert closest[0] + 0.3 < closest[1] < closest[2]


def test_far_from_a_fire_paths_stay_straight():
    """Only near hazards do agents follow the field from cell to cell; elsewhere they aim ahead."""
    found = field(hall({"far": shapely.box(19, 9, 20, 11)}, fire=fire((3.0, 17.0), inner=0.5)))
    plain = field(hall({"far": shapely.box(19, 9, 20, 11)}))
    free = (found.raster.cost == 1.0) & found.raster.free
    rows = found.raster.centre(np.argwhere(free))
    lower = rows[rows[:, 1] < 12.0]
    np.testing.assert_allclose(found.sample(lower, hall()), plain.sample(lower, hall()), atol=1e-6)


def test_repairs_have_the_bits_of_a_fresh_solve():
    world = hall()
    planner = tropel.FlowField()
    simulation(world, planner=planner)
    planner.field("nearest exit")
    world.hazards.add("fire", fire((9.0, 9.0), growth=0.1, largest=3.0))
    for step, change in enumerate(("added", "grown", "moved", "removed")):
        if change == "grown":
            world.hazards.advance(8.0, 0.05)
        if change == "moved":
            world.hazards.move("fire", (12.0, 7.0), time=8.0)
        if change == "removed":
            world.hazards.remove("fire")
        repaired, fresh = planner.field("nearest exit"), field(world)
        assert np.array_equal(repaired.value, fresh.value), (step, change)
        assert np.array_equal(repaired.vectors, fresh.vectors), (step, change)
        assert (repaired.raster.cost is None) == (fresh.raster.cost is None)


@pytest.mark.parametrize("what", ["grows", "moves"])
def test_a_fire_that_changes_in_every_step_is_planned_around_now_and_then(what):
    if what == "grows":
        hazard = fire((9.0, 9.0), growth=0.1, largest=3.0)
    else:
        hazard = tropel.Hazard(inner=0.5, replan=True, motion=tropel.Waypoints(points=[(5, 9), (15, 9)], speed=0.4))
    planner = tropel.FlowField()
    sim = simulation(hall(fire=hazard), planner=planner, count=3)
    solved = []
    for _ in range(200):
        sim.step()
        solved.append(id(planner.field("nearest exit").raster))
        hazards = sim.world.hazards
        disc = shapely.Point(hazards.position[0]).buffer(float(hazards.inner[0]))
        raster = planner.field("nearest exit").raster
        centres = raster.centre(np.argwhere(raster.free))
        assert not shapely.contains_xy(disc, centres[:, 0], centres[:, 1]).any()
    repairs = sum(a != b for a, b in itertools.pairwise(solved))
    assert 3 <= repairs <= 30


def test_a_resumed_run_plans_around_the_same_fire(tmp_path):
    def build():
        return simulation(hall(fire=fire((15.0, 6.0), inner=0.5, growth=0.05)), threads=1)

    whole = build()
    whole.run(until=3.0)
    whole.save(tmp_path / "saved.npz")
    resumed = build()
    resumed.restore(tmp_path / "saved.npz")
    for sim in (whole, resumed):
        sim.run(until=8.0)
    assert whole.state_hash() == resumed.state_hash()


def test_harmonic_fields_only_block_the_inner_disc():
    """There is no sound cost in Laplace's equation; around the disc streams part by themselves."""
    found = field(hall(fire=fire((9.0, 9.0))), tropel.Harmonic(cache=False))
    assert found.raster.cost is None
    assert not found.raster.free[tuple(found.raster.index_of((9.0, 9.0)))]
    assert found.raster.free[tuple(found.raster.index_of((9.0, 10.6)))]
