"""The cells follow a crowd that flies off into open space."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.spatial import cKDTree

from sorted_crowds import sensed
from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.errors import ModelError
from tropel.world import World


def make_state(position: np.ndarray) -> AgentState:
    state = AgentState(position.shape[1])
    state.add(len(position), {"position": position, "sense_radius": 1.0})
    return state


def check_complete(cells: CellGrid, state: AgentState, world: World) -> int:
    """Compare with a tree; returns how many agents the fullest cell holds."""
    near = sensed(cells, state, world)
    wanted = [
        sorted(set(row) - {k}) for k, row in enumerate(cKDTree(state.position).query_ball_point(state.position, 1))
    ]
    indptr, indices = near.csr()
    assert [sorted(indices[a:b].tolist()) for a, b in itertools.pairwise(indptr)] == wanted
    return int(np.diff(near.cells.cell_list.cell_start).max())


@pytest.mark.parametrize("dim", [2, 3])
def test_cells_are_where_the_crowd_is_wherever_it_goes(dim: int) -> None:
    rng = np.random.default_rng(1)
    world, cells = World.box([0.0] * dim, [20.0] * dim, open=True), CellGrid()
    state = make_state(rng.uniform(0.0, 20.0, (2000, dim)))
    fullest = check_complete(cells, state, world)
    for far in (30.0, 1e3, 1e6, -1e9):
        state.position[:] = rng.uniform(0.0, 20.0, (2000, dim)) + far
        # A few are far from all others, as far as numbers go.
        state.position[:3] = rng.choice([-1e12, 1e12], (3, dim))
        assert check_complete(cells, state, world) <= 3 * fullest + 3
        assert np.prod(cells.state()["box"][1] - cells.state()["box"][0]) < 4**dim * 20.0**dim


def test_the_cells_that_followed_are_those_of_a_resumed_run() -> None:
    rng = np.random.default_rng(2)
    world, cells = World.box([0.0] * 2, [20.0] * 2, open=True), CellGrid()
    state = make_state(rng.uniform(50.0, 80.0, (2000, 2)))
    sensed(cells, state, world)
    resumed = CellGrid()
    resumed.restore(cells.state())
    state.position += 1.0
    expected = [array.tolist() for array in sensed(cells, state, world).csr()]
    assert [array.tolist() for array in sensed(resumed, state, world).csr()] == expected


def test_a_position_that_is_not_finite_is_an_error() -> None:
    world = World.box([0.0] * 3, [20.0] * 3, open=True)
    state = make_state(np.full((2000, 3), 100.0))
    state.position[1234, 1] = np.inf
    with pytest.raises(ModelError, match="agent 1234 is at"):
        CellGrid.of(state, world).sorting  # noqa: B018
