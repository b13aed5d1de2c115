"""Which variables of the state matter: known answers on made-up data, and the human's with full physics."""

from __future__ import annotations

import numpy as np
import pytest

from tropel.errors import ParameterError
from tropel.riders.bicyclist.character import Human
from tropel.riders.elimination import _choose, _components, _error, reduce_state


def test_what_predicts_is_chosen_and_what_does_not_is_left() -> None:
    drawn = np.random.Generator(np.random.Philox(key=1))
    values = drawn.normal(size=(200, 5))
    values[:, 3] = values[:, 0] + 0.01 * drawn.normal(size=200)  # moves in unison with the first
    turns = drawn.normal(size=200)
    where = 3.0 * values[:, 0] + 1.0 * values[:, 2] + 0.5 * turns + 0.05 * drawn.normal(size=200)
    reach = np.stack((np.zeros(200), where), axis=1)[:, np.newaxis]
    kept, errors = _choose(values, [0, 1, 2, 3, 4], turns, reach)
    assert kept == [0, 2]
    assert errors[-1] == pytest.approx(0.05, rel=0.2)
    assert _error(values[:, [1, 4]], turns, reach) > 2.5


def test_components_of_two_independent_variables_are_two() -> None:
    drawn = np.random.Generator(np.random.Philox(key=2))
    hidden = drawn.normal(size=(300, 2))
    shares, scores = _components(hidden @ drawn.normal(size=(2, 6)))
    assert shares[:2].sum() == pytest.approx(1.0)
    assert scores.shape[0] == 300


@pytest.mark.long
def test_the_human_s_state_reduces_to_two_variables_of_the_bicycle() -> None:
    found = reduce_state(Human())
    reasons = {verdict.name: verdict.reason for verdict in found.verdicts}
    assert len(reasons) == 56
    for name in ("x", "y", "yaw", "front_wheel"):
        assert reasons[name].startswith("homogeneous")
    for name in ("z", "pitch", "pelvis", "waist_roll"):
        assert reasons[name].startswith("constant")
    for name in ("left_hip", "left_knee", "right_ankle", "rear_wheel"):
        assert reasons[name] == "f(crank)"
    assert 2 <= len(found.kept) <= 3
    assert not any(name.startswith(("left", "right", "waist")) for name in found.kept)
    # What the paper keeps, lean and yaw rate, explains most of where riders go.
    assert found.error_of_map < 0.4 * found.error_without
    assert found.errors[-1] < found.errors[0] < found.error_without


def test_too_few_riders_are_refused() -> None:
    with pytest.raises(ParameterError, match="at least 4"):
        reduce_state(Human(), riders=2)
