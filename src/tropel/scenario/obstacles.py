"""Many obstacles from one entry of a file: columns in 3D, and round obstacles scattered at random."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel._kernels.philox import random_key, uniforms
from tropel.agents.distributions import draw
from tropel.agents.room import Region
from tropel.errors import GeometryError
from tropel.foundation.memory import require_memory
from tropel.world import Obstacle, Waypoints, World
from tropel.world.obstacles import inside_discs
from tropel.world.periodic import nearest_images, shifts

# Columns in 3D, from the floor to the ceiling: stacks of balls, the only obstacles in 3D.


#: Centres of the balls of a column are at most this many radii apart: nowhere is it thinner than 97 % of its width.
_APART = 0.5
#: Memory of a ball, with its name and place [bytes].
_BYTES_PER_BALL = 1000.0


def add_columns(world: World, name: str, *, radius: float, places: Sequence[tuple[float, float]]) -> None:
    """Add columns `name_1`, `name_2`, … to a box, at places (x, y); their balls are `name_1_1`, `name_1_2`, …"""
    low, high = world.bounds[:, 2]
    balls = float(max(2.0, 1.0 + np.ceil((high - low) / (_APART * radius))))
    require_memory(
        _BYTES_PER_BALL * balls * len(places),
        f"{len(places)} columns of {balls:.3g} balls each",
        "use wider columns, or fewer of them",
        error=GeometryError,
    )
    heights = np.linspace(low, high, int(balls)).tolist()
    world.obstacles.add_all(
        {
            f"{name}_{column}_{number}": Obstacle(radius=radius, position=(float(x), float(y), z))
            for column, (x, y) in enumerate(places, start=1)
            for number, z in enumerate(heights, start=1)
        }
    )


_DARTS_PER_OBSTACLE = 200
#: Darts that are tested together.
_BATCH = 1 << 16
#: Memory of an obstacle, with its name and its places in lists [bytes].
_BYTES_PER_OBSTACLE = 2000
#: Obstacles that reach into more squares than this are not listed in them.
_MOST_SQUARES = 1000
#: For fewer new obstacles it does not pay to sort the existing ones into squares.
_FEW = 32
#: Less than one, so that rounding drops no valid dart.
_SURELY = 1.0 - 1e-9


#: Stones of an arc overlap: their centres are this many radii apart, over this angle, and arcs face this much aside.
_ARC_APART, _ARC_ANGLE, _ARC_ASIDE = 1.6, 3.6, math.radians(40.0)


def scatter(
    world: World,
    name: str,
    *,
    count: int,
    radius: Any,
    region: Any,
    gap: float,
    seed: int,
    type: str = "obstacle",
    arcs_of: int | None = None,
    facing: float | None = None,
    travel: float = 0.0,
    speed: float = 1.0,
) -> None:
    """Add obstacles `name_1`, `name_2`, … to a world, with their centres in a region.

    They keep `gap` [m] free to each other and to the walls, doors, exits, targets and obstacles already there. Places
    and radii depend on `seed` and `name` only, so that a scene stays the same when the agents in it change. Arcs are
    placed like single obstacles as wide as they are. With `travel`, the obstacles move back and forth by so much.
    """
    if arcs_of is not None:
        if travel:
            raise GeometryError("arcs do not move; leave out either arcs_of or travel")
        _scatter_arcs(world, name, count, radius, region, gap, seed, type, arcs_of, facing)
        return
    before = set(world.obstacles.names)
    _scatter_singly(world, name, count=count, radius=radius, region=region, gap=gap, seed=seed, type=type)
    if travel:
        _set_off([added for added in world.obstacles.names if added not in before], world, travel, speed, seed)


def _scatter_arcs(
    world: World, name: str, count: int, radius: Any, region: Any, gap: float, seed: int, type: str, arcs_of: int,
    facing: float | None,
) -> None:  # fmt: skip
    """Place arcs as discs that are as wide, then put the stones in their place."""
    if world.dim != 2:
        raise GeometryError("arcs_of is for 2D worlds")
    arcs = -(-count // arcs_of)
    stone = draw(radius, seed=seed, purpose=f"{name}/radius", ids=np.arange(arcs))
    rings = stone * (1.0 + _ARC_APART * (arcs_of - 1) / _ARC_ANGLE)
    aside = _ARC_ASIDE * (2.0 * uniforms(random_key(seed, f"{name}/facing"), np.arange(arcs))[:, 0] - 1.0)
    turned = aside * (math.pi / _ARC_ASIDE) if facing is None else math.radians(facing) + math.pi + aside
    _scatter_singly(world, name, count=arcs, radius=rings, region=region, gap=gap, seed=seed, type=type)
    places = [world.obstacles[f"{name}_{k + 1}"].position for k in range(arcs)]
    for k in range(arcs):
        world.obstacles.remove(f"{name}_{k + 1}")
    stones: dict[str, Obstacle] = {}
    for k, middle in enumerate(places):
        for number in range(min(arcs_of, count - k * arcs_of)):
            angle = turned[k] + _ARC_ANGLE * (number / (arcs_of - 1) - 0.5)
            along = (rings[k] - stone[k]) * np.array([math.cos(angle), math.sin(angle)])
            where = tuple((np.asarray(middle) + along).tolist())
            stones[f"{name}_{len(stones) + 1}"] = Obstacle(radius=float(stone[k]), position=where, type=type)
    world.obstacles.add_all(stones)


def _set_off(names: Sequence[str], world: World, travel: float, speed: float, seed: int) -> None:
    """Let obstacles move back and forth, each in a direction of its own, within the bounds of the world."""
    low, high = world.bounds
    unit = uniforms(random_key(seed, "obstacles/ways"), np.arange(len(names)))
    moving = {}
    for name, (turn, tilt) in zip(names, unit.tolist(), strict=True):
        stands = world.obstacles[name]
        assert stands.position is not None
        flat = 1.0 if world.dim == 2 else math.sqrt(1.0 - (2.0 * tilt - 1.0) ** 2)
        way = np.array([flat * math.cos(2.0 * math.pi * turn), flat * math.sin(2.0 * math.pi * turn), 2.0 * tilt - 1.0])
        begin = np.asarray(stands.position, dtype=np.float64)
        end = np.clip(begin + travel * way[: world.dim], low + stands.radius, high - stands.radius)
        if np.array_equal(begin, end):
            end = begin - 0.5 * travel * way[: world.dim]
        motion = Waypoints(points=(tuple(begin.tolist()), tuple(end.tolist())), speed=speed)
        moving[name] = Obstacle(radius=stands.radius, motion=motion, type=stands.type)
        world.obstacles.remove(name)
    world.obstacles.add_all(moving)


def _scatter_singly(
    world: World, name: str, *, count: int, radius: Any, region: Any, gap: float, seed: int, type: str
) -> None:
    require_memory(_BYTES_PER_OBSTACLE * float(count), f"{count:,} obstacles", "use fewer of them", error=GeometryError)
    radii = draw(radius, seed=seed, purpose=f"{name}/radius", ids=np.arange(count))
    if (radii <= 0.0).any():
        raise GeometryError(f"radius must be positive, but {radii.min():g} was drawn; give the distribution a 'low'")
    low, high, area = _where(world, region)
    most = Region(world, region, name).most(float(radii.min()) + 0.5 * gap)
    if count > most:
        raise GeometryError(_no_room(math.floor(most), count, radii, gap))
    where, taken_radius = _targets(world)
    taken = _Taken(np.vstack([where, world.obstacles.position]), np.append(taken_radius, world.obstacles.radius), radii,
                   gap, world)  # fmt: skip
    solid = _solid(world)
    key = random_key(seed, f"{name}/places")
    placed: dict[str, Obstacle] = {}
    for first in range(0, _DARTS_PER_OBSTACLE * count, _BATCH):
        darts = _darts(key, low, high, np.arange(first, min(first + _BATCH, _DARTS_PER_OBSTACLE * count)))
        for dart in _promising(darts, area, taken, solid, float(radii.min()) + gap):
            own = float(radii[len(placed)])
            if taken.is_near(dart, own + gap):
                continue
            if solid is not None and shapely.dwithin(solid, shapely.Point(dart), own + gap):
                continue
            taken.add(dart, own)
            placed[f"{name}_{len(placed) + 1}"] = Obstacle(radius=own, position=tuple(dart.tolist()), type=type)
            if len(placed) == count:
                world.obstacles.add_all(placed)
                return
    raise GeometryError(_no_room(len(placed), count, radii, gap))


def _no_room(fit: int, count: int, radii: NDArray[np.float64], gap: float) -> str:
    return (
        f"only {fit} of {count} obstacles of {radii.min():.2f} to {radii.max():.2f} m radius found room "
        f"{gap:g} m apart; use fewer or smaller ones, a smaller gap or a larger region"
    )


def _darts(
    key: np.uint64, low: NDArray[np.float64], high: NDArray[np.float64], numbers: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Points distributed uniformly over a box."""
    unit = np.hstack([uniforms(key, numbers), uniforms(key, numbers, draw=1)])
    return low + unit[:, : len(low)] * (high - low)


