"""The influence of hazards on cells: equation 4, clipped by walls, compared with the rule written down naively."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

import tropel
from tropel.errors import ParameterError
from tropel.world.ground import Ground
from tropel.world.influence import HazardFilters, influence_filter
from tropel.world.raster import Raster, lattice_cells


def naive_line(start, end):
    """Cells of Bresenham's line: the nearest to the straight one at each step of the longer axis, halves rounded up."""
    difference = [b - a for a, b in zip(start, end, strict=True)]
    longest = max(abs(d) for d in difference)
    cells = []
    for step in range(longest + 1):
        cell = []
        for a, d in zip(start, difference, strict=True):
            moved = math.floor(Fraction(step * abs(d), longest) + Fraction(1, 2)) if longest else 0
            cell.append(a + (moved if d > 0 else -moved))
        cells.append(tuple(cell))
    return cells


def naive_open_cells(free, middle, reach):
    """The cells that get equation 4, by the rule of section 5.2: rim first, then ring by ring inwards."""
    rows, columns = free.shape
    on_map = [(r, c) for r in range(rows) for c in range(columns)]
    ring_of = {cell: max(abs(cell[0] - middle[0]), abs(cell[1] - middle[1])) for cell in on_map}
    is_open = {}
    for cell in sorted((cell for cell in on_map if ring_of[cell] <= reach), key=lambda cell: (-ring_of[cell], cell)):
        if cell in is_open:
            continue
        line = naive_line(cell, middle)
        blocked = [k for k, on_it in enumerate(line) if on_it in ring_of and on_it != middle and not free[on_it]]
        for k, on_it in enumerate(line):
            if on_it in ring_of and on_it not in is_open:
                is_open[on_it] = not blocked or k > blocked[-1]
    return is_open


def value_of_equation_4(distance, inner, outer, intensity):
    if distance <= inner:
        return 0.0
    if distance <= outer:
        return ((distance - inner) / (outer - inner)) ** intensity
    return 1.0


def naive_values(raster, centre, inner, outer, intensity, *, clipped):
    """What all cells of the map are worth."""
    middle = tuple(math.floor((centre[1 - axis] - raster.origin[1 - axis]) / raster.cell) for axis in range(2))
    is_open = naive_open_cells(raster.free, middle, math.floor(outer / raster.cell + 0.5)) if clipped else None
    values = np.ones(raster.shape)
    for row in range(raster.shape[0]):
        for column in range(raster.shape[1]):
            if is_open is None or is_open.get((row, column), False):
                x, y = raster.origin + (np.array([column, row]) + 0.5) * raster.cell
                values[row, column] = value_of_equation_4(
                    math.hypot(x - centre[0], y - centre[1]), inner, outer, intensity
                )
    return values


def on_the_map(found, raster):
    values = np.ones(raster.shape)
    if found is not None:
        rows, columns = found.log_value.shape
        values[found.row : found.row + rows, found.column : found.column + columns] = np.exp(found.log_value)
    return values


def random_map(seed, *, blocked=0.15, shape=(23, 31), cell=0.4, origin=(-3.0, 2.0)):
    free = np.random.default_rng(seed).random(shape) >= blocked
    return Raster(origin=np.array(origin), cell=cell, free=free)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    blocked=st.sampled_from([0.0, 0.03, 0.15, 0.4]),
    x=st.floats(-6.0, 13.0),
    y=st.floats(-1.0, 14.0),
    inner=st.floats(0.1, 2.0),
    ratio=st.floats(1.0, 5.0),
    intensity=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    clipped=st.booleans(),
)
def test_clipped_influence_equals_the_naive_rule_on_random_maps(seed, blocked, x, y, inner, ratio, intensity, clipped):
    raster = random_map(seed, blocked=blocked)
    found = influence_filter(raster, (x, y), inner, ratio * inner, intensity, clipped=clipped)
    expected = naive_values(raster, (x, y), inner, ratio * inner, intensity, clipped=clipped)
    seen = on_the_map(found, raster)
    # Exactly the same cells are influenced and vetoed; values agree up to the rounding of the logarithm.
    assert np.array_equal(seen == 0.0, expected == 0.0)
    np.testing.assert_allclose(seen, expected, rtol=1e-12, atol=1e-15)


def test_the_mask_is_exactly_that_of_the_naive_rule_where_every_cell_matters():
    for seed in range(12):
        raster = random_map(seed, blocked=0.12, shape=(41, 37), cell=1.0, origin=(0.0, 0.0))
        centre = np.random.default_rng(seed + 100).uniform((0, 0), (37, 41))
        # Of no size and a wide reach: every open cell in the box has a value below one.
        found = influence_filter(raster, centre, 0.0, 80.0, 1.0)
        assert found is not None
        middle = (math.floor(centre[1]), math.floor(centre[0]))
        expected = naive_open_cells(raster.free, middle, 80)
        open_cells = on_the_map(found, raster) < 1.0
        assert all(open_cells[cell] == expected[cell] for cell in expected)
        assert 0.05 < open_cells.mean() < 0.95


def test_without_walls_clipping_changes_nothing():
    raster = random_map(1, blocked=0.0)
    free = influence_filter(raster, (2.0, 5.0), 1.0, 4.0, 1.0)
    naive = influence_filter(raster, (2.0, 5.0), 1.0, 4.0, 1.0, clipped=False)
    assert free is not None
    assert naive is not None
    assert np.array_equal(free.log_value, naive.log_value)


