"""People keep away from hazards with every model that follows directions, and still get where they want to go."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely

import tropel
from tropel import events
from tropel.contracts import Moment
from tropel.local.habits.avoid_hazards import AvoidHazards
from two_threads import needs_two_threads

MODELS = (tropel.Walk, tropel.Seek, tropel.Dynamical, tropel.CollisionFreeSpeed)
EAST = {"east": shapely.box(19, 9, 20, 11)}


def hall(*, walls=(), exits=EAST, size=(20, 20), **hazards):
    return tropel.World(shapely.box(0, 0, *size), walls=list(walls), exits=exits, hazards=hazards)


def fire(place=(10.0, 10.0), **given):
    return tropel.Hazard(**{"inner": 1.0, "position": place, **given})


def turned(world, places, directions, *, strength=3.0, radius=0.2):
    """The directions of people at these places after the habit."""
    places, directions = np.array(places, dtype=float), np.array(directions, dtype=float)
    people = tropel.Group("people", positions=places, radius=radius, goal="none")
    model = tropel.Seek() if world.dim == 3 else tropel.CollisionFreeSpeed()
    sim = tropel.Simulation(world, people, planning=tropel.Direct(), local=model)
    adjusted = directions.copy()
    AvoidHazards(strength=strength).adjust(Moment.of(sim.agents, world), adjusted)
    return adjusted


def unit(vectors):
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)


def by_the_book(place, e, centre, inner, outer, intensity, strength):
    """The formula of the module for one hazard at rest in open space, written again."""
    away = np.linalg.norm(place - centre)
    n = (place - centre) / away
    u = -e @ n
    x = min(max((away - inner) / (outer - inner), 0.0), 1.0) ** intensity
    if u <= 0.0 or x == 1.0:
        return e
    right = np.cross(np.append(-n, 0.0)[:3], (0.0, 0.0, 1.0))[: len(n)]
    q = (e + u * n) + 0.1 * right / np.linalg.norm(right)
    p = q / max(np.linalg.norm(q), 0.1)
    return unit(e + strength * (1.0 - x) / x * u * p)


@pytest.mark.parametrize("dim", [2, 3])
def test_directions_are_those_of_the_formula(dim):
    rng = np.random.default_rng(3)
    centre = np.full(dim, 10.0)
    for inner, outer, intensity, strength in ((1.0, 4.0, 1.0, 3.0), (0.5, 6.0, 2.0, 1.0), (2.0, 3.5, 0.5, 8.0)):
        hazard = tropel.Hazard(inner=inner, outer=outer, intensity=intensity, position=tuple(centre))
        world = tropel.World.box((0,) * dim, (20,) * dim, hazards={"fire": hazard})
        away = rng.uniform(inner + 0.3, outer + 0.5, size=60)
        places = centre + away[:, None] * unit(rng.normal(size=(60, dim)))
        directions = unit(rng.normal(size=(60, dim))) * rng.uniform(0.2, 1.0, size=(60, 1))
        found = turned(world, places, directions, strength=strength)
        pace = np.linalg.norm(directions, axis=1, keepdims=True)
        expected = [
            by_the_book(place, e, centre, inner, outer, intensity, strength)
            for place, e in zip(places, directions / pace, strict=True)
        ]
        np.testing.assert_allclose(found, pace * np.array(expected), atol=1e-9)
        assert (np.abs(found - directions).max(axis=1) > 1e-6).sum() > 10


def test_who_goes_away_or_past_or_is_far_is_not_disturbed():
    world = hall(fire=fire())
    places = [(8.0, 10.0), (8.0, 10.0), (8.0, 10.0), (5.9, 10.0)]
    directions = np.array([(-1.0, 0.0), (-0.6, 0.8), (0.0, 0.5), (1.0, 0.0)])
    assert np.array_equal(turned(world, places, directions), directions)


def test_the_turn_grows_inwards_and_ends_along_the_rim():
    places = [(10.0 - away, 10.0) for away in (3.9, 3.0, 2.0, 1.5, 1.25)]
    inwards = turned(hall(fire=fire()), places, [(1.0, 0.0)] * 5)[:, 0]
    assert (np.diff(inwards) < 0.0).all()
    assert inwards[0] > 0.98
    assert 0.0 < inwards[-1] < 0.05


def test_head_on_people_go_to_the_right_and_their_pace_stays():
    for angle in np.linspace(0.0, 2.0 * math.pi, 16, endpoint=False):
        ahead = np.array([math.cos(angle), math.sin(angle)])
        right = np.array([ahead[1], -ahead[0]])
        (e,) = turned(hall(fire=fire()), [10.0 - 2.0 * ahead], [0.7 * ahead])
        assert e @ right > 0.5
        assert np.linalg.norm(e) == pytest.approx(0.7)


def test_a_fire_behind_a_wall_has_no_influence():
    wall = [(8.5, 5.0), (8.5, 15.0)]
    assert turned(hall(fire=fire()), [(8.0, 10.0)], [(1.0, 0.0)])[0, 1] < -0.5
    assert turned(hall(fire=fire(), walls=[wall]), [(8.0, 10.0)], [(1.0, 0.0)]).tolist() == [[1.0, 0.0]]


def test_influence_ends_exactly_where_the_wall_hides_the_centre():
    rng = np.random.default_rng(8)
    wall = shapely.LineString([(8.5, 9.3), (8.2, 12.0)])
    places = np.array([10.0, 10.0]) + np.column_stack([rng.uniform(-3, -1.9, 80), rng.uniform(-2, 2, 80)])
    e = unit(np.array([10.0, 10.0]) - places)
    found = turned(hall(fire=fire(), walls=[list(wall.coords)]), places, e)
    hidden = np.array([shapely.LineString([place, (10.0, 10.0)]).intersects(wall) for place in places])
    assert np.array_equal((found == e).all(axis=1), hidden)
    assert 10 < hidden.sum() < 70


def test_a_closed_door_hides_a_fire_and_an_open_one_does_not():
    for is_open in (True, False):
        door = tropel.Door(line=[(8.5, 0.0), (8.5, 20.0)], open=is_open)
        world = tropel.World(shapely.box(0, 0, 20, 20), doors={"gate": door}, hazards={"fire": fire()})
        assert (turned(world, [(8.0, 10.0)], [(1.0, 0.0)])[0, 1] < -0.5) == is_open


def test_nobody_is_sent_to_a_side_without_a_gap():
    """Two fires, one by each wall of a corridor: people pass on the other side, also head-on."""
    for y, side in ((0.9, 1.0), (3.1, -1.0)):
        world = hall(size=(20, 4), exits={}, fire=fire((10.0, y), inner=0.8, outer=3.2))
        heights = [y + offset for offset in (-0.15, 0.0, 0.15)]
        found = turned(world, [(8.5, height) for height in heights], [(1.0, 0.0)] * 3)
        assert (side * found[:, 1] > 0.5).all()


def test_where_walls_leave_no_gap_people_slow_down():
    world = hall(size=(20, 3), exits={}, fire=fire((10.0, 1.5), inner=1.4, outer=4.0))
    found = turned(world, [(7.0, 1.5), (8.0, 1.5)], [(1.0, 0.0)] * 2)
    assert found == pytest.approx(np.array([(1.6 / 2.6, 0.0), (0.6 / 2.6, 0.0)]))


def test_people_that_stand_step_back_from_a_fire_that_grows_or_comes():
    standing = [(8.7, 10.0), (10.0, 11.4), (5.0, 10.0)]
    zero = np.zeros((3, 2))
    assert np.array_equal(turned(hall(fire=fire()), standing, zero), zero)
    grows = turned(hall(fire=fire(growth=0.4)), standing, zero)
    assert grows == pytest.approx(np.array([(-1.0, 0.0), (0.0, 1.0), (0.0, 0.0)]))
    track = tropel.Waypoints(points=[(10.0, 10.0), (0.0, 10.0)], speed=0.5)
    world = hall(fire=tropel.Hazard(inner=1.0, motion=track))
    world.advance(0.0, 0.05)
    comes = turned(world, standing, zero)
    assert comes == pytest.approx(np.array([(-1.0, 0.0), (0.0, 0.0), (0.0, 0.0)]))


def test_the_images_of_a_fire_beyond_the_seam_count():
    world = tropel.World.box((0, 0), (20, 20), periodic=True, hazards={"fire": fire((0.5, 10.0))})
    same = tropel.World.box((-20, 0), (20, 20), hazards={"fire": fire((0.5, 10.0))})
    through, directly = turned(world, [(18.5, 10.0)], [(1.0, 0.0)]), turned(same, [(-1.5, 10.0)], [(1.0, 0.0)])
    assert through == pytest.approx(directly)
    assert through[0, 1] < -0.5


# Runs -----------------------------------------------------------------------------------------------------------


def run(world, places, *, goal="nearest exit", local=None, planning=None, habits=None, until=60.0, seed=1, **people):
    """Run until everybody has arrived; returns the simulation and the smallest distance of each to each fire's rim."""
    group = tropel.Group("people", positions=places, goal=goal, **{"radius": 0.22, "desired_speed": 1.3, **people})
    sim = tropel.Simulation(
        world, group, planning=planning or tropel.Direct(), local=local or tropel.Walk(), habits=habits, seed=seed
    )
    closest = np.full(len(places), np.inf)
    while sim.time < until and len(sim.agents):
        sim.step()
        away = np.linalg.norm(sim.agents.position[:, None] - world.hazards.position, axis=2) - world.hazards.inner
        np.minimum.at(closest, sim.agents.id, away.min(axis=1))
    return sim, closest


