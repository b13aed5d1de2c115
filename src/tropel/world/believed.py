"""The world as somebody believes it to be: other doors and exits open, other obstacles and hazards there.

It shares everything else with the world itself: walls, names, numbers of goals, places of targets. Planners make plans
in it as in any other world.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from tropel._kernels.walls import WallGrid
from tropel.world.goals import GoalArrays
from tropel.world.hazards import Hazard, HazardSet
from tropel.world.obstacles import Obstacle, ObstacleSet
from tropel.world.world import World


@dataclass(frozen=True, kw_only=True)
class Blocked:
    """What somebody believes to be in the way, by name.

    Obstacles and hazards that are no longer there are given as they were.
    """

    doors: AbstractSet[str]
    exits: AbstractSet[str]
    obstacles: Mapping[str, Obstacle]  #: standing ones; those that move are as they are
    hazards: Mapping[str, Hazard]


class BelievedWorld(World):
    """A view of a world; `refresh` follows what happens to the world itself."""

    def __init__(self, world: World, blocked: Blocked) -> None:
        self._real = world
        self._blocked = blocked
        self._seen_versions: tuple[int, int] = (-1, -1)
        self._real_goals: GoalArrays | None = None
        self._rebuilt = 0
        self.refresh(blocked)

    def refresh(self, blocked: Blocked) -> None:
        """Take over what has changed in the world itself; the same things are blocked, perhaps elsewhere."""
        real, own = self._real, ("_real", "_blocked", "_seen_versions", "_real_goals", "_rebuilt")
        kept = {name: self.__dict__[name] for name in (*own, "blocking", "hazards", "obstacles", "_goals")
                if name in self.__dict__}  # fmt: skip
        self.__dict__.update(real.__dict__)
        self.__dict__.update(kept)
        self._blocked = blocked
        if "blocking" not in kept:
            self.blocking = real.blocking.copy()
            for name, rows in real.door_rows.items():
                self.blocking[rows] = name in blocked.doors
        versions = real.obstacles.version, real.hazards.version
        if versions != self._seen_versions or "hazards" not in kept:
            self._seen_versions = versions
            self._rebuilt += 1
            self.hazards = _hazards(real.hazards, blocked.hazards, self._rebuilt)
            self.obstacles = _obstacles(real.obstacles, blocked.obstacles, self.hazards, self._rebuilt)

    def goals(self) -> GoalArrays:
        """All goals by number; exits that are believed shut are not usable."""
        real = self._real.goals()
        if self._real_goals is not real or self._goals is None:
            usable = real.usable.copy()
            for name in self.exits:
                usable[self.goal_numbers[name]] = name not in self._blocked.exits
            self._real_goals, self._goals = real, real._replace(usable=usable)
        return self._goals

    def wall_grid(self, reach: float, *, level: int = 0) -> WallGrid:
        return self._real.wall_grid(reach, level=level)._replace(blocking=self.blocking)


def _hazards(real: HazardSet, believed: Mapping[str, Hazard], version: int) -> HazardSet:
    """The hazards that are believed to be there: as they are, or as they were if they are over."""
    own = copy.copy(real)
    own._items, own._since = dict(real._items), dict(real._since)
    own._remove_all({name for name in real.names if name not in believed})
    over = {name: hazard for name, hazard in believed.items() if name not in real}
    own.types = list(real.types)
    own.add_all(over)
    own.version = version
    return own


def _obstacles(real: ObstacleSet, believed: Mapping[str, Obstacle], hazards: HazardSet, version: int) -> ObstacleSet:
    own = copy.copy(real)
    own._items, own._grids, own._hazards, own.types = dict(real._items), {}, hazards, hazards.types
    moving = set(real.moving)
    rows = [row for row, name in enumerate(real.names) if name in moving or name in believed]
    own._items = {name: item for name, item in real._items.items() if name in moving or name in believed}
    own.position, own.velocity = real.position[rows].copy(), real.velocity[rows].copy()
    own.radius, own.type = real.radius[rows].copy(), real.type[rows].copy()
    own._changed()
    own.add_all({name: item for name, item in believed.items() if name not in real})
    own.version = version
    return own
