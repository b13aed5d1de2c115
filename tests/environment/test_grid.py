"""The uniform grid against brute force in plain NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tropel.agents.state import AgentState
from tropel.environment import Grid
from tropel.errors import CheckpointError, ModelError, ParameterError
from tropel.world import World

LOW, HIGH = -4.0, 12.0


def make_world(dim: int, low: float = LOW, high: float = HIGH) -> World:
    return World(bounds=(low, low, high, high)) if dim == 2 else World.box([low] * 3, [high] * 3)


def make_state(position: np.ndarray, sense_radius: np.ndarray | float) -> AgentState:
    state = AgentState(position.shape[1])
    state.add(
        len(position),
        {
            "position": position,
            "sense_radius": sense_radius,
            "velocity": -position,
            "radius": 0.1 + 0.01 * np.arange(len(position)),
            "group": np.arange(len(position)) % 3,
        },
    )
    return state


def canonical_order(state: AgentState, grid: Grid) -> np.ndarray:
    """Rows by cell, row-major with x fastest, then by id."""
    stored = grid.state()
    low, high = stored["box"]
    counts = np.maximum(np.ceil((high - low) / stored["cell"]), 1)
    cells = np.clip(np.floor((state.position - low) * (1.0 / stored["cell"])), 0, counts - 1)
    return np.lexsort((state.id, *cells.T))


def brute_force(state: AgentState, grid: Grid) -> list[list[int]]:
    gaps = state.position[:, None, :] - state.position[None, :, :]
    with np.errstate(over="ignore"):
        away2 = gaps[..., 0] * gaps[..., 0] + gaps[..., 1] * gaps[..., 1]
        if state.dim == 3:
            away2 = away2 + gaps[..., 2] * gaps[..., 2]
        near = away2 <= (state.sense_radius * state.sense_radius)[:, None]
    np.fill_diagonal(near, False)
    order = canonical_order(state, grid)
    return [order[near[i, order]].tolist() for i in range(len(state))]


def lists_of(csr: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    indptr, indices = csr
    assert indptr[-1] == len(indices)
    return [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)]


@pytest.fixture
def threads() -> Iterator[None]:
    before = numba.get_num_threads()
    yield
    numba.set_num_threads(before)


# Numbers on a lattice meet the borders of cells and each other; the free ones reach far outside the bounds.
coordinates = st.one_of(
    st.sampled_from([LOW, HIGH, 0.0, 1.0, 1.5, 2.0, 3.0, -1.0, 1e-170, -1e-170]),
    st.floats(LOW - 30.0, HIGH + 30.0),
    st.floats(0.0, 3.0),
)
radii = st.one_of(st.sampled_from([0.0, 0.5, 1.0, 2.0, 1000.0, np.inf]), st.floats(0.0, 4.0))


@st.composite
def scenes(draw: st.DrawFn) -> AgentState:
    dim = draw(st.sampled_from([2, 3]))
    count = draw(st.integers(0, 40))
    position = draw(hnp.arrays(np.float64, (count, dim), elements=coordinates))
    return make_state(position, draw(hnp.arrays(np.float64, count, elements=radii)))


@settings(max_examples=300, deadline=None)
@given(state=scenes(), cell=st.sampled_from([None, 0.3, 1.0, 2.0, 50.0]))
def test_neighbours_and_their_order_are_those_of_brute_force(state: AgentState, cell: float | None) -> None:
    grid = Grid(cell=cell)
    near = grid.sense(state, make_world(state.dim))
    if len(state) == 0:
        assert lists_of(near.csr()) == []
        return
    assert lists_of(near.csr()) == brute_force(state, grid)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 16.0, 60.0])
def test_crowds_of_several_chunks_are_complete_at_every_density(dim: int, spread: float) -> None:
    rng = np.random.default_rng(4)
    state = make_state(LOW + spread * rng.random((1300, dim)), rng.choice([0.3, 1.0, 1.7], 1300))
    grid = Grid()
    assert lists_of(grid.sense(state, make_world(dim)).csr()) == brute_force(state, grid)


@pytest.mark.parametrize("dim", [2, 3])
def test_no_neighbour_is_lost_when_a_scattered_crowd_clumps_and_scatters_again(dim: int) -> None:
    rng = np.random.default_rng(5)
    world, grid = make_world(dim), Grid()
    state = make_state(rng.uniform(LOW, HIGH, (1400, dim)), 0.8)
    scattered = state.position.copy()
    for share in (0.0, 0.9, 1.0, 0.5, 0.0):
        state.position[:] = (1.0 - share) * scattered + share * 2.0
        assert lists_of(grid.sense(state, world).csr()) == brute_force(state, grid)


def test_a_dense_spot_that_wanders_through_the_crowd_is_always_complete() -> None:
    rng = np.random.default_rng(6)
    world, grid = make_world(2), Grid()
    state = make_state(rng.uniform(LOW, HIGH, (1600, 2)), 0.5)
    scattered = state.position.copy()
    for centre in np.linspace(LOW, HIGH, 6):
        state.position[:] = scattered
        state.position[::4] = centre + 0.1 * rng.standard_normal((400, 2))
        assert lists_of(grid.sense(state, world).csr()) == brute_force(state, grid)


def test_one_far_sighted_agent_among_near_sighted_ones_sees_all() -> None:
    rng = np.random.default_rng(7)
    radius = np.full(1100, 0.4)
    radius[500] = 40.0
    state = make_state(rng.uniform(LOW, HIGH, (1100, 2)), radius)
    grid = Grid()
    lists = lists_of(grid.sense(state, make_world(2)).csr())
    assert len(lists[500]) == 1099
    assert lists == brute_force(state, grid)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.usefixtures("threads")
def test_one_and_two_threads_give_the_same_bits(dim: int) -> None:
    rng = np.random.default_rng(8)
    state = make_state(rng.uniform(LOW, HIGH, (9000, dim)), rng.uniform(0.1, 0.8, 9000))
    found = []
    for count in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        numba.set_num_threads(count)
        near = Grid().sense(state, make_world(dim))
        found.append(
            [array.tobytes() for array in (*near.csr(), *(a for a in near.cells if isinstance(a, np.ndarray)))]
        )
    assert found[0] == found[1]


@pytest.mark.parametrize("dim", [2, 3])
def test_the_cell_list_holds_every_column_in_canonical_order(dim: int) -> None:
    rng = np.random.default_rng(9)
    state = make_state(rng.uniform(LOW - 2.0, HIGH + 2.0, (500, dim)), 1.0)
    grid = Grid()
    cells = grid.sense(state, make_world(dim)).cells
    order = canonical_order(state, grid)
    assert cells.order.tolist() == order.tolist()
    for name in ("position", "velocity"):
        assert np.array_equal(getattr(cells, name), state.columns[name][order].T)
    for name in ("radius", "group", "sense_radius"):
        assert np.array_equal(getattr(cells, name), state.columns[name][order])


def test_rows_by_cell_are_the_members_in_cell_order() -> None:
    rng = np.random.default_rng(10)
    state = make_state(rng.uniform(LOW, HIGH, (300, 2)), 1.0)
    grid = Grid()
    near = grid.sense(state, make_world(2))
    order = canonical_order(state, grid)
    members = np.flatnonzero(state.group == 1)
    for _ in range(2):
        assert near.rows_by_cell(members).tolist() == [row for row in order if row in set(members.tolist())]
    assert near.rows_by_cell(np.arange(300)).tolist() == order.tolist()
    assert near.rows_by_cell(np.arange(0)).tolist() == []


def test_restored_cells_keep_the_order_although_the_agents_have_changed() -> None:
    rng = np.random.default_rng(11)
    world = make_world(2)
    state = make_state(rng.uniform(LOW, HIGH, (1500, 2)), rng.uniform(0.5, 3.0, 1500))
    running = Grid()
    running.sense(state, world)
    state.keep(state.sense_radius < 1.0)
    resumed, fresh = Grid(), Grid()
    resumed.restore({name: array.copy() for name, array in running.state().items()})
    expected = lists_of(running.sense(state, world).csr())
    assert lists_of(resumed.sense(state, world).csr()) == expected
    assert lists_of(fresh.sense(state, world).csr()) != expected
    assert {name: a.tolist() for name, a in resumed.state().items()} == {
        name: a.tolist() for name, a in running.state().items()
    }


def test_agents_may_come_and_go() -> None:
    rng = np.random.default_rng(12)
    world, grid = make_world(2), Grid()
    state = AgentState(2)
    assert lists_of(grid.sense(state, world).csr()) == []
    assert grid.state() == {}
    for arriving in (1, 600, 50, 2000):
        state.add(arriving, {"position": rng.uniform(LOW, HIGH, (arriving, 2)), "sense_radius": 0.7})
        assert lists_of(grid.sense(state, world).csr()) == brute_force(state, grid)
        state.keep(rng.random(len(state)) < 0.5)
        assert lists_of(grid.sense(state, world).csr()) == brute_force(state, grid)


def test_the_cell_is_chosen_once_and_declared_cells_are_kept() -> None:
    state = make_state(np.random.default_rng(13).uniform(LOW, HIGH, (50, 2)), 2.0)
    grid = Grid()
    grid.sense(state, make_world(2))
    assert grid.state()["cell"] == pytest.approx(2.0, rel=1e-4)
    state.sense_radius[:] = 0.5
    grid.sense(state, make_world(2))
    assert grid.state()["cell"] == pytest.approx(2.0, rel=1e-4)
    grid.allocate(state, make_world(2))
    assert grid.state()["cell"] == pytest.approx(0.5, rel=1e-4)
    declared = Grid(cell=3.0)
    declared.sense(state, make_world(2))
    assert declared.state()["cell"] == pytest.approx(3.0, rel=1e-4)


def test_another_world_gets_other_cells() -> None:
    state = make_state(np.random.default_rng(14).uniform(LOW, HIGH, (50, 2)), 2.0)
    grid = Grid()
    grid.sense(state, make_world(2))
    grid.sense(state, make_world(2, high=30.0))
    assert grid.state()["bounds"].tolist() == [[LOW, LOW], [30.0, 30.0]]
    assert lists_of(grid.sense(state, make_world(2, high=30.0)).csr()) == brute_force(state, grid)


@pytest.mark.parametrize("cell", [None, 0.001])
def test_a_huge_world_has_fewer_and_larger_cells(cell: float | None) -> None:
    rng = np.random.default_rng(15)
    state = make_state(rng.uniform(0.0, 5.0, (200, 2)), 0.5)
    grid = Grid(cell=cell)
    near = grid.sense(state, make_world(2, high=5e4))
    assert len(near.cells.cell_start) - 1 <= 2**24
    assert lists_of(near.csr()) == brute_force(state, grid)


def test_lists_are_built_once_a_step() -> None:
    near = Grid().sense(make_state(np.zeros((3, 2)), 1.0), make_world(2))
    assert near.csr() is near.csr()


def test_an_old_neighbourhood_says_so() -> None:
    state, world, grid = make_state(np.zeros((3, 2)), 1.0), make_world(2), Grid()
    near = grid.sense(state, world)
    grid.sense(state, world)
    with pytest.raises(ModelError, match="earlier step"):
        near.csr()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_an_agent_without_a_place_is_named(wrong: float, axis: int) -> None:
    state = make_state(np.zeros((5000, 3)), 0.0)
    state.keep(state.id != 17)
    state.position[4500, axis] = wrong
    with pytest.raises(ModelError, match="agent 4501 is at"):
        Grid().sense(state, make_world(3))


@pytest.mark.parametrize("wrong", [np.nan, -1.0])
def test_an_agent_with_an_impossible_sense_radius_is_named(wrong: float) -> None:
    state = make_state(np.zeros((10, 2)), 1.0)
    state.sense_radius[6] = wrong
    with pytest.raises(ModelError, match="agent 6 has a sense radius"):
        Grid().sense(state, make_world(2))


@pytest.mark.parametrize("cell", [0.0, -1.0, np.nan, np.inf])
def test_impossible_cells_are_refused(cell: float) -> None:
    with pytest.raises(ParameterError, match="positive number"):
        Grid(cell=cell)


def test_dimensions_must_agree() -> None:
    with pytest.raises(ModelError, match="dimension"):
        Grid().sense(make_state(np.zeros((3, 2)), 1.0), make_world(3))


def test_sorting_before_allocating_is_refused() -> None:
    with pytest.raises(ModelError, match="allocate"):
        Grid().update(make_state(np.zeros((3, 2)), 1.0))


def test_a_checkpoint_of_something_else_is_refused() -> None:
    with pytest.raises(CheckpointError, match="bounds, box, period, cell and reach"):
        Grid().restore({"triangles": np.zeros(3)})
