"""What the tests share: steering models by name, and a planner that leads through gates.

Models go by the names that scenario files use, with their default parameters. The planner leads through one gate after
another, then on in a fixed direction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.contracts import Guidance, Moment, Planner
from tropel.registry import MODELS

#: Makes a fresh steering model.
Model = Callable[[], Any]


def model_names() -> list[str]:
    """The models that scenario files know by a short name."""
    return list(MODELS)


def named_model(name: str) -> Model:
    """The model with a short name, or given as "package.module:Class".

    The caller names the class, not a file, so its package is allowed.
    """
    return MODELS.find(name, allow_imports=[name.partition(":")[0]])


Point = tuple[float, float]

#: How far from the posts of a gate people aim [m]; in narrow gates at most half of the width.
_MARGIN = 0.3


class Gates(Planner):
    """Walk to the nearest point of the first gate that is still ahead; if there is none, walk `onward`.

    A gate is given by its left and right post, as seen by people who walk through. It is behind people who are beyond
    the straight line through its posts, so the direction depends on the position alone, and nothing is remembered.
    """

    def __init__(self, *gates: tuple[Point, Point], onward: Point) -> None:
        self.parameters = {"gates": gates, "onward": onward}
        self._posts: Sequence[NDArray[np.float64]] = [np.array(gate, dtype=np.float64) for gate in gates]
        self._onward = np.array(onward, dtype=np.float64) / np.linalg.norm(onward)

    def direct(self, moment: Moment, out: Guidance) -> None:
        """Write unit vectors for the members."""
        members = moment.members
        position = moment.state.position[members]
        way = np.tile(self._onward, (len(members), 1))
        ahead = np.zeros(len(members), dtype=bool)
        for left, right in self._posts:
            width = float(np.linalg.norm(right - left))
            along = (right - left) / width
            forward = np.array([-along[1], along[0]])
            reached = (position - left) @ forward
            to_go = ~ahead & (reached <= 0.0)
            margin = min(_MARGIN, 0.499 * width)
            aim = left + np.clip((position - left) @ along, margin, width - margin)[:, None] * along
            offset = aim - position
            away = np.linalg.norm(offset, axis=1)
            # On the line itself the offset has no direction.
            straight = np.where(away[:, None] > 1e-6, offset / np.maximum(away, 1e-6)[:, None], forward)
            way[to_go] = straight[to_go]
            ahead |= to_go
        out.directions[members] = way
