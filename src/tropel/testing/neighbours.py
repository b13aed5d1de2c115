"""The promises of an environment: exactly those who are near, in one order, whatever was sensed before."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import threads_restored
from tropel.agents.groups import Group
from tropel.agents.sources import Source
from tropel.agents.state import AgentState, Floats
from tropel.arguments import checked_arguments
from tropel.broad_phase import CellGrid
from tropel.contracts import Environment, Moment, Near, Rows
from tropel.errors import ParameterError
from tropel.simulation import Simulation
from tropel.testing.moments import Maker, Situation, maker, near_arrays, with_columns
from tropel.testing.near_lists import check_cells, check_lists
from tropel.testing.scenes import Scene, scenes
from tropel.testing.shared import check_inputs, check_resumes, stored_state, thread_counts
from tropel.testing.violation import Arrays, Case, bit_difference, copied, row_of
from tropel.world import World

_DT = 0.05
_ROWS_AT_ONCE = 256
_THREADED_CALLS = 3
#: Agents where threads are compared: environments may share out work in blocks of thousands.
_LARGE = 10_000

Rule = Callable[[AgentState, Rows], NDArray[np.bool_]]


def within_sense_radius(state: AgentState, rows: Rows) -> NDArray[np.bool_]:
    """Who is near whom: a row of booleans, one for each agent, for each of `rows`."""
    apart2 = np.zeros((len(rows), len(state)))
    for axis in range(state.dim):
        apart2 += (state.position[rows, axis][:, None] - state.position[None, :, axis]) ** 2
    near = apart2 <= (state.sense_radius[rows] ** 2)[:, None]
    near[np.arange(len(rows)), rows] = False
    return near


@checked_arguments
def check_neighbours(
    environment: Any,
    *,
    world: World | None = None,
    agents: Iterable[Group | Source] | Group | None = None,
    dims: Sequence[int] = (2, 3),
    rule: Rule = within_sense_radius,
    seed: int = 0,
) -> None:
    """Raise `ContractViolation` unless an environment keeps the promises of `tropel.Environment`.

    `near.csr()` holds exactly the neighbours that brute force finds, in the order of cells and ids; walls and obstacles
    likewise; whoever comes, leaves, clumps together, stands outside the bounds or on top of others. Nothing that is
    given is changed, and the bits are the same again, on any number of threads and after a resume.

    `environment` is an environment, or a class or function that makes one. `rule` replaces "within the sense radius"
    for environments with another idea of who is near: it is given the state and some rows, and returns a boolean for
    each of those rows and each agent. `dims`, `world` and `agents` as in `check_planner`.
    """
    if world is not None and world.is_periodic:
        raise ParameterError(
            "check_neighbours puts agents outside of the world and lets some sense everything, which no periodic world "
            "allows; give it a world that is not periodic"
        )
    make = maker(environment, Environment)
    name = type(make()).__name__
    for scene in scenes(world=world, agents=agents, dims=dims):
        case = Case(layer=name, method="sense", scene=scene.name)
        build = functools.partial(_simulation, scene, make, seed)
        with case.runs():
            start = Situation.of(build(), make_environment=make)
        _check_changing_crowd(case, start, rule)
        _check_purity(case, start)
        check_resumes(case, build, lambda sim: sim.environment)
    for scene in scenes(world=world, agents=agents, dims=dims, crowd=True):
        case = Case(layer=name, method="sense", scene=scene.name)
        sim = _simulation(scene, make, seed)
        state = _multiplied(sim.agents, sim.world.bounds, seed) if scene.built_in else sim.agents
        _check_threads(case, make, state, sim.world)


def _simulation(scene: Scene, make: Maker, seed: int) -> Simulation:
    return scene.simulation(seed=seed, dt=_DT, environment=make())


def _check_changing_crowd(case: Case, start: Situation, rule: Rule) -> None:
    """One environment sees the crowd change; each time it must know exactly who is near."""
    world = start.world
    with case.runs():
        environment: Environment = start.prepared(start.make_environment)
        cells = _cells(environment, start.state, world)
    for what, state in _crowds(start.state, world, start.seed):
        here = case.where(what)
        moment = replace(start, state=state, near=None)
        given = copied(moment.inputs())
        with here.runs():
            cells.begin(state, world)
            near = environment.sense(Moment.of(state, world, cells=cells))
        if not isinstance(near, Near):
            here.broken("sense returns a Near", f"it returned {type(near).__name__}", "extend tropel.contracts.Near")
        check_lists(here, near, state, world)
        check_cells(here, near, state)
        _check_against(here, near, state, rule)
        check_inputs(here, moment, given)


def _crowds(state: AgentState, world: World, seed: int) -> list[tuple[str, AgentState]]:
    """The same agents in many situations, one after the other."""
    count = len(state)
    draws = np.random.default_rng(seed)
    low, high = world.bounds
    rows = np.arange(count)
    odd = with_columns(state, state.columns)
    odd.position[::3] = odd.position[rows[::3] // 9 * 9]
    odd.position[1::7] += 2.0 * (high - low) * draws.choice([-1.0, 1.0], size=odd.position[1::7].shape)
    odd.sense_radius[::5] = 0.0
    odd.sense_radius[2::11] = 3.0 * float(np.linalg.norm(high - low))
    clumped = with_columns(state, state.columns)
    clumped.position[:] = (low + high) / 2.0 + draws.normal(scale=0.3, size=clumped.position.shape)
    fewer = with_columns(state, {name: array[rows % 4 != 0] for name, array in state.columns.items()})
    one = with_columns(state, {name: array[:1] for name, array in state.columns.items()})
    nobody = with_columns(state, {name: array[:0] for name, array in state.columns.items()})
    return [
        ("as it begins", state),
        ("everybody clumped together", clumped),
        ("some outside, some at one point, some who sense nothing or everything", odd),
        ("after some have left", fewer),
        ("with one agent", one),
        ("without agents", nobody),
        ("after all are back", state),
    ]


def _check_against(case: Case, near: Any, state: AgentState, rule: Rule) -> None:
    indptr, indices = near.csr()
    for first in range(0, len(state), _ROWS_AT_ONCE):
        rows = np.arange(first, min(first + _ROWS_AT_ONCE, len(state)), dtype=np.int64)
        expected = rule(state, rows)
        for k, row in enumerate(rows):
            found = np.sort(indices[indptr[row] : indptr[row + 1]].astype(np.int64))
            wanted = np.flatnonzero(expected[k])
            if not np.array_equal(found, wanted):
                missing, wrong = np.setdiff1d(wanted, found), np.setdiff1d(found, wanted)
                what = [f"{row_of(state, int(j))} is missing" for j in missing[:1]]
                what += [f"{row_of(state, int(j))} is listed wrongly" for j in wrong[:1]]
                what = what or ["somebody is listed twice"]
                case.broken(
                    "csr() lists exactly those who are near",
                    f"for {row_of(state, int(row))} {' and '.join(what)} ({len(wanted)} are near, {len(found)} listed)",
                    "compare squared distances with the squared sense radius of the agent that senses, and pad the "
                    "search against rounding",
                )


def _check_purity(case: Case, start: Situation) -> None:
    """The same state gives the same bits, and a restored environment goes on in the same order."""
    with case.runs():
        environment: Environment = start.prepared(start.make_environment)
        cells = _cells(environment, start.state, start.world)
        first = _sensed(environment, start.state, start.world, cells)
        stored = stored_state(case, environment)
        later = start.taking(np.arange(1, len(start.state), 2)).state
        going_on = _sensed(environment, later, start.world, cells)
        again = _sensed(environment, start.state, start.world, cells)
        other: Environment = start.prepared(start.make_environment)
        other.restore(stored)
        resumed = _sensed(other, later, start.world, cells)
    _demand_same(case, first, again, "sensed again")
    _demand_same(case, going_on, resumed, "sensed after restore(state())")


def _check_threads(case: Case, make: Maker, state: AgentState, world: World) -> None:
    for count in thread_counts(case):
        with case.runs(), threads_restored(1):
            alone = _sensed(make(), state, world)
        for _ in range(_THREADED_CALLS):
            with case.runs(), threads_restored(count):
                together = _sensed(make(), state, world)
            _demand_same(case, alone, together, f"sensed on {count} threads instead of 1")


def _multiplied(state: AgentState, bounds: Floats, seed: int) -> AgentState:
    """A crowd so large that work is really shared out, spread evenly over the bounds."""
    times = -(-_LARGE // max(len(state), 1))
    many = with_columns(state, {name: np.concatenate([array] * times) for name, array in state.columns.items()})
    many.columns["id"] = np.arange(len(many), dtype=np.int64)
    many.position[:] = np.random.default_rng(seed).uniform(bounds[0], bounds[1], size=many.position.shape)
    return many


def _cells(environment: Environment, state: AgentState, world: World) -> CellGrid:
    """What the engine sorts agents into."""
    return CellGrid.of(state, world, cell=environment.declares.cell)


def _sensed(
    environment: Environment, state: AgentState, world: World, cells: CellGrid | None = None
) -> dict[str, NDArray[Any]]:
    cells = _cells(environment, state, world) if cells is None else cells
    cells.begin(state, world)
    return copied(near_arrays(environment.sense(Moment.of(state, world, cells=cells))))


def _demand_same(case: Case, before: Arrays, after: Arrays, when: str) -> None:
    difference = bit_difference(before, after)
    if difference is not None:
        case.broken(
            "the same agents give the same lists in the same order",
            f"{when}, {difference.told()}",
            "let the order depend on the bounds of the world, on what state() keeps and on the rows, never on what "
            "was sensed before or on the threads",
        )
