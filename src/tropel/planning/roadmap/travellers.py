"""What a planner remembers of each agent that it leads: its path, its subgoal, and work that goes on in the next step.

Paths are rows of arrays, so that one kernel follows all of them; everything else is in a `Traveller`. Checkpoints hold
both: records become one array per field, with the lengths of their parts beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


#: Fields of a traveller that are arrays.
_ARRAYS = ("planned", "beyond", "marked", "jams", "shut", "stages")


@dataclass(eq=False, kw_only=True)
class Traveller:
    """An agent that is led along a path."""

    id: int
    goal: int  #: the value of its column `goal` that it has a path for, or wants one for
    path: Path | None = None
    asks: bool = True  #: wants a new path
    retry: int = 0  #: does not plan before this step
    query: Query | None = None
    rejoining: Rejoining | None = None
    failures: int = 0  #: queries without a path, one after the other
    marked: Ints = field(default_factory=lambda: NO_NUMBERS)  #: edges that are blocked by something that moves
    jams: Floats = field(default_factory=lambda: np.empty((0, 0)))  #: (J, dim + 2): place, radius, and the step it ends
    shut: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))  #: doors it believes shut
    stages: Ints = field(default_factory=lambda: NO_NUMBERS)  #: what is ahead on a coarser level
    place: int = 0  #: the room, or whatever the chart is of
    planned: Floats = field(default_factory=lambda: np.empty(0))  #: where its goal was when its path was planned
    beyond: Floats = field(default_factory=lambda: np.empty(0))  #: the place that its next path begins at, if not here
    radius: float = 0.0  #: that its chart keeps free [m]

    def record(self) -> Record:
        path, query, rejoining = self.path, self.query, self.rejoining
        numbers = (self.id, self.goal, self.asks, self.retry, self.failures, self.place)
        has = (path is not None, query is not None, rejoining is not None)
        stored: Record = {"state": np.array([*numbers, *has]), "radius": np.array([self.radius])}
        stored |= {name: getattr(self, name) for name in _ARRAYS}
        if path is not None:
            stored |= {"path_points": path.points, "path_nodes": path.nodes}
        if query is not None:
            stored |= {f"search_{name}": getattr(query.search, name) for name in Search._fields}
            stored |= {"query_start": query.start, "query_which": query.which}
        if rejoining is not None:
            stored |= {f"rejoin_{name}": array for name, array in rejoining.record().items()}
        return stored

    @classmethod
    def of(cls, stored: Record) -> Traveller:
        state = [int(number) for number in stored["state"]]
        number, goal, asks, retry, failures, place, has_path, has_query, rejoins = state
        arrays: dict[str, Any] = {name: stored[name] for name in _ARRAYS}
        made = cls(id=number, goal=goal, asks=bool(asks), retry=retry, failures=failures, place=place,
                   radius=float(stored["radius"][0]), **arrays)  # fmt: skip
        if has_path:
            made.path = Path(points=stored["path_points"], nodes=stored["path_nodes"])
        if has_query:
            search = Search(*(stored[f"search_{name}"] for name in Search._fields))
            made.query = Query(search=search, start=stored["query_start"], which=stored["query_which"])
        if rejoins:
            made.rejoining = Rejoining.of({name: stored[f"rejoin_{name}"] for name in Rejoining.names()})
        return made


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

    def __len__(self) -> int:
        return len(self.people)

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
        for name in ("count", "index"):
            column = np.concatenate([getattr(self, name)[stay], np.zeros(count, dtype=np.int64)])
            setattr(self, name, column[order])
        for name in ("weight", "allowed", "reach"):
            setattr(self, name, np.concatenate([getattr(self, name)[stay], np.zeros(count)])[order])
        self.patience = np.concatenate([self.patience[stay], patience])[order]

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
