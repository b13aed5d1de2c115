"""`tropel run --encounters` and `tropel plot` of a table of encounters, as a user meets them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tropel_command import tropel

from short_scenario import short_scenario
from tropel.encounters import read_encounters

SHORT = short_scenario()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("encounters")
    (folder / "short.toml").write_text(SHORT)
    (folder / "watched.toml").write_text("watch_encounters = 1.2\n" + SHORT)
    tropel("run", "short.toml", "-o", "o", "--encounters", "near.csv", "-q", "--no-picture", cwd=folder)
    return folder


def test_a_run_writes_its_encounters(folder: Path) -> None:
    table = read_encounters(folder / "near.csv")
    assert len(table) > 0
    assert set(table.within.tolist()) == {1.5}


def test_a_table_of_encounters_can_be_drawn(folder: Path) -> None:
    done = tropel("plot", "near.csv", cwd=folder)
    assert "near.png" in done.stdout
    assert (folder / "near.png").stat().st_size > 10_000


def test_a_file_may_say_that_encounters_are_watched(folder: Path) -> None:
    done = tropel("run", "watched.toml", "-o", "w", "--until", 1, "-q", "--no-picture", cwd=folder)
    assert "tropel plot w/encounters.parquet" in done.stdout
    assert set(read_encounters(folder / "w" / "encounters.parquet").within.tolist()) == {1.2}
    # The checkpoint holds them, so a resumed run has the table of the whole run.
    tropel("run", "watched.toml", "--resume", "w/checkpoint.npz", "--until", 2, "-q", "--no-picture", cwd=folder)
    tropel("run", "watched.toml", "-o", "whole", "--until", 2, "-q", "--no-picture", cwd=folder)
    resumed, whole = (read_encounters(folder / name / "encounters.parquet") for name in ("w", "whole"))
    for name, column in vars(whole).items():
        np.testing.assert_array_equal(column, getattr(resumed, name), err_msg=name)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (["--encounters", "near.txt"], "near.txt"),
        (["--encounter-distance", "0"], "distance"),
        (["--encounter-distance", "nan"], "distance"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_written(folder: Path, options: list[str], complaint: str) -> None:
    done = tropel("run", "short.toml", "-o", "never", *options, "-q", cwd=folder, ok=False)
    assert done.returncode != 0
    assert complaint in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "never").exists()
