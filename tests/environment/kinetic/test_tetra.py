"""The tetrahedralisation while agents move, come and go: exact invariants in every step."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel.environment.kinetic import tetra
from tropel.environment.kinetic.tetra import Tetrahedralisation
from tropel.environment.kinetic.tetra_arrays import DONE, GAVE_UP, STUCK, TetraArrays
from tropel.errors import ModelError

Floats = NDArray[np.float64]


def random_crowd(rng: np.random.Generator, count: int) -> Floats:
    """One agent per cubic metre."""
    return rng.random((count, 3)) * count ** (1 / 3)


def random_steps(rng: np.random.Generator, count: int, length: float) -> Floats:
    step = rng.normal(size=(count, 3))
    return step * (length / np.linalg.norm(step, axis=1))[:, None]


def cube(side: int) -> Floats:
    axis = np.arange(side, dtype=np.float64)
    return np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)


def turned(points: Floats, angle: float) -> Floats:
    middle = points.mean(axis=0)
    c, s = np.cos(angle), np.sin(angle)
    return (points - middle) @ np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]]).T + middle


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize(("length", "most_rebuilds"), [(0.03, 2), (0.13, 40)])
def test_a_random_walk_keeps_it_delaunay(seed: int, length: float, most_rebuilds: int) -> None:
    rng = np.random.default_rng(seed)
    position = random_crowd(rng, 200)
    structure = Tetrahedralisation(position)
    for _ in range(200):
        position = position + random_steps(rng, len(position), length)
        structure.advance(position)
        structure.check_invariants()
    assert structure.counts.flips > 1000
    assert structure.counts.rebuilds <= most_rebuilds


def test_edges_are_those_of_another_library() -> None:
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(5)
    position = random_crowd(rng, 300)
    structure = Tetrahedralisation(position)
    for _ in range(20):
        position = position + random_steps(rng, len(position), 0.05)
        structure.advance(position)
    tets = structure.arrays.tet_vertex[structure.arrays.tet_vertex[:, 0] >= 0]
    own = {tuple(sorted(t)) for t in (tets[(tets >= 4).all(axis=1)] - 4).tolist()}
    theirs = Delaunay(position)
    # Ghosts change what is at the hull; everything that has no hull vertex must agree.
    hull = set(theirs.convex_hull.ravel().tolist())
    inner = {tuple(sorted(t)) for t in theirs.simplices.tolist() if not hull & set(t)}
    assert len(inner) > 300
    assert inner <= own


def test_a_crowd_at_rest_looks_at_nothing() -> None:
    rng = np.random.default_rng(0)
    position = random_crowd(rng, 300)
    structure = Tetrahedralisation(position)
    structure.advance(position + 0.01 * rng.random(position.shape))
    before = structure.counts.looked
    for _ in range(5):
        structure.advance(structure._where_agents_are())
    assert structure.counts.looked - before < 0.02 * structure.certificates


def test_one_fast_agent_does_not_expire_the_others() -> None:
    rng = np.random.default_rng(0)
    position = random_crowd(rng, 1000)
    structure = Tetrahedralisation(position)
    for _ in range(20):
        position = position + random_steps(rng, len(position), 1e-4)
        structure.advance(position)
    before = structure.counts.looked
    for step in range(10):
        position = position + random_steps(rng, len(position), 1e-4)
        position[0] = [1.0 + 0.8 * step, 5.0, 5.0]
        structure.advance(position)
        structure.check_invariants()
    assert structure.counts.looked - before < 10 * 0.1 * structure.certificates
    assert structure.counts.rebuilds == 0


@pytest.mark.parametrize("seed", range(3))
def test_teleports_and_swaps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    position = random_crowd(rng, 150)
    structure = Tetrahedralisation(position)
    for step in range(60):
        position = position + random_steps(rng, len(position), 0.02)
        some = rng.choice(len(position), 4, replace=False)
        if step % 3 == 0:
            position[some] = random_crowd(rng, 150)[:4]
        elif step % 3 == 1:
            position[some] = position[some[::-1]]
        structure.advance(position)
        structure.check_invariants()
    assert structure.counts.rebuilds <= 20


@pytest.mark.parametrize("seed", range(2))
def test_everybody_somewhere_else_is_a_rebuild_at_most(seed: int) -> None:
    rng = np.random.default_rng(seed)
    structure = Tetrahedralisation(random_crowd(rng, 120))
    for _ in range(10):
        structure.advance(random_crowd(rng, 120))
        structure.check_invariants()
    assert structure.counts.rebuilds <= 10


FLAT: dict[str, Callable[[np.random.Generator], Floats]] = {
    "coplanar": lambda rng: np.c_[rng.random((120, 2)) * 10.0, np.full(120, 3.0)],
    "coplanar lattice": lambda rng: cube(5)[:, :3] * [1.0, 1.0, 0.0] + [0.0, 0.0, 7.0],
    "collinear": lambda rng: np.outer(rng.random(80) * 20.0, [1.0, 0.0, 0.0]),
    "collinear and askew": lambda rng: np.outer(np.arange(60.0), [0.3, 0.7, 0.1]),
    "all in one place": lambda rng: np.full((50, 3), 2.5),
    "in pairs": lambda rng: np.repeat(rng.random((40, 3)) * 4.0, 2, axis=0),
    "lattice": lambda rng: cube(5),
    "far away": lambda rng: cube(4) + 1e6,
    "on a sphere": lambda rng: random_steps(rng, 100, 3.0),
    "one": lambda rng: np.zeros((1, 3)),
    "two": lambda rng: np.eye(3)[:2],
    "nobody": lambda rng: np.zeros((0, 3)),
}


@pytest.mark.parametrize("crowd", FLAT)
def test_degenerate_crowds_move(crowd: str) -> None:
    rng = np.random.default_rng(0)
    position = FLAT[crowd](rng)
    structure = Tetrahedralisation(position)
    structure.check_invariants()
    for step in range(12):
        if step % 3 == 0 and crowd.startswith("co"):
            position = position + np.array([0.05, 0.02, 0.0])
        elif step > 4:
            position = position + random_steps(rng, len(position), 0.02)
        structure.advance(position)
        structure.check_invariants()


def test_agents_that_walk_into_one_point() -> None:
    rng = np.random.default_rng(1)
    start = random_crowd(rng, 40)
    structure = Tetrahedralisation(start)
    for share in np.linspace(0.1, 1.0, 10):
        structure.advance(start + share * (start[0] - start))
        structure.check_invariants()
    structure.advance(start)
    structure.check_invariants()


def test_a_lattice_at_rest_and_turning() -> None:
    lattice = cube(5)
    structure = Tetrahedralisation(lattice)
    structure.advance(lattice)
    assert structure.counts.looked == 0
    for step in range(1, 200):
        structure.advance(turned(lattice, 0.01 * step))
        structure.check_invariants()


@pytest.mark.parametrize("kind", ["cube", "coplanar"])
def test_without_nudges_lattices_end_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Cospherical and coplanar to the last digit: only the exact predicates and strict tests are left.
    monkeypatch.setattr(tetra, "nudges", lambda count: np.zeros((count, 3)))
    lattice = cube(4) if kind == "cube" else np.unique(cube(6) * [1.0, 1.0, 0.0], axis=0)
    structure = Tetrahedralisation(lattice)
    structure.check_invariants()
    for step in range(1, 30):
        structure.advance(turned(lattice, 0.05 * step) if step % 2 else lattice + 0.125 * step)
        structure.check_invariants()
    structure.remove(np.arange(0, len(lattice), 3))
    structure.check_invariants()
    structure.insert(np.arange(0, len(lattice), 3), lattice + 4.0)
    structure.check_invariants()


def test_sorting_in_between_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """As large structures do after many flips: the same flips follow, and certificates go on."""
    found = []
    for often in (False, True):
        monkeypatch.setattr(tetra, "_LARGE", 0)
        monkeypatch.setattr(tetra, "_FLIPS_BETWEEN_SORTS", 0.05 if often else 1e9)
        rng = np.random.default_rng(0)
        position = random_crowd(rng, 200)
        structure = Tetrahedralisation(position, check_always=True)
        for _ in range(40):
            position = position + random_steps(rng, 200, 0.02)
            structure.advance(position)
            structure.check_invariants()
        tets = structure.arrays.tet_vertex[structure.arrays.tet_vertex[:, 0] >= 0]
        found.append({tuple(sorted(tet)) for tet in tets.tolist()})
        looked = structure.counts.looked
        structure.advance(position)
        assert structure.counts.looked == looked
    assert found[0] == found[1]


def test_rows_that_meet_head_on() -> None:
    lattice = cube(5)
    structure = Tetrahedralisation(lattice)
    direction = np.where(lattice[:, 1] % 2 == 0, 1.0, -1.0)
    for step in range(60):
        position = lattice.copy()
        position[:, 0] += 0.05 * step * direction
        structure.advance(position)
        structure.check_invariants()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("kind", ["random", "lattice"])
def test_agents_come_and_go(seed: int, kind: str) -> None:
    rng = np.random.default_rng(seed)
    position = cube(6) if kind == "lattice" else random_crowd(rng, 216)
    present = rng.random(len(position)) < 0.5
    structure = Tetrahedralisation(position, present)
    for _ in range(60):
        away, here = np.flatnonzero(~structure.present), np.flatnonzero(structure.present)
        leaving = rng.choice(here, min(len(here), int(rng.integers(0, 12))), replace=False)
        coming = rng.choice(away, min(len(away), int(rng.integers(0, 12))), replace=False)
        structure.remove(leaving)
        structure.check_invariants()
        if kind == "random":
            position[coming] = random_crowd(rng, 216)[: len(coming)]
        structure.insert(coming, position)
        structure.check_invariants()
        if kind == "random":
            position = position + random_steps(rng, len(position), 0.03)
            structure.advance(position)
            structure.check_invariants()
    assert structure.counts.rebuilds <= 2


def test_everybody_leaves_and_more_come() -> None:
    rng = np.random.default_rng(0)
    structure = Tetrahedralisation(random_crowd(rng, 30))
    structure.remove(np.arange(30))
    structure.check_invariants()
    position = random_crowd(rng, 400)
    structure.insert(np.arange(400), position)
    structure.check_invariants()
    structure.advance(position + 0.01)
    structure.check_invariants()


def test_a_crowd_that_spreads_gets_ghosts_farther_away() -> None:
    rng = np.random.default_rng(0)
    position = random_crowd(rng, 60)
    structure = Tetrahedralisation(position)
    for step in range(1, 8):
        structure.advance(position * 2.0**step)
        structure.check_invariants()
    assert structure.counts.rebuilds >= 3


def walk_too_fast(monkeypatch: pytest.MonkeyPatch) -> Tetrahedralisation:
    """Steps so long that a rebuild would be the better choice, which is not allowed: much is reinserted."""
    monkeypatch.setattr(tetra, "_TOO_MANY_INVERTED", 1.0)
    rng = np.random.default_rng(0)
    position = random_crowd(rng, 400)
    side = 400 ** (1 / 3)
    structure = Tetrahedralisation(position)
    for _ in range(60):
        position = np.abs(position + random_steps(rng, len(position), 0.3))
        position = side - np.abs(side - position)
        structure.advance(position)
        structure.check_invariants()
    return structure


def test_steps_too_long_for_repair_are_repaired_if_they_have_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = walk_too_fast(monkeypatch).counts
    assert counts.reinsertions > 1000
    assert counts.rebuilds <= 2


def say_stuck(structure: Tetrahedralisation, rng: np.random.Generator, faces: int) -> None:
    used = np.flatnonzero(structure.arrays.tet_vertex[:, 0] >= 0)
    structure.arrays.stuck[:faces] = 4 * rng.choice(used, faces)
    structure.arrays.counts[STUCK] = faces


@pytest.mark.parametrize("kind", ["random", "lattice"])
def test_the_surroundings_of_stuck_faces_are_built_anew(kind: str) -> None:
    rng = np.random.default_rng(0)
    structure = Tetrahedralisation(cube(6) if kind == "lattice" else random_crowd(rng, 200))
    for _ in range(30):
        say_stuck(structure, rng, 3)
        assert tetra.refill_stuck(structure.arrays) == DONE
        assert structure._flip()
        structure.check_invariants()


@pytest.mark.parametrize("broken", ["reinsert_pending", "put_back_inverted"])
def test_what_fails_ends_in_a_rebuild(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    works = getattr(tetra, broken)
    calls: list[int] = []

    def fails(arrays: TetraArrays, *rest: int) -> int:
        """Every other call, after it has done its work."""
        ended = int(works(arrays, *rest))
        calls.append(ended)
        return GAVE_UP if len(calls) % 2 == 0 else ended

    monkeypatch.setattr(tetra, broken, fails)
    assert walk_too_fast(monkeypatch).counts.rebuilds > 0


def test_what_stays_stuck_ends_in_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    works = tetra.restore_delaunay
    rng = np.random.default_rng(0)
    position = random_crowd(rng, 100)
    structure = Tetrahedralisation(position)

    def leaves_something(arrays: TetraArrays, limit: int) -> int:
        ended = int(works(arrays, limit))
        if rebuilds == structure.counts.rebuilds:
            say_stuck(structure, rng, 1)
        return ended

    monkeypatch.setattr(tetra, "restore_delaunay", leaves_something)
    monkeypatch.setattr(tetra, "refill_stuck", lambda arrays: GAVE_UP)
    for _ in range(5):
        rebuilds = structure.counts.rebuilds
        position = position + random_steps(rng, len(position), 0.05)
        structure.advance(position)
        structure.check_invariants()
    assert structure.counts.rebuilds == 5


def test_too_many_flips_end_in_a_rebuild(monkeypatch: pytest.MonkeyPatch) -> None:
    works = tetra.restore_delaunay
    rng = np.random.default_rng(0)
    position = random_crowd(rng, 150)
    structure = Tetrahedralisation(position)
    # A structure that was just built is certified without a flip.
    monkeypatch.setattr(tetra, "restore_delaunay", lambda arrays, limit: works(arrays, 10))
    for _ in range(10):
        position = position + random_steps(rng, len(position), 0.05)
        structure.advance(position)
        structure.check_invariants()
    assert structure.counts.rebuilds == 10


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_positions_that_are_no_numbers_are_refused(bad: float) -> None:
    position = random_crowd(np.random.default_rng(0), 20)
    structure = Tetrahedralisation(position)
    broken = position.copy()
    broken[7, 1] = bad
    with pytest.raises(ModelError, match="agent 7"):
        structure.advance(broken)
    with pytest.raises(ModelError, match="agent 7"):
        Tetrahedralisation(broken)
    with pytest.raises(ModelError, match="one row per agent"):
        structure.advance(position[:, :2])
    with pytest.raises(ModelError, match="one row per agent"):
        structure.advance(position[:10])
    structure.check_invariants()


def test_rows_must_be_empty_to_be_filled_and_filled_to_be_emptied() -> None:
    position = random_crowd(np.random.default_rng(0), 20)
    structure = Tetrahedralisation(position)
    with pytest.raises(ModelError, match="empty rows"):
        structure.insert(np.array([3]), position)
    structure.remove(np.array([3, 3]))
    structure.check_invariants()
    with pytest.raises(ModelError, match="present"):
        structure.remove(np.array([3]))


def test_a_switch_checks_after_every_change() -> None:
    position = random_crowd(np.random.default_rng(0), 60)
    structure = Tetrahedralisation(position, check_always=True)
    structure.advance(position + 0.01)
    structure.present[7] = False
    with pytest.raises(ModelError, match="agents that are present"):
        structure.advance(position)


def test_broken_structures_are_found() -> None:
    position = random_crowd(np.random.default_rng(0), 60)
    for name, match in (("tet_vertex", "oriented"), ("tet_neighbour", "twin"), ("vertex_tet", "vertex_tet")):
        structure = Tetrahedralisation(position)
        column = getattr(structure.arrays, name)
        if name == "tet_vertex":
            t = np.flatnonzero(column[:, 0] >= 0)[3]
            column[t, [0, 1]] = column[t, [1, 0]]
        elif name == "tet_neighbour":
            t = np.flatnonzero((column >= 0).all(axis=1))[3]
            column[t, [0, 1]] = column[t, [1, 0]]
        else:
            column[[10, 40]] = column[[40, 10]]
        with pytest.raises(ModelError, match=match):
            structure.check_invariants()
