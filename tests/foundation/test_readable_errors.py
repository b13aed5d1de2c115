"""Wrong values given in Python: one line that names the class, the field and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tropel import Normal, Orbit, Uniform, Waypoints, events
from tropel.errors import ParameterError, TropelError


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Normal(1.0, -1), "Normal: sd = -1: should be greater than or equal to 0"),
        (lambda: Normal("fast", 1), "Normal: mean = 'fast': should be a number"),
        (lambda: Normal(1.0), "Normal: 'sd' is missing"),
        (lambda: Normal(1.0, 0.1, hi=2), "Normal: there is no parameter 'hi'; did you mean 'high'?"),
        (lambda: Normal(1, 0.1, low=5, high=2), "Normal: low (5) must not be above high (2)"),
        (lambda: Uniform(2, 1), "Uniform: low (2) must not be above high (1)"),
        (
            lambda: Orbit(center=(1, 1), radius=1, period=0),
            "Orbit: the period must not be zero, nor shorter than 1e-09 s",
        ),
        (
            lambda: Waypoints(points=[(0, 0), (1, 1)], speed=1, repeat="twice"),
            "Waypoints: repeat = 'twice': should be 'once', 'cycle' or 'back_and_forth'",
        ),
        (lambda: Waypoints(points=((1, "a"), (2, 2)), speed=1), "Waypoints: points[0][1] = 'a': should be a number"),
        (
            lambda: Waypoints(points=((1, 1),), speed=1),
            "Waypoints: points = ((1, 1),): should have at least 2 items, not 1",
        ),
        (lambda: events.OpenDoor("main"), "OpenDoor: give each value by its name: door"),
        (
            lambda: events.OpenDoor(dor="main"),
            "OpenDoor: 'door' is missing; there is no parameter 'dor'; did you mean 'door'?",
        ),
        (
            lambda: events.SetParameter(name="mass", value="big"),
            "SetParameter: value = 'big': should be a number or Normal(…) or Uniform(…) or 'default'",
        ),
        (
            lambda: events.AddObstacle(name="a", radius=1, motion="round"),
            "AddObstacle: motion = 'round': should be Waypoints(…) or Orbit(…)",
        ),
        (
            lambda: events.AddAgents(group="a", count=1, parameters={"mass": "big"}),
            "AddAgents: parameters.mass = 'big': should be a number or Normal(…) or Uniform(…)",
        ),
        (
            lambda: events.AddAgents(group="a", count=1, personality="cautios"),
            "AddAgents: personality = 'cautios': there is no personality 'cautios'; did you mean 'cautious'?",
        ),
        (lambda: events.Drift(name="mass", over=1.0), "Drift: give either to or factor"),
    ],
)
def test_a_wrong_value_is_one_line_with_class_field_and_what_is_allowed(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(ParameterError) as caught:
        make()
    assert str(caught.value) == says


def test_every_error_of_a_value_is_an_error_of_tropel() -> None:
    with pytest.raises(TropelError):
        events.CloseExit(exit=3)
