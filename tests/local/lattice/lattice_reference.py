"""The lattice crowd in plain Python, slowly: ways, worth of cells, and what one step may and must do.

Written from the paper's equations and the issue's rules; nothing here knows the package's kernels.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

Cell = tuple[int, int]  # row, column
MOVES = [(dy, dx) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0)]
ALMOST = 1e-9


@dataclass(kw_only=True)
class PlainFilter:
    """A sub-layer: ordinary factors of the cells it speaks about, 0 vetoes."""

    factor: Mapping[Cell, float]
    group: int | None = None
    spares_inside: bool = False

    def log_worth(self, here: Cell, there: Cell, group: int) -> float:
        if self.group is not None and self.group != group:
            return 0.0
        if self.spares_inside and self.factor.get(here, 1.0) == 0.0:
            return 0.0
        factor = self.factor.get(there, 1.0)
        return math.log(factor) if factor > 0.0 else -math.inf


@dataclass(kw_only=True)
class PlainLattice:
    """A map, the ways on it, and the rules."""

    free: np.ndarray
    goals: Mapping[int, Iterable[Cell]]
    gamma: float
    separation: float
    cell: float
    filters: Sequence[PlainFilter] = ()
    headway: float = 0.0
    free_part: float = 0.0  #: of a blocked cell, on the side of a free neighbour; nothing lies beyond the map
    ways: dict[int, dict[Cell, float]] = field(init=False)

    def __post_init__(self) -> None:
        self.ways = {goal: self._ways(cells) for goal, cells in self.goals.items()}

    def inside(self, cell: Cell) -> bool:
        rows, columns = self.free.shape
        return 0 <= cell[0] < rows and 0 <= cell[1] < columns and bool(self.free[cell])

    def neighbours(self, cell: Cell) -> list[Cell]:
        """Where one move leads: no diagonal one past a blocked cell."""
        y, x = cell
        if not self.inside(cell):
            return []
        return [
            (y + dy, x + dx)
            for dy, dx in MOVES
            if self.inside((y + dy, x + dx)) and self.inside((y + dy, x)) and self.inside((y, x + dx))
        ]

    def _ways(self, goal: Iterable[Cell]) -> dict[Cell, float]:
        ways = {cell: 0.0 for cell in goal if self.inside(cell)}
        queue = [(0.0, cell) for cell in ways]
        while queue:
            length, cell = heapq.heappop(queue)
            if length > ways[cell]:
                continue
            for there in self.neighbours(cell):
                longer = length + math.dist(cell, there)
                if longer < ways.get(there, math.inf):
                    ways[there] = longer
                    heapq.heappush(queue, (longer, there))
        return ways

    def _across(self, cell: Cell, dy: int, dx: int) -> tuple[int, float]:
        """Free cells in a row through a cell, and its true width in cells."""
        count, width = 1, 1.0
        for sign in (-1, 1):
            y, x = cell[0] + sign * dy, cell[1] + sign * dx
            while self.inside((y, x)):
                count, width, y, x = count + 1, width + 1.0, y + sign * dy, x + sign * dx
            if 0 <= y < self.free.shape[0] and 0 <= x < self.free.shape[1]:
                width += self.free_part
        return count, width

    def _own_share(self, cell: Cell) -> tuple[float, int, bool]:
        """The narrower passage through a cell: true width per free cell, those cells, whether it leads along y."""
        (along_x, wide_x), (along_y, wide_y) = self._across(cell, 0, 1), self._across(cell, 1, 0)
        if along_x == along_y:
            return min(wide_x / along_x, wide_y / along_y), along_x, False
        return (wide_x / along_x, along_x, True) if along_x < along_y else (wide_y / along_y, along_y, False)

    def seconds_closed(self, cell: Cell) -> float:
        """How long a cell stays empty after somebody has left it."""
        share, own_cells, _ = self._own_share(cell)
        for dy, dx in ((0, 1), (0, -1), (1, 0), (-1, 0)):
            beside = (cell[0] + dy, cell[1] + dx)
            if self.inside(beside):
                wide, cells, leads_along_y = self._own_share(beside)
                if leads_along_y == (dx == 0) and own_cells > cells:
                    share = max(share, wide)
        crossing = self.cell / 1.34
        return max((self.headway + 0.4 / 1.34) * 0.4 / (self.cell * share) - crossing, 0.0)

    def best_cells(self, here: Cell, goal: int, group: int, occupied: set[Cell]) -> set[Cell]:
        """All cells whose product of layers is the largest; none when all are vetoed."""
        worth: dict[Cell, float] = {}
        for there in self.neighbours(here):
            if there in occupied or there not in self.ways[goal]:
                continue
            around = sum((there[0] + dy, there[1] + dx) in occupied for dy, dx in MOVES)
            worth[there] = (
                self.ways[goal][there] * math.log(self.gamma)
                + around * math.log(self.separation)
                + sum(each.log_worth(here, there, group) for each in self.filters)
            )
        best = max(worth.values(), default=-math.inf)
        if best == -math.inf:
            return set()
        return {there for there, value in worth.items() if value > best - 1e-9}


@dataclass(kw_only=True)
class Someone:
    """One agent before and after a step."""

    before: Cell
    after: Cell
    goal: int
    group: int
    speed: float
    credit: float
    credit_after: float


def crosses(a: Cell, b: Cell, c: Cell, d: Cell) -> bool:
    """Whether the moves a → b and c → d cross each other on the way."""
    return a != c and b != d and (a[0] + b[0], a[1] + b[1]) == (c[0] + d[0], c[1] + d[1])


class ClosedCells:
    """Which cells are closed for how many more steps; the last step of each is rounded at random."""

    def __init__(self, lattice: PlainLattice, dt: float) -> None:
        self._lattice, self._dt = lattice, dt
        self._steps: dict[Cell, tuple[int, int]] = {}  # surely, and at most

    def surely(self) -> set[Cell]:
        return {cell for cell, (least, _) in self._steps.items() if least > 0}

    def perhaps(self) -> set[Cell]:
        return {cell for cell, (_, most) in self._steps.items() if most > 0} - self.surely()

    def note(self, people: Sequence[Someone]) -> None:
        """After a step: what it has closed, and that all others have one step less to go."""
        self._steps = {cell: (least - 1, most - 1) for cell, (least, most) in self._steps.items()}
        for one in people:
            if one.before != one.after and self._lattice.headway > 0.0:
                self._close(one.before, 0.0)
                if self._lattice.ways[one.goal][one.after] == 0.0:
                    self._close(one.after, _cost(self._lattice, one, one.after))

    def _close(self, cell: Cell, until_free: float) -> None:
        steps = (until_free + self._lattice.seconds_closed(cell)) / self._dt
        # A cell that is closed for one step is open in the next, like every cell that was left.
        self._steps[cell] = max(math.floor(steps - ALMOST), 1) - 1, max(math.floor(steps + 1.0 + ALMOST), 1) - 1


def check_step(
    lattice: PlainLattice,
    people: Sequence[Someone],
    dt: float,
    *,
    shut: Collection[Cell] = (),
    perhaps: Collection[Cell] = (),
) -> int:
    """Raise unless this is something the rules allow, and everything they demand; returns how many moved.

    Nobody may enter cells that are `shut`; whether those that `perhaps` are may be entered is left open.
    """
    occupied = {one.before for one in people}
    assert len({one.after for one in people}) == len(people), "two agents in one cell"
    best = [lattice.best_cells(one.before, one.goal, one.group, occupied) for one in people]
    ready = [_ready(lattice, one, cells, dt) for one, cells in zip(people, best, strict=True)]
    moves = [(one.before, one.after) for one in people if one.before != one.after]
    assert not any(crosses(*a, *b) for a in moves for b in moves), "two moves cross"
    for one, cells, reachable in zip(people, best, ready, strict=True):
        if one.before != one.after:
            assert one.after not in occupied, "entered a cell that somebody was in"
            assert one.after in cells, "went to a cell that is not one of the best"
            assert one.after in reachable, "moved without the time for it"
            assert one.after not in shut, "entered a cell too soon after somebody left it"
        _check_credit(lattice, one, cells, dt)
    _check_nobody_waits_without_reason(people, best, [cells - set(shut) for cells in ready], set(perhaps))
    return len(moves)


def _cost(lattice: PlainLattice, one: Someone, there: Cell) -> float:
    return math.dist(one.before, there) * lattice.cell / one.speed if one.speed > 0.0 else math.inf


def _ready(lattice: PlainLattice, one: Someone, cells: set[Cell], dt: float) -> set[Cell]:
    """Those of the best cells that the agent has the time to go to."""
    if one.before in lattice.ways[one.goal] and lattice.ways[one.goal][one.before] == 0.0:
        return set()
    return {there for there in cells if one.credit + dt >= _cost(lattice, one, there) * (1.0 - ALMOST)}


def _check_credit(lattice: PlainLattice, one: Someone, cells: set[Cell], dt: float) -> None:
    credit = one.credit + dt
    if one.before != one.after:
        expected = [max(credit - _cost(lattice, one, one.after), 0.0)]
    else:
        # As much as the move it waits for costs, and without one as much as a straight one; never more.
        straight = lattice.cell / one.speed if one.speed > 0.0 else math.inf
        costs = [straight, *(_cost(lattice, one, there) for there in cells)]
        expected = [min(credit, cost) for cost in costs]
    assert any(math.isclose(one.credit_after, value, abs_tol=1e-9) for value in expected), "credit is wrong"


def _check_nobody_waits_without_reason(
    people: Sequence[Someone], best: Sequence[set[Cell]], ready: Sequence[set[Cell]], perhaps: set[Cell]
) -> None:
    """A cell that is surely wanted is entered, unless somebody may have crossed the way to it."""
    entered = {one.after for one in people if one.before != one.after}
    surely = [(one, next(iter(cells))) for one, cells, able in zip(people, best, ready, strict=True)
              if len(cells) == 1 and able - perhaps]  # fmt: skip
    maybe = [(one.before, there) for one, able in zip(people, ready, strict=True) for there in able]
    for one, there in surely:
        contenders = [move for move in maybe if move[1] == there]
        if not any(crosses(*mine, *other) for mine in contenders for other in maybe):
            assert there in entered, "nobody enters a cell that is wanted"
        if len(contenders) == 1 and not any(crosses(one.before, there, *other) for other in maybe):
            assert one.after == there, "stays without a reason"
