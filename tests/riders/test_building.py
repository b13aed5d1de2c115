"""Mobility maps: building goes on after an interruption, and what ships is what the command builds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tropel.errors import ParameterError
from tropel.riders.bicyclist.character import Alien, Bicyclist, Human, full_states
from tropel.riders.building import build_in_parts, kept_map
from tropel.riders.car import Car
from tropel.riders.character import SHIPPED, Floats, Trials, build_map, find_character, map_of
from tropel.riders.maps import MobilityMap


class Counted(Car):
    """A car that counts its trials, and breaks down when told to."""

    count = 0
    breaks_at = 10**9

    def trials(self, full_states: Floats, actions: Floats, times: Floats) -> Trials:
        Counted.count += len(actions)
        if Counted.count > Counted.breaks_at:
            raise KeyboardInterrupt
        return super().trials(full_states, actions, times)


def test_an_interrupted_build_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "count", 0)
    monkeypatch.setattr(Counted, "breaks_at", 60)
    path = tmp_path / "car.npz"
    with pytest.raises(KeyboardInterrupt):
        build_in_parts(Counted(), path, states=20, parts=10)
    assert not path.exists()
    monkeypatch.setattr(Counted, "breaks_at", 10**9)
    Counted.count = 0
    made = build_in_parts(Counted(), path, states=20, parts=10)
    assert Counted.count == 200 - 60
    straight = build_map(Counted(), states=20)
    np.testing.assert_allclose(made.position, straight.position, atol=1e-5)
    assert [one.name for one in tmp_path.iterdir()] == ["car.npz"]


def test_a_damaged_part_is_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Counted, "count", 0)
    monkeypatch.setattr(Counted, "breaks_at", 60)
    path = tmp_path / "car.npz"
    with pytest.raises(KeyboardInterrupt):
        build_in_parts(Counted(), path, states=20, parts=10)
    part = next(tmp_path.rglob("part_001.npz"))
    part.write_bytes(part.read_bytes()[:-100])
    monkeypatch.setattr(Counted, "breaks_at", 10**9)
    Counted.count = 0
    build_in_parts(Counted(), path, states=20, parts=10)
    assert Counted.count == 200 - 40


def test_a_small_map_of_a_bicyclist_is_built_in_parts(human: Human, tmp_path: Path) -> None:
    class Short(Human):
        action_limit = 0.5  # type: ignore[assignment]

        def initial_states(self, count: int) -> Floats:
            states = map_of(human).full_states
            assert states is not None
            return states[:count]

    made = build_in_parts(Short(), tmp_path / "human.npz", states=4, actions=2, duration=0.3, parts=2)
    assert made.position.shape == (4, 2, 4, 2)
    assert made.provenance["trials"] == 8
    assert made.provenance["mujoco"]


@pytest.mark.parametrize("kind", [Human, Alien])
def test_the_shipped_maps_belong_to_their_characters_and_are_small(kind: type[Bicyclist]) -> None:
    character = kind()
    path = SHIPPED / f"{character.name}.npz"
    assert path.stat().st_size < 2_000_000
    found = MobilityMap.load(path, digest=character.digest())
    assert found.position.shape == (100, 10, 51, 2)
    assert (found.lasts >= 5.0).mean() > 0.98
    # Both variables span what riders meet on the road, to both sides alike.
    for variable in found.states.T:
        assert variable.min() == pytest.approx(-variable.max(), rel=0.05)
    # Riders turn as far as the action says, whatever they did before.
    off = found.heading[:, :, -1] - found.actions
    assert np.median(np.abs(off)) < 0.02


def test_shipped_trajectories_are_what_trials_give(bicyclist: Bicyclist) -> None:
    found = map_of(bicyclist)
    assert found.full_states is not None
    states, actions = np.array([5, 30, 62, 88]), np.array([1, 8, 4, 6])
    tried = bicyclist.trials(found.full_states[states], found.actions[actions], found.times[:16])
    np.testing.assert_allclose(tried.position, found.position[states, actions, :16], atol=2e-3)
    np.testing.assert_allclose(tried.lean, found.lean[states, actions, :16], atol=2e-3)


def test_shipped_states_are_those_of_full_states(bicyclist: Bicyclist) -> None:
    found = map_of(bicyclist)
    assert found.full_states is not None
    np.testing.assert_array_equal(bicyclist.reduced(found.full_states), found.states)


@pytest.mark.long
def test_shipped_states_are_those_of_the_slalom(human: Human) -> None:
    states = human.initial_states(4)
    found = map_of(human)
    assert found.full_states is not None
    np.testing.assert_allclose(states, found.full_states[::25], atol=1e-6)


def test_a_character_file_changes_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "heavy.toml"
    file.write_text('kind = "human"\nname = "heavy"\n[rider]\nmass = 95.0\n')
    heavy = find_character(str(file))
    assert isinstance(heavy, Human)
    assert heavy.rider.mass == 95.0
    assert heavy.rider.thigh == Human().rider.thigh
    assert heavy.digest() != Human().digest()
    file.write_text('kind = "alien"\nname = "slow"\n[control]\nspeed = 6.0\n')
    slow = find_character(str(file))
    assert isinstance(slow, Alien)
    assert slow.control.turn_gain == 1.6
    file.write_text('kind = "human"\n[rider]\nmas = 95.0\n')
    with pytest.raises(ParameterError, match=r"heavy\.toml.*did you mean 'mass'"):
        find_character(str(file))


def test_a_map_of_another_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="built for another character"):
        MobilityMap.load(SHIPPED / "human.npz", digest=Alien().digest())


def test_without_a_private_place_no_map_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    monkeypatch.setenv("XDG_CACHE_HOME", str(open_to_all))
    with pytest.raises(ParameterError, match="XDG_CACHE_HOME"):
        kept_map(Car(speed=5.0))


def test_maps_that_do_not_ship_are_built_once_and_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(Counted, "count", 0)
    monkeypatch.setattr(Counted, "breaks_at", 10**9)
    first, again = kept_map(Counted(speed=5.0)), kept_map(Counted(speed=5.0))
    assert Counted.count == 1000
    np.testing.assert_array_equal(first.position, again.position)


@pytest.mark.parametrize("seed", [3, 7, 8])
@pytest.mark.parametrize(("kind", "limits", "better"), [(Human, (0.5, 0.8), 5.0), (Alien, (0.5, 0.5), 2.0)])
def test_the_map_predicts_unseen_states(
    kind: type[Bicyclist], limits: tuple[float, float], better: float, seed: int
) -> None:
    # The limits hold for each of several seeds; docs/riders.md has the figures.
    off, guess = prediction_errors(kind(), riders=8, seed=seed, times=(1.0, 2.0))
    assert (np.median(off, axis=0) < limits).all()
    # A model that turns at once is worse by far.
    assert np.median(guess[:, 1]) > better * np.median(off[:, 1])


def prediction_errors(
    character: Bicyclist, *, riders: int, seed: int, times: tuple[float, ...]
) -> tuple[Floats, Floats]:
    """How far the map, and a model that turns at once, are off after some times, from states that were not in it."""
    drawn = np.random.Generator(np.random.Philox(key=seed))
    found = map_of(character)
    ride = character.ride(np.repeat(character.straight_state()[np.newaxis], riders, axis=0))
    for _ in range(2):
        ride.advance(1.0, drawn.uniform(-0.5, 0.5, riders) * found.action_limit, np.full(riders, character.speed))
    begin = full_states(ride)
    actions = drawn.integers(0, len(found.actions), riders)
    tried = character.trials(begin, found.actions[actions], np.array([0.0, *times]))
    nearest = [found.nearest_state(state) for state in character.reduced(begin)]
    knots = np.round(np.array(times) / found.interval).astype(int)
    off = np.linalg.norm(tried.position[:, 1:] - found.position[nearest, actions][:, knots], axis=2)
    turn = found.actions[actions]
    straight = np.stack((np.cos(turn), np.sin(turn)), axis=1)[:, None] * (character.speed * np.array(times))[:, None]
    return off, np.linalg.norm(tried.position[:, 1:] - straight, axis=2)
