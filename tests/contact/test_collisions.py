"""Collisions: everybody who overlaps at any time during a step is found, and the moments and depths are right."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import (
    CollisionFreeSpeed,
    Dynamical,
    Flocking,
    Group,
    Lattice,
    Obstacle,
    Seek,
    SequentialFlock,
    Simulation,
    Source,
    World,
    read_trajectory,
)
from tropel._kernels.arrays import Csr
from tropel.agents.state import AgentState, Steered
from tropel.contact.collision_search import TOLERANCE
from tropel.contact.collisions import CollisionWatch
from tropel.contracts import Environment, Model, ModelDeclaration, Moment, Near
from tropel.environment.grid import Grid
from tropel.errors import CheckpointError, ParameterError
from two_threads import needs_two_threads

Floats = NDArray[np.float64]
DT = 0.1


class Straight(Model):
    """A careless model: everybody goes on with the velocity it is given by id, through whoever is there."""

    def __init__(self, velocity: Any) -> None:
        self.velocity = np.asarray(velocity, dtype=np.float64)
        self.parameters = {"velocity": self.velocity.tolist()}

    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = self.velocity[moment.state.id[moment.members]]


def empty(size: float = 20.0, dim: int = 2, **more: Any) -> World:
    if dim == 2:
        return World(shapely.box(0, 0, size, size), **more)
    return World.box((0, 0, 0), (size, size, size), **more)


def straight(positions: Any, velocity: Any, *, world: World | None = None, **more: Any) -> Simulation:
    group = Group("a", positions=positions, goal="none", **more.pop("of_group", {}))
    return Simulation(world or empty(), group, local=Straight(velocity), dt=DT, **more)


# Against brute force ------------------------------------------------------------------------------------------------


class Expected:
    """One pair, by dense sampling and by NumPy's own roots of the quadratic."""

    def __init__(self, offset: Floats, change: Floats, contact: float) -> None:
        times = np.linspace(0.0, 1.0, 4001)
        sampled = np.linalg.norm(offset + times[:, None] * change, axis=1)
        #: Between two samples the distance falls by at most half of the way between them.
        self.error = 0.5 * float(np.linalg.norm(change)) / 4000 + 1e-12
        self.depth = contact - float(sampled.min())
        self.collides = self.depth > TOLERANCE
        self.unclear = abs(self.depth - TOLERANCE) <= self.error
        self.begun = contact - sampled[0] <= TOLERANCE
        if sampled[0] <= contact:
            self.first = 0.0
        else:
            roots = np.roots([change @ change, 2.0 * offset @ change, offset @ offset - contact**2])
            self.first = float(roots.real.min()) if len(roots) else np.inf


