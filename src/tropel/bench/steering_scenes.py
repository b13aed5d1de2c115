"""Four tasks for a steering model, as ready simulations.

* `circle_swap`: agents on a circle walk to the opposite point, and all meet in the middle.
* `four_blocks`: blocks of 25 at the corners of a square walk to the opposite corners, through streets between four
  buildings. Circle and blocks have the dimensions of the RVO2 library's examples "Circle" and "Blocks".
* `two_way_corridor`: two crowds walk through each other.
* `narrow_door`: a room full of people empties through a door.

All agents walk straight to their goals (`Direct`): only the steering gets them past each other and around corners.
Agents sense others up to ten of their own radii away. `shortest_ways` gives path lengths around solid buildings, by a
visibility graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.agents.distributions import Normal
from tropel.agents.groups import Group
from tropel.agents.state import Floats
from tropel.contracts import Model
from tropel.simulation import Simulation
from tropel.world import Target, World

#: Paths may touch what they must not cross; rounding may put them this far inside [m].
_ROUNDING = 1e-6


def shortest_ways(
    starts: Floats, goal: tuple[float, float], solids: Sequence[shapely.Polygon], *, clearance: float
) -> Floats:
    """Length of the shortest path from each start to the goal that keeps the clearance from all solids [m].

    Rounded corners are polygons inside the true arcs, so the length never exceeds the true one.
    """
    from scipy.sparse.csgraph import dijkstra

    grown = shapely.union_all([solid.buffer(clearance) for solid in solids])
    places = np.vstack([[goal], starts, np.unique(shapely.get_coordinates(grown), axis=0)])
    a, b = np.triu_indices(len(places), k=1)
    # A path does not pass through the start of another agent.
    useful = (a == 0) | (b > len(starts))
    a, b = a[useful], b[useful]
    inside = grown.buffer(-_ROUNDING)
    shapely.prepare(inside)
    free = ~shapely.intersects(inside, shapely.linestrings(np.stack([places[a], places[b]], axis=1)))
    a, b = a[free], b[free]
    lengths = np.zeros((len(places), len(places)))
    lengths[a, b] = np.linalg.norm(places[a] - places[b], axis=1)
    from_goal: Floats = dijkstra(lengths, directed=False, indices=0)
    return from_goal[1 : 1 + len(starts)]


#: How far agents sense others, in radii of their own body; the same as in the timed crowds.
SENSE_RADII = 10.0
#: Radius of people [m].
BODY = 0.2


@dataclass(frozen=True, kw_only=True)
class SteeringTask:
    """A simulation before its first step, and how its agents are judged; arrays have one entry per agent id."""

    name: str
    sim: Simulation
    shortest: Floats  #: length of the shortest path to arrive, ignoring other agents [m]
    limit: float  #: a run that has not finished by then has failed [s]
    goals: Floats | None = None  #: (N, 2) goals of agents that do not leave the scene there [m]
    within: float = 0.0  #: how near the goal counts as arrived [m]

    def arrived(self) -> NDArray[np.bool_]:
        """Which agents are at their goal now, or have left through an exit."""
        there = np.ones(len(self.shortest), dtype=bool)
        ids = self.sim.agents.id
        there[ids] = False
        if self.goals is not None:
            away = np.linalg.norm(self.sim.agents.position - self.goals[ids], axis=1)
            there[ids] = away <= self.within * (1.0 + 1e-9)
        return there


#: Makes a scene with agents steered by a model.
SceneMaker = Callable[[Model], SteeringTask]


def circle_swap(model: Model, *, agents: int = 250, ring: float = 200.0) -> SteeringTask:
    """Agents of radius 1.5 m on a circle of radius `ring` [m] swap places with those opposite."""
    radius, bearing = 1.5, 2.0 * np.pi * np.arange(agents) / agents
    start = ring * np.column_stack([np.cos(bearing), np.sin(bearing)])
    edge = ring + 50.0
    world = World(
        bounds=(-edge, -edge, edge, edge),
        targets={f"opposite {k}": Target(position=(-x, -y), radius=radius) for k, (x, y) in enumerate(start)},
    )
    crowd = Group("swappers", positions=start, radius=radius, desired_speed=1.0, sense_radius=SENSE_RADII * radius)
    sim = Simulation(world, crowd, local=model, dt=0.25, seed=1, threads=1, title="circle swap")
    sim.agents.goal[:] = np.arange(agents)
    sim.agents.heading[:] = -start / ring
    shortest = np.full(agents, 2.0 * ring - radius)
    return SteeringTask(name="circle swap", sim=sim, shortest=shortest, limit=1200.0, goals=-start, within=radius)


def buildings() -> list[shapely.Polygon]:
    """The four obstacles of `four_blocks`, 30 m long and wide, with streets of 20 m between them."""
    return [shapely.box(x, y, x + 30.0, y + 30.0) for x in (10.0, -40.0) for y in (10.0, -40.0)]


def four_blocks(model: Model, *, side: int = 5) -> SteeringTask:
    """Four blocks of `side` times `side` agents of radius 2 m walk to the opposite corners, past buildings."""
    radius, within, corner, edge = 2.0, 20.0, 75.0, 150.0
    offset = 55.0 + 10.0 * np.arange(side)
    block = np.column_stack([np.repeat(offset, side), np.tile(offset, side)])
    signs = [(sx, sy) for sx in (1.0, -1.0) for sy in (1.0, -1.0)]
    corners = [(-corner * sx, -corner * sy) for sx, sy in signs]
    targets = {f"corner {k}": Target(position=place, radius=1.0) for k, place in enumerate(corners)}
    world = World(bounds=(-edge, -edge, edge, edge), walls=[b.exterior for b in buildings()], targets=targets)
    groups = [
        Group(
            f"block {k}",
            positions=block * sign,
            radius=radius,
            desired_speed=1.0,
            sense_radius=SENSE_RADII * radius,
            goal=f"corner {k}",
        )
        for k, sign in enumerate(signs)
    ]
    sim = Simulation(world, groups, local=model, dt=0.25, seed=1, threads=1, title="four blocks")
    goals = np.array(corners)[sim.agents.group]
    sim.agents.heading[:] = _towards(goals - sim.agents.position)
    # The last stretch to the goal is straight and free, so arriving within a distance saves exactly that distance.
    ways = [
        shortest_ways(block * sign, place, buildings(), clearance=radius)
        for sign, place in zip(signs, corners, strict=True)
    ]
    shortest = np.concatenate(ways) - within
    return SteeringTask(name="four blocks", sim=sim, shortest=shortest, limit=1000.0, goals=goals, within=within)


def two_way_corridor(model: Model, *, people: int = 300, length: float = 50.0, width: float = 8.0) -> SteeringTask:
    """Half of the people walk to one end of a corridor, half to the other [m]."""
    world = World(
        shapely.box(0.0, 0.0, length, width),
        exits={
            "west": shapely.box(0.0, 0.0, 1.0, width),
            "east": shapely.box(length - 1.0, 0.0, length, width),
        },
    )
    half = length / 2.0
    groups = [
        Group(
            f"to the {end}",
            count=people // 2,
            region=shapely.box(low, 0.0, high, width),
            goal=end,
            radius=BODY,
            sense_radius=SENSE_RADII * BODY,
            desired_speed=usual_speeds(),
        )
        for end, low, high in (("east", 2.0, half - 3.0), ("west", half + 3.0, length - 2.0))
    ]
    sim = Simulation(world, groups, local=model, dt=0.05, seed=2, threads=1, title="two-way corridor")
    east = sim.agents.group == 0
    sim.agents.heading[:] = np.where(east[:, None], (1.0, 0.0), (-1.0, 0.0))
    x = sim.agents.position[:, 0]
    shortest = np.where(east, length - 1.0 - x, x - 1.0)
    return SteeringTask(name="two-way corridor", sim=sim, shortest=shortest, limit=300.0)


def narrow_door(model: Model, *, people: int = 200, width: float = 1.2) -> SteeringTask:
    """People leave a room of 16 by 14 m through a door [m] in a wall half a metre thick."""
    long, wide, wall = 16.0, 14.0, 0.5
    low, high = (wide - width) / 2.0, (wide + width) / 2.0
    outside = shapely.box(long + wall, low, long + wall + 1.0, high)
    world = World(
        shapely.union_all([shapely.box(0.0, 0.0, long, wide), shapely.box(long, low, long + wall, high), outside]),
        exits={"out": outside},
    )
    crowd = Group(
        "people",
        count=people,
        region=shapely.box(1.0, 1.0, long - 2.0, wide - 1.0),
        radius=BODY,
        sense_radius=SENSE_RADII * BODY,
        desired_speed=usual_speeds(),
    )
    sim = Simulation(world, crowd, local=model, dt=0.05, seed=2, threads=1, title="narrow door")
    opening = (long, low + BODY), (long, high - BODY)
    sim.agents.heading[:] = _towards(np.array([long, wide / 2.0]) - sim.agents.position)
    shortest = wall + shapely.distance(shapely.points(sim.agents.position), shapely.LineString(opening))
    return SteeringTask(name="narrow door", sim=sim, shortest=shortest, limit=300.0)


SCENES: dict[str, SceneMaker] = {
    "circle": circle_swap,
    "blocks": four_blocks,
    "corridor": two_way_corridor,
    "door": narrow_door,
}


def usual_speeds() -> Normal:
    """Speeds of people who walk freely [m/s]."""
    return Normal(1.34, 0.2, low=0.8)


def _towards(way: Floats) -> Floats:
    return way / np.linalg.norm(way, axis=1, keepdims=True)
