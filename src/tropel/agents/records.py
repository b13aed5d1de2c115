"""Records of who has come, left and died, and when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Came = tuple[list[int], list[int], list[float]]  #: how many came together, of which group, and when [s]


class Records:
    """Every arrival, departure and death of a run."""

    def __init__(self, dim: int) -> None:
        self._dim = dim
        # Ids are assigned in order, so the number of agents that came together identifies them.
        self._came: Came = ([], [], [])
        self._left: list[dict[str, NDArray[Any]]] = []
        self._died: list[dict[str, NDArray[Any]]] = []

    def came(self, count: int, group: int, time: float) -> None:
        counts, groups, times = self._came
        counts.append(count)
        groups.append(group)
        times.append(time)

    def left(self, ids: NDArray[np.int64], goals: NDArray[np.int32], times: NDArray[np.float64]) -> None:
        self._left.append({"id": ids, "goal": goals, "time": times})

    def died(self, ids: NDArray[np.int64], time: float, position: NDArray[np.float64]) -> None:
        self._died.append({"id": ids, "time": np.full(len(ids), time), "position": position})

    def arrivals(self) -> dict[str, NDArray[Any]]:
        """`id`, `group` (number) and `time` [s] of every agent that was ever present, by id."""
        count = np.array(self._came[0], dtype=np.int64)
        return {
            "id": np.arange(count.sum(), dtype=np.int64),
            "group": np.repeat(np.array(self._came[1], dtype=np.int32), count),
            "time": np.repeat(np.array(self._came[2], dtype=np.float64), count),
        }

    def departures(self) -> dict[str, NDArray[Any]]:
        """`id`, `goal` (number) and `time` [s], by time and then by id."""
        none: dict[str, NDArray[Any]] = {
            "id": np.empty(0, dtype=np.int64),
            "goal": np.empty(0, dtype=np.int32),
            "time": np.empty(0),
        }
        left = {name: np.concatenate([first, *(each[name] for each in self._left)]) for name, first in none.items()}
        # Agents of some models are still there for a moment, so others may be gone sooner that have left later.
        order = np.lexsort((left["id"], left["time"]))
        return {name: values[order] for name, values in left.items()}

    @property
    def departed(self) -> int:
        """How many agents have left."""
        return sum(len(each["id"]) for each in self._left)

    def deaths(self) -> dict[str, NDArray[Any]]:
        """`id`, `time` [s] and `position` [m], by time and then by id."""
        nobody = {"id": np.empty(0, dtype=np.int64), "time": np.empty(0), "position": np.empty((0, self._dim))}
        return {name: np.concatenate([none, *(d[name] for d in self._died)]) for name, none in nobody.items()}

    # Checkpoints ------------------------------------------------------------------------------------------------

    def came_together(self) -> dict[str, NDArray[Any]]:
        """Arrivals as a checkpoint stores them."""
        count, group, time = self._came
        return {
            "came/count": np.array(count, dtype=np.int64),
            "came/group": np.array(group, dtype=np.int32),
            "came/time": np.array(time, dtype=np.float64),
        }

    def came_lists(self) -> Came:
        count, group, time = self._came
        return list(count), list(group), list(time)

    def put_back(self, came: Came, left: Mapping[str, NDArray[Any]], died: Mapping[str, NDArray[Any]]) -> None:
        self._came = list(came[0]), list(came[1]), list(came[2])
        self._left, self._died = [dict(left)], [dict(died)]
