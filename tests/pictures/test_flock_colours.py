"""Flocks in moments and animations: coloured by heading, as dots where there are many, stacked balls as columns."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from PIL import Image
from recorded_runs import MemoryTrajectory, at, distance, rgb, scene

from tropel.errors import ParameterError
from tropel.pictures import draw_moment, style
from tropel.pictures.backdrop import lay_out_animation
from tropel.pictures.viewport import SIDE, fit_view, silhouettes, walls_around
from tropel.recording import FrameData, Scene

#: Of 24 directions those next to east, north, west and south.
COMPASS = {0: (1.0, 0.01), 6: (-0.01, 1.0), 12: (-1.0, -0.01), 18: (0.01, -1.0)}


def picture(run: MemoryTrajectory, folder: Path, **more: Any) -> NDArray[Any]:
    with Image.open(draw_moment(run, folder / "moment.png", **{"time": 0.0, "width": 500, **more})) as image:
        return np.asarray(image.convert("RGB")).copy()


def four_ways(**of_scene: Any) -> MemoryTrajectory:
    frame = at([[2.0, 3.0], [4.0, 3.0], [6.0, 3.0], [8.0, 3.0]])
    return MemoryTrajectory(scene(**of_scene), [replace(frame, heading=np.array(list(COMPASS.values())))])


def colour_at(image: NDArray[Any], run: MemoryTrajectory, x: float, y: float) -> Any:
    stage = lay_out_animation(np.asarray(run.scene.bounds, dtype=float), run.scene, 500)
    right, down = stage.views[0].pixels(np.array([x, y]))[0]
    left, top = stage.corners[0]
    # Beside the middle, over which the line of the heading runs.
    return image[int(top + down) + 4, int(left + right) - 4]


def test_agents_have_the_colour_of_the_way_they_head(tmp_path: Path) -> None:
    run = four_ways()
    image = picture(run, tmp_path, colours="heading")
    wheel = style.heading_colours(24)
    for x, number in zip((2.0, 4.0, 6.0, 8.0), COMPASS, strict=True):
        assert distance(colour_at(image, run, x, 3.0), rgb(wheel[number])) < 12


def test_the_scene_may_say_what_colours_mean_and_a_wrong_word_is_refused(tmp_path: Path) -> None:
    said = picture(four_ways(extra={"colours": "heading"}), tmp_path)
    np.testing.assert_array_equal(said, picture(four_ways(), tmp_path, colours="heading"))
    assert (said != picture(four_ways(), tmp_path)).any()
    with pytest.raises(ParameterError, match="not by 'headng'; did you mean 'heading'"):
        picture(four_ways(), tmp_path, colours="headng")


def test_opposite_headings_differ_in_lightness_for_every_colour_vision() -> None:
    light = np.array([np.dot(rgb(colour), (0.3, 0.59, 0.11)) for colour in style.heading_colours(24)])
    north_south = np.abs(light - np.roll(light, 12))[6]
    assert north_south > 80
    assert light.max() < 200


def test_a_moment_is_the_frame_nearest_to_the_time(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(), [at([[1.0 + k, 3.0]]) for k in range(5)], fps=1.0)
    np.testing.assert_array_equal(picture(run, tmp_path, time=2.2), picture(run, tmp_path, time=2.0))
    np.testing.assert_array_equal(picture(run, tmp_path, time=99.0), picture(run, tmp_path, time=4.0))
    assert (picture(run, tmp_path, time=2.2) != picture(run, tmp_path, time=3.0)).any()
    with pytest.raises(ParameterError, match="time must be a finite number"):
        picture(run, tmp_path, time=float("nan"))


def many(count: int, radius: float = 0.001) -> FrameData:
    return at(np.random.default_rng(1).uniform((0.5, 0.5), (9.5, 5.5), (count, 2)).tolist(), radius=radius)


def test_many_small_agents_are_dots_that_leave_the_ground_visible(tmp_path: Path) -> None:
    run = MemoryTrajectory(scene(), [many(30_000)])
    image = picture(run, tmp_path, colours="heading")
    east = rgb(style.heading_colours(24)[0])
    dots = (np.abs(image.astype(int) - np.array(east)).sum(axis=2) < 60).sum()
    # As discs of 1.5 pixels they would cover everything; some dots lie on each other.
    assert 10_000 < dots < 30_000


def test_stacked_balls_are_seen_as_one_column_within_the_walls() -> None:
    box = Scene(dim=3, bounds=[[0, 0, 0], [20, 9, 6]], sides=["wall"] * 3, dt=0.1)
    view = fit_view(np.array(box.bounds), plane=SIDE, width=400, height=300, margin=10)
    balls = [((10.0, 4.0, float(z)), 2.0) for z in range(7)]
    seen = silhouettes(balls, view, walls_around(box.bounds, box.sides, view))
    assert len(seen) == 1
    assert shapely.box(8.0, 0.0, 12.0, 6.0).contains(seen[0].buffer(-1e-9))
    assert seen[0].area == pytest.approx(24.0, rel=0.02)
    assert walls_around(box.bounds, ["open"] * 3, view) is None
    assert silhouettes([], view) == []


def test_a_long_box_is_seen_one_view_below_the_other() -> None:
    long = Scene(dim=3, bounds=[[0, 0, 0], [40, 10, 6]], dt=0.1)
    stage = lay_out_animation(np.array(long.bounds, dtype=float), long, 800)
    assert stage.views[0].scale == pytest.approx(stage.views[1].scale)
    assert stage.corners[0][0] == stage.corners[1][0]
    assert stage.corners[1][1] > stage.corners[0][1] + stage.views[0].height
    cube = Scene(dim=3, bounds=[[0, 0, 0], [10, 10, 10]], dt=0.1)
    stage = lay_out_animation(np.array(cube.bounds, dtype=float), cube, 800)
    assert stage.corners[0][1] == stage.corners[1][1]
