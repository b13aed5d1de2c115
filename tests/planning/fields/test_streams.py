"""Streams: people in a crowd go around a corner side by side; lines of sight skip open space without seeing less."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from scipy import ndimage

from tropel import FlowField, Group, Normal, Simulation, World
from tropel.planning.fields.field import GridField, room_around
from tropel.planning.fields.following import line_is_clear
from tropel.planning.fields.streams import relax, streams_of, unit_vectors
from two_threads import needs_two_threads

BLOCKED, REACHABLE, GOAL = 0, 2, 3


def rooms(seed: int, shape: tuple[int, int] = (14, 17)) -> NDArray[np.uint8]:
    """Cells at random: mostly free, some blocked, one of the goal."""
    draws = np.random.default_rng(seed)
    kind = np.where(draws.random(shape) < 0.15, BLOCKED, REACHABLE).astype(np.uint8)
    kind[7, 8] = GOAL
    return kind


def exact(kind: NDArray[np.uint8], reach: float) -> NDArray[np.float64]:
    """u by the equations in one matrix: 1 in the goal, and nothing flows into walls."""
    number = {cell: n for n, cell in enumerate(zip(*np.nonzero(kind == REACHABLE), strict=True))}
    matrix, right = np.zeros((len(number), len(number))), np.zeros(len(number))
    for (y, x), n in number.items():
        matrix[n, n] = 1.0 / reach**2
        for there in ((y, x - 1), (y, x + 1), (y - 1, x), (y + 1, x)):
            if there in number:
                matrix[n, n] += 1.0
                matrix[n, number[there]] -= 1.0
            elif 0 <= there[0] < kind.shape[0] and 0 <= there[1] < kind.shape[1] and kind[there] == GOAL:
                matrix[n, n] += 1.0
                right[n] += 1.0
    out = np.where(kind == GOAL, 1.0, 0.0)
    for cell, value in zip(number, np.linalg.solve(matrix, right), strict=True):
        out[cell] = value
    return out


@pytest.mark.parametrize("seed", range(5))
def test_sweeps_lead_to_the_solution_of_the_equations(seed: int) -> None:
    kind = rooms(seed)
    found = np.where(kind == GOAL, 1.0, 0.0)
    relax(kind, 1.0 / 6.0**2, 3000, found)
    np.testing.assert_allclose(found, exact(kind, 6.0), atol=1e-12)


def test_streams_come_close_to_the_solution_behind_thin_walls_too() -> None:
    # Walls of one cell, across blocks of 4 x 4 cells, with a gap at one end and then at the other.
    kind = np.full((40, 43), REACHABLE, dtype=np.uint8)
    for x, gap in ((9, slice(0, 5)), (18, slice(35, 40)), (30, slice(0, 5))):
        kind[:, x] = BLOCKED
        kind[gap, x] = REACHABLE
    kind[18:22, 40:] = GOAL
    u, streams = exact(kind, 100.0), unit_vectors(streams_of(kind, 100.0))
    gy, gx = np.gradient(u)
    inside = ndimage.binary_erosion(kind == REACHABLE, np.ones((3, 3)))
    uphill = np.stack([gx, gy], axis=-1)[inside]
    along = (streams[inside] * uphill).sum(axis=-1) / np.hypot(*uphill.T)
    assert np.quantile(along, 0.05) > math.cos(math.radians(5.0))
    np.testing.assert_allclose(np.hypot(*streams[kind == REACHABLE].T), 1.0, atol=1e-6)
    assert not streams[kind != REACHABLE].any()


@pytest.mark.parametrize("kind", [np.zeros((5, 5)), np.full((3, 3), GOAL), np.full((1, 1), REACHABLE)])
def test_without_anywhere_to_go_there_are_no_streams(kind: NDArray[np.float64]) -> None:
    assert not streams_of(kind.astype(np.uint8), 50.0).any()


def corner(count: int = 0, *, streams: bool = True, seed: int = 0, threads: int = 1) -> Simulation:
    """A corridor of 4 m with a corner to the right."""
    area = shapely.union_all([shapely.box(0, 0, 20, 4), shapely.box(16, -16, 20, 4)])
    world = World(area, exits={"out": shapely.box(16, -16, 20, -15)})
    people = Group("p", count=count, region=shapely.box(0, 0, 14, 4), desired_speed=Normal(1.34, 0.26, low=0.5))
    return Simulation(world, people, planning=FlowField(streams=streams), seed=seed, threads=threads)


def field_of(sim: Simulation) -> GridField:
    (planner,) = {id(planner): planner for planner in sim.planners.values()}.values()
    assert isinstance(planner, FlowField)
    return planner.field("nearest exit")


def test_streams_follow_the_corridor() -> None:
    field = field_of(corner(1))
    streams = unit_vectors(streams_of(field.arrays.kind[0], 100.0))
    for place, way in (((6.0, 3.0), (1.0, 0.0)), ((18.0, -8.0), (0.0, -1.0))):
        y, x = field.raster.index_of(np.array(place))
        assert streams[y, x] @ way > 0.99
    # On the outside of the corner people walk across, not towards the corner.
    y, x = field.raster.index_of(np.array((18.0, 2.0)))
    assert streams[y, x, 0] > 0.4


def test_somebody_alone_takes_the_shortest_path() -> None:
    paths = []
    for streams in (False, True):
        sim = corner(1, streams=streams)
        paths.append([])
        while len(sim.agents):
            sim.step()
            paths[-1].append(sim.agents.position.tolist())
    assert paths[0] == paths[1]


def test_a_crowd_gets_around_a_corner_sooner_than_if_everybody_aims_at_it() -> None:
    for seed in range(3):
        times = []
        for streams in (True, False):
            sim = corner(160, streams=streams, seed=seed)
            sim.run(until="empty", limit=200.0)
            times.append(sim.time)
        assert times[0] < 0.8 * times[1]


@needs_two_threads
def test_the_same_bits_on_two_threads() -> None:
    hashes = set()
    for threads in (1, 2):
        sim = corner(300, threads=threads)
        sim.run(until=4.0)
        hashes.add(sim.state_hash())
    assert len(hashes) == 1


# Lines of sight -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 40, 57), (9, 12, 10), (1, 1, 5)])
def test_room_is_the_distance_to_what_is_blocked(shape: tuple[int, int, int]) -> None:
    draws = np.random.default_rng(1)
    free, goal = draws.random(shape) < 0.97, draws.random(shape) < 0.002
    layers = free if shape[0] > 1 else free[0]
    rings = ndimage.distance_transform_cdt(np.pad(layers, 1), metric="chessboard")[(slice(1, -1),) * layers.ndim]
    before = layers & ~(goal if shape[0] > 1 else goal[0])
    skipped = ndimage.distance_transform_cdt(np.pad(before, 1), metric="chessboard")[(slice(1, -1),) * layers.ndim]
    expected = np.where(rings < 2, 0, np.maximum(skipped, 2) - 1)
    np.testing.assert_array_equal(room_around(free, goal).reshape(layers.shape), expected)


def test_lines_that_skip_open_space_see_what_lines_that_look_everywhere_see() -> None:
    field = field_of(corner(1)).arrays
    looking = field._replace(room=np.minimum(field.room, 1))
    draws = np.random.default_rng(2)
    seen = []
    for x, y, tx, ty in draws.uniform((0, -16, 0, -16), (20, 4, 20, 4), (4000, 4)):
        seen.append(line_is_clear(x, y, 0.0, tx - x, ty - y, 0.0, field))
        assert seen[-1] == line_is_clear(x, y, 0.0, tx - x, ty - y, 0.0, looking)
    assert 200 < sum(seen) < 3800
