"""Distributions of personal parameters: moments, truncation by drawing again, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from pydantic import TypeAdapter, ValidationError
from scipy import stats

from tropel import Normal, Uniform
from tropel._kernels.philox import random_key
from tropel.agents.distributions import Distribution, draw
from tropel.errors import ParameterError

IDS = np.arange(40_000)
_distribution: TypeAdapter[Any] = TypeAdapter(Distribution)


def sample(value: Any, seed: int = 0) -> np.ndarray[Any, np.dtype[np.float64]]:
    return draw(value, seed=seed, purpose="test", ids=IDS)


def test_a_normal_has_its_mean_and_standard_deviation() -> None:
    values = sample(Normal(1.34, 0.26))
    assert abs(values.mean() - 1.34) < 5 * 0.26 / math.sqrt(values.size)
    assert abs(values.std() - 0.26) < 5 * 0.26 / math.sqrt(2 * values.size)
    assert stats.kstest(values, stats.norm(1.34, 0.26).cdf).pvalue > 1e-4


def test_a_uniform_is_even_between_its_ends() -> None:
    values = sample(Uniform(-1.0, 3.0))
    assert values.min() >= -1.0
    assert values.max() <= 3.0
    assert stats.kstest(values, stats.uniform(-1.0, 4.0).cdf).pvalue > 1e-4


@pytest.mark.parametrize(
    ("mean", "sd", "low", "high"),
    [
        (1.34, 0.26, 1.0, 1.6),
        (1.34, 0.26, 1.3, 1.31),  # hit by one draw in sixty
        (0.0, 1.0, 3.5, 4.5),  # hit by one draw in four thousand
        (0.0, 1.0, None, -3.9),
        (0.2, 0.05, 0.15, None),
    ],
)
def test_a_truncated_normal_keeps_its_shape_and_does_not_pile_up_at_the_ends(
    mean: float, sd: float, low: float | None, high: float | None
) -> None:
    values = sample(Normal(mean, sd, low=low, high=high))
    ends = (-math.inf if low is None else low, math.inf if high is None else high)
    assert values.min() >= ends[0]
    assert values.max() <= ends[1]
    assert len(np.unique(values)) > 0.999 * values.size
    expected = stats.truncnorm((ends[0] - mean) / sd, (ends[1] - mean) / sd, loc=mean, scale=sd)
    assert stats.kstest(values, expected.cdf).pvalue > 1e-4


def test_without_spread_everybody_gets_the_mean() -> None:
    assert (sample(Normal(1.0, 0.0)) == 1.0).all()
    assert (sample(Normal(1.0, 0.5, low=1.2, high=1.2)) == 1.2).all()
    assert (sample(Uniform(2.0, 2.0)) == 2.0).all()


def test_a_value_depends_on_seed_purpose_and_id_alone() -> None:
    speed = Normal(1.34, 0.26, low=1.2)
    everybody = draw(speed, seed=3, purpose="visitors/speed", ids=IDS[:100])
    some = draw(speed, seed=3, purpose="visitors/speed", ids=np.array([7, 93, 12]))
    np.testing.assert_array_equal(some, everybody[[7, 93, 12]])
    for other in ({"seed": 4, "purpose": "visitors/speed"}, {"seed": 3, "purpose": "staff/speed"}):
        assert (draw(speed, ids=IDS[:100], **other) != everybody).all()  # type: ignore[arg-type]


def test_a_number_serves_all_and_an_array_gives_each_its_own() -> None:
    assert (draw(0.3, seed=0, purpose="x", ids=IDS[:5]) == 0.3).all()
    own = np.arange(5.0)
    given = draw(own, seed=0, purpose="x", ids=IDS[:5])
    np.testing.assert_array_equal(given, own)
    given[0] = 99.0
    assert own[0] == 0.0
    assert draw([1, 2, 3], seed=0, purpose="x", ids=IDS[:3]).tolist() == [1.0, 2.0, 3.0]
    assert draw(Normal(1, 1), seed=0, purpose="x", ids=IDS[:0]).shape == (0,)


@pytest.mark.parametrize("value", ["fast", None, [1.0, 2.0], np.ones((5, 2)), {"mean": 1}, object()])
def test_what_is_no_parameter_is_refused_with_the_purpose(value: Any) -> None:
    with pytest.raises(ParameterError, match=r"visitors/speed"):
        draw(value, seed=0, purpose="visitors/speed", ids=IDS[:5])


def test_a_value_that_is_not_finite_is_refused_with_the_agent() -> None:
    with pytest.raises(ParameterError, match="agent 12 is not finite"):
        draw([1.0, math.nan, 2.0], seed=0, purpose="x", ids=np.array([11, 12, 13]))
    with pytest.raises(ParameterError, match="not finite"):
        draw(math.inf, seed=0, purpose="x", ids=IDS[:3])


@pytest.mark.parametrize(
    "make",
    [
        lambda: Normal(1.0, -0.1),
        lambda: Normal(math.nan, 0.1),
        lambda: Normal(1.0, math.inf),
        lambda: Normal(1.0, 0.1, low=2.0, high=1.0),
        lambda: Normal(1.0, 0.1, low=1.5),
        lambda: Normal(1.0, 0.1, high=0.5),
        lambda: Normal(1.0, 0.1, low=math.nan),
        lambda: Normal(1.0, 0.1, lo=0.5),
        lambda: Normal(1.0),
        lambda: Uniform(2.0, 1.0),
        lambda: Uniform(0.0, math.inf),
        lambda: Uniform(0.0),
        lambda: Uniform(0.0, 1.0, mean=2.0),
    ],
)
def test_a_distribution_that_makes_no_sense_is_refused(make: Any) -> None:
    with pytest.raises(ParameterError, match=r"^(Normal|Uniform): [^\n]+$"):
        make()


@pytest.mark.parametrize(
    "distribution", [Normal(1.34, 0.26), Normal(1.34, 0.26, low=1.0), Normal(0, 1, high=2), Uniform(0.1, 0.4)]
)
def test_a_distribution_survives_json(distribution: Any) -> None:
    read = _distribution.validate_json(_distribution.dump_json(distribution))
    assert read == distribution
    key = random_key(1, "json")
    np.testing.assert_array_equal(read.draw(key, IDS[:50]), distribution.draw(key, IDS[:50]))


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ('{"kind": "normal", "sd": 1}', "mean"),
        ('{"kind": "normal", "mean": 1, "sd": 1, "lo": 1}', "lo"),
        ('{"kind": "uniform", "low": 1}', "high"),
        ('{"kind": "lognormal", "mean": 1}', "kind"),
    ],
)
def test_a_file_with_a_wrong_field_is_refused_with_the_field(text: str, field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        _distribution.validate_json(text)
