"""Times, curves and exits of runs whose answers are known, and of real ones beside PedPy's."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import shapely
from made_runs import FPS, LONG_ROOM, in_line, record, scene

import tropel
from tropel.analysis import EvacuationReport, evacuation_report
from tropel.errors import RecordingError
from tropel.interop.pedpy import to_pedpy
from tropel.recording import People, read_trajectory
from tropel.recording.people import DIED


def report_of(path: Path, **options: float) -> EvacuationReport:
    with read_trajectory(path) as run:
        return evacuation_report(run, **options)


def line_people() -> People:
    """What the run of `in_line` would have said, if two had come at 3 s and the last had taken another exit."""
    return People.from_names(
        id=range(10),
        group=[0, 1] * 5,
        came=[0.0] * 8 + [3.0, 3.0],
        gone=5.0 + 2.0 * np.arange(10),
        fate=["left"] * 10,
        through=["east"] * 9 + ["north"],
    )


def test_a_line_of_people_leaves_at_its_own_pace(tmp_path: Path) -> None:
    world = scene(LONG_ROOM)
    report = report_of(record(tmp_path / "line.sqlite", in_line, frames=260, world=world, people=line_people()))
    assert report.exact
    assert (report.agents, report.left, report.remaining, report.died) == (10, 10, 0, 0)
    east, north = report.exits
    assert (east.name, east.count, east.share) == ("east", 9, 0.9)
    assert (east.first, east.last, east.mean) == (5.0, 21.0, 13.0)
    assert east.flow == pytest.approx(0.5)  # a person every two seconds
    assert east.width == 2.0
    assert east.specific_flow == pytest.approx(0.25)
    assert (north.count, north.first) == (1, 23.0)
    assert np.isnan(north.flow)
    assert report.needed.tolist() == [5, 7, 9, 11, 13, 15, 17, 19, 18, 20]
    assert [report.needed_by(p) for p in (50, 90, 95, 100)] == [13, 19, 20, 20]
    assert [report.out_by(p) for p in (50, 90, 95, 100)] == [13, 21, 23, 23]
    curve = report.evacuated
    assert curve.times.tolist() == [0, *range(5, 24, 2), 25.9]
    assert curve.total.tolist() == [*range(11), 10]
    assert curve.by_exit["east"].tolist() == [*range(10), 9, 9]
    assert curve.by_exit["north"].tolist() == [0] * 10 + [1, 1]


def test_frames_tell_what_a_killed_run_did_not_say(tmp_path: Path) -> None:
    report = report_of(record(tmp_path / "killed.sqlite", in_line, frames=160, world=scene(LONG_ROOM)))
    assert not report.exact
    assert (report.left, report.remaining) == (6, 4)
    assert report.people.place_names() == ["east"] * 6 + [""] * 4
    np.testing.assert_allclose(report.people.gone[:6], 5.0 + 2.0 * np.arange(6))
    assert report.people.group.tolist() == [0, 1] * 5
    assert report.out_by(50) == pytest.approx(13.0)
    assert np.isnan(report.out_by(95))


def test_the_nearest_exit_is_the_one_that_frames_tell(tmp_path: Path) -> None:
    def where(time: float):
        return ([0, 1], [[18.8, 4.5], [6.0, 8.9]]) if time < 0.45 else ([], [])

    assert report_of(record(tmp_path / "two.parquet", where, frames=8)).people.place_names() == ["east", "north"]


def test_somebody_who_comes_back_is_still_there(tmp_path: Path) -> None:
    def where(time: float):
        return ([3, 8], [[5.0, 5.0], [6.0, 5.0]]) if time < 0.15 or time > 0.45 else ([3], [[5.0, 5.0]])

    report = report_of(record(tmp_path / "back.sqlite", where, frames=8))
    assert report.people.id.tolist() == [3, 8]
    assert (report.left, report.remaining) == (0, 2)


def test_deaths_are_counted_over_time_and_are_no_departures(tmp_path: Path) -> None:
    people = People.from_names(
        id=[0, 1, 2, 3, 4],
        group=[0] * 5,
        came=[0.0] * 5,
        gone=[1.0, 2.0, 3.0, np.nan, np.nan],
        fate=["died", "left", "died", "there", "removed"],
        through=["", "east", "", "", ""],
    )

    def where(time: float):
        return [0, 2, 3], [[3.0, 3.0], [4.0, 4.0], [5.0, 5.0]]

    report = report_of(record(tmp_path / "fire.sqlite", where, frames=50, people=people))
    assert (report.left, report.died, report.remaining, report.removed) == (1, 2, 1, 1)
    assert report.evacuated.times.tolist() == [0, 1, 2, 3, 4.9]
    assert report.evacuated.died.tolist() == [0, 1, 1, 2, 2]
    assert report.evacuated.total.tolist() == [0, 0, 1, 1, 1]
    assert np.isnan(report.needed[[0, 2, 3, 4]]).all()
    assert "died" in str([cell for column in report.table().columns for cell in column.cells])


def test_nobody_leaving_is_a_report_too(tmp_path: Path) -> None:
    report = report_of(record(tmp_path / "stay.sqlite", lambda t: ([0], [[5.0, 5.0]]), frames=5))
    assert report.left == 0
    assert [use.count for use in report.exits] == [0, 0]
    assert np.isnan(report.needed_by(50))
    assert report.table().row_count


@pytest.mark.parametrize(("frames", "words"), [(0, "has no frames"), (4, "has no agents in any frame")])
def test_a_run_without_people_is_an_error(tmp_path: Path, frames: int, words: str) -> None:
    path = record(tmp_path / "empty.sqlite", lambda t: ([], np.zeros((0, 2))), frames=frames)
    with pytest.raises(RecordingError, match=words):
        report_of(path)


def test_targets_are_places_to_leave_through(tmp_path: Path) -> None:
    world = scene(exits={}, targets={"gate": {"position": [1.0, 1.0]}, "bar": {"position": [9.0, 9.0]}})

    def where(time: float):
        return ([0, 1], [[1.2, 1.0], [8.5, 9.0]]) if time < 0.25 else ([], [])

    report = report_of(record(tmp_path / "targets.sqlite", where, frames=5, world=world))
    assert sorted((use.name, use.count) for use in report.exits) == [("bar", 1), ("gate", 1)]
    assert all(np.isnan(use.width) for use in report.exits)


def test_a_run_in_three_dimensions_is_seen_from_above(tmp_path: Path) -> None:
    world = scene(dim=3, bounds=[[0.0] * 3, [4.0, 4.0, 9.0]], walkable_wkt="", exits={})
    path = record(tmp_path / "air.parquet", lambda t: ([0, 1], [[0.5, 0.5, 1], [0.5, 0.5, 8]]), frames=3, world=world)
    assert report_of(path).maps.mean_density[0, 0] == 2.0


@pytest.fixture(scope="module")
def real_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("real") / "room.sqlite"
    world = tropel.World(shapely.box(0, 0, 12, 8), exits={"east": shapely.box(11, 3, 12, 5)})
    people = tropel.Group("people", count=40, region=shapely.box(0, 0, 8, 8), desired_speed=tropel.Normal(1.3, 0.2))
    # A frame every step, so that PedPy sees every one, and nobody is seen after having reached the exit.
    sim = tropel.Simulation(world, people, local=tropel.Walk(walk_on=0.0), dt=0.1, seed=3)
    summary = sim.run(until="empty", limit=120.0, record=path)
    assert summary.evacuated == 40
    return path


def test_times_agree_with_pedpy(real_run: Path) -> None:
    report = report_of(real_run)
    with read_trajectory(real_run) as run:
        data = to_pedpy(run).data
    last_seen = data.groupby("id").frame.max().sort_index().to_numpy() / FPS
    # Whoever is gone was in the frame before.
    np.testing.assert_allclose(report.people.gone, last_seen + 1.0 / FPS, atol=1e-9)


def test_the_curve_agrees_with_pedpys_n_t_curve(real_run: Path) -> None:
    import pedpy

    report = report_of(real_run)
    with read_trajectory(real_run) as run:
        # A line that everybody crosses half a metre before the exit, and so up to a second earlier.
        line = pedpy.MeasurementLine([(10.5, 0.0), (10.5, 8.0)])
        nt, _ = pedpy.compute_n_t(traj_data=to_pedpy(run), measurement_line=line)
    crossed = nt.time.to_numpy()[np.searchsorted(nt.cumulative_pedestrians.to_numpy(), np.arange(1, 41))]
    gone = np.sort(report.people.gone)
    assert np.all(gone >= crossed)
    assert np.median(gone - crossed) < 1.0


def test_the_frames_of_a_run_tell_nearly_what_the_run_says(real_run: Path) -> None:
    exact = report_of(real_run)
    with read_trajectory(real_run) as run:
        run.people = lambda: None  # type: ignore[method-assign]
        guessed = evacuation_report(run)
    np.testing.assert_allclose(guessed.people.gone, exact.people.gone, atol=1.0 / FPS + 1e-9)
    assert guessed.people.place_names() == exact.people.place_names()


@pytest.mark.parametrize("killed", [False, True])
def test_the_dead_of_a_fire_are_told_by_the_run_and_by_its_frames(tmp_path: Path, killed: bool) -> None:
    world = tropel.World(
        shapely.box(0, 0, 12, 4),
        exits={"out": shapely.box(11, 0, 12, 4)},
        hazards={"fire": tropel.Hazard(position=(2.0, 2.0), inner=1.0)},
    )
    sim = tropel.Simulation(
        world,
        tropel.Group("people", positions=[(2.0, 1.5), (2.5, 2.0), (8.0, 2.0), (9.0, 1.0)]),
        local=tropel.Walk(walk_on=0.0),
        seed=1,
    )
    sim.run(until="empty", limit=30, record=tmp_path / "fire.sqlite")
    if killed:
        with sqlite3.connect(tmp_path / "fire.sqlite") as file:
            file.execute("DROP TABLE tropel_people")
    report = report_of(tmp_path / "fire.sqlite")
    assert report.exact != killed
    # The last one leaves after the last frame, which therefore still shows it.
    assert (report.died, report.left, report.remaining) == ((2, 1, 1) if killed else (2, 2, 0))
    assert np.flatnonzero(report.people.fate == DIED).tolist() == [0, 1]
