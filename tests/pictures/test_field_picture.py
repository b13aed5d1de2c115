"""Pictures of fields: lines that follow them, colours that tell how far it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely
from matplotlib.collections import LineCollection
from PIL import Image

from tropel.errors import RecordingError
from tropel.pictures.field import FieldValues, draw_field, field_figure, streamlines
from tropel.recording import Scene


def round_the_middle(size: int = 40) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors of a whirl, and its centre."""
    centre = (size - 1) / 2
    y, x = np.mgrid[0:size, 0:size] - centre
    away = np.maximum(np.hypot(x, y), 1e-9)
    return np.stack([-y / away, x / away], axis=-1), np.array([centre, centre])


def to_the_east(height: int = 20, width: int = 50) -> np.ndarray:
    vectors = np.zeros((height, width, 2))
    vectors[..., 0] = 1.0
    return vectors


def test_lines_run_along_the_field() -> None:
    vectors, centre = round_the_middle()
    lines = streamlines(vectors, np.ones((40, 40), bool), np.zeros((40, 40)), apart=4.0, shortest=5.0)
    assert len(lines) > 3
    for line in lines:
        away = np.linalg.norm(line - centre, axis=1)
        if away.min() > 4.0:  # further in, the whirl is too narrow for the cells
            assert np.ptp(away) < 0.1


def test_a_line_that_goes_round_and_round_ends() -> None:
    vectors, _ = round_the_middle()
    first = np.zeros((40, 40))
    first[20, 10] = 1.0
    (line,) = streamlines(vectors, np.ones((40, 40), bool), first, apart=60.0, shortest=1.0)
    once_round = 2 * np.pi * 9.5 / 0.5
    assert once_round < len(line) < 10 * once_round


def test_lines_begin_far_from_each_other_and_far_from_the_goal() -> None:
    far = np.broadcast_to(np.arange(50.0)[::-1], (20, 50))
    lines = streamlines(to_the_east(), np.ones((20, 50), bool), far, apart=4.0, shortest=3.0)
    starts = np.array([line[0] for line in lines])
    assert (starts[:, 0] == 0.0).all()
    assert np.diff(np.sort(starts[:, 1])).min() > 4.0
    assert len(lines) == 4
    assert all(line[-1, 0] == pytest.approx(49.0) for line in lines)


def test_lines_stay_inside_and_short_ones_are_left_out() -> None:
    inside = np.ones((20, 50), bool)
    inside[:, 20:30] = False
    lines = streamlines(to_the_east(), inside, np.zeros((20, 50)), apart=3.0, shortest=3.0)
    for line in lines:
        index = np.rint(line).astype(int)
        assert inside[index[:, 1], index[:, 0]].all()
    assert streamlines(to_the_east(), inside, np.zeros((20, 50)), apart=3.0, shortest=25.0) == []


def layer(**changed: object) -> FieldValues:
    """A corridor of 10 by 4 m towards the east, whose west end is cut off."""
    free = np.ones((20, 50), bool)
    reachable = free.copy()
    reachable[:, :8] = False
    far = np.where(reachable, np.broadcast_to(0.2 * np.arange(50.0)[::-1], (20, 50)), np.inf)
    parts = {
        "origin": np.zeros(2),
        "cell": 0.2,
        "free": free,
        "reachable": reachable,
        "vectors": to_the_east() * reachable[..., None],
        "far": far,
        "far_means": "path to the goal [m]",
    }
    return FieldValues(**{**parts, **changed})


def scene() -> Scene:
    return Scene(
        dim=2,
        bounds=[[0.0, 0.0], [10.0, 4.0]],
        walkable_wkt=shapely.box(0, 0, 10, 4).wkt,
        exits={"east": shapely.box(9, 0, 10, 4).wkt},
        obstacles={"pillar": {"radius": 0.3, "position": [5.0, 2.0]}},
        dt=0.1,
    )


def test_a_picture_has_the_title_the_facts_and_what_the_colours_mean(tmp_path: Path) -> None:
    figure = field_figure(scene(), layer(), title="A corridor", facts=["flow field", "50 × 20 cells"])
    texts = [text.get_text() for text in figure.texts]
    assert "A corridor" in texts
    assert "flow field  ·  50 × 20 cells" in texts
    assert figure.axes[1].get_ylabel() == "path to the goal [m]"
    path = draw_field(scene(), layer(), tmp_path / "field.png", title="A corridor")
    with Image.open(path) as picture:
        assert picture.width > 800


def test_colours_go_from_the_goal_to_the_farthest_place_that_has_a_way() -> None:
    figure = field_figure(scene(), layer())
    low, high = figure.axes[1].get_ylim()
    assert (low, high) == pytest.approx((0.0, 0.2 * 41))


def test_places_without_a_way_have_no_lines_and_another_colour() -> None:
    figure = field_figure(scene(), layer())
    (ground,) = figure.axes[0].images
    pixels = np.asarray(ground.get_array())
    assert (pixels[:, :8] == pixels[0, 0]).all()
    assert not (pixels[0, 8:, :3] == pixels[0, 0, :3]).all(axis=1).any()
    lines = max((c for c in figure.axes[0].collections if isinstance(c, LineCollection)), key=lambda c: c.zorder)
    ends = np.concatenate(lines.get_segments())
    assert len(ends) > 100
    assert ends[:, 0].min() > 1.6


def test_a_field_without_any_way_is_drawn_too() -> None:
    nowhere = layer(reachable=np.zeros((20, 50), bool), far=np.full((20, 50), np.inf))
    assert len(field_figure(scene(), nowhere).axes) == 1


def test_a_fine_raster_is_thinned_out_in_place() -> None:
    coarse = layer().coarser(25)
    assert coarse.cell == pytest.approx(0.4)
    assert coarse.free.shape == (10, 25)
    centres = coarse.origin[0] + (np.arange(25) + 0.5) * coarse.cell
    expected = (2 * np.arange(25) + 1 + 0.5) * 0.2
    np.testing.assert_allclose(centres, expected)
    assert layer().coarser(50).free.shape == (20, 50)


def test_a_thin_field_is_not_thinned_out_to_nothing() -> None:
    long = np.ones((2, 250), bool)
    thin = layer(free=long, reachable=long, vectors=to_the_east(2, 250), far=np.zeros((2, 250))).coarser(50)
    assert thin.free.shape == (1, 50)
    assert thin.origin[1] + 0.5 * thin.cell == pytest.approx(0.3)  # the centre of the upper row


def test_a_name_that_is_no_png_is_refused_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"must end in \.png"):
        draw_field(scene(), layer(), tmp_path / "field.jpg")
