"""`tropel report` as a user meets it."""

import csv
import json
import sqlite3
from pathlib import Path

import pyarrow.parquet
import pytest
from tropel_command import tropel

from short_scenario import short_scenario

SHORT = short_scenario(exits="west = { box = [0.0, 2.0, 1.0, 4.0] }")

TABLES = ["crowding", "density", "evacuated", "exits", "flow", "people", "voronoi", "voronoi_people"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a finished run in `o`; tests write beside it."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "short.toml").write_text(SHORT)
    done = tropel("run", "short.toml", "--out", "o", "--no-picture", "-q", cwd=folder)
    assert "tropel report o" in done.stdout
    assert "had left at" in done.stdout
    assert "%)" in done.stdout
    return folder


def test_a_report_is_tables_pictures_and_a_summary(folder):
    done = tropel("report", "o", "-q", cwd=folder)
    found = sorted(path.name for path in (folder / "o" / "report").iterdir())
    assert found == sorted([*(f"{name}.csv" for name in TABLES), "maps.png", "report.png"])
    with (folder / "o" / "report" / "people.csv").open(newline="") as file:
        people = list(csv.DictReader(file))
    summary = json.loads((folder / "o" / "summary.json").read_text())
    assert len(people) == summary["agents"]
    assert max(float(person["gone"]) for person in people) == pytest.approx(summary["evacuation_time"])
    with (folder / "o" / "report" / "exits.csv").open(newline="") as file:
        exits = {row["name"]: row for row in csv.DictReader(file)}
    assert {name: int(row["count"]) for name, row in exits.items()} == {"east": 0, "west": 0} | summary["exits"]
    for name, flow in summary["flows"].items():
        assert float(exits[name]["flow"]) == pytest.approx(flow)
    for words in ("through east", "out at", "densest cell"):
        assert words in done.stdout
    assert done.stderr == ""


def test_tables_can_be_parquet_and_lie_elsewhere(folder):
    tropel(
        "report", "o/trajectory.sqlite", "--format", "parquet", "--no-pictures", "-o", "a/b", "--cell", 2, cwd=folder
    )
    assert sorted(path.name for path in (folder / "a" / "b").iterdir()) == [f"{name}.parquet" for name in TABLES]
    assert set(pyarrow.parquet.read_table(folder / "a" / "b" / "density.parquet")["x"].to_pylist()) <= {1, 3, 5, 7}


def test_a_run_can_write_its_report_at_once(folder):
    tropel("run", "short.toml", "--out", "at_once", "--no-picture", "--report", "-q", cwd=folder)
    assert (folder / "at_once" / "report" / "exits.csv").exists()


def test_a_run_that_was_killed_is_reported_with_a_note(folder):
    path = folder / "killed.sqlite"
    path.write_bytes((folder / "o" / "trajectory.sqlite").read_bytes())
    with sqlite3.connect(path) as file:
        file.execute("DROP TABLE tropel_people")
        file.execute("DELETE FROM tropel_metadata WHERE key = 'summary'")
    file.close()
    done = tropel("report", "killed.sqlite", "-q", "--no-pictures", cwd=folder)
    assert "times and exits come from its frames" in done.stderr
    assert (folder / "killed-report" / "people.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nothing"], "there is no nothing"),
        (["short.toml"], "is not a trajectory"),
        (["o", "--format", "cvs"], "did you mean 'csv'"),
        (["o", "--cell", "0"], "cell must be a positive number"),
        (["o", "--out", "short.toml/inside"], "cannot create the folder"),
    ],
)
def test_what_cannot_be_reported_is_a_clear_error(folder, arguments, words):
    done = tropel("report", *arguments, "-q", cwd=folder, ok=False)
    assert done.returncode == 1
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


def test_an_empty_run_is_a_clear_error(folder):
    (folder / "empty.toml").write_text(SHORT.replace("count = 12", "count = 0"))
    tropel("run", "empty.toml", "--out", "empty", "--no-picture", "-q", cwd=folder)
    done = tropel("report", "empty", "-q", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "has no agents in any frame" in done.stderr
    assert not (folder / "empty" / "report").exists()


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a directory in which nobody, not even root, writes")
def test_a_folder_that_is_not_writable_is_a_clear_error(folder):
    done = tropel("report", "o", "--out", "/proc/self", "-q", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "cannot write" in done.stderr
