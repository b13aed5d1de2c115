"""Density and flow of crowds for which both are known, and of random ones beside a recount."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from made_runs import FPS, record, scene

from tropel.analysis import CrowdMaps, evacuation_report
from tropel.errors import ParameterError
from tropel.recording import Scene, read_trajectory


def maps_of(
    path: Path,
    where: Callable[[float], tuple[Any, Any]],
    *,
    frames: int,
    cell: float = 1.0,
    world: Scene | None = None,
    radius: float = 0.2,
) -> CrowdMaps:
    with read_trajectory(record(path, where, frames=frames, world=world, radius=radius)) as run:
        return evacuation_report(run, cell=cell).maps


def grid_of_people(step: float, low: float, high: float) -> np.ndarray:
    places = np.arange(low + step / 2, high, step)
    return np.stack(np.meshgrid(places, places), axis=-1).reshape(-1, 2)


def test_the_density_of_a_standing_grid_is_exact(tmp_path: Path) -> None:
    places = grid_of_people(0.5, 2.0, 8.0)
    maps = maps_of(tmp_path / "grid.sqlite", lambda t: (range(len(places)), places), frames=4)
    wanted = np.zeros((10, 20))
    wanted[2:8, 2:8] = 4.0
    np.testing.assert_array_equal(maps.mean_density, wanted)
    np.testing.assert_array_equal(maps.peak_density, wanted)
    assert not maps.flow.any()
    assert maps.there.tolist() == [144] * 4
    assert (maps.x[0], maps.y[-1]) == (0.5, 9.5)


def test_only_cells_above_four_per_square_metre_are_crowded(tmp_path: Path) -> None:
    def where(time: float):
        places = grid_of_people(0.5 if time < 0.15 else 0.25, 2.0, 4.0)
        return range(len(places)), places

    maps = maps_of(tmp_path / "crowded.sqlite", where, frames=4, radius=0.1)
    assert maps.crowded_area.tolist() == [0.0, 0.0, 4.0, 4.0]
    assert maps.peak_density.max() == 16.0


def test_the_mean_is_over_the_time_somebody_was_there(tmp_path: Path) -> None:
    def where(time: float):
        return ([0, 1], [[2.5, 2.5], [2.5 if time < 0.15 else 7.5, 7.5]]) if time < 0.35 else ([], np.zeros((0, 2)))

    maps = maps_of(tmp_path / "some.sqlite", where, frames=40)
    assert maps.mean_density[2, 2] == 1.0
    assert maps.mean_density[7, 2] == maps.mean_density[7, 7] == 0.5


@pytest.mark.parametrize("cell", [1.0, 2.0])
def test_the_flow_of_a_uniform_stream_is_density_times_speed(tmp_path: Path, cell: float) -> None:
    """Rows half a metre apart, people half a metre apart in each, all walk east and new ones follow."""
    speed, gap, rows = 1.25, 0.5, np.arange(0.25, 10.0, 0.5)

    def where(time: float):
        first = np.arange(-400, 400)
        x = gap * first + 0.01 + speed * time
        inside = (x >= 0.0) & (x < 20.0)
        ids = (first[inside, None] + 400) * len(rows) + np.arange(len(rows))
        places = np.stack(np.broadcast_arrays(x[inside, None], rows), axis=-1)
        return ids.ravel(), places.reshape(-1, 2)

    maps = maps_of(tmp_path / "stream.sqlite", where, frames=81, cell=cell)
    inner = (slice(None), slice(2, -2))
    np.testing.assert_allclose(maps.mean_density[inner], 4.0, rtol=0.02)
    np.testing.assert_allclose(maps.flow[inner][..., 0], 4.0 * speed, rtol=0.02)
    np.testing.assert_allclose(maps.flow[inner][..., 1], 0.0, atol=1e-12)


def test_a_walk_through_a_cell_carries_its_length(tmp_path: Path) -> None:
    """One person crosses the room in 20 s: what flows through each metre is the person once in 20 s."""

    def where(time: float):
        return [0], [[time, 5.5]]

    maps = maps_of(tmp_path / "one.sqlite", where, frames=201)
    np.testing.assert_allclose(maps.flow[5, 1:-1, 0], 1.0 / 20.0, rtol=1e-9)
    np.testing.assert_allclose(maps.flow_strength.sum(), 1.0, rtol=1e-9)


def test_opposite_streams_cancel(tmp_path: Path) -> None:
    def where(time: float):
        return [0, 1], [[5.0 + time, 5.5], [9.0 - time, 5.5]]

    maps = maps_of(tmp_path / "both.sqlite", where, frames=41)
    np.testing.assert_allclose(maps.flow[5, 6:8], 0.0, atol=1e-12)


def shares(place: np.ndarray, radius: float, cell: float) -> np.ndarray:
    """How much of the square around a body lies in each of 4 × 8 cells; what is outside belongs to those beside."""
    body = shapely.box(*(place - radius), *(place + radius))
    found = np.zeros((4, 8))
    for row in range(-1, 5):
        for column in range(-1, 9):
            part = shapely.box(column * cell, row * cell, (column + 1) * cell, (row + 1) * cell).intersection(body)
            found[min(max(row, 0), 3), min(max(column, 0), 7)] += part.area / body.area
    return found


def test_a_full_lattice_has_the_same_density_everywhere(tmp_path: Path) -> None:
    """Of cells of 0.4 m, some metres hold four centres and some nine."""
    places = grid_of_people(0.4, 0.0, 10.0)
    maps = maps_of(tmp_path / "lattice.sqlite", lambda t: (range(len(places)), places), frames=2)
    np.testing.assert_allclose(maps.peak_density[:, :10], 6.25, rtol=1e-9)
    assert not maps.peak_density[:, 10:].any()


def test_random_crowds_that_come_and_go_equal_a_recount(tmp_path: Path) -> None:
    def where(time: float):
        random = np.random.default_rng(round(time * FPS))
        ids = np.flatnonzero(random.random(60) < 0.7)
        return ids, random.uniform([0.0, 0.0], [20.0, 10.0], (60, 2))[ids]

    cell, frames = 2.5, 12
    maps = maps_of(tmp_path / "random.parquet", where, frames=frames, cell=cell)
    count = np.zeros((frames, 4, 8))
    flow = np.zeros((4, 8, 2))
    seen = [dict(zip(*map(list, where(k / FPS)), strict=True)) for k in range(frames)]
    for k in range(frames):
        for place in seen[k].values():
            count[k] += shares(place, 0.2, cell) / cell**2
        for person, place in seen[k].items():
            if k and person in seen[k - 1]:
                middle = (place + seen[k - 1][person]) / 2
                step = place - seen[k - 1][person]
                flow += shares(middle, 0.2, cell)[:, :, None] * step / cell**2 / ((frames - 1) / FPS)
    np.testing.assert_allclose(maps.mean_density, count.mean(axis=0), atol=1e-9)
    np.testing.assert_allclose(maps.peak_density, count.max(axis=0), atol=1e-9)
    np.testing.assert_allclose(maps.flow, flow, atol=1e-9)


def test_of_a_cell_that_a_wall_cuts_the_floor_counts_and_at_least_half(tmp_path: Path) -> None:
    """The floor is 9.75 m × 9.25 m of a map that is larger by the wall."""
    world = scene(shapely.box(0.25, 0.0, 10.0, 9.25), bounds=[[0.0, 0.0], [10.0, 10.0]], exits={})

    def where(time: float):
        return [0, 1, 2], [[0.5, 5.5], [5.5, 5.5], [5.5, 9.15]]

    maps = maps_of(tmp_path / "cut.sqlite", where, frames=2, world=world, radius=0.1)
    assert maps.mean_density[5, 0] == pytest.approx(1.0 / 0.75)
    assert maps.mean_density[5, 5] == 1.0
    assert maps.mean_density[9, 5] == 2.0


def test_who_is_on_the_border_or_beyond_is_not_counted_twice(tmp_path: Path) -> None:
    def where(time: float):
        return [0, 1, 2, 3], [[20.0, 10.0], [0.0, 0.0], [20.5, 5.0], [3.0, -0.1]]

    maps = maps_of(tmp_path / "border.sqlite", where, frames=3)
    assert maps.mean_density[-1, -1] == maps.mean_density[0, 0] == 1.0
    assert maps.mean_density.sum() == 2.0
    assert maps.outside == 6


@pytest.mark.parametrize("cell", [0.0, -1.0, np.nan, np.inf, 1e-4])
def test_cells_that_make_no_map_are_refused(tmp_path: Path, cell: float) -> None:
    with pytest.raises(ParameterError, match="cell"):
        maps_of(tmp_path / "bad.sqlite", lambda t: ([0], [[1.0, 1.0]]), frames=2, cell=cell)


def test_the_classic_density_of_pedpy_is_the_number_in_the_cells_over_their_area(tmp_path: Path) -> None:
    import pedpy

    from tropel.interop.pedpy import to_pedpy

    def where(time: float):
        return range(50), np.random.default_rng(round(time * FPS)).uniform([0.0, 0.0], [20.0, 10.0], (50, 2))

    path = record(tmp_path / "classic.sqlite", where, frames=10, radius=1e-9)
    with read_trajectory(path) as run:
        maps = evacuation_report(run, cell=5.0).maps
        area = pedpy.MeasurementArea([(5, 5), (10, 5), (10, 10), (5, 10)])
        density = pedpy.compute_classic_density(traj_data=to_pedpy(run), measurement_area=area)
    assert maps.mean_density[1, 1] == pytest.approx(density.density.mean())
    assert maps.peak_density[1, 1] == pytest.approx(density.density.max())
