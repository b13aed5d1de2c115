"""Following a harmonic field: from every free cell to the target, without cycles, flat spots or walls in the way."""

from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import ndimage

from tropel import Direct, Group, Seek, Simulation, World
from tropel.errors import ParameterError
from tropel.planning.fields.field import GridField
from tropel.planning.fields.goals import goal_cells
from tropel.planning.harmonic import Harmonic, solve_harmonic
from tropel.planning.harmonic.vectors import best_neighbours, unit_vectors
from tropel.testing import check_planner

Cells = NDArray[np.bool_]
Floats = NDArray[np.float64]

KINDS = ["fixed", "reflecting"]


def maze(rooms: int, wide: int, seed: int, loops: float = 0.05) -> Cells:
    """A random maze of square rooms, `wide` cells across, with walls of one cell; a few walls more are open."""
    random = np.random.default_rng(seed)
    pitch = wide + 1
    free = np.zeros((rooms * pitch + 1, rooms * pitch + 1), dtype=bool)
    for y in range(rooms):
        for x in range(rooms):
            free[y * pitch + 1 : (y + 1) * pitch, x * pitch + 1 : (x + 1) * pitch] = True
    seen = np.zeros((rooms, rooms), dtype=bool)
    stack = [(0, 0)]
    seen[0, 0] = True
    while stack:
        y, x = stack[-1]
        ways = [(0, 1), (0, -1), (1, 0), (-1, 0)]
        random.shuffle(ways)
        for dy, dx in ways:
            b, a = y + dy, x + dx
            if 0 <= b < rooms and 0 <= a < rooms and not seen[b, a]:
                seen[b, a] = True
                open_wall(free, pitch, y, x, dy, dx)
                stack.append((b, a))
                break
        else:
            stack.pop()
    for y in range(rooms - 1):
        for x in range(rooms - 1):
            if random.random() < loops:
                open_wall(free, pitch, y, x, *((0, 1) if random.random() < 0.5 else (1, 0)))
    return free


def open_wall(free: Cells, pitch: int, y: int, x: int, dy: int, dx: int) -> None:
    rows = slice(y * pitch + 1, (y + 1) * pitch) if not dy else (y + (dy > 0)) * pitch
    columns = slice(x * pitch + 1, (x + 1) * pitch) if not dx else (x + (dx > 0)) * pitch
    free[rows, columns] = True