def brute_force(
    before: Floats, after: Floats, radius: Floats, centre: Floats, drift: Floats, size: Floats
) -> dict[tuple[int, int], Expected]:
    move = after - before
    agents = itertools.combinations(range(len(before)), 2)
    pairs = {(i, j): Expected(before[j] - before[i], move[j] - move[i], radius[i] + radius[j]) for i, j in agents}
    for i, m in itertools.product(range(len(before)), range(len(centre))):
        pairs[i, -1 - m] = Expected(centre[m] - before[i], drift[m] - move[i], radius[i] + size[m])
    return pairs


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(0, 14),
    obstacles=st.integers(0, 3),
    dim=st.sampled_from([2, 3]),
    pace=st.sampled_from([0.0, 0.05, 1.0, 30.0]),
    cell=st.sampled_from([0.3, 2.0, 50.0]),
    outliers=st.booleans(),
)
@example(seed=1, count=14, obstacles=3, dim=2, pace=1.0, cell=0.3, outliers=True)
@example(seed=2, count=14, obstacles=3, dim=3, pace=1.0, cell=0.3, outliers=True)
@settings(max_examples=60)
def test_every_collision_of_a_step_is_found_with_its_moments_and_depth(
    seed: int, count: int, obstacles: int, dim: int, pace: float, cell: float, outliers: bool
) -> None:
    random = np.random.default_rng(seed)
    centre, far = random.uniform(0, 6, (obstacles, dim)), random.normal(0, pace, (obstacles, dim))
    size = random.uniform(0.05, 1.5, obstacles)
    world = empty(
        6.0,
        dim,
        obstacles={
            f"o{m}": Obstacle(radius=size[m], motion=lambda t, m=m: tuple(centre[m] + t / DT * far[m]))
            for m in range(obstacles)
        },
    )
    world.advance(0.0, DT)
    state = AgentState(dim)
    radius = random.uniform(0.0, 0.8, count)
    before = random.uniform(-1, 7, (count, dim))
    after = before + random.normal(0, pace, (count, dim))
    if outliers:
        radius[:2] = random.uniform(2, 6, len(radius[:2]))
        after[2:4] += random.normal(0, 200, after[2:4].shape)
    state.add(count, {"position": before, "radius": radius, "sense_radius": 1.0})
    cells = Moment.of(state, world, environment=Grid(cell=cell)).near.cells.cell_list
    state.columns["position"] = after
    watch = CollisionWatch()
    watch.look(state, cells, world, step=7, dt=DT)

    log = watch.log
    expected = brute_force(before, after, radius, centre, far, size)
    names = [-1 - int(name[1:]) for name in log.obstacles]
    other = [int(b) if b >= 0 else names[-1 - b] for b in log.id_b]
    found = {(int(a), b): row for row, (a, b) in enumerate(zip(log.id_a, other, strict=True))}
    assert len(found) == len(log)
    sure = {pair for pair, e in expected.items() if e.collides and not e.unclear}
    possible = sure | {pair for pair, e in expected.items() if e.unclear}
    assert sure <= set(found) <= possible
    for pair, row in found.items():
        pair_expected = expected[pair]
        assert log.depth[row] == pytest.approx(pair_expected.depth, abs=pair_expected.error)
        assert log.begun[row] == pair_expected.begun
        if pair in sure:
            assert log.begin[row] == pytest.approx((7 + pair_expected.first) * DT, abs=1e-6)
        assert 7 * DT - 1e-12 <= log.begin[row] <= log.deepest_at[row] <= 8 * DT + 1e-12
    involved = {a for a, _ in found} | {b for _, b in found if b >= 0}
    assert set(np.flatnonzero(state.collided).tolist()) == involved


def test_more_collisions_than_there_was_room_for_are_all_found() -> None:
    count = 400
    state = AgentState(2)
    state.add(count, {"position": np.random.default_rng(0).uniform(9, 11, (count, 2)), "radius": 2.0})
    cells = Moment.of(state, empty(), environment=Grid()).near.cells.cell_list
    watch = CollisionWatch()
    watch.look(state, cells, empty(), step=0, dt=DT)
    assert len(watch.log) == count * (count - 1) // 2
    keys = list(zip(watch.log.id_a.tolist(), watch.log.id_b.tolist(), strict=True))
    assert keys == sorted(keys)


# What is a collision ------------------------------------------------------------------------------------------------


def test_two_who_pass_through_each_other_within_one_step_are_found() -> None:
    sim = straight([(5, 5), (15, 5)], [(100, 0), (-100, 0)], of_group={"radius": 0.25})
    sim.step()
    log = sim.collisions
    assert sim.agents.position[0, 0] > sim.agents.position[1, 0], "they have changed sides"
    assert (log.id_a.tolist(), log.id_b.tolist(), log.begun.tolist()) == ([0], [1], [True])
    assert log.begin[0] == pytest.approx(9.5 / 200)
    assert log.deepest_at[0] == pytest.approx(10.0 / 200)
    assert log.depth[0] == pytest.approx(0.5)
    assert sim.agents.collided.tolist() == [1, 1]


def test_an_overlap_over_many_steps_is_one_collision_with_its_deepest_moment() -> None:
    sim = straight([(5, 5), (7, 5.1), (12, 12)], [(1.1, 0), (0, 0), (0, 0)], of_group={"radius": 0.3})
    seen = []
    for _ in range(40):
        sim.step()
        seen.append(sim.agents.collided.tolist())
    log = sim.collisions
    reach = np.sqrt(0.6**2 - 0.1**2)
    assert len(log) == 1
    assert log.begin[0] == pytest.approx((2.0 - reach) / 1.1)
    assert log.deepest_at[0] == pytest.approx(2.0 / 1.1)
    assert log.depth[0] == pytest.approx(0.5)
    first, last = int((2.0 - reach) / 1.1 / DT), int((2.0 + reach) / 1.1 / DT)
    assert [k for k, collided in enumerate(seen) if collided == [1, 1, 0]] == list(range(first, last + 1))
    assert all(collided in ([1, 1, 0], [0, 0, 0]) for collided in seen)


