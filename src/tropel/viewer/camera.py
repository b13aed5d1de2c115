"""Where one looks from: the plan from above, or freely in space. A good first view frames the whole world."""

from __future__ import annotations

import dataclasses
import itertools
import math
import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from tropel.recording.scene import Scene

#: Angles of view, up and down [rad]. From above a narrow one: bodies at the edge lean less.
PLAN_ANGLE = math.radians(20.0)
FREE_ANGLE = math.radians(45.0)
#: Room around the world, and how wide a window is at least compared to its height.
_MARGIN = 1.08
_ASPECT = 1.25
#: How long after a framing the camera is set again [s], and by what share of its height it then moves.
_SET_AGAIN = (0.7, 2.5)
_HAIR = 1e-4


@dataclass(frozen=True, kw_only=True)
class Pose:
    """A camera."""

    position: tuple[float, float, float]
    look_at: tuple[float, float, float]
    up: tuple[float, float, float]
    angle: float  #: of view, up and down [rad]
    near: float  #: nothing nearer is drawn [m]
    far: float


def plan_pose(scene: Scene, *, aspect: float = _ASPECT, margin: float = _MARGIN) -> Pose:
    """From straight above, north up, so that everything is in the window, with a margin around it."""
    low, high = _corners(scene)
    width, depth = (high - low)[:2]
    tall = max(depth, width / aspect) * margin
    distance = 0.5 * tall / math.tan(0.5 * PLAN_ANGLE)
    x, y = (0.5 * (low + high))[:2]
    top = high[2]
    return Pose(
        # A hair to the south: who looks exactly along the axis that is up has no idea where north is.
        position=(float(x), float(y) - 1e-3 * distance, float(top) + distance),
        look_at=(float(x), float(y), float(top)),
        up=(0.0, 0.0, 1.0),
        angle=PLAN_ANGLE,
        near=distance / 100.0,
        far=10.0 * distance + float(top - low[2]),
    )


def free_pose(scene: Scene, *, aspect: float = _ASPECT, margin: float = _MARGIN) -> Pose:
    """From the south-east and above, as near as all corners of the world are in the window, with a margin."""
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
    # What is nearer than the middle needs a camera that is farther away.
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
    """What pages that are opened from now on begin with."""
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


class Framed:
    """A page's view of the whole plan, which follows the shape of its window until somebody moves the camera.

    A page that is still being built may forget a pose that it is given, and it tells the shape of its window only when
    its camera moves. So after each framing the camera is set twice more, a hair elsewhere.
    """

    def __init__(self, scene: Scene, client: Any) -> None:
        self._scene = scene
        self._client = client
        self._aspect = 0.0
        self._pose = first_pose(scene)
        self._is_there = False
        self._is_moved = False
        self._keeping = threading.Lock()
        self._nudges: list[threading.Timer] = []
        # Listen first: a panel that opens in between would be missed, and who stands still tells nothing more.
        client.camera.on_update(lambda moved: self.keep())
        self.keep()

    def keep(self) -> None:
        """Frame the world anew if the window has another shape than before."""
        with self._keeping:
            self._keep()

    def _keep(self) -> None:
        camera = self._client.camera
        aspect = float(camera.aspect)
        is_near = bool(np.linalg.norm(np.asarray(camera.position) - self._pose.position) < 1e-2 * self._pose.far)
        if self._aspect and abs(aspect - self._aspect) < 1e-3:
            # What a page tells before it has taken the pose is where it was before, and nobody's wish.
            self._is_moved = self._is_there and not is_near
            self._is_there = self._is_there or is_near
        elif is_near or not self._is_moved:
            self._aspect = aspect
            self._pose = plan_pose(self._scene, aspect=aspect)
            self._is_there = self._is_moved = False
            take(self._client, self._pose)
            self._set_again()

    def _set_again(self) -> None:
        for timer in self._nudges:
            timer.cancel()
        self._nudges = [threading.Timer(seconds, self._nudge) for seconds in _SET_AGAIN]
        for timer in self._nudges:
            timer.daemon = True
            timer.start()

    def _nudge(self) -> None:
        with self._keeping:
            if not self._is_moved:
                x, y, z = self._pose.position
                self._pose = dataclasses.replace(self._pose, position=(x, y - _HAIR * z, z))
                take(self._client, self._pose)


def _corners(scene: Scene) -> tuple[np.ndarray, np.ndarray]:
    low, high = np.array(scene.bounds, dtype=np.float64)
    if scene.dim == 2:
        low, high = np.append(low, 0.0), np.append(high, 0.0)
    return low, high
