"""The rounds of the contact solver and of giving way: from Python they do what the compiled loop does, bit for bit.

The hook at the end of a round is where processes will exchange what has changed, so nothing may be left out of it.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from tropel import World
from tropel._kernels.compile import threads_restored
from tropel.agents.state import AgentState, Steered
from tropel.broad_phase import CellGrid
from tropel.contact import giving_way, solver
from tropel.contact.bodies import Bodies
from tropel.contact.contacts import Contacts, find_contacts
from tropel.contact.giving_way import GivingWay
from tropel.contact.solver import SolverTable
from tropel.contracts.declarations import Moves
from two_threads import needs_two_threads

Floats = NDArray[np.float64]

KEY, STEP, DT = np.uint64(7), 12, 0.05
#: More than are shared out to threads.
MANY = 1500


class Jam:
    """A crowd that presses on its own middle. Some have been held for long, so that they fidget."""

    def __init__(self, count: int, dim: int = 2) -> None:
        generator = np.random.default_rng(3)
        side = round(count ** (1 / dim)) + 1
        lattice = np.stack(np.meshgrid(*[np.arange(side)] * dim, indexing="ij"), axis=-1).reshape(-1, dim)[:count]
        position = 1.0 + 0.402 * lattice + generator.uniform(-5e-4, 5e-4, (count, dim))
        self.state = AgentState(dim)
        self.state.add(count, {"position": position, "radius": 0.2})
        self.state.held[:] = generator.choice([0.0, 1.0], count)
        size = 2.0 + 0.402 * side
        self.world = World(bounds=(0, 0, size, size)) if dim == 2 else World.box((0, 0, 0), (size, size, size))
        inwards = position.mean(axis=0) - position
        away = np.linalg.norm(inwards, axis=1, keepdims=True)
        self.longest = 0.08
        self.wanted: Floats = position + inwards / away * generator.uniform(0.02, self.longest, (count, 1))

    def contacts(self, target: Floats) -> Contacts:
        solid = np.ones(len(self.state), dtype=bool)
        near = CellGrid.of(self.state, self.world)
        return find_contacts(near, self.state, target, solid, Moves.FREELY, widest=0.2, farthest=self.longest)

    def solve_contacts(self, drive: Any, at_round_end: Any = None) -> tuple[Floats, int]:
        """Where the pressed moves lead, and the number of rounds."""
        ends = self.wanted.copy()
        walls = self.world.wall_grid(1.0)
        rounds = drive(self.contacts(self.wanted), ends, walls, self.state.held, KEY, 1, self.longest, 1e-5,
                       at_round_end)  # fmt: skip
        return ends, rounds

    def give_way(self, drive: Any, at_round_end: Any = None) -> tuple[Floats, int]:
        """How far the wanted moves go when nothing is pressed, and the number of rounds."""
        ends, velocity = self.wanted.copy(), (self.wanted - self.state.position) / DT
        lengths = np.linalg.norm(ends - self.state.position, axis=1)
        shares = np.array([1.0, 0.5, 0.25, 0.0])
        rounds = drive(self.contacts(ends), np.full_like(ends, np.nan), ends, lengths, shares, velocity, KEY, STEP,
                       at_round_end)  # fmt: skip
        return np.hstack([ends, velocity]), rounds


@pytest.mark.parametrize(("count", "dim"), [(60, 2), (60, 3), (MANY, 2)])
@pytest.mark.parametrize("iteration", ["solve_contacts", "give_way"])
def test_a_hook_is_called_after_every_round_and_changes_nothing(iteration: str, count: int, dim: int) -> None:
    jam = Jam(count, dim)
    compiled = {"solve_contacts": solver.solve_contacts, "give_way": giving_way.give_way}[iteration]
    table = {"solve_contacts": SolverTable, "give_way": GivingWay}[iteration]
    ends, rounds = getattr(jam, iteration)(compiled)
    called = []

    def at_round_end(contacts: Any, working: Any) -> None:
        assert isinstance(contacts, Contacts)
        assert isinstance(working, table)
        called.append(working)

    again, counted = getattr(jam, iteration)(compiled.py_func, at_round_end)
    np.testing.assert_array_equal(again, ends)
    assert len(called) == counted == rounds > 2
    assert (ends[:, :dim] != jam.wanted).any()


@needs_two_threads
@pytest.mark.parametrize("iteration", ["solve_contacts", "give_way"])
def test_what_parallel_rounds_write_into_their_table_is_what_plain_loops_write(
    iteration: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Numba drops what a parallel loop writes through the attribute of a tuple, unless a function does it.
    jam = Jam(MANY)
    module = {"solve_contacts": solver, "give_way": giving_way}[iteration]
    drive = getattr(module, iteration)
    with threads_restored(2):
        ends, rounds = getattr(jam, iteration)(drive)
    name = {"solve_contacts": "contact_round", "give_way": "give_way_round"}[iteration]
    shared_out = []

    def plain(contacts: Any, *arguments: Any) -> int:
        shared_out.append(len(contacts.rows))
        return int(getattr(module, f"_{name}_of").py_func(contacts, *arguments))

    monkeypatch.setattr(module, f"_{name}_of", getattr(module, name), raising=False)
    monkeypatch.setattr(module, name, plain)
    again, counted = getattr(jam, iteration)(drive.py_func)
    np.testing.assert_array_equal(again, ends)
    assert counted == rounds
    assert max(shared_out) > 512


@pytest.mark.parametrize("threads", [1, pytest.param(2, marks=needs_two_threads)])
def test_solid_bodies_with_a_hook_move_to_the_same_bits(threads: int) -> None:
    jam, ends, calls = Jam(MANY), [], []
    with threads_restored(threads):
        for hook in (None, lambda contacts, table: calls.append(type(table).__name__)):
            near = CellGrid.of(jam.state, jam.world)
            bodies = Bodies(near, np.ones(MANY, dtype=bool), KEY, STEP, at_round_end=hook)
            steered = Steered.like(jam.state, ())
            steered.position[:] = bodies.solve_contacts(
                jam.state, jam.wanted, jam.longest, jam.world.wall_grid(1.0), DT
            )
            bodies.give_way(jam.state, steered)
            ends.append(steered.position.copy())
    np.testing.assert_array_equal(ends[0], ends[1])
    assert set(calls) == {"SolverTable", "GivingWay"}
    assert numba.get_num_threads() >= 1


def test_of_equal_draws_the_lower_id_goes_first_whatever_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(giving_way, "uniform", lambda *counter: 0.5)
    jam = Jam(2)
    contacts = jam.contacts(jam.wanted)._replace(id=np.array([9, 4]))
    assert giving_way._goes_first.py_func(1, 0, contacts, KEY, STEP)
    assert not giving_way._goes_first.py_func(0, 1, contacts, KEY, STEP)
