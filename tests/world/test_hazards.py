"""Hazards: their sizes over time, what worlds and models see of them, and what is refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import shapely

import tropel
from tropel import events
from tropel.errors import GeometryError, ParameterError, ScenarioError
from tropel.scenario.loading import parse_scenario
from tropel.world.raster import lattice_cells, rasterise, static_obstacles

FIRE = tropel.Hazard(inner=1.0, position=(10, 5))


def room(**hazards):
    return tropel.World(shapely.box(0, 0, 20, 10), exits={"out": shapely.box(19, 4, 20, 6)}, hazards=hazards)


def test_the_outer_radius_is_four_inner_radii_unless_given():
    hazards = room(a=FIRE, b=tropel.Hazard(inner=2.0, outer=3.0, position=(4, 4))).hazards
    assert hazards.inner.tolist() == [1.0, 2.0]
    assert hazards.outer.tolist() == [4.0, 3.0]


def test_a_hazard_grows_from_when_it_was_added_and_keeps_its_ratio():
    world = room()
    world.advance(3.0, 0.1)
    world.hazards.add("fire", tropel.Hazard(inner=1.0, outer=2.0, position=(5, 5), growth=0.5, largest=2.5), time=3.0)
    for time, inner in ((3.0, 1.0), (4.0, 1.5), (5.5, 2.25), (6.0, 2.5), (60.0, 2.5)):
        world.advance(time, 0.1)
        assert world.hazards.inner[0] == pytest.approx(inner)
        assert world.hazards.outer[0] == pytest.approx(2.0 * inner)


def test_a_hazard_of_another_size_goes_on_growing_from_there():
    world = room(fire=tropel.Hazard(inner=1.0, position=(5, 5), growth=0.5))
    world.advance(2.0, 0.1)
    world.hazards.grow("fire", inner=0.4, time=2.0)
    assert world.hazards.inner[0] == pytest.approx(0.4)
    assert world.hazards.outer[0] == pytest.approx(1.6)
    world.advance(3.0, 0.1)
    assert world.hazards.inner[0] == pytest.approx(0.9)
    world.hazards.grow("fire", inner=2.0, outer=2.5, time=3.0)
    assert world.hazards.outer[0] == pytest.approx(2.5)


def test_a_hazard_is_over_at_its_time():
    world = room(fire=tropel.Hazard(inner=1.0, position=(5, 5), until=2.0))
    world.advance(1.95, 0.05)
    assert "fire" in world.hazards
    world.advance(40 * 0.05, 0.05)
    assert "fire" not in world.hazards
    assert len(world.hazards.inner) == 0


def test_a_moving_hazard_follows_its_motion_until_it_is_put_elsewhere():
    orbit = tropel.Orbit(center=(10, 5), radius=2.0, period=8.0)
    world = room(cloud=tropel.Hazard(inner=1.0, motion=orbit, kind="gas"))
    world.advance(2.0, 0.1)
    assert world.hazards.position[0] == pytest.approx((10, 7))
    assert world.hazards.velocity[0] == pytest.approx((-math.pi / 2, 0), abs=0.1)
    world.hazards.move("cloud", (3, 3))
    world.advance(4.0, 0.1)
    assert world.hazards.position[0].tolist() == [3, 3]
    assert world.hazards.velocity[0].tolist() == [0, 0]
    assert world.hazards["cloud"].kind == "gas"


def test_the_version_changes_with_places_and_sizes_only():
    world = room(fire=FIRE)
    version = world.hazards.version
    world.advance(1.0, 0.1)
    assert world.hazards.version == version
    world.hazards.move("fire", (3, 3))
    assert world.hazards.version > version


def test_models_see_the_inner_disc_as_an_obstacle_of_its_kind():
    world = room(fire=FIRE)
    world.obstacles.add("pillar", tropel.Obstacle(radius=0.3, position=(4, 4)))
    seen = world.obstacles.grid(1.0)
    assert seen.position.tolist() == [[4, 4], [10, 5]]
    assert seen.radius.tolist() == [0.3, 1.0]
    assert [world.obstacles.types[k] for k in seen.type] == ["obstacle", "fire"]
    assert seen.pushes.tolist() == [1, 0]
    world.hazards.grow("fire", inner=2.0)
    assert world.obstacles.grid(1.0).radius.tolist() == [0.3, 2.0]
    world.hazards.remove("fire")
    assert world.obstacles.grid(1.0).radius.tolist() == [0.3]


@pytest.mark.parametrize("draw", [rasterise, lattice_cells])
def test_only_hazards_to_plan_around_block_cells(draw):
    free = [draw(room(**hazards)).free for hazards in ({}, {"fire": FIRE})]
    assert np.array_equal(*free)
    around = draw(room(fire=tropel.Hazard(inner=1.0, position=(10, 5), replan=True)))
    assert not around.free[tuple(around.index_of((10, 5)))]
    assert around.free.sum() < free[0].sum()


def test_static_obstacles_can_be_had_without_any_hazard():
    world = room(fire=tropel.Hazard(inner=1.0, position=(10, 5), replan=True))
    assert static_obstacles(world)[1].tolist() == [1.0]
    assert static_obstacles(world, hazards=False)[1].tolist() == []


def detour(**fire):
    """How far a walker leaves the straight line when a wide fire stands on it from the start."""
    world = room(fire=tropel.Hazard(inner=2.5, position=(10, 5), **fire))
    walker = tropel.Group("one", positions=[(2.0, 5.0)])
    sim = tropel.Simulation(world, walker, planning=tropel.FlowField(line_of_sight=False), habits=[])
    away = []
    sim.run(
        until=lambda s: s.agents.position[0, 0] > 6.0,
        limit=10.0,
        progress=lambda s: away.append(s.agents.position[0, 1]),
    )
    return max(abs(y - 5.0) for y in away)


def test_planners_go_around_a_hazard_only_when_it_says_so():
    assert detour(replan=False) < 0.4
    assert detour(replan=True) > 0.8


def test_nobody_walks_into_a_hazard():
    sim = tropel.Simulation(room(fire=FIRE), tropel.Group("one", positions=[(2.0, 5.1)]), habits=[])
    nearest = math.inf
    for _ in range(400):
        sim.step()
        if not len(sim.agents):
            break
        nearest = min(nearest, float(np.hypot(*(sim.agents.position[0] - (10, 5)))))
    assert 1.2 - 1e-6 < nearest < 1.7, "beside it, and not within its radius and one's own"
    assert len(sim.agents) == 0
    assert len(sim.population.deaths()["id"]) == 0


def test_who_stands_in_the_way_of_a_hazard_is_not_pushed():
    for motion in (
        {"motion": tropel.Waypoints(points=((2, 5), (18, 5)), speed=1.0)},
        {"position": (5, 5), "growth": 0.5},
    ):
        world = room(it=tropel.Hazard(inner=1.0, deadly=False, **motion))
        sim = tropel.Simulation(world, tropel.Group("one", positions=[(8.0, 5.1)], goal="none"), habits=[])
        for _ in range(140):
            sim.step()
        assert float(np.hypot(*(world.hazards.position[0] - (8, 5.1)))) < float(world.hazards.inner[0])
        assert sim.agents.position[0].tolist() == [8.0, 5.1]


def test_newcomers_find_their_places_outside_of_hazards():
    world = room(fire=tropel.Hazard(inner=4.0, position=(10, 5)))
    sim = tropel.Simulation(world, tropel.Group("many", count=150))
    assert np.hypot(*(sim.agents.position - (10, 5)).T).min() >= 4.2 - 1e-9


def test_state_and_restore_bring_back_everything():
    world = room(fire=tropel.Hazard(inner=1.0, position=(5, 5), growth=0.25, largest=3.0, intensity=2.0, until=99.0))
    world.hazards.add(
        "cloud",
        tropel.Hazard(inner=0.5, outer=1.0, motion=tropel.Orbit(center=(9, 5), radius=1, period=5), kind="gas"),
        time=0.0,
    )
    world.advance(2.0, 0.1)
    world.hazards.grow("fire", inner=1.25, time=2.0)
    world.advance(4.0, 0.1)
    stored = json.loads(json.dumps(world.state()))
    other = room(fire=FIRE)
    other.restore(stored, dt=0.1)
    assert other.state() == world.state()
    for column in ("position", "velocity", "inner", "outer"):
        assert np.array_equal(getattr(other.hazards, column), getattr(world.hazards, column))
    for each in (world, other):
        each.advance(7.3, 0.1)
    assert np.array_equal(other.hazards.inner, world.hazards.inner)


def test_a_hazard_that_moves_by_a_function_is_found_again():
    def drift(time):
        return (5.0 + time, 5.0)

    worlds = [room(cloud=tropel.Hazard(inner=1.0, motion=drift)) for _ in range(2)]
    worlds[0].advance(2.0, 0.1)
    worlds[1].restore(worlds[0].state(), dt=0.1)
    assert worlds[1].hazards.position[0].tolist() == [7.0, 5.0]
    with pytest.raises(ParameterError, match="hazard 'cloud' moves by a function"):
        room().restore(worlds[0].state(), dt=0.1)


def test_hazards_in_three_dimensions_are_balls():
    world = tropel.World.box((0, 0, 0), (9, 9, 9), hazards={"blast": tropel.Hazard(inner=1.0, position=(5, 5, 5))})
    assert world.obstacles.grid(1.0).position.tolist() == [[5, 5, 5]]
    with pytest.raises(GeometryError, match=r"reaches from \(0, 0, 0\) to \(9, 9, 9\)"):
        world.hazards.add("other", tropel.Hazard(inner=1.0, position=(5, 5, 10)))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"inner": -1.0}, "positive inner radius"),
        ({"inner": 0.0}, "positive inner radius"),
        ({"outer": 0.5}, "outer radius must not be below its inner radius of 1 m"),
        ({"intensity": -1.0}, "intensity must be finite and not negative"),
        ({"growth": -0.1}, "growth must be finite and not negative"),
        ({"largest": 0.5}, "cannot stop growing at 0.5 m"),
        ({"until": 0.0}, "until a time above zero"),
        ({"position": None}, "either a position or a motion"),
        ({"motion": tropel.Orbit(center=(5, 5), radius=1, period=5)}, "either a position or a motion"),
    ],
)
def test_nonsense_is_refused_with_a_reason(wrong, said):
    with pytest.raises(GeometryError, match=said):
        tropel.Hazard(**{"inner": 1.0, "position": (5, 5), **wrong})


@pytest.mark.parametrize("name", ["inner", "outer", "intensity", "growth", "largest", "until"])
def test_what_is_no_number_is_refused_by_name(name):
    with pytest.raises(ParameterError, match=f"Hazard: {name} must be a finite number.*'2'"):
        tropel.Hazard(**{"inner": 1.0, "position": (5, 5), name: "2"})
    with pytest.raises(ParameterError, match="Obstacle: radius must be a finite number, not '2'"):
        tropel.Obstacle(radius="2", position=(5, 5))


@pytest.mark.parametrize("name", ["inner", "outer", "growth", "largest", "until"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_what_is_not_finite_is_refused_by_name(name, value):
    with pytest.raises(ParameterError, match=f"Hazard: {name} must be a finite number"):
        tropel.Hazard(**{"inner": 1.0, "position": (5, 5), name: value})


def test_a_misspelt_parameter_is_suggested():
    with pytest.raises(ParameterError, match="did you mean 'intensity'"):
        tropel.Hazard(inner=1.0, position=(5, 5), intesity=2.0)


def test_places_outside_the_world_are_refused_with_where_it_is():
    with pytest.raises(GeometryError, match=r"hazard 'fire' at \(25, 5\) lies outside.*\(0, 0\) to \(20, 10\)"):
        room(fire=tropel.Hazard(inner=1.0, position=(25, 5)))
    world = room(fire=FIRE)
    with pytest.raises(GeometryError, match=r"at \(5, -1\) lies outside"):
        world.hazards.move("fire", (5, -1))
    assert world.hazards.position[0].tolist() == [10, 5]
    with pytest.raises(GeometryError, match="2 coordinates"):
        world.hazards.add("ball", tropel.Hazard(inner=1.0, position=(1, 2, 3)))
    with pytest.raises(GeometryError, match="not finite"):
        world.hazards.add("nan", tropel.Hazard(inner=1.0, position=(1, math.nan)))


def test_unknown_names_are_refused_with_the_near_miss():
    hazards = room(fire=FIRE).hazards
    for change in (hazards.remove, lambda name: hazards.move(name, (1, 1)), lambda name: hazards.grow(name, inner=1.0)):
        with pytest.raises(ParameterError, match="there is no hazard 'fier'; did you mean 'fire'"):
            change("fier")
    with pytest.raises(GeometryError, match="there is a hazard 'fire' already"):
        hazards.add("fire", FIRE)


def test_a_hazard_must_not_be_over_before_it_begins():
    with pytest.raises(GeometryError, match="lasts until 2 s, which is over when it is added at 3 s"):
        room().hazards.add("fire", tropel.Hazard(inner=1.0, position=(5, 5), until=2.0), time=3.0)


# Events and files -----------------------------------------------------------------------------------------------


def simulation(world=None):
    return tropel.Simulation(world or room(), tropel.Group("one", positions=[(2.0, 9.0)], goal="none"), dt=0.1)


def test_events_add_move_grow_and_remove():
    sim = simulation()
    sim.at(0.1, events.AddHazard(name="fire", inner=1.0, position=(5, 5), type="blaze", replan=True))
    sim.at(0.2, events.MoveHazard(name="fire", position=(6, 5)))
    sim.at(0.3, events.GrowHazard(name="fire", inner=2.0))
    sim.at(0.4, events.RemoveHazard(name="fire"))
    seen = []
    for _ in range(5):
        sim.step()
        hazards = sim.world.hazards
        seen.append([(n, hazards[n].kind, *hazards.position[0].tolist(), hazards.inner[0]) for n in hazards.names])
    assert seen == [[], [("fire", "blaze", 5, 5, 1)], [("fire", "blaze", 6, 5, 1)], [("fire", "blaze", 6, 5, 2)], []]


@pytest.mark.parametrize(
    ("event", "error", "said"),
    [
        (lambda: events.AddHazard(name="x", inner=1.0, position=(99, 5)), GeometryError, "lies outside the world"),
        (lambda: events.AddHazard(name="x", inner=1.0), GeometryError, "either a position or a motion"),
        (lambda: events.AddHazard(name="x", inner=2.0, outer=1.0, position=(5, 5)), GeometryError, "outer radius"),
        (lambda: events.AddHazard(name="x", inner=-2.0, position=(5, 5)), ParameterError, "greater than 0"),
        (lambda: events.AddHazard(name="x", inner=math.nan, position=(5, 5)), ParameterError, "inner"),
        (lambda: events.MoveHazard(name="fire", position=(99, 5)), GeometryError, "lies outside the world"),
        (lambda: events.GrowHazard(name="fire", inner=2.0, outer=1.0), GeometryError, "outer radius"),
    ],
)
def test_wrong_events_are_refused_when_they_are_scheduled(event, error, said):
    with pytest.raises(error, match=said):
        simulation(room(fire=FIRE)).at(1.0, event())


def test_an_event_for_an_unknown_hazard_says_which():
    sim = simulation(room(fire=FIRE))
    with pytest.raises(ParameterError, match="there is no hazard 'fires'; did you mean 'fire'"):
        sim.at(0.2, events.RemoveHazard(name="fires"))


FILE = """
name = "burning"
until = 2.0
[world]
walkable = { box = [0, 0, 20, 10] }
[hazards.fire]
position = [10, 5]
inner = 1.0
growth = 0.25
type = "blaze"
[[groups]]
name = "one"
positions = [[2, 9]]
goal = "none"
[[events]]
at = 1.0
kind = "add_hazard"
name = "rubble"
inner = 0.5
motion = { kind = "orbit", center = [5, 5], radius = 1.0, period = 9.0 }
type = "rubble"
deadly = false
[[events]]
at = 1.5
kind = "grow_hazard"
name = "fire"
inner = 3.0
outer = 4.0
"""


def parsed(text):
    from pathlib import Path

    return parse_scenario(text, source="burning.toml", folder=Path())


def test_files_hold_hazards_and_their_events():
    sim = parsed(FILE).build()
    assert sim.world.hazards["fire"].kind == "blaze"
    sim.run(until=2.0)
    assert sim.world.hazards.names == ["fire", "rubble"]
    assert not sim.world.hazards["rubble"].deadly
    assert sim.world.hazards.outer[0] == pytest.approx(4.0 / 3.0 * sim.world.hazards.inner[0])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("position = [10, 5]", "position = [30, 5]", r"line 6: hazards.fire: hazard 'fire' at \(30, 5\) lies outside"),
        ("growth = 0.25", "growht = 0.25", "line 9: hazards.fire.growht: unknown key; did you mean 'growth'"),
        ("inner = 1.0\n", "inner = -1.0\n", "line 8: hazards.fire.inner = -1.0"),
        ("growth = 0.25", "outer = 0.25", "line 6: hazards.fire: .*outer radius"),
        ("inner = 3.0\nouter = 4.0", "inner = 3.0\nouter = 2.0", r"events\[1\]: .*outer radius"),
        ('kind = "grow_hazard"', 'kind = "grow_hazzard"', "did you mean 'grow_hazard'"),
    ],
)
def test_mistakes_in_files_are_said_with_line_and_key(old, new, said):
    assert FILE.count(old) == 1
    with pytest.raises(ScenarioError, match=said):
        parsed(FILE.replace(old, new)).build()
