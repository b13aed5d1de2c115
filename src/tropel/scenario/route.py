"""Planning a route without a run: from a map, a start and a goal to a roadmap, a path and its picture."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np

from tropel.agents.groups import Group
from tropel.contracts.offers import OfferedRoadmap, RoadmapPath, offered
from tropel.errors import ParameterError, PathError
from tropel.registry import PLANNERS
from tropel.simulation import Simulation
from tropel.world import Target, World

if TYPE_CHECKING:
    from rich.table import Table

#: Planners that lead an agent along a path over a roadmap.
ROUTES = ("roadmap", "adaptive_roadmap", "rooms")
_RADIUS = 0.2


@dataclass(frozen=True, kw_only=True)
class Route:
    """A planned path, and the roadmap that it was found on."""

    sim: Simulation
    roadmap: OfferedRoadmap
    path: RoadmapPath
    planner: str
    goal: str
    seconds: float
    title: str = ""

    @property
    def length(self) -> float:
        """[m]"""
        return float(np.linalg.norm(np.diff(self.path.points, axis=0), axis=1).sum())

    def table(self) -> Table:
        from rich.table import Table

        table = Table(title=self.title or None, show_header=False)
        start = ", ".join(f"{c:.4g}" for c in self.path.points[0])
        table.add_row("planner", f"{self.planner}, from ({start}) to {self.goal}")
        table.add_row("roadmap", f"{len(self.roadmap.nodes()):,} nodes, {len(self.roadmap.edges()):,} edges")
        shut = sum(map(len, self.roadmap.gross()))
        if shut:
            table.add_row("over doors", f"{shut:,} edges")
        table.add_row("path", f"{self.length:.4g} m, {len(self.path.points) - 2} subgoals on the way")
        table.add_row("planned in", f"{self.seconds:.2f} s")
        return table


def make_route(
    world: World,
    *,
    planner: str = "roadmap",
    start: tuple[float, float] | None = None,
    goal: tuple[float, float] | None = None,
    clearance: float = 0.1,
    radius: float = _RADIUS,
    title: str = "",
) -> Route:
    """Plan the path of a body from a start, or from somewhere, to a place or to the nearest exit or target."""
    world = copy.deepcopy(world)
    if world.dim != 2:
        raise ParameterError("tropel plan draws maps in 2D; in 3D, use the planner in a simulation")
    if goal is not None:
        name = next(name for name in ("goal", *(f"goal_{k}" for k in range(2, 1000))) if name not in world.goal_numbers)
        world.add_target(name, Target(position=goal, radius=0.0))
        said = f"({goal[0]:g}, {goal[1]:g})"
    elif world.exits or world.targets:
        name = said = "nearest exit" if world.exits else "nearest target"
    else:
        raise ParameterError("this world has no exits and no targets; give the goal as x,y in metres")
    where = {"count": 1} if start is None else {"positions": [start]}
    made = PLANNERS.make({"model": planner, "clearance": clearance})
    begun = perf_counter()
    sim = Simulation(world, Group("traveller", goal=name, radius=radius, **where), planning=made, title=title)
    offer = offered([made], OfferedRoadmap)[0]
    paths = offer.paths()
    if paths:
        return Route(sim=sim, roadmap=offer, path=paths[0], planner=planner, goal=said,
                     seconds=perf_counter() - begun, title=title)  # fmt: skip
    raise PathError(f"there is no path to {said} while doors are shut; open some in the file")


def draw_route(route: Route, path: Path) -> Path:
    """Draw a route over its world."""
    from tropel.pictures.roadmap import RoadmapLines, draw_roadmap

    lines = RoadmapLines(
        edges=route.roadmap.edges(), gross=route.roadmap.gross()[0], blocked=route.path.blocked,
        paths=[route.path.points],
    )  # fmt: skip
    facts = [f"{route.planner.replace('_', ' ')} to {route.goal}", f"{len(route.roadmap.nodes()):,} nodes",
             f"{len(lines.edges):,} edges", f"path of {route.length:.3g} m"]  # fmt: skip
    return draw_roadmap(route.sim.scene, lines, path, title=route.title, facts=facts)