def test_two_who_part_and_meet_again_collide_twice_but_are_one_pair() -> None:
    sim = straight([(5, 5), (6, 5)], [(1, 0), (0, 0)], of_group={"radius": 0.3})
    model = sim.all_layers()[-1]
    sim.run(until=2.5)
    model.velocity = -model.velocity
    report = sim.run(until=5.0).collisions
    assert report is not None
    assert (report.begun, report.pairs) == (2, 1)


def test_two_who_jump_from_far_apart_are_found_among_many_who_do_not() -> None:
    random = np.random.default_rng(4)
    positions = [(2.0, 10.0), (18.0, 10.0), *random.uniform((1, 1), (19, 7), (80, 2)).tolist()]
    velocity = np.zeros((82, 2))
    velocity[:2] = (85, 0), (-85, 0)
    sim = straight(positions, velocity, environment=Grid(cell=0.5), of_group={"radius": 0.25})
    sim.step()
    log = sim.collisions
    jumpers = log.id_a == 0
    assert log.id_b[jumpers].tolist() == [1]
    assert log.begin[jumpers] == pytest.approx([15.5 / 170])
    assert not log.begun[~jumpers].any()


def test_who_is_put_elsewhere_during_an_overlap_and_comes_back_collides_anew() -> None:
    sim = straight([(5, 5), (5.6, 5)], [(2, 0), (0, 0)], of_group={"radius": 0.25})
    sim.step()
    assert sim.collisions.depth == pytest.approx([0.1])
    sim.agents.position[0] = 5.6, 4.4
    sim.all_layers()[-1].velocity[0] = 0, 3
    sim.step()
    log = sim.collisions
    assert log.begun.tolist() == [True, True]
    assert log.begin == pytest.approx([0.05, DT + 0.1 / 3])
    assert log.depth == pytest.approx([0.1, 0.2])


def test_bodies_that_touch_or_slide_along_each_other_do_not_collide() -> None:
    sim = straight([(5, 5), (5, 5.4), (5, 4.6)], [(1, 0), (-1, 0), (0, 0)], of_group={"radius": 0.2})
    for _ in range(5):
        sim.step()
    assert len(sim.collisions) == 0
    assert not sim.agents.collided.any()


def test_bodies_put_into_each_other_are_a_pair_that_overlapped_but_no_collision_begun() -> None:
    sim = straight([(5, 5), (5.3, 5), (9, 9)], np.zeros((3, 2)), of_group={"radius": 0.2})
    report = sim.run(until=1.0).collisions
    assert report is not None
    assert (report.begun, report.pairs) == (0, 1)
    assert report.deepest_overlap == pytest.approx(0.1)
    assert sim.collisions.begin.tolist() == [0.0]


def test_who_leaves_during_an_overlap_and_who_comes_later_are_different_agents() -> None:
    sim = straight([(5, 5), (5.3, 5)], np.zeros((9, 2)), of_group={"radius": 0.2})
    sim.step()
    sim.remove_agents(ids=[1])
    sim.step()
    assert sim.agents.collided.tolist() == [0]
    sim.add_agents("a", positions=[(4.8, 5)], radius=0.2, goal="none")
    sim.step()
    log = sim.collisions
    assert list(zip(log.id_a.tolist(), log.id_b.tolist(), strict=True)) == [(0, 1), (0, 2)]
    assert sim.agents.collided.tolist() == [1, 1]


def test_obstacles_are_named_and_keep_their_names_when_others_are_removed() -> None:
    world = empty(
        obstacles={"first": Obstacle(radius=0.5, position=(2, 2)), "second": Obstacle(radius=0.5, position=(8, 8))}
    )
    # Where obstacles are put on people, they cannot keep out.
    sim = straight([(15, 15), (2, 15)], np.zeros((2, 2)), world=world, of_group={"radius": 0.2})
    sim.step()
    assert len(sim.collisions) == 0
    world.obstacles.move("second", (15.3, 15))
    sim.step()
    world.obstacles.remove("first")
    world.obstacles.add("first", Obstacle(radius=0.5, position=(2.1, 15)))
    sim.step()
    log = sim.collisions
    assert [log.obstacles[-1 - b] for b in log.id_b] == ["second", "first"]
    assert log.id_a.tolist() == [0, 1]
    report = sim.run(until=0.5).collisions
    assert report is not None
    assert report.with_obstacles == report.pairs == 2
    assert {collision.whom for collision in report.deepest} == {"first", "second"}


