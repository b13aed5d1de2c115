"""Measures of flocks from recorded runs."""

import csv
from pathlib import Path

import numpy as np
import pytest
from made_flocks import FLYERS, FRAMES, MILLERS, record_flocks

import tropel
from tropel.analysis import flock_measures, write_columns
from tropel.errors import ParameterError, RecordingError
from tropel.recording import Scene, open_trajectory, read_trajectory

#: The side of a regular polygon of 30 corners with a radius of 2 m.
SIDE = 4.0 * np.sin(np.pi / MILLERS)


@pytest.mark.parametrize(("dim", "name"), [(2, "run.sqlite"), (2, "run.parquet"), (3, "run.parquet")])
def test_groups_are_measured_apart_and_together(tmp_path: Path, dim: int, name: str) -> None:
    with read_trajectory(record_flocks(tmp_path / name, dim=dim)) as run:
        found = flock_measures(run, within=0.65)
    assert list(found.groups) == ["all", "mill", "flyers"]
    np.testing.assert_allclose(found.times, np.arange(FRAMES) / 10.0)
    mill, flyers, everybody = found.groups["mill"], found.groups["flyers"], found.groups["all"]
    np.testing.assert_allclose(mill.milling, 1.0)
    np.testing.assert_allclose(mill.polarisation, 0.0, atol=1e-12)
    np.testing.assert_allclose(mill.nearest_distance, SIDE)
    np.testing.assert_allclose(flyers.polarisation, 1.0)
    np.testing.assert_allclose(flyers.nearest_distance, 0.5)
    np.testing.assert_allclose(everybody.polarisation, FLYERS / (MILLERS + FLYERS), atol=1e-9)
    assert everybody.agents.tolist() == [MILLERS + FLYERS] * FRAMES
    # The grid tears once the gap of 0.5 m has grown beyond 0.65 m, 0.15 s after it begins to.
    torn = found.times > 2.15
    assert flyers.subflocks.tolist() == np.where(torn, 2, 1).tolist()
    assert flyers.largest.tolist() == np.where(torn, 0.5, 1.0).tolist()
    assert everybody.subflocks.tolist() == np.where(torn, 3, 2).tolist()


def test_without_a_distance_four_usual_ones_are_taken(tmp_path: Path) -> None:
    with read_trajectory(record_flocks(tmp_path / "run.sqlite")) as run:
        found = flock_measures(run, every=4)
    usual = (MILLERS * SIDE + FLYERS * 0.5) / (MILLERS + FLYERS)
    assert found.within == pytest.approx(4.0 * usual)
    np.testing.assert_allclose(found.times, np.arange(0, FRAMES, 4) / 10.0)


def test_the_dead_are_no_longer_of_the_flock(tmp_path: Path) -> None:
    with read_trajectory(record_flocks(tmp_path / "run.sqlite", dies=MILLERS)) as run:
        found = flock_measures(run, within=0.65)
    assert found.groups["flyers"].agents.tolist() == [FLYERS] * 20 + [FLYERS - 1] * (FRAMES - 20)


def test_before_the_first_step_headings_say_nothing(tmp_path: Path) -> None:
    """Who has no goal looks along x at first."""
    birds = tropel.Group("birds", count=100, sense_radius=2.0, desired_speed=1.0, radius=0.01, goal="none")
    world = tropel.World.box((0.0, 0.0), (20.0, 20.0), periodic=True)
    sim = tropel.Simulation(world, birds, local=tropel.SequentialFlock(), dt=1.0, watch_collisions=False)
    sim.run(until=3.0, record=tmp_path / "run.sqlite", fps=1)
    with read_trajectory(tmp_path / "run.sqlite") as run:
        birds_flown = flock_measures(run).groups["birds"]
    assert np.isnan(birds_flown.polarisation).tolist() == [True, False, False, False]
    assert birds_flown.polarisation[1] < 0.4
    assert (birds_flown.nearest_distance > 0.0).all()


def test_the_table_has_a_row_for_each_moment_and_group(tmp_path: Path) -> None:
    with read_trajectory(record_flocks(tmp_path / "run.sqlite")) as run:
        found = flock_measures(run, within=0.65)
    (path,) = write_columns({"flock": found.columns()}, tmp_path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 3 * FRAMES
    assert {row["group"] for row in rows} == set(found.groups)
    last = rows[-1]
    assert (last["group"], float(last["time"]), int(last["subflocks"])) == ("flyers", 4.0, 2)


def test_what_cannot_be_measured_is_said(tmp_path: Path) -> None:
    scene = Scene(dim=2, bounds=[[0.0, 0.0], [1.0, 1.0]], dt=0.1)
    with open_trajectory(tmp_path / "empty.sqlite", scene=scene, fps=10.0):
        pass
    with read_trajectory(tmp_path / "empty.sqlite") as run:
        with pytest.raises(RecordingError, match="no flock to measure"):
            flock_measures(run)
        with pytest.raises(ParameterError, match="within"):
            flock_measures(run, within=-1.0)
        with pytest.raises(ParameterError, match="every"):
            flock_measures(run, every=0)
