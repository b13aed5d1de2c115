"""The uniform grid against brute force in plain NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sorted_crowds import HIGH, LOW, brute_force, lists_of, make_state, make_world, sensed
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contracts import Moment
from tropel.environment import Grid
from tropel.errors import ModelError, ParameterError


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
    cells = CellGrid(cell=cell)
    near = sensed(cells, state, make_world(state.dim))
    if len(state) == 0:
        assert lists_of(near.csr()) == []
        return
    assert lists_of(near.csr()) == brute_force(state, cells)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 16.0, 60.0])
def test_crowds_of_several_chunks_are_complete_at_every_density(dim: int, spread: float) -> None:
    rng = np.random.default_rng(4)
    state = make_state(LOW + spread * rng.random((1300, dim)), rng.choice([0.3, 1.0, 1.7], 1300))
    cells = CellGrid()
    assert lists_of(sensed(cells, state, make_world(dim)).csr()) == brute_force(state, cells)


@pytest.mark.parametrize("dim", [2, 3])
def test_no_neighbour_is_lost_when_a_scattered_crowd_clumps_and_scatters_again(dim: int) -> None:
    rng = np.random.default_rng(5)
    world, cells = make_world(dim), CellGrid()
    state = make_state(rng.uniform(LOW, HIGH, (1400, dim)), 0.8)
    scattered = state.position.copy()
    for share in (0.0, 0.9, 1.0, 0.5, 0.0):
        state.position[:] = (1.0 - share) * scattered + share * 2.0
        assert lists_of(sensed(cells, state, world).csr()) == brute_force(state, cells)


def test_a_dense_spot_that_wanders_through_the_crowd_is_always_complete() -> None:
    rng = np.random.default_rng(6)
    world, cells = make_world(2), CellGrid()
    state = make_state(rng.uniform(LOW, HIGH, (1600, 2)), 0.5)
    scattered = state.position.copy()
    for centre in np.linspace(LOW, HIGH, 6):
        state.position[:] = scattered
        state.position[::4] = centre + 0.1 * rng.standard_normal((400, 2))
        assert lists_of(sensed(cells, state, world).csr()) == brute_force(state, cells)


def test_one_far_sighted_agent_among_near_sighted_ones_sees_all() -> None:
    rng = np.random.default_rng(7)
    radius = np.full(1100, 0.4)
    radius[500] = 40.0
    state = make_state(rng.uniform(LOW, HIGH, (1100, 2)), radius)
    cells = CellGrid()
    lists = lists_of(sensed(cells, state, make_world(2)).csr())
    assert len(lists[500]) == 1099
    assert lists == brute_force(state, cells)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.usefixtures("threads")
def test_one_and_two_threads_give_the_same_bits(dim: int) -> None:
    rng = np.random.default_rng(8)
    state = make_state(rng.uniform(LOW, HIGH, (9000, dim)), rng.uniform(0.1, 0.8, 9000))
    found = []
    for count in (1, min(2, numba.config.NUMBA_NUM_THREADS)):
        numba.set_num_threads(count)
        near = Moment.of(state, make_world(dim), environment=Grid()).near
        arrays = (array for array in near.cells.cell_list if isinstance(array, np.ndarray))
        found.append([array.tobytes() for array in (*near.csr(), *arrays)])
    assert found[0] == found[1]


def test_lists_are_built_once_a_step() -> None:
    near = Moment.of(make_state(np.zeros((3, 2)), 1.0), make_world(2), environment=Grid()).near
    assert near.csr() is near.csr()


def test_an_old_neighbourhood_says_so() -> None:
    state, world, cells = make_state(np.zeros((3, 2)), 1.0), make_world(2), CellGrid()
    near = sensed(cells, state, world)
    sensed(cells, state, world)
    with pytest.raises(ModelError, match="earlier step"):
        near.csr()


@pytest.mark.parametrize("cell", [0.0, -1.0, np.nan, np.inf])
def test_impossible_cells_are_refused(cell: float) -> None:
    with pytest.raises(ParameterError, match="positive number"):
        Grid(cell=cell)
