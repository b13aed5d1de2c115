"""Sub-layers come and go, and places to be avoided are worth what equation 4 says."""

from __future__ import annotations

import numpy as np
import pytest

from tropel.world.ground import Filter, Ground, log_avoidance
from tropel.world.raster import Raster


def equation_4(distance: float, inner: float, outer: float, intensity: float) -> float:
    if distance <= inner:
        return 0.0
    if distance <= outer:
        return ((distance - inner) / (outer - inner)) ** intensity
    return 1.0


@pytest.mark.parametrize(
    ("inner", "outer", "intensity"), [(1.0, 4.0, 1.0), (0.0, 3.0, 2.0), (2.0, 2.0, 1.0), (0.5, 9.0, 0.3)]
)
def test_avoidance_is_equation_4(inner: float, outer: float, intensity: float) -> None:
    distance = np.concatenate([[0.0, inner, outer, np.nextafter(outer, 99.0)], np.linspace(0.0, 12.0, 200)])
    got = np.exp(log_avoidance(distance, inner=inner, outer=outer, intensity=intensity))
    np.testing.assert_allclose(got, [equation_4(d, inner, outer, intensity) for d in distance], atol=1e-12)


def test_avoidance_keeps_the_shape_it_is_given_and_is_silent() -> None:
    with np.errstate(all="raise"):
        values = log_avoidance(np.arange(12.0).reshape(3, 4), inner=2.0, outer=6.0, intensity=1.0)
    assert values.shape == (3, 4)
    assert (values[0, :3] == -np.inf).all()
    assert (values.reshape(-1)[6:] == 0.0).all()


def test_filters_are_set_replaced_and_dropped_by_name_and_the_version_tells() -> None:
    raster = Raster(origin=np.zeros(2), cell=0.4, free=np.ones((3, 3), dtype=np.bool_))
    terrain = Ground(raster=raster, moves=np.zeros((3, 3), dtype=np.uint8), log_gamma=-0.5)
    first, second = (Filter(row=0, column=0, log_value=np.full((1, 1), value)) for value in (-1.0, -2.0))
    versions = [terrain.version]
    terrain.set_filter("fire", first)
    versions.append(terrain.version)
    terrain.set_filter("fire", second)
    versions.append(terrain.version)
    assert terrain.filters == {"fire": second}
    terrain.drop_filter("fire")
    versions.append(terrain.version)
    assert len(set(versions)) == 4
    terrain.drop_filter("fire")
    assert terrain.version == versions[-1]
    assert terrain.filters == {}


def test_two_filters_of_the_same_values_are_not_the_same_filter() -> None:
    one, other = (Filter(row=0, column=0, log_value=np.zeros((2, 2))) for _ in range(2))
    assert one != other
