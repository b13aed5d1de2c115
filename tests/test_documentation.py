"""Every snippet of the README and every example runs."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str, text: str = README) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.DOTALL)


def run(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done


def test_the_readme_has_snippets_of_every_kind():
    assert blocks("python")
    assert blocks("console")
    assert blocks("toml")


def test_the_python_snippets_of_the_readme_run_one_after_the_other(tmp_path):
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks("python")), encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)
    assert (tmp_path / "hall.png").exists()


def test_a_planner_an_environment_and_a_model_are_written_as_the_guide_says(tmp_path):
    guide = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    snippets = blocks("python", guide)
    assert len(snippets) >= 6
    script = tmp_path / "layers.py"
    script.write_text("\n".join(snippets), encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)


def test_places_routes_and_leaders_are_used_as_their_page_says(tmp_path):
    page = (ROOT / "docs" / "places.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 3
    script = tmp_path / "places.py"
    script.write_text("\n".join(snippets), encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)


def test_stages_and_decisions_are_used_as_their_page_says(tmp_path):
    page = (ROOT / "docs" / "stages.md").read_text(encoding="utf-8")
    snippets = blocks("python", page)
    assert len(snippets) >= 4
    script = tmp_path / "stages.py"
    script.write_text("\n".join(snippets), encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)
    from tropel.registry import CONDITIONS, DECISIONS, STAGES

    assert all(f"`{name} = " in page for name in STAGES)
    assert all(f"`{{ {name} = " in page for name in CONDITIONS)
    assert all(f'`{{ model = "{name}" }}`' in page for name in DECISIONS)


def test_the_models_are_used_as_the_overview_says(tmp_path):
    overview = (ROOT / "docs" / "models.md").read_text(encoding="utf-8")
    script = tmp_path / "models.py"
    script.write_text("\n".join(blocks("python", overview)), encoding="utf-8")
    run([sys.executable, str(script)], tmp_path)
    from tropel.registry import MODELS

    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", overview, flags=re.MULTILINE)
    assert sorted(rows) == sorted((entry.load().__name__, name) for name, entry in MODELS.items())


def test_the_shell_snippets_of_the_readme_run(tmp_path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in "".join(blocks("console")).splitlines():
        words = shlex.split(line)
        if words[0] == "make":
            assert re.search(rf"^{words[1]}:", makefile, flags=re.MULTILINE)
        else:
            assert words[0] == "tropel"
            run([sys.executable, "-m", "tropel.cli", *words[1:]], tmp_path)


def test_the_scenario_of_the_readme_is_valid_and_empties(tmp_path):
    (tmp_path / "room.toml").write_text(blocks("toml")[0], encoding="utf-8")
    done = run([sys.executable, "-m", "tropel.cli", "run", "room.toml", "-q", "--no-picture"], tmp_path)
    assert "everybody has left" in done.stdout


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
def test_every_example_runs(example, tmp_path):
    assert run([sys.executable, str(example)], tmp_path).stdout
