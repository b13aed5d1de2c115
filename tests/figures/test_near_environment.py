"""LAYERS figure 5: walls change whom the agent can approach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from tropel.figures.neighbourhood import _triangulated, draw_near_environment


def test_people_behind_the_wall_are_near_only_without_it() -> None:
    _, without, place = _triangulated("near")
    _, walled, _ = _triangulated("approachable")
    assert np.array_equal(without.here, walled.here)
    away = np.linalg.norm(place - without.here, axis=1)
    assert len(without.known) == np.count_nonzero((away <= without.reach) & (away > 0.0))
    # The long wall cuts through the circle with both ends outside of it.
    assert (without.known[:, 0] > 12.0).any()
    assert (walled.known[:, 0] < 12.0).all()
    assert len(walled.known) < len(without.known)


def test_it_is_drawn(tmp_path: Path) -> None:
    (path,) = draw_near_environment(tmp_path / "figure.png")
    with Image.open(path) as picture:
        assert picture.size[0] > 1000
        assert len(np.unique(np.asarray(picture.convert("RGB")).reshape(-1, 3), axis=0)) > 50
