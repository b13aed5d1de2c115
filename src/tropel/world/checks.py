"""Where things of a world may be: exits, regions and rooms, targets and obstacles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.errors import GeometryError
from tropel.world.obstacles import Obstacle
from tropel.world.periodic import check_within_sides

if TYPE_CHECKING:
    from tropel.world.world import World


def check_named_areas(world: World) -> None:
    """Raise if an exit, region or room has no part in the world, or if a wall of periodic space crosses its sides."""
    if world.is_periodic:
        check_within_sides(world)
    if world.walkable is None:
        return
    for kind, places in (
        ("exit", {name: e.polygon for name, e in world.exits.items()}),
        ("region", world.regions),
        ("room", world.rooms),
    ):
        for name, place in places.items():
            # The first test takes no time, the second one grows with the number of corners of the area.
            if not world.walkable.contains_properly(place) and world.walkable.intersection(place).area <= 0.0:
                away = world.walkable.distance(place)
                raise GeometryError(
                    f"{kind} '{name}' lies outside the walkable area ({away:.3g} m away, around "
                    f"({place.centroid.x:g}, {place.centroid.y:g})); it must overlap it"
                )


def check_place(world: World, place: NDArray[np.float64], what: str) -> None:
    """Raise if a place is not in the walkable area; in 3D and in periodic space, if it is not in the box."""
    if world.dim == 3 or world.is_periodic:
        free = world.unbounded
        inside, where = bool(((place >= world.bounds[0]) & (place <= world.bounds[1]) | free).all()), "box"
    else:
        inside, where = world.walkable is None or world.walkable.covers(shapely.Point(place)), "walkable area"
    if not inside:
        at = ", ".join(f"{c:g}" for c in place)
        raise GeometryError(f"{what} at ({at}) lies outside the {where}; put it inside")


def check_obstacle_place(world: World, name: str, obstacle: Obstacle, *, time: float) -> None:
    """Raise if an obstacle's place at `time` [s] is not valid in a world, or far outside it."""
    world.obstacles.check(name, obstacle, time=time)
    if obstacle.position is None:
        return
    place = np.asarray(obstacle.position)
    outside = (place + obstacle.radius < world.bounds[0]) | (place - obstacle.radius > world.bounds[1])
    if (outside & world.walled).any():
        low, high = (", ".join(f"{c:g}" for c in corner) for corner in world.bounds)
        at = ", ".join(f"{c:g}" for c in place)
        raise GeometryError(
            f"obstacle '{name}' at ({at}) lies outside the world, which reaches from ({low}) to ({high}); put it inside"
        )
