"""Goals as cells of a raster: the cells where a field begins.

An exit, a region or a room is the free cells inside its polygon, a target those within its radius. A door, or a goal
that is smaller than a cell or nearer to a wall than the clearance, is represented by the free cells next to it with a
line of sight to it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.compile import kernel
from tropel._kernels.grid_raster import fill_inside_part
from tropel._kernels.walls import chord_blocked
from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, POINT
from tropel.errors import GeometryError, ModelError
from tropel.world import World
from tropel.world.goals import middle_of, shape_of_goal, walkable_part
from tropel.world.raster import Raster, half_diagonal
from tropel.world.shapes import segments_of

#: This share of a line to a goal must be clear: exits often begin on a wall, which a line to them touches.
_ALMOST = 0.999


_RUN = 256


@kernel
def _note_goals(goal, seen):
    """Mark the values that occur. Returns a value that is not a goal of the world, or NO_GOAL if there is none."""
    # Adjacent rows mostly have the same goal, and checking that for a run takes a fraction of the time.
    for first in range(0, goal.size, _RUN):
        last = min(first + _RUN, goal.size)
        odd = 0
        for k in range(first, last):
            odd |= goal[k] ^ goal[first]
        for k in range(first, last if odd else first + 1):
            place = np.int64(goal[k]) - POINT
            if place < 0 or place >= seen.size:
                return np.int64(goal[k])
            seen[place] = 1
    return np.int64(NO_GOAL)


def goals_among(goal: NDArray[np.int32], members: NDArray[np.int64], world: World) -> list[int]:
    """The values of the `goal` column that members have, ascending."""
    seen = np.zeros(len(world.goal_numbers) - POINT, dtype=np.uint8)
    unknown = _note_goals(goal if len(members) == len(goal) else goal[members], seen)
    if unknown != NO_GOAL:
        raise ModelError(
            f"an agent's goal is {unknown}, which is not the number of a goal of this world; set goals by name, with "
            f"set_goal or the event SetGoal"
        )
    return (np.flatnonzero(seen) + POINT).tolist()


def numbers_of(goal: int, world: World) -> NDArray[np.int64]:
    """Numbers of the places that a value of the `goal` column refers to; "nearest" does not include closed exits."""
    goals = world.goals()
    if goal == NEAREST_EXIT:
        return np.flatnonzero((goals.is_exit == 1) & (goals.usable == 1)).astype(np.int64)
    if goal == NEAREST_TARGET:
        return np.flatnonzero((goals.is_target == 1) & (goals.usable == 1)).astype(np.int64)
    # A closed exit is still a place to go to, a target that was removed is not.
    there = 0 <= goal < len(goals.is_exit) and bool(goals.is_exit[goal] or goals.usable[goal])
    return np.array([goal] if there else [], dtype=np.int64)


def goal_cells(numbers: NDArray[np.int64], world: World, raster: Raster, *, strict: bool) -> NDArray[np.bool_]:
    """Cells of all these goals. With `strict`, a goal without a free cell in sight is an error that names it.

    A target that moves by itself may pass through walls, and a goal hidden by a fire may reappear when the fire is out;
    neither is an error.
    """
    names = {number: name for name, number in world.goal_numbers.items()}
    cells = np.zeros(raster.shape, dtype=np.bool_)
    for number in numbers.tolist():
        name = names[number]
        own = _cells_of(name, number, world, raster)
        if strict and not len(own) and not _may_be_hidden(name, number, world, raster):
            raise GeometryError(_unseen(name, number, world, raster))
        cells[tuple(own.T)] = True
    return cells


def _cells_of(name: str, number: int, world: World, raster: Raster) -> NDArray[np.int64]:
    """Indices of the cells of a goal."""
    if world.goals().is_target[number]:
        return _target_cells(number, world, raster)
    if world.dim == 3:
        low, high = shape_of_goal(world, name)
        margin = 0.25 * (high - low)
        low, high = low + margin, high - margin
        index = _free_cells_between(low, high, raster)
        centres = raster.centre(index)
        return np.asarray(index[((centres >= low) & (centres <= high)).all(axis=1)])
    shape = shape_of_goal(world, name)
    if name in world.exits or world.goals().is_line[number]:
        return _shape_cells(shape, world, raster)
    # A middle without any free cell may be a pillar: then the rest of the region serves as well.
    middle = _shape_cells(middle_of(walkable_part(shape, world.walkable)), world, raster)
    return middle if len(middle) else _shape_cells(shape, world, raster)


def _may_be_hidden(name: str, number: int, world: World, raster: Raster) -> bool:
    if name in world.targets and world.targets[name].motion is not None:
        return True
    hazards = world.hazards
    rows = hazards.rows_where("replan")
    if world.goals().is_target[number]:
        away = np.linalg.norm(hazards.position[rows] - world.goals().position[number], axis=1)
    elif world.dim == 3:
        low, high = shape_of_goal(world, name)
        away = np.linalg.norm(hazards.position[rows] - np.clip(hazards.position[rows], low, high), axis=1)
    else:
        away = shapely.distance(shapely.points(hazards.position[rows]), shape_of_goal(world, name))
    return bool((away <= hazards.inner[rows] + raster.reach + _nearby(raster)).any())


def _shape_cells(shape: Any, world: World, raster: Raster) -> NDArray[np.int64]:
    """Indices of the cells of an exit, region or room, or next to a door."""
    low, high = np.asarray(shape.bounds).reshape(2, 2)
    if shape.area > 0.0:
        # Only the part around it is rasterised: there may be thousands of exits.
        first, last = raster.index_of(low - raster.cell), raster.index_of(high + raster.cell)
        inside = np.empty(tuple(last - first + 1), dtype=np.uint8)
        fill_inside_part(segments_of(shape), raster.origin, raster.cell, *first.tolist(), inside)
        free = raster.free[first[0] : last[0] + 1, first[1] : last[1] + 1]
        index = np.argwhere(inside.view(np.bool_) & free) + first
        if len(index):
            return index
    polygon = shape if world.walkable is None else shape.intersection(world.walkable)
    low, high = np.asarray(polygon.bounds).reshape(2, 2)
    index = _free_cells_between(low - _nearby(raster), high + _nearby(raster), raster)
    centres = raster.centre(index)
    nearest = shapely.shortest_line(shapely.points(centres), polygon)
    ends = shapely.get_coordinates(nearest).reshape(-1, 2, 2)[:, 1]
    away = np.linalg.norm(ends - centres, axis=1)
    seen = (away <= _nearby(raster)) & _clear(centres, ends, world)
    return np.asarray(index[seen])


def _target_cells(number: int, world: World, raster: Raster) -> NDArray[np.int64]:
    """Indices of the cells of a target."""
    goals = world.goals()
    place, radius = goals.position[number], float(goals.radius[number])
    wide = max(radius, half_diagonal(raster.dim) * raster.cell)
    widest = max(wide, _nearby(raster))
    index = _free_cells_between(place - widest, place + widest, raster)
    centres = raster.centre(index)
    away = np.linalg.norm(centres - place, axis=1)
    seen = (away <= widest) & _clear(centres, np.broadcast_to(place, centres.shape), world)
    if not seen.any():
        return np.empty((0, raster.dim), dtype=np.int64)
    chosen = seen & (away <= max(wide, float(away[seen].min()) * (1.0 + 1e-9)))
    return np.asarray(index[chosen])


def _nearby(raster: Raster) -> float:
    """Largest distance of the free cells next to a goal: those around a point on a wall are not farther away [m]."""
    return raster.reach + 1.5 * raster.cell


def _free_cells_between(low: NDArray[np.float64], high: NDArray[np.float64], raster: Raster) -> NDArray[np.int64]:
    first, last = raster.index_of(low), raster.index_of(high)
    window = tuple(slice(a, b + 1) for a, b in zip(first.tolist(), last.tolist(), strict=True))
    return np.argwhere(raster.free[window]) + first


def _clear(starts: NDArray[np.float64], ends: NDArray[np.float64], world: World) -> NDArray[np.bool_]:
    """Whether no wall is between each start and its end, except at the very end."""
    if world.dim == 3:
        return np.ones(len(starts), dtype=np.bool_)
    longest = float(np.linalg.norm(ends - starts, axis=1).max(initial=0.0))
    walls = world.wall_grid(longest)
    almost = starts + _ALMOST * (ends - starts)
    return np.array(
        [not chord_blocked(*a, *b, walls) for a, b in zip(starts.tolist(), almost.tolist(), strict=True)],
        dtype=np.bool_,
    )


def _unseen(name: str, number: int, world: World, raster: Raster) -> str:
    if world.goals().is_target[number]:
        what, place = f"target '{name}'", world.goals().position[number].tolist()
    else:
        shape = shape_of_goal(world, name)
        kind, _, rest = name.partition(" ")
        what = f"exit '{name}'" if name in world.exits else f"{kind} '{rest}'"
        place = (0.5 * (shape[0] + shape[1])).tolist() if world.dim == 3 else [shape.centroid.x, shape.centroid.y]
    at = ", ".join(f"{c:g}" for c in place)
    return (
        f"{what} at ({at}) cannot be planned for: no free place (at least {raster.reach:.3g} m from walls and "
        f"obstacles) is within {_nearby(raster):.3g} m and in sight of it; is it inside a wall? Move it, or make cell "
        f"({raster.cell:g} m) or clearance ({raster.clearance:g} m) smaller"
    )


def room_for_error(raster: Raster) -> str:
    """The message for a raster without any free cell."""
    size = " × ".join(str(n) for n in reversed(raster.shape))
    return (
        f"none of the {size} cells of {raster.cell:g} m is free: no place is {raster.reach:.3g} m from every wall and "
        f"obstacle; make cell or clearance smaller"
    )


def spec_of(numbers: NDArray[np.int64], world: World) -> tuple[tuple[int, ...], bytes]:
    """A key that is equal if goals are the same places as before."""
    return tuple(numbers.tolist()), world.goals().position[numbers].tobytes()
