"""The choice among futures, compared with one rider and one action at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tropel.errors import ParameterError
from tropel.riders.bicyclist.character import Alien, Human
from tropel.riders.character import build_map, map_of
from tropel.riders.choice import choose_turns
from tropel.riders.maps import MobilityMap


def brute_force(
    map_: MobilityMap, state: np.ndarray, course: np.ndarray, heading: np.ndarray, t_max: float, ratio: float
) -> float:
    """The turn of one rider, in plain Python."""
    nearest, least = 0, math.inf
    for s, known in enumerate(map_.states):
        away = sum(w * (a - b) ** 2 for w, a, b in zip(map_.weights, known, state, strict=True))
        if away < least:
            nearest, least = s, away
    last = round(t_max / map_.interval)
    scores = []
    for a in range(len(map_.actions)):
        if map_.lasts[nearest, a] < t_max - 1e-9:
            continue
        total = 0.0
        for k in range(1, last + 1):
            x, y = map_.position[nearest, a, k] - course[k]
            total += ratio * math.hypot(x, y)
            off = map_.heading[nearest, a, k] - heading[k]
            total += (1.0 - ratio) * abs(math.atan2(math.sin(off), math.cos(off)))
        scores.append((total, a))
    (_, best), (_, second) = sorted(scores)[:2]
    near, other = (math.dist(map_.position[nearest, a, last], course[last]) for a in (best, second))
    share = other / (near + other)
    return share * float(map_.actions[best]) + (1.0 - share) * float(map_.actions[second])


@pytest.mark.parametrize("kind", [Human, Alien])
def test_the_choice_is_that_of_brute_force(kind: type[Human]) -> None:
    map_ = map_of(kind())
    drawn = np.random.Generator(np.random.Philox(key=5))
    count, times = 40, len(map_.times)
    states = drawn.uniform(map_.states.min(axis=0), map_.states.max(axis=0), (count, 2))
    bend = drawn.uniform(-1.0, 1.0, count)
    heading = bend[:, None] * map_.times / 2.0 + drawn.uniform(-0.3, 0.3, count)[:, None]
    course = np.cumsum(map_.speed * map_.interval * np.stack((np.cos(heading), np.sin(heading)), axis=2), axis=1)
    assert course.shape == (count, times, 2)
    for t_max, ratio in ((1.3, 0.28), (0.8, 0.84), (2.0, 1.0), (0.5, 0.0)):
        turns = choose_turns(map_, states, course, heading, t_max=t_max, ratio=ratio).turn
        expected = [brute_force(map_, *one, t_max, ratio) for one in zip(states, course, heading, strict=True)]
        np.testing.assert_allclose(turns, expected, rtol=0.0, atol=1e-12)


def test_a_rider_who_wants_what_an_action_gives_takes_it() -> None:
    map_ = map_of(Human())
    for state, action in ((3, 2), (40, 7), (77, 9)):
        chosen = choose_turns(
            map_,
            map_.states[[state]],
            map_.position[[state], action],
            map_.heading[[state], action],
            t_max=1.5,
            ratio=0.3,
        )
        assert chosen.best[0] == action
        assert chosen.turn[0] == pytest.approx(map_.actions[action])


def test_futures_that_end_in_a_fall_are_not_chosen() -> None:
    map_ = map_of(Alien())
    state, action = np.argwhere(map_.lasts < 3.0)[0] if (map_.lasts < 3.0).any() else (0, 0)
    falls = map_.lasts.copy()
    falls[state, action] = 0.5
    cut = MobilityMap(**{**{name: getattr(map_, name) for name in MobilityMap.__dataclass_fields__}, "lasts": falls})
    chosen = choose_turns(
        cut,
        map_.states[[state]],
        map_.position[[state], action],
        map_.heading[[state], action],
        t_max=1.0,
        ratio=0.5,
    )
    assert action not in (chosen.best[0], chosen.second[0])


def test_a_course_that_is_too_short_is_refused() -> None:
    map_ = map_of(Human())
    with pytest.raises(ParameterError, match="must reach up to t_max"):
        choose_turns(map_, map_.states[:1], np.zeros((1, 5, 2)), np.zeros((1, 5)), t_max=1.3, ratio=0.5)


def test_any_character_has_a_fan() -> None:
    from tropel.riders.car import Car

    map_ = build_map(Car(), states=11)
    ahead = np.column_stack((map_.speed * map_.times, np.zeros(len(map_.times))))[np.newaxis]
    aside = np.array([0.0, 2.0])
    left = choose_turns(map_, np.zeros((1, 1)), ahead + aside, np.zeros(ahead.shape[:2]), t_max=1.5, ratio=0.5)
    right = choose_turns(map_, np.zeros((1, 1)), ahead - aside, np.zeros(ahead.shape[:2]), t_max=1.5, ratio=0.5)
    assert left.turn[0] > 0.05
    assert right.turn[0] == pytest.approx(-left.turn[0], abs=1e-9)
