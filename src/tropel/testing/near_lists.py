"""What a `Near` holds, compared with plain NumPy: lists of walls and obstacles, and the cells that give the order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.csr import Csr
from tropel._kernels.neighbours import Neighbours
from tropel.agents.state import AgentState, Floats
from tropel.contracts import Near
from tropel.testing.violation import Case, row_of
from tropel.world import World

_ROWS_AT_ONCE = 256
#: Distances are compared up to this share; whoever stands that exactly at the limit may be listed or not.
_EDGE = 1e-9


def check_lists(case: Case, near: Near, state: AgentState, world: World) -> None:
    """All lists are well-formed; those of walls and obstacles are right."""
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
        how = f"indices run from {indices.min()} to {indices.max()}, and there are {limit}"
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
                "take distances to the nearest point, and leave out open doors",
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
    """Cells hold everybody once, in the order of ids, with true copies; lists of neighbours follow that order."""
    cells = near.neighbours()
    order = np.asarray(cells.order).astype(np.int64)
    promise, count = "cells hold everybody once", len(state)
    if not np.array_equal(np.sort(order), np.arange(count)):
        case.broken(promise, f"cells.order is no permutation of the {count} rows", "enter every row into one cell")
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
            "number cells row by row, x fastest; who is outside belongs to the nearest border cell",
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
    """What kernels walk is what the lists say, and oneself, with true copies of what is known of them."""
    for row in range(len(state)):
        entries = slice(int(cells.list_start[row]), int(cells.list_start[row + 1]))
        met = cells.met[entries].astype(np.int64)
        listed = lists.indices[lists.indptr[row] : lists.indptr[row + 1]].astype(np.int64)
        if not np.array_equal(met[met != row], listed) or np.count_nonzero(met == row) != 1:
            case.broken(
                "neighbours() has an entry for each in the list of a row, and one for oneself",
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
