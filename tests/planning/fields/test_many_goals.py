"""Fields to many goals: counted before they are made, drawn where they are, and with a word on how long it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Blend, FlowField, Group, Harmonic, PathPlans, Simulation, World
from tropel._kernels.grid_raster import fill_inside, fill_inside_part
from tropel.bench.planning_maps import long_maze
from tropel.errors import GeometryError
from tropel.foundation.long_work import listening
from tropel.local.lattice.cells import filter_tiles
from tropel.planning.fields import goals as field_goals
from tropel.planning.fields.planner import FieldPlanner
from tropel.planning.flow import path_plan
from tropel.planning.harmonic import field, solve_harmonic
from tropel.world.ground import Filter, Ground
from tropel.world.raster import rasterise
from tropel.world.shapes import segments_of

GOALS = 12


def _towards_all(planner: Any, side: float = 20.0) -> Simulation:
    world = World(shapely.box(0, 0, side, side), targets={f"t{k}": (1.0 + k, 3.0) for k in range(GOALS)})
    groups = [Group(f"g{k}", positions=[(1.0 + k, 10.0)], goal=f"t{k}") for k in range(GOALS)]
    return Simulation(world, groups, planning=planner)


@pytest.mark.parametrize(
    "planner",
    [FlowField(), Harmonic(cache=False), PathPlans(cell=0.2), Blend([(1.0, "flow_field"), (1.0, FlowField())])],
    ids=["flow field", "harmonic", "path plans", "blend"],
)
def test_fields_that_memory_cannot_hold_are_refused_before_one_is_solved(
    planner: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is enough for the raster and a field or two, but not for all."""
    for kind in (FieldPlanner, FlowField, Harmonic):
        monkeypatch.setattr(kind, "solve_many", lambda *_: pytest.fail("a field was solved"))
    cells = 100.0 * 100.0
    monkeypatch.setattr("tropel.foundation.memory.memory_available", lambda: cells * 300.0)
    with pytest.raises(
        GeometryError, match=r"fields to 12 goals on 100 × 100 cells of 0\.2 m would need .*cells of [\d.]+ m.*fewer"
    ):
        _towards_all(planner)


@pytest.mark.parametrize("planner", [FlowField(), Harmonic(cache=False), PathPlans(cell=0.2)])
def test_a_field_takes_no_more_than_is_asked_for(planner: Any) -> None:
    """Everything that is reachable from a plan after agents have followed it, shared parts left out."""
    sim = _towards_all(planner)
    sim.step()
    seen: dict[int, int] = {}

    def count(thing: Any) -> None:
        if isinstance(thing, np.ndarray):
            owner = thing
            while isinstance(owner.base, np.ndarray):
                owner = owner.base
            seen[id(owner)] = owner.nbytes
        elif isinstance(thing, tuple | list):
            for part in thing:
                count(part)
        elif hasattr(thing, "__dict__") and type(thing).__module__.startswith("tropel.planning"):
            for part in vars(thing).values():
                count(part)

    for plan in planner._plans.values():
        count(plan)
    per_cell = sum(seen.values()) / GOALS / planner._raster.free.size
    asked = planner.bytes_per_cell(2)
    assert 0.5 * asked < per_cell <= asked + 2.0


def test_a_part_of_a_raster_is_drawn_as_in_the_whole() -> None:
    random = np.random.default_rng(1)
    raster = rasterise(World(shapely.box(-3.3, 2.1, 9, 14)), cell=0.17, clearance=0.0)
    for _ in range(50):
        polygon = shapely.Polygon(random.uniform((-3, 2.5), (9, 14), (3, 2))).buffer(0.0)
        whole = np.empty(raster.shape, dtype=np.uint8)
        fill_inside(segments_of(polygon), raster.origin, raster.cell, whole)
        low, high = np.asarray(polygon.bounds).reshape(2, 2)
        first, last = raster.index_of(low - raster.cell), raster.index_of(high + raster.cell)
        part = np.empty(tuple(last - first + 1), dtype=np.uint8)
        fill_inside_part(segments_of(polygon), raster.origin, raster.cell, *first.tolist(), part)
        drawn = np.zeros_like(whole)
        drawn[first[0] : last[0] + 1, first[1] : last[1] + 1] = part
        np.testing.assert_array_equal(drawn, whole)


