"""The world of a recorded run in a given frame: doors, exits, obstacles, hazards, targets."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import shapely

from tropel.errors import RecordingError
from tropel.pictures.hazards import HazardDisc, read_hazards
from tropel.recording import Trajectory
from tropel.recording.frames import RecordedEvent
from tropel.world.motion import restored_motion

#: A closed door is a slit in the recorded area; its sides are half a millimetre from the line of the door.
_SLIT = 1e-4

Place = tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class WorldAt:
    """The changing part of a world, in one frame."""

    area_wkt: str  #: the walkable area, ignoring doors; empty in open space and in 3D
    doors: dict[str, bool]  #: whether each is open
    exits: dict[str, bool]
    obstacles: dict[str, tuple[Place, float]]  #: centre and radius [m]
    targets: dict[str, Place]  #: targets that stand still
    moving_targets: dict[str, Place] = field(default_factory=dict)  #: targets that move by themselves, if known
    ways: tuple[str, ...] = ()  #: targets that still follow the path given in the scene
    hazards: dict[str, HazardDisc] = field(default_factory=dict)

    @property
    def fixtures(self) -> tuple[Any, ...]:
        """What a background shows; moments with equal fixtures have the same background."""
        standing = (tuple(d.items()) for d in (self.doors, self.exits, self.targets))
        return (self.area_wkt, *standing, self.ways)


@dataclass(frozen=True, kw_only=True)
class Change:
    """A door that opened or closed."""

    door: str
    time: float
    open: bool


class RecordedWorld:
    """Looks up the world of a trajectory by frame number."""

    def __init__(self, trajectory: Trajectory) -> None:
        self._trajectory = trajectory
        self._events = [entry for entry in trajectory.events if isinstance(entry.event, dict)]
        self._doors = {name: self._middle_of_door(name) for name in trajectory.scene.doors}
        self._open_doors: dict[str, dict[str, bool | None]] = {}
        self._motions = {
            name: restored_motion(target["motion"])
            for name, target in trajectory.scene.targets.items()
            if isinstance(target.get("motion"), dict)
        }
        self._obstacles_change = any(str(e.event.get("kind", "")).endswith("_obstacle") for e in self._events)

    def at(self, frame: int) -> WorldAt:
        scene = self._trajectory.scene
        past = [entry.event for entry in self._events if entry.frame <= frame]
        return WorldAt(
            area_wkt=self.area(frame),
            doors=self.doors(frame),
            exits=_switched(dict.fromkeys(scene.exits, True), past, "exit"),
            obstacles=self.with_images(self.obstacles(frame)),
            hazards=self.hazards(frame),
            targets=_targets({n: t["position"] for n, t in scene.targets.items() if "position" in t}, past),
            **self._moving_targets(frame),
        )

    def area(self, frame: int) -> str:
        """The walkable area, ignoring doors; empty in open space and in 3D."""
        scene = self._trajectory.scene
        # With doors, the areas of the frames differ by slits at closed doors; the area of the scene has none.
        return scene.walkable_wkt if scene.doors or not scene.walkable_wkt else self._trajectory.geometry(frame)

    def doors(self, frame: int) -> dict[str, bool]:
        """Which doors are open.

        The recorded area comes first, because it also shows doors that a Python function moved. Where it does not tell
        (open space, a door outside the area), the recorded events count.
        """
        scene = self._trajectory.scene
        if not scene.doors:
            return {}
        past = [entry.event for entry in self._events if entry.frame <= frame]
        by_events = _switched({name: bool(door.get("open")) for name, door in scene.doors.items()}, past, "door")
        by_area = self._doors_in_area(self._trajectory.geometry(frame)) if scene.walkable_wkt else {}
        return {name: by_events[name] if by_area.get(name) is None else bool(by_area[name]) for name in scene.doors}

    def obstacles(self, frame: int) -> dict[str, tuple[Place, float]]:
        """Where the obstacles are. A frame holds all of them if some move by themselves, otherwise none."""
        recorded = self._trajectory.obstacles(frame)
        if recorded:
            return {name: (tuple(entry["position"]), entry["radius"]) for name, entry in recorded.items()}
        standing = {n: (tuple(o["position"]), o["radius"]) for n, o in self._trajectory.scene.obstacles.items()}
        if self._obstacles_change:
            _move_obstacles(standing, (entry.event for entry in self._events if entry.frame <= frame))
        return standing

    @property
    def period(self) -> list[float]:
        """The length after which space repeats along each axis [m]; 0 where it does not."""
        return self._trajectory.scene.period

    def with_images(self, obstacles: dict[str, tuple[Place, float]]) -> dict[str, tuple[Place, float]]:
        """Obstacles and, in periodic space, their images at the other sides of the world."""
        if not any(self.period):
            return obstacles
        seen = dict(obstacles)
        along = [(0.0, -length, length) if length else (0.0,) for length in self.period]
        low, high = self._trajectory.scene.bounds
        for shift in list(itertools.product(*along))[1:]:
            for name, (centre, radius) in obstacles.items():
                image = tuple(c + by for c, by in zip(centre, shift, strict=True))
                if all(a - radius < c < b + radius for a, c, b in zip(low, image, high, strict=True)):
                    seen[f"{name} beyond {shift}"] = image, radius
        return seen

    def _moving_targets(self, frame: int) -> dict[str, Any]:
        """Targets that move by themselves, and where they are, as long as no event has moved them elsewhere."""
        time = self._trajectory.time(frame)
        touched = {
            entry.event.get("name")
            for entry in self._events
            if entry.frame <= frame and str(entry.event.get("kind", "")).endswith("_target")
        }
        targets = self._trajectory.scene.targets
        return {
            "moving_targets": {name: motion.at(time) for name, motion in self._motions.items() if name not in touched},
            "ways": tuple(name for name, entry in targets.items() if "path" in entry and name not in touched),
        }

    def hazards(self, frame: int) -> dict[str, HazardDisc]:
        return read_hazards(self._trajectory.hazards(frame))

    def door_changes(self, frames: Iterable[int]) -> list[Change]:
        """When doors opened or closed, as seen in ascending frames."""
        changes: list[Change] = []
        if not self._doors:
            return changes
        before: dict[str, bool] | None = None
        previous = -1
        for frame in frames:
            now = self.doors(frame)
            for name, is_open in now.items():
                if before is not None and before[name] != is_open:
                    time = self._time_of_change(name, is_open, previous, frame)
                    changes.append(Change(door=name, time=time, open=is_open))
            before, previous = now, frame
        return changes

    def _time_of_change(self, door: str, is_open: bool, after: int, frame: int) -> float:
        kind = "open_door" if is_open else "close_door"
        for entry in self._events:
            if after < entry.frame <= frame and entry.event.get("kind") == kind and entry.event.get("door") == door:
                return _time(entry, self._trajectory)
        return self._trajectory.time(frame)

    def _middle_of_door(self, name: str) -> shapely.Point:
        line = parse_wkt(self._trajectory.scene.doors[name]["wkt"], f"door '{name}'")
        middle = line.interpolate(0.5, normalized=True)
        assert isinstance(middle, shapely.Point)
        return middle

    def _doors_in_area(self, wkt: str) -> dict[str, bool | None]:
        """Whether doors are open according to the recorded area; None where it does not tell."""
        if wkt not in self._open_doors:
            whole = parse_wkt(self._trajectory.scene.walkable_wkt, "walkable area")
            now = parse_wkt(wkt, "walkable area")
            self._open_doors[wkt] = {
                name: None if whole.distance(middle) > _SLIT else bool(now.distance(middle) <= _SLIT)
                for name, middle in self._doors.items()
            }
        return self._open_doors[wkt]


def parse_wkt(wkt: str, what: str) -> Any:
    """The shape that a recording stores as text."""
    try:
        return shapely.from_wkt(wkt)
    except shapely.errors.ShapelyError as error:
        raise RecordingError(f"the {what} of the recording is not valid WKT ({error}): it is damaged") from error


def _time(entry: RecordedEvent, trajectory: Trajectory) -> float:
    return float(entry.step * trajectory.scene.dt)


def _switched(is_open: dict[str, bool], events: list[dict[str, Any]], what: str) -> dict[str, bool]:
    for event in events:
        if event.get("kind") in (f"open_{what}", f"close_{what}") and event.get(what) in is_open:
            is_open[event[what]] = event["kind"].startswith("open")
    return is_open


def _targets(places: dict[str, Any], events: list[dict[str, Any]]) -> dict[str, Place]:
    for event in events:
        if event.get("kind") in ("add_target", "move_target") and event.get("position") is not None:
            places[event["name"]] = event["position"]
        elif event.get("kind") == "remove_target":
            places.pop(event["name"], None)
    return {name: tuple(place) for name, place in places.items()}


def _move_obstacles(standing: dict[str, tuple[Place, float]], events: Iterable[dict[str, Any]]) -> None:
    for event in events:
        kind, name = event.get("kind"), event.get("name", "")
        if kind == "add_obstacle" and event.get("position") is not None:
            standing[name] = (tuple(event["position"]), event["radius"])
        elif kind == "move_obstacle" and name in standing:
            standing[name] = (tuple(event["position"]), standing[name][1])
        elif kind == "remove_obstacle":
            standing.pop(name, None)
