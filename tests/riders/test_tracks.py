"""Riding along lines with full physics: with the map riders stay near, without it they do not."""

from __future__ import annotations

import numpy as np
import pytest

from tropel.errors import ParameterError
from tropel.riders.bicyclist.character import Alien, Bicyclist, Human
from tropel.riders.character import map_of
from tropel.riders.tracks import corner_errors, lane_shift, line_of, ride_lines, seven_curves
from tropel.riders.tuning import PUBLISHED, cost_of, tune


def test_curves_are_as_long_and_turn_as_far_as_they_say() -> None:
    lines, turns = seven_curves(12.0)
    for line, turn in zip(lines, turns, strict=True):
        assert line.headings[-1] == pytest.approx(turn)
        assert len(line.points) * 0.1 == pytest.approx(12.0 * 11.0, abs=0.2)
        steps = np.linalg.norm(np.diff(line.points, axis=0), axis=1)
        np.testing.assert_allclose(steps, 0.1, rtol=1e-3)


def test_a_line_knows_its_places() -> None:
    line = line_of(np.full(300, 0.05))
    at, heading = line.at(np.array([-1.0, 0.0, 10.0, 30.0, 32.0]))
    np.testing.assert_allclose(at[0], [-1.0, 0.0], atol=1e-6)
    np.testing.assert_allclose(at[2], [np.sin(0.5) / 0.05, (1.0 - np.cos(0.5)) / 0.05], atol=1e-3)
    np.testing.assert_allclose(heading, [0.0, 0.0, 0.5, 1.5, 1.5], atol=1e-5)
    np.testing.assert_allclose(at[4] - at[3], 2.0 * np.array([np.cos(1.5), np.sin(1.5)]), atol=1e-3)
    assert line.nearest(at[2] + 0.5 * np.array([-np.sin(0.5), np.cos(0.5)]), near=8.0) == pytest.approx(10.0, abs=0.1)


def corner(who: Bicyclist, number: int, controller: str) -> float:
    """Mean error in the first three seconds of one of the curves, after a second of straight road."""
    map_ = map_of(who)
    lines, _ = seven_curves(map_.speed, straight=1.0)
    t_max, ratio = PUBLISHED["path"][who.name]
    ridden = ride_lines(who, map_, [lines[number]], controller=controller, t_max=t_max, ratio=ratio, seconds=4.0)
    assert not ridden.fallen.any()
    return float(corner_errors(ridden, straight=1.0, seconds=3.0)[0])


def test_the_human_keeps_to_a_curve_with_the_map_and_not_without() -> None:
    with_map, without = corner(Human(), 5, "map"), corner(Human(), 5, "simple")
    assert with_map < 0.6
    assert without > 2.5 * with_map


@pytest.mark.long
def test_figure_6_the_simple_controller_s_error_grows_with_the_curve_and_the_map_s_does_not() -> None:
    who, map_ = Human(), map_of(Human())
    lines, turns = seven_curves(map_.speed)
    t_max, ratio = PUBLISHED["path"]["human"]
    with_map = ride_lines(who, map_, lines, t_max=t_max, ratio=ratio)
    without = ride_lines(who, map_, lines, controller="simple")
    assert not with_map.fallen.any()
    assert not without.fallen.any()
    errors, simple = corner_errors(with_map), corner_errors(without)
    assert (errors < 0.6).all()
    assert (simple > 5.0 * errors).all()
    # Almost linear in the turn.
    assert np.corrcoef(turns, simple)[0, 1] > 0.99


@pytest.mark.long
def test_figure_7_the_alien_s_errors_are_small_with_both() -> None:
    who, map_ = Alien(), map_of(Alien())
    lines, _ = seven_curves(map_.speed)
    t_max, ratio = PUBLISHED["path"]["alien"]
    for controller in ("map", "simple"):
        ridden = ride_lines(who, map_, lines, controller=controller, t_max=t_max, ratio=ratio)
        assert (corner_errors(ridden) < 0.8).all()


def test_a_rider_changes_lanes() -> None:
    who, map_ = Human(), map_of(Human())
    t_max, ratio = PUBLISHED["herd"]["human"]
    ridden = ride_lines(who, map_, [lane_shift(map_.speed)], t_max=t_max, ratio=ratio, seconds=7.0)
    assert not ridden.fallen[0]
    assert ridden.position_error[0, 0] > 3.5
    assert ridden.position_error[0, -10:].max() < 0.7
    # Through counter-steering it first goes the other way.
    assert ridden.place[0, :, 1].max() > 0.02


def test_tuning_finds_cheaper_weights_than_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    # Annealing over a cost with a known least one; the rides themselves are tested above and with `long`.
    seen = []

    def cost(*_: object, t_max: float, ratio: float, **more: object) -> float:
        seen.append((t_max, ratio))
        return (t_max - 1.2) ** 2 + (ratio - 0.3) ** 2

    monkeypatch.setattr("tropel.riders.tuning.cost_of", cost)
    found = tune(Human(), map_of(Human()), "path", evaluations=200, seed=1)
    assert found.t_max == pytest.approx(1.2, abs=0.25)
    assert found.ratio == pytest.approx(0.3, abs=0.2)
    assert found.cost == min((t - 1.2) ** 2 + (r - 0.3) ** 2 for t, r in seen)
    assert len(set(seen)) == len(seen) == found.evaluations


@pytest.mark.long
def test_weights_that_look_at_position_alone_cost_more() -> None:
    who = Human()
    t_max, ratio = PUBLISHED["herd"]["human"]
    assert cost_of(who, map_of(who), "herd", t_max=t_max, ratio=ratio) < 0.8 * cost_of(
        who, map_of(who), "herd", t_max=0.3, ratio=1.0
    )


@pytest.mark.parametrize("wrong", [{"controller": "best"}])
def test_wrong_names_are_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(ParameterError, match="must be one of"):
        ride_lines(Human(), map_of(Human()), [lane_shift(12.0)], **wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="must be one of"):
        cost_of(Human(), map_of(Human()), "race", t_max=1.0, ratio=0.5)
    with pytest.raises(ParameterError, match="at least 4"):
        tune(Human(), map_of(Human()), "path", evaluations=1)