def ends(chosen: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where the way ends that goes from each cell to the chosen one; a cell in a cycle never gets to an end."""
    flat = chosen.ravel()
    jump = np.where(flat < 0, np.arange(flat.size), flat)
    for _ in range(int(np.ceil(np.log2(flat.size)))):
        jump = jump[jump]
    return jump.reshape(chosen.shape)


def check_field(free: Cells, target: Cells, walls: str) -> Floats:
    """Descent and vectors from every cell that is connected to the target."""
    log_u = solve_harmonic(free, target, walls=walls, decay_length=10.0)
    labels = ndimage.label(free)[0]
    connected = free & np.isin(labels, labels[target])
    assert np.array_equal(np.isfinite(log_u), connected)
    chosen = best_neighbours(log_u, target)
    assert target.ravel()[ends(chosen)[connected]].all()

    vectors = unit_vectors(log_u, target, mirrored=walls == "reflecting")
    asked = connected & ~target
    np.testing.assert_allclose(np.linalg.norm(vectors[asked], axis=1), 1.0, rtol=1e-12)
    assert not vectors[~asked].any()
    here = np.argwhere(asked)
    along = np.stack(np.unravel_index(chosen[asked], free.shape), axis=-1) - here
    assert ((along[:, ::-1] * vectors[asked]).sum(axis=1) > 0.25).all()
    ahead = here + np.sign(np.where(np.abs(vectors[asked]) > 1e-9, vectors[asked], 0.0)).astype(np.int64)[:, ::-1]
    # In 3D the cell across three axes may be blocked while those across any two are free.
    if free.ndim == 2:
        assert connected[tuple(ahead.T)].all()
    return log_u


@pytest.mark.parametrize("walls", KINDS)
@given(seed=st.integers(0, 100_000), rooms=st.integers(2, 12), wide=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_every_cell_of_a_random_maze_leads_to_the_target(walls: str, seed: int, rooms: int, wide: int) -> None:
    free = maze(rooms, wide, seed)
    target = np.zeros_like(free)
    target[1, 1] = True
    check_field(free, target, walls)


@pytest.mark.parametrize("walls", KINDS)
@given(seed=st.integers(0, 100_000), blocked=st.floats(0.0, 0.45), targets=st.integers(1, 4), deep=st.booleans())
@settings(max_examples=30, deadline=None)
def test_every_cell_among_scattered_blocks_leads_to_a_target(
    walls: str, seed: int, blocked: float, targets: int, deep: bool
) -> None:
    random = np.random.default_rng(seed)
    free = random.random((7, 8, 9) if deep else (30, 25)) > blocked
    target = np.zeros_like(free)
    target.flat[random.integers(0, free.size, targets)] = True
    check_field(free | target, target, walls)


@pytest.mark.parametrize("walls", KINDS)
def test_a_maze_of_thousands_of_cells_leads_to_the_target(walls: str) -> None:
    free = maze(40, 3, 1, loops=0.0)
    target = np.zeros_like(free)
    target[1:4, 1:4] = True
    log_u = check_field(free, target, walls)
    steps = np.zeros(free.shape, dtype=np.int64)
    chosen = best_neighbours(log_u, target)
    for cell in np.argsort(-log_u, axis=None)[: int(free.sum())]:
        if not target.flat[cell]:
            steps.flat[cell] = steps.flat[chosen.flat[cell]] + 1
    assert steps.max() > 1000


def test_a_saddle_between_two_targets_has_a_direction() -> None:
    """In the middle between two targets the gradient vanishes; somebody there still goes somewhere."""
    free = np.ones((11, 21), dtype=bool)
    target = np.zeros_like(free)
    target[5, 3] = target[5, 17] = True
    log_u = check_field(free, target, "fixed")
    assert log_u[5, 9] == pytest.approx(log_u[5, 11], abs=1e-12)
    vector = unit_vectors(log_u, target, mirrored=False)[5, 10]
    assert abs(vector[0]) == pytest.approx(1.0, abs=1e-6)


def test_fixed_walls_are_avoided_and_reflecting_ones_are_not() -> None:
    free = np.ones((9, 60), dtype=bool)
    target = np.zeros_like(free)
    target[:, 0] = True
    fixed = unit_vectors(solve_harmonic(free, target), target, mirrored=False)[0, 40]
    mirrored = unit_vectors(solve_harmonic(free, target, walls="reflecting"), target, mirrored=True)[0, 40]
    assert fixed[1] > 0.5
    np.testing.assert_allclose(mirrored, [-1.0, 0.0], atol=1e-9)


def cluttered(seed: int) -> World:
    random = np.random.default_rng(seed)
    area = shapely.box(0, 0, 12, 9)
    for _ in range(9):
        x, y, wide, high = *random.uniform(0.5, (10, 7)), *random.uniform(0.05, 2.5, 2)
        area = area.difference(shapely.box(x, y, x + wide, y + high))
    area = max(shapely.get_parts(area), key=lambda part: part.area)
    inner = area.buffer(-0.5)
    place = shapely.get_parts(inner)[0].representative_point()
    return World(area, targets={"place": (place.x, place.y)})


def field_of(planner: Harmonic, world: World, goal: str) -> GridField:
    raster = planner.draw(world)
    return planner.solve(raster, goal_cells(np.array([world.goal_numbers[goal]]), world, raster, strict=True))


@pytest.mark.parametrize("walls", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_walkers_follow_the_smooth_field_to_the_goal_and_cross_no_wall(walls: str, seed: int) -> None:
    world = cluttered(seed)
    field = field_of(Harmonic(walls=walls, cache=False), world, "place")
    raster = field.raster
    position = raster.centre(np.argwhere(field.reachable & ~field.goal))[::3]
    assert len(position) > 300
    border = world.walkable.boundary if world.walkable is not None else shapely.Point()
    shapely.prepare(border)
    for _ in range(2000):
        moved = position + 0.3 * raster.cell * field.sample(position, world)
        assert not shapely.intersects(border, shapely.linestrings(np.stack([position, moved], axis=1))).any()
        position = moved[~field.goal[tuple(raster.index_of(moved).T)]]
        if not len(position):
            break
    assert not len(position), f"still on the way: {position[:5]}"


@pytest.mark.parametrize(
    ("planner", "left"), [(Direct(), 20), (Harmonic(cache=False), 0), (Harmonic(walls="reflecting", cache=False), 0)]
)
def test_people_get_out_of_a_room_with_its_opening_away_from_the_exit(planner: Any, left: int) -> None:
    """Straight to the exit, all 20 stay in the U for good; along the field all leave."""
    room = shapely.union_all([shapely.box(10, 2, 10.3, 8), shapely.box(5, 2, 10.3, 2.3), shapely.box(5, 7.7, 10.3, 8)])
    world = World(shapely.box(0, 0, 16, 10).difference(room), exits={"door": shapely.box(15.5, 4, 16, 6)})
    people = Group("people", count=20, region=shapely.box(6, 3, 9.5, 7), goal="door")
    sim = Simulation(world, [people], planning=planner, local=Seek(), seed=1)
    sim.run(until="empty", limit=40)
    assert len(sim.agents) == left


@pytest.mark.parametrize("walls", KINDS)
def test_the_contract_of_planners_holds(walls: str) -> None:
    check_planner(lambda: Harmonic(walls=walls, cell=0.5, cache=False))


def test_unreachable_places_are_reported() -> None:
    world = World(shapely.box(0, 0, 10, 6), walls=[[(6, 0), (6, 6)]], targets={"place": (2.0, 3.0)})
    field = field_of(Harmonic(cache=False), world, "place")
    report = field.unreachable()
    assert report.area == pytest.approx(4 * 6, rel=0.25)
    assert report.regions[0][0] > 6.0


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"walls": "soft"}, "no walls of the kind 'soft'"),
        ({"decay_length": -1.0}, "decay_length must be a positive number"),
        ({"decay_length": 1e-200}, "decay_length must be a length from 1e-06 to"),
        ({"cell": 0.0}, "cell must be a positive number"),
    ],
)
def test_bad_parameters_are_named(named: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Harmonic(**named)


def test_parameters_tell_fields_apart() -> None:
    planners = [Harmonic(), Harmonic(walls="reflecting"), Harmonic(walls="reflecting", decay_length=1.0)]
    assert len({planner.parameters for planner in planners}) == 3
