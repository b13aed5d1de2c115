"""The page of a live run in a real browser: opening it, waiting for it, and comparing what it shows."""

from __future__ import annotations

import io
from collections.abc import Callable
from threading import Event, Timer
from threading import enumerate as enumerate_threads
from time import perf_counter
from typing import Any

import numpy as np
from PIL import Image

from tropel.viewer.camera import Pose, first_pose, plan_pose, take
from tropel.viewer.live.view import View

#: Never set: waiting for it leaves the other threads the processor.
PAUSE = Event()


def show(view: View, window: Any) -> None:
    """Open the page, without the note that says how slow a browser without graphics card is."""
    # Pictures are compared, and a browser that is busy would draw coarser.
    window.goto(f"{view.address}/?fixedDpr=1")
    window.wait_for_selector("canvas")
    eventually(lambda: view.page.pulse.pages == 1)
    window.locator(".mantine-Notification-closeButton").first.click()
    framed(view, window)


def eventually(holds: Callable[[], Any], *, seconds: float = 60.0) -> Any:
    """Wait for something that other threads bring about."""
    end = perf_counter() + seconds
    while not (found := holds()):
        assert perf_counter() < end, "it has not happened"
        PAUSE.wait(0.02)
    return found


def picture(window: Any) -> np.ndarray:
    """What the window shows of the world."""
    area = window.locator("canvas").first.bounding_box()
    shot = window.screenshot(clip=area)
    return np.asarray(Image.open(io.BytesIO(shot)).convert("RGB"), dtype=np.int16)


def differing(one: np.ndarray, other: np.ndarray) -> int:
    """How many pixels differ by more than smoothing does."""
    return int((np.abs(one - other).max(axis=-1) > 40).sum())


def settled(window: Any) -> np.ndarray:
    """What the window shows when it does not change any more."""
    before = picture(window)
    end = perf_counter() + 60.0
    while differing(before, now := picture(window)) > 0:
        assert perf_counter() < end, "the picture does not come to rest"
        before = now
    return before


def framed(view: View, window: Any) -> np.ndarray:
    """What the window shows when its camera has been set for the last time (`camera.Framed`)."""
    eventually(lambda: not any(isinstance(thread, Timer) for thread in enumerate_threads()))
    client, framing = _framing(view, window)
    eventually(lambda: np.allclose(client.camera.position, framing.position, atol=0.002 * framing.position[2]))
    return settled(window)


def frame_anew(view: View, window: Any) -> None:
    """Set the camera as it was at first: a mouse that drags without having got hold of anything turns it."""
    client, framing = _framing(view, window)
    if not np.allclose(client.camera.position, framing.position, atol=1e-6 * framing.position[2]):
        take(client, framing)
        framed(view, window)


def _framing(view: View, window: Any) -> tuple[Any, Pose]:
    area = window.locator("canvas").first.bounding_box()
    (client,) = view.page.server.get_clients().values()
    scene = view.page.scene
    return client, plan_pose(scene, aspect=area["width"] / area["height"]) if scene.dim == 2 else first_pose(scene)
