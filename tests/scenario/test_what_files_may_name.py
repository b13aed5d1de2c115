"""A file names tropel's own layers. It imports nothing, and runs nothing, unless somebody outside the file says yes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cli.tropel_command import tropel
from tropel.errors import ParameterError, ScenarioError
from tropel.events.queue import event_from_json
from tropel.planning.vector_field import Blend, VectorField
from tropel.scenario import load_scenario, parse_scenario
from tropel.scenario.execute import sweep

ROOM = """
name = "room"
limit = 1.0
[world]
walkable = { box = [0.0, 0.0, 8.0, 6.0] }
[world.exits]
east = { box = [7.0, 2.0, 8.0, 4.0] }
[[groups]]
name = "people"
positions = [[1.0, 1.0]]
"""

#: Modules that leave a file behind when they are imported, and classes that do when they are made.
OWN_MODULE = """
from pathlib import Path
import tropel
Path("imported").touch()

class Stay(tropel.Model):
    def __init__(self, *, told=0.0):
        Path("made").touch()
        self.parameters = {"told": told}
    def steer(self, moment, out):
        out.velocity[moment.members] = 0.0

class NoLayer:
    def __init__(self):
        Path("made").touch()

class Lookalike:
    def __init__(self):
        Path("made").touch()
    def steer(self, moment, out):
        out.velocity[moment.members] = 0.0

class Leads(tropel.Planner):
    def __init__(self):
        Path("made").touch()
    def direct(self, moment, out):
        out.directions[moment.members] = 0.0

