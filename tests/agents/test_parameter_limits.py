"""What groups, sources, events and files say of agents is checked against what the columns declare."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tropel
from tropel import events
from tropel.agents.groups import DELAY, Personal
from tropel.agents.personal_fields import PersonalFields
from tropel.agents.state import CORE_COLUMNS, Column
from tropel.errors import ParameterError, ScenarioError, TropelError
from tropel.scenario import parse_scenario

KEPT = [column.name for column in CORE_COLUMNS if column.kept]
#: Values outside of what a quantity may be.
WRONG = [
    ("radius", 0.0),
    ("radius", -1.0),
    ("radius", 2e299),
    ("desired_speed", -5.0),
    ("desired_speed", 1e300),
    ("sense_radius", -0.1),
    ("delay", -1.0),
    ("radius", True),
    ("radius", "wide"),
    ("radius", math.nan),
]


def simulation(*agents: Any, local: Any = None) -> tropel.Simulation:
    world = tropel.World(bounds=(0, 0, 20, 20), targets={"t": (10, 10)})
    return tropel.Simulation(world, agents or [tropel.Group("a", count=2)], local=local or tropel.Dynamical())


@pytest.mark.parametrize("name", [*KEPT, "radius", "desired_speed", "sense_radius", "delay", "weights", "turn_rate"])
@pytest.mark.parametrize("value", [1.0, 1e6])
def test_parameters_reach_no_column_that_is_not_theirs(name: str, value: float) -> None:
    told = {"parameters": {name: value}}
    for made in (
        lambda: simulation(tropel.Group("a", count=2, **told)),
        lambda: simulation(tropel.Source("a", rate=1.0, region=[(0, 0), (9, 0), (9, 9)], **told)),
        lambda: simulation().add_agents("a", count=1, **told),
        lambda: simulation().at(1.0, events.AddAgents(group="a", count=1, **told)),
    ):
        with pytest.raises(ParameterError, match=name):
            made()


@pytest.mark.parametrize("name", [*KEPT, "weights", "turn_rate", "forward_speed"])
def test_what_the_engine_or_a_model_keeps_is_not_set_by_events(name: str) -> None:
    sim = simulation()
    with pytest.raises(ParameterError, match=f"no parameter '{name}'"):
        sim.set_parameter(name, 1.0)
    with pytest.raises(ParameterError, match=f"no parameter '{name}'"):
        sim.at(1.0, events.SetParameter(name=name, value=1.0))


@pytest.mark.parametrize(("name", "value"), WRONG)
def test_values_outside_the_limits_are_refused_wherever_they_are_given(name: str, value: Any) -> None:
    told = {name: value}
    for made in (
        lambda: simulation(tropel.Group("a", count=2, **told)),
        lambda: simulation(tropel.Group("a", positions=[(1, 1), (5, 5)], **told)),
        lambda: simulation(tropel.Source("a", rate=1.0, region=[(0, 0), (9, 0), (9, 9)], **told)),
        lambda: simulation().add_agents("a", count=1, **told),
        lambda: events.AddAgents(group="a", count=1, **told),
    ):
        with pytest.raises(ParameterError, match=name):
            made()


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, v in WRONG if n != "delay"])
def test_values_outside_the_limits_are_not_set(name: str, value: Any) -> None:
    sim = simulation()
    before = sim.state_hash()
    with pytest.raises(TropelError, match=name):
        sim.set_parameter(name, value)
    with pytest.raises(TropelError, match=r"SetParameter|set_parameter"):
        sim.at(1.0, events.SetParameter(name=name, value=value))
    assert sim.state_hash() == before


@pytest.mark.parametrize("value", [1e300, 2.0**31, -2.0, 0.5])
def test_whole_numbers_are_neither_cut_off_nor_wrapped_around(value: float) -> None:
    hall = tropel.World([(0, 0), (8, 0), (8, 8), (0, 8)], exits={"out": [(7, 3), (8, 3), (8, 5), (7, 5)]})
    people = tropel.Group("a", count=4, parameters={"family": value})
    with pytest.raises(ParameterError, match="family must be a whole number"):
        tropel.Simulation(hall, people, planning=tropel.PathPlans(), local=tropel.Lattice())


def test_a_distribution_is_checked_by_what_is_drawn_from_it() -> None:
    wide = tropel.Normal(0.0, 1.0)
    with pytest.raises(ParameterError, match=r"group 'a': courage must be .* but agent \d+ drew"):
        simulation(tropel.Group("a", count=50, parameters={"courage": wide}))
    simulation(tropel.Group("a", count=50, parameters={"courage": tropel.Normal(0.5, 1.0, low=0.0, high=1.0)}))


def test_parameters_are_those_of_the_layers_of_the_group() -> None:
    models = {"a": tropel.Dynamical(), "b": tropel.Flocking()}
    with pytest.raises(ParameterError, match="group 'a': agents have no parameter 'cohesion'"):
        simulation(tropel.Group("a", count=2, parameters={"cohesion": 1.0}), tropel.Group("b", count=2), local=models)


@pytest.mark.parametrize("goal", [10**6, -9])
def test_a_number_that_is_no_goal_leads_nowhere(goal: int) -> None:
    """Whoever writes into the column itself is not asked by name, and kernels look goals up by number."""
    walls = [(0, 0), (20, 0), (20, 20), (0, 20)]
    world = tropel.World(walls, exits={"out": [(19, 9), (20, 9), (20, 11), (19, 11)]})
    straight = tropel.Simulation(world, tropel.Group("a", count=2), planning=tropel.Direct())
    straight.agents.goal[:] = goal
    before = straight.agents.position.copy()
    straight.step()
    assert (straight.agents.position == before).all()
    planned = tropel.Simulation(world, tropel.Group("a", count=2), planning=tropel.FlowField())
    planned.agents.goal[:] = goal
    with pytest.raises(TropelError, match=f"goal is {goal}, which is not the number of a goal"):
        planned.run(until=1.0)


ROOM = """
name = "room"
[world]
bounds = [0.0, 0.0, 20.0, 20.0]
[local]
model = "dynamical"
[[groups]]
name = "people"
count = 4
"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("parameters = { goal = 1000000.0 }", "line 7: groups[0]: group 'people': goal is not one of the parameters"),
        ("parameters = { dead = 1.0 }", "line 7: groups[0]: group 'people': agents have no parameter 'dead'"),
        ("parameters = { velocity = 1.0 }", "line 7: groups[0]: group 'people': agents have no parameter 'velocity'"),
        ("parameters = { courage = 7.0 }", "courage must be a number from 0 to 1, not 7"),
        ("radius = 0.0", "line 10: groups[0].radius = 0.0: must be a positive number, at most 1e+09 m"),
        ("radius = true", "line 10: groups[0].radius = True: Input should be a valid number"),
        ("radius = '0.2'", "line 10: groups[0].radius = '0.2': Input should be a valid number"),
        ("desired_speed = -5", "line 10: groups[0].desired_speed = -5"),
        ("[[events]]\nat = true\nkind = 'remove_agents'", "events[0].at = True: Input should be a valid number"),
        ("[[events]]\nat = 1.0\nkind = 'set_parameter'\nname = 'radius'\nvalue = 0.0", "line 10: events[0]: "),
        ("[[events]]\nat = 1.0\nkind = 'set_parameter'\nname = 'goal'\nvalue = 9.0", "no parameter 'goal' to set"),
        (
            "[[events]]\nat = 1.0\nkind = 'add_agents'\ngroup = 'people'\ncount = 1\nparameters = { goal = 1e6 }",
            "line 10: events[0]: group 'people': goal is not one of the parameters",
        ),
        (
            "[[events]]\nat = 1.0\nkind = 'drift'\nname = 'radius'\nto = -1.0\nover = 2.0",
            "line 10: events[0]: radius must be",
        ),
    ],
)
def test_a_file_says_where_the_wrong_value_stands(more: str, said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(ROOM + more, source="room.toml", folder=Path()).build(threads=1)
    assert str(refused.value).startswith("room.toml, line ")
    assert "\n" not in str(refused.value)
    assert said in str(refused.value)


def test_groups_files_and_events_have_the_same_fields_and_defaults() -> None:
    of_groups = {field.name: field.default for field in dataclasses.fields(Personal)}
    of_files = {name: field.default for name, field in PersonalFields.model_fields.items()}
    del of_groups["parameters"], of_files["parameters"]
    assert of_groups == of_files
    declared = {quantity.name: quantity.default for quantity in (*CORE_COLUMNS, DELAY)}
    assert all(of_files[name] == declared[name] for name in ("radius", "desired_speed", "sense_radius", "delay"))


def test_columns_declare_limits_that_their_type_can_hold() -> None:
    column = Column(name="number", dtype="int32")
    assert column.whole
    for value in (2.0**31, -(2.0**31) - 1.0, 0.5):
        assert column.is_wrong(np.array([value])).all()
    assert not column.is_wrong(np.array([2.0**31 - 2.0, -(2.0**31)])).any()
