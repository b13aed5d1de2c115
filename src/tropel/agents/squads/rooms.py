"""Who searches which room: what every squad has seen of rooms, and how rooms are shared out.

A part of a room (`Floor.parts`) is seen when somebody of the squad is in the room, within its sight of the part, and no
wall or closed door is in between. A room is searched when every part of it has been seen. Squads of one side that share
count what any of them has seen, and no two of them claim the same room. Rooms are shared out by walking distance, the
shortest first, among all squads that have none; ties go to the group declared first and to the room named first.

Parts that no way leads to, behind a door that is shut, are left out until one does. A squad whose room has become out
of reach gives it up and gets another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.squads.floor import Floor
from tropel.agents.squads.sight import note_seen
from tropel.errors import CheckpointError
from tropel.foundation.stored_arrays import taken
from tropel.world.places import NAMED, Place, named_place

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: No room.
NONE = -1


@dataclass(frozen=True, kw_only=True)
class Searcher:
    """A squad that searches now."""

    number: int  #: of its group
    here: Floats  #: where its commander is [m]
    areas: tuple[int, ...]  #: the numbers of the rooms that it was told to search
    mates: tuple[int, ...]  #: the groups, itself included, that tell it what they have seen


class Rooms:
    """The rooms that anybody was told to search, by number, and what each squad has seen of them."""

    def __init__(self, floor: Floor, squads: Sequence[int], groups: int) -> None:
        self.floor = floor
        self._squads = tuple(squads)
        self.places: list[Place] = []
        self._numbers: dict[str, int] = {}
        self.claim = np.full(groups, NONE, dtype=np.int64)  #: the room that each squad searches
        self._seen: dict[int, NDArray[np.bool_]] = {}  #: for each squad, which cells it has seen

    def number(self, place: Place) -> int:
        """The number of a room; new ones get the next."""
        if place.key not in self._numbers:
            self._numbers[place.key] = len(self.places)
            self.places.append(place)
        return self._numbers[place.key]

    def seen_by(self, squads: Sequence[int]) -> NDArray[np.bool_]:
        """Which cells one of some squads has seen, by number."""
        cells = self.floor.raster.free.size
        found = np.zeros(cells, dtype=np.bool_)
        for squad in squads:
            if squad in self._seen:
                found |= self._seen[squad]
        return found

    def look(self, squad: int, people: Floats, sight: float) -> None:
        """Note what the people (K, 2) of a squad see of the rooms that they are in."""
        for place in self.places:
            inside = self.floor.is_inside(place, people) if len(people) else np.zeros(0, dtype=np.bool_)
            if not inside.any():
                continue
            own = self._seen.setdefault(squad, np.zeros(self.floor.raster.free.size, dtype=np.bool_))
            parts = self.floor.parts(place)
            parts = parts[~own[parts]]
            fresh = np.zeros(len(parts), dtype=np.bool_)
            note_seen(self.floor.world, people[inside], self.floor.centres(parts), sight, fresh)
            own[parts[fresh]] = True

    def unseen(self, area: int, seen: NDArray[np.bool_]) -> Ints:
        """The parts of a room that have not been seen."""
        parts = self.floor.parts(self.places[area])
        return parts[~seen[parts]]

    def is_searched(self, area: int, squads: Sequence[int]) -> bool:
        """Whether some squads together have seen every part of a room."""
        return not len(self.unseen(area, self.seen_by(squads)))

    def release(self, squad: int) -> None:
        self.claim[squad] = NONE

    def share_out(self, searchers: Sequence[Searcher]) -> dict[int, tuple[Ints, Floats]]:
        """Give a room to every searcher that has none; returns what is left to see in the room of each that has one.

        Those are the parts of its room that can be walked to and have not been seen, and the walking distances from
        its commander to all cells.
        """
        left: dict[int, dict[int, Ints]] = {}
        walks: dict[int, Floats] = {}
        for each in searchers:
            seen, walk = self.seen_by(each.mates), self.floor.walk(each.here)
            flat = walk.reshape(-1)
            found = {area: self.unseen(area, seen) for area in each.areas}
            left[each.number] = {area: cells[np.isfinite(flat[cells])] for area, cells in found.items()}
            walks[each.number] = walk
            mine = int(self.claim[each.number])
            if mine != NONE and not len(left[each.number].get(mine, ())):
                self.release(each.number)
        wanted = [
            (float(walks[each.number].reshape(-1)[cells].min()), each.number, place, each)
            for each in searchers
            if self.claim[each.number] == NONE
            for place, area in enumerate(each.areas)
            if len(cells := left[each.number][area])
        ]
        for _, number, place, each in sorted(wanted, key=lambda entry: entry[:3]):
            taken_already = {int(self.claim[mate]) for mate in each.mates}
            if self.claim[number] == NONE and each.areas[place] not in taken_already:
                self.claim[number] = each.areas[place]
        return {
            each.number: (left[each.number][int(self.claim[each.number])], walks[each.number])
            for each in searchers
            if self.claim[each.number] != NONE
        }

    def anything_left(self, each: Searcher) -> bool:
        """Whether anything that a squad was told to search can be walked to and has not been seen."""
        seen, walk = self.seen_by(each.mates), self.floor.walk(each.here).reshape(-1)
        return any(np.isfinite(walk[self.unseen(area, seen)]).any() for area in each.areas)

    # Checkpoints ------------------------------------------------------------------------------------------------

    def state(self) -> dict[str, NDArray[Any]]:
        cells = self.floor.raster.free.size
        seen = [self._seen.get(squad, np.zeros(cells, dtype=np.bool_)) for squad in self._squads]
        return {
            "squads/rooms": np.array([f"{place.kind} {place.name}" for place in self.places], dtype=str),
            "squads/claim": self.claim.copy(),
            "squads/seen": np.packbits(np.array(seen, dtype=np.bool_).reshape(len(seen), cells), axis=1),
        }

    def read(self, stored: Mapping[str, NDArray[Any]]) -> Rooms:
        """What `state` returned, checked."""
        fresh = Rooms(self.floor, self._squads, len(self.claim))
        names = stored["squads/rooms"]
        if names.dtype.kind != "U" or names.ndim != 1:
            raise CheckpointError("'squads/rooms' must hold names of rooms")
        world = self.floor.world
        for text in names.tolist():
            kind, _, name = text.partition(" ")
            if kind not in NAMED or name not in (world.rooms if kind == "room" else world.regions):
                raise CheckpointError(f"'squads/rooms' holds '{text[:60]}', which this world does not have")
            fresh.number(named_place(kind, name))
        high = len(fresh.places) - 1
        fresh.claim = taken(stored, "squads/claim", dtype="int64", shape=self.claim.shape, low=NONE, high=high)
        cells = self.floor.raster.free.size
        packed = taken(stored, "squads/seen", dtype="uint8", shape=(len(self._squads), -(-cells // 8)))
        seen = np.unpackbits(packed, axis=1, count=cells).astype(np.bool_)
        fresh._seen = {squad: row for squad, row in zip(self._squads, seen, strict=True) if row.any()}
        return fresh
