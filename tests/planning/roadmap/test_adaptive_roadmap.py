"""Among things that move: blocked paths are mended in time, marks are lifted, and traps lead to another path."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

import tropel
from tropel.planning.roadmap.moving import see, watch_paths
from tropel.planning.roadmap.space import MovingDiscs
from tropel.world import Obstacle, Target, Waypoints, World

#: A blocked path has to be mended or replaced within so many steps.
MENDED_WITHIN = 5


def gate(*, speed: float = 0.8) -> World:
    """A wall with two gaps; a cart comes to stand in the nearer one."""
    cart = Obstacle(radius=0.7, motion=Waypoints(points=((8.0, 0.9), (8.0, 4.0)), speed=speed, repeat="once"))
    return World(
        shapely.box(0, 0, 16, 12),
        walls=[[(8, 0), (8, 3)], [(8, 5), (8, 8)], [(8, 10), (8, 12)]],
        obstacles={"cart": cart},
        targets={"goal": Target(position=(14, 4), radius=0.5)},
    )


def led(world: World, *, seed: int = 1, start: tuple[float, float] = (2, 4), **planner: object) -> tropel.Simulation:
    leader = tropel.Group("leader", positions=[start], goal="goal", radius=0.2, sense_radius=3.0, desired_speed=1.2)
    made = tropel.AdaptiveRoadmap(**planner)  # type: ignore[arg-type]
    return tropel.Simulation(world, leader, planning=made, local=tropel.Seek(), dt=0.05, seed=seed)


def gap_to_cart(sim: tropel.Simulation) -> float:
    obstacles = sim.world.obstacles
    away = np.linalg.norm(obstacles.position - sim.agents.position[0], axis=1)
    return float((away - obstacles.radius).min() - sim.agents.radius[0])


@pytest.mark.parametrize("predict", [True, False])
def test_a_blocked_path_is_mended_and_the_leader_does_not_walk_into_the_obstacle(predict: bool) -> None:
    for seed in range(4):
        sim = led(gate(), seed=seed, predict=predict)
        planner = sim.planners["leader"]
        blocked_for, longest, closest = 0, 0, np.inf
        while sim.time < 40.0 and np.linalg.norm(sim.agents.position[0] - (14, 4)) > 0.6:
            before = sim.agents.position[0].copy()
            sim.step()
            blocked_for = blocked_for + 1 if path_is_blocked(sim, planner, predict) else 0
            longest = max(longest, blocked_for)
            if gap_to_cart(sim) < 0.05 and np.linalg.norm(sim.agents.position[0] - before) > 0.0:
                closest = min(closest, gap_to_cart(sim))
        assert np.linalg.norm(sim.agents.position[0] - (14, 4)) <= 0.6
        assert planner.spent["rejoinings"] > 0
        assert closest > -1e-9
        assert longest <= MENDED_WITHIN


def path_is_blocked(sim: tropel.Simulation, planner: tropel.AdaptiveRoadmap, predict: bool) -> bool:
    """Whether the path is blocked within a second, according to the obstacle's present velocity."""
    state, obstacles = sim.agents, sim.world.obstacles
    rows, nothing = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.bool_)
    discs = MovingDiscs(rows, obstacles.position, obstacles.velocity, obstacles.radius)
    # Whatever the test finds must not reach the planner.
    known = planner.travellers.columns._replace(leg=np.zeros(1, dtype=np.int64), when=np.zeros(1), calls=nothing)
    watch_paths(rows, rows, state.position, state.desired_speed, float(state.radius[0]), 0.0, known, 0,
                see(discs, predict=predict, ahead=0.0).tested, 1.0)  # fmt: skip
    return bool(known.leg[0] >= 0 and known.when[0] < 1.0)


def test_only_the_legs_of_the_path_are_tested_against_what_moves() -> None:
    sim = led(gate())
    planner = sim.planners["leader"]
    sim.run(until=1.0)
    edges = len(next(iter(planner.charts.values())).graph.edges)
    assert 20 <= planner.spent["path tests"] < 0.2 * edges * 20


def test_marks_are_lifted_when_their_edges_are_free_again() -> None:
    cart = Obstacle(radius=0.7, motion=Waypoints(points=((8.0, 1.0), (8.0, 11.0)), speed=0.5))
    world = World(shapely.box(0, 0, 16, 12), walls=[[(8, 0), (8, 3)], [(8, 9), (8, 12)]], obstacles={"cart": cart},
                  targets={"goal": Target(position=(14, 2), radius=0.5)})  # fmt: skip
    marked, lifted = 0, 0
    for seed in range(6):
        sim = led(world, seed=seed, start=(2, 2), smooth=False)
        person = sim.planners["leader"].travellers.people[0]
        for _ in range(200):
            before = set(person.marked.tolist())
            sim.step()
            marked += len(set(person.marked.tolist()) - before)
            lifted += len(before - set(person.marked.tolist()))
    assert marked > 0
    assert lifted > 0.5 * marked


def test_a_leader_that_is_stuck_is_trapped_and_takes_another_path() -> None:
    """Something that the roadmap does not know of holds the leader: here a crowd that stands in the gap."""

    def walk(patience: float) -> tropel.Simulation:
        world = World(shapely.box(0, 0, 16, 12), walls=[[(8, 0), (8, 3.4)], [(8, 4.6), (8, 8)], [(8, 10), (8, 12)]],
                      targets={"goal": Target(position=(14, 4), radius=0.5)})  # fmt: skip
        leader = tropel.Group("leader", positions=[[2.0, 4.0]], goal="goal", radius=0.2, sense_radius=2.0)
        crowd = tropel.Group("crowd", positions=[[8.0, 3.7], [8.0, 4.3]], goal="none", radius=0.28)
        planner = tropel.AdaptiveRoadmap(patience=patience)
        sim = tropel.Simulation(world, [leader, crowd], planning=planner, dt=0.05, seed=2)
        sim.run(until=45.0)
        return sim

    free = walk(4.0)
    assert free.planners["leader"].spent["traps"] > 0
    assert np.linalg.norm(free.agents.position[0] - (14, 4)) < 1.0
    held = walk(0.0)
    assert held.planners["leader"].spent["traps"] == 0
    assert held.agents.position[0, 0] < 8.0
