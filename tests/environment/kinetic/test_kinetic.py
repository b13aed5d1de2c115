"""The kinetic environment: near sets as by brute force in every step, walls or not, and motion as on the grid."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from rich.console import Console

import tropel
from tropel._kernels.arrays import Csr
from tropel.contracts.offers import OfferedTriangulation, offered
from tropel.environment.grid import Grid
from tropel.environment.kinetic.checks import first_fault
from tropel.environment.kinetic.model import Kinetic
from tropel.environment.kinetic.plane import InPlane
from tropel.errors import ParameterError
from tropel.run.loop import Summary
from tropel.testing import check_neighbours

HALL = shapely.box(0.0, 0.0, 20.0, 14.0)
STEPS = 200


def sets_of(lists: Csr) -> list[set[int]]:
    return [set(lists.indices[a:b].tolist()) for a, b in zip(lists.indptr[:-1], lists.indptr[1:], strict=True)]


def near_by_brute_force(sim: tropel.Simulation) -> NDArray[np.bool_]:
    place, radius = sim.agents.position, sim.agents.sense_radius
    dx, dy = (place[:, None, axis] - place[None, :, axis] for axis in range(2))
    near = dx * dx + dy * dy <= (radius * radius)[:, None]
    np.fill_diagonal(near, False)
    return near


def crosses(p: NDArray[np.float64], q: NDArray[np.float64], wall: NDArray[np.float64]) -> bool:
    return bool(shapely.LineString([p, q]).intersects(shapely.LineString(wall.reshape(2, 2))))


def cut_off(p: NDArray[np.float64], q: NDArray[np.float64], r: float, walls: NDArray[np.float64]) -> bool:
    """Whether a wall with both ends outside of the disk around p is between p and q, both inside."""
    for wall in walls:
        ends = wall.reshape(2, 2)
        if (((ends - p) ** 2).sum(axis=1) > r * r).all() and crosses(p, q, wall):
            return True
    return False


def plane(kinetic: Kinetic) -> InPlane:
    assert isinstance(kinetic.crowd, InPlane)
    return kinetic.crowd


def crowd(environment: tropel.Environment, seed: int, *, world: tropel.World | None = None) -> tropel.Simulation:
    """People of all radii cross a hall, arrive and leave all the time."""
    hall = world or tropel.World(HALL, exits={"east": shapely.box(19.0, 5.0, 20.0, 9.0)})
    return tropel.Simulation(
        hall,
        [
            tropel.Group(
                "people",
                count=90,
                region=shapely.box(0.0, 0.0, 18.0, 14.0),
                goal="east",
                sense_radius=tropel.Uniform(0.3, 4.0),
            ),
            tropel.Source(group="people", region=shapely.box(0.0, 0.0, 4.0, 4.0), rate=3.0, goal="east"),
        ],
        environment=environment,
        seed=seed,
        threads=1,
    )


@pytest.mark.parametrize("seed", range(3))
def test_near_sets_are_those_of_brute_force_in_every_step(seed: int) -> None:
    kinetic = Kinetic()
    sim = crowd(kinetic, seed)
    for step in range(STEPS):
        found = sets_of(sim.sense().csr())
        wanted = [set(np.flatnonzero(row).tolist()) for row in near_by_brute_force(sim)]
        assert found == wanted, step
        assert first_fault(plane(kinetic).moving.mesh) is None, step
        sim.step()
    assert kinetic.total.rebuilds <= 4


@pytest.mark.parametrize("seed", range(2))
def test_a_scene_moves_to_the_same_bits_as_on_the_grid(seed: int) -> None:
    grid, kinetic = crowd(Grid(), seed), crowd(Kinetic(), seed)
    for _ in range(100):
        grid.step()
        kinetic.step()
    assert np.array_equal(grid.agents.id, kinetic.agents.id)
    assert np.array_equal(grid.agents.position, kinetic.agents.position)


def rooms() -> tropel.World:
    """Rooms with thin walls inside, free-standing walls, and a door."""
    return tropel.World(
        HALL,
        walls=[
            [(8.0, 0.0), (8.0, 6.0)],
            [(8.0, 8.0), (8.0, 14.0)],
            [(12.0, 3.0), (15.0, 6.0)],
            [(3.0, 9.0), (6.0, 9.0)],
        ],
        doors={"door": [(8.0, 6.0), (8.0, 8.0)]},
        exits={"east": shapely.box(19.0, 5.0, 20.0, 9.0), "west": shapely.box(0.0, 5.0, 1.0, 9.0)},
    )


def two_streams(environment: tropel.Environment, model: tropel.Model, seed: int) -> tropel.Simulation:
    streams = [
        tropel.Group("in", count=40, region=shapely.box(9.0, 0.0, 19.0, 14.0), goal="west", sense_radius=3.0),
        tropel.Group("out", count=40, region=shapely.box(0.0, 0.0, 7.0, 14.0), goal="east", sense_radius=3.0),
    ]
    return tropel.Simulation(rooms(), streams, local=model, environment=environment, seed=seed)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("model", [tropel.CollisionFreeSpeed, tropel.Walk])
def test_models_that_test_sight_themselves_move_to_the_same_bits_if_hidden_people_are_left_out(
    model: type[tropel.Model], seed: int
) -> None:
    grid, visible = (two_streams(env, model(), seed) for env in (Grid(), Kinetic(visibility="visible")))
    near = visible.sense()
    assert near.hidden_left_out
    assert len(near.csr().indices) < len(grid.sense().csr().indices)
    for step in range(100):
        for sim in (grid, visible):
            sim.world.set_door("door", open=step % 20 < 10)
            sim.step()
        assert np.array_equal(grid.agents.position, visible.agents.position), step


def test_people_keep_right_before_those_in_sight_only_whoever_tests_that() -> None:
    sim = two_streams(Kinetic(visibility="visible"), tropel.Walk(), 0)
    habit, turned = tropel.KeepRight(), 0
    sim.world.set_door("door", open=True)
    for _ in range(150):
        sim.step()
        moment = sim.moment()
        found = []
        for environment in (Grid(), sim.environment):
            found.append(moment.directions.copy())
            habit.adjust(replace(moment, sensed=environment.sense(moment)), found[-1])
        assert np.array_equal(*found)
        turned += np.count_nonzero(found[0] != moment.directions)
    assert turned > 100


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("visibility", ["approachable", "visible"])
def test_walls_hide_whom_they_should_in_every_step(visibility: str, seed: int) -> None:
    kinetic = Kinetic(visibility=visibility)
    sim = crowd(kinetic, seed, world=rooms())
    hidden = 0
    for step in range(60):
        sim.world.set_door("door", open=step % 20 < 10)
        found = sets_of(sim.sense().csr())
        place, radius = sim.agents.position, sim.agents.sense_radius
        pieces = plane(kinetic).pieces
        assert pieces is not None
        walls = pieces.segments[pieces.blocking(sim.world.blocking)]
        near = near_by_brute_force(sim)
        for i, row in enumerate(near):
            wanted = set()
            for j in np.flatnonzero(row).tolist():
                if visibility == "visible":
                    hides = any(crosses(place[i], place[j], wall) for wall in walls)
                else:
                    hides = cut_off(place[i], place[j], radius[i], walls)
                hidden += hides
                if not hides:
                    wanted.add(j)
            assert found[i] == wanted, (step, i)
        assert first_fault(plane(kinetic).moving.mesh) is None, step
        sim.step()
    assert hidden > 20


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_a_handful_of_people(count: int) -> None:
    """Few enough for the room that a mesh has before anybody is there."""
    hall = tropel.World(shapely.box(0.0, 0.0, 3.0, 3.0), exits={"out": shapely.box(2.0, 1.0, 3.0, 2.0)})
    people = [
        tropel.Group("people", count=count, region=shapely.box(0.0, 0.0, 1.5, 3.0)),
        tropel.Source("people", rate=4.0, region=shapely.box(0.0, 0.0, 1.5, 3.0)),
    ]
    for visibility in ("near", "visible"):
        sim = tropel.Simulation(hall, people, environment=Kinetic(visibility=visibility), seed=count)
        for _ in range(60):
            wanted = [set(np.flatnonzero(row).tolist()) for row in near_by_brute_force(sim)]
            assert sets_of(sim.sense().csr()) == wanted
            sim.step()


def test_centres_of_round_obstacles_are_vertices_but_nobody_s_neighbours() -> None:
    pillars = {
        "still": tropel.Obstacle(radius=0.5, position=(7.0, 7.0)),
        "moving": tropel.Obstacle(radius=0.5, motion=tropel.Orbit(center=(10.0, 7.0), radius=2.0, period=5.0)),
    }
    world = tropel.World(HALL, exits={"east": shapely.box(19.0, 5.0, 20.0, 9.0)}, obstacles=pillars)
    kinetic = Kinetic()
    sim = crowd(kinetic, 0, world=world)
    for step in range(60):
        found = sets_of(sim.sense().csr())
        wanted = [set(np.flatnonzero(row).tolist()) for row in near_by_brute_force(sim)]
        assert found == wanted, step
        moving = plane(kinetic).moving
        centres = moving.vertices_of(np.array([-1, -2]))
        assert np.array_equal(
            np.column_stack([moving.mesh.x[centres], moving.mesh.y[centres]]), world.obstacles.position
        )
        sim.step()


def test_displays_get_the_triangulation_and_a_near_set() -> None:
    kinetic = Kinetic(visibility="approachable")
    sim = crowd(kinetic, 0, world=rooms())
    sim.step()
    near = sets_of(sim.sense().csr())
    offer = offered([kinetic], OfferedTriangulation)[0]
    blocking = int(np.count_nonzero(plane(kinetic).moving.closed))
    assert len(offer.walls()) == blocking
    assert len(offer.edges()) > 2 * len(sim.agents)
    for row in range(0, len(sim.agents), 7):
        around = offer.around(int(sim.agents.id[row]))
        assert around is not None
        assert np.array_equal(around.here, sim.agents.position[row])
        known = {tuple(place) for place in around.known.tolist()}
        assert known == {tuple(sim.agents.position[j].tolist()) for j in near[row]}
        inner, outer = (np.linalg.norm(around.crossing[:, k] - around.here, axis=1) for k in range(2))
        assert (inner <= around.reach).all()
        assert (outer > around.reach).all()
    assert offer.around(10**9) is None


def test_periodic_space_is_refused() -> None:
    world = tropel.World.box((0.0, 0.0), (10.0, 10.0), periodic=True)
    with pytest.raises(ParameterError, match="periodic"):
        tropel.Simulation(world, tropel.Group("birds", count=5), environment=Kinetic())


@pytest.mark.parametrize("visibility", ["near", "approachable", "visible"])
def test_it_keeps_what_environments_promise(visibility: str) -> None:
    """Also when people come and go, clump together, stand on each other, on threads and after a resume."""
    if visibility == "near":
        check_neighbours(Kinetic)
        return
    # Without walls, nobody is hidden.
    open_space = tropel.World.box((0.0, 0.0), (20.0, 14.0), open=True)
    people = tropel.Group("people", count=60, sense_radius=tropel.Uniform(0.5, 3.0))
    check_neighbours(lambda: Kinetic(visibility=visibility), world=open_space, agents=people)


@pytest.mark.parametrize("seed", range(2))
def test_birds_in_a_box_have_the_neighbours_of_the_grid_in_every_step(seed: int) -> None:
    box = tropel.World.box((0.0,) * 3, (12.0,) * 3)
    birds = tropel.Group("birds", count=150, sense_radius=tropel.Uniform(0.5, 3.0))
    sim = tropel.Simulation(box, birds, local=tropel.Flocking(), seed=seed, threads=1)
    kinetic = Kinetic()
    for step in range(STEPS):
        wanted = sim.sense().csr()
        wanted = Csr(wanted.indptr.copy(), wanted.indices.copy())
        found = kinetic.sense(sim.moment()).csr()
        assert np.array_equal(wanted.indptr, found.indptr), step
        assert np.array_equal(wanted.indices, found.indices), step
        sim.step()
        if step % 40 == 20:  # some leave and others come
            sim.remove_agents(ids=range(step, step + 15))
            sim.add_agents("birds", count=12, sense_radius=2.0)
    assert kinetic.total.rebuilds <= 8


def birds_in_a_box(threads: int) -> tropel.Simulation:
    """Enough for threads to be used."""
    box = tropel.World.box((0.0,) * 3, (14.0,) * 3)
    birds = tropel.Group("birds", count=2200, sense_radius=tropel.Uniform(0.5, 2.0))
    return tropel.Simulation(box, birds, local=tropel.Flocking(), environment=Kinetic(), seed=3, threads=threads)


def test_birds_move_to_the_same_bits_on_threads_and_after_a_resume(tmp_path: Path) -> None:
    one, two, resumed = birds_in_a_box(1), birds_in_a_box(2), birds_in_a_box(2)
    for step in range(16):
        for sim in (one, two):
            sim.step()
        if step == 7:
            one.save(tmp_path / "birds")
            resumed.restore(tmp_path / "birds")
        elif step > 7:
            resumed.step()
        assert np.array_equal(one.agents.position, two.agents.position), step
    assert np.array_equal(one.agents.position, resumed.agents.position)


def test_the_summary_of_a_run_has_certificates_and_encounters() -> None:
    kinetic = Kinetic()
    sim = crowd(kinetic, 0)
    watch = sim.watch_encounters(distance=1.0)
    summary = sim.run(until=2.0)
    assert summary.environment == kinetic.tally()
    assert summary.environment["certificates looked at"] == kinetic.total.looked_at > 0
    table = watch.table()
    pairs = set(zip(table.id_a.tolist(), table.id_b.tolist(), strict=True))
    assert summary.encounters is not None
    assert (summary.encounters.count, summary.encounters.pairs) == (len(table), len(pairs))
    lines = render(summary)
    assert f"certificates looked at {kinetic.total.looked_at:,}" in lines
    assert f"encounters within 1 m {len(table):,}" in lines
    assert crowd(Grid(), 0).run(until=0.1).environment == {}


def render(summary: Summary) -> str:
    """What the terminal shows, with single spaces and without lines."""
    console = Console(width=120, file=io.StringIO())
    console.print(summary.table())
    assert isinstance(console.file, io.StringIO)
    return " ".join(console.file.getvalue().replace("│", " ").split())
