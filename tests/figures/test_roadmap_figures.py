"""GROUPS' tables and the sweep over moving obstacles, in small: their numbers, and that they are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from tropel.bench.roadmap import run_building, run_fields
from tropel.figures import roadmaps
from tropel.figures.roadmaps import cross_field, draw_moving_share, draw_table_41, draw_table_42


def quiet(what: str, done: float, total: float) -> None:
    """Nobody listens."""


def test_table_41_a_repair_costs_less_than_building_the_roadmap_anew(tmp_path: Path) -> None:
    adaptive, rebuilding = run_fields(2)
    assert adaptive["frames"] == rebuilding["frames"] == 1000
    assert adaptive["reconnections"] > 5
    assert rebuilding["reconnections"] > 5
    # Counts are the same on every machine; times are not.
    assert rebuilding["other_tests"] > 3 * adaptive["other_tests"]
    (path,) = draw_table_41(tmp_path / "table.png", quiet, layouts=1)
    with Image.open(path) as picture:
        assert picture.size[0] > 900


def test_table_42_doors_that_change_cost_next_to_nothing_with_rooms(tmp_path: Path) -> None:
    flat, rooms = run_building(4)
    assert rooms["nodes"] == 24  # a portal for each door between 4 × 4 rooms
    assert flat["nodes"] == 640
    assert flat["tests"] > 20 * rooms["tests"]
    (path,) = draw_table_42(tmp_path / "table.png", quiet, side=3)
    with Image.open(path) as picture:
        assert picture.size[0] > 900


@pytest.mark.parametrize("predict", [True, False])
def test_leaders_arrive_while_few_obstacles_move(predict: bool) -> None:
    outcome = [cross_field(layout, moving=20, predict=predict) for layout in range(3)]
    assert all(arrived for arrived, _ in outcome)
    assert max(touching for _, touching in outcome) < 0.05


def test_the_sweep_is_drawn_from_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def crossed(layout: int, *, moving: int, predict: bool) -> tuple[bool, float]:
        asked.append((moving, predict))
        return cross_field(layout, moving=moving, predict=predict, frames=20)

    monkeypatch.setattr(roadmaps, "cross_field", crossed)
    (path,) = draw_moving_share(tmp_path / "sweep.png", quiet, shares=(0, 50), layouts=1)
    assert asked == [(0, True), (50, True), (0, False), (50, False)]
    with Image.open(path) as picture:
        assert picture.size[0] > picture.size[1] > 400
