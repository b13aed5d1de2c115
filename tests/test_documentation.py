"""Every snippet of the README and every example runs.

They run in this process, each with names of its own: in processes of their own, most of the time went into starting
Python and loading kernels again. Commands as a shell starts them are tested in tests/cli.
"""

import re
import runpy
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tropel.cli.commands import app
from tropel.riders.character import find_character

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


@pytest.fixture(autouse=True)
def _files_go_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")


def run_snippets(snippets: list[str]) -> None:
    """Run snippets one after the other, as a script."""
    script = Path("snippets.py").resolve()  # kernels remember the file that they stand in
    script.write_text("\n".join(snippets), encoding="utf-8")
    runpy.run_path(str(script), run_name="__main__")


def run_command(*words: str) -> str:
    """Run a command of tropel; returns what it printed."""
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


def test_the_readme_has_snippets_of_every_kind():
    assert blocks("python")
    assert blocks("console")
    assert blocks("toml")


def test_the_python_snippets_of_the_readme_run_one_after_the_other():
    run_snippets(blocks("python"))
    assert Path("hall.png").exists()


def test_a_planner_an_environment_and_a_model_are_written_as_the_guide_says():
    guide = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    snippets = blocks("python", guide)
    assert len(snippets) >= 6
    run_snippets(snippets)


def test_places_routes_and_leaders_are_used_as_their_page_says():
    page = (ROOT / "docs" / "places.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 3
    run_snippets(snippets)


def test_riders_ride_as_their_page_says():
    page = (ROOT / "docs" / "riders.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 3
    run_snippets(snippets)
    for file in blocks("toml", page):
        Path("courier.toml").write_text(file, encoding="utf-8")
        assert find_character("courier.toml").name == "courier"
    for line in "".join(blocks("console", page)).splitlines():
        if line.startswith("tropel riders show"):
            run_command(*shlex.split(line, comments=True)[1:])
            assert list(Path("out/riders").glob("*_fan.png"))


def test_stages_and_decisions_are_used_as_their_page_says():
    page = (ROOT / "docs" / "stages.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 4
    run_snippets(snippets)
    from tropel.registry import CONDITIONS, DECISIONS, STAGES

    assert all(f"`{name} = " in page for name in STAGES)
    assert all(f"`{{ {name} = " in page for name in CONDITIONS)
    assert all(f'`{{ model = "{name}" }}`' in page for name in DECISIONS)


def test_sight_and_knowledge_are_used_as_their_page_says():
    page = (ROOT / "docs" / "knowledge.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 3
    run_snippets(snippets)
    from dataclasses import fields

    from tropel.knowing.parameters import Knowledge

    assert all(f"| `{field.name}` | " in page for field in fields(Knowledge))


def test_tasks_are_used_as_their_page_says():
    page = (ROOT / "docs" / "tasks.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 3
    run_snippets(snippets)
    from tropel.agents.tasks.task import Task
    from tropel.registry import SHARINGS

    assert all(f"| `{name}` |" in page for name in Task.model_fields)
    assert all(f'sharing = "{name}"' in page or f'model = "{name}"' in page for name in SHARINGS)


def test_emotions_are_used_as_their_page_says():
    page = (ROOT / "docs" / "emotions.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 2
    run_snippets(snippets)
    from dataclasses import fields

    from tropel.deciding.emotions.parameters import EmotionsParameters

    assert all(f"`{field.name}`" in page for field in fields(EmotionsParameters))


def test_squads_are_used_as_their_page_says():
    page = (ROOT / "docs" / "squads.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 3
    run_snippets(snippets)


def test_speed_laws_do_what_the_page_on_personality_says():
    page = (ROOT / "docs" / "personality.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert snippets
    run_snippets(snippets)


def test_the_models_are_used_as_the_overview_says():
    overview = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    run_snippets(blocks("python", overview))
    from tropel.registry import MODELS

    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", overview, flags=re.MULTILINE)
    assert sorted(rows) == sorted((entry.load().__name__, name) for name, entry in MODELS.items())


def test_the_shell_snippets_of_the_readme_run():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in "".join(blocks("console")).splitlines():
        words = shlex.split(line)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, flags=re.MULTILINE)
        else:
            assert words[0] == "tropel"
            run_command(*words[1:])


def test_the_scenario_of_the_readme_is_valid_and_empties():
    Path("room.toml").write_text(blocks("toml")[0], encoding="utf-8")
    assert "everybody has left" in run_command("run", "room.toml", "-q", "--no-picture")


TEXTS = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_files_that_a_text_links_to_exist(text):
    for target in re.findall(r"\]\(([^)#:]+)\)", text.read_text(encoding="utf-8")):
        assert (text.parent / target).exists(), target


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_modules_that_a_text_names_exist(text):
    package = ROOT / "src" / "tropel"
    for name in re.findall(r"`([\w/]+\.py)`", text.read_text(encoding="utf-8")):
        places = [ROOT / name, package / name, *package.rglob(name), *(ROOT / "tests").rglob(name)]
        assert any(place.exists() for place in places), name


def test_the_architecture_names_every_part_of_the_package():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    parts = {path.stem for path in (ROOT / "src" / "tropel").iterdir() if path.suffix in ("", ".py")}
    missing = [
        part for part in parts - {"__init__", "__pycache__"} if not re.search(rf"(^|[ |(`]){part}\b", text, re.M)
    ]
    assert missing == []


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_every_example_runs(example, monkeypatch, capsys):
    # Python puts the folder of a script onto its path.
    monkeypatch.syspath_prepend(str(example.parent))
    runpy.run_path(str(example), run_name="__main__")
    assert capsys.readouterr().out
