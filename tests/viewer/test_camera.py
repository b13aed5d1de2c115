"""First views show the whole world, as a pinhole camera computed here sees it."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable
from time import perf_counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tropel.viewer.camera
from tropel.recording import Scene
from tropel.viewer.camera import Framed, Pose, first_pose, free_pose, plan_pose
from tropel.viewer.replay.export import address_of, first_view

WORLDS = [
    [[0.0, 0.0], [40.0, 20.0]],
    [[-5.0, 100.0], [0.0, 160.0]],
    [[0.0, 0.0, 0.0], [110.0, 64.0, 30.0]],
    [[-2.0, -2.0, 0.0], [2.0, 2.0, 80.0]],
]


def seen_at(pose: Pose, point: np.ndarray, aspect: float) -> tuple[float, float]:
    """Where a point is in the window: from -1 to 1, right and up."""
    ahead = np.subtract(pose.look_at, pose.position)
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, pose.up)
    right /= np.linalg.norm(right)
    up = np.cross(right, ahead)
    away = point - np.array(pose.position)
    reach = float(away @ ahead) * math.tan(0.5 * pose.angle)
    assert pose.near < away @ ahead < pose.far
    return float(away @ right) / (reach * aspect), float(away @ up) / reach


def extremes(pose: Pose, scene: Scene, aspect: float) -> tuple[float, float]:
    low, high = ([*corner, 0.0][:3] for corner in scene.bounds)
    corners = itertools.product(*zip(low, high, strict=True))
    seen = np.abs([seen_at(pose, np.array(corner), aspect) for corner in corners])
    return float(seen[:, 0].max()), float(seen[:, 1].max())


@pytest.mark.parametrize("bounds", WORLDS)
@pytest.mark.parametrize("aspect", [0.6, 1.0, 1.9])
@pytest.mark.parametrize("pose_of", [plan_pose, free_pose])
def test_all_of_the_world_is_in_the_window_and_fills_it(bounds, aspect, pose_of) -> None:  # type: ignore[no-untyped-def]
    scene = Scene(dim=len(bounds[0]), bounds=bounds, dt=0.1)
    across, along = extremes(pose_of(scene, aspect=aspect), scene, aspect)
    assert max(across, along) <= 1.0
    # A world that is high is seen smaller from above: its floor is farther away than its top, which is framed.
    assert max(across, along) > 0.85


@pytest.mark.parametrize("bounds", WORLDS)
def test_a_file_leaves_room_for_what_it_says_below_and_above_the_world(bounds: list[list[float]]) -> None:
    scene = Scene(dim=len(bounds[0]), bounds=bounds, dt=0.1)
    pose = first_view(scene)
    across, along = extremes(pose, scene, 1.5)
    assert max(across, along) < 0.92
    assert (abs(pose.position[0] - pose.look_at[0]) < 1e-9) == (scene.dim == 2), "a plan is seen from above"


class Client:
    """A page with a window and a camera, as far as framing knows it."""

    def __init__(self, aspect: float) -> None:
        self.asked: list[Callable[[Any], None]] = []
        self.camera = SimpleNamespace(
            aspect=aspect, position=(3.0, 3.0, 3.0), update_timestamp=1.0, on_update=self.asked.append
        )

    def tell(self, **camera: Any) -> None:
        """The page tells something about its camera."""
        self.camera.update_timestamp += 1.0
        vars(self.camera).update(camera)
        self.echo()

    def echo(self) -> None:
        """Listeners hear, late, of something that was told earlier."""
        for listener in self.asked:
            listener(self.camera)

    def atomic(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()


SCENE = Scene(dim=2, bounds=WORLDS[0], dt=0.1)


def framing(aspect: float) -> tuple[float, float, float]:
    return plan_pose(SCENE, aspect=aspect).position


def test_a_plan_is_framed_again_when_the_window_changes_until_somebody_moves_the_camera() -> None:
    client = Client(1.7)
    Framed(SCENE, client)
    assert client.camera.position == framing(1.7)
    # The page tells where it was before the pose came; then the panel opens beside the world.
    for _ in range(2):
        client.tell(position=(3.0, 3.0, 3.0))
        assert client.camera.position == framing(1.7)
    client.tell(position=framing(1.7), aspect=0.9)
    assert client.camera.position == framing(0.9)
    client.tell()
    client.tell(position=(1.0, 2.0, 40.0))
    client.tell(aspect=1.3)
    assert client.camera.position == (1.0, 2.0, 40.0)


def test_a_page_that_goes_back_to_where_it_began_is_sent_to_the_framing_again() -> None:
    client = Client(1.7)
    Framed(SCENE, client)
    client.tell()
    for lost in (first_pose(SCENE).position, (3.0, 3.0, 3.0)):
        client.tell(position=lost)
        assert client.camera.position == framing(1.7)
        client.tell()


def test_what_a_page_told_before_it_was_sent_somewhere_does_not_count_as_its_arrival() -> None:
    client = Client(1.7)
    Framed(SCENE, client)
    # The camera's position is now the one that was set, which no page has told.
    client.echo()
    client.tell(position=(7.0, 7.0, 7.0))
    assert client.camera.position == framing(1.7), "nobody has moved a camera that has not arrived"


def test_a_framed_page_is_asked_for_its_shape_until_it_has_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tropel.viewer.camera, "_PATIENCE", 0.01)
    client = Client(1.7)
    Framed(SCENE, client)
    seen = [client.camera.position]
    end = perf_counter() + 10.0
    while len(seen) < 6 and perf_counter() < end:
        if (now := client.camera.position) != seen[-1]:
            seen.append(now)
    assert len(seen) == 6, "a page that does not answer is asked again and again"
    np.testing.assert_allclose(seen, [framing(1.7)] * 6, rtol=0.01)
    client.tell(position=client.camera.position, aspect=0.9)
    assert client.camera.position == pytest.approx(framing(0.9), rel=0.01)


def test_a_view_is_part_of_an_address() -> None:
    pose = Pose(position=(1.0, 2.5, 30.0), look_at=(1.0, 2.0, 0.0), up=(0.0, 0.0, 1.0), angle=0.5, near=0.1, far=99.0)
    assert address_of(pose) == (
        "?initialCameraPosition=1,2.5,30&initialCameraLookAt=1,2,0&initialCameraUp=0,0,1"
        "&initialCameraFov=0.5&initialCameraNear=0.1&initialCameraFar=99"
    )
