"""One table of what files may name, from which the schema, the warm-up and `tropel verify` are made."""

from __future__ import annotations

import inspect
import tomllib
import typing
from typing import Any

import jsonschema
import pytest

from tropel.agents.distributions import Distribution
from tropel.events.base import Event
from tropel.registry import DECISIONS, DISTRIBUTIONS, ENVIRONMENTS, EVENTS, MODELS, PLANNERS, Entry, Kind
from tropel.scenario import builtin_names, load_builtin, verification_names
from tropel.scenario.layer_tables import table_of
from tropel.scenario.schema import ScenarioSpec
from tropel.warmup_scenes import PARTS

LAYERS = [(kind, entry) for kind in (PLANNERS, ENVIRONMENTS, MODELS) for entry in kind.values()]
IDS = [entry.name for _, entry in LAYERS]


def kinds_of_events(kind: type[Any]) -> set[type[Any]]:
    found = {kind} if "kind" in kind.model_fields else set()
    return found.union(*(kinds_of_events(inner) for inner in kind.__subclasses__()))


RULES = [(DECISIONS, entry) for entry in DECISIONS.values()]


@pytest.mark.parametrize(("kind", "entry"), [*LAYERS, *RULES], ids=[*IDS, *DECISIONS])
def test_every_layer_is_a_class_that_is_found_by_its_name(kind: Kind, entry: Entry) -> None:
    layer = entry.load()
    base = Entry("", kind.extends).load()
    assert issubclass(layer, base)
    assert getattr(layer, base.method) is not getattr(base, base.method)
    assert kind.find(entry.name) is kind.find(entry.where) is layer
    assert kind.name_of(layer) == entry.name


@pytest.mark.parametrize(("kind", "entry"), LAYERS, ids=IDS)
def test_every_layer_is_warmed_up(kind: Kind, entry: Entry) -> None:
    assert entry.warm_up in PARTS


def test_every_kind_of_event_and_distribution_is_known_by_its_own_name() -> None:
    for name, entry in {**EVENTS, **DISTRIBUTIONS}.items():
        loaded = entry.load()
        fields = loaded.model_fields if issubclass(loaded, Event) else loaded.__pydantic_fields__
        assert fields["kind"].default == name
    known = {entry.load() for entry in EVENTS.values()}
    # What a file times is the same event; what is under way is known to checkpoints alone.
    others = {kind for kind in kinds_of_events(Event) - known if not issubclass(kind, tuple(known))}
    assert {kind.__name__ for kind in others} == {"UnderWay"}
    union = typing.get_args(typing.get_args(Distribution)[0])
    assert set(union) == {entry.load() for entry in DISTRIBUTIONS.values()}


@pytest.mark.parametrize(("kind", "entry"), [*LAYERS, *RULES], ids=[*IDS, *DECISIONS])
def test_the_schema_has_the_parameters_that_a_layer_takes(kind: Kind, entry: Entry) -> None:
    taken = inspect.signature(entry.load_parameters() or entry.load()).parameters
    assert set(table_of(entry).model_fields) == {"model", *taken}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = ScenarioSpec.model_json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("name", [*builtin_names(), *verification_names()])
def test_built_in_scenes_fit_the_schema(name: str, validator: Any) -> None:
    validator.validate(tomllib.loads(load_builtin(name).text))


ROOM: dict[str, Any] = {"name": "room", "world": {"bounds": [0, 0, 9, 9]}, "groups": [{"name": "a", "count": 1}]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"local": {"model": "seek", "time_gapp": 1.0}},
        {"local": {"model": "seek", "time_gap": "short"}},
        {"local": {"model": "seek", "time_gap": -1.0}},
        {"local": {"model": "sek"}},
        {"planning": {"model": "flow_field", "cells": 0.2}},
        {"planning": {"model": "grid"}},
        {"environment": {"model": "grid", "cell": "wide"}},
        {"groups": [{"name": "a", "count": 1, "radius": 0.0}]},
        {"groups": [{"name": "a", "count": 1, "parameters": {"courage": 2.0}}]},
        {"groups": [{"name": "a", "count": 1, "local": {"model": "dynamical", "noize": 1.0}}]},
    ],
)
def test_an_editor_sees_wrong_parameters_by_the_schema(wrong: dict[str, Any], validator: Any) -> None:
    assert validator.is_valid(ROOM)
    assert not validator.is_valid(ROOM | wrong)
