"""What a browser shows of a replay or an exported file: where things of a colour are, in metres of the world."""

from __future__ import annotations

import io
import math
from collections.abc import Callable
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

from tropel.recording import Scene
from tropel.viewer.camera import PLAN_ANGLE, plan_pose
from tropel.viewer.replay.export import first_view


def picture(page: Any) -> Any:
    """What is seen of the world."""
    shot = page.screenshot(clip=page.locator("canvas").first.bounding_box())
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB")).astype(int)


def wait_until(page: Any, true: Callable[[], bool], *, seconds: float = 60.0) -> None:
    """Let the page go on until something is so."""
    deadline = perf_counter() + seconds
    while not true():
        assert perf_counter() < deadline, f"this was not so within {seconds} s"
        page.wait_for_timeout(50)


def place_of_guide(page: Any, scene: Scene, *, fitted: bool) -> tuple[float, float] | None:
    """The middle of what has the colour of the second group, in a plan view [m]."""
    box = page.locator("canvas").first.bounding_box()
    shown = picture(page)
    # Between red and yellow, but nearer to yellow than fire, closed doors and the browser's warnings are.
    red, green, blue = shown[..., 0], shown[..., 1], shown[..., 2]
    strength = np.maximum(red - blue, 1)
    share = (green - blue) / strength
    down, right = np.nonzero((red > green) & (green > blue) & (strength > 90) & (share > 0.55) & (share < 0.92))
    if len(right) < 5:
        return None
    # A page fits the world into its window; a file knows nothing of the window it will be seen in.
    pose = plan_pose(scene, aspect=box["width"] / box["height"]) if fitted else first_view(scene)
    metres = 2.0 * pose.position[2] * math.tan(0.5 * PLAN_ANGLE) / box["height"]
    x = pose.look_at[0] + (right.mean() - 0.5 * box["width"]) * metres
    y = pose.look_at[1] - (down.mean() - 0.5 * box["height"]) * metres
    return float(x), float(y)
