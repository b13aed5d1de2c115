"""The harmonic solver on plain grids, against closed forms, scipy's sparse solver and principles of the equation."""

from collections.abc import Callable

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import spsolve

from tropel.errors import GeometryError, ParameterError
from tropel.planning.harmonic import field, solve_harmonic, solver
from tropel.planning.harmonic.grid import Unknowns, find_unknowns, first_estimate
from tropel.planning.harmonic.solver import bytes_needed, elimination_order, solve_directly
from tropel.planning.harmonic.sweeps import relaxation, solve_by_sweeps
from tropel.planning.harmonic.vectors import unit_vectors

Cells = NDArray[np.bool_]


def corridors(size: int, count: int) -> tuple[Cells, Cells]:
    """A maze of parallel corridors joined alternately at their ends, and a target at the beginning."""
    free = np.ones((size, size), dtype=bool)
    free[[0, -1]] = free[:, [0, -1]] = False
    width = size / count
    for k in range(1, count):
        row = int(k * width)
        free[row] = False
        opening = slice(int(size - width), size - 1) if k % 2 else slice(1, int(width))
        free[row, opening] = True
    target = np.zeros_like(free)
    target[2:4, 2:4] = True
    return free, target


def scattered(shape: tuple[int, ...], blocked: float, seed: int) -> tuple[Cells, Cells]:
    free = np.random.default_rng(seed).random(shape) > blocked
    target = np.zeros_like(free)
    target[(slice(1, 3),) * free.ndim] = True
    return free | target, target


def by_scipy(free: Cells, target: Cells, absorption: float | None = None) -> NDArray[np.float64]:
    """u from the equations written down cell by cell, with scipy's sparse direct solver."""
    number = np.full(free.shape, -1)
    unknown = np.argwhere(free & ~target)
    number[tuple(unknown.T)] = np.arange(len(unknown))
    rows, columns, values, right = [], [], [], np.zeros(len(unknown))
    for i, cell in enumerate(unknown):
        counted = 0
        for axis in range(free.ndim):
            for step in (-1, 1):
                beside = cell.copy()
                beside[axis] += step
                if not 0 <= beside[axis] < free.shape[axis] or not free[tuple(beside)]:
                    continue
                counted += 1
                if target[tuple(beside)]:
                    right[i] += 1.0
                else:
                    rows.append(i), columns.append(number[tuple(beside)]), values.append(-1.0)
        rows.append(i), columns.append(i)
        values.append(2.0 * free.ndim if absorption is None else counted + absorption)
    u = np.where(target, 1.0, 0.0)
    u[tuple(unknown.T)] = spsolve(csr_matrix((values, (rows, columns))), right)
    return u


def means_of_neighbours(u: NDArray[np.float64]) -> NDArray[np.float64]:
    padded = np.pad(u, 1)
    middle = slice(1, -1)
    total = np.zeros_like(u)
    for axis in range(u.ndim):
        for part in (slice(2, None), slice(None, -2)):
            total += padded[tuple(part if a == axis else middle for a in range(u.ndim))]
    return total / (2 * u.ndim)