def _promising(darts: NDArray[np.float64], area: Any, taken: _Taken, solid: Any, least: float) -> NDArray[np.float64]:
    """The darts without those outside the area, or nearer than `least` [m] to something that is already there.

    They are tested together: if little room is left, nearly all of them are dropped here.
    """
    if area is not None:
        darts = darts[shapely.contains_xy(area, darts[:, 0], darts[:, 1])]
    if solid is not None and len(darts):
        darts = darts[~shapely.dwithin(solid, shapely.points(darts), least)]
    return darts[~taken.around(darts, least)]


class _Taken:
    """Round objects that others must keep away from, sorted into the squares of space that they reach into."""

    def __init__(
        self,
        position: NDArray[np.float64],
        radius: NDArray[np.float64],
        coming: NDArray[np.float64],
        gap: float,
        world: World,
    ) -> None:
        self.world = world
        self._farthest = float(coming.max()) + gap  #: largest distance to a surface that is queried
        self._square = 2.0 * float(coming.max()) + gap
        self._moves = shifts(world.period)
        self._count = len(radius)
        self._position = np.empty((len(radius) + len(coming), world.dim))
        self._radius = np.empty(len(radius) + len(coming))
        self._position[: self._count], self._radius[: self._count] = position, radius
        self._near: dict[tuple[int, ...], list[int]] = {}
        #: Objects that every place is compared with: the existing ones if only a few are added, and large ones.
        self._always = np.arange(self._count if len(coming) < _FEW else 0)
        for row in range(len(self._always), self._count):
            self._enter(row)

    def add(self, place: NDArray[np.float64], radius: float) -> None:
        self._position[self._count], self._radius[self._count] = place, radius
        self._count += 1
        self._enter(self._count - 1)

    def _enter(self, row: int) -> None:
        reach = float(self._radius[row]) + self._farthest
        if (2.0 * reach / self._square + 2.0) ** self.world.dim > _MOST_SQUARES:
            self._always = np.append(self._always, row)
            return
        for place in self._position[row] + self._moves:
            first = np.floor((place - reach) / self._square).astype(np.int64).tolist()
            last = np.floor((place + reach) / self._square).astype(np.int64).tolist()
            for square in itertools.product(*(range(a, b + 1) for a, b in zip(first, last, strict=True))):
                self._near.setdefault(square, []).append(row)

    def is_near(self, place: NDArray[np.float64], away: float) -> bool:
        """Whether a place is nearer than `away` [m] to the surface of an object."""
        square = tuple(np.floor(place / self._square).astype(np.int64).tolist())
        near = self._near.get(square, [])
        rows = np.append(self._always, np.array(near, dtype=np.int64)) if near else self._always
        if not len(rows):
            return False
        offset = nearest_images(self._position[rows] - place, self.world.period)
        return bool((np.linalg.norm(offset, axis=1) < self._radius[rows] + away).any())

    def around(self, places: NDArray[np.float64], away: float) -> NDArray[np.bool_]:
        """Which places are certainly nearer than that."""
        reach = (self._radius[: self._count] + away) * _SURELY
        return inside_discs(places, self._position[: self._count], reach, self.world)


