from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tropel.errors import ParameterError
from tropel.pictures import sweep_statistics

departure_times = st.lists(st.floats(0.0, 100.0), min_size=1, max_size=20)


@given(st.lists(departure_times, min_size=2, max_size=6))
@settings(deadline=None, max_examples=60)
def test_mean_and_band_are_those_of_numpy_and_scipy(departures: list[list[float]]) -> None:
    agents = [len(times) for times in departures]
    found = sweep_statistics(departures, agents=agents, end=100.0, points=50)
    share = np.array([[np.mean(np.array(times) <= t) for t in found.times] for times in departures])
    np.testing.assert_allclose(found.share, share)
    np.testing.assert_allclose(found.mean, np.mean(share, axis=0))
    np.testing.assert_array_equal(found.least, share.min(axis=0))
    np.testing.assert_array_equal(found.most, share.max(axis=0))
    error = stats.sem(share, axis=0)
    spread = error > 0
    low, high = stats.t.interval(0.95, len(departures) - 1, loc=found.mean[spread], scale=error[spread])
    np.testing.assert_allclose(found.low[spread], low)
    np.testing.assert_allclose(found.high[spread], high)
    np.testing.assert_allclose(found.low[~spread], found.mean[~spread])


@given(st.lists(departure_times, min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_everybody_has_left_at_the_end_of_the_curves(departures: list[list[float]]) -> None:
    found = sweep_statistics(departures, agents=[len(times) for times in departures], end=100.0)
    assert (np.diff(found.mean) >= 0).all()
    assert found.mean[-1] == 1.0
    assert found.incomplete == 0
    np.testing.assert_array_equal(found.evacuation_times, [max(times) for times in departures])


def test_the_evacuation_time_has_students_confidence_interval() -> None:
    last = np.array([40.0, 42.5, 39.0, 47.0, 41.0])
    found = sweep_statistics([[10.0, time] for time in last], agents=2, end=60.0)
    low, high = stats.t.interval(0.95, 4, loc=last.mean(), scale=stats.sem(last))
    assert found.evacuation_mean == pytest.approx(last.mean())
    assert found.evacuation_low == pytest.approx(low)
    assert found.evacuation_high == pytest.approx(high)


def test_runs_in_which_somebody_stayed_count_for_the_curve_but_not_for_the_evacuation_time() -> None:
    found = sweep_statistics([[1.0, 2.0], [1.0], [3.0, 4.0]], agents=2, end=[2.0, 50.0, 4.0])
    assert found.stayed.tolist() == [0, 1, 0]
    assert found.incomplete == 1
    assert found.evacuation_times.tolist() == [2.0, 4.0]
    assert found.times[-1] == 50.0
    assert found.mean[-1] == pytest.approx((1.0 + 0.5 + 1.0) / 3)


def test_curves_end_where_a_run_ended_with_somebody_still_there() -> None:
    found = sweep_statistics([[1.0, 80.0], [1.0]], agents=2, end=[80.0, 30.0])
    assert found.times[-1] == 30.0
    assert found.evacuation_times.tolist() == [80.0]


def test_one_run_has_no_confidence_interval_and_no_run_no_evacuation_time() -> None:
    one = sweep_statistics([[1.0, 2.0]], agents=2, end=5.0)
    assert np.isnan(one.low).all()
    assert np.isnan(one.evacuation_low)
    assert one.evacuation_mean == 2.0
    none = sweep_statistics([[1.0], []], agents=2, end=5.0)
    assert np.isnan(none.evacuation_mean)
    assert len(none.evacuation_times) == 0


def test_without_agents_everybody_has_left_at_once() -> None:
    found = sweep_statistics([[], []], agents=0, end=3.0)
    assert (found.mean == 1.0).all()
    assert found.evacuation_times.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("departures", "agents", "end", "said"),
    [
        ([], 1, 1.0, "at least one run"),
        ([[1.0, 2.0]], 1, 5.0, "run 0: 2 departures but only 1 agents"),
        ([[1.0], [np.nan]], 1, 5.0, "run 1: a departure time"),
        ([[-1.0]], 1, 5.0, "run 0: a departure time"),
        ([[9.0]], 1, 5.0, "the last departure was at 9 s"),
        ([[1.0], [1.0]], [1, 1, 1], 5.0, "agents has 3 values for 2 runs"),
    ],
)
def test_what_makes_no_sense_is_refused(departures: list[list[float]], agents: int, end: float, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        sweep_statistics(departures, agents=agents, end=end)
