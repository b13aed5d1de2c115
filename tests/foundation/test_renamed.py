"""Old public names work for one more version, and say the new one."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import tropel
from tropel import events
from tropel.errors import ParameterError
from tropel.events.queue import event_from_json
from tropel.foundation.renamed import MODULES
from tropel.scenario import parse_scenario

ROOM = """
name = "room"
[world]
walkable = { box = [0.0, 0.0, 8.0, 6.0] }
[world.exits]
east = { box = [7.2, 2.0, 8.0, 4.0] }
[[groups]]
name = "people"
count = 3
[planning]
model = "path_plans"
[local]
model = "lattice"
[[events]]
at = 1.0
kind = "add_layer"
name = "open"
values = { kind = "openness" }
"""


def crowd(**planning: object) -> tropel.Simulation:
    world = tropel.World([(0, 0), (8, 0), (8, 6), (0, 6)], exits={"out": [(7.2, 2), (8, 2), (8, 4), (7.2, 4)]})
    people = tropel.Group("people", count=3)
    return tropel.Simulation(world, people, planning=tropel.PathPlans(**planning), local=tropel.Lattice())


def test_a_public_name() -> None:
    with pytest.warns(FutureWarning, match=r"tropel\.Layer is now tropel\.ValueMap"):
        assert tropel.Layer is tropel.ValueMap


def test_events() -> None:
    with pytest.warns(FutureWarning, match=r"AddLayer is now AddValueMap"):
        assert events.AddLayer is events.AddValueMap
    with pytest.warns(FutureWarning, match="'add_layer' is now 'add_value_map'"):
        told = event_from_json('{"kind": "add_layer", "name": "open", "values": {"kind": "openness"}}')
    assert told == events.AddValueMap(name="open", values=tropel.Openness())
    assert told.kind == "add_value_map"


def test_events_in_files(tmp_path: Path) -> None:
    with pytest.warns(FutureWarning, match="'add_layer' is now 'add_value_map'"):
        sim = parse_scenario(ROOM, source="room.toml", folder=tmp_path).build()
    sim.run(until=2.0)
    assert sim.value_maps().names == ["open"]


def test_methods_and_arguments() -> None:
    with pytest.warns(FutureWarning, match="now value_maps"):
        sim = crowd(layers={"open": tropel.ValueMap(tropel.Openness())})
    with pytest.warns(FutureWarning, match=r"Simulation\.add_layer is now add_value_map"):
        sim.add_layer("block", tropel.ValueMap(np.zeros((1, 1)), origin=(2.0, 2.0), cell=0.4))
    assert sim.value_maps().names == ["open", "block"]
    with pytest.raises(ParameterError, match="old name"):
        crowd(value_maps={}, layers={})


def test_behaviours() -> None:
    sim = crowd()
    with pytest.warns(FutureWarning, match="'user layers' is now 'value maps'"):
        sim.at(0.0, events.SetBehaviour(name="user layers", on=False))
    sim.step()
    assert sim.behaviours["value maps"] is False


@pytest.mark.parametrize("old", sorted(MODULES))
def test_modules(old: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(FutureWarning, match=f"the module {old} is now {MODULES[old]}"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(MODULES[old])
    assert module.__name__ == module.__spec__.name == MODULES[old]


def test_a_module_that_never_was_is_an_import_error() -> None:
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tropel.obsrvers")


def test_the_warning_shows_the_line_that_imports(python) -> None:  # type: ignore[no-untyped-def]
    told = python(
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as said:\n"
        "    warnings.simplefilter('always')\n"
        "    from tropel.observers import Observer\n"
        "print(said[0].filename, Observer.__module__)\n"
    )
    assert told.split() == ["<string>", "tropel.run.observers"]
