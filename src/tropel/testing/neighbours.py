"""The promises of an environment: exactly the agents that are near, in a fixed order, whatever was sensed before.

First the checks of what a `Near` holds, compared with plain NumPy: lists of walls and obstacles, and the cells that
give the order. Then `check_neighbours`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import Csr
from tropel._kernels.compile import threads_restored
from tropel._kernels.neighbours import Neighbours
from tropel.agents.groups import Group, Source
from tropel.agents.state import AgentState, Floats
from tropel.broad_phase import CellGrid
from tropel.contracts import Environment, Moment, Near, Rows
from tropel.errors import ParameterError
from tropel.foundation.arguments import checked_arguments
from tropel.simulation import Simulation
from tropel.testing.shared import check_inputs, check_resumes, stored_state, thread_counts
from tropel.testing.situations import CheckScene, Maker, Situation, maker, near_arrays, scenes, with_columns
from tropel.testing.violation import Arrays, Case, bit_difference, copied, row_of
from tropel.world import World

_ROWS_AT_ONCE = 256
#: Displays ask for single agents; one in so many is asked for here.
_EVERY = 7
#: Distances are compared up to this share; an agent or thing this close to the limit may be listed or not.
_EDGE = 1e-9


def check_lists(case: Case, near: Near, state: AgentState, world: World) -> None:
    """Check that all lists are well-formed, and that those of walls and obstacles are right."""
    for kind, limit in (
        ("csr", len(state)),
        ("walls_csr", len(world.segments)),
        ("obstacles_csr", len(world.obstacles)),
    ):
        _check_form(case, kind, getattr(near, kind)(), len(state), limit)
    for first in range(0, len(state), _ROWS_AT_ONCE):
        rows = np.arange(first, min(first + _ROWS_AT_ONCE, len(state)))
        if world.dim == 2:
            blocking = world.blocking > 0
            away = np.where(blocking, _from_segments(state.position[rows], world.segments), np.inf)
            _check_distances(case, "walls_csr", near.walls_csr(), rows, away, state.sense_radius[rows], state)
        gaps = state.position[rows][:, None, :] - world.obstacles.position[None, :, :]
        away = np.linalg.norm(gaps, axis=2) - world.obstacles.radius[None, :]
        _check_distances(case, "obstacles_csr", near.obstacles_csr(), rows, away, state.sense_radius[rows], state)


def _check_form(case: Case, kind: str, lists: Any, count: int, limit: int) -> None:
    indptr, indices = (np.asarray(part) for part in lists)
    how = None
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        how = f"they are {indptr.dtype} and {indices.dtype}, not integers"
    elif indptr.shape != (count + 1,):
        how = f"indptr has the shape {indptr.shape}, not ({count + 1},) for {count} agents"
    elif indptr[0] != 0 or indptr[-1] != len(indices) or (np.diff(indptr.astype(np.int64)) < 0).any():
        how = f"indptr does not rise from 0 to the number of indices, {len(indices)}"
    elif len(indices) and not (indices.min() >= 0 and indices.max() < limit):
        how = f"indices run from {indices.min()} to {indices.max()}, but there are only {limit}"
    if how is not None:
        case.broken(
            f"{kind}() is a pair (indptr, indices)", how, "the list of row i is indices[indptr[i] : indptr[i + 1]]"
        )


def _check_distances(
    case: Case,
    kind: str,
    lists: Any,
    rows: NDArray[np.int64],
    away: Floats,
    radius: Floats,
    state: AgentState,
) -> None:
    indptr, indices = lists
    sure = away <= radius[:, None] * (1.0 - _EDGE) - 1e-12
    possible = away <= radius[:, None] * (1.0 + _EDGE) + 1e-12
    for k, row in enumerate(rows):
        found = indices[indptr[row] : indptr[row + 1]].astype(np.int64)
        listed = np.zeros(away.shape[1], dtype=bool)
        listed[found] = True
        wrong = np.flatnonzero((sure[k] & ~listed) | (listed & ~possible[k]))
        what = "wall" if kind == "walls_csr" else "obstacle"
        if len(wrong):
            number = int(wrong[0])
            case.broken(
                f"{kind}() lists the {what}s within the sense radius",
                f"for {row_of(state, int(row))} {what} {number}, {away[k, number]:.4g} m away, is "
                f"{'listed' if listed[number] else 'missing'} with a sense radius of {radius[k]:.4g} m",
                "use distances to the nearest point, and leave out open doors",
            )
        if (np.diff(found) <= 0).any():
            case.broken(f"{kind}() is ascending", f"that of {row_of(state, int(row))} is not", "sort it")


def _from_segments(points: Floats, segments: Floats) -> Floats:
    """Distances of points from segments, (points, segments)."""
    start, along = segments[None, :, :2], segments[None, :, 2:] - segments[None, :, :2]
    length2 = (along**2).sum(axis=2)
    share = ((points[:, None, :] - start) * along).sum(axis=2) / np.where(length2 > 0.0, length2, 1.0)
    nearest = start + np.clip(share, 0.0, 1.0)[:, :, None] * along
    return np.asarray(np.linalg.norm(points[:, None, :] - nearest, axis=2))


def check_cells(case: Case, near: Near, state: AgentState) -> None:
    """Check that cells hold all agents once, in the order of ids, with true copies, and that lists follow it."""
    cells = near.neighbours()
    order = np.asarray(cells.order).astype(np.int64)
    promise, count = "cells hold every agent once", len(state)
    if not np.array_equal(np.sort(order), np.arange(count)):
        case.broken(promise, f"cells.order is not a permutation of the {count} rows", "enter every row into one cell")
    expected = _cell_numbers(cells, state.position)
    start = np.asarray(cells.cell_start).astype(np.int64)
    if len(start) != int(np.prod(cells.shape)) + 1 or start[0] != 0 or start[-1] != count or (np.diff(start) < 0).any():
        case.broken(promise, "cells.cell_start does not rise from 0 to the number of agents", "count again")
    listed = np.repeat(np.arange(len(start) - 1), np.diff(start))
    for slot in np.flatnonzero(listed != expected[order])[:1]:
        row = int(order[slot])
        case.broken(
            "an agent is in the cell of its position",
            f"{row_of(state, row)} is in cell {listed[slot]}, not {expected[row]}",
            "number cells row by row, x fastest; an agent outside belongs to the nearest border cell",
        )
    for slot in np.flatnonzero((np.diff(state.id[order]) <= 0) & (np.diff(listed) == 0))[:1]:
        case.broken(
            "agents of a cell are in the order of their ids",
            f"{row_of(state, int(order[slot + 1]))} comes after {row_of(state, int(order[slot]))}",
            "sort stably",
        )
    for name in ("position", "velocity", "radius", "sense_radius", "group"):
        # Vectors are stored with one row per axis.
        if not np.array_equal(np.asarray(getattr(cells, name)), state.columns[name][order].T):
            case.broken(f"cells.{name} is a sorted copy of state.{name}", "it differs", f"copy state.{name}[order].T")
    _check_canonical(case, near.csr(), order, state)
    if len(cells.list_start):
        _check_table(case, near.csr(), cells, state)


def _check_table(case: Case, lists: Csr, cells: Neighbours, state: AgentState) -> None:
    """Check that what kernels walk matches the lists, plus the agent itself, with true copies of its columns."""
    for row in range(len(state)):
        entries = slice(int(cells.list_start[row]), int(cells.list_start[row + 1]))
        met = cells.met[entries].astype(np.int64)
        listed = lists.indices[lists.indptr[row] : lists.indptr[row + 1]].astype(np.int64)
        if not np.array_equal(met[met != row], listed) or np.count_nonzero(met == row) != 1:
            case.broken(
                "neighbours() has one entry per neighbour in the list of a row, and one for the agent itself",
                f"that of {row_of(state, row)} has {len(met)} for a list of {len(listed)}",
                "make it with tropel.contracts.near.table_of_lists",
            )
    for name in ("position", "velocity", "radius", "group"):
        if not np.array_equal(getattr(cells, f"met_{name}"), state.columns[name][cells.met].T):
            case.broken(f"neighbours().met_{name} is a copy of state.{name}", "it differs", f"copy state.{name}[met].T")


def _check_canonical(case: Case, lists: Any, order: NDArray[np.int64], state: AgentState) -> None:
    indptr, indices = (np.asarray(part).astype(np.int64) for part in lists)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    of_row = np.repeat(np.arange(len(order)), np.diff(indptr))
    for k in np.flatnonzero((np.diff(rank[indices]) <= 0) & (np.diff(of_row) == 0))[:1]:
        case.broken(
            "csr() lists neighbours by cell, then by id, each once",
            f"for {row_of(state, int(of_row[k]))} {row_of(state, int(indices[k + 1]))} comes after "
            f"{row_of(state, int(indices[k]))}",
            "list them in the order of cells.order",
        )


def _cell_numbers(cells: Any, position: Floats) -> NDArray[np.int64]:
    number = np.zeros(len(position), dtype=np.int64)
    stride = 1
    for axis in range(position.shape[1]):
        along = np.clip((position[:, axis] - cells.origin[axis]) * cells.inverse_cell, 0.0, cells.shape[axis] - 1.0)
        number += along.astype(np.int64) * stride
        stride *= int(cells.shape[axis])
    return number


_DT = 0.05
_THREADED_CALLS = 3
#: Agents in the comparison of threads: environments may share out work in blocks of thousands.
_LARGE = 10_000

Rule = Callable[[AgentState, Rows], NDArray[np.bool_]]


def within_sense_radius(state: AgentState, rows: Rows) -> NDArray[np.bool_]:
    """Which agents are near: for each of `rows`, one boolean per agent."""
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
    likewise. That holds when agents come, leave, clump together, stand outside the bounds or on top of each other.
    Inputs are not changed, and the bits are the same again, on any number of threads and after a resume.

    `environment` is an environment, or a class or function that makes one. `rule` replaces "within the sense radius"
    for environments with another definition of near: it gets the state and some rows, and returns one boolean for each
    of those rows and each agent. `dims`, `world` and `agents` as in `check_planner`.
    """
    if world is not None and world.is_periodic:
        raise ParameterError(
            "check_neighbours puts agents outside the world and lets some sense everything, which a periodic world "
            "does not allow; give it a world that is not periodic"
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


def _simulation(scene: CheckScene, make: Maker, seed: int) -> Simulation:
    return scene.simulation(seed=seed, dt=_DT, environment=make())


def _check_changing_crowd(case: Case, start: Situation, rule: Rule) -> None:
    """One environment sees the crowd change; each time it must list exactly the agents that are near."""
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
        _check_known_to(here, environment, near, state, world)
        check_inputs(here, moment, given)


def _crowds(state: AgentState, world: World, seed: int) -> list[tuple[str, AgentState]]:
    """The same agents in many situations, one after another."""
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
        ("at the start", state),
        ("all agents clumped together", clumped),
        ("some outside, some at one point, some that sense nothing or everything", odd),
        ("after some have left", fewer),
        ("with one agent", one),
        ("without agents", nobody),
        ("after all are back", state),
    ]


