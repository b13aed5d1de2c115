"""The picture of a flock's measures."""

import numpy as np
import pytest

from tropel.analysis import FlockCurve, FlockMeasures
from tropel.pictures.flock import flock_figure


def made(groups: list[str], frames: int = 30, pieces: int = 3) -> FlockMeasures:
    times = np.arange(frames) * 0.5
    curves = {
        name: FlockCurve(
            agents=np.full(frames, 10 * (k + 1)),
            polarisation=np.linspace(0.1, 0.9, frames),
            milling=np.linspace(0.2, 0.0, frames),
            nearest_distance=np.full(frames, 0.5 + k),
            subflocks=np.linspace(pieces, 1, frames).astype(np.int64),
            largest=np.linspace(1.0 / (k + 1), 1.0, frames),
        )
        for k, name in enumerate(groups)
    }
    return FlockMeasures(title="made", times=times, within=2.0, groups=curves)


def test_every_measure_has_a_panel_with_a_curve_for_each_group() -> None:
    measures = made(["all", "school", "shark"])
    figure = flock_figure(measures)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert [title.split(",")[0] for title in titles] == [
        "polarisation",
        "milling",
        "distance to the nearest neighbour [m]",
        "sub-flocks",
        "share of the largest sub-flock",
        "agents",
    ]
    for axes in figure.axes:
        assert [line.get_label() for line in axes.lines] == ["all", "school", "shark"]
    np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), measures.groups["school"].polarisation)
    np.testing.assert_array_equal(figure.axes[4].lines[1].get_ydata(), measures.groups["school"].largest)
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["all", "school", "shark"]


@pytest.mark.parametrize(("groups", "frames", "pieces"), [(["birds"], 1, 1), (["birds"], 5, 4000)])
def test_one_group_needs_no_legend_and_crumbs_a_logarithmic_axis(groups: list[str], frames: int, pieces: int) -> None:
    figure = flock_figure(made(groups, frames, pieces))
    assert not figure.legends
    assert figure.axes[3].get_yscale() == ("log" if pieces > 50 else "linear")


def test_of_very_many_groups_the_largest_are_drawn() -> None:
    figure = flock_figure(made(["all", *(f"flock {k}" for k in range(20))]))
    drawn = [line.get_label() for line in figure.axes[0].lines]
    assert drawn == ["all", *(f"flock {k}" for k in range(12, 20))]
