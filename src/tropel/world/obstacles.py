"""Round obstacles, static or moving, and the arrays that kernels see of them, in which hazards are discs too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.discs import DiscGrid, disc_grid
from tropel.errors import GeometryError, ParameterError, is_finite
from tropel.world.hazards import HazardSet
from tropel.world.motion import MotionLike, position_at, restored_motion, stored_motion
from tropel.world.named_set import NamedSet
from tropel.world.periodic import images_of_discs, wrap_places
from tropel.world.shapes import point


@dataclass(frozen=True, kw_only=True)
class Obstacle:
    """A disk (2D) or ball (3D) that nobody walks into. Give a position, or a motion that moves it."""

    radius: float
    position: Sequence[float] | None = None
    motion: MotionLike | None = None
    type: str = "obstacle"  #: what it is, such as "fire"; models may treat types differently

    def __post_init__(self) -> None:
        if not (is_finite(self.radius) and self.radius > 0.0):
            raise GeometryError(f"an obstacle needs a positive radius, not {self.radius!r}")
        if (self.position is None) == (self.motion is None):
            raise GeometryError("an obstacle needs either a position or a motion")


class ObstacleSet(NamedSet[Obstacle]):
    """The obstacles of a world by name, and their positions, velocities and radii as arrays in the order of adding."""

    what = "obstacle"

    def __init__(
        self,
        dim: int,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        *,
        hazards: HazardSet | None = None,
        period: NDArray[np.float64] | None = None,
    ) -> None:
        super().__init__()
        self.dim = dim
        self._low, self._high = low, high
        self._period = np.zeros(dim) if period is None else period
        self._half = 0.5 * float(self._period[self._period > 0.0].min(initial=math.inf))  #: of the shortest period
        self._hazards = HazardSet(dim, low, high) if hazards is None else hazards
        self._grids: dict[float, tuple[tuple[int, int], DiscGrid]] = {}
        self.version = 0  #: changes whenever a position or radius does
        self.position: NDArray[np.float64] = np.empty((0, dim))
        self.velocity: NDArray[np.float64] = np.empty((0, dim))
        self.radius: NDArray[np.float64] = np.empty(0)
        self.type: NDArray[np.int32] = np.empty(0, dtype=np.int32)  #: numbers of `types`
        self.types: list[str] = self._hazards.types  #: every type there has been, and every kind of hazard
        self._moving: list[tuple[int, str]] = []

    @property
    def moving(self) -> list[str]:
        return [name for _, name in self._moving]

    @property
    def moving_rows(self) -> list[int]:
        return [row for row, _ in self._moving]

    @property
    def fastest(self) -> float:
        """Speed of the fastest of them [m/s]."""
        return float(np.linalg.norm(self.velocity, axis=1).max(initial=0.0)) if self._moving else 0.0

    def add(self, name: str, obstacle: Obstacle, *, time: float = 0.0, dt: float = 0.0) -> None:
        self.check_new(name)
        self.check(name, obstacle, time=time)
        self._append(name, obstacle)
        self.advance(time, dt)

    def check(self, name: str, obstacle: Obstacle, *, time: float = 0.0) -> None:
        """Raise when an obstacle's size, or its place as it is at `time` [s], is none in this world."""
        if obstacle.radius >= self._half:
            raise GeometryError(
                f"obstacle '{name}' has a radius of {obstacle.radius:g} m; where space repeats after "
                f"{2.0 * self._half:g} m it must be less than half of that"
            )
        if obstacle.position is not None:
            point(obstacle.position, f"obstacle '{name}'", dim=self.dim)
        if obstacle.motion is not None:
            position_at(obstacle.motion, time, what=f"obstacle '{name}'", dim=self.dim)

    def remove(self, name: str) -> None:
        self.find(name)
        row = self.names.index(name)
        del self._items[name]
        self.position = np.delete(self.position, row, axis=0)
        self.velocity = np.delete(self.velocity, row, axis=0)
        self.radius = np.delete(self.radius, row)
        self.type = np.delete(self.type, row)
        self._changed()

    def move(self, name: str, position: Sequence[float]) -> None:
        """Put an obstacle elsewhere, to stay there."""
        old = self.find(name)
        where = point(position, f"obstacle '{name}'", dim=self.dim)
        self._items[name] = Obstacle(radius=old.radius, position=tuple(where.tolist()), type=old.type)
        row = self.names.index(name)
        self.position[row] = where
        self._wrap()
        self.velocity[row] = 0.0
        self._changed()

    def _append(self, name: str, obstacle: Obstacle) -> None:
        self._items[name] = obstacle
        place = np.zeros(self.dim) if obstacle.position is None else np.asarray(obstacle.position, dtype=np.float64)
        self.position = np.vstack([self.position, place])
        self._wrap()
        self.velocity = np.vstack([self.velocity, np.zeros(self.dim)])
        self.radius = np.append(self.radius, obstacle.radius)
        if obstacle.type not in self.types:
            self.types.append(obstacle.type)
        self.type = np.append(self.type, np.int32(self.types.index(obstacle.type)))
        if obstacle.motion is not None:
            self._moving.append((len(self._items) - 1, name))
        self.version += 1

    def _changed(self) -> None:
        self.version += 1
        self._moving = [(row, name) for row, (name, item) in enumerate(self._items.items()) if item.motion is not None]

    def advance(self, time: float, dt: float) -> None:
        """Bring the moving ones to where they are at `time`; velocity is that of the step about to come."""
        for row, name in self._moving:
            motion = self._items[name].motion
            assert motion is not None
            what = f"obstacle '{name}'"
            self.position[row] = position_at(motion, time, what=what, dim=self.dim)
            if dt > 0.0:
                ahead = position_at(motion, time + dt, what=what, dim=self.dim)
                self.velocity[row] = (ahead - self.position[row]) / dt
            self.version += 1
        if self._moving:
            self._wrap()

    def _wrap(self) -> None:
        """Bring those that are beyond a seam back into the box."""
        if self._half < math.inf:
            wrap_places(self.position, self._low, self._high, self._period)

    def grid(self, reach: float) -> DiscGrid:
        """Cells that list every obstacle whose surface is within `reach` of any point of the cell.

        The inner discs of hazards come after the obstacles; they push nobody. In periodic space the images of all of
        these beyond the seams come last.
        """
        hazards = self._hazards
        now = (self.version, hazards.version)
        version, grid = self._grids.get(reach, (None, None))
        if grid is None or version != now:
            position, velocity, radius, type = self.position, self.velocity, self.radius, self.type
            if len(hazards):
                position, velocity = np.vstack([position, hazards.position]), np.vstack([velocity, hazards.velocity])
                radius, type = np.append(radius, hazards.inner), np.append(type, hazards.type)
            pushes = (np.arange(len(radius)) < len(self)).astype(np.uint8)
            if self._half < math.inf:
                if len(hazards):
                    wrap_places(position, self._low, self._high, self._period)
                # Half a period is more than any agent goes in a step.
                seen = radius + max(reach, self._half)
                rows, position = images_of_discs(position, seen, self._low, self._high, self._period)
                velocity, radius, type, pushes = velocity[rows], radius[rows], type[rows], pushes[rows]
            grid = disc_grid(position, velocity, radius, type, pushes, self._low, self._high, reach)
            self._grids[reach] = (now, grid)
        return grid

    def state(self) -> dict[str, Any]:
        """What a checkpoint stores: names, radii, places and motions (a function is stored by its obstacle's name)."""
        stored: dict[str, Any] = {}
        for row, (name, item) in enumerate(self._items.items()):
            entry: dict[str, Any] = {"radius": item.radius, "type": item.type}
            if item.motion is None:
                entry["position"] = self.position[row].tolist()
            else:
                entry["motion"] = stored_motion(item.motion)
            stored[name] = entry
        return stored

    def restore(self, stored: Mapping[str, Any], *, time: float, dt: float) -> None:
        declared = dict(self._items)
        for name in self.names:
            self.remove(name)
        for name, entry in stored.items():
            motion, sort = entry.get("motion"), entry.get("type", "obstacle")
            if motion == "function":
                if name not in declared:
                    raise ParameterError(f"obstacle '{name}' moves by a function that this script does not define")
                self._append(name, declared[name])
            elif motion is not None:
                self._append(name, Obstacle(radius=entry["radius"], motion=restored_motion(motion), type=sort))
            else:
                self._append(name, Obstacle(radius=entry["radius"], position=tuple(entry["position"]), type=sort))
        self.advance(time, dt)
