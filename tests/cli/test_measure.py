"""`tropel measure` as a user meets it."""

import csv
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "analysis"))
from made_flocks import record_flocks


def tropel(*arguments, cwd, ok=True):
    done = subprocess.run(
        [sys.executable, "-m", "tropel.cli", *map(str, arguments)], cwd=cwd, capture_output=True, text=True, timeout=300
    )
    if ok:
        assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("measure")
    record_flocks(folder / "school.sqlite")
    return folder


def test_a_table_and_a_picture_lie_beside_the_run(folder):
    done = tropel("measure", "school.sqlite", "--within", 0.65, "-q", cwd=folder)
    with (folder / "school-flock.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert float(rows[-1]["polarisation"]) == pytest.approx(1.0)
    assert (folder / "school-flock.png").stat().st_size > 10_000
    for words in ("mill", "flyers", "sub-flocks within 0.65 m", "1 → 2"):
        assert words in " ".join(done.stdout.split())
    assert done.stderr == ""


def test_the_table_can_be_parquet_and_lie_elsewhere(folder):
    tropel("measure", "school.sqlite", "-o", "there", "--format", "parquet", "--no-picture", "--every", 10, cwd=folder)
    assert [path.name for path in (folder / "there").iterdir()] == ["flock.parquet"]
    assert pyarrow.parquet.read_table(folder / "there" / "flock.parquet").num_rows == 15


def test_a_wrong_option_is_named(folder):
    done = tropel("measure", "school.sqlite", "--within", "-3", cwd=folder, ok=False)
    assert done.returncode == 1
    assert "positive distance" in done.stderr
    done = tropel("measure", "school.sqlite", "--format", "cvs", cwd=folder, ok=False)
    assert "did you mean 'csv'" in done.stderr
