"""The things that change and can be known: doors, exits, standing obstacles, hazards, targets, and hostile groups.

Each has a number for good. Things that events add get the next ones; a thing that is gone keeps its number, and the
place and size that it had, because some may still believe in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.state import Floats
from tropel.errors import CheckpointError, ParameterError, suggest
from tropel.foundation.arguments import LARGEST_LENGTH
from tropel.foundation.stored_arrays import taken
from tropel.world import Hazard, Obstacle, World
from tropel.world.believed import Blocked
from tropel.world.goals import walkable_part


class Kind(IntEnum):
    """What a thing is."""

    DOOR = 0
    EXIT = 1
    OBSTACLE = 2
    HAZARD = 3
    TARGET = 4
    GROUP = 5

    @property
    def word(self) -> str:
        return self.name.lower()


#: What is known of a thing. Doors and exits are shut or open, others are gone or there; of a hostile group, how many of
#: its agents were seen.
UNKNOWN, NO, YES = -1, 0, 1
_WORDS = {Kind.DOOR: ("shut", "open"), Kind.EXIT: ("shut", "open")}
_OTHERS = ("gone", "there")
#: At most so many points of an exit are looked for.
_MOST_CORNERS = 8


def word_for(kind: Kind, state: int) -> str:
    """A state in words."""
    if state == UNKNOWN:
        return "unknown"
    if kind is Kind.GROUP:
        return f"{state} seen"
    return _WORDS.get(kind, _OTHERS)[int(state != NO)]


def state_for(kind: Kind, word: str) -> int:
    """The state that a word means for a kind of thing."""
    words = _WORDS.get(kind, _OTHERS)
    if kind is Kind.GROUP or word not in words:
        allowed = "nothing, its agents are counted" if kind is Kind.GROUP else " or ".join(f"'{w}'" for w in words)
        raise ParameterError(f"a {kind.word} is not '{word}'; it is {allowed}")
    return words.index(word)


class Things:
    """All things by number, and what they are like in the world itself."""

    def __init__(self, world: World, hostile: Sequence[str]) -> None:
        self.dim = world.dim
        self.keys: list[str] = []  #: such as "door main"
        self.kind: NDArray[np.int8] = np.empty(0, dtype=np.int8)
        self.place: Floats = np.empty((0, self.dim))  #: of obstacles, hazards and targets, now or when last there [m]
        self.size: Floats = np.empty((0, 4))  #: radius; of hazards inner radius, outer radius, intensity, replan
        self._numbers: dict[str, int] = {}
        self._versions: tuple[Any, ...] = ()
        self._points: dict[int, Floats] = {}
        self._enter(Kind.DOOR, world.doors)
        self._enter(Kind.EXIT, world.exits)
        self.follow(world)
        self._enter(Kind.GROUP, hostile)

    def __len__(self) -> int:
        return len(self.keys)

    def _enter(self, kind: Kind, names: Any) -> None:
        new = [key for key in (f"{kind.word} {name}" for name in names) if key not in self._numbers]
        if not new:
            return
        self._numbers.update({key: len(self.keys) + k for k, key in enumerate(new)})
        self.keys += new
        self.kind = np.append(self.kind, np.full(len(new), kind, dtype=np.int8))
        self.place = np.vstack([self.place, np.full((len(new), self.dim), np.nan)])
        self.size = np.vstack([self.size, np.zeros((len(new), 4))])

    def name(self, number: int) -> str:
        """The name that a thing has in the world."""
        return self.keys[number].partition(" ")[2]

    def number(self, named: str) -> int:
        """The number of a thing by name, such as "main", or "door main" where a hazard has the same name."""
        if named in self._numbers:
            return self._numbers[named]
        found = [number for number, key in enumerate(self.keys) if key.partition(" ")[2] == named]
        if len(found) == 1:
            return found[0]
        if found:
            which = " or ".join(f"'{self.keys[k]}'" for k in found)
            raise ParameterError(f"'{named}' may be several things; say {which}")
        raise ParameterError(f"there is nothing called '{named}' that can be known; {suggest(named, self.keys)}")

    def numbers_of(self, kind: Kind) -> NDArray[np.int64]:
        return np.flatnonzero(self.kind == kind)

    # The world itself -------------------------------------------------------------------------------------------

    def follow(self, world: World) -> bool:
        """Enter what has come, and note where everything is now; returns whether there are more things than before."""
        now = world.obstacles.version, world.hazards.version, len(world.targets), world.goals()
        before, count = self._versions, len(self)
        if before and before[:3] == now[:3] and before[3] is now[3]:
            self._follow_targets(world)
            return False
        self._versions = now
        moving = set(world.obstacles.moving)
        self._enter(Kind.OBSTACLE, [name for name in world.obstacles.names if name not in moving])
        self._enter(Kind.HAZARD, world.hazards.names)
        self._enter(Kind.TARGET, world.targets)
        for row, name in enumerate(world.obstacles.names):
            if (number := self._numbers.get(f"obstacle {name}")) is not None:
                self.place[number], self.size[number, 0] = world.obstacles.position[row], world.obstacles.radius[row]
        for row, name in enumerate(world.hazards.names):
            number, item = self._numbers[f"hazard {name}"], world.hazards[name]
            self.place[number] = world.hazards.position[row]
            self.size[number] = world.hazards.inner[row], world.hazards.outer[row], item.intensity, item.replan
        self._follow_targets(world)
        return len(self) > count

    def _follow_targets(self, world: World) -> None:
        for name, target in world.targets.items():
            number = self._numbers[f"target {name}"]
            self.place[number] = world.goals().position[world.goal_numbers[name]]
            self.size[number, 0] = target.radius

    def truth(self, world: World) -> NDArray[np.int16]:
        """What everything is like in the world itself; of groups nothing."""
        there = {
            Kind.DOOR: {name for name, door in world.doors.items() if door.open},
            Kind.EXIT: {name for name, exit in world.exits.items() if exit.open},
            Kind.OBSTACLE: set(world.obstacles.names),
            Kind.HAZARD: set(world.hazards.names),
            Kind.TARGET: set(world.targets),
        }
        found = np.full(len(self), UNKNOWN, dtype=np.int16)
        for number, kind in enumerate(self.kind.tolist()):
            if kind != Kind.GROUP:
                found[number] = YES if self.name(number) in there[Kind(kind)] else NO
        return found

    def known_at_first(self, world: World, at_first: str) -> NDArray[np.int16]:
        """What is known before anything is seen: the start, or the plan of the building."""
        found = self.truth(world)
        if at_first == "plan":
            found[np.isin(self.kind, (Kind.DOOR, Kind.EXIT))] = YES
            found[self.kind == Kind.HAZARD] = UNKNOWN
        for number in self.numbers_of(Kind.TARGET).tolist():
            if world.targets[self.name(number)].motion is not None:
                found[number] = UNKNOWN  # it may be anywhere
        return found

    def points(self, world: World) -> tuple[Floats, NDArray[np.int64], Floats]:
        """Points to look at, the thing that each belongs to, and the radius of the disc around it [m]."""
        points, thing, size = [], [], []
        for number, kind in enumerate(self.kind.tolist()):
            if kind == Kind.GROUP or (kind > Kind.EXIT and np.isnan(self.place[number]).any()):
                continue
            if number not in self._points and kind <= Kind.EXIT:
                name = self.name(number)
                shape = world.door_segments(name) if kind == Kind.DOOR else world.exits[name].polygon
                self._points[number] = _on_door(shape) if kind == Kind.DOOR else _in_exit(shape, world)
            own = self._points[number] if kind <= Kind.EXIT else self.place[number][None]
            points.append(own)
            thing.append(np.full(len(own), number, dtype=np.int64))
            size.append(np.full(len(own), self.size[number, 0] if kind > Kind.EXIT else 0.0))
        if not points:
            return np.empty((0, self.dim)), np.empty(0, dtype=np.int64), np.empty(0)
        return np.vstack(points), np.concatenate(thing), np.concatenate(size)

    def blocked(self, numbers: Sequence[int]) -> Blocked:
        """What is in the way according to somebody, given the numbers of the things that are shut or there."""
        of: dict[int, list[int]] = {kind: [] for kind in Kind}
        for number in numbers:
            of[int(self.kind[number])].append(number)
        return Blocked(
            doors={self.name(number) for number in of[Kind.DOOR]},
            exits={self.name(number) for number in of[Kind.EXIT]},
            obstacles={
                self.name(number): Obstacle(radius=float(self.size[number, 0]), position=tuple(self.place[number]))
                for number in of[Kind.OBSTACLE]
            },
            hazards={self.name(number): self._hazard(number) for number in of[Kind.HAZARD]},
        )

    def _hazard(self, number: int) -> Hazard:
        inner, outer, intensity, replan = self.size[number].tolist()
        return Hazard(
            position=tuple(self.place[number]), inner=inner, outer=max(outer, inner), intensity=intensity,
            replan=bool(replan), deadly=False,
        )  # fmt: skip

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        return {"things": np.array(self.keys), "kind": self.kind, "place": self.place, "size": self.size}

    def read(self, stored: Mapping[str, NDArray[Any]]) -> dict[str, Any]:
        """What `state` returned, checked."""
        keys = stored.get("things", np.empty(0, dtype="U1"))
        if keys.ndim != 1 or keys.dtype.kind not in "U" or len(set(keys.tolist())) != len(keys):
            raise CheckpointError("'things' must be different names")
        fixed = [key for key in self.keys if key.partition(" ")[0] in ("door", "exit", "group")]
        told = [key for key in keys.tolist() if key.partition(" ")[0] in ("door", "exit", "group")]
        if fixed != told:
            raise CheckpointError("'things' has other doors, exits or groups than this simulation")
        kind = taken(stored, "kind", dtype="int8", shape=(len(keys),), low=0, high=len(Kind) - 1)
        if any(Kind(k).word != key.partition(" ")[0] for k, key in zip(kind.tolist(), keys.tolist(), strict=True)):
            raise CheckpointError("'kind' does not agree with the names of 'things'")
        place = taken(stored, "place", dtype="float64", shape=(len(keys), self.dim), finite=False)
        size = taken(stored, "size", dtype="float64", shape=(len(keys), 4), low=0.0, high=2.0 * LARGEST_LENGTH)
        return {"keys": keys.tolist(), "kind": kind, "place": place, "size": size}

    def put_back(self, read: Mapping[str, Any]) -> None:
        self.keys, self.kind, self.place, self.size = (read[name] for name in ("keys", "kind", "place", "size"))
        self._numbers = {key: number for number, key in enumerate(self.keys)}
        self._versions, self._points = (), {}


def _on_door(segments: Floats) -> Floats:
    """Points of a door: three of each of its pieces."""
    first, last = segments[:, None, :2], segments[:, None, 2:]
    share = np.array([0.25, 0.5, 0.75])[None, :, None]
    return np.asarray((first + share * (last - first)).reshape(-1, 2))


def _in_exit(polygon: Any, world: World) -> Floats:
    """Points of an exit: its middle, and some just inside its corners."""
    part = walkable_part(polygon, world.walkable)
    middle = shapely.get_coordinates(part.representative_point())
    corners = shapely.get_coordinates(part)[:_MOST_CORNERS]
    return np.vstack([middle, middle + 0.9 * (corners - middle)])