@pytest.mark.parametrize("model", MODELS)
def test_people_from_all_around_pass_at_a_distance_and_arrive(model):
    around = [(10.0 + 7.0 * math.cos(a), 10.0 + 7.0 * math.sin(a)) for a in np.linspace(0, 2 * math.pi, 24, False)]
    sim, closest = run(hall(fire=fire()), around, local=model())
    assert len(sim.agents) == 0
    assert sim.time < 25.0
    assert closest.min() > 0.7


@pytest.mark.parametrize("model", MODELS)
def test_nobody_stands_or_circles_for_ever(model):
    """Fires in corridors, next to doors and in rows: all layouts, all models, everybody arrives alive."""
    starts = [(3.0, y) for y in (0.5, 1.2, 2.0, 2.8, 3.5)]
    for y in (0.6, 1.2, 2.0, 2.8, 3.4):
        for inner in (0.4, 0.8):
            corridor = {"size": (20, 4), "exits": {"end": shapely.box(19, 0, 20, 4)}}
            sim, _ = run(hall(**corridor, fire=fire((10.0, y), inner=inner)), starts, local=model())
            assert len(sim.agents) == 0, (y, inner)
    abreast = [(3.0, y) for y in (8.0, 9.0, 9.8, 10.0, 10.3, 11.0, 12.0)]
    for row in ((9.2, 10.8), (8.6, 10.0, 11.4), (7.2, 8.6, 10.0, 11.4), (8.0, 10.0)):
        fires = {f"fire {y}": fire((10.0, y), inner=0.9, outer=3.0) for y in row}
        sim, _ = run(hall(**fires), abreast, local=model())
        assert len(sim.agents) == 0, row


