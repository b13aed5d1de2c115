"""What layers declare is typed, and what would do nothing is refused before the first step."""

from __future__ import annotations

from typing import Any

import pytest
import shapely

import tropel
from tropel.agents.state import Column, Steered
from tropel.contracts import (
    Declaration,
    EnvironmentDeclaration,
    Follows,
    Guidance,
    ModelDeclaration,
    Moment,
    Moves,
    Near,
)
from tropel.errors import ParameterError


class Stands(tropel.Model):
    def steer(self, moment: Moment, out: Steered) -> None:
        out.velocity[moment.members] = 0.0


class Nowhere(tropel.Planner):
    def direct(self, moment: Moment, out: Guidance) -> None:
        out.directions[moment.members] = 0.0


def simulation(**layers: Any) -> tropel.Simulation:
    return tropel.Simulation(tropel.World(shapely.box(0, 0, 9, 9)), tropel.Group("a", count=2), **layers)


# What stands beside a declaration -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("solid_bodies", True),
        ("bodies_may_overlap", True),
        ("periodic_space", True),
        ("columns", ()),
        ("memory", (Column(name="tired"),)),
        ("senses", False),
        ("follows", Follows.GROUND),
    ],
)
@pytest.mark.parametrize("where", ["class", "base", "object"])
def test_an_attribute_that_nobody_reads_is_refused(name: str, value: Any, where: str) -> None:
    model: Any = type("Old", (Stands,), {name: value} if where == "class" else {})()
    if where == "base":
        model = type("New", (type("Old", (Stands,), {name: value}),), {"declares": ModelDeclaration()})()
    elif where == "object":
        setattr(model, name, value)
    said = rf"local: (Old|New) has an attribute '{name}'.* nothing reads; declare it as  declares = ModelDeclaration\("
    with pytest.raises(ParameterError, match=said + f"{name}=…"):
        simulation(local=model)


def test_planners_and_environments_are_looked_at_too() -> None:
    class Old(Nowhere):
        periodic_space = True

    class OldGrid(tropel.Grid):
        periodic_space = True

    with pytest.raises(ParameterError, match=r"planning: Old has an attribute 'periodic_space'.* Declaration\("):
        simulation(planning=Old())
    with pytest.raises(ParameterError, match=r"environment: OldGrid has .* EnvironmentDeclaration\(periodic_space=…"):
        simulation(environment=OldGrid())


def test_tropels_own_layers_have_no_such_attributes() -> None:
    walking = (tropel.Seek, tropel.Dynamical, tropel.CollisionFreeSpeed, tropel.ORCA, tropel.SocialForce)
    for model in (*walking, tropel.Flocking, tropel.SequentialFlock):
        simulation(local=model())
    simulation(planning=tropel.PathPlans(), local=tropel.Lattice())


# What a declaration refuses -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "wrong", "meant"),
    [
        (ModelDeclaration, "solid_body", "solid_bodies"),
        (ModelDeclaration, "move", "moves"),
        (ModelDeclaration, "colums", "columns"),
        (Declaration, "periodic", "periodic_space"),
        (EnvironmentDeclaration, "cells", "cell"),
    ],
)
def test_a_misspelt_declaration_suggests_the_near_miss(kind: Any, wrong: str, meant: str) -> None:
    with pytest.raises(ParameterError, match=f"{kind.__name__}.*'{wrong}'.*did you mean '{meant}'"):
        kind(**{wrong: True})


def test_what_only_models_declare_is_nothing_for_planners() -> None:
    with pytest.raises(ParameterError, match="'solid_bodies'"):
        Declaration(solid_bodies=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["columns", "memory"])
@pytest.mark.parametrize("wrong", [Column(name="tired"), [Column(name="tired")], ("tired",), "tired", None])
def test_columns_are_a_tuple_of_columns(name: str, wrong: Any) -> None:
    with pytest.raises(
        ParameterError, match=rf"ModelDeclaration: {name} must be (a tuple of|a list, each) Column\(…\), not"
    ):
        ModelDeclaration(**{name: wrong})


