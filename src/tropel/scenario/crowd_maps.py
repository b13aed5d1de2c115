"""The hall of CROWD's figures on any number of cells, its flow fields, and value iteration to compare them with."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.planning.flow_layer import MOVES, FlowLayer

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]

#: Shares of the map's side: where the hall begins, and how far its outer doors are from the middle ones.
_HALL, _DOORS_APART, _DOOR = 0.25, 0.155, 0.08


def six_door_hall(size: int, *, wall: int = 1) -> Bools:
    """Free cells of a square with a blocked rim and a hall in it that has three doors to the east and to the west."""
    if size < 30:
        raise ParameterError(f"a hall with six doors needs a map of at least 30 cells, not {size}")
    free = np.ones((size, size), dtype=np.bool_)
    free[[0, -1]] = free[:, [0, -1]] = False
    begin = round(_HALL * size)
    end, middle, door = size - begin, (size - 1) / 2, max(round(_DOOR * size), 3)
    inner = slice(begin + wall, end - wall)
    hall = np.zeros_like(free)
    hall[begin:end, begin:end] = True
    hall[inner, inner] = False
    rows = np.arange(size)
    for centre in (middle, middle - _DOORS_APART * size, middle + _DOORS_APART * size):
        through = np.abs(rows - centre) < door / 2
        hall[through, begin : begin + wall] = hall[through, end - wall : end] = False
    return free & ~hall


def corner_goals(size: int) -> list[Bools]:
    """A goal cell in each corner: south west, south east, north west, north east."""
    goals = []
    for row, column in ((1, 1), (1, size - 2), (size - 2, 1), (size - 2, size - 2)):
        goal = np.zeros((size, size), dtype=np.bool_)
        goal[row, column] = True
        goals.append(goal)
    return goals


def best_moves(layer: FlowLayer) -> NDArray[np.int64]:
    """Every move (row, column, dx, dy) to a neighbour that is worth most; agents draw among those of their cell."""
    units = np.where(np.isfinite(layer.distance), layer.units, np.iinfo(np.int64).max)
    beside = np.full((8, *units.shape), np.iinfo(np.int64).max)
    for move, (dx, dy) in enumerate(MOVES.tolist()):
        rows, columns = np.nonzero((layer.moves >> move) & 1)
        beside[move, rows, columns] = units[rows + dy, columns + dx]
    best = (beside == beside.min(axis=0)) & np.isfinite(layer.distance) & ~layer.goal
    which, row, column = np.nonzero(best)
    return np.concatenate([np.stack([row, column], axis=1), MOVES[which]], axis=1)


def value_iteration(free: Bools, goal: Bools, *, gamma: float, equal_moves: bool = False) -> tuple[Floats, int]:
    """V of every cell by sweeps over all cells until none changes (Algorithm 1 of the paper), and how many it took."""
    value = np.zeros(free.shape)
    value[goal & free] = 1.0
    moves = _allowed_moves(free, equal_moves)
    sweeps = 0
    while True:
        new = value.copy()
        for here, there, allowed, time in moves:
            np.maximum(new[here], np.where(allowed, gamma**time * value[there], 0.0), out=new[here])
        sweeps += 1
        if np.array_equal(new, value):
            return value, sweeps
        value = new


def _allowed_moves(
    free: Bools, equal_moves: bool
) -> Sequence[tuple[tuple[slice, slice], tuple[slice, slice], Bools, float]]:
    """For each move: the cells it may begin at, those it ends at, whether it is allowed there, and its time."""
    ny, nx = free.shape
    moves = []
    for dx, dy in MOVES.tolist():
        here = (slice(max(-dy, 0), ny - max(dy, 0)), slice(max(-dx, 0), nx - max(dx, 0)))
        there = (slice(max(dy, 0), ny + min(dy, 0)), slice(max(dx, 0), nx + min(dx, 0)))
        allowed = free[here] & free[there]
        if dx and dy:
            allowed &= free[here[0], there[1]] & free[there[0], here[1]]
        moves.append((here, there, allowed, 1.0 if equal_moves else math.hypot(dx, dy)))
    return moves
