"""The camera: the plan from above, or a free view in space. The first view frames the whole world."""

from __future__ import annotations

import dataclasses
import itertools
import math
import threading
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from tropel.recording.scene import Scene

#: Vertical angles of view [rad]. The one from above is narrow, so that bodies at the edge lean less.
PLAN_ANGLE = math.radians(20.0)
FREE_ANGLE = math.radians(45.0)
#: Room around the world, and the assumed ratio of width to height of a window.
_MARGIN = 1.08
_ASPECT = 1.25
#: To make a page report its shape, its camera is nudged by this share of its height. It must answer this many times,
#: is waited for this long [s] and is nudged at most this many times.
_HAIR = 1e-4
_HAIRS = 3
_PATIENCE = 0.9
_TRIES = 60
#: How far a camera may be from where it was sent, as a share of its height, and how many such places are remembered.
_NEAR = 2e-3
_REMEMBERED = 32


@dataclass(frozen=True, kw_only=True)
class Pose:
    """Position, orientation and angle of view of a camera."""

    position: tuple[float, float, float]
    look_at: tuple[float, float, float]
    up: tuple[float, float, float]
    angle: float  #: vertical angle of view [rad]
    near: float  #: nothing nearer is drawn [m]
    far: float


def plan_pose(scene: Scene, *, aspect: float = _ASPECT, margin: float = _MARGIN) -> Pose:
    """From straight above, north up, with the whole world in the window and a margin around it."""
    low, high = _corners(scene)
    width, depth = (high - low)[:2]
    tall = max(depth, width / aspect) * margin
    distance = 0.5 * tall / math.tan(0.5 * PLAN_ANGLE)
    x, y = (0.5 * (low + high))[:2]
    top = high[2]
    return Pose(
        # Slightly to the south: a camera that looks exactly along the up axis does not know where north is.
        position=(float(x), float(y) - 1e-3 * distance, float(top) + distance),
        look_at=(float(x), float(y), float(top)),
        up=(0.0, 0.0, 1.0),
        angle=PLAN_ANGLE,
        near=distance / 100.0,
        far=10.0 * distance + float(top - low[2]),
    )


def free_pose(scene: Scene, *, aspect: float = _ASPECT, margin: float = _MARGIN) -> Pose:
    """From the south-east and above, as near as possible with all corners of the world in the window and a margin."""
    low, high = _corners(scene)
    middle = 0.5 * (low + high)
    towards = np.array([0.45, -0.8, 0.75])
    towards /= np.linalg.norm(towards)
    right = np.cross([0.0, 0.0, 1.0], towards)
    right /= np.linalg.norm(right)
    corners = np.array(list(itertools.product(*zip(low, high, strict=True)))) - middle
    steep = math.tan(0.5 * FREE_ANGLE)
    across = np.abs(corners @ right) / (steep * aspect)
    along = np.abs(corners @ np.cross(towards, right)) / steep
    # Corners nearer than the middle need a camera that is farther away.
    distance = float((corners @ towards + margin * np.maximum(across, along)).max())
    place = middle + distance * towards
    return Pose(
        position=(float(place[0]), float(place[1]), float(place[2])),
        look_at=(float(middle[0]), float(middle[1]), float(middle[2])),
        up=(0.0, 0.0, 1.0),
        angle=FREE_ANGLE,
        near=distance / 200.0,
        far=20.0 * distance,
    )


def first_pose(scene: Scene) -> Pose:
    return plan_pose(scene) if scene.dim == 2 else free_pose(scene)


def set_first(server: Any, pose: Pose) -> None:
    """Set the view of pages opened from now on."""
    camera = server.initial_camera
    camera.position, camera.look_at, camera.up = pose.position, pose.look_at, pose.up
    camera.fov, camera.near, camera.far = pose.angle, pose.near, pose.far


def take(client: Any, pose: Pose) -> None:
    """Move one page's camera."""
    with client.atomic():
        client.camera.up_direction = pose.up
        client.camera.fov, client.camera.near, client.camera.far = pose.angle, pose.near, pose.far
        client.camera.position = pose.position
        client.camera.look_at = pose.look_at