def test_a_model_may_react_to_collisions_in_the_next_step() -> None:
    class Recoiling(Model):
        def steer(self, moment: Moment, out: Steered) -> None:
            members = moment.members
            ahead = np.where(moment.state.id[members] == 0, 1.0, 0.0)
            out.velocity[members, 0] = np.where(moment.state.collided[members] == 1, -3.0, ahead)

    sim = Simulation(
        empty(), Group("a", positions=[(5, 5), (5.55, 5)], radius=0.25, goal="none"), local=Recoiling(), dt=DT
    )
    speeds = []
    for _ in range(3):
        sim.step()
        speeds.append(sim.agents.velocity[:, 0].tolist())
    np.testing.assert_allclose(speeds, [(1, 0), (-3, -3), (-3, -3)])
    assert sim.collisions.depth == pytest.approx([0.05])


# Runs ---------------------------------------------------------------------------------------------------------------


def door_scene(local: Any, **more: Any) -> Simulation:
    """A crowd leaves through a door of 1.2 m."""
    room = shapely.box(0, 0, 8, 8) | shapely.box(8, 3.4, 9, 4.6) | shapely.box(9, 0, 12, 8)
    crowd = Group("crowd", count=60, region=shapely.box(1, 1, 7, 7), radius=0.2)
    return Simulation(World(room, exits={"out": shapely.box(11, 0, 12, 8)}), crowd, local=local, dt=DT, **more)


class Careless(Model):
    """Goes where the planner says at full speed, whoever is in the way."""

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        out.velocity[members] = moment.directions[members] * moment.state.desired_speed[members, None]


def printed(summary: Any) -> str:
    from rich.console import Console

    console = Console(width=120)
    with console.capture() as caught:
        console.print(summary.table())
    return caught.get()


def test_solid_bodies_at_a_door_do_not_collide_and_careless_ones_do() -> None:
    solid = door_scene(Seek()).run(until=15.0)
    careless = door_scene(Careless()).run(until=15.0)
    assert solid.collisions is not None
    assert careless.collisions is not None
    assert solid.collisions.begun == solid.collisions.pairs == 0
    assert careless.collisions.begun >= careless.collisions.pairs > 60
    assert careless.collisions.deepest_overlap > 0.1


class Passing(Careless):
    """The same, for those whose overlaps mean nothing."""

    declares = ModelDeclaration(bodies_may_overlap=True)


@pytest.mark.parametrize(("first", "second", "watched"), [(Passing, Passing, False), (Passing, Careless, True)])
def test_where_all_bodies_may_overlap_collisions_are_watched_only_if_asked(
    first: type, second: type, watched: bool
) -> None:
    def scene(**more: Any) -> Simulation:
        groups = [Group("a", count=2), Group("b", count=2)]
        return Simulation(empty(), groups, local={"a": first(), "b": second()}, **more)

    assert (scene().run(until=0.1).collisions is not None) == watched
    assert scene(watch_collisions=True).run(until=0.1).collisions is not None
    assert scene(watch_collisions=False).run(until=0.1).collisions is None


def test_flocks_may_overlap_and_walkers_may_not() -> None:
    assert Flocking.declares.bodies_may_overlap
    assert SequentialFlock.declares.bodies_may_overlap
    assert not any(model().declares.bodies_may_overlap for model in (Seek, Dynamical, CollisionFreeSpeed, Lattice))


def test_the_summary_shows_collisions(tmp_path: Path) -> None:
    sim = straight([(5, 5), (7, 5)], [(1, 0), (0, 0)], of_group={"radius": 0.25})
    summary = sim.run(until=3.0, record=tmp_path / "run.sqlite")
    text = printed(summary)
    assert "collisions" in text
    assert "pairs that overlapped" in text
    assert "0.5 m (0 and 1 at 2.00 s)" in text
    plain = json.loads(json.dumps(summary.as_dict()))["collisions"]
    assert (plain["begun"], plain["pairs"], plain["with_obstacles"]) == (1, 1, 0)
    assert plain["deepest"][0]["who"] == 0
    assert plain["deepest"][0]["whom"] == 1
    assert plain["deepest"][0]["begin"] == pytest.approx(1.5)
    with read_trajectory(tmp_path / "run.sqlite") as recorded:
        assert recorded.summary is not None
        assert recorded.summary["collisions"] == plain


def test_the_summary_says_when_there_were_none_and_nothing_when_nobody_watched() -> None:
    def row(watched: bool) -> list[str]:
        sim = straight([(5, 5)], [(1, 0)], watch_collisions=watched)
        lines = printed(sim.run(until=1.0)).splitlines()
        return [line for line in lines if " collisions" in line and "%" not in line]

    assert len(row(True)) == 1
    assert "none" in row(True)[0]
    assert row(False) == []


