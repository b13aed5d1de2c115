"""The plot of crowds at bottlenecks shows counts, thresholds and when each was congested."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tropel.errors import ParameterError
from tropel.figures.congestion import CrowdAtBottleneck, congested_spans, congestion_figure, draw_congestion


def crowd(name: str = "A", **changed: object) -> CrowdAtBottleneck:
    parts = {
        "name": name,
        "times": np.arange(5.0),
        "counts": np.array([3, 22, 15, 7, 2]),
        "congested": np.array([False, True, True, False, False]),
        "high": 20.0,
        "low": 8.0,
    }
    return CrowdAtBottleneck(**{**parts, **changed})


def test_a_span_lasts_from_the_look_that_began_it_to_the_one_that_ended_it() -> None:
    times = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert congested_spans(times, np.array([False, True, True, False, True]), 4.5) == [(1.0, 3.0), (4.0, 4.5)]
    assert congested_spans(times, np.ones(5, bool), 4.5) == [(0.0, 4.5)]
    assert congested_spans(times, np.zeros(5, bool), 4.5) == []
    assert congested_spans(np.empty(0), np.empty(0, bool), 4.5) == []


def test_every_bottleneck_has_a_panel_with_its_counts_and_thresholds() -> None:
    figure = congestion_figure([crowd("A"), crowd("B", high=60.0, low=30.0)])
    first, second = figure.axes
    assert first.get_title(loc="left") == "A"
    assert first.lines[0].get_ydata().tolist() == [3, 22, 15, 7, 2]
    assert [line.get_ydata()[0] for line in first.lines[1:]] == [20.0, 8.0]
    assert [text.get_text() for text in second.texts] == ["T high 60", "T low 30"]
    assert second.get_ylim()[1] > 60.0
    assert first.get_xlim() == second.get_xlim() == (0.0, 4.0)
    (span,) = first.patches
    assert (span.get_x(), span.get_x() + span.get_width()) == (1.0, 3.0)


def test_the_picture_is_written(tmp_path: Path) -> None:
    nothing = crowd("C", times=np.empty(0), counts=np.empty(0, int), congested=np.empty(0, bool))
    path = draw_congestion([crowd(), nothing], tmp_path / "crowds.png", title="Doors")
    with Image.open(path) as picture:
        assert picture.height > 400


def test_without_any_bottleneck_there_is_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="nothing to draw"):
        draw_congestion([], tmp_path / "crowds.png")