def steer_factory():
    Path("made").touch()
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a module of the user's own, which Python finds there."""
    (tmp_path / "own_layers.py").write_text(OWN_MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    monkeypatch.delitem(sys.modules, "own_layers", raising=False)
    return tmp_path


def write(folder: Path, more: str) -> Path:
    file = folder / "room.toml"
    file.write_text(ROOM + more)
    return file


COMMAND = "{ model = 'os:system', command = 'touch done' }"


@pytest.mark.parametrize(
    ("more", "key"),
    [
        (f"local = {COMMAND}", "groups[0].local.model"),
        (f"planning = {COMMAND}", "groups[0].planning.model"),
        ("[local]\nmodel = 'os:system'\ncommand = 'touch done'", "local.model"),
        ("[planning]\nmodel = 'os:system'\ncommand = 'touch done'", "planning.model"),
        ("[environment]\nmodel = 'os:system'\ncommand = 'touch done'", "environment.model"),
        (f"[planning]\nmodel = 'blend'\nparts = [[1.0, {COMMAND}]]", "planning"),
        ("[planning]\nmodel = 'blend'\nparts = [[1.0, 'os:system']]", "planning"),
        (f"[planning]\nmodel = 'vector_field'\nstrokes = []\nfallback = {COMMAND}", "planning"),
        (
            f"[planning]\nmodel = 'blend'\nparts = [[1.0, {{ model = 'blend', parts = [[1.0, {COMMAND}]] }}]]",
            "planning",
        ),
    ],
)
def test_no_file_runs_a_command(more: str, key: str, folder: Path) -> None:
    with pytest.raises(ScenarioError) as refused:
        load_scenario(write(folder, more)).build(threads=1)
    assert f": {key}: " in str(refused.value)
    assert "--allow-imports os" in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not (folder / "done").exists()


def test_a_yes_is_not_enough_for_what_is_no_layer(folder: Path) -> None:
    file = write(folder, "[local]\nmodel = 'os:system'\ncommand = 'touch done'")
    no_model = r"'os:system' is not a valid steering model: it is not a class that extends tropel\.contracts\.Model"
    with pytest.raises(ScenarioError, match=no_model):
        load_scenario(file, allow_imports=["os"]).build(threads=1)
    assert not (folder / "done").exists()


@pytest.mark.parametrize("name", ["NoLayer", "Lookalike", "Leads", "steer_factory", "Path", "nothing"])
def test_only_layer_classes_are_called(name: str, folder: Path) -> None:
    file = write(folder, f"[local]\nmodel = 'own_layers:{name}'")
    with pytest.raises(ScenarioError, match=r"local\.model: "):
        load_scenario(file, allow_imports=["own_layers"]).build(threads=1)
    assert not (folder / "made").exists()


def test_a_class_of_ones_own_is_not_even_imported_without_a_yes(folder: Path) -> None:
    file = write(folder, "[local]\nmodel = 'own_layers:Stay'")
    for allowed in [(), ("own",), ("own_layers.deeper",), ("numpy",)]:
        with pytest.raises(ScenarioError, match="--allow-imports own_layers"):
            load_scenario(file, allow_imports=allowed).build(threads=1)
    assert not (folder / "imported").exists()


def test_a_class_of_ones_own_steers_with_a_yes(folder: Path) -> None:
    file = write(folder, "[local]\nmodel = 'own_layers:Stay'\ntold = 2.0")
    sim = load_scenario(file, allow_imports=["own_layers"]).build(threads=1)
    sim.step()
    assert sim.layers.models[0].parameters == {"told": 2.0}
    assert sim.agents.position.tolist() == [[1.0, 1.0]]


def test_every_command_asks_for_the_yes_and_so_does_the_copy_in_the_folder_of_a_run(folder: Path) -> None:
    file = write(folder, "[local]\nmodel = 'own_layers:Stay'")
    for command in (["validate", file], ["run", file, "--quiet", "--no-picture"], ["sweep", file, "--seeds", 1]):
        refused = tropel(*command, cwd=folder, ok=False)
        assert refused.returncode == 1
        assert "--allow-imports own_layers" in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    assert not (folder / "imported").exists()
    tropel("validate", file, "--allow-imports", "own_layers", cwd=folder)
    tropel("run", file, "--quiet", "--no-picture", "--allow-imports", "own_layers", cwd=folder)
    again = tropel("validate", folder / "out" / "room" / "scenario.toml", cwd=folder, ok=False)
    assert "--allow-imports own_layers" in again.stderr


def test_the_processes_of_a_sweep_have_the_yes_too(folder: Path) -> None:
    scenario = load_scenario(write(folder, "[local]\nmodel = 'own_layers:Stay'"), allow_imports=["own_layers"])
    done = sweep(scenario, [1], table=folder / "sweep.csv", workers=1)
    assert not done.failures
    assert list(done.results) == [1]


@pytest.mark.parametrize("address", ["os:system.x", "a/b:C", "../x:C", ":C", "os:", "os.:C", "o s:C", "os:system()"])
def test_what_is_no_address_is_not_imported(address: str, tmp_path: Path) -> None:
    text = ROOM + f"[local]\nmodel = '{address}'"
    scenario = parse_scenario(text, source="room.toml", folder=tmp_path, allow_imports=["os", "a/b", "../x", ""])
    with pytest.raises(ScenarioError, match="is not the address of a class"):
        scenario.build(threads=1)


def test_layers_inside_others_are_made_by_the_same_rule_in_python() -> None:
    with pytest.raises(ParameterError, match="--allow-imports os"):
        Blend([(1.0, {"model": "os:system", "command": "true"})])
    with pytest.raises(ParameterError, match="there is no planner 'os'"):
        VectorField(lambda points: points, fallback="os")


def test_recorded_events_name_nothing_but_events() -> None:
    with pytest.raises(ValueError, match="os:system"):
        event_from_json('{"kind": "os:system", "command": "true"}')


def test_messages_are_lines_of_bounded_length_whatever_a_file_holds(tmp_path: Path) -> None:
    wrong = '"a\\nb\\u2028" = 1\n'
    with pytest.raises(ScenarioError) as refused:
        parse_scenario("[world.targets]\n" + wrong, source="room.toml", folder=tmp_path)
    assert all(line.startswith("room.toml") for line in str(refused.value).splitlines())
    nested = "[" * 60 + "1" + "]" * 60
    text = ROOM + f"[local]\nmodel = 'seek'\nside_angles = [{', '.join([nested] * 100)}]"
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, source="room.toml", folder=tmp_path).build(threads=1)
    assert len(str(refused.value)) < 700


def test_of_thousands_of_mistakes_the_first_are_said(tmp_path: Path) -> None:
    text = ROOM + "".join(f"[[events]]\nat = 'x{number}'\nkind = 'remove_agents'\n" for number in range(3000))
    with pytest.raises(ScenarioError) as refused:
        parse_scenario(text, source="room.toml", folder=tmp_path)
    lines = str(refused.value).splitlines()
    assert len(lines) == 51
    assert lines[-1] == "room.toml: … and 2950 more"


def test_allow_imports_is_a_list_of_names(tmp_path: Path) -> None:
    for wrong in ("own_layers", [1]):
        with pytest.raises(ParameterError, match="allow_imports"):
            parse_scenario(ROOM, source="room.toml", folder=tmp_path, allow_imports=wrong)  # type: ignore[arg-type]