def _where(world: World, region: Any) -> tuple[NDArray[np.float64], NDArray[np.float64], Any]:
    """The box around a region and, in 2D, the part of it that is walkable."""
    if isinstance(region, str):
        region = world.region(region)
    if world.dim == 3:
        low, high = world.bounds if region is None else region
        return np.asarray(low, dtype=np.float64), np.asarray(high, dtype=np.float64), None
    area = shapely.box(*world.bounds[0], *world.bounds[1]) if region is None else region
    if world.walkable is not None:
        area = area.intersection(world.walkable)
    if area.area <= 0.0:
        raise GeometryError("its region lies outside the walkable area; it must overlap it")
    shapely.prepare(area)
    x0, y0, x1, y1 = area.bounds
    return np.array([x0, y0]), np.array([x1, y1]), area


def _targets(world: World) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    goals = world.goals()
    rows = [number for name, number in world.goal_numbers.items() if name in world.targets]
    return goals.position[rows], goals.radius[rows]


def _solid(world: World) -> Any:
    """Walls, doors and exits as one geometry, or None."""
    if world.dim == 3 or not (len(world.segments) or world.exits):
        return None
    lines = shapely.linestrings(world.segments.reshape(-1, 2, 2))
    joined = shapely.GeometryCollection([*lines, *(way_out.polygon for way_out in world.exits.values())])
    shapely.prepare(joined)
    return joined