def frame_pages(server: Any, scene: Scene) -> None:
    """Show the whole plan in each window, also when the window changes shape, until a user moves the camera."""
    framed: dict[int, Framed] = {}

    def opened(client: Any) -> None:
        framed[client.client_id] = Framed(scene, client)

    def closed(client: Any) -> None:
        if client.client_id in framed:
            framed.pop(client.client_id).leave_alone()

    if scene.dim == 2:
        server.on_client_connect(opened)
        server.on_client_disconnect(closed)


class Framed:
    """A page's view of the whole plan, which follows the shape of its window until a user moves the camera.

    A page that is still being built may return to its first view after it has taken another, and it may report the
    shape that its window had a moment ago. So a page that is at an earlier view, to which no user moved it, is sent to
    the current one. After each framing its camera is nudged several times, because a page reports its shape whenever
    its camera moves.
    """

    def __init__(self, scene: Scene, client: Any) -> None:
        self._scene = scene
        self._client = client
        self._aspect = 0.0
        self._pose = first_pose(scene)
        #: Where a camera may be without a user moving it: where it was at first, and wherever it has been sent.
        self._beginnings = [np.asarray(client.camera.position), np.asarray(self._pose.position)]
        self._framings: deque[np.ndarray] = deque(maxlen=_REMEMBERED)
        self._has_arrived = False
        self._set_at = math.nan
        self._hairs_left = self._tries_left = 0
        self._keeping = threading.Lock()
        self._timer: threading.Timer | None = None
        # Register first: a panel that opens in between would be missed, and a camera at rest reports nothing more.
        client.camera.on_update(lambda moved: self.keep())
        self.keep()

    def keep(self) -> None:
        """Frame the world again if the window has changed shape, or if the page has lost its view."""
        with self._keeping:
            if self._page_has_told() and not self._is_moved():
                self._keep()

    def leave_alone(self) -> None:
        """Stop nudging the page."""
        with self._keeping:
            self._tries_left = 0

    def _keep(self) -> None:
        aspect = float(self._client.camera.aspect)
        if abs(aspect - self._aspect) > 1e-3:
            self._aspect = aspect
            self._has_arrived = False
            self._pose = plan_pose(self._scene, aspect=aspect)
            self._framings.append(np.asarray(self._pose.position))
            self._set()
            self._hairs_left, self._tries_left = _HAIRS, _TRIES
            self._wait()
        elif self._is_at(self._pose.position):
            self._has_arrived = True
        else:
            self._set()

    def _page_has_told(self) -> bool:
        """Whether the known camera was reported by the page after it was last set."""
        return bool(self._client.camera.update_timestamp != self._set_at)

    def _is_moved(self) -> bool:
        """Whether a user has moved the camera."""
        return self._has_arrived and not any(map(self._is_at, (*self._beginnings, *self._framings)))

    def _is_at(self, position: Any) -> bool:
        away = np.linalg.norm(np.asarray(self._client.camera.position) - position)
        return bool(away < _NEAR * self._pose.position[2])

    def _set(self) -> None:
        take(self._client, self._pose)
        self._set_at = self._client.camera.update_timestamp

    def _wait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(_PATIENCE, self._ask)
        self._timer.daemon = True
        self._timer.start()

    def _ask(self) -> None:
        """Nudge the camera until the page has answered often enough."""
        with self._keeping:
            self._hairs_left -= self._page_has_told()
            self._tries_left -= 1
            if self._hairs_left > 0 and self._tries_left > 0 and not self._is_moved():
                # Back and forth, so that a page that is nudged often stays where it is.
                x, y, z = self._framings[-1]
                hair = _HAIR * z if self._pose.position[1] == y else 0.0
                self._pose = dataclasses.replace(self._pose, position=(float(x), float(y - hair), float(z)))
                self._set()
                self._wait()


def _corners(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array(scene.bounds, dtype=np.float64)
    if scene.dim == 2:
        low, high = np.append(low, 0.0), np.append(high, 0.0)
    return low, high
