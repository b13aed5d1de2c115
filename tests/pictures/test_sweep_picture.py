from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from recorded_runs import distance, pixel, rgb

from tropel.errors import ParameterError
from tropel.pictures import draw_sweep, style, sweep_statistics
from tropel.pictures.sweep import sweep_figure


def departures(runs: int, agents: int = 60) -> list[Any]:
    random = np.random.default_rng(5)
    return [np.cumsum(random.exponential(random.normal(0.5, 0.05), agents)) for _ in range(runs)]


def texts(figure: Any) -> str:
    found = [text.get_text() for text in figure.texts]
    for axes in figure.axes:
        found += [text.get_text() for text in (*axes.texts, axes._left_title)]
    return "\n".join(found)


def test_the_picture_is_a_png(tmp_path: Path) -> None:
    target = tmp_path / "sweep.png"
    assert draw_sweep(departures(8), target, agents=60, end=100.0, title="a hall") == target
    with Image.open(target) as image:
        assert image.format == "PNG"
        assert image.width == 1160
    assert list(tmp_path.iterdir()) == [target]


def test_the_curve_is_the_mean_within_its_band_within_the_range_of_all_runs() -> None:
    statistics = sweep_statistics(departures(20), agents=60, end=100.0)
    figure: Any = sweep_figure(statistics)
    axes = figure.axes[0]
    (line,) = axes.get_lines()
    np.testing.assert_allclose(line.get_ydata(), 100.0 * statistics.share.mean(axis=0))
    k = int(np.argmin(np.abs(statistics.mean - 0.5)))
    time = float(statistics.times[k])
    in_band = 100 * (statistics.mean[k] + 0.75 * (statistics.high[k] - statistics.mean[k]))
    in_range = 100 * (statistics.high[k] + statistics.most[k]) / 2
    above = 100 * statistics.most[k] + 8.0
    assert distance(pixel(figure, axes, time, 100 * statistics.mean[k]), rgb(style.THERE)) < 20
    band, spread = pixel(figure, axes, time, in_band), pixel(figure, axes, time, in_range)
    assert distance(band, rgb(style.mixed(style.THERE, style.PAPER, 0.5))) < 20
    assert distance(spread, rgb(style.mixed(style.THERE, style.PAPER, 0.16))) < 20
    assert distance(pixel(figure, axes, time, above), rgb(style.PAPER)) < 45


def test_the_mean_and_its_interval_are_drawn_and_said() -> None:
    statistics = sweep_statistics(departures(20), agents=60, end=100.0)
    figure: Any = sweep_figure(statistics)
    dots, interval, mean = figure.axes[1].get_lines()
    np.testing.assert_array_equal(dots.get_xdata(), statistics.evacuation_times)
    assert interval.get_xdata() == pytest.approx([statistics.evacuation_low, statistics.evacuation_high])
    assert mean.get_xdata() == pytest.approx([statistics.evacuation_mean])
    assert f"mean {statistics.evacuation_mean:.1f} s" in texts(figure)
    assert "everybody left in every run" in texts(figure)


def test_runs_in_which_not_everybody_left_are_said() -> None:
    runs = departures(20)
    runs[3], runs[7] = runs[3][:-2], runs[7][:-5]
    said = texts(sweep_figure(sweep_statistics(runs, agents=60, end=100.0)))
    assert "in 2 of 20 runs not everybody left (up to 5 stayed)" in said
    assert "only the 18 runs in which everybody left" in said


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("runs", "agents", "said"),
    [
        (departures(1), 60, "everybody had left at"),
        (departures(2), 60, "mean"),
        ([times[:-1] for times in departures(3)], 60, "no run in which everybody left"),
        ([[5.0]] * 15, 1, "mean 5.0 s"),
        ([[]] * 3, 0, "no agents"),
        ([[]], 4, "not everybody left (4 stayed)"),
    ],
    ids=["one run", "two runs", "none complete", "all alike", "no agents", "nobody left"],
)
def test_unusual_sweeps_are_drawn_without_a_warning(tmp_path: Path, runs: Any, agents: int, said: str) -> None:
    assert said in texts(sweep_figure(sweep_statistics(runs, agents=agents, end=100.0)))
    assert draw_sweep(runs, tmp_path / "sweep.png", agents=agents, end=100.0).exists()


def test_nothing_overlaps_and_everything_is_on_the_picture() -> None:
    runs = [times[: 60 - (k % 3)] for k, times in enumerate(departures(30))]
    figure: Any = sweep_figure(sweep_statistics(runs, agents=60, end=100.0), title="a title " * 20)
    figure.canvas.draw()
    curves, times = (axes.get_tightbbox() for axes in figure.axes)
    across, down = figure.get_size_inches() * style.DPI
    assert not curves.overlaps(times)
    for box in (curves, times, *(text.get_window_extent() for text in figure.texts)):
        assert 0 <= box.x0 < box.x1 <= across
        assert 0 <= box.y0 < box.y1 <= down
    assert not any(text.get_window_extent().overlaps(box) for text in figure.texts for box in (curves, times))


def test_nothing_is_written_when_there_is_no_run(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="at least one run"):
        draw_sweep([], tmp_path / "sweep.png", agents=1, end=1.0)
    assert not list(tmp_path.iterdir())
