"""What a picture or a replay needs to know about a run besides the agents' positions."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from dataclasses import dataclass, field
from typing import Any

from tropel.errors import RecordingError, suggest
from tropel.recording.checked import check_scene
from tropel.recording.plain import plain_data


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The world of a run as plain data, with no engine objects. Shapes are WKT, lengths in metres.

    Everything is converted to plain lists, dictionaries and numbers on construction, so that a scene read from a file
    equals the one that was written.
    """

    dim: int
    #: [[lowest x, y(, z)], [highest x, y(, z)]]
    bounds: list[list[float]]
    #: What is at the sides of the bounds, for each axis: "wall", "open" or "joined" (periodic space). Empty: unknown.
    sides: list[str] = field(default_factory=list)
    #: Where agents can be when the run begins; empty in open space and in 3D.
    walkable_wkt: str = ""
    walls_wkt: str = ""
    exits: dict[str, str] = field(default_factory=dict)
    regions: dict[str, str] = field(default_factory=dict)
    #: name → {"wkt": segment, "open": whether it is open at the start}
    doors: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: The name of group number i.
    groups: list[str] = field(default_factory=lambda: ["agents"])
    #: name → {"position": […]} or {"path": [[…], …], "motion": {…}}, and "radius"; other versions may lack some
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: name → {"radius": metres, "position": […]}
    obstacles: dict[str, dict[str, Any]] = field(default_factory=dict)
    title: str = ""
    #: Time step of the simulation, in seconds.
    dt: float
    seed: int | None = None
    extra: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in _FIELDS:
            plain = plain_data(getattr(self, name), where=f"scene.{name}", error=RecordingError)
            object.__setattr__(self, name, plain)
        if self.dim not in (2, 3):
            raise RecordingError(f"scene.dim is {self.dim!r}: a scene has 2 or 3 dimensions")
        _check_bounds(self.bounds, self.dim)
        if self.sides and (len(self.sides) != self.dim or not set(self.sides) <= {"wall", "open", "joined"}):
            raise RecordingError(
                f"scene.sides is {self.sides!r}: give 'wall', 'open' or 'joined' for each of the {self.dim} axes"
            )
        if not isinstance(self.dt, (int, float)) or not self.dt > 0:
            raise RecordingError(f"scene.dt is {self.dt!r}: give the time step in seconds, above zero")

    @property
    def period(self) -> list[float]:
        """The length after which space repeats along each axis [m]; 0 where it does not."""
        sides = self.sides or [""] * self.dim
        return [high - low if side == "joined" else 0.0 for low, high, side in zip(*self.bounds, sides, strict=True)]

    def to_json(self) -> str:
        return json.dumps({name: getattr(self, name) for name in _FIELDS}, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Scene:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise RecordingError(f"the scene is not valid JSON ({error}): the recording is damaged") from error
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Any) -> Scene:
        if not isinstance(data, dict):
            raise RecordingError("the scene is not a JSON object: the recording is damaged")
        for name in data:
            if name not in _FIELDS:
                raise RecordingError(
                    f"the scene has the unknown entry '{name}' ({suggest(name, _FIELDS)}): "
                    "the recording is damaged or was written by a newer tropel"
                )
        check_scene(data)
        try:
            return cls(**data)
        except TypeError as error:
            raise RecordingError(f"the scene is incomplete ({error}): the recording is damaged") from error

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that this run has in addition to those of every run."""
        return tuple(self.extra.get("columns", ()))

    def area_wkt(self) -> str:
        """The walkable area; in open 2D space the bounding box, because analysis tools need some area."""
        if self.walkable_wkt or self.dim == 3:
            return self.walkable_wkt
        (x0, y0), (x1, y1) = self.bounds
        corners = ((x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0))
        return f"POLYGON (({', '.join(f'{x!r} {y!r}' for x, y in corners)}))"

    def differences(self, other: Scene) -> list[str]:
        """Names of the entries that show that two scenes belong to different runs.

        What moves or opens during a run is compared by name only, because a resumed run describes its current state.
        """
        return [name for name in _FIELDS if name not in _LABELS and _lasting(name, self) != _lasting(name, other)]


_FIELDS = tuple(entry.name for entry in dataclasses.fields(Scene))
#: Entries that may differ within one run.
_LABELS = frozenset({"title", "extra"})


def _lasting(name: str, scene: Scene) -> Any:
    """The part of an entry that does not change during a run."""
    if name == "doors":
        return {door: entry.get("wkt") for door, entry in scene.doors.items()}
    if name == "obstacles":
        return {obstacle: entry.get("radius") for obstacle, entry in scene.obstacles.items()}
    if name == "targets":
        return sorted(scene.targets)
    return getattr(scene, name)


def _check_bounds(bounds: Any, dim: int) -> None:
    good = isinstance(bounds, list) and len(bounds) == 2
    good = good and all(isinstance(corner, list) and len(corner) == dim for corner in bounds)
    # Numbers that are not finite became None in `plain_data`.
    good = good and all(isinstance(x, (int, float)) and math.isfinite(x) for corner in bounds for x in corner)
    if not good or any(low > high for low, high in zip(*bounds, strict=True)):
        raise RecordingError(
            f"scene.bounds is {bounds!r}: give [[lowest], [highest]] with {dim} finite coordinates each, lowest first"
        )


def geometry_key(wkt: str) -> int:
    """The key of a geometry in a trajectory file: 63 bits of the digest of its text.

    Python's `hash()` is salted per process, so two runs of one scene would store different keys.
    """
    return int.from_bytes(hashlib.sha256(wkt.encode()).digest()[:8], "big") >> 1
