"""Agents as a struct of arrays.

Every quantity that can differ from agent to agent is one array with a row per agent. If all agents are on one process,
rows are in the order of the ids, and removal compacts them stably. In general a process has its own rows first, in any
order, and after them the rows of agents that other processes move (ghosts), which are only read. Code that looks for an
agent uses `rows_of`, and ties are broken by ids. Layers read a state that is frozen during the step and write into a
`Steered` buffer, which is swapped in afterwards, so that no agent ever sees half of another agent's step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import as_words, copy
from tropel._kernels.compile import kernel, parallel_kernel
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.foundation.quantities import Quantity
from tropel.foundation.stored_arrays import taken
from tropel.world.shapes import FARTHEST

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Values of the `goal` column that are not the number of a goal of the world.
NEAREST_EXIT = -1
NEAREST_TARGET = -2
NO_GOAL = -3
#: The goal is the point in the column `goal_point`.
POINT = -4


@dataclass(frozen=True, kw_only=True)
class Column(Quantity):
    """A named per-agent array: a quantity with its own value for every agent."""

    dtype: str = "float64"
    vector: bool = False  #: as many numbers per agent as the world has dimensions
    width: int = 0  #: this many numbers per agent; 0 means one
    kept: bool = False  #: written by the engine, or a layer's memory: neither groups nor events set it

    def __post_init__(self) -> None:
        if np.dtype(self.dtype).kind in "iu":
            # No value in a file may be cut off or wrap around: kernels use whole numbers as indices.
            ends = np.iinfo(self.dtype)
            object.__setattr__(self, "whole", True)
            object.__setattr__(self, "low", max(self.low, float(ends.min)))
            most = float(ends.max)
            object.__setattr__(self, "high", min(self.high, most if int(most) <= ends.max else np.nextafter(most, 0.0)))

    @property
    def settable(self) -> bool:
        """Whether groups and events may set it, as one number per agent."""
        return not (self.kept or self.vector or self.width)

    def filled(self, count: int, dim: int) -> NDArray[Any]:
        shape = (count, dim) if self.vector else (count, self.width) if self.width else (count,)
        return np.full(shape, self.default, dtype=self.dtype)


RADIUS = Column(name="radius", default=0.2, unit="m", above=0.0, high=LARGEST_LENGTH, about="of the body")
DESIRED_SPEED = Column(
    name="desired_speed", default=1.34, unit="m/s", low=0.0, high=1e6, about="when nothing is in the way"
)
SENSE_RADIUS = Column(
    name="sense_radius",
    default=3.0,
    unit="m",
    low=0.0,
    high=LARGEST_LENGTH,
    about="others are near when their centres are within it",
)

#: Memory of the decision that answers collisions, which a habit reads, too.
JOLT = Column(name="jolt", low=0.0, high=1.0, about="1 after a collision, fading")

#: Memory of planners that choose between exits for agents whose goal is the nearest one.
CHOSEN_EXIT = Column(
    name="chosen_exit",
    dtype="int32",
    default=-1,
    low=-1,
    kept=True,
    about="number of the exit that an agent to the nearest exit has chosen; -1 for none",
)

CORE_COLUMNS = (
    Column(name="id", dtype="int64", kept=True, about="stable, never reused"),
    Column(name="group", dtype="int32", low=0, kept=True, about="number of the group"),
    Column(name="level", dtype="int16", low=0, high=0, kept=True, about="floor that it is on; worlds have one so far"),
    Column(name="position", vector=True, low=-FARTHEST, high=FARTHEST, kept=True, unit="m"),
    Column(
        name="velocity",
        vector=True,
        low=-FARTHEST,
        high=FARTHEST,
        kept=True,
        unit="m/s",
        about="displacement of the last step over dt; for agents that move exactly, what their model wrote",
    ),
    Column(name="heading", vector=True, low=-2.0, high=2.0, kept=True, about="unit vector the body faces"),
    RADIUS,
    DESIRED_SPEED,
    SENSE_RADIUS,
    Column(
        name="goal",
        dtype="int32",
        low=POINT,
        kept=True,
        default=NEAREST_EXIT,
        about="number of a goal of the world, or one of NEAREST_…, NO_GOAL and POINT",
    ),
    Column(
        name="goal_point",
        vector=True,
        low=-FARTHEST,
        high=FARTHEST,
        kept=True,
        unit="m",
        about="where agents whose goal is a point go to",
    ),
    Column(
        name="agenda",
        dtype="int32",
        default=-1,
        low=-1,
        kept=True,
        about="number of the list of stages that it goes through; -1 for none",
    ),
    Column(
        name="stage",
        dtype="int32",
        low=-1,
        kept=True,
        about="which stage of its list is the present one; -1 before the first, while it has not started",
    ),
    Column(name="stage_since", low=0.0, kept=True, unit="s", about="when the present stage began"),
    Column(
        name="stage_until",
        low=0.0,
        kept=True,
        unit="s",
        about="when the present stage ends by itself: its delay, or a wait for a time",
    ),
    Column(
        name="critical",
        dtype="uint8",
        high=1,
        kept=True,
        about="1 if the present stage has to succeed whatever it costs",
    ),
    Column(name="held", low=0.0, kept=True, unit="s", about="how long a solid body has made no headway"),
    Column(
        name="collided",
        dtype="uint8",
        high=1,
        kept=True,
        about="1 if the body overlapped another's in the last step",
    ),
    Column(
        name="dead",
        dtype="uint8",
        high=1,
        kept=True,
        about="1 for the dead: they lie where they are forever",
    ),
)


#: No two states with different agents have the same version.
_VERSIONS = itertools.count()

#: An infinite sense radius covers all agents.
_MAY_BE_INFINITE = frozenset({"sense_radius"})


@parallel_kernel
def _begin(heading, position, out_velocity, out_heading, out_position):
    for k in numba.prange(heading.size):
        out_velocity[k] = 0.0
        out_heading[k] = heading[k]
        if out_position.size > 0:
            out_position[k] = position[k]


@kernel
def _close_ranks(words, width, first, last):
    """Move runs of rows together within their own memory; indexing by a mask takes ten times as long, and new pages."""
    at = first[0] * width
    for run in range(first.size):
        begin, count = first[run] * width, (last[run] - first[run]) * width
        if begin > at:
            for k in range(count):
                words[at + k] = words[begin + k]
        at += count


class AgentState:
    """All agents of a simulation, one array per column.

    Columns are attributes: `state.position[i]` is where the agent in row i is. `state.columns` has all of them by name.
    """

    # Declared for readers and type checkers; the arrays live in `columns`.
    id: Ints
    group: NDArray[np.int32]
    level: NDArray[np.int16]
    position: Floats
    velocity: Floats
    heading: Floats
    radius: Floats
    desired_speed: Floats
    sense_radius: Floats
    goal: NDArray[np.int32]
    goal_point: Floats
    agenda: NDArray[np.int32]
    stage: NDArray[np.int32]
    stage_since: Floats
    stage_until: Floats
    critical: NDArray[np.uint8]
    held: Floats
    collided: NDArray[np.uint8]
    dead: NDArray[np.uint8]

    def __init__(self, dim: int, extra: Iterable[Column] = ()) -> None:
        if dim not in (2, 3):
            raise ParameterError(f"a world has 2 or 3 dimensions, not {dim}")
        self.dim = dim
        self.declared: dict[str, Column] = {column.name: column for column in CORE_COLUMNS}
        for column in extra:
            known = self.declared.setdefault(column.name, column)
            if known.width and 0 < known.width < column.width:
                # Two models of one kind, one of which has more memory.
                known = self.declared[column.name] = column
            if (known.dtype, known.vector, known.width > 0) != (column.dtype, column.vector, column.width > 0):
                raise ParameterError(f"two models declare the column '{column.name}' with different types")
        self.columns: dict[str, NDArray[Any]] = {name: c.filled(0, dim) for name, c in self.declared.items()}
        self.next_id = 0
        self.group_names: Sequence[str] = ()  #: by the numbers in the column `group`
        self.version = next(_VERSIONS)  #: changes whenever agents come or go, so that rows refer to other agents
        self.ghosts = 0  #: this many rows at the end belong to agents that other processes move
        self._index: tuple[Ints, Ints | None] | None = None  #: ids, and the order that sorts them

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            return self.__dict__["columns"][name]
        except KeyError:
            known = self.__dict__.get("columns", {})
            raise AttributeError(f"agents have no column '{name}'; {suggest(name, known)}") from None

    def __len__(self) -> int:
        return len(self.columns["id"])

    @property
    def owned(self) -> int:
        """How many rows, from the first on, are moved by this process; the rest are ghosts."""
        return len(self) - self.ghosts

    @property
    def in_id_order(self) -> bool:
        """Whether ids ascend from row to row."""
        return self._sorter() is None

    def _sorter(self) -> NDArray[np.int64] | None:
        """The rows in the order of their ids; None if that is their own order."""
        ids = self.columns["id"]
        if self._index is None or self._index[0] is not ids:
            self._index = ids, None if (ids[1:] > ids[:-1]).all() else np.argsort(ids, kind="stable")
        return self._index[1]

    def touch(self) -> None:
        """Note that rows refer to other agents than before."""
        self.version = next(_VERSIONS)

    def next_ids(self, count: int) -> Ints:
        """The ids that the next newcomers will have."""
        return np.arange(self.next_id, self.next_id + count, dtype=np.int64)

    def add(self, count: int, values: Mapping[str, Any]) -> Ints:
        """Append agents with new ids; columns not named in `values` get their defaults. Returns the new ids."""
        unknown = set(values) - set(self.declared)
        if unknown:
            name = min(unknown)
            raise ParameterError(f"agents have no parameter '{name}'; {suggest(name, self.declared)}")
        ids = self.next_ids(count)
        for name, column in self.declared.items():
            fresh = column.filled(count, self.dim)
            if name == "id":
                fresh[:] = ids
            elif name == "heading" and name not in values:
                fresh[:, 0] = 1.0
            elif name in values:
                fresh[:] = values[name]
            self.columns[name] = np.concatenate([self.columns[name], fresh])
        self.next_id += count
        self.touch()
        return ids

    def drop(self, rows: Ints) -> None:
        """Remove these rows, which are ascending; the others close ranks in order."""
        count = len(self) - len(rows)
        first, last = np.append(0, rows + 1), np.append(rows, len(self))
        for name, array in self.columns.items():
            words = as_words(array)
            _close_ranks(words, len(words) // max(len(array), 1), first, last)
            self.columns[name] = array[:count]
        self.touch()

    def look_at(self, others: Mapping[str, NDArray[Any]]) -> None:
        """Append rows of agents that other processes move, as the new ghosts in place of earlier ones."""
        odd = sorted(set(others) ^ set(self.declared))
        if odd:
            raise ParameterError(f"ghost rows need the same columns as owned rows; they differ in {', '.join(odd)}")
        owned = self.owned
        for name, array in self.columns.items():
            self.columns[name] = np.concatenate([array[:owned], others[name].astype(array.dtype, copy=False)])
        self.ghosts = len(others["id"])
        self.touch()

    def keep(self, mask: NDArray[np.bool_]) -> None:
        """Keep the rows where `mask` is true, in their order."""
        self.drop(np.flatnonzero(~mask))

    def rows_of(self, ids: Iterable[int]) -> Ints:
        """Rows of the given ids; ids that have left are skipped."""
        rows = self.row_of(np.fromiter(ids, dtype=np.int64))
        return rows[rows >= 0]

    def row_of(self, ids: Ints) -> Ints:
        """The row of each id, or -1 if there is none."""
        sorter = self._sorter()
        place = np.minimum(np.searchsorted(self.id, ids, sorter=sorter), max(len(self) - 1, 0))
        if not len(self):
            return np.full(len(ids), -1, dtype=np.int64)
        rows = place if sorter is None else sorter[place]
        return np.where(self.id[rows] == ids, rows, -1).astype(np.int64)

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Copies of all columns, for checkpoints."""
        return {name: array.copy() for name, array in self.columns.items()} | {
            "next_id": np.array(self.next_id, dtype=np.int64)
        }

    def restore(self, snapshot: Mapping[str, NDArray[Any]]) -> None:
        """Restore what `snapshot` returned."""
        self.put_back(*self.read(snapshot))

    def read(self, snapshot: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], int]:
        """Columns and next id as `snapshot` returned them, checked, because kernels trust them."""
        names = set(snapshot) - {"next_id"}
        if names != set(self.declared):
            odd = sorted(names ^ set(self.declared))
            raise ParameterError(f"the columns do not match those of this simulation: {', '.join(odd)}")
        count = len(taken(snapshot, "id", dtype="int64", shape=(None,)))
        columns = {}
        for name, column in self.declared.items():
            endless = name in _MAY_BE_INFINITE
            values = taken(
                snapshot,
                name,
                dtype=column.dtype,
                shape=(count, *column.filled(0, self.dim).shape[1:]),
                low=column.low,
                high=math.inf if endless else column.high,
                # A default of nan means "the model's own value".
                finite=math.isfinite(column.default) and not endless,
            )
            if endless and np.isnan(values).any():
                raise CheckpointError(f"'{name}' holds nan; it must be numbers")
            columns[name] = values
        next_id = int(taken(snapshot, "next_id", dtype="int64", shape=(), low=0))
        ids = columns["id"]
        if count and not (ids[0] >= 0 and (np.diff(ids) > 0).all() and ids[-1] < next_id):
            raise CheckpointError(f"'id' must hold ascending numbers from 0 up to {next_id - 1}, each once")
        return columns, next_id

    def put_back(self, columns: Mapping[str, NDArray[Any]], next_id: int) -> None:
        self.columns = dict(columns)
        self.next_id = next_id
        self.ghosts = 0
        self.touch()


