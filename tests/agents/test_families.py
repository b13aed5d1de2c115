"""Groups that are declared in families or as followers: who belongs together, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, PathPlans, Seek, Simulation, Source, World, events
from tropel.agents.bonds import FIRST_NUMBER, cut_into_families
from tropel.errors import ParameterError, ScenarioError
from tropel.scenario.loading import parse_scenario


def room() -> World:
    return World(shapely.box(0, 0, 12, 12), exits={"out": shapely.box(11.6, 4, 12, 8)})


def simulation(*agents: Group | Source) -> Simulation:
    return Simulation(room(), list(agents), planning=PathPlans(), local=Lattice(), dt=0.2)


@pytest.mark.parametrize(("count", "size"), [(1, 4), (4, 4), (24, 4), (26, 4), (25, 3), (7, 2)])
def test_everybody_is_in_one_family_of_the_size_told(count: int, size: int) -> None:
    first = cut_into_families(np.random.default_rng(count).uniform(0, 10, (count, 2)), size)
    rows, counts = np.unique(first, return_counts=True)
    assert sorted(counts.tolist(), reverse=True) == [size] * (count // size) + [count % size] * (count % size > 0)
    assert (first[rows] == rows).all()


def test_neighbours_are_cut_into_one_family() -> None:
    corners = np.array([(0.0, 0.0), (50.0, 0.0), (0.0, 50.0), (50.0, 50.0)])
    home = np.random.default_rng(2).permutation(np.repeat(np.arange(4), 3))
    first = cut_into_families(corners[home] + np.random.default_rng(3).uniform(0, 1, (12, 2)), 3)
    for corner in range(4):
        assert len(np.unique(first[home == corner])) == 1
    assert len(np.unique(first)) == 4


def test_nobody_makes_no_family() -> None:
    assert len(cut_into_families(np.empty((0, 2)), 4)) == 0


def test_families_of_two_groups_and_numbers_of_ones_own_do_not_mix() -> None:
    sim = simulation(
        Group("one", count=8, families=4),
        Group("two", count=8, families=4),
        Group("three", count=3, parameters={"family": 3}),
        Group("alone", count=2),
    )
    family, group = sim.agents.columns["family"], sim.agents.group
    assert not set(family[group == 0]) & set(family[group == 1])
    assert (family[group < 2] >= FIRST_NUMBER).all()
    assert (family[group == 2] == 3).all()
    assert (family[group == 3] == -1).all()


def test_followers_follow_the_nearest_even_of_a_group_declared_later() -> None:
    sim = simulation(Group("visitors", count=20, follow="guides"), Group("guides", count=3))
    state = sim.agents
    guides = np.flatnonzero(state.group == 1)
    for row in np.flatnonzero(state.group == 0):
        away = np.linalg.norm(state.position[guides] - state.position[row], axis=1)
        chosen = int(np.flatnonzero(state.id[guides] == state.columns["leader"][row])[0])
        assert away[chosen] == away.min()
    assert (state.columns["leader"][guides] == -1).all()


def test_newcomers_form_families_and_find_leaders_too() -> None:
    sim = simulation(
        Group("guides", count=1),
        Group("visitors", count=2),
        Source("visitors", rate=5.0, region=shapely.box(0, 0, 4, 12), total=3, follow="guides"),
    )
    sim.at(0.4, events.AddAgents(group="visitors", count=6, families=3, follow="guides"))
    for _ in range(6):
        sim.step()
    state = sim.agents
    assert (state.columns["leader"][state.id > 2] == 0).all()
    assert sorted(np.unique(state.columns["family"], return_counts=True)[1].tolist()) == [3, 3, 6]
    sim.remove_agents(group="guides")
    late = sim.add_agents("visitors", count=1, follow="guides")
    sim.step()
    leader = state.columns["leader"]
    heir = int(leader[state.rows_of(late)][0])
    assert heir in state.id[state.group == 1]
    assert (leader[(state.id > 2) & (state.id != heir)] == heir).all()  # those who followed the guide


@pytest.mark.parametrize("families", [1, 0, -4])
def test_a_family_has_two_people_or_more(families: int) -> None:
    with pytest.raises(ParameterError, match=r"group 'people': families .* at least 2"):
        Group("people", count=8, families=families)


@pytest.mark.parametrize("families", [2.5, True, "four"])
def test_a_family_is_a_whole_number_of_people(families: object) -> None:
    with pytest.raises(ParameterError, match="families must be a whole number"):
        Group("people", count=8, families=families)  # type: ignore[arg-type]


def test_nonsense_is_refused_with_the_remedy() -> None:
    with pytest.raises(ParameterError, match=r"'people' follows 'giude'.*did you mean 'guide'"):
        simulation(Group("people", count=2, follow="giude"), Group("guide", count=1))
    with pytest.raises(ParameterError, match="which has no agents at the start"):
        simulation(Group("people", count=2, follow="guide"), Group("guide", count=0))
    with pytest.raises(ParameterError, match="either families or the parameter family"):
        Group("people", count=4, families=2, parameters={"family": 1})
    with pytest.raises(ParameterError, match="one by one, not in families; add families with AddAgents"):
        Source("people", rate=1.0, region=shapely.box(0, 0, 1, 1), families=4)
    with pytest.raises(ParameterError, match="family must be a whole number"):
        simulation(Group("people", count=2, parameters={"family": 0.5}))


@pytest.mark.parametrize(("told", "column"), [({"families": 2}, "family"), ({"follow": "guide"}, "leader")])
def test_a_model_that_knows_no_bonds_is_named(told: dict[str, object], column: str) -> None:
    agents = [Group("guide", count=1), Group("people", count=4, **told)]  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=f"group 'people': .*column {column}, .*Seek does not have; .*Lattice"):
        Simulation(room(), agents, local=Seek(), habits=[])
    sim = Simulation(room(), Group("guide", count=1), local=Seek())
    with pytest.raises(ParameterError, match=f"column {column}|which is not a group|another group"):
        sim.add_agents("guide", count=4, **told)


FILE = """
name = "x"
dt = 0.2
[world]
walkable = { box = [0.0, 0.0, 12.0, 12.0] }
exits = { out = { box = [11.6, 4.0, 12.0, 8.0] } }
[[groups]]
name = "guide"
count = 1
[[groups]]
name = "people"
count = 8
families = 4
follow = "guide"
[planning]
model = "path_plans"
[local]
model = "lattice"
"""


def test_files_say_the_same() -> None:
    state = parse_scenario(FILE, source="x.toml", folder=Path()).build().agents
    assert len(np.unique(state.columns["family"][1:])) == 2
    assert (state.columns["leader"] == [-1] + [0] * 8).all()
    with pytest.raises(ScenarioError, match=r"line 13.*families = 1.*greater than or equal to 2"):
        parse_scenario(FILE.replace("families = 4", "families = 1"), source="x.toml", folder=Path())
    with pytest.raises(ScenarioError, match=r"line 10.*'people' follows 'guides'.*did you mean 'guide'"):
        parse_scenario(FILE.replace('"guide"\n[pl', '"guides"\n[pl'), source="x.toml", folder=Path()).build()
