from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tropel.pictures import style
from tropel.pictures.viewport import SIDE, fit_view

lengths = st.floats(0.1, 500.0)
places = st.floats(-1e4, 1e4)


@given(places, places, lengths, lengths, st.integers(200, 1200), st.integers(200, 1200), st.integers(0, 30))
def test_the_box_fits_into_the_map_with_its_margin(
    x: float, y: float, wide: float, high: float, width: int, height: int, margin: int
) -> None:
    bounds = np.array([[x, y], [x + wide, y + high]])
    view = fit_view(bounds, width=width, height=height, margin=margin, least=60)
    assert view.width <= max(width, 60)
    assert view.height <= max(height, 60)
    corners = view.pixels(bounds)
    assert corners.min() >= margin - 1e-3
    assert corners[:, 0].max() <= view.width - margin + 1e-3
    assert corners[:, 1].max() <= view.height - margin + 1e-3
    # As large as possible: it fills one of the directions.
    assert np.isclose(wide * view.scale, width - 2 * margin) or np.isclose(high * view.scale, height - 2 * margin)


def test_pixels_agree_with_matplotlib() -> None:
    bounds = np.array([[2.0, -3.0], [12.0, 4.0]])
    view = fit_view(bounds, width=500, height=400, margin=15)
    figure = style.new_figure(view.width, view.height)
    axes = style.add_axes(figure, 0, 0, view.width, view.height)
    view.frame(axes)
    points = np.random.default_rng(1).uniform(bounds[0], bounds[1], (50, 2))
    shown = axes.transData.transform(points)
    expected = np.stack([shown[:, 0], view.height - shown[:, 1]], axis=1)
    np.testing.assert_allclose(view.pixels(points), expected, atol=1e-6)


def test_the_view_from_the_side_shows_x_and_z() -> None:
    bounds = np.array([[0.0, 0.0, 0.0], [10.0, 50.0, 5.0]])
    view = fit_view(bounds, plane=SIDE, width=220, height=200, margin=10)
    assert view.scale == 20.0
    np.testing.assert_allclose(view.pixels([1.0, 30.0, 5.0]), [[10 + 20.0, 10.0]])


def test_a_box_without_extent_has_a_metre_around_it() -> None:
    view = fit_view(np.zeros((2, 2)), width=400, height=300, margin=10)
    assert view.scale == 280.0
    np.testing.assert_allclose(view.pixels([0.0, 0.0]), [[150.0, 150.0]])