@pytest.mark.parametrize("shape", [(24, 31), (9, 10, 11)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_both_kinds_of_walls_agree_with_a_sparse_solver(shape: tuple[int, ...], seed: int) -> None:
    free, target = scattered(shape, 0.25, seed)
    fixed = solve_harmonic(free, target)
    reached = np.isfinite(fixed)
    np.testing.assert_allclose(np.exp(fixed[reached]), by_scipy(free, target)[reached], rtol=1e-8, atol=1e-14)
    reflecting = solve_harmonic(free, target, walls="reflecting", decay_length=12.0)
    expected = by_scipy(free & reached, target, absorption=1.0 / 144.0)
    np.testing.assert_allclose(np.exp(reflecting[reached]), expected[reached], rtol=1e-9)
    assert np.array_equal(np.isfinite(reflecting), reached)


def test_the_annulus_converges_with_second_order() -> None:
    """u = a + b log r between two circles, with its values on the cells beyond them."""
    errors = []
    for cells in (24, 48, 96):
        at = (np.arange(cells) + 0.5) * 2.4 / cells - 1.2
        radius = np.hypot(at[:, None], at[None, :])
        exact = np.log(2.0 / np.maximum(radius, 0.1))
        between = (radius > 0.35) & (radius < 1.0)
        held = np.where(between, np.nan, exact)
        u = np.exp(solve_harmonic(between, np.zeros_like(between), held=held))
        errors.append(np.abs(u - exact)[between].max())
    assert errors[2] < 2e-4
    assert errors[0] / errors[1] > 3.0
    assert errors[1] / errors[2] > 3.4


def test_the_channel_converges_with_second_order_in_relative_terms() -> None:
    """u = sin(pi y) exp(-pi x) in a channel of width 1 and length 4: u is 3e-6 at its end, as precise as elsewhere."""
    errors = []
    for cells in (8, 16, 32):
        x, y = np.meshgrid(np.arange(4 * cells + 1) / cells, np.arange(cells + 1) / cells)
        exact = np.maximum(np.sin(np.pi * y) * np.exp(-np.pi * x), 0.0)
        exact[[0, -1]] = 0.0
        inside = np.zeros(x.shape, dtype=bool)
        inside[1:-1, 1:-1] = True
        u = np.exp(solve_harmonic(inside, np.zeros_like(inside), held=np.where(inside, np.nan, exact)))
        errors.append(np.abs(u[inside] / exact[inside] - 1.0).max())
    assert errors[2] < 0.01  # to leading order 4 pi³ / (12 · 32²)
    assert 3.5 < errors[0] / errors[1] < 4.5
    assert 3.5 < errors[1] / errors[2] < 4.5


def test_plain_walls_converge_monotonically_to_the_annulus() -> None:
    """Walls 0 and target 1 as drawn on the raster, stairs and all."""
    errors = []
    for cells in (32, 64, 128, 256):
        at = (np.arange(cells) + 0.5) * 2.2 / cells - 1.1
        radius = np.hypot(at[:, None], at[None, :])
        log_u = solve_harmonic(radius < 1.0, radius < 0.3)
        probe = (radius > 0.45) & (radius < 0.85)
        errors.append(np.abs(np.exp(log_u) - np.log(1.0 / radius) / np.log(1.0 / 0.3))[probe].mean())
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.01


@pytest.mark.parametrize("width", [3, 8])
def test_a_channel_of_two_thousand_cells_decays_at_the_exact_rate(width: int) -> None:
    free = np.ones((width, 2000), dtype=bool)
    target = np.zeros_like(free)
    target[:, 0] = True
    log_u = solve_harmonic(free, target)
    rate = np.arccosh(2.0 - np.cos(np.pi / (width + 1)))
    far = log_u[width // 2, 200:1800]
    np.testing.assert_allclose(np.diff(far), -rate, rtol=1e-9)
    assert far.min() < -600.0


@pytest.mark.parametrize(("walls", "shape"), [("fixed", (40, 40)), ("reflecting", (40, 40)), ("fixed", (12, 12, 12))])
def test_maximum_principle(walls: str, shape: tuple[int, ...]) -> None:
    for seed in range(5):
        free, target = scattered(shape, 0.3, seed)
        u = np.exp(solve_harmonic(free, target, walls=walls))
        asked = (u > 0.0) & ~target
        assert u[asked].max() < 1.0
        neighbours = np.stack(
            [np.roll(np.pad(u, 1), s, a)[(slice(1, -1),) * u.ndim] for a in range(u.ndim) for s in (-1, 1)]
        )
        assert (neighbours.max(axis=0) > u)[asked].all()
        if walls == "fixed":
            assert (neighbours.min(axis=0) < u)[asked].all()
            np.testing.assert_allclose(means_of_neighbours(u)[asked], u[asked], rtol=1e-11)


def test_more_walls_mean_less_u_and_more_targets_mean_more() -> None:
    free, target = scattered((40, 50), 0.15, 7)
    other = np.zeros_like(target)
    other[35:37, 45:47] = True
    free |= other
    one, two = solve_harmonic(free, target), solve_harmonic(free, other)
    both = solve_harmonic(free, target | other)
    assert (both >= np.maximum(one, two) - 1e-12).all()
    walled = free.copy()
    walled[20, 5:30] = False
    walled |= target
    less = solve_harmonic(walled, target)
    assert (less <= one + 1e-12).all()
    assert (less < one - 0.1).any()


def test_long_decay_is_the_mean_time_of_arrival() -> None:
    """1 - u = k² T with T from its own equation, T = 1 / neighbours + mean T beside; the unit of T is a cell²."""
    free, target = scattered((20, 20), 0.2, 4)
    log_u = solve_harmonic(free, target, walls="reflecting", decay_length=3e4)
    reached = np.isfinite(log_u)
    unknown = np.argwhere(reached & ~target)
    number = np.full(free.shape, -1)
    number[tuple(unknown.T)] = np.arange(len(unknown))
    matrix = np.zeros((len(unknown), len(unknown)))
    for i, (y, x) in enumerate(unknown):
        for b, a in ((y, x - 1), (y, x + 1), (y - 1, x), (y + 1, x)):
            if 0 <= b < 20 and 0 <= a < 20 and free[b, a]:
                matrix[i, i] += 1.0
                if not target[b, a]:
                    matrix[i, number[b, a]] -= 1.0
    times = np.linalg.solve(matrix, np.ones(len(unknown)))
    np.testing.assert_allclose(-log_u[tuple(unknown.T)] * 3e4**2, times, rtol=1e-3)


def test_short_decay_measures_distance() -> None:
    free = np.ones((1, 400), dtype=bool)
    target = np.zeros_like(free)
    target[0, 0] = True
    log_u = solve_harmonic(free, target, walls="reflecting", decay_length=10.0)
    np.testing.assert_allclose(np.diff(log_u[0, :250]), -np.arccosh(1.0 + 0.5 / 100.0), rtol=1e-9)


def unknowns_of(free: Cells, target: Cells) -> Unknowns:
    return find_unknowns(free, target, np.where(target, 0.0, np.nan), None)


def test_sweeps_and_elimination_find_the_same_in_three_dimensions() -> None:
    unknowns = unknowns_of(*scattered((14, 15, 16), 0.1, 5))
    decay = np.full(unknowns.count, 0.5)
    direct = solve_directly(unknowns, decay)
    swept, residual = solve_by_sweeps(unknowns, first_estimate(unknowns, decay), factor=relaxation(4.0, 3), most=1000)
    assert residual < 1e-10
    np.testing.assert_allclose(swept, direct, atol=1e-8)


def test_the_estimate_does_not_show_in_the_result() -> None:
    unknowns = unknowns_of(*scattered((40, 40), 0.3, 6))
    results = [solve_directly(unknowns, np.full(unknowns.count, decay)) for decay in (0.0, 0.7, 3.0)]
    np.testing.assert_allclose(results[1], results[0], rtol=1e-12, atol=1e-11)
    np.testing.assert_allclose(results[2], results[0], rtol=1e-12, atol=1e-11)


@pytest.mark.parametrize("decay", [0.0, 0.1, 1.0, 30.0, 1e4])
def test_a_bad_guess_of_the_decay_costs_time_only(decay: float) -> None:
    """u falls by 0.9 per cell in the corridors of this maze, and to exp(-1300) at their end."""
    free, target = corridors(120, 30)
    expected = solve_harmonic(free, target)
    assert expected[free].min() < -1300.0
    unknowns = unknowns_of(free, target)
    log_u = solve_directly(unknowns, np.full(unknowns.count, decay))
    np.testing.assert_allclose(log_u, expected.ravel()[unknowns.cells], rtol=1e-11)


@pytest.mark.parametrize("band", [100.0, 250.0])
def test_bands_do_not_show_in_the_result(band: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in a maze nor among blocks, where a band is cut across many passages that join again."""
    for free, target in (corridors(120, 20), scattered((300, 60), 0.38, 3)):
        expected = solve_harmonic(free, target)
        monkeypatch.setattr(solver, "_BAND", band)
        np.testing.assert_allclose(solve_harmonic(free, target)[free], expected[free], rtol=1e-11)
        monkeypatch.undo()


@pytest.mark.parametrize("shape", [(1, 1), (1, 40), (37, 20), (3, 500), (9, 8, 7)])
def test_the_order_of_elimination_has_every_cell_once(shape: tuple[int, ...]) -> None:
    free = np.random.default_rng(1).random(shape) > 0.2
    coordinates = np.argwhere(free).astype(np.int32)
    order = elimination_order(coordinates)
    assert np.array_equal(np.sort(order), np.arange(len(coordinates)))


def test_walls_with_doors_are_cut_along() -> None:
    free = np.ones((61, 61), dtype=bool)
    free[33], free[:, 27] = False, False
    free[33, 10] = free[50, 27] = True
    order = elimination_order(np.argwhere(free).astype(np.int32))
    last = np.argwhere(free)[order[-2:]]
    assert sorted(map(tuple, last.tolist())) == [(33, 10), (50, 27)]


def test_memory_is_asked_for_before_a_solution_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    free, target = scattered((200, 200), 0.1, 1)
    monkeypatch.setattr("tropel.foundation.memory.memory_available", lambda: 1e6)
    with pytest.raises(GeometryError, match=r"a harmonic field of 3\d,\d+ cells would need .* plan with a flow field"):
        solve_harmonic(free, target)


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("SUPERLU_MALLOC fails for work[]")])
def test_memory_that_is_gone_meanwhile_is_an_error_with_a_remedy(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("scipy.sparse.linalg.splu", fail)
    with pytest.raises(GeometryError, match=r"not enough memory for a harmonic field of .* use larger cells"):
        solve_harmonic(*scattered((20, 20), 0.1, 1))


def test_where_direct_solutions_take_too_much_sweeps_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    free, target = scattered((30, 30), 0.1, 2)
    expected = solve_harmonic(free, target)
    monkeypatch.setattr(field, "memory_limit", lambda: 1e6)
    swept = solve_harmonic(free, target)
    assert not np.array_equal(swept, expected)
    np.testing.assert_allclose(swept, expected, atol=1e-7)
    assert bytes_needed(100_000_000, 2) == np.inf


def test_the_number_of_threads_does_not_show_in_the_bits() -> None:
    free, target = scattered((220, 220), 0.02, 8)
    before = numba.get_num_threads()
    try:
        numba.set_num_threads(1)
        one = solve_harmonic(free, target)
        numba.set_num_threads(before)
        many = solve_harmonic(free, target)
    finally:
        numba.set_num_threads(before)
    assert np.array_equal(one, many)


def test_the_number_of_blas_threads_does_not_show_in_the_bits(python: Callable[..., str]) -> None:
    code = """
import hashlib
from tropel.bench.planning_maps import blocks_map
from tropel.planning.harmonic import solve_harmonic
print(hashlib.sha256(solve_harmonic(*blocks_map(200)).tobytes()).hexdigest())
"""
    assert len({python(code, environment={"OPENBLAS_NUM_THREADS": threads}) for threads in ("1", "2", "3")}) == 1


def test_maze_beyond_the_range_of_doubles_is_solved_to_the_last_cell() -> None:
    """40 corridors. Solving for u itself, as it stands, leaves most cells at zero or in noise."""
    free, target = corridors(240, 40)
    log_u = solve_harmonic(free, target)
    assert np.isfinite(log_u[free]).all()
    assert log_u[free].min() < -4000.0
    asked = free & ~target
    assert np.abs(log_means(log_u)[asked] - log_u[asked]).max() < 1e-9
    u = by_scipy(free, target)
    better = np.maximum.reduce([np.roll(u, s, a) for s in (-1, 1) for a in (0, 1)]) > u
    assert better[asked].mean() < 0.5


def log_means(log_u: NDArray[np.float64]) -> NDArray[np.float64]:
    sides = np.stack([np.roll(log_u, s, a) for s in (-1, 1) for a in (0, 1)])
    top = np.maximum(sides.max(axis=0), -1e300)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.exp(sides - top).sum(axis=0) / 4.0))


def test_unreachable_cells_and_an_absent_target_are_minus_infinity() -> None:
    free = np.ones((10, 10), dtype=bool)
    free[:, 5] = False
    target = np.zeros_like(free)
    target[2, 2] = True
    log_u = solve_harmonic(free, target)
    assert np.isfinite(log_u[:, :5]).all()
    assert (log_u[:, 5:] == -np.inf).all()
    assert (solve_harmonic(free, np.zeros_like(free)) == -np.inf).all()


@pytest.mark.parametrize("walls", ["fixed", "reflecting"])
def test_a_place_surrounded_by_the_target_has_directions_too(walls: str) -> None:
    free = np.ones((21, 21), dtype=bool)
    target = np.zeros_like(free)
    target[3:18, 3:18] = True
    target[5:16, 5:16] = False
    log_u = solve_harmonic(free, target, walls=walls)
    sides = np.stack([np.roll(log_u, s, a) for s in (-1, 1) for a in (0, 1)])
    assert (sides.max(axis=0) > log_u)[5:16, 5:16].all()


@pytest.mark.parametrize("high", range(1, 9))
@pytest.mark.parametrize("wide", range(1, 9))
def test_rounding_is_no_direction_in_a_place_surrounded_by_the_target(high: int, wide: int) -> None:
    free = np.ones((high + 2, wide + 2), dtype=bool)
    target = free.copy()
    target[1:-1, 1:-1] = False
    vectors = unit_vectors(solve_harmonic(free, target), target, mirrored=False)
    np.testing.assert_allclose(np.linalg.norm(vectors[~target], axis=1), 1.0)
    # The nearest side is never behind.
    y, x = np.mgrid[1 : high + 1, 1 : wide + 1]
    for away, along in ((x, vectors[1:-1, 1:-1, 0]), (y, vectors[1:-1, 1:-1, 1])):
        middle = (away.max() + 1) / 2
        assert (along * (away - middle) >= -1e-6).all()


def test_bad_input_is_named() -> None:
    free = np.ones((4, 5), dtype=bool)
    target = np.zeros_like(free)
    target[1, 1] = True
    with pytest.raises(ParameterError, match="boolean array of the shape of free, \\(4, 5\\)"):
        solve_harmonic(free, target[:3])
    with pytest.raises(ParameterError, match="free must be a boolean array"):
        solve_harmonic(free.astype(float), target)
    with pytest.raises(ParameterError, match="did you mean 'reflecting'"):
        solve_harmonic(free, target, walls="reflect")
    with pytest.raises(ParameterError, match="decay_length"):
        solve_harmonic(free, target, walls="reflecting", decay_length=0.0)
    with pytest.raises(ParameterError, match="held must have the shape"):
        solve_harmonic(free, target, held=np.zeros(3))
    with pytest.raises(ParameterError, match="0 or positive"):
        solve_harmonic(free, target, held=np.full((4, 5), -1.0))
    with pytest.raises(GeometryError, match=r"1 cells of the target are inside walls, the first at index \(1, 1\)"):
        solve_harmonic(~target, target)