def test_one_column_is_not_both_a_parameter_and_memory() -> None:
    with pytest.raises(ParameterError, match="'tired' is both a parameter and memory; choose one"):
        Declaration(columns=(Column(name="tired"),), memory=(Column(name="tired"),))


def test_no_model_says_that_it_does_not_move_now() -> None:
    with pytest.raises(ParameterError, match="NOT_NOW is reserved for the engine"):
        ModelDeclaration(moves=Moves.NOT_NOW)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (ModelDeclaration, {"moves": "itself"}),
        (ModelDeclaration, {"moves": 1}),
        (ModelDeclaration, {"follows": "ground"}),
        (ModelDeclaration, {"senses": None}),
        (ModelDeclaration, {"phase": "first"}),
        (ModelDeclaration, {"phase": True}),
        (ModelDeclaration, {"alone_in_phase": 1}),
        (ModelDeclaration, {"solid_bodies": "no"}),
        (ModelDeclaration, {"bodies_may_overlap": 0}),
        (ModelDeclaration, {"placing": object()}),
        (Declaration, {"periodic_space": "xy"}),
        (EnvironmentDeclaration, {"cell": "1 m"}),
        (EnvironmentDeclaration, {"cell": 0.0}),
        (EnvironmentDeclaration, {"cell": -1.0}),
        (EnvironmentDeclaration, {"cell": float("nan")}),
        (EnvironmentDeclaration, {"cell": float("inf")}),
        (EnvironmentDeclaration, {"cell": True}),
    ],
)
def test_a_value_of_another_kind_is_refused(kind: Any, wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(ParameterError, match=rf"{kind.__name__}: {name} must be .*, not "):
        kind(**wrong)


def test_declarations_are_frozen_and_are_told_by_name_only() -> None:
    with pytest.raises(AttributeError):
        ModelDeclaration().phase = 3  # type: ignore[misc]
    with pytest.raises((ParameterError, TypeError)):
        ModelDeclaration(())  # type: ignore[call-arg]


# What is no layer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "layer", "said"),
    [
        ("local", Declaration(), "ModelDeclaration"),
        ("local", None, "ModelDeclaration"),
        ("planning", {"periodic_space": True}, "Declaration"),
        ("environment", Declaration(), "EnvironmentDeclaration"),
    ],
)
def test_a_declaration_of_another_kind_is_refused(stage: str, layer: Any, said: str) -> None:
    base = {"local": Stands, "planning": Nowhere, "environment": tropel.Grid}[stage]
    made = base()
    made.declares = layer
    with pytest.raises(ParameterError, match=rf"{stage}: {base.__name__}\.declares must be a {said}\(…\), not "):
        simulation(**{stage: made})


@pytest.mark.parametrize("stage", ["planning", "environment", "local"])
def test_what_is_no_layer_is_refused_with_what_to_do(stage: str) -> None:
    class Lookalike:
        def direct(self, moment: Moment, out: Guidance) -> None: ...

        def sense(self, moment: Moment) -> Near: ...  # type: ignore[empty-body]

        def steer(self, moment: Moment, out: Steered) -> None: ...

    kind = {"planning": tropel.Planner, "environment": tropel.Environment, "local": tropel.Model}[stage]
    said = f"{stage} needs an? {kind.__name__}: an object of a class that extends tropel.{kind.__name__} and has the "
    said += f"method {kind.method}; got"
    for wrong in (Lookalike(), 3, "seek", Stands if stage != "local" else Nowhere):
        with pytest.raises(ParameterError, match=said):
            simulation(**{stage: wrong})


def test_a_class_instead_of_a_layer_is_refused_with_what_to_do() -> None:
    with pytest.raises(ParameterError, match=r"local needs a Model, but Stands is the class; make one: Stands\(\)"):
        simulation(local=Stands)


def test_a_layer_without_its_method_cannot_be_made() -> None:
    for base in (tropel.Planner, tropel.Environment, tropel.Model):
        with pytest.raises(TypeError, match=base.method):
            type("Empty", (base,), {})()
