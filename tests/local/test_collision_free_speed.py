"""The collision-free speed model against its equations, in closed forms and in crowds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from tropel import FlowField, Group, Obstacle, Simulation, Target, Uniform, World
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.environment.grid import Grid
from tropel.errors import ParameterError
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.scenario.loading import parse_scenario
from tropel.testing import check_steering

Floats = NDArray[np.float64]

PLAIN = World(bounds=(-60, -60, 60, 60))
A_N, D_N, A_G, D_G = 8.0, 0.1, 5.0, 0.02


def steered(position: Any, directions: Any, *, world: World = PLAIN, model: Any = None, **fields: Any) -> Steered:
    """One look at a crowd: what the model writes."""
    model = model or CollisionFreeSpeed()
    position = np.asarray(position, dtype=np.float64)
    state = AgentState(2, model.all_columns)
    state.add(len(position), {"position": position, **fields})
    moment = Moment.of(state, world, environment=Grid(), directions=np.asarray(directions, dtype=np.float64))
    model.prepare(moment)
    out = Steered.like(state, ())
    model.steer(moment, out)
    return out


def unit(vector: Floats) -> Floats:
    return vector / np.linalg.norm(vector)


def reference(position: Floats, e0: Floats, v0: Floats, radius: Floats, time_gap: Floats, *, world: World) -> Floats:
    """Velocities by the equations, agent by agent, everything counted at any distance."""
    lines = [shapely.LineString(segment.reshape(2, 2)) for segment in world.segments]
    discs = list(zip(world.obstacles.position, world.obstacles.radius, strict=True))
    velocity = np.zeros_like(position)
    for i, here in enumerate(position):
        way = unit(e0[i])
        seen = []
        for j, there in enumerate(position):
            sight = shapely.LineString([here, there])
            if j != i and not any(sight.intersects(line) for line in lines):
                seen.append((there - here, radius[i] + radius[j]))
        for offset, contact in seen:
            away = np.linalg.norm(offset)
            way = way - A_N * np.exp((contact - away) / D_N) * offset / away
        points = [np.array(line.interpolate(line.project(shapely.Point(here))).coords[0]) for line in lines]
        points += [centre + size * unit(here - centre) for centre, size in discs]
        for point in points:
            away = np.linalg.norm(point - here)
            way = way - A_G * np.exp((radius[i] - away) / D_G) * (point - here) / away
        way = unit(way)
        left = np.array([-way[1], way[0]])
        ahead = [np.linalg.norm(o) - c for o, c in seen if o @ way >= 0.0 and abs(o @ left) <= c]
        velocity[i] = way * min(v0[i], max(0.0, min(ahead, default=math.inf) / time_gap[i]))
    return velocity


def crowd(seed: int, count: int = 60, side: float = 8.0) -> dict[str, Floats]:
    """People of all kinds who do not overlap."""
    draws = np.random.default_rng(seed)
    radius = draws.uniform(0.1, 0.25, count)
    position: list[Floats] = []
    while len(position) < count:
        place = draws.uniform(0.3, side - 0.3, 2)
        if all(
            np.linalg.norm(place - other) > radius[len(position)] + radius[k] for k, other in enumerate(position)
        ) and not any(shapely.Point(place).distance(thing) < radius[len(position)] for thing in FURNITURE):
            position.append(place)
    angle = draws.uniform(0, 2 * math.pi, count)
    return {
        "position": np.array(position),
        "directions": np.column_stack([np.cos(angle), np.sin(angle)]),
        "desired_speed": draws.uniform(0.5, 2.0, count),
        "radius": radius,
        "time_gap": draws.uniform(0.4, 1.5, count),
    }


FURNITURE = [
    shapely.LineString([(2, 2), (2, 5)]),
    shapely.LineString([(4, 6), (7, 6.5)]),
    shapely.Point(5, 3).buffer(0.6),
]


def furnished() -> World:
    return World(
        shapely.box(0, 0, 8, 8), walls=FURNITURE[:2], obstacles={"pillar": Obstacle(radius=0.6, position=(5, 3))}
    )


# The equations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("world", [PLAIN, furnished()], ids=["in the open", "among walls and a pillar"])
def test_velocities_are_those_of_the_equations(seed: int, world: World) -> None:
    people = crowd(seed)
    expected = reference(
        people["position"],
        people["directions"],
        people["desired_speed"],
        people["radius"],
        people["time_gap"],
        world=world,
    )
    out = steered(**people, world=world, sense_radius=6.0)
    np.testing.assert_allclose(out.velocity, expected, atol=1e-4)
    speed = np.linalg.norm(expected, axis=1)
    assert (speed < 0.5 * people["desired_speed"]).sum() > 5
    assert (speed == people["desired_speed"]).sum() > 5
    np.testing.assert_allclose(np.linalg.norm(out.heading, axis=1), 1.0)


@pytest.mark.parametrize("time_gap", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("distance", [0.3, 0.4, 0.5, 0.8, 1.2, 2.0, 2.9])
def test_behind_somebody_speed_is_the_free_distance_over_the_time_gap(distance: float, time_gap: float) -> None:
    out = steered(
        [(0, 0), (distance, 0)], [(1, 0), (0, 0)], time_gap=time_gap, model=CollisionFreeSpeed(neighbour_strength=0.0)
    )
    expected = min(1.34, max(0.0, (distance - 0.4) / time_gap))
    np.testing.assert_allclose(out.velocity, [(expected, 0), (0, 0)], atol=1e-12)


@pytest.mark.parametrize("aside", [0.39, -0.39, 0.41, -0.41])
def test_only_who_is_in_the_corridor_slows_down(aside: float) -> None:
    out = steered([(0, 0), (0.5, aside)], [(1, 0), (0, 0)], model=CollisionFreeSpeed(neighbour_strength=0.0))
    free = math.hypot(0.5, aside) - 0.4
    assert out.velocity[0, 0] == pytest.approx(free if abs(aside) < 0.4 else 1.34)


def test_who_is_behind_does_not_slow_down() -> None:
    out = steered([(0, 0), (-0.45, 0)], [(1, 0), (0, 0)])
    np.testing.assert_allclose(out.velocity[0], (1.34, 0))


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.5])
def test_somebody_at_the_side_turns_the_way_by_the_exponential(gap: float) -> None:
    out = steered([(0, 0), (0, 0.4 + gap)], [(1, 0), (0, 0)])
    assert math.tan(math.atan2(-out.heading[0, 1], out.heading[0, 0])) == pytest.approx(A_N * math.exp(-gap / D_N))


@pytest.mark.parametrize("gap", [0.0, 0.02, 0.1])
def test_a_wall_and_a_pillar_turn_the_way_alike_and_slow_nobody(gap: float) -> None:
    wall = World(bounds=(-9, -9, 9, 9), walls=[[(-5, 0), (5, 0)]])
    pillar = World(bounds=(-9, -9, 9, 9), obstacles={"p": Obstacle(radius=1.0, position=(0, -1))})
    for world in (wall, pillar):
        out = steered([(0, 0.2 + gap)], [(1, 0)], world=world)
        turn = A_G * math.exp(-gap / D_G)
        np.testing.assert_allclose(out.velocity[0], 1.34 * unit(np.array([1.0, turn])), rtol=1e-9)


def test_who_is_hidden_by_a_wall_does_not_count_until_the_wall_is_gone() -> None:
    people: dict[str, Any] = {"position": [(-0.3, 0), (0.3, 0)], "directions": [(1, 0), (-1, 0)]}
    model = CollisionFreeSpeed(wall_strength=0.0, neighbour_strength=0.0)
    between = World(bounds=(-9, -9, 9, 9), walls=[[(0, -2), (0, 2)]])
    np.testing.assert_allclose(steered(**people, model=model, world=between).velocity, [(1.34, 0), (-1.34, 0)])
    np.testing.assert_allclose(steered(**people, model=model).velocity, [(0.2, 0), (-0.2, 0)], atol=1e-12)


def test_a_shorter_direction_means_slower_and_none_means_standing() -> None:
    directions = [(0.5, 0.0), (0.0, 0.0), (3.0, 0.0)]
    out = steered([(0, 0), (10, 0), (20, 0)], directions, desired_speed=2.0, heading=(0.0, 1.0))
    np.testing.assert_allclose(out.velocity, [(1.0, 0), (0, 0), (2.0, 0)])
    np.testing.assert_allclose(out.heading, [(1, 0), (0, 1), (1, 0)])


def test_nothing_beyond_the_sense_radius_counts() -> None:
    for sense, speed in ((1.0, 0.5), (0.89, 1.34)):
        model = CollisionFreeSpeed(neighbour_strength=0.0)
        out = steered([(0, 0), (0.9, 0)], [(1, 0), (0, 0)], sense_radius=sense, model=model)
        assert out.velocity[0, 0] == pytest.approx(speed)


# Walking --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leader", [0.2, 0.6, 1.0])
def test_in_single_file_everybody_follows_at_the_time_gap(leader: float) -> None:
    world = World(bounds=(0, -1, 200, 1), targets={"t": (199, 0)})
    places = [(20.0 - 1.2 * k, 0.0) for k in range(8)]
    gaps = [1.0, 1.0, 0.5, 0.5, 0.8, 0.8, 1.2, 1.2]
    group = Group(
        "a", positions=places, desired_speed=[leader, *[1.5] * 7], goal="t", parameters={"time_gap": np.array(gaps)}
    )
    # Without repulsion: along a line it turns nobody aside, but whoever is in touch, round.
    sim = Simulation(world, group, local=CollisionFreeSpeed(neighbour_strength=0.0))
    sim.run(until=80.0)
    np.testing.assert_allclose(sim.agents.velocity[:, 0], leader, rtol=0.01)
    np.testing.assert_allclose(-np.diff(sim.agents.position[:, 0]), 0.4 + leader * np.array(gaps[1:]), rtol=0.01)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_crowd_in_the_open_stays_free_of_collisions_within_the_papers_time_step(seed: int) -> None:
    world = World(bounds=(0, 0, 20, 20), targets={"left": Target(position=(1, 10)), "right": Target(position=(19, 10))})
    groups = [
        Group("a", count=60, goal="right", region=shapely.box(0, 0, 10, 20)),
        Group("b", count=60, goal="left", region=shapely.box(10, 0, 20, 20)),
    ]
    sim = Simulation(world, groups, local=CollisionFreeSpeed(), dt=0.05, seed=seed)
    for _ in range(160):
        sim.step()
        assert pdist(sim.agents.position).min() > 0.4 - 1e-9


def jam(*, solid: bool) -> float:
    """The smallest distance of two centres while people squeeze round the end of a wall with a long time step."""
    world = World(
        shapely.box(0, 0, 12, 8),
        walls=[[(8, 0), (8, 3.5)], [(8, 4.5), (8, 8)]],
        targets={"door": Target(position=(9.5, 4), absorbs=True)},
    )
    people = Group("a", count=90, region=shapely.box(1, 0, 7.5, 8), goal="door")
    sim = Simulation(world, people, local=CollisionFreeSpeed(solid_bodies=solid), dt=0.3, seed=1)
    nearest = math.inf
    for _ in range(60):
        sim.step()
        if len(sim.agents) > 1:
            nearest = min(nearest, float(pdist(sim.agents.position).min()))
    return nearest


def test_solid_bodies_are_off_by_default_and_keep_bodies_apart_when_on() -> None:
    assert not CollisionFreeSpeed().declares.solid_bodies
    assert jam(solid=True) > 0.4 - 1e-6
    assert jam(solid=False) < 0.38


def test_people_pass_a_pillar_in_their_way() -> None:
    world = World(
        bounds=(0, 0, 20, 10), targets={"t": (19, 5)}, obstacles={"p": Obstacle(radius=1.0, position=(10, 5))}
    )
    sim = Simulation(
        world, Group("a", positions=[(2, 4.9), (2, 5.6), (4, 5.2)], goal="t"), local=CollisionFreeSpeed(), dt=0.05
    )
    for _ in range(320):
        sim.step()
        assert np.linalg.norm(sim.agents.position - (10, 5), axis=1).min() > 1.2 - 1e-6
    assert (sim.agents.position[:, 0] > 17.0).all()


def test_the_time_gap_can_be_changed_while_running() -> None:
    world = World(bounds=(0, -1, 200, 1), targets={"t": (199, 0)})
    group = Group("a", positions=[(20, 0), (18, 0)], desired_speed=[0.5, 1.5], goal="t")
    sim = Simulation(world, group, local=CollisionFreeSpeed(time_gap=2.0, neighbour_strength=0.0))
    sim.run(until=40.0)
    assert sim.agents.position[0, 0] - sim.agents.position[1, 0] == pytest.approx(1.4, abs=0.01)
    sim.set_parameter("time_gap", 1.0)
    sim.run(until=80.0)
    assert sim.agents.position[0, 0] - sim.agents.position[1, 0] == pytest.approx(0.9, abs=0.01)


# The same everywhere and in every direction ---------------------------------------------------------------------------


@given(angle=st.floats(0, 2 * math.pi), shift=st.tuples(st.floats(-20, 20), st.floats(-20, 20)), mirror=st.booleans())
@settings(max_examples=25)
def test_a_turned_moved_or_mirrored_crowd_does_the_same(angle: float, shift: tuple[float, float], mirror: bool) -> None:
    people = crowd(3)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    if mirror:
        turn = turn @ np.diag([1.0, -1.0])
    walls = np.array([[(2.0, 2.0), (2.0, 5.0)], [(4.0, 6.0), (7.0, 6.5)]])
    here = steered(**people, world=World(bounds=(-60, -60, 60, 60), walls=list(walls)))
    moved = people | {"position": people["position"] @ turn.T + shift, "directions": people["directions"] @ turn.T}
    there = steered(**moved, world=World(bounds=(-60, -60, 60, 60), walls=list(walls @ turn.T + np.array(shift))))
    np.testing.assert_allclose(there.velocity, here.velocity @ turn.T, atol=1e-9)
    np.testing.assert_allclose(there.heading, here.heading @ turn.T, atol=1e-9)


def test_it_keeps_the_contract_of_steering_models() -> None:
    check_steering(CollisionFreeSpeed, dims=(2,))
    check_steering(lambda: CollisionFreeSpeed(solid_bodies=True), dims=(2,), ids_matter=True)


# Odd cases ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("radius", [0.0, 0.2, 5.0, 1e3])
def test_on_top_of_each_other_in_a_wall_or_an_obstacle_everything_stays_finite(radius: float) -> None:
    world = World(
        bounds=(-9, -9, 9, 9), walls=[[(0, -2), (0, 2)]], obstacles={"p": Obstacle(radius=1.0, position=(3, 0))}
    )
    places = [(0, 0), (0, 0), (0, 0), (3, 0), (3.1, 0), (1e-200, 0), (1e-9, 1e-9)]
    out = steered(places, [(1, 0)] * 4 + [(0, 1)] * 3, world=world, radius=radius)
    assert np.isfinite(out.velocity).all()
    np.testing.assert_allclose(np.linalg.norm(out.heading, axis=1), 1.0)
    assert (np.linalg.norm(out.velocity, axis=1) <= 1.34 * (1 + 1e-12)).all()


def test_where_everything_cancels_the_body_goes_on_as_it_faces() -> None:
    # In touch, with the strength 1, the push back equals the planned direction.
    out = steered(
        [(0, 0), (0.4, 0)], [(1, 0), (0, 0)], heading=(0, 1), model=CollisionFreeSpeed(neighbour_strength=1.0)
    )
    np.testing.assert_allclose(out.heading[0], (0, 1))


def test_a_3d_world_is_refused_with_a_word_on_what_to_do() -> None:
    world = World.box((0, 0, 0), (9, 9, 9))
    with pytest.raises(ParameterError, match=r"is a 2D model, and this world has 3 dimensions; use a 2D world"):
        Simulation(world, Group("a", count=2, goal="none"), local=CollisionFreeSpeed())


def test_two_models_that_disagree_about_the_time_gap_are_refused() -> None:
    groups = [Group("a", positions=[(1, 1)]), Group("b", positions=[(3, 3)])]
    models = {"a": CollisionFreeSpeed(), "b": CollisionFreeSpeed(time_gap=0.5)}
    with pytest.raises(ParameterError, match=r"two steering models set the time_gap of agents, to 1 s and 0\.5 s"):
        Simulation(PLAIN, groups, local=models)


def test_a_time_gap_that_is_not_positive_is_refused() -> None:
    group = Group("a", positions=[(1, 1), (3, 3)], parameters={"time_gap": np.array([1.0, 0.0])})
    with pytest.raises(ParameterError, match="group 'a': time_gap must be a positive number, not 0"):
        Simulation(PLAIN, group, local=CollisionFreeSpeed())


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"time_gap": 0.0}, "time_gap must be a positive number, not 0.0"),
        ({"neighbour_range": -0.1}, "neighbour_range must be a positive number, not -0.1"),
        ({"wall_range": math.nan}, "wall_range must be a positive number"),
        ({"neighbour_strength": -1.0}, "neighbour_strength must be a number that is not negative"),
        ({"wall_strength": math.inf}, "wall_strength must be a number that is not negative"),
        ({"timegap": 1.0}, "no parameter 'timegap'; did you mean 'time_gap'"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        CollisionFreeSpeed(**fields)


def test_scenario_files_know_it_by_name(tmp_path: Any) -> None:
    text = """
    name = "pair"
    until = 1.0
    local = { model = "collision_free_speed", time_gap = 0.7 }
    [world]
    walkable = { box = [0.0, 0.0, 8.0, 6.0] }
    [[groups]]
    name = "people"
    count = 3
    goal = "none"
    """
    sim = parse_scenario(text, source="pair", folder=tmp_path).build(threads=1)
    assert isinstance(sim.all_layers()[-1], CollisionFreeSpeed)
    np.testing.assert_array_equal(sim.agents.columns["time_gap"], 0.7)


def test_a_crowd_walks_as_in_jupedsim() -> None:
    import jupedsim

    room = shapely.box(0, 0, 30, 12)
    group = Group("a", count=120, region=shapely.box(0.6, 0.6, 14, 11.4), goal="t", desired_speed=Uniform(0.8, 1.6))
    world = World(room, targets={"t": Target(position=(28.0, 6.0), radius=0.01)})
    shortest = FlowField(streams=False)
    ours = Simulation(world, group, planning=shortest, local=CollisionFreeSpeed(), dt=0.05, seed=4)
    theirs = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=room, dt=0.05)
    stage = theirs.add_direct_steering_stage()
    journey = theirs.add_journey(jupedsim.JourneyDescription([stage]))
    kind = jupedsim.CollisionFreeSpeedModelAgentParameters
    ids = []
    for place, speed in zip(ours.agents.position, ours.agents.desired_speed, strict=True):
        body = {"radius": 0.2, "time_gap": 1.0, "desired_speed": float(speed)}
        ids.append(theirs.add_agent(kind(position=tuple(place), journey_id=journey, stage_id=stage, **body)))
        theirs.agent(ids[-1]).target = (28.0, 6.0)
    for _ in range(60):
        ours.step()
        theirs.iterate()
    expected = np.array([theirs.agent(number).position for number in ids])
    np.testing.assert_allclose(ours.agents.position, expected, atol=1e-5)
