"""What the command line, summaries and pages say, and that no built-in scene is found fault with."""

from __future__ import annotations

import json
import re
import warnings
from pathlib import Path

import pytest
from typer.testing import CliRunner

from short_scenario import short_scenario
from tropel.checks import FindingWarning
from tropel.checks.reach import _REMEDY
from tropel.cli.commands import app
from tropel.scenario import builtin_names, load_builtin, load_scenario

WALL = "[world]\nwalls = [[[6.0, 0.0], [6.0, 6.0]]]"
FINE = short_scenario("until = 1.0\nlimit = 1.0")
WALLED = FINE.replace("[world]", WALL)


@pytest.mark.parametrize("name", builtin_names())
def test_built_in_scenes_give_no_warnings(name: str) -> None:
    found = load_builtin(name).build(threads=1).check()
    assert [finding for finding in found if finding.severity == "warning"] == []
    # The passengers of the platform wait for the train, whose doors are closed at first.
    assert {finding.code for finding in found} == ({"no_path_source"} if name == "platform" else set())


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    texts = {"fine": FINE, "walled": WALLED}
    for name, text in texts.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return {name: tmp_path / f"{name}.toml" for name in texts}


def test_validate_warns_and_the_file_is_still_valid(files: dict[str, Path]) -> None:
    told = CliRunner().invoke(app, ["validate", str(files["walled"])])
    assert told.exit_code == 0
    assert "warning: 12 people of group 'people' cannot reach any exit" in told.stderr
    assert "is valid: 12 agents at the start, 0 sources, 0 events; 1 warning" in told.stdout.replace("\n", "")
    fine = CliRunner().invoke(app, ["validate", str(files["fine"])])
    assert fine.stderr == ""
    assert "warning" not in fine.stdout


def test_validate_prints_findings_as_json(files: dict[str, Path]) -> None:
    told = json.loads(CliRunner().invoke(app, ["validate", str(files["walled"]), "--json"]).stdout)
    (finding,) = told["findings"]
    assert finding["code"] == "no_path_walls"
    assert finding["severity"] == "warning"
    assert finding["agents"] == 12
    assert finding["remedy"]
    assert json.loads(CliRunner().invoke(app, ["validate", str(files["fine"]), "--json"]).stdout)["findings"] == []


def test_run_warns_at_once_and_the_summary_repeats_it(files: dict[str, Path], tmp_path: Path) -> None:
    arguments = ["run", str(files["walled"]), "--out", str(tmp_path / "out"), "--no-picture", "--quiet"]
    with pytest.warns(FindingWarning, match="cannot reach any exit"):
        told = CliRunner().invoke(app, arguments)
    assert "warning" in told.stdout
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert [finding["code"] for finding in summary["findings"]] == ["no_path_walls"]


def test_a_run_from_python_warns_only_at_its_beginning(files: dict[str, Path]) -> None:
    sim = load_scenario(files["walled"]).build(threads=1)
    with pytest.warns(FindingWarning, match="walls block every path"):
        sim.run(until=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sim.run(until=1.0)
        fine = load_scenario(files["fine"]).build(threads=1).run(until=0.5)
    assert fine.findings == ()


def test_a_sweep_warns_once(files: dict[str, Path], tmp_path: Path) -> None:
    from tropel.scenario.execute import sweep

    with pytest.warns(FindingWarning) as caught:
        done = sweep(load_scenario(files["walled"]), range(2), table=tmp_path / "sweep.csv", workers=1)
    assert len(done.results) == 2
    assert len([w for w in caught if issubclass(w.category, FindingWarning)]) == 1


def test_the_documentation_lists_every_code() -> None:
    import tropel

    sources = Path(tropel.__file__).parent / "checks"
    text = "".join(path.read_text(encoding="utf-8") for path in sources.glob("*.py"))
    codes = set(re.findall(r'code="(\w+)"', text)) | set(re.findall(r'self\._finding\(\s*"(\w+)"', text))
    codes |= {f"no_path_{kind}" for kind in _REMEDY}
    documented = (Path(__file__).parents[2] / "docs" / "files.md").read_text(encoding="utf-8")
    assert {"standstill", "long_steps", "pieces", "no_path_door"} <= codes
    assert {code for code in codes if f"`{code}`" not in documented} == set()