@dataclass
class Steered:
    """What the local layer writes: the new half of the double buffer.

    `velocity` is what the agent wants to do during the step; `integrate` decides how far it gets. Models whose agents
    move themselves write `position` instead, and models whose agents move exactly write both.
    """

    velocity: Floats
    heading: Floats
    position: Floats
    memory: dict[str, NDArray[Any]] = field(default_factory=dict)

    @classmethod
    def like(cls, state: AgentState, memory: Iterable[str]) -> Steered:
        fresh = cls(
            velocity=np.empty_like(state.velocity),
            heading=np.empty_like(state.heading),
            position=np.empty_like(state.position),
            memory={name: np.empty_like(state.columns[name]) for name in memory},
        )
        fresh.begin(state)
        return fresh

    def __len__(self) -> int:
        return len(self.velocity)

    def shrink(self, count: int) -> None:
        """Keep only the first `count` agents, without new memory."""
        self.velocity, self.heading, self.position = (a[:count] for a in (self.velocity, self.heading, self.position))
        self.memory = {name: array[:count] for name, array in self.memory.items()}

    def begin(self, state: AgentState, *, places: bool = True) -> None:
        """Start the step from the frozen state, so that rows that no model writes stay as they are.

        Without `places`, positions are not copied: if no model moves its agents itself, `integrate` writes all of them.
        """
        position = self.position.reshape(-1)[: None if places else 0]
        _begin(*(a.reshape(-1) for a in (state.heading, state.position, self.velocity, self.heading)), position)
        for name, array in self.memory.items():
            copy(state.columns[name], array)
