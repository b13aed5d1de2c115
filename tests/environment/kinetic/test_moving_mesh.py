"""The moving triangulation: all invariants after every step, whatever the points do."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial import Delaunay

from tropel.environment.kinetic.checks import first_fault
from tropel.environment.kinetic.moving_mesh import MovingMesh
from tropel.errors import GeometryError, ModelError

Points = NDArray[np.float64]
STEPS = 200


def ids_of(points: Points) -> NDArray[np.int64]:
    return np.arange(len(points), dtype=np.int64)


def wandering(points: Points, step: float, rng: np.random.Generator) -> Iterator[Points]:
    """Everybody walks about in the same square."""
    low, high = points.min(axis=0), points.max(axis=0)
    angle = rng.uniform(0.0, 2.0 * math.pi, len(points))
    while True:
        angle = angle + rng.normal(0.0, 0.3, len(points))
        move = step * np.column_stack([np.cos(angle), np.sin(angle)])
        move[(points + move < low) | (points + move > high)] *= -1.0
        angle = np.arctan2(move[:, 1], move[:, 0])
        points = points + move
        yield points


def check(moving: MovingMesh, points: Points, what: object) -> None:
    fault = first_fault(moving.mesh)
    assert fault is None, (what, fault)
    vertices = moving.vertices_of(ids_of(points))
    at = np.column_stack([moving.mesh.x[vertices], moving.mesh.y[vertices]])
    assert np.abs(at - points).max() <= 1e-6


@pytest.mark.parametrize("seed", range(3))
def test_it_is_the_triangulation_that_scipy_finds(seed: int) -> None:
    points = np.random.default_rng(seed).uniform(-5.0, 25.0, (500, 2))
    moving = MovingMesh()
    moving.update(ids_of(points), points)
    slots = {int(v): k for k, v in enumerate(moving.vertices_of(ids_of(points)))}
    ours = {tuple(sorted(slots[int(v)] for v in t)) for t in moving.triangles()}
    theirs = {tuple(sorted(map(int, t))) for t in Delaunay(points).simplices}
    # Along the hull a flat triangle of theirs may have a ghost of ours inside its circle.
    assert ours <= theirs
    assert len(theirs - ours) <= 3


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("share", [0.01, 0.1, 0.4, 2.0])
def test_the_invariants_hold_in_every_step(share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    start = rng.uniform(0.0, 14.0, (200, 2))
    moving = MovingMesh()
    moving.update(ids_of(start), start)
    for number, points in zip(range(STEPS), wandering(start, share, rng), strict=False):
        moving.update(ids_of(points), points)
        check(moving, points, number)
    assert moving.total.rebuilds == 1


def test_runners_teleports_and_swaps() -> None:
    rng = np.random.default_rng(7)
    points = rng.uniform(0.0, 14.0, (200, 2))
    moving = MovingMesh()
    for number in range(STEPS):
        points = points + rng.normal(0.0, 0.02, points.shape)
        jumping = rng.integers(0, len(points), 4)
        points[jumping[:2]] = rng.uniform(0.0, 14.0, (2, 2))
        points[jumping[2:]] = points[jumping[2:]][::-1].copy()  # these two swap places
        moving.update(ids_of(points), points)
        check(moving, points, number)
    assert moving.total.rebuilds == 1


@pytest.mark.parametrize("turn", [0.0, 0.003, 0.2])
def test_lattices_at_rest_and_turning(turn: float) -> None:
    """All squares are cocircular, and stay so up to rounding."""
    base = np.stack(np.meshgrid(np.arange(12.0), np.arange(12.0)), axis=-1).reshape(-1, 2) - 5.5
    moving = MovingMesh()
    for number in range(STEPS):
        c, s = math.cos(turn * number), math.sin(turn * number)
        points = base @ np.array([[c, s], [-s, c]])
        moving.update(ids_of(points), points)
        check(moving, points, number)
    assert moving.total.rebuilds == 1
    if turn == 0.0:
        assert moving.last.looked_at == 0


@pytest.mark.parametrize("kind", ["collinear", "coincident", "heads-on", "one row through another"])
def test_degenerate_crowds(kind: str) -> None:
    rng = np.random.default_rng(3)
    row = np.column_stack([np.arange(40.0) * 0.5, np.zeros(40)])
    moving = MovingMesh()
    for number in range(STEPS):
        way = 0.1 * number
        if kind == "collinear":
            points = row + np.array([way, 0.3 * way])
        elif kind == "coincident":
            points = np.repeat(rng.uniform(0.0, 3.0, (5, 2)), 8, axis=0)
        elif kind == "heads-on":
            points = np.concatenate([row + np.array([way, 0.0]), row + np.array([20.0 - way, 0.0])])
        else:
            points = np.concatenate([row, row + np.array([0.0, 10.0 - way])])
        moving.update(ids_of(points), points)
        check(moving, points, (kind, number))


@pytest.mark.parametrize("seed", range(3))
def test_points_come_and_go(seed: int) -> None:
    rng = np.random.default_rng(seed)
    where = {number: rng.uniform(0.0, 10.0, 2) for number in range(60)}
    moving = MovingMesh()
    born = len(where)
    for number in range(STEPS):
        for gone in rng.permutation(sorted(where))[: rng.integers(0, 8)]:
            del where[int(gone)]
        for _ in range(int(rng.integers(0, 9))):
            where[born] = rng.uniform(0.0, 10.0, 2)
            born += 1
        for point in where.values():
            point += rng.normal(0.0, 0.05, 2)
        ids = rng.permutation(np.array(sorted(where), dtype=np.int64))
        points = np.array([where[int(number)] for number in ids]).reshape(-1, 2)
        moving.update(ids, points)
        assert first_fault(moving.mesh) is None, number
        vertices = moving.vertices_of(ids)
        assert np.abs(moving.mesh.x[vertices] - points[:, 0]).max(initial=0.0) <= 1e-6
    assert moving.total.rebuilds <= 8


def test_nobody_and_one_point() -> None:
    moving = MovingMesh()
    for count in (0, 1, 2, 3, 0, 2):
        points = np.arange(2.0 * count).reshape(-1, 2)
        moving.update(ids_of(points), points)
        assert first_fault(moving.mesh) is None


def test_points_that_leave_the_ghosts_behind_are_triangulated_anew() -> None:
    points = np.random.default_rng(0).uniform(0.0, 1.0, (20, 2))
    moving = MovingMesh()
    for away in (0.0, 1.0, 1e3, 1e6, 1e12):
        moving.update(ids_of(points), points + away)
        check(moving, points + away, away)
    assert moving.total.rebuilds >= 3


def test_a_crowd_at_rest_looks_at_nothing() -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(0.0, 30.0, (900, 2))
    moving = MovingMesh()
    moving.update(ids_of(points), points)
    looked = []
    for _ in range(50):
        points = points.copy()
        points[:9] += rng.normal(0.0, 0.05, (9, 2))
        moving.update(ids_of(points), points)
        looked.append(moving.last.looked_at)
    assert first_fault(moving.mesh) is None
    # One in a hundred moves, and each has a part in about twelve edges.
    assert max(looked[1:]) <= 9 * 24
    moving.update(ids_of(points), points)
    assert moving.last.looked_at == 0


def test_certificates_save_most_of_the_looking() -> None:
    rng = np.random.default_rng(1)
    start = rng.uniform(0.0, 30.0, (900, 2))
    moving = MovingMesh()
    moving.update(ids_of(start), start)
    shares = []
    for _, points in zip(range(100), wandering(start, 0.004, rng), strict=False):
        moving.update(ids_of(points), points)
        shares.append(moving.last.looked_at / moving.last.certificates)
    assert np.mean(shares[2:]) < 0.1


def test_a_crowd_in_a_hurry_does_without_certificates_until_it_slows_down() -> None:
    rng = np.random.default_rng(1)
    points = rng.uniform(0.0, 30.0, (900, 2))
    moving = MovingMesh()
    shares = []
    for step in range(160):
        points = points + rng.normal(0.0, 0.05 if step < 80 else 0.0, points.shape)
        moving.update(ids_of(points), points)
        check(moving, points, step)
        shares.append(moving.last.looked_at / moving.last.certificates)
    assert np.mean(shares[10:80]) > 0.9
    assert max(shares[-40:]) == 0.0


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("step", [0.004, 0.1, 1.0])
def test_the_invariants_hold_while_few_move_and_when_many_begin_to(step: float, seed: int) -> None:
    """Few move, some of them swap places, jump, or land on others; then everybody moves for a while, and so on."""
    rng = np.random.default_rng(seed)
    points = rng.uniform(0.0, 20.0, (400, 2))
    moving = MovingMesh(np.array([[5.0, 5.0, 15.0, 5.0], [15.0, 5.0, 15.0, 15.0]]))
    for number in range(STEPS):
        points = points.copy()
        few = rng.choice(len(points), 12, replace=False)
        if number % 40 >= 30:
            points += rng.normal(0.0, step, points.shape)
        else:
            points[few] += rng.normal(0.0, step, (len(few), 2))
            points[few[:2]] = points[few[1::-1]]
            points[few[2]] = rng.uniform(0.0, 20.0, 2)
            points[few[3]] = points[few[4]]
        points = points.clip(0.0, 20.0)
        moving.update(ids_of(points), points)
        check(moving, points, number)
        if 1 < number % 40 < 30:
            # Those around the few that move: about a dozen edges each, more around the ends of walls.
            assert 0 < moving.last.looked_at < 40 * len(few)
    assert moving.total.rebuilds == 1


def test_looking_at_everything_finds_what_the_exact_predicates_find() -> None:
    """Lattices that turn: nearly every test is too close for rounding, some way or the other."""
    base = np.stack(np.meshgrid(np.arange(10.0), np.arange(10.0)), axis=-1).reshape(-1, 2) - 4.5
    rng = np.random.default_rng(5)
    moving = MovingMesh()
    for number in range(STEPS):
        c, s = math.cos(0.3 * number), math.sin(0.3 * number)
        points = base @ np.array([[c, s], [-s, c]]) + 1e-15 * rng.integers(-3, 4, base.shape)
        moving.update(ids_of(points), points)
        check(moving, points, number)
        moving._uncertified = 2  # every step looks at all edges
    assert moving.last.looked_at > 2.5 * len(points)
    assert moving.total.rebuilds == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_one_of_few_that_goes_nowhere_is_an_error(bad: float) -> None:
    points = np.random.default_rng(0).uniform(0.0, 20.0, (100, 2))
    moving = MovingMesh()
    for _ in range(3):
        moving.update(ids_of(points), points)
    points = points.copy()
    points[7, 1] = bad
    with pytest.raises(ModelError, match="point 7 is at"):
        moving.update(ids_of(points), points)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_positions_must_be_finite(bad: float) -> None:
    with pytest.raises(ModelError, match="finite"):
        MovingMesh().update(ids_of(np.zeros((2, 2))), np.array([[0.0, 0.0], [bad, 1.0]]))


# Walls.

ROOM = np.array([[0.0, 0.0, 10.0, 0.0], [10.0, 0.0, 10.0, 8.0], [10.0, 8.0, 0.0, 8.0], [0.0, 8.0, 0.0, 0.0]])
INNER = np.array([[5.0, 0.0, 5.0, 3.0], [5.0, 3.0, 5.0, 5.0], [5.0, 5.0, 5.0, 8.0]])


def split_room() -> Points:
    """A room with a wall across, of which the middle is a door; outer walls are split where it begins and ends."""
    low, high = [0.0, 0.0, 5.0, 0.0], [10.0, 8.0, 5.0, 8.0]
    rest = [[5.0, 0.0, 10.0, 0.0], [5.0, 8.0, 0.0, 8.0]]
    return np.concatenate([[low, high], rest, ROOM[[1, 3]], INNER])


def is_constrained(moving: MovingMesh, wall: int) -> bool:
    mesh = moving.mesh
    ends = set(moving.wall_vertices[wall].tolist())
    half_edges = np.flatnonzero((mesh.corner >= 0) & (mesh.constrained > 0))
    pairs = (
        {int(mesh.corner[3 * (h // 3) + (h + 1) % 3]), int(mesh.corner[3 * (h // 3) + (h + 2) % 3])} for h in half_edges
    )
    return ends in list(pairs)


@pytest.mark.parametrize("seed", range(2))
def test_walls_are_edges_in_every_step_and_doors_open_and_close(seed: int) -> None:
    rng = np.random.default_rng(seed)
    moving = MovingMesh(split_room())
    start = rng.uniform(0.2, 7.8, (150, 2))
    door = len(split_room()) - 2
    closed = np.ones(len(split_room()), dtype=np.bool_)
    for number, points in zip(range(STEPS), wandering(start, 0.08, rng), strict=False):
        closed[door] = number % 7 < 3
        moving.set_walls(closed)
        moving.update(ids_of(points), points)
        check(moving, points, number)
        for wall in range(len(closed)):
            assert is_constrained(moving, wall) == closed[wall], (number, wall)
    assert moving.total.rebuilds == 1


def test_points_exactly_on_walls_and_on_their_ends() -> None:
    moving = MovingMesh(split_room())
    for shift in np.linspace(0.0, 5.0, STEPS):
        points = np.array([[5.0, shift], [shift, 0.0], [5.0, 3.0], [5.0, 4.0], [0.0, 0.0], [2.0, 2.0 + shift]])
        moving.update(ids_of(points), points)
        check(moving, points, shift)
    closed = np.ones(len(split_room()), dtype=np.bool_)
    closed[-2] = False
    moving.set_walls(closed)
    points = np.array([[5.0, 4.0], [5.0, 3.5], [1.0, 1.0], [9.0, 1.0], [5.0, 4.5], [4.0, 4.0]])
    moving.update(ids_of(points), points)
    moving.set_walls(np.ones_like(closed))  # the door closes on people on its line
    check(moving, points, "closed")
    assert is_constrained(moving, len(closed) - 2)


def test_walls_that_cross_are_refused() -> None:
    with pytest.raises(GeometryError, match="crosses another wall"):
        MovingMesh(np.array([[0.0, 0.0, 2.0, 2.0], [0.0, 2.0, 2.0, 0.0]]))
    with pytest.raises(GeometryError, match="split walls"):
        MovingMesh(np.array([[0.0, 0.0, 4.0, 0.0], [2.0, 0.0, 2.0, 3.0]]))


def test_a_wall_listed_twice_stays_until_both_are_open() -> None:
    wall = [0.0, 0.0, 4.0, 0.0]
    moving = MovingMesh(np.array([wall, wall]))
    points = np.array([[1.0, 1.0], [1.0, -1.0], [3.0, 0.5]])
    moving.update(ids_of(points), points)
    moving.set_walls(np.array([True, False]))
    assert is_constrained(moving, 0)
    moving.set_walls(np.array([False, False]))
    assert not is_constrained(moving, 0)
    assert first_fault(moving.mesh) is None


@pytest.mark.parametrize("step", [0.02, 0.3, 3.0])
def test_walls_that_sweep_through_a_crowd(step: float) -> None:
    """Slowly, and so fast that they jump over people: the wall stays an edge, and nobody is lost."""
    rng = np.random.default_rng(2)
    base = np.array([[0.0, -1.0, 0.0, 4.0], [0.0, 4.0, 2.0, 6.0], [-2.0, 8.0, 1.0, 9.0]])
    moving = MovingMesh(base)
    points = rng.uniform(0.0, 10.0, (150, 2))
    for number in range(STEPS):
        points = points + rng.normal(0.0, 0.02, points.shape)
        along = 5.0 - 5.0 * math.cos(step * number / 5.0)
        moving.move_walls(base + np.array([along, 0.0, along, 0.0]))
        moving.update(ids_of(points), points)
        check(moving, points, number)
        for wall in range(len(base)):
            assert is_constrained(moving, wall), (number, wall)
    assert moving.total.rebuilds <= 2


def test_a_wall_that_turns_and_lands_on_people() -> None:
    moving = MovingMesh(np.array([[0.0, 0.0, 4.0, 0.0]]))
    points = np.array([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0], [3.0, 3.0], [-2.0, 1.0], [2.0, -3.0]])
    for number in range(STEPS):
        angle = 0.25 * math.pi * (number % 8) if number % 2 else 0.1 * number
        moving.move_walls(np.array([[0.0, 0.0, 4.0 * math.cos(angle), 4.0 * math.sin(angle)]]))
        moving.update(ids_of(points), points)
        check(moving, points, number)
        assert is_constrained(moving, 0), number


def test_walls_may_not_tear_apart_nor_cross() -> None:
    moving = MovingMesh(np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 0.0, 4.0, 3.0], [0.0, 5.0, 4.0, 5.0]]))
    points = np.array([[1.0, 1.0], [5.0, 1.0]])
    moving.update(ids_of(points), points)
    with pytest.raises(GeometryError, match="share an end"):
        moving.move_walls(np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 1.0, 4.0, 3.0], [0.0, 5.0, 4.0, 5.0]]))
    moving.move_walls(np.array([[0.0, 0.0, 4.0, 0.0], [4.0, 0.0, 4.0, 3.0], [2.0, -1.0, 2.0, 5.0]]))
    with pytest.raises(GeometryError, match="crosses another wall"):
        moving.update(ids_of(points), points)
