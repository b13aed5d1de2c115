"""Voronoi densities, compared with PedPy's on the same positions, and with areas that are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pedpy
import pytest
import shapely
from made_runs import record

from tropel import CollisionFreeSpeed, Group, Simulation, World, read_trajectory
from tropel.analysis import evacuation_report, report_tables, voronoi_cells
from tropel.analysis.voronoi import MOST_FRAMES, areas_in_squares
from tropel.errors import ParameterError
from tropel.interop.pedpy import to_pedpy

#: Areas are sums and differences of products of coordinates of some ten metres; shares of them agree to this.
ROUNDING = 1e-9

#: An L with a pillar: two arms that see each other only around a corner.
L_ROOM = shapely.Polygon([(0, 0), (12, 0), (12, 4), (4, 4), (4, 12), (0, 12)]) - shapely.box(1.5, 1.5, 2.5, 2.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty people leave the L."""
    path = tmp_path_factory.mktemp("voronoi") / "run.sqlite"
    world = World(L_ROOM, exits={"out": shapely.box(11, 0, 12, 4)})
    group = Group("people", count=40, region=shapely.box(0, 3, 4, 12))
    Simulation(world, group, dt=0.05, seed=4, threads=1).run(until=9.0, record=path, fps=5)
    return path


@pytest.mark.parametrize("cut_off", [None, 0.8])
def test_densities_of_a_recorded_run_are_those_of_pedpy(run: Path, cut_off: float | None) -> None:
    area = pedpy.WalkableArea(L_ROOM)
    measured = shapely.box(1.0, 5.0, 3.0, 8.0)
    with read_trajectory(run) as recorded:
        limit = None if cut_off is None else pedpy.Cutoff(radius=cut_off)
        cells = pedpy.compute_individual_voronoi_polygons(
            traj_data=to_pedpy(recorded), walkable_area=area, cut_off=limit
        )
        theirs, _ = pedpy.compute_voronoi_density(
            individual_voronoi_data=cells, measurement_area=pedpy.MeasurementArea(measured)
        )
        by_frame = dict(zip(theirs["frame"].tolist(), theirs["density"].tolist(), strict=True))
        compared = 0
        for number in recorded.frames[::4].tolist():
            frame = recorded.frame(number)
            ours = voronoi_cells(frame.position, L_ROOM, cut_off=cut_off)
            rows = cells[cells["frame"] == number].set_index("id")["density"]
            np.testing.assert_allclose(ours.density, rows.loc[frame.id].to_numpy(), rtol=ROUNDING)
            assert ours.density_in(measured) == pytest.approx(by_frame[number], rel=ROUNDING, abs=ROUNDING)
            compared += len(frame.id)
    assert compared > 200


def test_the_map_of_a_report_is_the_mean_of_pedpy_s_densities_of_its_cells(run: Path) -> None:
    with read_trajectory(run) as recorded:
        found = evacuation_report(recorded, cell=2.0).voronoi
        cells = pedpy.compute_individual_voronoi_polygons(
            traj_data=to_pedpy(recorded), walkable_area=pedpy.WalkableArea(L_ROOM)
        )
        assert found is not None
        assert len(found.times) == found.frames == len(recorded.frames)
    for row, column in ((2, 0), (3, 1), (5, 0), (0, 2), (1, 4)):  # whole squares, without the pillar
        square = shapely.box(2.0 * column, 2.0 * row, 2.0 * column + 2.0, 2.0 * row + 2.0)
        theirs, _ = pedpy.compute_voronoi_density(
            individual_voronoi_data=cells, measurement_area=pedpy.MeasurementArea(square)
        )
        assert found.mean_density[row, column] == pytest.approx(theirs["density"].mean(), rel=ROUNDING)
        assert found.peak_density[row, column] == pytest.approx(theirs["density"].max(), rel=ROUNDING)
    assert found.mean_density[5, 5] == 0.0  # beyond the walls
    mean = cells.groupby("frame")["density"].mean()
    np.testing.assert_allclose(found.mean_of_people, mean.to_numpy(), rtol=ROUNDING)
    assert found.mean == pytest.approx(cells["density"].mean(), rel=ROUNDING)
    assert found.highest == pytest.approx(cells["density"].max(), rel=ROUNDING)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_people_are_as_in_pedpy(count: int) -> None:
    places = np.array([(1.0, 1.0), (7.0, 2.0), (2.0, 9.0)])[:count]
    data = pandas.DataFrame({"id": range(count), "frame": 0, "x": places[:, 0], "y": places[:, 1]})
    theirs = pedpy.compute_individual_voronoi_polygons(
        traj_data=pedpy.TrajectoryData(data=data, frame_rate=1.0), walkable_area=pedpy.WalkableArea(L_ROOM)
    )
    ours = voronoi_cells(places, L_ROOM)
    np.testing.assert_allclose(ours.density, theirs["density"].to_numpy(), rtol=ROUNDING)


def test_people_in_a_line_have_strips() -> None:
    ours = voronoi_cells(np.array([(1.0, 5.0), (3.0, 5.0), (7.0, 5.0)]), shapely.box(0, 0, 10, 10))
    assert 1.0 / ours.density == pytest.approx([20.0, 30.0, 50.0])


