"""Bottlenecks are where equation 5 finds them, and as wide as they were built."""

from __future__ import annotations

import math

import numba
import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

from tropel import World
from tropel._kernels.compile import threads_restored
from tropel._kernels.grid_moves import FAR, all_moves
from tropel.errors import ParameterError
from tropel.planning.flow.path_plan import PathPlan
from tropel.planning.path_plans.bottlenecks import Bottleneck, bottleneck_cells, find_bottlenecks
from tropel.world.ground import Ground
from tropel.world.raster import Raster, lattice_cells

Bools = NDArray[np.bool_]

#: Figure 8(b): three cells move into the door s, two into s' behind it, one into the next; the goal is top right.
FIGURE_8 = """
#######
#...#G#
#...#.#
#...#.#
#...s.#
#...#.#
#...#.#
#...#.#
#######
"""

#: Figure 9, first kind: a building in a yard, rooms with doors on a corridor.
ROOMS = """
..........................................
..........................................
..#####################################...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#...........#...........#...........#...
..######..########..##########..#######...
......................................#...
......................................#...
......................................#...
......................................#...
..########..########..#####..##########...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#...........#...........#...........#...
..#####################################...
..........................................
.........................................G
"""
ROOM_DOORS = [(8, 8.5), (8, 18.5), (8, 30.5), (13, 10.5), (13, 20.5), (13, 27.5), (10.5, 2)]

#: Second kind: halls one behind the other.
HALLS = """
..........#..........#..........#.........
..........#..........#..........#.........
..........#..........#..........#.........
..........#..........#....................
.....................#....................
.....................#....................
..........#..........#..........#.........
..........#..........#..........#.........
..........#.....................#.........
..........#.....................#.........
..........#.....................#.........
..........#..........#..........#.........
..........#..........#..........#........G
"""
HALL_DOORS = [(4.5, 10), (9, 21), (4, 32)]


def drawn(text: str) -> tuple[Bools, Bools]:
    """Free cells and goals of a map whose first line is its top."""
    rows = np.array([list(line) for line in text.strip().splitlines()])[::-1]
    return rows != "#", rows == "G"


def moves_on(free: Bools, *, corner_cutting: bool = False) -> NDArray[np.uint8]:
    moves = np.empty(free.size, dtype=np.uint8)
    all_moves(np.ascontiguousarray(free), corner_cutting, moves)
    return moves.reshape(free.shape)


def terrain(free: Bools, *goals: Bools, cell: float = 1.0, corner_cutting: bool = False) -> Ground:
    layers = [PathPlan(free, goal, corner_cutting=corner_cutting) for goal in goals]
    return Ground(
        raster=Raster(origin=np.zeros(2), cell=cell, free=free),
        moves=moves_on(free, corner_cutting=corner_cutting),
        log_gamma=math.log(0.6),
        units=np.array([layer.units for layer in layers]),
        plan_of_goal={number: number for number in range(len(layers))},
    )


def one_cell(shape: tuple[int, ...], row: int, column: int) -> Bools:
    goal = np.zeros(shape, dtype=np.bool_)
    goal[row, column] = True
    return goal


def two_rooms(door: int, *, thick: int = 1, size: int = 41, at: int = 13) -> Bools:
    """Rooms side by side with a wall of some thickness between, and a door of so many cells."""
    free = np.ones((size, 2 * size), dtype=np.bool_)
    free[:, size : size + thick] = False
    free[at : at + door, size : size + thick] = True
    return free


def counted(units: NDArray[np.int64], moves: NDArray[np.uint8]) -> tuple[dict, dict]:
    """Where every cell moves to and how many move into each, in plain Python."""
    order = [(0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1)]
    onward, into = {}, {}
    for row, column in np.argwhere(units < FAR).tolist():
        there = [
            (int(units[row + dy, column + dx]), number, (row + dy, column + dx))
            for number, (dy, dx) in enumerate(order)
            if moves[row, column] >> number & 1
        ]
        to = (row, column) if units[row, column] == 0 else min(there)[2]
        onward[row, column] = to
        into[to] = into.get(to, 0) + 1
    return onward, into