@pytest.mark.parametrize("seed", range(6))
def test_a_crowd_leaves_past_a_fire_at_a_random_place(seed):
    rng = np.random.default_rng(seed)
    world = hall(fire=fire(tuple(rng.uniform(6.0, 14.0, size=2)), inner=float(rng.uniform(0.5, 1.5))))
    places = rng.uniform((1.0, 1.0), (5.0, 19.0), size=(20, 2))
    places = places[[all(np.linalg.norm(p - q) > 0.5 for q in places[:k]) for k, p in enumerate(places)]]
    sim, closest = run(world, places, planning=tropel.FlowField(), seed=seed)
    assert len(sim.agents) == 0
    assert closest.min() > 0.22


def past_a_fire_at_a_door(y, **given):
    """How many of seven people do not get through a door with a fire 1.5 m in front of its wall."""
    walls = [[(15.0, 0.0), (15.0, 10.0)], [(15.0, 11.2), (15.0, 20.0)]]
    starts = [(3.0, 2.0), (3.0, 6.0), (3.0, 10.0), (3.0, 14.0), (3.0, 18.0), (14.0, 2.0), (14.0, 18.0)]
    world = hall(walls=walls, fire=fire((13.5, y), **given))
    return len(run(world, starts, planning=tropel.FlowField())[0].agents)


