"""Headways: cells stay empty for a while after agents have left them, so that crowds flow like people."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import shapely

from tropel import Group, Lattice, Obstacle, PathPlans, Simulation, World
from tropel.errors import CheckpointError, ParameterError
from tropel.local.lattice.widths import width_shares
from tropel.world.raster import cells_now

CELL = 0.4


@pytest.fixture(scope="module")
def measure() -> ModuleType:
    """The script that the tables in docs/measurements.md come from."""
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "lattice_flow.py"
    spec = importlib.util.spec_from_file_location("lattice_flow", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# Flow -------------------------------------------------------------------------------------------------------------


def test_doors_let_as_many_people_pass_as_in_experiments(measure: ModuleType) -> None:
    doors = [(0.8, 0.0), (1.0, 0.0), (1.0, 0.15), (1.2, 0.0), (1.6, 0.1), (2.5, 0.0)]
    ratios = np.array(
        [
            measure.door_flow(width, seed=seed, offset=offset, dt=0.2) / (1.92 * width - 0.07)
            for width, offset in doors
            for seed in (11, 12)
        ]
    )
    assert np.mean(np.abs(ratios - 1.0) < 0.2) >= 0.9
    assert abs(ratios.mean() - 1.0) < 0.1


def test_by_the_papers_rule_they_let_half_as_many_more_pass(measure: ModuleType) -> None:
    assert all(measure.door_flow(width, seed=11, dt=0.2, headway=0.0) > 1.5 * 1.92 * width for width in (0.8, 1.6))


def test_flow_grows_with_the_width_within_a_cell(measure: ModuleType) -> None:
    """All three doors are two cells wide."""
    flows = [np.mean([measure.door_flow(width, seed=s, dt=0.2) for s in (11, 12, 13)]) for width in (0.8, 1.0, 1.2)]
    assert flows[0] * 1.08 < flows[1]
    assert flows[1] * 1.08 < flows[2]


def test_speed_falls_with_density_along_weidmanns_curve(measure: ModuleType) -> None:
    off = []
    for density in (0.5, 1.0, 1.5, 2.0, 3.0, 4.5):
        for seed in (11, 12):
            found, speed = measure.corridor(density, seed=seed, dt=0.2)
            off.append(abs(speed - measure.weidmann(found)))
    assert max(off) < 0.2
    assert np.mean(np.array(off) < 0.12) >= 0.8
    found, speed = measure.corridor(2.0, seed=11, dt=0.1, headway=0.0)
    assert speed > measure.weidmann(found) + 0.4, "by the paper's rule"


# The time that a cell is closed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("headway", "spread", "dt"), [(0.7, 0.0, 0.2), (0.7, 0.3, 0.1), (1.1, 1.0, 0.25)])
def test_the_time_that_cells_stay_closed_has_the_mean_and_the_spread_that_are_given(
    headway: float, spread: float, dt: float
) -> None:
    world = World(shapely.box(0, 0, 80, 20), exits={"end": shapely.box(79.6, 0, 80, 20)})
    model = Lattice(headway=headway, headway_spread=spread)
    sim = Simulation(world, Group("people", count=600, region=shapely.box(0, 0, 60, 20), goal="end"),
                     planning=PathPlans(), local=model, dt=dt, seed=5, threads=1)  # fmt: skip
    times = []
    for _ in range(30):
        before, step = sim.agents.position.copy(), sim.step_number
        sim.step()
        closed = dict(model.state()["closed_cells"].tolist())
        columns, rows = np.floor(before[(sim.agents.position != before).any(axis=1)] / CELL).astype(int).T
        times += [closed[(row + 2) * 204 + column + 2] - step for row, column in zip(rows, columns, strict=True)]
    seconds = dt * np.array(times)
    assert len(times) > 4000
    error = 5.0 * seconds.std() / math.sqrt(len(times))
    # An exponential part has its mean as its standard deviation; times are rounded to steps at random.
    if spread < 1.0:
        assert seconds.mean() == pytest.approx(headway, abs=error)
        assert seconds.min() >= headway * (1.0 - spread) - dt
    rounding2 = dt**2 * ((headway / dt) % 1.0) * (1.0 - (headway / dt) % 1.0) if spread == 0.0 else dt**2 / 6.0
    expected = math.sqrt((spread * headway) ** 2 + rounding2)
    assert seconds.std() == pytest.approx(expected, rel=0.1)


def test_larger_cells_stay_empty_for_less_time() -> None:
    """So that the flow per metre of width is the same."""
    per_metre = []
    for cell in (0.4, 0.5):
        model = Lattice(cell=cell)
        world = World(shapely.box(0, 0, 40 * cell, 30 * cell), exits={"end": shapely.box(39 * cell, 0, 40 * cell, 3)})
        sim = Simulation(world, Group("people", count=5), planning=PathPlans(cell=cell), local=model, dt=0.2)
        sim.step()
        seconds = model._headways.at(sim.ground.raster, world).seconds
        per_metre.append(1.0 / ((float(np.median(seconds)) + cell / 1.34) * cell))
    assert per_metre[0] == pytest.approx(per_metre[1])


def test_a_checkpoint_with_cells_outside_the_map_is_refused() -> None:
    world = World(shapely.box(0, 0, 4, 4), exits={"end": shapely.box(3.6, 0, 4, 4)})
    model = Lattice()
    Simulation(world, Group("people", count=5), planning=PathPlans(), local=model, dt=0.2).step()
    with pytest.raises(CheckpointError, match="outside this map"):
        model.restore({"closed_cells": np.array([[10**6, 3]])})


@pytest.mark.parametrize("wrong", [{"headway": -0.1}, {"headway": math.nan}, {"headway_spread": 1.1}])
def test_wrong_headways_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Lattice(**wrong)


# Widths -----------------------------------------------------------------------------------------------------------


def shares(world: World) -> tuple[np.ndarray, np.ndarray]:
    raster = cells_now(world, CELL)
    return raster.free, width_shares(raster, world).reshape(raster.shape)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("thick", [False, True])
def test_the_share_of_a_doors_cells_is_its_true_width(thick: bool, turned: bool) -> None:
    """A door of any width anywhere in a wall, thin or thick, across x or y."""
    generator = np.random.default_rng(7)
    for _ in range(25):
        width, low = float(generator.uniform(0.9, 3.5)), float(generator.uniform(2.0, 4.0))
        box = shapely.box(0, 0, 16, 8)
        if thick:
            floor, walls = box - shapely.box(8, 0, 8.4, low) - shapely.box(8, low + width, 8.4, 8), []
        else:
            floor, walls = box, [[(8, 0), (8, low)], [(8, low + width), (8, 8)]]
        if turned:
            floor, walls = shapely.transform(floor, lambda xy: xy[:, ::-1]), [[p[::-1] for p in w] for w in walls]
        free, share = shares(World(floor, walls=walls))
        free, share = (free.T, share.T) if turned else (free, share)
        cells = np.flatnonzero(free[:, 20])
        assert len(cells) > 0
        assert share[cells, 20] * len(cells) * CELL == pytest.approx(np.full(len(cells), width), rel=1e-5)
        # The cells before and behind the door have its share, those farther away do not.
        assert share[cells, 19] == pytest.approx(share[cells, 20])
        assert (share[:, :18] == 1.0).all()


def test_pillars_narrow_a_passage() -> None:
    gap = {"a": Obstacle(radius=0.3, position=(4.2, 2.1)), "b": Obstacle(radius=0.3, position=(4.2, 3.9))}
    free, share = shares(World(shapely.box(0, 0, 8, 6), obstacles=gap))
    between = np.flatnonzero(free[5:10, 10]) + 5
    assert share[between, 10] * len(between) * CELL == pytest.approx(np.full(len(between), 1.2), rel=1e-5)


def test_in_the_open_and_in_a_room_of_whole_cells_all_shares_are_one() -> None:
    for floor in (shapely.box(0, 0, 20, 20), shapely.box(0, 0, 4.0, 2.4)):
        assert shares(World(floor))[1] == pytest.approx(1.0)