def test_people_at_one_point_share_their_cell() -> None:
    together = voronoi_cells(np.array([(2.0, 5.0), (8.0, 5.0), (8.0, 5.0)]), shapely.box(0, 0, 10, 10))
    assert together.density == pytest.approx([1 / 50, 2 / 50, 2 / 50])
    assert together.density_in(shapely.box(6, 0, 10, 10)) == pytest.approx(2 / 50)
    heap = voronoi_cells(np.full((5, 2), 3.0), shapely.box(0, 0, 10, 10))
    assert heap.density == pytest.approx([0.05] * 5)


def test_people_outside_have_no_cell_and_take_no_room() -> None:
    area = shapely.box(0, 0, 10, 10)
    ours = voronoi_cells(np.array([(5.0, 5.0), (11.0, 5.0), (np.nan, 2.0)]), area)
    assert ours.density[0] == pytest.approx(0.01)
    assert np.isnan(ours.density[1:]).all()
    assert voronoi_cells(np.array([(11.0, 5.0)]), area).density_in(area) == 0.0
    assert len(voronoi_cells(np.empty((0, 2)), area).density) == 0


def test_of_disconnected_rooms_the_one_with_the_person_counts() -> None:
    rooms = shapely.MultiPolygon([shapely.box(0, 0, 4, 4), shapely.box(5, 0, 9, 4)])
    one = voronoi_cells(np.array([(1.0, 2.0)]), rooms)
    assert one.density == pytest.approx([1 / 16])
    both = voronoi_cells(np.array([(3.9, 2.0), (8.0, 2.0)]), rooms)
    # The line between them, at x = 5.95, cuts a strip off the second room that belongs to nobody.
    assert both.density == pytest.approx([1 / 16, 1 / (4 * 3.05)])


@pytest.mark.parametrize("cut_off", [0.0, -1.0, float("nan"), float("inf")])
def test_a_cut_off_must_be_a_length(cut_off: float, run: Path) -> None:
    with pytest.raises(ParameterError, match="cut_off"):
        voronoi_cells(np.ones((2, 2)), L_ROOM, cut_off=cut_off)
    with read_trajectory(run) as recorded, pytest.raises(ParameterError, match="cut_off"):
        evacuation_report(recorded, cut_off=cut_off)


def test_long_runs_are_sampled_and_say_so(tmp_path: Path) -> None:
    frames = 2 * MOST_FRAMES
    path = record(tmp_path / "long.sqlite", lambda time: ([1, 2], [(5.0, 5.0), (15.0, 5.0)]), frames=frames)
    with read_trajectory(path) as recorded:
        report = evacuation_report(recorded)
    assert report.voronoi is not None
    assert len(report.voronoi.times) == MOST_FRAMES
    assert report.voronoi.times[[0, -1]] == pytest.approx([0.0, (frames - 1) / 10.0])
    assert report.voronoi.frames_in_words == f"{MOST_FRAMES} of {frames} frames"
    assert report.voronoi.mean == pytest.approx(1 / 100)
    tables = report_tables(report)
    assert len(tables["voronoi_people"]["time"]) == MOST_FRAMES
    assert tables["voronoi"]["mean"] == pytest.approx(np.full(200, 1 / 100))


def test_where_space_repeats_there_are_none(tmp_path: Path) -> None:
    path = tmp_path / "ring.sqlite"
    world = World.box((0.0, 0.0), (20.0, 10.0), periodic="x")
    people = Group("people", count=4, goal="none", sense_radius=2.0)
    Simulation(world, people, local=CollisionFreeSpeed(), dt=0.1).run(until=0.3, record=path)
    with read_trajectory(path) as recorded:
        report = evacuation_report(recorded)
    assert report.voronoi is None
    assert not [name for name in report_tables(report) if name.startswith("voronoi")]


@pytest.mark.parametrize("seed", range(5))
def test_areas_in_squares_are_those_of_shapely(seed: int) -> None:
    random = np.random.default_rng(seed)
    blobs = shapely.buffer(shapely.points(random.uniform(0, 5, (30, 2))), random.uniform(0.1, 2.0, 30))
    holes = shapely.buffer(shapely.points(random.uniform(0, 5, (30, 2))), random.uniform(0.1, 1.0, 30))
    boxes = shapely.box(*random.integers(0, 3, (2, 30)), *random.integers(3, 6, (2, 30)))  # edges along the squares
    parts = shapely.get_parts(np.concatenate([shapely.difference(blobs, holes), boxes, shapely.reverse(boxes)]))
    polygons = parts[shapely.area(parts) > 0.0]
    which, number = (values.reshape(-1) for values in np.mgrid[: len(polygons), :36])
    corners = np.column_stack([number % 6, number // 6]) - 0.5 * (seed % 2)
    squares = shapely.box(*corners.T, *(corners + 1.0).T)
    expected = shapely.area(shapely.intersection(polygons[which], squares))
    np.testing.assert_allclose(areas_in_squares(polygons, which, corners, 1.0), expected, atol=1e-12)