def test_a_door_next_to_a_fire_is_used():
    """A rule without a memory or a plan can fail where a gap is just too narrow; planning around the fire does not."""
    places = np.arange(7.0, 13.1, 0.5)
    assert sum(past_a_fire_at_a_door(y) > 0 for y in places) <= 1
    assert [past_a_fire_at_a_door(y, replan=True) for y in places] == [0] * len(places)


def test_a_goal_in_front_of_a_fire_is_reached_without_shaking():
    for distance in (1.6, 2.0, 3.0):
        target = tropel.Target(position=(10.0 - distance, 10.0), radius=0.2, absorbs=True)
        for angle in np.linspace(0.0, 2.0 * math.pi, 12, endpoint=False):
            world = tropel.World(shapely.box(0, 0, 20, 20), targets={"spot": target}, hazards={"fire": fire()})
            place = (10.0 + 7.0 * math.cos(angle), 10.0 + 7.0 * math.sin(angle))
            sim, _ = run(world, [place], goal="spot", until=12.0)
            assert len(sim.agents) == 0


def test_a_fire_that_grows_kills_nobody_that_can_walk_away():
    deaths = []
    for habits in (None, []):
        world = hall(exits={}, fire=fire(inner=0.5, growth=0.3, largest=5.0))
        sim, _ = run(world, [(8.5, 10.0), (10.0, 12.0), (11.0, 9.0)], goal="none", habits=habits, until=20.0)
        deaths.append(int(sim.agents.dead.sum()))
    assert deaths == [0, 3]


def test_braver_people_keep_less_distance():
    closest = [
        run(hall(fire=fire()), [(3.0, 10.0)], parameters={"courage": courage})[1][0] for courage in (0.0, 0.5, 1.0)
    ]
    assert closest[0] > closest[1] + 0.1
    assert closest[1] > closest[2] + 0.1


def test_strength_and_intensity_widen_the_curve():
    def distance(strength, intensity):
        habits = [AvoidHazards(strength=strength)]
        return run(hall(fire=fire(intensity=intensity)), [(3.0, 10.0)], habits=habits)[1][0]

    assert distance(1.0, 1.0) < distance(3.0, 1.0) - 0.2
    assert distance(3.0, 1.0) < distance(3.0, 3.0) - 0.2


def crowd(*, threads=1, seed=5):
    rng = np.random.default_rng(seed)
    fires = {f"fire {k}": fire(tuple(rng.uniform(5, 15, size=2)), inner=0.4, growth=0.05) for k in range(6)}
    people = tropel.Group("people", count=150, region=shapely.box(0.5, 0.5, 19, 19))
    return tropel.Simulation(hall(**fires), people, seed=seed, threads=threads)


@needs_two_threads
def test_the_bits_do_not_depend_on_threads():
    one, two = crowd(threads=1), crowd(threads=2)
    for sim in (one, two):
        sim.run(until=4.0)
    assert one.state_hash() == two.state_hash()


def test_a_resumed_run_has_the_same_bits_and_remembers_that_it_is_off(tmp_path):
    whole = crowd()
    whole.at(1.0, events.SetBehaviour(name="hazard influence", on=False))
    whole.at(3.0, events.SetBehaviour(name="hazard influence", on=True))
    whole.run(until=2.0)
    whole.save(tmp_path / "saved.npz")
    resumed = crowd()
    resumed.restore(tmp_path / "saved.npz")
    assert resumed.behaviours["hazard influence"] is False
    for sim in (whole, resumed):
        sim.run(until=5.0)
    assert whole.state_hash() == resumed.state_hash()


def test_it_can_be_switched_off_during_a_run():
    runs = []
    for off in (False, True):
        sim = crowd()
        sim.run(until=1.0)
        before = sim.state_hash()
        sim.set_behaviour("hazard influence", not off)
        sim.run(until=3.0)
        runs.append((before, sim.agents.position.tolist()))
    assert runs[0][0] == runs[1][0]
    assert runs[0][1] != runs[1][1]
