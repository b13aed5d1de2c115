"""The picture of bottlenecks shows each of them, with its width."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import shapely
from matplotlib.patches import Rectangle
from PIL import Image

from tropel.errors import RecordingError
from tropel.figures.cells import bottleneck_figure, bottleneck_names, draw_bottlenecks
from tropel.planning.path_plans.bottlenecks import Bottleneck
from tropel.recording import Scene

FOUND = [
    Bottleneck(cell=(5, 5), position=(2.2, 2.2), width=1.2, passage=((2.2, 1.6), (2.2, 2.8))),
    Bottleneck(cell=(8, 20), position=(8.2, 3.4), width=math.inf),
]


def scene() -> Scene:
    return Scene(
        dim=2,
        bounds=[[0.0, 0.0], [10.0, 4.0]],
        walkable_wkt=shapely.box(0, 0, 10, 4).wkt,
        exits={"east": shapely.box(9, 0, 10, 4).wkt},
        dt=0.1,
    )


def test_every_bottleneck_has_a_ring_where_it_is_and_its_name_and_width() -> None:
    axes = bottleneck_figure(scene(), FOUND).axes[0]
    texts = [text.get_text() for text in axes.texts]
    assert "A  1.2 m" in texts
    assert "B  open" in texts
    rings = {tuple(line.get_xydata()[0].tolist()) for line in axes.lines if line.get_marker() == "o"}
    assert rings == {(2.2, 2.2), (8.2, 3.4)}
    lines = [line.get_xydata().tolist() for line in axes.lines if len(line.get_xydata()) == 2]
    assert lines == [[[2.2, 1.6], [2.2, 2.8]]]


def test_the_watched_squares_are_drawn_when_asked_for() -> None:
    def squares(area: float) -> list[tuple[float, float, float]]:
        patches = bottleneck_figure(scene(), FOUND, area=area).axes[0].patches
        return [(p.get_x(), p.get_y(), p.get_width()) for p in patches if isinstance(p, Rectangle)]

    assert squares(0.0) == []
    assert squares(2.0) == [pytest.approx((1.2, 1.2, 2.0)), pytest.approx((7.2, 2.4, 2.0))]


def test_the_header_says_how_many(tmp_path: Path) -> None:
    figure = bottleneck_figure(scene(), FOUND[:1], title="A hall", facts=["2 goals"])
    texts = [text.get_text() for text in figure.texts]
    assert "A hall" in texts
    assert "2 goals  ·  1 bottleneck  ·  blue: where the width is measured" in texts
    path = draw_bottlenecks(scene(), FOUND, tmp_path / "found.png")
    with Image.open(path) as picture:
        assert picture.width > 800


def test_a_world_without_bottlenecks_is_drawn_too() -> None:
    assert "0 bottlenecks" in [text.get_text() for text in bottleneck_figure(scene(), []).texts]


def test_many_have_numbers_instead_of_letters() -> None:
    assert bottleneck_names(FOUND * 13)[-1] == "Z"
    assert bottleneck_names(FOUND * 14)[-1] == "28"


def test_a_name_that_is_no_png_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"must end in \.png"):
        draw_bottlenecks(scene(), FOUND, tmp_path / "found.jpg")


def test_a_name_covers_neither_the_passage_nor_a_wall_beside_it() -> None:
    wall = shapely.box(4.9, 0, 5.1, 1.5).union(shapely.box(4.9, 2.5, 5.1, 4))
    walls = Scene(dim=2, bounds=[[0.0, 0.0], [10.0, 4.0]], walkable_wkt=(shapely.box(0, 0, 10, 4) - wall).wkt, dt=0.1)
    door = Bottleneck(cell=(5, 12), position=(5.0, 2.0), width=1.0, passage=((5.0, 1.5), (5.0, 2.5)))
    figure = bottleneck_figure(walls, [door])
    axes = figure.axes[0]
    (name,) = [text for text in axes.texts if text.get_text() == "A  1.0 m"]
    box = name.get_window_extent().transformed(axes.transData.inverted())
    covered = shapely.box(box.x0, box.y0, box.x1, box.y1)
    assert not covered.intersects(wall)
    assert not covered.intersects(shapely.LineString(door.passage))
