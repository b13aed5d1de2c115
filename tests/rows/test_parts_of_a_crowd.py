"""A crowd that is shared out: each part has its own rows first, in any order, and looks at the others behind them.

Whoever is moved here goes exactly where it would go if everybody were here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tropel
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment


def crowd(model: Any, dim: int, *, periodic: bool = False) -> tropel.Simulation:
    if dim == 2 and not periodic:
        world = tropel.World(
            [(0, 0), (12, 0), (12, 8), (0, 8)],
            obstacles={"pillar": tropel.Obstacle(radius=0.5, position=(6.0, 4.0))},
            targets={"there": (11.0, 4.0)},
        )
    else:
        world = tropel.World.box((0.0,) * dim, (8.0,) * dim, periodic=periodic, targets={"there": (7.0,) * dim})
    groups = [
        tropel.Group("a", count=70, goal="there", sense_radius=1.5, radius=0.1),
        tropel.Group("b", count=50, goal="none", sense_radius=1.5, radius=0.1),
    ]
    sim = tropel.Simulation(world, groups, local=model, dt=0.05, seed=2, threads=1)
    for _ in range(3):
        sim.step()
    return sim


def part(state: AgentState, own: np.ndarray, others: np.ndarray) -> AgentState:
    """The given rows, and behind them those of others."""
    mine = AgentState(state.dim, state.declared.values())
    mine.group_names = state.group_names
    mine.next_id = state.next_id
    mine.put_back({name: array[own] for name, array in state.columns.items()}, state.next_id)
    mine.look_at({name: array[others] for name, array in state.columns.items()})
    return mine


def steered(model: Any, sim: tropel.Simulation, state: AgentState) -> Steered:
    moment = sim.moment()
    there = Moment.of(
        state,
        sim.world,
        environment=tropel.Grid(cell=1.5),
        directions=moment.directions[moment.state.row_of(state.id)],
        members=np.arange(state.owned, dtype=np.int64),
        step=sim.step_number,
    )
    out = Steered.like(state, model.memory_names)
    model.steer(there, out)
    return out


@pytest.mark.parametrize(
    ("make", "dim", "periodic"),
    [
        (tropel.Seek, 2, False),
        (tropel.Seek, 3, False),
        (tropel.CollisionFreeSpeed, 2, False),
        (tropel.ORCA, 2, False),
        (tropel.SocialForce, 2, False),
        (tropel.Dynamical, 2, False),
        (tropel.Dynamical, 3, False),
        (tropel.Flocking, 2, True),
        (tropel.Flocking, 3, True),
        (lambda: tropel.Flocking(nearest=4, blind_angle=1.0), 2, True),
        (lambda: tropel.Flocking(avoid=["b"], flee=["a"], flee_radius=2.0), 2, True),
    ],
)
def test_two_parts_steer_like_the_whole(make: Any, dim: int, periodic: bool) -> None:
    model = make()
    sim = crowd(model, dim, periodic=periodic)
    state = sim.agents
    whole = steered(model, sim, state)
    rng = np.random.default_rng(dim)
    order = rng.permutation(len(state))
    half = len(order) // 2
    for own, others in ((order[:half], order[half:]), (order[half:], order[:half])):
        mine = part(state, own, others)
        out = steered(model, sim, mine)
        for name in ("velocity", "heading"):
            ours, theirs = getattr(out, name)[: mine.owned], getattr(whole, name)[own]
            assert np.array_equal(ours, theirs), name
        for name in model.memory_names:
            assert np.array_equal(out.memory[name][: mine.owned], whole.memory[name][own]), name
    assert np.abs(whole.velocity).max() > 0.0


def test_agents_of_a_cell_are_in_the_order_of_their_ids_whatever_their_rows() -> None:
    sim = crowd(tropel.Seek(), 2)
    order = np.random.default_rng(0).permutation(len(sim.agents))
    mine = part(sim.agents, order, order[:0])
    cells = Moment.of(mine, sim.world, environment=tropel.Grid(cell=3.0)).cells.cell_list
    straight = Moment.of(sim.agents, sim.world, environment=tropel.Grid(cell=3.0)).cells.cell_list
    assert np.array_equal(mine.id[cells.order], sim.agents.id[straight.order])
    assert np.array_equal(cells.position, straight.position)