def test_influence_ends_at_a_wall_and_reaches_through_its_gap():
    free = np.ones((21, 21), dtype=bool)
    free[:, 10] = False
    free[10, 10] = True
    raster = Raster(origin=np.zeros(2), cell=1.0, free=free)
    seen = on_the_map(influence_filter(raster, (5.5, 10.5), 1.0, 12.0, 1.0), raster)
    assert (seen[10, 11:17] < 1.0).all(), "straight through the gap"
    shadow = np.concatenate([seen[:8, 11:], seen[13:, 11:]])
    assert (shadow == 1.0).all(), "nothing in the shadow of the wall"
    through = on_the_map(influence_filter(raster, (5.5, 10.5), 1.0, 12.0, 1.0, clipped=False), raster)
    assert (through[5, 11:14] < 1.0).all(), "unclipped it transgresses the wall, as in figure 7 (a)"


def test_a_hazard_in_a_blocked_cell_still_radiates():
    free = np.ones((11, 11), dtype=bool)
    free[5, 5] = False
    raster = Raster(origin=np.zeros(2), cell=1.0, free=free)
    seen = on_the_map(influence_filter(raster, (5.5, 5.5), 1.0, 4.0, 1.0), raster)
    assert seen[5, 4] == 0.0
    assert 0.0 < seen[5, 3] < 1.0


def test_the_rectangle_is_only_as_large_as_the_influence():
    raster = random_map(2, shape=(200, 300))
    found = influence_filter(raster, (20.0, 30.0), 0.5, 2.0, 1.0)
    assert found is not None
    assert max(found.log_value.shape) <= 2 * (2.0 / 0.4 + 1)


def test_nothing_of_a_hazard_far_off_the_map_is_on_it():
    raster = random_map(3)
    for far in ((1e300, 0.0), (100.0, 5.0), (-50.0, -50.0)):
        assert influence_filter(raster, far, 0.5, 2.0, 1.0) is None


@pytest.mark.parametrize(
    ("centre", "inner", "outer", "intensity"),
    [
        ((math.nan, 0.0), 1.0, 2.0, 1.0),
        ((0.0, 0.0), -1.0, 2.0, 1.0),
        ((0.0, 0.0), 2.0, 1.0, 1.0),
        ((0.0, 0.0), 1.0, math.inf, 1.0),
        ((0.0, 0.0), 1.0, 2.0, -1.0),
        ((0.0, 0.0), math.nan, 2.0, 1.0),
        ((0.0, 0.0, 0.0), 1.0, 2.0, 1.0),
    ],
)
def test_nonsense_is_refused(centre, inner, outer, intensity):
    with pytest.raises(ParameterError, match="influence"):
        influence_filter(random_map(1), centre, inner, outer, intensity)


def terrain_of(world):
    raster = lattice_cells(world)
    return Ground(raster=raster, moves=np.zeros(raster.shape, dtype=np.uint8), log_gamma=-0.5)


def hall(**hazards):
    world = tropel.World(shapely.box(0, 0, 20, 12), walls=[[(10, 0), (10, 5)], [(10, 7), (10, 12)]], hazards=hazards)
    return world, terrain_of(world)


def test_layers_follow_hazards_that_come_grow_move_and_go():
    world, terrain = hall(fire=tropel.Hazard(inner=0.5, position=(5, 6)))
    layers = HazardFilters()
    layers.update(world, terrain)
    first = terrain.filters["hazard fire"]
    version = terrain.version
    layers.update(world, terrain)
    assert terrain.version == version, "nothing has changed, so nothing is laid anew"
    world.hazards.grow("fire", inner=1.0)
    layers.update(world, terrain)
    grown = terrain.filters["hazard fire"]
    assert grown.log_value.size > first.log_value.size
    world.hazards.move("fire", (15, 6))
    layers.update(world, terrain)
    assert terrain.filters["hazard fire"].column > grown.column
    world.hazards.add("rubble", tropel.Hazard(inner=1.0, position=(3, 3), kind="rubble", deadly=False))
    world.hazards.remove("fire")
    layers.update(world, terrain)
    assert list(terrain.filters) == ["hazard rubble"]
    assert terrain.filters["hazard rubble"].spares_inside


def test_layers_are_laid_anew_when_a_door_changes_what_is_seen():
    world = tropel.World(
        shapely.box(0, 0, 20, 12),
        doors={"door": tropel.Door([(10, 0), (10, 12)], open=True)},
        hazards={"fire": tropel.Hazard(inner=1.0, outer=8.0, position=(8, 6))},
    )
    terrain = terrain_of(world)
    layers = HazardFilters()
    layers.update(world, terrain)
    open_door = on_the_map(terrain.filters["hazard fire"], terrain.raster)
    world.set_door("door", open=False)
    terrain.raster = lattice_cells(world)
    layers.update(world, terrain)
    closed = on_the_map(terrain.filters["hazard fire"], terrain.raster)
    behind = np.s_[:, 26:]
    assert (open_door[behind] < 1.0).any()
    assert (closed[behind] == 1.0).all()


def test_a_hazard_that_is_planned_around_does_not_hide_its_own_influence():
    halls = [hall(fire=tropel.Hazard(inner=1.0, position=(5, 6), replan=replan)) for replan in (True, False)]
    for world, terrain in halls:
        HazardFilters().update(world, terrain)
    (_, around), (_, ignored) = halls
    assert (around.raster.free != ignored.raster.free).any()
    assert np.array_equal(around.filters["hazard fire"].log_value, ignored.filters["hazard fire"].log_value)
