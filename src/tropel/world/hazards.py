"""Hazards: fire, rubble, explosions. They are round: agents die within the inner radius and keep away up to the outer.

After Banerjee, Abukmail & Kraemer (SIMULATION 85, 2009, section 5): a hazard is (centre, r_i, r_o, a). A place at the
distance d from its centre has the value 0 up to r_i, ((d - r_i) / (r_o - r_i))^a up to r_o, and 1 beyond.
`influence.py` turns that into a filter for crowds on a lattice and into the cost of paths in flow fields. For all other
models it turns the planned direction away from the hazard (`local/habits/avoid_hazards.py`), and the inner disc is one
more round obstacle of the type `kind` (`ObstacleSet.grid`), with one difference: it stops agents that walk into it, but
it does not push. An agent that a fire reaches dies (`agents/leaving.py`) and is not shoved along.

Sizes are functions of time, like motions: a resumed run finds every hazard at the same size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import GeometryError, named_parameters
from tropel.foundation.arguments import LARGEST_LENGTH, checked_arguments
from tropel.world.declared import NamedSet
from tropel.world.motion import MotionLike, Position, position_at, stored_motion
from tropel.world.shapes import is_length, point

#: The outer radius of hazards that give none, in inner radii (the default of the paper).
OUTER_PER_INNER = 4.0


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Hazard:
    """A hazard that kills agents within `inner` [m] of its centre and is avoided up to `outer` [m] (4 `inner`).

    Give a position, or a motion that moves it. `inner` grows by `growth` [m/s] from the time it is added until it
    reaches `largest` [m]; `outer` keeps its ratio to it. The hazard ends at the time `until` [s].
    """

    inner: float
    outer: float | None = None
    position: Position | None = None
    motion: MotionLike | None = None
    intensity: float = 1.0  #: a: 1 is avoided mildly all the way to `outer`, larger values more sharply
    kind: str = "fire"  #: "fire", "rubble", "explosion" or anything else
    growth: float = 0.0  #: [m/s]
    largest: float | None = None  #: [m]
    until: float | None = None  #: [s] of simulated time
    replan: bool = False  #: whether planners find paths around it; otherwise agents only keep away locally
    deadly: bool = True

    def __post_init__(self) -> None:
        if (self.position is None) == (self.motion is None):
            raise GeometryError("a hazard needs either a position or a motion")
        if not (is_length(self.inner) and self.inner > 0.0):
            raise GeometryError(
                f"a hazard needs a positive inner radius of at most {LARGEST_LENGTH:g} m, not {self.inner!r}"
            )
        if self.outer is not None and not (is_length(self.outer) and self.outer >= self.inner):
            raise GeometryError(
                f"a hazard's outer radius must not be below its inner radius of {self.inner:g} m, nor above "
                f"{LARGEST_LENGTH:g} m, got {self.outer!r}"
            )
        for name in ("intensity", "growth"):
            value = getattr(self, name)
            if not is_length(value):
                raise GeometryError(
                    f"a hazard's {name} must be finite and not negative, and at most {LARGEST_LENGTH:g}, got {value!r}"
                )
        if self.largest is not None and not (is_length(self.largest) and self.largest >= self.inner):
            raise GeometryError(
                f"a hazard cannot stop growing at {self.largest!r} m: its inner radius is already {self.inner:g} m"
            )
        if self.until is not None and not self.until > 0.0:
            raise GeometryError(f"a hazard must last until a time above zero, not {self.until!r} s")

    @property
    def outer_per_inner(self) -> float:
        return OUTER_PER_INNER if self.outer is None else self.outer / self.inner

    @property
    def changes(self) -> bool:
        """Whether it moves, grows or ends by itself."""
        return self.motion is not None or self.growth > 0.0 or self.until is not None

    def resized(self, inner: float, outer: float | None = None) -> Hazard:
        """The same with other radii [m]; without `outer` the ratio stays the same."""
        return replace(self, inner=inner, outer=inner * self.outer_per_inner if outer is None else outer)

    def inner_after(self, seconds: float) -> float:
        """The inner radius [m] this many seconds after the hazard was added."""
        grown = self.inner + self.growth * seconds
        return grown if self.largest is None else min(grown, self.largest)


class HazardSet(NamedSet[Hazard]):
    """The hazards of a world by name, and arrays with a row for each in the order of adding."""

    what = "hazard"

    def __init__(self, dim: int, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        super().__init__()
        self.dim = dim
        self._low, self._high = low, high
        self._since: dict[str, float] = {}  #: when each had the size it was given [s]
        self.types: list[str] = []  #: every kind ever added, and every type of obstacle
        self.version = 0  #: changes whenever a place or size does
        self.position: NDArray[np.float64] = np.empty((0, dim))
        self.velocity: NDArray[np.float64] = np.empty((0, dim))
        self.inner: NDArray[np.float64] = np.empty(0)  #: [m]
        self.outer: NDArray[np.float64] = np.empty(0)  #: [m]
        self.type: NDArray[np.int32] = np.empty(0, dtype=np.int32)  #: indices into `types`

    def rows_where(self, quality: str) -> NDArray[np.int64]:
        """Rows of hazards that are `deadly`, or that make planners `replan`."""
        rows = [row for row, item in enumerate(self._items.values()) if getattr(item, quality)]
        return np.array(rows, dtype=np.int64)

    def check(self, name: str, hazard: Hazard, *, time: float = 0.0) -> None:
        """Raise if a hazard's place at `time` [s] is not valid in this world."""
        what = f"hazard '{name}'"
        if hazard.position is not None:
            place = point(hazard.position, what, dim=self.dim)
        else:
            assert hazard.motion is not None
            place = position_at(hazard.motion, time, what=what, dim=self.dim)
        if (place < self._low).any() or (place > self._high).any():
            raise GeometryError(
                f"{what} at {_text(place)} lies outside the world, which reaches from {_text(self._low)} to "
                f"{_text(self._high)}; put its centre inside"
            )
        if hazard.until is not None and hazard.until <= time:
            raise GeometryError(f"{what} lasts until {hazard.until:g} s, which is over when it is added at {time:g} s")

    @checked_arguments
    def add(self, name: str, hazard: Hazard, *, time: float = 0.0, dt: float = 0.0) -> None:
        self.add_all({name: hazard}, time=time, dt=dt)

    def add_all(self, hazards: Mapping[str, Hazard], *, time: float = 0.0, dt: float = 0.0) -> None:
        """Add several hazards at once. Adding them one by one would rewrite the arrays for each."""
        if not hazards:
            return
        for name, hazard in hazards.items():
            self.check_new(name)
            self.check(name, hazard, time=time)
        for name, hazard in hazards.items():
            self._put(name, hazard, since=time)
        place, velocity, inner, outer = self._rows(hazards, time, dt)
        self.position, self.velocity = np.vstack([self.position, place]), np.vstack([self.velocity, velocity])
        self.inner, self.outer = np.append(self.inner, inner), np.append(self.outer, outer)
        numbers = self.numbers_of_types(hazard.kind for hazard in hazards.values())
        self.type = np.append(self.type, np.array(numbers, dtype=np.int32))
        self.version += 1

    @checked_arguments
    def move(self, name: str, position: Position, *, time: float = 0.0, dt: float = 0.0) -> None:
        """Move a hazard to another place, where it stays."""
        moved = replace(self.find(name), position=position, motion=None)
        self.check(name, moved, time=time)
        self._items[name] = moved
        self._lay_out(time, dt)

    @checked_arguments
    def grow(self, name: str, *, inner: float, outer: float | None = None, time: float = 0.0, dt: float = 0.0) -> None:
        """Give a hazard another size now, from which it may continue to grow; without `outer` the ratio stays."""
        old = self.find(name)
        self._put(name, old.resized(inner, outer), time)
        self._lay_out(time, dt)

    @checked_arguments
    def remove(self, name: str) -> None:
        self.find(name)
        self._remove_all({name})

    def _remove_all(self, names: set[str]) -> None:
        rows = [row for row, name in enumerate(self._items) if name in names]
        for name in names:
            del self._items[name], self._since[name]
        for column in ("position", "velocity", "inner", "outer", "type"):
            setattr(self, column, np.delete(getattr(self, column), rows, axis=0))
        self.version += 1

    def advance(self, time: float, dt: float) -> None:
        """Update hazards that move or grow to `time` [s], and remove those that are over."""
        ends = ((name, item.until) for name, item in self._items.items() if item.until is not None)
        over = {name for name, end in ends if time >= end - 1e-9 * dt}
        if over:
            self._remove_all(over)
        if any(item.changes for item in self._items.values()):
            self._lay_out(time, dt)

    def numbers_of_types(self, names: Iterable[str]) -> list[int]:
        """Indices of types by name; new ones are appended to `types`."""
        known = {name: number for number, name in enumerate(self.types)}
        numbers = [known.setdefault(name, len(known)) for name in names]
        self.types += list(known)[len(self.types) :]
        return numbers

    def _put(self, name: str, hazard: Hazard, since: float) -> None:
        self._items[name] = hazard
        self._since[name] = since

    def _lay_out(self, time: float, dt: float) -> None:
        """Write the arrays. They are new ones, because kernels may still hold the old ones."""
        before = (self.position, self.velocity, self.inner, self.outer)
        self.position, self.velocity, self.inner, self.outer = self._rows(self._items, time, dt)
        self.type = np.array(self.numbers_of_types(item.kind for item in self._items.values()), dtype=np.int32)
        now = (self.position, self.velocity, self.inner, self.outer)
        if not all(np.array_equal(old, new) for old, new in zip(before, now, strict=True)):
            self.version += 1

    def _rows(self, items: Mapping[str, Hazard], time: float, dt: float) -> tuple[NDArray[np.float64], ...]:
        """Positions, velocities, inner and outer radii of some hazards at a time [s]."""
        count = len(items)
        position, velocity = np.empty((count, self.dim)), np.zeros((count, self.dim))
        inner, outer = np.empty(count), np.empty(count)
        for row, (name, item) in enumerate(items.items()):
            inner[row] = item.inner_after(time - self._since[name])
            outer[row] = item.outer_per_inner * inner[row]
            if item.motion is None:
                position[row] = item.position
                continue
            what = f"hazard '{name}'"
            position[row] = position_at(item.motion, time, what=what, dim=self.dim)
            if dt > 0.0:
                ahead = position_at(item.motion, time + dt, what=what, dim=self.dim)
                velocity[row] = (ahead - position[row]) / dt
        return position, velocity, inner, outer

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores: all fields of each hazard (a function is stored by its hazard's name)."""
        stored: dict[str, Any] = {}
        for name, item in self._items.items():
            entry = {each.name: getattr(item, each.name) for each in fields(item)}
            if item.position is not None:
                entry["position"] = [float(c) for c in item.position]
            if item.motion is not None:
                entry["motion"] = stored_motion(item.motion)
            stored[name] = {"since": self._since[name], **entry}
        return stored

    def put_back(self, hazards: Mapping[str, tuple[Hazard, float]], *, time: float, dt: float) -> None:
        """Replace all hazards by these, each with the time at which it had its given size."""
        self._remove_all(set(self._items))
        for name, (hazard, since) in hazards.items():
            self._put(name, hazard, since=since)
        self._lay_out(time, dt)


def _text(place: NDArray[np.float64]) -> str:
    return "(" + ", ".join(f"{c:g}" for c in place) + ")"
