"""The table of people in a run: when each one arrived, and when they left, died or were removed.

Frames alone do not tell this. They are a tenth of a second apart, and a person missing from the next frame may have
left through an exit or been removed. `flow_rate` and `time_by_share` summarise departure times [s].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tropel.errors import RecordingError
from tropel.recording.checked import LONGEST_RUN
from tropel.recording.frames import Floats, Ints


def flow_rate(times: Floats) -> float:
    """Persons per second between the first departure and the last; NaN where no time passes between them.

    n people have n - 1 gaps between them, so one person every two seconds is a flow of 0.5 however many there are.
    """
    span = float(np.ptp(times)) if len(times) else 0.0
    return (len(times) - 1) / span if span > 0.0 else math.nan


def time_by_share(times: Floats, *, total: int, share: float) -> float:
    """When a share (0 to 1) of `total` people had left [s]; NaN if that many never did."""
    needed = max(1, math.ceil(share * total - 1e-9))
    return float(np.partition(times, needed - 1)[needed - 1]) if needed <= len(times) else math.nan


#: What became of people, by number.
FATES = ("there", "left", "died", "removed")
THERE, LEFT, DIED, REMOVED = range(len(FATES))
NOWHERE = -1


@dataclass(frozen=True, eq=False, kw_only=True)
class People:
    """One row per person present at any time, by id. Times in simulated seconds."""

    id: Ints
    #: Number of the group; its name is `scene.groups[number]`.
    group: NDArray[np.int32]
    came: Floats
    #: When the person left or died; NaN for people still present, or removed at a time that was not recorded.
    gone: Floats
    #: Number in `FATES`.
    fate: NDArray[np.int8]
    #: Number in `places` of the exit or target through which the person left; NOWHERE for all others.
    through: NDArray[np.int32]
    places: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.id)

    def fate_names(self) -> list[str]:
        return [FATES[number] for number in self.fate.tolist()]

    def place_names(self) -> list[str]:
        """The place through which each person left; empty for people who did not leave."""
        named = (*self.places, "")
        return [named[number] for number in self.through.tolist()]

    @classmethod
    def from_names(
        cls,
        *,
        id: ArrayLike,
        group: ArrayLike,
        came: ArrayLike,
        gone: ArrayLike,
        fate: Sequence[str],
        through: Sequence[str],
    ) -> People:
        """Build the table from what a file holds, where fates and places are text."""
        unknown = set(fate) - set(FATES)
        if unknown:
            raise RecordingError(
                f"the table of people has the unknown fate '{min(map(str, unknown))}': it is damaged or newer"
            )
        if not all(isinstance(name, str) for name in through):
            raise RecordingError("the table of people has exits that are not names: it is damaged")
        places = tuple(dict.fromkeys(name for name in through if name))
        place_number = {name: number for number, name in enumerate(places)} | {"": NOWHERE}
        fate_number = {name: number for number, name in enumerate(FATES)}
        return cls(
            id=np.asarray(id, dtype=np.int64),
            group=np.asarray(group, dtype=np.int32),
            came=np.asarray(came, dtype=np.float64),
            gone=np.asarray(gone, dtype=np.float64),
            fate=np.array([fate_number[name] for name in fate], dtype=np.int8),
            through=np.array([place_number[name] for name in through], dtype=np.int32),
            places=places,
        )

    def check(self, *, groups: int) -> None:
        """Raise if a row is impossible in a run with this many groups."""
        bad = (self.group < 0) | (self.group >= groups) | ~np.isfinite(self.came) | np.isinf(self.gone)
        bad |= (np.abs(self.came) > LONGEST_RUN) | (np.abs(self.gone) > LONGEST_RUN)
        bad[1:] |= np.diff(self.id) <= 0
        gone = np.isin(self.fate, (LEFT, DIED))
        bad |= gone & np.isnan(self.gone)
        if bad.any():
            number = self.id[np.flatnonzero(bad)[0]]
            raise RecordingError(f"the table of people has an impossible row for agent {number}: it is damaged")
