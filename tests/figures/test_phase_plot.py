"""Phase portraits of the dynamical model, and their pictures."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tropel.errors import ParameterError, RecordingError
from tropel.figures.phase_portraits import (
    PhasePortrait,
    competition_portraits,
    draw_phase_plot,
    gap_portraits,
    phase_portrait,
)


def middle_slope(portrait: PhasePortrait) -> float:
    """d phi' / d phi straight ahead."""
    heading, rate = portrait.curve.heading, portrait.curve.turn_rate
    k = len(heading) // 2
    return float((rate[k + 1] - rate[k - 1]) / (heading[k + 1] - heading[k - 1]))


def test_figure_2_the_middle_repels_is_critical_and_attracts() -> None:
    narrow, critical, wide = gap_portraits()
    assert middle_slope(narrow) > 0.3
    assert abs(middle_slope(critical)) < 0.05
    assert middle_slope(wide) < -0.3
    assert not (np.abs(narrow.curve.balances()) < 0.1).any()
    assert np.abs(wide.curve.balances()).min() == pytest.approx(0.0, abs=1e-6)
    assert len(wide.curve.balances(stable=False)) == 2


def test_the_turn_rate_without_a_target_is_the_sum_of_what_each_obstacle_contributes() -> None:
    for portrait in gap_portraits():
        np.testing.assert_allclose(portrait.curve.turn_rate, np.sum(portrait.parts, axis=0), atol=1e-8)


def test_figure_3_competition_removes_the_way_between_and_keeps_the_ways_round() -> None:
    plain, weighed = competition_portraits()
    assert np.abs(plain.curve.balances()).min() < 1e-6
    assert np.abs(weighed.curve.balances()).min() > math.radians(30)
    straight_ahead = len(weighed.curve.heading) // 2
    assert weighed.curve.weight_target[straight_ahead] == 0.0
    assert weighed.curve.weight_target.max() > 0.9
    assert (plain.curve.weight_target == 1.0).all()


def test_an_obstacle_beside_the_way_bends_the_heading_to_the_other_side() -> None:
    portrait = phase_portrait("one", obstacles=((2.0, 0.4, 0.5),), target=(6.0, 0.0), competition=False)
    ahead = [angle for angle in portrait.curve.balances() if abs(angle) < 1.0]
    assert ahead
    assert ahead[0] < -0.1


@pytest.mark.parametrize("portraits", [gap_portraits, competition_portraits])
def test_portraits_become_one_picture_wide_enough_for_all(
    portraits: Callable[[], list[PhasePortrait]], tmp_path: Path
) -> None:
    drawn = portraits()
    path = draw_phase_plot(drawn, tmp_path / "phase.png", title="Portraits")
    image = np.asarray(Image.open(path).convert("RGB")).astype(int)
    assert image.shape[1] > 400 * len(drawn)
    dark = image.sum(axis=2) < 200
    columns = np.array_split(dark[:, 60:], len(drawn), axis=1)
    assert all(part.sum() > 500 for part in columns)
    assert not dark[:, :3].any()
    assert not dark[:, -3:].any()


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="at least one portrait"):
        draw_phase_plot([], tmp_path / "a.png")
    with pytest.raises(RecordingError, match=r"must end in \.png"):
        draw_phase_plot(gap_portraits(), tmp_path / "a.pdf")