def _check_known_to(case: Case, environment: Environment, near: Any, state: AgentState, world: World) -> None:
    """Displays ask for one agent what models get for all."""
    indptr, indices = near.csr()
    for row in range(0, len(state), _EVERY):
        with case.runs():
            known = environment.known_to(row, state, world)
        if not np.array_equal(known, np.sort(indices[indptr[row] : indptr[row + 1]])):
            case.broken(
                "known_to returns the rows that csr() lists, ascending",
                f"{row_of(state, row)} has other neighbours in the one than in the other",
                "override known_to if agents do not know of everybody within their sense radius",
            )


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
                what = what or ["an agent is listed twice"]
                case.broken(
                    "csr() lists exactly the agents that are near",
                    f"for {row_of(state, int(row))} {' and '.join(what)} ({len(wanted)} are near, {len(found)} listed)",
                    "compare squared distances with the squared sense radius of the agent that senses, and pad the "
                    "search against rounding",
                )


def _check_purity(case: Case, start: Situation) -> None:
    """The same state gives the same bits, and a restored environment continues in the same order."""
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
    """A crowd large enough that work is really shared out, spread evenly over the bounds."""
    times = -(-_LARGE // max(len(state), 1))
    many = with_columns(state, {name: np.concatenate([array] * times) for name, array in state.columns.items()})
    many.columns["id"] = np.arange(len(many), dtype=np.int64)
    many.position[:] = np.random.default_rng(seed).uniform(bounds[0], bounds[1], size=many.position.shape)
    return many


def _cells(environment: Environment, state: AgentState, world: World) -> CellGrid:
    """The cells that the engine sorts agents into."""
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
            "let the order depend on the bounds of the world, on what state() stores and on the rows, never on what "
            "was sensed before or on the threads",
        )
