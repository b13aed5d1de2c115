"""Measures of flocks against closed forms and brute force."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from tropel.analysis import milling, nearest_distances, polarisation, subflocks
from tropel.errors import ParameterError

Floats = NDArray[np.float64]


def all_distances(places: Floats, period: Sequence[float]) -> Floats:
    """Between all pairs, to the nearest of all images around."""
    offset = np.abs(places[:, None] - places[None])
    for axis, length in enumerate(period):
        if length > 0.0:
            offset[:, :, axis] %= length
            offset[:, :, axis] = np.minimum(offset[:, :, axis], length - offset[:, :, axis])
    return np.asarray(np.sqrt((offset**2).sum(axis=2)))


def pieces_by_search(places: Floats, within: float, period: Sequence[float]) -> list[int]:
    near = all_distances(places, period) <= within
    number = [-1] * len(places)
    for start in range(len(places)):
        if number[start] < 0:
            number[start] = max(number, default=-1) + 1
            waiting = [start]
            while waiting:
                for other in np.flatnonzero(near[waiting.pop()]).tolist():
                    if number[other] < 0:
                        number[other] = number[start]
                        waiting.append(other)
    return number


def ring(count: int) -> tuple[Floats, Floats]:
    """A perfect mill: places on a circle and headings along it."""
    angle = np.linspace(0.0, 2.0 * math.pi, count, endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.stack([-np.sin(angle), np.cos(angle)], axis=1)


def in_space(vectors: Floats, *, about: Sequence[float] = (1.0, 2.0, 2.0)) -> Floats:
    """Vectors of a plane put into the plane across an axis in space."""
    axis = np.array(about) / np.linalg.norm(about)
    first = np.cross(axis, [1.0, 0.0, 0.0])
    first /= np.linalg.norm(first)
    return np.asarray(vectors @ np.stack([first, np.cross(axis, first)]))


@pytest.mark.parametrize("dim", [2, 3])
def test_a_parallel_flock_has_polarisation_one_whatever_its_speeds(dim: int) -> None:
    heading = np.linspace(0.5, 3.0, 20)[:, None] * np.arange(1.0, dim + 1.0)
    assert polarisation(heading) == pytest.approx(1.0)
    assert polarisation(np.concatenate([heading, -heading])) == pytest.approx(0.0, abs=1e-12)


def test_polarisation_of_a_fan_is_the_sinc_of_its_half_angle() -> None:
    angle = np.linspace(-1.0, 1.0, 200_001)
    assert polarisation(np.stack([np.cos(angle), np.sin(angle)], axis=1)) == pytest.approx(math.sin(1.0), abs=1e-5)


def test_a_perfect_mill_has_milling_one_and_no_polarisation() -> None:
    places, heading = ring(60)
    assert milling(places, heading) == pytest.approx(1.0)
    assert milling(places + 100.0, -heading) == pytest.approx(1.0)
    assert polarisation(heading) == pytest.approx(0.0, abs=1e-12)
    assert milling(places, places) == pytest.approx(0.0, abs=1e-12)


def test_a_mill_in_which_a_quarter_swims_the_other_way_is_half_a_mill() -> None:
    places, heading = ring(80)
    heading[::4] *= -1.0
    assert milling(places, heading) == pytest.approx(0.5)


def test_a_mill_in_space_turns_about_any_axis() -> None:
    places, heading = ring(60)
    assert milling(in_space(places), in_space(heading)) == pytest.approx(1.0)
    # Two mills across each other: the mean of two unit vectors at a right angle.
    other = {"about": (2.0, 1.0, -2.0)}
    both = np.concatenate([in_space(places), in_space(places, **other)])
    headings = np.concatenate([in_space(heading), in_space(heading, **other)])
    assert milling(both, headings) == pytest.approx(math.sqrt(0.5))


def test_a_mill_over_the_seam_of_periodic_space_is_still_a_mill() -> None:
    places, heading = ring(60)
    period = (10.0, 7.0)
    torn = np.mod(places, period)
    assert milling(torn, heading, period=period) == pytest.approx(1.0)
    assert milling(torn, heading) < 0.9


@pytest.mark.parametrize(
    "period", [(0.0, 0.0), (5.0, 4.0), (0.0, 4.0), (0.0, 0.0, 0.0), (5.0, 4.0, 3.0), (5.0, 0.0, 3.0)]
)
def test_nearest_distances_are_those_of_all_pairs(period: tuple[float, ...]) -> None:
    rng = np.random.default_rng(len(period))
    places = rng.uniform(-3.0, 9.0, (200, len(period)))
    distances = all_distances(places, period)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_allclose(nearest_distances(places, period=period), distances.min(axis=1), rtol=1e-9)


@pytest.mark.parametrize("within", [0.3, 0.7, 1.3])
@pytest.mark.parametrize(
    "period",
    [
        (0.0, 0.0),
        (5.0, 4.0),
        (0.0, 4.0),
        (2.9, 3.0),
        (0.0, 0.0, 0.0),
        (5.0, 4.0, 3.0),
        (5.0, 0.0, 3.1),
        (2.7, 5.3, 6.1),
    ],
)
def test_subflocks_are_those_of_a_search_over_all_pairs(period: tuple[float, ...], within: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        clumps = rng.uniform(-3.0, 9.0, (12, len(period)))
        places = clumps[rng.integers(12, size=150)] + rng.normal(0.0, 0.5, (150, len(period)))
        found = subflocks(places, within=within, period=period)
        assert found.tolist() == pieces_by_search(places, within, period)


def test_a_chain_hangs_together_up_to_exactly_the_given_step() -> None:
    chain = np.zeros((50, 2))
    chain[:, 0] = 0.25 * np.arange(50)
    assert subflocks(chain, within=0.25).max() == 0
    assert subflocks(chain, within=0.2499).max() == 49
    # The chain bites its tail: 50 steps of 0.25 m round a space of 12.5 m, with one member gone.
    assert subflocks(np.delete(chain, 25, axis=0), within=0.25).max() == 1
    assert subflocks(np.delete(chain, 25, axis=0), within=0.25, period=(12.5, 0.0)).max() == 0


def test_flocks_that_are_very_far_apart_or_in_one_point_are_counted_at_once() -> None:
    far = np.concatenate([np.zeros((3, 3)), np.full((2, 3), 1e9), [[1e9, -1e12, 0.0]]])
    assert subflocks(far, within=1e-3).tolist() == [0, 0, 0, 1, 1, 2]
    assert subflocks(np.zeros((100_000, 2)), within=1.0).max() == 0


def test_nobody_and_one_alone_have_no_measures_but_no_error() -> None:
    nobody, one = np.empty((0, 2)), np.ones((1, 2))
    assert math.isnan(polarisation(nobody))
    assert math.isnan(milling(nobody, nobody))
    assert math.isnan(milling(one, one))
    assert np.isnan(nearest_distances(one)).all()
    assert subflocks(nobody, within=1.0).shape == (0,)
    assert subflocks(one, within=1.0).tolist() == [0]


def test_who_stands_has_no_heading_and_is_left_out() -> None:
    places, heading = ring(40)
    heading[:20] = 0.0
    assert milling(places, heading) == pytest.approx(1.0)
    assert polarisation([[1.0, 0.0], [0.0, 0.0]]) == 1.0


def test_what_cannot_be_measured_is_named() -> None:
    good = np.ones((4, 2))
    with pytest.raises(ParameterError, match="2 or 3 numbers"):
        polarisation(np.ones(4))
    with pytest.raises(ParameterError, match="row 2"):
        nearest_distances(np.where(np.arange(4)[:, None] == 2, np.nan, good))
    with pytest.raises(ParameterError, match="same shape"):
        milling(good, good[:3])
    with pytest.raises(ParameterError, match="within must be a positive number"):
        subflocks(good, within=math.nan)
    with pytest.raises(ParameterError, match="2 lengths"):
        nearest_distances(good, period=(1.0, 2.0, 3.0))
