"""What periodic space demands of whoever is sorted into its cells."""

from __future__ import annotations

import numpy as np
import pytest

from sorted_crowds import make_state
from tropel.broad_phase import CellGrid
from tropel.errors import ModelError
from tropel.world import World


@pytest.mark.parametrize("radius", [2.0, 2.5, np.inf])
def test_a_sense_radius_of_half_a_period_or_more_is_an_error_that_says_so(radius: float) -> None:
    world = World.box([0.0] * 3, [4.0, 9.0, 9.0], periodic=True)
    state = make_state(np.full((3, 3), 1.0), np.array([1.0, radius, 1.0]))
    with pytest.raises(ModelError, match=r"agent 1 has a sense radius of .* less than half"):
        CellGrid.of(state, world).sorting  # noqa: B018


def test_who_is_not_inside_of_a_periodic_world_is_an_error() -> None:
    world = World.box([0.0] * 2, [5.0] * 2, periodic=True)
    with pytest.raises(ModelError, match=r"agent 1 is at \[1\.0, 5\.0\], outside of the periodic world"):
        CellGrid.of(make_state(np.array([[1.0, 1.0], [1.0, 5.0]]), 1.0), world).sorting  # noqa: B018
