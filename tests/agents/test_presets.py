"""Personalities with plain names: what they set, how mixtures are drawn, how they show, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import CollisionFreeSpeed, Dynamical, Group, Obstacle, Seek, Simulation, Source, Target, World, events
from tropel.agents.personality import PRESETS, TRAITS, draw_personality, presets_of, shares_of
from tropel.errors import ParameterError, ScenarioError
from tropel.scenario.loading import parse_scenario
from tropel.scenario.schema import ScenarioSpec

HALL = shapely.box(0, 0, 40, 40)
IDS = np.arange(4000, dtype=np.int64)


def hall(agents: Any, *, local: Any = None, **more: Any) -> Simulation:
    return Simulation(
        World(HALL), agents, local=Dynamical() if local is None else local, threads=1, watch_collisions=False, **more
    )


def means(name: str) -> dict[str, float]:
    return {trait: getattr(PRESETS[name], trait).mean for trait in TRAITS}


# What is drawn ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_traits_lie_between_0_and_1_and_near_what_the_preset_says(name: str) -> None:
    traits, speed = draw_personality(name, seed=3, group="a", ids=IDS)
    assert set(traits) == set(TRAITS)
    for trait, values in traits.items():
        assert ((values >= 0.0) & (values <= 1.0)).all()
        # Cut at 0 or 1, a normal moves its mean by less than one standard deviation.
        assert abs(values.mean() - means(name)[trait]) < getattr(PRESETS[name], trait).sd
    assert (speed == PRESETS[name].speed).all()


def test_no_two_presets_are_alike() -> None:
    kinds = [(*means(name).values(), PRESETS[name].speed) for name in PRESETS]
    for k, one in enumerate(kinds):
        for other in kinds[:k]:
            assert np.abs(np.subtract(one, other)).max() >= 0.15


def test_a_group_gets_its_traits_and_the_factor_on_its_own_speed() -> None:
    plain = hall(Group("a", count=50, desired_speed=2.0))
    hasty = hall(Group("a", count=50, desired_speed=2.0, personality="hasty"))
    np.testing.assert_allclose(hasty.agents.desired_speed, PRESETS["hasty"].speed * plain.agents.desired_speed)
    assert abs(hasty.agents.courage.mean() - means("hasty")["courage"]) < 0.05
    assert (plain.agents.courage == 0.5).all()


def test_explicit_parameters_win_over_the_preset() -> None:
    sim = hall(Group("a", count=20, personality="timid", parameters={"courage": 0.9}))
    assert (sim.agents.courage == 0.9).all()
    np.testing.assert_allclose(
        sim.agents.agility, draw_personality("timid", seed=0, group="a", ids=sim.agents.id)[0]["agility"]
    )


# Mixtures -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 10.0])
def test_a_mixture_has_the_shares_asked_for_whatever_they_add_up_to(scale: float) -> None:
    names, number = presets_of({"cautious": 0.7 * scale, "hasty": 0.3 * scale}, seed=1, group="a", ids=IDS)
    assert names == ["cautious", "hasty"]
    # Four standard deviations of a share among 4000.
    assert abs((number == 0).mean() - 0.7) < 4.0 * np.sqrt(0.7 * 0.3 / len(IDS))


def test_each_agent_of_a_mixture_has_all_traits_of_one_preset() -> None:
    mixture = {"timid": 1.0, "bold": 1.0, "clumsy": 1.0}
    traits, _ = draw_personality(mixture, seed=5, group="a", ids=IDS)
    names, number = presets_of(mixture, seed=5, group="a", ids=IDS)
    for k, name in enumerate(names):
        pure, _ = draw_personality(name, seed=5, group="a", ids=IDS)
        for trait in TRAITS:
            np.testing.assert_array_equal(traits[trait][number == k], pure[trait][number == k])


def test_a_share_of_zero_is_nobody() -> None:
    _, number = presets_of({"timid": 0.0, "bold": 1.0, "heavy": 0.0}, seed=5, group="a", ids=IDS)
    assert (number == 1).all()


@given(ids=st.lists(st.integers(0, 2**40), min_size=1, max_size=20, unique=True), seed=st.integers(0, 2**31))
def test_what_somebody_is_like_depends_on_seed_group_and_id_alone(ids: list[int], seed: int) -> None:
    mixture = {"calm": 0.5, "nimble": 0.5}
    together, fast = draw_personality(mixture, seed=seed, group="a", ids=np.array(ids))
    for k, one in enumerate(ids):
        alone, speed = draw_personality(mixture, seed=seed, group="a", ids=np.array([one]))
        assert speed[0] == fast[k]
        assert all(alone[trait][0] == together[trait][k] for trait in TRAITS)


def test_another_seed_or_group_has_other_people() -> None:
    def number(**who: Any) -> NDArray[np.int64]:
        return presets_of({"calm": 0.5, "nimble": 0.5}, ids=IDS, **who)[1]

    assert (number(seed=1, group="a") == number(seed=1, group="a")).all()
    assert (number(seed=1, group="a") != number(seed=2, group="a")).any()
    assert (number(seed=1, group="a") != number(seed=1, group="b")).any()


def test_sources_and_events_bring_in_people_with_a_personality() -> None:
    source = Source("b", rate=5.0, region=shapely.box(1, 1, 20, 20), personality={"heavy": 1.0}, goal="none")
    sim = hall([Group("a", count=1, goal="none"), source], dt=0.1)
    sim.at(0.5, events.AddAgents(group="a", count=5, goal="none", personality="timid"))
    for _ in range(11):
        sim.step()
    heavy = sim.agents.group == 1
    assert heavy.sum() >= 4
    assert (sim.agents.mass[heavy] > 0.6).all()
    assert (sim.agents.courage[~heavy][1:] < 0.2).all()


# How they show ------------------------------------------------------------------------------------------------------


def passing_a_post(personality: str | None, **explicit: float) -> dict[str, float]:
    """Twelve people, each in a lane of its own, walk past a post that stands a little beside their way."""
    lanes = 12.0 * np.arange(12)
    world = World(
        bounds=(-5, -12, 30, 150),
        obstacles={f"post {y}": Obstacle(radius=0.5, position=(8.0, y + 0.4)) for y in lanes},
        targets={f"target {y}": Target(position=(16.0, y), radius=0.3) for y in lanes},
    )
    groups = [
        Group(f"lane {y}", positions=[(0, y)], goal=f"target {y}", personality=personality, parameters=explicit)
        for y in lanes
    ]
    sim = Simulation(world, groups, local=Dynamical(noise=0.0, d0_base=1.0), dt=0.1, threads=1, watch_collisions=False)
    clear, aside, arrived = np.full(12, np.inf), np.zeros(12), np.full(12, np.inf)
    gained = 0.0
    while sim.time < 25.0:
        sim.step()
        x, y = sim.agents.position.T
        clear = np.minimum(clear, np.hypot(x - 8.0, y - lanes - 0.4) - 0.7)
        aside = np.where(np.isinf(arrived), np.maximum(aside, np.abs(y - lanes)), aside)
        arrived = np.where((x > 15.0) & np.isinf(arrived), sim.time, arrived)
        if sim.step_number == 10:
            gained = float((sim.agents.forward_speed / sim.agents.desired_speed).mean())
    return {"clear": clear.mean(), "aside": aside.mean(), "arrived": arrived.mean(), "gained": gained}


def test_presets_show_in_the_way_people_pass_a_post_and_no_longer_when_their_traits_are_overruled() -> None:
    seen = {name: passing_a_post(name) for name in PRESETS}
    # Courage: the timid and the cautious keep clear, the bold and the hasty do not.
    assert min(seen["timid"]["clear"], seen["cautious"]["clear"]) > 0.4
    assert max(seen["bold"]["clear"], seen["hasty"]["clear"]) < 0.1
    # Agility: the clumsy swing far out, the nimble do not.
    assert seen["clumsy"]["aside"] > 1.5 * seen["nimble"]["aside"]
    # Mass: a second after the start the heavy are far from their speed, the nimble have it.
    assert seen["heavy"]["gained"] < 0.5
    assert seen["nimble"]["gained"] > 0.95
    # Speed.
    assert seen["hasty"]["arrived"] < 0.8 * seen["nimble"]["arrived"]
    assert seen["calm"]["arrived"] > 1.2 * seen["nimble"]["arrived"]

    plain = {"agility": 1.0, "mass": 0.0, "courage": 0.5}
    same = {name: passing_a_post(name, **plain) for name in ("timid", "bold", "clumsy")}
    for what in ("clear", "aside", "gained"):
        values = [seen[what] for seen in same.values()]
        assert max(values) - min(values) < 1e-9


# What is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("personality", "says"),
    [
        ("cautios", r"there is no personality 'cautios'; did you mean 'cautious'"),
        ({"cautious": 0.5, "hastey": 0.5}, r"there is no personality 'hastey'; did you mean 'hasty'"),
        ({"cautious": -0.5}, r"share of 'cautious' must be a number that is not negative, not -0\.5"),
        ({"cautious": "half"}, r"share of 'cautious' must be a number"),
        ({"cautious": True}, r"share of 'cautious' must be a number"),
        ({"cautious": float("nan")}, r"share of 'cautious' must be a number"),
        ({"cautious": 0.0}, r"add up to 0; one must be positive"),
        ({}, r"a personality is a name \(cautious, timid, .*\) or shares such as"),
        (3, r"a personality is a name"),
    ],
)
def test_a_wrong_personality_is_refused_at_once(personality: Any, says: str) -> None:
    with pytest.raises(ParameterError, match=rf"group 'a': .*{says}"):
        Group("a", count=1, personality=personality)
    with pytest.raises(ParameterError, match=rf"the source of 'a': .*{says}"):
        Source("a", rate=1.0, region=HALL, personality=personality)


@pytest.mark.parametrize("local", [Seek(), CollisionFreeSpeed()], ids=lambda model: type(model).__name__)
def test_a_model_without_personality_says_so(local: Any) -> None:
    says = rf"group 'a': the personality \(calm\) sets .*courage.* steering model {type(local).__name__} does not have"
    with pytest.raises(ParameterError, match=says):
        hall(Group("a", count=1, personality="calm"), local=local)
    with pytest.raises(ParameterError, match=says):
        hall(Source("a", rate=1.0, region=HALL, personality="calm"), local=local)
    sim = hall(Group("a", count=1), local=local)
    with pytest.raises(ParameterError, match=says):
        sim.at(1.0, events.AddAgents(group="a", count=1, personality="calm"))
    with pytest.raises(ParameterError, match=says):
        sim.add_agents("a", count=1, personality="calm")


def test_it_is_the_groups_own_model_that_counts() -> None:
    groups = [Group("a", count=1), Group("b", count=1, personality="calm")]
    hall(groups, local={"a": Seek(), "b": Dynamical()})
    with pytest.raises(ParameterError, match=r"group 'b': .* Seek does not have"):
        hall(groups, local={"a": Dynamical(), "b": Seek()})


def test_shares_add_up_to_one() -> None:
    assert shares_of({"calm": 1, "bold": 3}, "x") == {"calm": 0.25, "bold": 0.75}


# In files -----------------------------------------------------------------------------------------------------------

FILE = """
name = "mixed"
[world]
walkable = {{ box = [0.0, 0.0, 12.0, 8.0] }}
[local]
model = "{model}"
[[groups]]
name = "people"
count = 10
personality = {personality}
"""


def from_file(personality: str, model: str = "dynamical") -> Simulation:
    text = FILE.format(personality=personality, model=model)
    return parse_scenario(text, source="mixed.toml", folder=Path()).build(threads=1)


@pytest.mark.parametrize(
    ("written", "meant"),
    [('"cautious"', "cautious"), ("{ cautious = 0.7, hasty = 0.3 }", {"cautious": 0.7, "hasty": 0.3})],
)
def test_files_give_the_same_people_as_python(written: str, meant: Any) -> None:
    sim = from_file(written)
    traits, _ = draw_personality(meant, seed=0, group="people", ids=sim.agents.id)
    for trait in TRAITS:
        np.testing.assert_array_equal(sim.agents.columns[trait], traits[trait])


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ('"cautios"', r"mixed\.toml, line 10: .*personality.*'cautios'; did you mean 'cautious'"),
        ("{ hastey = 1.0 }", r"mixed\.toml, line 10: .*personality.*'hastey'; did you mean 'hasty'"),
        ("{ hasty = -1.0 }", r"mixed\.toml, line 10: .*personality.*must be a number that is not negative"),
    ],
)
def test_files_are_told_the_line_and_the_nearest_name(written: str, says: str) -> None:
    with pytest.raises(ScenarioError, match=says):
        from_file(written)


def test_files_are_told_that_the_model_has_no_personality() -> None:
    with pytest.raises(ScenarioError, match=r"mixed\.toml, line 7: .*steering model Seek does not have"):
        from_file('"calm"', model="seek")


def test_the_schema_of_files_lists_the_names_for_editors() -> None:
    text = json.dumps(ScenarioSpec.model_json_schema())
    assert json.dumps({"enum": list(PRESETS)})[1:-1] in text
