"""`tropel plan`: from a map to a picture of the way to a goal."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import tropel_command
from PIL import Image, ImageDraw

MAP = """type octile
height 6
width 8
map
........
.@@@@@@.
.@....@.
.@....@.
.@@@@@@.
........
"""

ROOM = """
name = "room"
title = "A room with an exit"
[world]
walkable = { box = [0.0, 0.0, 8.0, 6.0] }
walls = [[[4.0, 0.0], [4.0, 4.0]]]
[world.exits]
east = { box = [7.0, 2.0, 8.0, 4.0] }
[[groups]]
name = "people"
count = 6
region = { box = [0.0, 0.0, 3.5, 4.0] }
[planning]
model = "harmonic"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ring.map").write_text(MAP)
    (tmp_path / "room.toml").write_text(ROOM)
    (tmp_path / "room.wkt").write_text("POLYGON ((0 0, 6 0, 6 4, 0 4, 0 0), (2 1, 2 3, 4 3, 4 1, 2 1))")
    return tmp_path


def tropel(*arguments: object, cwd: Path, ok: bool = True, cache: str = "plans") -> subprocess.CompletedProcess[str]:
    environment = {"TROPEL_PLAN_CACHE": str(cwd / cache), "COLUMNS": "160"}
    return tropel_command.tropel(*arguments, cwd=cwd, ok=ok, environment=environment)


def test_a_map_is_planned_reported_and_drawn(folder: Path) -> None:
    done = tropel("plan", "ring.map", "--goal", "0.5,0.5", "--out", "field.png", cwd=folder)
    with Image.open(folder / "field.png") as picture:
        assert min(picture.size) > 400
    for words in ("flow_field, to (0.5, 0.5)", "40 × 30 of 0.2 m", "no path from", "planned in", "wrote field.png"):
        assert words in done.stdout
    assert "around (2.3, 2.3)" in done.stdout
    assert "reading ring.map" in done.stderr or "planning" in done.stderr


def test_a_harmonic_field_a_scale_and_a_cell_may_be_asked_for(folder: Path) -> None:
    arguments = ("--goal", "1,1", "--planner", "harmonic", "--scale", 2, "--cell", 0.25, "--out", "h.png", "-q")
    done = tropel("plan", "ring.map", *arguments, cwd=folder)
    assert "harmonic, to (1, 1)" in done.stdout
    assert "64 × 48 of 0.25 m" in done.stdout
    assert (folder / "h.png").exists()


def test_pictures_wkt_files_scenarios_and_built_in_names_are_maps_too(folder: Path) -> None:
    picture = Image.new("L", (80, 60), 255)
    ImageDraw.Draw(picture).rectangle((40, 0, 42, 45), fill=0)
    picture.save(folder / "plan.png")
    tropel("plan", "plan.png", "--scale", 0.1, "--goal", "1,1", "--out", "a.png", "-q", cwd=folder)
    tropel("plan", "room.wkt", "--goal", "1,1", "--out", "b.png", "-q", cwd=folder)
    assert "to nearest exit" in tropel("plan", "room.toml", "--out", "c", "-q", cwd=folder).stdout
    assert "to nearest exit" in tropel("plan", "u_room", "--out", "d.png", "-q", cwd=folder).stdout
    for name in ("a.png", "b.png", "c/field.png", "d.png"):
        assert (folder / name).exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ring.map", "--goal", "3.5,4.5"), "target 'goal' at (3.5, 4.5) lies outside the walkable area"),
        (("ring.map", "--goal", "here"), "'here' is not a place; write x,y in metres"),
        (("ring.map",), "no exits and no targets; give the goal"),
        (("ring.map", "--goal", "1,1", "--planner", "harmonc"), "did you mean 'harmonic'"),
        (("ring.map", "--goal", "1,1", "--cell", "1e-5"), "memory"),
        (("ring.map", "--goal", "1,1", "--clearance", "3"), "none of the"),
        (("none.map", "--goal", "1,1"), "cannot read the map none.map"),
        (("nothing", "--goal", "1,1"), "cannot find nothing"),
        (("room.wkt", "--goal", "1,1", "--scale", "2"), "already in metres"),
    ],
)
def test_bad_input_is_one_clear_message_and_no_picture(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = tropel("plan", *arguments, "-q", cwd=folder, ok=False)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (folder / "field.png").exists()


def test_a_run_writes_the_field_beside_its_picture_and_keeps_the_plan(folder: Path) -> None:
    tropel("run", "room.toml", "-q", cwd=folder)
    out = folder / "out" / "room"
    assert (out / "field.png").exists()
    assert json.loads((out / "summary.json").read_text())["evacuated"] == 6
    assert len(list((folder / "plans").glob("*.npz"))) == 1


def test_without_the_cache_nothing_is_kept_and_the_run_is_the_same(folder: Path) -> None:
    hashes = set()
    for name, more in (("a", ()), ("b", ()), ("c", ("--no-cache",))):
        cache = "other" if name == "c" else "plans"
        tropel("run", "room.toml", "--out", name, "--no-picture", "-q", *more, cwd=folder, cache=cache)
        hashes.add(json.loads((folder / name / "summary.json").read_text())["state_hash"])
    assert len(hashes) == 1
    assert not (folder / "other").exists()


def test_a_damaged_plan_is_told_and_made_again(folder: Path) -> None:
    tropel("run", "room.toml", "--out", "a", "--no-picture", "-q", cwd=folder)
    (plan,) = (folder / "plans").glob("*.npz")
    plan.write_bytes(plan.read_bytes()[:-100])
    done = tropel("run", "room.toml", "--out", "b", "--no-picture", "-q", cwd=folder)
    assert "damaged" in done.stderr
    assert "made again" in done.stderr
    ends = [json.loads((folder / name / "summary.json").read_text())["state_hash"] for name in "ab"]
    assert ends[0] == ends[1]