@pytest.mark.parametrize("corner_cutting", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_cells_are_those_of_equation_5_by_plain_counting(seed: int, corner_cutting: bool) -> None:
    generator = np.random.default_rng(seed)
    free = generator.random((24, 31)) > 0.25
    goal = np.zeros_like(free)
    goal[generator.integers(24), generator.integers(31)] = True
    free |= goal
    units = PathPlan(free, goal, corner_cutting=corner_cutting).units
    moves = moves_on(free, corner_cutting=corner_cutting)
    onward, into = counted(units, moves)
    expected = sorted(s for s, to in onward.items() if into.get(s, 0) > into[to])
    assert [tuple(s) for s in np.argwhere(bottleneck_cells(units, moves)).tolist()] == expected
    assert expected


def test_figure_8_has_the_two_bottlenecks_of_the_paper() -> None:
    free, goal = drawn(FIGURE_8)
    layers = terrain(free, goal, corner_cutting=True)
    s, after, next_but_one = (4, 4), (5, 5), (6, 5)
    onward, into = counted(layers.units[0], layers.moves)
    assert onward[s] == after
    assert onward[after] == next_but_one
    assert (into[s], into[after], into[next_but_one]) == (3, 2, 1)
    found = bottleneck_cells(layers.units[0], layers.moves)
    assert [tuple(cell) for cell in np.argwhere(found).tolist()] == [s, after]
    (merged,) = find_bottlenecks(layers)
    assert merged.position == (5.0, 5.0)  # between the two
    assert merged.width == 1.0


@pytest.mark.parametrize("door", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("goal", [(20, 70), (5, 75), (38, 78)])
def test_a_door_of_a_plain_room_has_one_to_three(door: int, goal: tuple[int, int]) -> None:
    free = two_rooms(door)
    units = PathPlan(free, one_cell(free.shape, *goal)).units
    found = np.argwhere(bottleneck_cells(units, moves_on(free)))
    assert 1 <= len(found) <= 3
    assert np.abs(found[:, 1] - 41).max() <= 1
    assert ((found[:, 0] >= 13) & (found[:, 0] < 13 + door)).all()


def test_goals_are_none_and_cut_off_places_have_none() -> None:
    free = two_rooms(0)
    goal = one_cell(free.shape, 20, 5)
    goal[20, 4:9] = True
    found = bottleneck_cells(PathPlan(free, goal).units, moves_on(free))
    assert not found[goal].any()
    assert not found[:, 41:].any()
    nobody = PathPlan(free, np.zeros_like(free)).units
    assert not bottleneck_cells(nobody, moves_on(free)).any()


@pytest.mark.parametrize(("text", "doors"), [(ROOMS, ROOM_DOORS), (HALLS, HALL_DOORS)])
def test_all_doorways_of_figure_9s_kinds_of_maps_are_found(text: str, doors: list[tuple[float, float]]) -> None:
    free, goal = drawn(text)
    found = find_bottlenecks(terrain(free, goal))
    top = len(text.strip().splitlines()) - 1
    places = np.array([(each.position[1] - 0.5, each.position[0] - 0.5) for each in found])
    for row, column in doors:
        away = np.hypot(places[:, 0] - (top - row), places[:, 1] - column)
        assert away.min() <= 3.0, (row, column)
    # The paper has three more at corners.
    assert len(found) <= len(doors) + 3


def test_doors_that_one_goal_avoids_are_found_by_another() -> None:
    """Figure 8(a): on the way to a goal nobody takes the door that leads away from it, from outside or inside."""
    free = np.ones((31, 31), dtype=np.bool_)
    free[10, 10:21] = free[20, 10:21] = free[10:21, 10] = free[10:21, 20] = False
    free[14, 20] = True  # B, to the goal in the east
    free[20, 12] = True  # A, to the north
    east, north = one_cell(free.shape, 14, 30), one_cell(free.shape, 30, 12)

    def doors(*goals: Bools) -> set[str]:
        found = find_bottlenecks(terrain(free, *goals))
        near = {"A": (12.5, 20.5), "B": (20.5, 14.5)}
        return {name for name, at in near.items() for each in found if math.dist(each.position, at) < 2.5}

    assert doors(east) == {"B"}
    assert doors(north) == {"A"}
    assert doors(east, north) == {"A", "B"}


@pytest.mark.parametrize("thick", [1, 3])
@pytest.mark.parametrize("door", [1, 2, 3, 5, 9, 15])
@pytest.mark.parametrize("turned", [False, True])
def test_a_door_is_one_bottleneck_of_its_own_width(door: int, thick: int, turned: bool) -> None:
    free, goal = two_rooms(door, thick=thick), one_cell((41, 82), 5, 75)
    if turned:
        free, goal = np.ascontiguousarray(free.T), np.ascontiguousarray(goal.T)
    (found,) = find_bottlenecks(terrain(free, goal, cell=0.4))
    assert found.width == pytest.approx(0.4 * door)
    assert found.passage is not None
    jambs = np.sort(np.array(found.passage)[:, 0 if turned else 1])
    assert jambs.tolist() == pytest.approx([0.4 * 13, 0.4 * (13 + door)])
    middle = 0.4 * np.array([41 + thick / 2, 13 + door / 2])[:: -1 if turned else 1]
    assert math.dist(found.position, middle) <= 0.4 * (0.5 * door + 2)


@pytest.mark.parametrize("angle", [15, 22.5, 30, 45, 60, 75])
@pytest.mark.parametrize("width", [1.2, 2.0, 4.0])
def test_a_door_in_a_slanted_wall_is_at_most_two_cells_narrower_than_drawn(angle: float, width: float) -> None:
    along = np.array([math.cos(math.radians(angle)), math.sin(math.radians(angle))])
    across = np.array([-along[1], along[0]])
    middle = np.array([10.1, 10.07])
    hall = shapely.box(0, 0, 20, 20)
    sides = [shapely.LineString([middle + s * width / 2 * along, middle + s * 40 * along]) for s in (-1, 1)]
    world = World(hall, walls=[list(side.intersection(hall).coords) for side in sides])
    cells = lattice_cells(world, 0.2)
    goal = one_cell(cells.shape, *cells.index_of(middle + 6 * across + 1.5 * along))
    layers = terrain(cells.free, goal, cell=0.2)
    door = min(find_bottlenecks(layers), key=lambda each: math.dist(each.position, middle))
    assert math.dist(door.position, middle) < 0.5 * width + 0.6
    assert width - 0.4 <= door.width <= width


def test_a_corridor_with_a_bend_is_as_wide_as_it_is() -> None:
    free = np.zeros((60, 60), dtype=np.bool_)
    free[5:25, 5:25] = True  # a room
    free[12:17, 25:50] = True  # a corridor of five cells that leaves it,
    free[12:55, 45:50] = True  # and turns
    found = find_bottlenecks(terrain(free, one_cell(free.shape, 54, 47)))
    assert found
    assert {each.width for each in found} == {5.0}


def test_a_narrow_door_in_the_corner_of_a_room_is_not_taken_for_its_corner() -> None:
    free = two_rooms(4, at=0)
    (found,) = find_bottlenecks(terrain(free, one_cell(free.shape, 20, 70)))
    assert found.width == 4.0


def test_an_exit_in_an_opening_is_as_wide_as_the_opening() -> None:
    free = np.ones((40, 43), dtype=np.bool_)
    free[:, 39:] = False
    free[18:22, 39:] = True
    for first in (39, 41):
        goal = np.zeros_like(free)
        goal[18:22, first:] = True
        (found,) = find_bottlenecks(terrain(free, goal))
        assert found.width == 4.0


def test_a_corner_in_the_open_has_no_width() -> None:
    free = np.ones((200, 200), dtype=np.bool_)
    free[100, 60:140] = False
    found = find_bottlenecks(terrain(free, one_cell(free.shape, 150, 100)), widest=25.0)
    assert found
    assert all(each.width == math.inf and each.passage is None for each in found)
    assert str(found[0]).endswith("open")


def test_near_ones_are_merged_in_chains_and_far_ones_are_not() -> None:
    free = two_rooms(3)
    free[25:28, 41] = True
    layers = terrain(free, one_cell(free.shape, 20, 70))
    apart = find_bottlenecks(layers)
    assert [each.width for each in apart] == [3.0, 3.0]
    (together,) = find_bottlenecks(layers, merge_distance=12.0)
    assert 13 <= together.position[1] <= 28
    assert find_bottlenecks(layers, merge_distance=0.0) != apart


def test_they_come_in_the_order_of_their_cells_and_goals_may_come_in_any() -> None:
    free, goal = drawn(ROOMS)
    layers = terrain(free, goal, one_cell(free.shape, 3, 5), one_cell(free.shape, 15, 20))
    found = find_bottlenecks(layers)
    cells = [each.cell for each in found]
    assert cells == sorted(set(cells))
    assert all(free[cell] for cell in cells)
    layers.units, layers.plan_of_goal = layers.units[::-1].copy(), {2: 0, 1: 1, 0: 2}
    assert find_bottlenecks(layers) == found


def test_one_thread_and_two_find_the_same() -> None:
    free, goal = drawn(ROOMS)
    layers = terrain(free, goal)
    found = []
    with threads_restored():
        for threads in (1, 2):
            numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
            found.append(find_bottlenecks(layers))
    assert found[0] == found[1]


def test_a_map_without_goals_has_none() -> None:
    free = np.ones((5, 5), dtype=np.bool_)
    assert find_bottlenecks(terrain(free)) == []


def test_bad_lengths_are_refused() -> None:
    layers = terrain(np.ones((5, 5), dtype=np.bool_))
    with pytest.raises(ParameterError, match="merge_distance must be a length in metres, not -1"):
        find_bottlenecks(layers, merge_distance=-1)
    with pytest.raises(ParameterError, match="widest must be a positive length"):
        find_bottlenecks(layers, widest=math.nan)
    with pytest.raises(ParameterError, match=r"must have the same cells, not \(5, 5\) and \(4, 5\)"):
        bottleneck_cells(np.zeros((5, 5), dtype=np.int64), np.zeros((4, 5), dtype=np.uint8))


def test_one_says_where_it_is() -> None:
    assert str(Bottleneck(cell=(1, 2), position=(1.0, 0.6), width=1.2)) == "bottleneck at (1, 0.6), 1.2 m wide"