def test_an_exit_is_drawn_where_it_is_and_not_on_the_whole_map(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = 0
    fill = field_goals.fill_inside_part

    def counted(*told: Any) -> None:
        nonlocal drawn
        drawn += told[-1].size
        fill(*told)

    monkeypatch.setattr(field_goals, "fill_inside_part", counted)
    exits = {f"e{k}": shapely.box(2 + 4 * k, 0, 4 + 4 * k, 1) for k in range(20)}
    world = World(shapely.box(0, 0, 100, 100), exits=exits)
    raster = rasterise(world, cell=0.5)
    cells = field_goals.goal_cells(np.arange(20), world, raster, strict=True)
    assert cells.sum() >= 20
    assert drawn < 20 * 100


# Layers ---------------------------------------------------------------------------------------------------------


def _filter(row: int, column: int, shape: tuple[int, int]) -> Filter:
    return Filter(row=row, column=column, log_value=np.zeros(shape))


def test_tiles_list_the_filters_that_reach_into_them_in_their_order() -> None:
    random = np.random.default_rng(0)
    shape = (100, 70)
    filters = []
    for _ in range(40):
        low = random.integers(0, shape)
        size = random.integers(1, np.array(shape) - low + 1)
        filters.append(_filter(*low.tolist(), tuple(size.tolist())))
    tiles = filter_tiles(filters, shape)
    for tile in range(len(tiles.start) - 1):
        top, left = divmod(tile, tiles.across)
        expected = [
            number
            for number, each in enumerate(filters)
            if max(each.row - 1, 0) // 16 <= top <= min(each.row + each.log_value.shape[0], 99) // 16
            and max(each.column - 1, 0) // 16 <= left <= min(each.column + each.log_value.shape[1], 69) // 16
        ]
        assert tiles.items[tiles.start[tile] : tiles.start[tile + 1]].tolist() == expected


def test_layers_that_memory_cannot_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    raster = rasterise(World(shapely.box(0, 0, 10, 10)), cell=0.5)
    ground = Ground(raster=raster, moves=np.zeros(raster.shape, dtype=np.uint8), log_gamma=-0.5)
    monkeypatch.setattr("tropel.world.ground._UNASKED", 10_000)
    monkeypatch.setattr("tropel.foundation.memory._UNASKED", 0.0)
    monkeypatch.setattr("tropel.foundation.memory.memory_available", lambda: 100_000.0)

    def lay_all() -> None:
        for number in range(100):
            ground.set_filter(f"layer {number}", _filter(0, 0, raster.shape))

    with pytest.raises(GeometryError, match=r"\d+ hazards and value maps on cells of 0\.5 m would need .*; use larger"):
        lay_all()
    assert 5 < len(ground.filters) < 25
    for number in range(3):
        ground.drop_filter(f"layer {number}")
        ground.set_filter(f"another {number}", _filter(0, 0, raster.shape))


# Progress -------------------------------------------------------------------------------------------------------


def test_sweeps_say_how_far_they_have_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(field, "_DIRECT_IN_3D", 0)
    free = np.ones((20, 20, 20), dtype=np.bool_)
    goal = np.zeros_like(free)
    goal[10, 10, 10] = True
    told: list[tuple[str, float, float]] = []
    with listening(lambda *said: told.append(said)):
        silent = solve_harmonic(free, goal)
    shares = [done / total for what, done, total in told if "sweeps" in what]
    assert len(shares) >= 2
    assert shares[-1] == pytest.approx(1.0)
    assert all(0.0 <= share <= 1.0 for share in shares)
    np.testing.assert_array_equal(silent, solve_harmonic(free, goal))


def test_a_direct_solution_says_how_far_it_has_come() -> None:
    """After each of its bands, of which a long maze has many."""
    free, goal = long_maze(120, 30)
    told: list[float] = []
    with listening(lambda what, done, total: told.append(done / total) if "elimination" in what else None):
        heard = solve_harmonic(free, goal)
    assert len(told) > 5
    assert told == sorted(told)
    assert told[0] == 0.0
    assert told[-1] == 1.0
    np.testing.assert_array_equal(solve_harmonic(free, goal), heard)


def test_fields_say_which_of_them_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_plan.os, "cpu_count", lambda: 1)
    told: list[tuple[str, float, float]] = []
    with listening(lambda *said: told.append(said)):
        _towards_all(FlowField())
        assert ("shortest paths to goals", 4, GOALS) in told
        _towards_all(Harmonic(cache=False))
    assert ("Harmonic: fields", 5, GOALS) in told
