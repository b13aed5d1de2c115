"""What a planner remembers of each agent that it leads: its path, its subgoal, and work that goes on in the next step.

Paths are rows of arrays, so that one kernel follows all of them; everything else is in a `Traveller`. Checkpoints hold
both: records become one array per field, with the lengths of their parts beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.errors import CheckpointError
from tropel.planning.roadmap.chart import Path, Query
from tropel.planning.roadmap.graph import Search
from tropel.planning.roadmap.rejoining import Rejoining

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Record = dict[str, NDArray[Any]]

NO_NUMBERS = np.empty(0, dtype=np.int64)
NOWHERE = np.empty(0)
#: Nothing to do until something happens.
NEVER = 1 << 62

#: Fields of a traveller that are arrays.
_ARRAYS = ("planned", "beyond", "origin", "marked", "jams", "shut", "stages")
#: And those that are whole numbers.
_NUMBERS = ("id", "goal", "asks", "retry", "review", "failures", "place", "routed", "checks", "around")


@dataclass(eq=False, kw_only=True)
class Traveller:
    """An agent that is led along a path."""

    id: int
    goal: int  #: the number of the goal that it has a path for, or wants one for
    path: Path | None = None
    asks: bool = True  #: wants a new path
    retry: int = 0  #: does not plan before this step
    review: int = 0  #: looks at its marks again in this step
    query: Query | None = None
    rejoining: Rejoining | None = None
    failures: int = 0  #: queries without a path, one after the other
    marked: Ints = field(default_factory=lambda: NO_NUMBERS)  #: edges that are blocked by something that moves
    jams: Floats = field(default_factory=lambda: np.empty((0, 0)))  #: (J, dim + 2): place, radius, and the step it ends
    shut: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))  #: doors it believes shut
    stages: Ints = field(default_factory=lambda: NO_NUMBERS)  #: what is ahead on a coarser level
    gross: Search | None = None  #: the search on that level, if it is under way
    origin: Floats = field(default_factory=lambda: NOWHERE)  #: where that search begins
    routed: bool = False  #: whether that search has been done for the path it asks for
    checks: bool = False  #: whether it searches there only to see if its way has changed
    around: bool = False  #: whether it asks for a way around something that moves, and may as well wait
    place: int = 0  #: the room, or whatever the chart is of
    planned: Floats = field(default_factory=lambda: NOWHERE)  #: where its goal was when its path was planned
    beyond: Floats = field(default_factory=lambda: NOWHERE)  #: the place that its next path begins at, if not here
    radius: float = 0.0  #: that its chart keeps free [m]

    def ask(self, step: int) -> None:
        """Want a new path from this step on; work on another one is dropped."""
        self.asks, self.retry, self.query, self.gross = True, step, None, None
        self.routed = self.around = False

    def due(self) -> int:
        """The next step in which it has something to do, whatever happens around it."""
        if self.query is not None or self.rejoining is not None or self.checks:
            return 0
        soon = min(self.retry if self.asks else NEVER, self.review if len(self.marked) else NEVER)
        return min(soon, int(self.jams[:, -1].min())) if len(self.jams) else soon

    def record(self) -> Record:
        has = [name for name in ("path", "query", "rejoining", "gross") if getattr(self, name) is not None]
        stored: Record = {"state": np.array([getattr(self, name) for name in _NUMBERS], dtype=np.int64)}
        stored |= {"radius": np.array([self.radius]), "has": np.array(has, dtype="<U9")}
        stored |= {name: getattr(self, name) for name in _ARRAYS}
        if self.path is not None:
            stored |= {"path_points": self.path.points, "path_nodes": self.path.nodes}
        for name in has[has[:1] == ["path"] :]:
            part = getattr(self, name)
            fields = part._asdict() if name == "gross" else part.record()
            stored |= {f"{name}_{key}": array for key, array in fields.items()}
        return stored

    @classmethod
    def of(cls, stored: Record) -> Traveller:
        numbers: dict[str, Any] = dict(zip(_NUMBERS, stored["state"].astype(np.int64).tolist(), strict=True))
        for name in ("asks", "routed", "checks", "around"):
            numbers[name] = bool(numbers[name])
        arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
        made = cls(**numbers, radius=float(stored["radius"][0]), **arrays)
        for name in map(str, stored["has"]):
            part = {key.removeprefix(f"{name}_"): array for key, array in stored.items() if key.startswith(f"{name}_")}
            if name == "path":
                made.path = Path(points=part["points"], nodes=part["nodes"])
            elif name == "query":
                made.query = Query.of(part)
            elif name == "rejoining":
                made.rejoining = Rejoining.of(part)
            else:
                made.gross = Search(*(part[field] for field in Search._fields))
        return made


class Slots(NamedTuple):
    """The arrays of `Travellers`, for kernels."""

    id: Ints
    way: Floats
    count: Ints  # type: ignore[assignment]
    index: Ints  # type: ignore[assignment]
    weight: Floats
    allowed: Floats
    patience: Floats
    reach: Floats
    goal: Ints
    point: Floats
    body: Floats
    wide: Floats
    due: Ints
    leg: Ints
    when: Floats
    used: Ints
    calls: NDArray[np.bool_]
    status: Ints


_columns_of = attrgetter(*Slots._fields)


class Travellers:
    """All travellers by id, and the arrays that kernels read, with a row (a slot) for each."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.people: list[Traveller] = []
        self.id: Ints = NO_NUMBERS
        self.way: Floats = np.zeros((0, 2, dim))  #: (T, L, dim): the points of each path [m]
        self.count: Ints = NO_NUMBERS  #: (T,) how many points
        self.index: Ints = NO_NUMBERS  #: (T,) which one is the subgoal
        self.weight: Floats = np.empty(0)  #: (T,) for how long it has been [s]
        self.allowed: Floats = np.empty(0)  #: (T,) for how long it may be [s]
        self.patience: Floats = np.empty(0)  #: (T,) beyond the time it takes to walk there [s]
        self.reach: Floats = np.empty(0)  #: (T,) how near to the end of the path is near enough [m]
        # What follows is known anew in each step, or made from the rest, and no part of checkpoints.
        self.goal: Ints = NO_NUMBERS  #: (T,) the column `goal` when it was last looked at
        self.point: Floats = np.zeros((0, dim))  #: (T, dim) and `goal_point`
        self.body: Floats = np.empty(0)  #: (T,) and `radius` [m]
        self.wide: Floats = np.empty(0)  #: (T,) the radius that each keeps free [m]
        self.due: Ints = NO_NUMBERS  #: (T,) the next step in which there is something to do
        self.leg: Ints = NO_NUMBERS  #: (T,) the first leg of the path that is blocked, -1 for none
        self.when: Floats = np.empty(0)  #: (T,) when that is [s from now]
        self.used: Ints = NO_NUMBERS  #: (T,) units of work in this step
        self.calls: NDArray[np.bool_] = np.empty(0, dtype=np.bool_)  #: (T,) whether there is something to do in it
        self.status: Ints = NO_NUMBERS  #: (T,) how each stands to its path

    def __len__(self) -> int:
        return len(self.people)

    @property
    def columns(self) -> Slots:
        """For kernels: the arrays as they are now. Some are replaced when travellers come or go or paths get longer."""
        return Slots._make(_columns_of(self))

    def slots(self, ids: Ints) -> Ints:
        """The slot of each id, all of which are travellers."""
        return np.searchsorted(self.id, ids)

    def known(self, ids: Ints) -> NDArray[np.bool_]:
        if not len(self.id):
            return np.zeros(len(ids), dtype=np.bool_)
        at = np.minimum(np.searchsorted(self.id, ids), len(self.id) - 1)
        return self.id[at] == ids

    def change(self, *, gone: NDArray[np.bool_], new: Sequence[Traveller], patience: Floats) -> None:
        """Forget some slots and add travellers."""
        people = [person for person, left in zip(self.people, gone.tolist(), strict=True) if not left] + list(new)
        stay, count = ~gone, len(new)
        ids = np.concatenate([self.id[stay], [person.id for person in new]]).astype(np.int64)
        order = np.argsort(ids, kind="stable")
        self.people = [people[k] for k in order]
        self.id = ids[order]
        self.way = np.concatenate([self.way[stay], np.zeros((count, *self.way.shape[1:]))])[order]
        self.point = np.concatenate([self.point[stay], np.zeros((count, self.dim))])[order]
        for name in ("count", "index", "goal", "leg", "used"):
            column = np.concatenate([getattr(self, name)[stay], np.full(count, -1 if name == "leg" else 0)])
            setattr(self, name, column[order])
        for name in ("weight", "allowed", "reach", "body", "wide", "when"):
            column = np.concatenate([getattr(self, name)[stay], np.full(count, np.inf if name == "when" else 0.0)])
            setattr(self, name, column[order])
        self.patience = np.concatenate([self.patience[stay], patience])[order]
        self.due, self.status = np.zeros(len(ids), dtype=np.int64), np.zeros(len(ids), dtype=np.int64)
        self.calls = np.zeros(len(ids), dtype=np.bool_)
        for slot in range(len(ids)):
            self.note(slot)

    def note(self, slot: int) -> None:
        """Whatever a traveller has to do may have changed."""
        self.due[slot], self.wide[slot] = self.people[slot].due(), self.people[slot].radius

    def give(self, slot: int, path: Path | None, *, reach: float = 0.0, index: int = 1) -> None:
        """Give a traveller a path, of which the first point is where it is; None takes it away."""
        self.people[slot].path = path
        points = np.empty((0, self.dim)) if path is None else path.points
        if len(points) > self.way.shape[1]:
            room = np.zeros((len(self), 2 * len(points), self.dim))
            room[:, : self.way.shape[1]] = self.way
            self.way = room
        self.way[slot, : len(points)] = points
        self.count[slot], self.index[slot] = len(points), min(index, max(len(points) - 1, 0))
        self.reach[slot] = reach
        # A new subgoal: the kernel that follows paths sets how long it may take.
        self.weight[slot], self.allowed[slot] = 0.0, -1.0

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        columns = {name: getattr(self, name) for name in ("index", "weight", "allowed", "patience", "reach")}
        return {**columns, **packed([person.record() for person in self.people], "traveller")}

    def read(self, stored: Mapping[str, NDArray[Any]]) -> Travellers:
        """The travellers that `state` returned, checked as far as kernels rely on it."""
        made = Travellers(self.dim)
        try:
            people = [Traveller.of(record) for record in unpacked(stored, "traveller")]
            ids = np.array([person.id for person in people], dtype=np.int64)
            if (np.diff(ids) <= 0).any():
                raise ValueError("ids must rise")
            made.change(gone=np.zeros(0, dtype=np.bool_), new=people, patience=np.asarray(stored["patience"]))
            for slot, person in enumerate(people):
                if person.path is not None:
                    _check_path(person.path, self.dim)
                made.give(slot, person.path)
                made.note(slot)
            for name in ("index", "weight", "allowed", "patience", "reach"):
                column = np.array(stored[name], dtype=getattr(made, name).dtype)
                if column.shape != (len(people),) or not np.isfinite(column).all():
                    raise ValueError(f"{name} must have a finite number for each traveller")
                setattr(made, name, column)
            if ((made.index < 0) | (made.index >= np.maximum(made.count, 1))).any():
                raise ValueError("a subgoal is beyond its path")
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise CheckpointError(f"the paths of a roadmap cannot be read: {error}") from error
        return made


