from __future__ import annotations

import pytest

from tropel.errors import ParameterError
from tropel.viewer.replay.page import Player


def test_time_goes_on_at_the_chosen_speed_and_stops_at_the_end() -> None:
    player = Player(2.0, 10.0, speed=3.0)
    player.advance(1.0)
    assert player.time == 5.0
    player.set_speed(0.5)
    player.advance(2.0)
    assert player.time == 6.0
    player.advance(100.0)
    assert (player.time, player.at_end, player.playing) == (10.0, True, False)


def test_pausing_holds_the_time_and_playing_goes_on_from_it() -> None:
    player = Player(0.0, 10.0)
    player.advance(1.0)
    player.pause()
    player.advance(5.0)
    assert player.time == 1.0
    player.play()
    player.advance(1.0)
    assert player.time == 2.0


def test_playing_from_the_end_begins_again() -> None:
    player = Player(1.0, 4.0)
    player.advance(100.0)
    player.play()
    assert (player.time, player.playing) == (1.0, True)


def test_seeking_stays_within_the_run_and_leaves_it_playing() -> None:
    player = Player(1.0, 4.0)
    for wanted, reached in ((2.5, 2.5), (-3.0, 1.0), (99.0, 4.0)):
        player.seek(wanted)
        assert player.time == reached
    assert player.playing


def test_a_run_of_one_frame_does_not_play() -> None:
    player = Player(3.0, 3.0)
    player.play()
    player.advance(1.0)
    assert (player.time, player.playing) == (3.0, False)


@pytest.mark.parametrize("speed", [0.0, -1.0, float("inf"), float("nan")])
def test_a_speed_must_be_a_positive_number(speed: float) -> None:
    with pytest.raises(ParameterError, match="recorded seconds"):
        Player(0.0, 1.0, speed=speed)
