"""Keeping the whole world in the window of who has just opened a page."""

from __future__ import annotations

from typing import Any

import numpy as np

from tropel.recording.scene import Scene
from tropel.viewer.camera import Pose, plan_pose, take

#: Who has moved the camera by more than this, in parts of its distance, is left alone.
_MOVED = 1e-3


def frame_plan(client: Any, scene: Scene) -> None:
    """Look straight down so that the whole world is seen, also when the window changes its shape.

    A window is as wide as the screen when a page opens, and narrower a moment later, beside the panel. This goes on
    until somebody moves the camera.
    """
    fitted = plan_pose(scene, aspect=float(client.camera.aspect))
    take(client, fitted)

    @client.camera.on_update
    def fit_again(camera: Any) -> None:
        nonlocal fitted
        wanted = plan_pose(scene, aspect=float(camera.aspect))
        if wanted != fitted and not _has_moved(camera, fitted):
            fitted = wanted
            take(client, wanted)


def _has_moved(camera: Any, pose: Pose) -> bool:
    distance = float(np.linalg.norm(np.subtract(pose.position, pose.look_at)))
    return float(np.linalg.norm(np.subtract(camera.position, pose.position))) > _MOVED * distance