def test_collisions_that_are_not_watched_cannot_be_asked_for() -> None:
    sim = straight([(5, 5), (5.1, 5)], np.zeros((2, 2)), watch_collisions=False)
    summary = sim.run(until=1.0)
    assert summary.collisions is None
    assert not sim.agents.collided.any()
    with pytest.raises(ParameterError, match="watch_collisions=True"):
        _ = sim.collisions


def test_a_report_names_only_the_deepest_few() -> None:
    report = door_scene(Careless()).run(until=15.0).collisions
    assert report is not None
    depths = [collision.depth for collision in report.deepest]
    assert len(depths) == 10
    assert depths == sorted(depths, reverse=True)
    assert depths[0] == report.deepest_overlap


@pytest.mark.parametrize("dim", [2, 3])
def test_collisions_are_watched_whatever_the_environment_senses(dim: int) -> None:
    class Nobody(Near):
        def lists(self, radius: Floats) -> Csr:
            return Csr(np.zeros(len(radius) + 1, dtype=np.int64), np.empty(0, dtype=np.int32))

    class Blind(Environment):
        def sense(self, moment: Moment) -> Near:
            return Nobody(moment)

    def logged(environment: Any) -> dict[str, list[Any]]:
        random = np.random.default_rng(3)
        positions, velocity = random.uniform(1, 9, (60, dim)), random.normal(0, 3, (60, dim))
        sim = straight(positions, velocity, world=empty(10, dim), environment=environment)
        sim.run(until=1.0)
        return {name: column.tolist() for name, column in vars(sim.collisions).items() if name != "obstacles"}

    assert len(logged(Grid())["id_a"]) > 5
    assert logged(Blind()) == logged(Grid())


# Determinism --------------------------------------------------------------------------------------------------------


def mixed_crowd(*, threads: int = 1, count: int = 300, side: float = 20.0) -> Simulation:
    """People through each other, one obstacle on its way, and more people coming."""
    world = empty(side, obstacles={"cart": Obstacle(radius=0.6, motion=lambda t: (5.0 + 2.0 * t, 5.0))})
    random = np.random.default_rng(11)
    velocity = random.normal(0, 2, (10 * count, 2))
    positions = random.uniform(0.5, side - 0.5, (count, 2))
    positions = positions[((positions - 5.0) ** 2).sum(axis=1) > 0.6**2]
    # Nobody walks into an obstacle; but somebody may stand so near that the bodies overlap.
    group = Group("a", positions=[(5.65, 5.0), *positions.tolist()], goal="none")
    source = Source("a", rate=10.0, region=shapely.box(1, 1, 9, 9), goal="none")
    return Simulation(world, [group, source], local=Straight(velocity), dt=DT, threads=threads)


@needs_two_threads
def test_one_thread_and_two_log_the_same() -> None:
    alone, together = (mixed_crowd(threads=threads, count=2_500, side=60.0) for threads in (1, 2))
    for sim in (alone, together):
        sim.run(until=0.6)
    assert len(alone.collisions) > 1_000
    for name, column in vars(alone.collisions).items():
        np.testing.assert_array_equal(column, getattr(together.collisions, name), err_msg=name)
    assert alone.state_hash() == together.state_hash()


def test_a_resumed_run_reports_the_same(tmp_path: Path) -> None:
    whole = mixed_crowd()
    whole.run(until=1.3)
    whole.save(tmp_path / "checkpoint")
    resumed = mixed_crowd()
    resumed.restore(tmp_path / "checkpoint")
    assert resumed.agents.collided.any()
    assert resumed.state_hash() == whole.state_hash()
    reports = [sim.run(until=3.0).collisions for sim in (whole, resumed)]
    assert reports[0] == reports[1]
    for name, column in vars(whole.collisions).items():
        np.testing.assert_array_equal(column, getattr(resumed.collisions, name), err_msg=name)
    assert whole.collisions.obstacles == ("cart",)
    assert resumed.state_hash() == whole.state_hash()


def test_a_checkpoint_of_a_run_that_did_not_watch_belongs_to_another_setup(tmp_path: Path) -> None:
    straight([(5, 5)], [(1, 0)], watch_collisions=False).save(tmp_path / "checkpoint")
    with pytest.raises(CheckpointError, match="belongs to another simulation"):
        straight([(5, 5)], [(1, 0)]).restore(tmp_path / "checkpoint")
