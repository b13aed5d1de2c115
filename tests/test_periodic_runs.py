"""Whole runs in periodic and in open space."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from periodic_swarm import Swarm, apart, scattered_headings
from tropel.agents.state import Steered
from tropel.analysis.crowd_maps import CrowdMapsBuilder
from tropel.contracts import Guidance, ModelDeclaration, Moment
from tropel.errors import GeometryError, ModelError, ParameterError
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.recording import FrameData, Scene
from tropel.testing import check_neighbours, check_planner, check_steering
from tropel.world.raster import rasterise

HIGH = np.array([12.0, 9.0, 8.0])


def world_of(dim: int, moved: np.ndarray | float = 0.0, **more: Any) -> tropel.World:
    """With an obstacle at the seam, one that flies over it, and a target."""
    shift = np.zeros(dim) + moved
    at_seam, orbit, target = np.full(dim, 0.2) + shift, np.full(dim, 5.0) + shift, np.full(dim, 6.5) + shift
    obstacles = {
        "at the seam": tropel.Obstacle(position=at_seam.tolist(), radius=1.0),
        "flying": tropel.Obstacle(motion=lambda t: (orbit + 1.5 * t * np.eye(dim)[0]).tolist(), radius=0.6),
    }
    target = target % HIGH[:dim]
    return tropel.World.box(
        [0.0] * dim, HIGH[:dim].tolist(), periodic=True, obstacles=obstacles, targets={"t": target.tolist()}, **more
    )


def places(dim: int, count: int, world: tropel.World) -> np.ndarray:
    rng = np.random.default_rng(8)
    position = rng.uniform(0.0, HIGH[:dim], (4 * count, dim))
    free = np.ones(len(position), dtype=bool)
    for centre, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True):
        free &= apart(position, centre, world) > radius + 0.3
    return position[free][:count]


def swarm(dim: int, moved: np.ndarray | float = 0.0, *, count: int = 120, **more: Any) -> tropel.Simulation:
    world = world_of(dim, moved)
    start = (places(dim, count, world_of(dim)) + moved) % HIGH[:dim]
    group = tropel.Group("boids", positions=start, radius=0.1, sense_radius=2.0, desired_speed=2.0, goal="t")
    return scattered_headings(tropel.Simulation(world, group, local=Swarm(), dt=0.05, **more), seed=4)


def walkers(moved: np.ndarray | float = 0.0) -> tropel.Simulation:
    world = world_of(2, moved)
    start = (places(2, 60, world_of(2)) + moved) % HIGH[:2]
    group = tropel.Group("walkers", positions=start, radius=0.15, sense_radius=3.0, desired_speed=1.3, goal="t")
    return tropel.Simulation(world, group, local=CollisionFreeSpeed(), dt=0.05)


@pytest.mark.parametrize("dim", [2, 3])
def test_nobody_enters_an_obstacle_at_the_seam_and_velocity_is_the_displacement(dim: int) -> None:
    sim = swarm(dim)
    crossings = 0
    for _ in range(150):
        before = sim.agents.position.copy()
        sim.step()
        after, world = sim.agents.position, sim.world
        assert (after >= 0.0).all()
        assert (after < HIGH[:dim]).all()
        crossings += int((np.abs(after - before) > 0.5 * HIGH[:dim]).sum())
        assert apart(before + sim.dt * sim.agents.velocity, after, world).max() < 1e-12
        world.advance(sim.time, sim.dt)
        for centre, radius in zip(world.obstacles.position, world.obstacles.radius, strict=True):
            assert apart(after, centre, world).min() >= radius + 0.1 - 1e-6
    assert crossings > 50


@pytest.mark.parametrize("dim", [2, 3])
def test_a_shifted_run_has_the_same_trajectories(dim: int) -> None:
    for moved in (np.array([5.3, -7.7, 3.1])[:dim], np.array([0.0, 1e-9, 4.0])[:dim]):
        sim, other = swarm(dim), swarm(dim, moved)
        for _ in range(40):
            sim.step()
            other.step()
            assert apart(sim.agents.position + moved, other.agents.position, sim.world).max() < 1e-9
            assert np.abs(sim.agents.velocity - other.agents.velocity).max() < 1e-8


def test_a_shifted_run_of_walkers_has_the_same_trajectories() -> None:
    moved = np.array([5.3, -7.7])
    sim, other = walkers(), walkers(moved)
    for _ in range(40):
        sim.step()
        other.step()
        assert apart(sim.agents.position + moved, other.agents.position, sim.world).max() < 1e-9


@pytest.mark.parametrize("dim", [2, 3])
def test_one_thread_and_two_give_the_same_bits(dim: int) -> None:
    hashes = []
    for threads in (1, 2):
        world = tropel.World.box([0.0] * dim, [30.0] * dim, periodic=True)
        group = tropel.Group("boids", count=3000, radius=0.05, sense_radius=0.9, goal="none")
        sim = tropel.Simulation(world, group, local=Swarm(), dt=0.05, threads=threads)
        scattered_headings(sim, seed=2)
        for _ in range(10):
            sim.step()
        hashes.append(sim.state_hash())
    assert hashes[0] == hashes[1]


def test_a_resumed_run_has_the_hash_of_the_uninterrupted_one(tmp_path: Path) -> None:
    going_on = swarm(2)
    for _ in range(20):
        going_on.step()
    going_on.save(tmp_path / "half")
    resumed = swarm(2)
    resumed.restore(tmp_path / "half")
    for _ in range(20):
        going_on.step()
        resumed.step()
        assert going_on.state_hash() == resumed.state_hash()


def test_a_checkpoint_of_a_walled_box_does_not_fit_a_periodic_one(tmp_path: Path) -> None:
    def build(**how: Any) -> tropel.Simulation:
        world = tropel.World.box((0, 0, 0), (9, 9, 9), **how)
        return tropel.Simulation(world, tropel.Group("boids", count=5, goal="none"), local=Swarm())

    build().save(tmp_path / "walled")
    for how in ({"periodic": True}, {"open": True}):
        with pytest.raises(tropel.errors.CheckpointError):
            build(**how).restore(tmp_path / "walled")


class Straight(tropel.Model):
    """Everybody keeps its velocity."""

    declares = ModelDeclaration(periodic_space=True)

    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = moment.state.velocity[moment.members]


@pytest.mark.parametrize("dim", [2, 3])
def test_collisions_over_the_seam_are_those_of_brute_force(dim: int) -> None:
    rng = np.random.default_rng(3)
    world = tropel.World.box([0.0] * dim, [8.0] * dim, periodic=True)
    start = rng.uniform(0.0, 8.0, (150, dim))
    velocity = rng.normal(size=(150, dim)) * 1.5
    group = tropel.Group("discs", positions=start, radius=0.12, sense_radius=1.0, goal="none")
    sim = tropel.Simulation(world, group, local=Straight(), dt=0.1)
    sim.agents.velocity[:] = velocity
    for _ in range(20):
        sim.step()
    log = sim.collisions
    found = set(zip(log.id_a.tolist(), log.id_b.tolist(), strict=True))
    # In a frame in which nothing is wrapped, with all images, at many times.
    wanted, over_seam = set(), 0
    times = np.linspace(0.0, 2.0, 4001)
    for i in range(150):
        for j in range(i + 1, 150):
            gap = (start[i] - start[j]) + times[:, None] * (velocity[i] - velocity[j])
            turns = np.round(gap / 8.0)
            away = np.linalg.norm(gap - 8.0 * turns, axis=1)
            if away.min() < 0.24 - 1e-4:
                wanted.add((i, j))
                over_seam += int(turns[np.argmin(away)].any())
    assert over_seam > 5
    assert wanted <= found
    assert len(found - wanted) <= 2  # grazing ones


def test_a_collision_with_the_image_of_an_obstacle_has_the_name_of_the_obstacle() -> None:
    world = tropel.World.box((0, 0), (10, 10), periodic=True)
    group = tropel.Group("discs", positions=[(0.9, 5.0)], radius=0.2, sense_radius=1.0, goal="none")
    sim = tropel.Simulation(world, group, local=Straight(), dt=0.1)
    world.obstacles.add("ball", tropel.Obstacle(position=(9.9, 5.0), radius=0.5))
    sim.agents.position[0] = 0.4, 5.0
    sim.step()
    assert sim.collisions.obstacles == ("ball",)
    assert sim.collisions.depth[0] == pytest.approx(0.2, abs=1e-9)


def test_nobody_passes_a_wall_in_a_periodic_corridor_also_where_walls_meet_at_the_seam() -> None:
    corridor = tropel.World.box((0, 0), (20, 4), periodic="x")
    with_walls = tropel.World(
        bounds=(0, 0, 20, 4), periodic=True, walls=[[(0, 0), (20, 0)], [(0.5, 1), (0, 2.0)], [(20, 2.0), (19.5, 3)]]
    )
    for world in (corridor, with_walls):
        group = tropel.Group("walkers", count=60, radius=0.15, sense_radius=1.5, desired_speed=1.5, goal="none")
        lane = tropel.VectorField(lambda p: np.tile([0.9, 0.3], (len(p), 1)))
        sim = tropel.Simulation(world, group, planning=lane, local=CollisionFreeSpeed(), dt=0.1)
        travelled = np.zeros((60, 2))
        lines = [shapely.LineString(np.array(s).reshape(2, 2)) for s in world.segments.tolist()]
        tree = shapely.STRtree(lines)
        for _ in range(150):
            before = sim.agents.position.copy()
            sim.step()
            move = sim.dt * sim.agents.velocity
            travelled += move
            chords = shapely.linestrings(np.stack([before, before + 0.999999 * move], axis=1))
            assert len(tree.query(chords, predicate="crosses")[0]) == 0
        assert travelled[:, 0].max() > 15.0
        # With walls below and above, or one wall that is both, nobody gets further up than the corridor is high.
        assert travelled[:, 1].max() < 4.0


def test_the_short_way_to_a_target_may_lead_over_the_seam() -> None:
    goal = tropel.Target(position=(9.5, 9.5), radius=0.3, absorbs=True)
    world = tropel.World.box((0, 0), (10, 10), periodic=True, targets={"t": goal})
    group = tropel.Group("people", positions=[(1.0, 1.0), (8.0, 0.5)], goal="t", sense_radius=2.0)
    sim = tropel.Simulation(world, group, local=CollisionFreeSpeed())
    summary = sim.run(until=5.0)
    assert summary.remaining == 0
    out = Guidance(directions=np.zeros((1, 2)))
    planner = tropel.Direct()
    alone = tropel.Simulation(world, tropel.Group("one", positions=[(1.0, 1.0)], goal="t"), local=CollisionFreeSpeed())
    planner.prepare(alone.moment())
    planner.direct(alone.moment(), out)
    np.testing.assert_allclose(out.directions[0], [-(0.5**0.5), -(0.5**0.5)])


def test_exits_are_aimed_at_over_the_seam() -> None:
    world = tropel.World(bounds=(0, 0, 10, 10), periodic=True, exits={"out": shapely.box(8, 4, 10, 6)})
    sim = tropel.Simulation(world, tropel.Group("people", positions=[(1.0, 5.0)]), local=CollisionFreeSpeed())
    sim.step()
    assert sim.agents.velocity[0, 0] < -0.5
    assert sim.run(until=4.0).remaining == 0


def test_a_hazard_kills_and_stops_over_the_seam() -> None:
    fire = tropel.Hazard(inner=1.0, position=(0.2, 5.0))
    world = tropel.World.box((0, 0), (10, 10), periodic=True, hazards={"fire": fire})
    sim = tropel.Simulation(
        world, tropel.Group("people", positions=[(9.0, 5.0), (5.0, 5.0)], goal="none"), local=Straight()
    )
    sim.agents.velocity[:, 0] = 1.0
    for _ in range(40):
        sim.step()
    assert not sim.agents.dead.any()
    np.testing.assert_allclose(sim.agents.position[0], [9.0, 5.0], atol=0.05)
    sim.agents.position[0] = 9.5, 5.0
    sim.step()
    assert sim.agents.dead.tolist() == [1, 0]


@pytest.mark.parametrize(("count", "radius", "dim"), [(150, 0.2, 2), (265, 0.25, 2), (200, 0.3, 3), (420, 0.35, 3)])
def test_bodies_do_not_overlap_over_the_seam_when_they_are_placed(count: int, radius: float, dim: int) -> None:
    ball = tropel.Obstacle(position=[0.0] * dim, radius=1.0)
    world = tropel.World.box([0.0] * dim, [9.0] * 2 + [5.0] * (dim - 2), periodic=True, obstacles={"ball": ball})
    # The most are too many for random places, which only one group can do.
    names = "a" if count > 250 else "ab"
    each = count // len(names)
    groups = [tropel.Group(name, count=each, radius=radius, sense_radius=1.0, goal="none") for name in names]
    state = tropel.Simulation(world, groups, local=Straight()).agents
    away = apart(state.position[:, None], state.position[None], world) + 10.0 * np.eye(len(state))
    assert len(state) == count
    assert away.min() >= 2.0 * radius
    assert apart(state.position, np.zeros(dim), world).min() >= 1.0 + radius
    # Bodies do lie across the seam.
    assert (state.position < radius).any()


@pytest.mark.parametrize("dim", [2, 3])
def test_in_open_space_a_flock_flies_off(dim: int) -> None:
    world = tropel.World.box([0.0] * dim, [10.0] * dim, open=True)
    group = tropel.Group("boids", count=40, radius=0.1, desired_speed=10.0, sense_radius=1.0, goal="none")
    sim = tropel.Simulation(world, group, local=Straight(), dt=0.1)
    sim.agents.velocity[:] = 10.0
    start = sim.agents.position.copy()
    for _ in range(50):
        sim.step()
    np.testing.assert_allclose(sim.agents.position, start + 50.0)


def test_one_axis_may_be_periodic_and_the_others_walled() -> None:
    world = tropel.World.box((0, 0, 0), (6, 6, 6), periodic="y")
    group = tropel.Group("boids", positions=[(3, 3, 3)], radius=0.5, sense_radius=1.0, goal="none")
    sim = tropel.Simulation(world, group, local=Straight(), dt=0.1)
    sim.agents.velocity[:] = 2.0
    for _ in range(30):
        sim.agents.velocity[:] = 2.0
        sim.step()
    np.testing.assert_allclose(sim.agents.position[0], [5.5, 3.0, 5.5])


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        ({"local": tropel.Seek()}, "local: Seek does not support periodic space"),
        ({"local": CollisionFreeSpeed(solid_bodies=True)}, "solid_bodies=False"),
        ({"local": tropel.Lattice(), "planning": tropel.PathPlans()}, "does not support periodic space"),
        ({"local": Straight(), "planning": tropel.FlowField()}, "planning: FlowField does not support periodic space"),
        (
            {"local": Straight(), "planning": tropel.Blend([(1.0, tropel.Direct()), (1.0, tropel.Harmonic())])},
            "planning: Blend does not support",
        ),
    ],
)
def test_layers_that_do_not_know_periodic_space_are_named(layers: dict[str, Any], message: str) -> None:
    world = tropel.World.box((0, 0), (20, 20), periodic=True, targets={"t": (3, 3)})
    with pytest.raises(ParameterError, match=message):
        tropel.Simulation(world, tropel.Group("people", count=3, goal="t"), **layers)


def test_a_step_of_a_quarter_of_the_period_is_an_error_that_says_so() -> None:
    world = tropel.World.box((0, 0), (8, 20), periodic=True)
    sim = tropel.Simulation(
        world, tropel.Group("boids", count=3, radius=0.2, sense_radius=1.0, goal="none"), local=Straight(), dt=1.0
    )
    sim.agents.velocity[1] = 0.0, 1.9
    with pytest.raises(ModelError, match=r"agent 1 of 0\.2 m radius makes a step of 1\.9 m.*less than a quarter"):
        sim.step()


def test_layers_keep_their_promises_in_periodic_space() -> None:
    world = world_of(2)
    group = tropel.Group("walkers", count=60, radius=0.1, sense_radius=2.0, goal="t")
    check_steering(CollisionFreeSpeed(), world=world, agents=group)
    check_steering(tropel.SocialForce(), world=world, agents=group)
    check_steering(tropel.ORCA(), world=world, agents=group, ids_matter=True)
    check_planner(tropel.Direct(), world=world, agents=group)
    with pytest.raises(ParameterError, match="not periodic"):
        check_neighbours(tropel.Grid(), world=world, agents=group)


def test_a_raster_of_a_periodic_world_is_refused() -> None:
    with pytest.raises(GeometryError, match="joined; plan with Direct"):
        rasterise(world_of(2))


def test_flow_over_the_seam_is_that_of_the_way_people_went() -> None:
    scene = Scene(dim=2, bounds=[[0.0, 0.0], [10.0, 4.0]], sides=["joined", "wall"], dt=0.1)
    maps = CrowdMapsBuilder(scene, cell=1.0)
    for step in range(21):
        here = np.array([[(9.25 + 0.5 * step) % 10.0, 0.5]])
        data = FrameData(
            id=np.zeros(1, dtype=np.int64),
            position=here,
            heading=np.eye(2)[:1],
            radius=np.ones(1),
            group=np.zeros(1, dtype=np.int32),
            speed=None,
        )
        maps.add(0.1 * step, data)
    flow = maps.result().flow
    # Once around in two seconds, so that in every cell of the lowest row half a person passes a metre in a second.
    np.testing.assert_allclose(flow[0, :, 0], 0.5)
    assert np.abs(flow[:, :, 1]).max() < 1e-12
