"""The copy of a scenario in the folder of its run can be run: what it names is there too."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tropel.scenario import load_builtin, load_scenario
from tropel.scenario.execute import execute

FLOOR = """
name = "floor"
until = 0.3
dt = 0.1

[world]
map = { file = "plans/floor.png", scale = 0.5, exits = { way_out = "#00ff00" } }

[[groups]]
name = "people"
count = 5
"""


def plan(path: Path) -> None:
    """A room of 10 m by 5 m with an exit in its right wall."""
    path.parent.mkdir(parents=True)
    picture = Image.new("RGB", (22, 12), "black")
    picture.paste("white", (1, 1, 21, 11))
    picture.paste("#00ff00", (19, 5, 21, 7))
    picture.save(path)


def test_a_floor_plan_goes_along_and_the_copy_gives_the_same_run(tmp_path: Path) -> None:
    plan(tmp_path / "plans" / "floor.png")
    (tmp_path / "floor.toml").write_text(FLOOR)
    wanted, outputs = execute(load_scenario(tmp_path / "floor.toml"), out=tmp_path / "run", threads=1, progress=False)
    copied = load_scenario(outputs.scenario)
    assert copied.files() == ["plans/floor.png"]
    again, _ = execute(copied, out=tmp_path / "again", threads=1, progress=False)
    assert again.state_hash == wanted.state_hash


def test_what_lies_elsewhere_stays_there(tmp_path: Path) -> None:
    plan(tmp_path / "plans" / "floor.png")
    (tmp_path / "scenarios").mkdir()
    (tmp_path / "scenarios" / "floor.toml").write_text(FLOOR.replace("plans/", "../plans/"))
    out = tmp_path / "far" / "run"
    execute(load_scenario(tmp_path / "scenarios" / "floor.toml"), out=out, threads=1, progress=False)
    assert not (tmp_path / "far" / "plans").exists()


@pytest.mark.parametrize("name", ["office", "stadium", "maze_small", "hall"])
def test_built_in_scenes_name_files_that_are_there(name: str) -> None:
    scenario = load_builtin(name)
    assert all((scenario.folder / file).is_file() for file in scenario.files())
    assert bool(scenario.files()) == (name != "hall")
