"""What a click means: the place on the ground, and the agent, door or thing there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tropel.recording.scene import Scene
from tropel.viewer.frame import Frame, in_space

Floats = NDArray[np.float64]
_T = TypeVar("_T")
_Point = Sequence[float] | Floats

#: How far a click may miss something, as a share of the distance to the camera.
_NEAR = 0.008


@dataclass(frozen=True, eq=False, kw_only=True)
class Ray:
    """A ray from the eye through the clicked place."""

    origin: Floats
    direction: Floats  #: of length 1

    @classmethod
    def of(cls, origin: _Point, direction: _Point) -> Ray:
        ahead = np.asarray(direction, dtype=np.float64)
        return cls(origin=np.asarray(origin, dtype=np.float64), direction=ahead / np.linalg.norm(ahead))

    @classmethod
    def through(cls, eye: _Point, point: _Point) -> Ray:
        return cls.of(eye, np.asarray(point, dtype=np.float64) - np.asarray(eye, dtype=np.float64))

    def distances(self, points: Floats) -> tuple[Floats, Floats]:
        """How far points are from the ray, and how far along it [m]."""
        away = points - self.origin
        along = away @ self.direction
        beside = np.linalg.norm(away - along[:, None] * self.direction, axis=1)
        return np.where(along > 0.0, beside, np.inf), along


def place_of(ray: Ray, scene: Scene) -> Floats | None:
    """The place that a click means: on the ground of a plan, or in space at the depth of the middle of the world."""
    low, high = np.array(scene.bounds, dtype=np.float64)
    if scene.dim == 3:
        middle = 0.5 * (low + high)
        along = float((middle - ray.origin) @ ray.direction)
        return np.clip(ray.origin + max(along, 0.0) * ray.direction, low, high)
    if abs(ray.direction[2]) < 1e-9 or (along := -ray.origin[2] / ray.direction[2]) <= 0.0:
        return None
    return np.asarray((ray.origin + along * ray.direction)[:2])


def agent_at(ray: Ray, frame: Frame) -> int | None:
    """The id of the clicked agent, or of one next to the click."""
    points = in_space(frame.position).astype(np.float64)
    if frame.position.shape[1] == 2:
        points[:, 2] = frame.radius  # bodies stand on the ground
    return _nearest(ray, points, frame.radius, frame.id.tolist())


def thing_at(ray: Ray, frame: Frame) -> tuple[str, str] | None:
    """Kind and name of the clicked obstacle, hazard or target."""
    for kind, discs in (("target", frame.targets), ("hazard", frame.hazards), ("obstacle", frame.obstacles)):
        name = _nearest(ray, in_space(discs.position).astype(np.float64), discs.radius, discs.names)
        if name is not None:
            return kind, name
    return None


def door_at(place: Floats, lines: Mapping[str, Floats], ray: Ray) -> str | None:
    """The door next to a place on the ground."""
    reach = 1.5 * _NEAR * float(np.linalg.norm(in_space(place[None])[0] - ray.origin))
    best: tuple[float, str] | None = None
    for name, segments in lines.items():
        begin, along = segments[:, :2], segments[:, 2:] - segments[:, :2]
        share = ((place - begin) * along).sum(axis=1) / np.maximum((along**2).sum(axis=1), 1e-12)
        away = float(np.linalg.norm(begin + np.clip(share, 0.0, 1.0)[:, None] * along - place, axis=1).min())
        if away <= reach and (best is None or away < best[0]):
            best = away, name
    return None if best is None else best[1]


def _nearest(ray: Ray, points: Floats, radius: Floats, names: Sequence[_T]) -> _T | None:
    if not len(points):
        return None
    beside, along = ray.distances(points)
    # A click within a body hits it, however large others are.
    beyond = np.maximum(beside - radius, 0.0)
    best = int(np.lexsort((beside, beyond))[0])
    return names[best] if beyond[best] <= _NEAR * along[best] else None
