"""Worlds with many things in them: what is done for each does not grow with how many there are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Hazard, Obstacle, Orbit, World
from tropel._kernels import discs
from tropel.errors import GeometryError, ParameterError
from tropel.events.queue import step_at
from tropel.recording.recorder import steps_per_frame
from tropel.scenario import schema
from tropel.scenario.loading import Scenario, parse_scenario
from tropel.scenario.obstacles import add_columns
from tropel.world import hazards as hazard_module
from tropel.world import obstacles as obstacle_module
from tropel.world import wall_grid


def _calls(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, work: Callable[[], Any]) -> int:
    """How often a function is called meanwhile."""
    calls = 0
    original = getattr(where, name)

    def counted(*values: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return original(*values, **named)

    with monkeypatch.context() as patched:
        patched.setattr(where, name, counted)
        work()
    return calls


def _orbit(k: int) -> Orbit:
    return Orbit(center=(k % 10 + 1.0, k // 10 + 1.0), radius=0.1, period=4.0, phase=float(k))


def test_moving_obstacles_are_moved_once_each_when_a_world_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> None:
        World(bounds=(0, 0, 20, 20), obstacles={f"o{k}": Obstacle(radius=0.1, motion=_orbit(k)) for k in range(80)})

    assert _calls(monkeypatch, obstacle_module, "position_at", made) <= 3 * 80


@pytest.mark.parametrize("growth", [0.0, 0.1])
def test_hazards_are_measured_once_each_when_a_world_is_made(growth: float, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> None:
        hazards = {f"h{k}": Hazard(inner=0.1, growth=growth, position=(k % 10, k // 10)) for k in range(80)}
        World(bounds=(0, 0, 20, 20), hazards=hazards)

    assert _calls(monkeypatch, hazard_module.Hazard, "inner_after", made) <= 2 * 80


def test_things_added_together_are_those_added_one_by_one() -> None:
    obstacles = {
        f"o{k}": Obstacle(radius=0.1, motion=_orbit(k), type=f"sort {k % 3}")
        if k % 2
        else Obstacle(radius=0.2, position=(k, 1.0))
        for k in range(12)
    }
    hazards = {
        f"h{k}": Hazard(inner=0.1 + k, position=(1.0, k), kind=f"sort {k % 4}", growth=0.5)
        if k % 2
        else Hazard(inner=0.3, motion=_orbit(k))
        for k in range(12)
    }
    together = World(bounds=(0, 0, 20, 20), obstacles=obstacles, hazards=hazards)
    single = World(bounds=(0, 0, 20, 20))
    for name, obstacle in obstacles.items():
        single.obstacles.add(name, obstacle)
    for name, hazard in hazards.items():
        single.hazards.add(name, hazard)
    for world in (together, single):
        world.advance(1.5, 0.1)
        world.obstacles.remove("o3")
        world.hazards.remove("h5")
        world.advance(1.6, 0.1)
    assert together.obstacles.types == single.obstacles.types
    for one, other in ((together.obstacles, single.obstacles), (together.hazards, single.hazards)):
        assert one.names == other.names
        for column in ("position", "velocity", "type", "radius" if one is together.obstacles else "outer"):
            np.testing.assert_array_equal(getattr(one, column), getattr(other, column))
    assert together.obstacles.moving == single.obstacles.moving


def test_hazards_that_end_together_are_taken_away_together() -> None:
    hazards = {f"h{k}": Hazard(inner=0.1 + k, position=(k, 1.0), until=2.0 if k % 2 else None) for k in range(9)}
    world = World(bounds=(0, 0, 20, 20), hazards=hazards)
    world.advance(2.0, 0.1)
    assert world.hazards.names == ["h0", "h2", "h4", "h6", "h8"]
    assert world.hazards.inner.tolist() == pytest.approx([0.1, 2.1, 4.1, 6.1, 8.1])


def _scenario(world: str, groups: int = 1) -> Scenario:
    text = f'name = "much"\n[world]\nwalkable = {{ box = [0, 0, 40, 40] }}\n{world}\n'
    text += "\n".join(f'[[groups]]\nname = "g{k}"\ncount = 0\n' for k in range(groups))
    return parse_scenario(text, source="much.toml", folder=Path())


def test_many_holes_are_cut_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes = [f"{{ box = [{k % 10}, {k // 10}, {k % 10 + 0.5}, {k // 10 + 0.5}] }}" for k in range(200)]
    scenario = _scenario(f"holes = [{', '.join(boxes)}]")
    worlds: list[World] = []
    assert _calls(monkeypatch, shapely.Polygon, "difference", lambda: worlds.append(scenario.world())) == 1
    assert worlds[0].walkable is not None
    assert worlds[0].walkable.area == pytest.approx(1600 - 200 * 0.25)


def test_groups_of_a_file_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = _scenario("", groups=40)
    assert _calls(monkeypatch, schema.GroupSpec, "__eq__", lambda: scenario.build(threads=1)) == 0


# Cells that list what is near --------------------------------------------------------------------------------------


def test_discs_as_wide_as_the_world_are_not_listed_in_a_million_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discs, "_MOST_LISTED", 1 << 14)
    wide = {f"o{k}": Obstacle(radius=60.0, position=(50.0, 50.0)) for k in range(30)}
    world = World(bounds=(0, 0, 100, 100), obstacles={**wide, "small": Obstacle(radius=0.5, position=(3.0, 97.0))})
    grid = world.obstacles.grid(0.5)
    assert len(grid.items) <= 1 << 14
    cell = discs.disc_cell(np.array([[3.2, 97.2]]), 0, grid)
    assert 30 in grid.items[grid.start[cell] : grid.start[cell + 1]]


def test_walls_across_the_whole_world_are_listed_in_fewer_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wall_grid, "_MOST_LOOKS", 1e5)
    walls = [[(0.0, k), (100.0, 100.0 - k)] for k in range(40)]
    grid = World(bounds=(0, 0, 100, 100), walls=walls).wall_grid(0.25)
    assert wall_grid._cells_looked_at(grid.segments, grid.reach, 1.0 / grid.inverse_cell) <= 1e5


def test_columns_as_thin_as_a_hair_are_refused() -> None:
    with pytest.raises(GeometryError, match=r"1 columns of 8e\+12 balls each would need .*; use wider columns"):
        add_columns(World.box((0, 0, 0), (4, 4, 4)), "hair", radius=1e-12, places=[(1.0, 1.0)])


# Times -------------------------------------------------------------------------------------------------------------


def test_no_time_is_more_steps_away_than_can_be_counted() -> None:
    with pytest.raises(ParameterError, match="use a larger dt"):
        step_at(1e300, 1e-20)
    assert step_at(2.0**30, 2.0**-10) == 2**40


@pytest.mark.parametrize(("fps", "dt"), [(1e-300, 1e-300), (1e-200, 0.05), (5e-324, 1e-9)])
def test_frames_may_be_as_seldom_as_one_likes(fps: float, dt: float) -> None:
    assert steps_per_frame(fps, dt) == 10**15