def _check_path(path: Path, dim: int) -> None:
    points = path.points
    if points.ndim != 2 or points.shape[1] != dim or len(points) < 2 or not np.isfinite(points).all():
        raise ValueError("the points of a path must be two or more places")
    if path.nodes.ndim != 1 or path.nodes.dtype.kind != "i" or (path.nodes < 0).any():
        raise ValueError("the nodes of a path must be numbers")


# Records of any length as arrays ----------------------------------------------------------------------------------


def packed(records: Sequence[Record], name: str) -> dict[str, NDArray[Any]]:
    """Records of arrays as a few arrays: for each field its numbers, one after the other, and the shape of each."""
    fields = sorted({key for record in records for key in record})
    stored: dict[str, NDArray[Any]] = {f"{name}_count": np.array([len(records)])}
    for key in fields:
        arrays = [(number, np.asarray(record[key])) for number, record in enumerate(records) if key in record]
        shapes = [[number, *array.shape, *[-1] * (2 - array.ndim)] for number, array in arrays]
        stored[f"{name}.{key}"] = np.concatenate([array.reshape(-1) for _, array in arrays])
        stored[f"{name}.{key}.shape"] = np.array(shapes, dtype=np.int64).reshape(-1, 3)
    return stored


def unpacked(stored: Mapping[str, NDArray[Any]], name: str) -> list[Record]:
    """The records that `packed` returned; raises ValueError if the arrays do not fit together."""
    count = int(stored[f"{name}_count"][0])
    if not 0 <= count <= sum(array.size for array in stored.values()):
        raise ValueError(f"there cannot be {count} records")
    records: list[Record] = [{} for _ in range(count)]
    keys = [key for key in stored if key.startswith(f"{name}.") and not key.endswith(".shape")]
    for key in keys:
        values, shapes, begin = stored[key], stored[f"{key}.shape"], 0
        if values.ndim != 1 or shapes.ndim != 2 or shapes.shape[1] != 3:
            raise ValueError(f"{key} does not have its shape")
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError(f"{key} has no numbers")
        for number, rows, columns in shapes.tolist():
            size = max(rows, 0) * (columns if columns >= 0 else 1)
            if not 0 <= number < count or rows < 0 or begin + size > len(values):
                raise ValueError(f"{key} is cut off")
            part = values[begin : begin + size]
            records[number][key.removeprefix(f"{name}.")] = (
                part.reshape(rows, columns).copy() if columns >= 0 else part.copy()
            )
            begin += size
    return records
