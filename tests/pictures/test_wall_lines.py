"""Walls are drawn as lines, but never so many or so thick that the floor between them is hidden."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from recorded_runs import ROOM

from tropel.pictures import style
from tropel.pictures.map import wall_width
from tropel.pictures.viewport import fit_view


def test_a_few_walls_are_as_thick_as_ever() -> None:
    view = fit_view(np.array([[0.0, 0.0], [10.0, 6.0]]), width=800, height=600, margin=10)
    assert wall_width(ROOM, view) == 1.4
    assert wall_width(shapely.LineString([(1, 1), (9, 1)]), view, usual=1.8) == 1.8
    assert wall_width(shapely.MultiLineString(), view) == 1.4


def test_rows_of_benches_leave_most_of_the_floor_to_be_seen() -> None:
    view = fit_view(np.array([[0.0, 0.0], [200.0, 150.0]]), width=800, height=600, margin=10)
    benches = shapely.MultiLineString([[(0.0, y), (200.0, y)] for y in np.arange(0.4, 150.0, 0.4)])
    inked = benches.length * view.scale * wall_width(benches, view) * style.DPI / 72
    assert inked / (view.width * view.height) == pytest.approx(0.15)
