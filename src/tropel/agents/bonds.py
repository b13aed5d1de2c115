"""Who belongs together: families, and those who follow somebody of another group.

Models that care declare the columns `family` (a number its members share) and `leader` (an id), -1 for none. Here they
are filled in for groups that are declared with `families` or `follow`.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import ParameterError
from tropel.registry import MODELS

#: Families that are cut here are numbered from this on, by the id of a member; lower numbers are free for one's own.
FIRST_NUMBER = 1 << 30
#: The columns that `families` and `follow` fill in.
COLUMN_OF = {"families": "family", "follow": "leader"}


def check_bonds(families: Any, follow: Any, parameters: Any, *, group: str, who: str) -> None:
    """Raise when what is declared makes no sense; `who` begins the message."""
    if families is not None and (isinstance(families, bool) or not isinstance(families, Integral) or families < 2):
        raise ParameterError(f"{who}: families are given by how many people one has, at least 2, not {families!r}")
    if follow is not None and (not isinstance(follow, str) or follow == group):
        raise ParameterError(f"{who}: follow names another group, whose nearest agent is followed, not {follow!r}")
    for told, column in COLUMN_OF.items():
        if (families if told == "families" else follow) is not None and column in parameters:
            raise ParameterError(f"{who}: give either {told} or the parameter {column}, which it sets")


def check_no_circle(follows: Mapping[str, set[str]]) -> None:
    """Raise when a group follows itself through others: nobody of them would lead."""
    for begin in follows:
        came_from: dict[str, str] = {}
        waiting = [begin]
        while waiting:
            group = waiting.pop()
            for leader in follows.get(group, ()):
                if leader not in came_from:
                    came_from[leader] = group
                    waiting.append(leader)
        if begin in came_from:
            way = [begin, came_from[begin]]
            while way[-1] != begin:
                way.append(came_from[way[-1]])
            circle = "', which follows '".join(reversed(way))
            raise ParameterError(f"group '{circle}': one of them must lead; leave its follow out")


def check_has_bonds(families: Any, follow: Any, *, group: str, model: str, columns: set[str]) -> None:
    """Raise when the model that steers a group knows nothing of families or leaders."""
    for told, given in (("families", families), ("follow", follow)):
        if given is not None and COLUMN_OF[told] not in columns:
            raise ParameterError(
                f"group '{group}': {told} sets the column {COLUMN_OF[told]}, which its steering model {model} does not "
                f"have; steer it by {_models_with(COLUMN_OF[told])}, or leave {told} out"
            )


def _models_with(column: str) -> str:
    """Which of tropel's own models have a column."""
    models = [entry.load() for entry in MODELS.values()]
    return " or ".join(kind.__name__ for kind in models if column in {c.name for c in kind().declares.columns})


def cut_into_families(position: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """For each agent the row of its family's first member; neighbours go together, the last family may be smaller.

    The agents are halved across the longer side of the room they take, again and again, between whole families.
    """
    first = np.empty(len(position), dtype=np.int64)
    parts = [np.arange(len(position))] if len(position) else []
    while parts:
        rows = parts.pop()
        families = -(-len(rows) // size)
        if families == 1:
            first[rows] = rows.min()
            continue
        axis = int(np.argmax(np.ptp(position[rows], axis=0)))
        ordered = rows[np.argsort(position[rows, axis], kind="stable")]
        middle = families // 2 * size
        parts += [ordered[:middle], ordered[middle:]]
    return first


def nearest_of(
    position: NDArray[np.float64], leaders: NDArray[np.float64], ids: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each place the id of the nearest leader."""
    from scipy.spatial import cKDTree

    return np.asarray(ids[cKDTree(leaders).query(position)[1]], dtype=np.int64)
