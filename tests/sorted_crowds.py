"""Who is near whom, in plain NumPy and in the order of cells; and what the engine finds."""

from __future__ import annotations

import itertools

import numpy as np

from tropel.agents.state import AgentState
from tropel.broad_phase import CellGrid
from tropel.contracts import Moment, Near
from tropel.environment import Grid
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


def sensed(cells: CellGrid, state: AgentState, world: World) -> Near:
    """Who is near now, in cells that are kept from call to call."""
    cells.begin(state, world)
    return Grid().sense(Moment.of(state, world, cells=cells))


def canonical_order(state: AgentState, cells: CellGrid) -> np.ndarray:
    """Rows by cell, row-major with x fastest, then by id."""
    stored = cells.state()
    low, high = stored["box"]
    counts = np.maximum(np.ceil((high - low) / stored["cell"]), 1)
    numbers = np.clip(np.floor((state.position - low) * (1.0 / stored["cell"])), 0, counts - 1)
    return np.lexsort((state.id, *numbers.T))


def brute_force(state: AgentState, cells: CellGrid) -> list[list[int]]:
    gaps = state.position[:, None, :] - state.position[None, :, :]
    with np.errstate(over="ignore"):
        away2 = gaps[..., 0] * gaps[..., 0] + gaps[..., 1] * gaps[..., 1]
        if state.dim == 3:
            away2 = away2 + gaps[..., 2] * gaps[..., 2]
        near = away2 <= (state.sense_radius * state.sense_radius)[:, None]
    np.fill_diagonal(near, False)
    order = canonical_order(state, cells)
    return [order[near[i, order]].tolist() for i in range(len(state))]


def lists_of(csr: tuple[np.ndarray, np.ndarray]) -> list[list[int]]:
    indptr, indices = csr
    assert indptr[-1] == len(indices)
    return [indices[a:b].tolist() for a, b in itertools.pairwise(indptr)]
