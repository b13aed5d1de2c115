"""Builds a world from the [world] table of a scenario file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from tropel.errors import GeometryError, TropelError
from tropel.scenario import schema
from tropel.scenario.locate import dotted
from tropel.scenario.obstacles import add_columns, scatter
from tropel.world import Door, Hazard, Obstacle, Target, World, shapes
from tropel.world.maps import FloorPlan
from tropel.world.pieces import SNAP, snap_together, touching_points
from tropel.world.shapes import Polygonal

if TYPE_CHECKING:
    from tropel.scenario.loading import Scenario

_MANY_HOLES = 100


class WorldBuilder:
    """Builds the world that a scenario describes; errors name the line and the key."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.spec = scenario.spec

    def world(self) -> World:
        """The world, with its columns and scattered obstacles."""
        world = self._world()
        self._columns(world)
        self._scatter(world)
        return world

    def region(self, region: Any, path: Sequence[str | int]) -> Any:
        """A region in the form that groups and sources take; `path` is its key in the file."""
        if isinstance(region, schema.Shape):
            return self._polygon(region, path)
        if isinstance(region, schema.BoxSpec):
            return region.low, region.high
        return region

    def _shape(self, shape: schema.Shape, path: Sequence[str | int]) -> Any:
        try:
            return shape.geometry(self.scenario.folder)
        except (TropelError, shapely.errors.ShapelyError, ValueError) as error:
            raise self.scenario.error(path, str(error)) from error

    def _polygon(self, shape: schema.Shape, path: Sequence[str | int]) -> Any:
        geometry = self._shape(shape, path)
        try:
            return shapes.polygon(geometry, dotted(path))
        except TropelError as error:
            raise self.scenario.error(path, str(error).removeprefix(f"{dotted(path)}: ")) from error

    def _map(self) -> FloorPlan | None:
        given = self.spec.world.map
        if given is None:
            return None
        told = schema.MapSpec(file=given) if isinstance(given, str) else given
        try:
            return told.plan(self.scenario.folder)
        except TropelError as error:
            raise self.scenario.error(("world", "map"), str(error)) from error

    def _walkable(self, plan: FloorPlan | None) -> Any:
        given = self.spec.world.walkable
        if plan is not None:
            area: Any = plan.walkable
        elif given is not None:
            parts = given if isinstance(given, list) else [given]
            area = self._union([self._polygon(s, ("world", "walkable", k)) for k, s in enumerate(parts)])
        else:
            return None
        holes = [self._polygon(hole, ("world", "holes", k)) for k, hole in enumerate(self.spec.world.holes)]
        if len(holes) > _MANY_HOLES:
            # Cut out one by one, the area with all its corners would be rebuilt for each. A few are still cut out one
            # by one: the order of walls depends on it, and the last bits of how agents move depend on that order.
            holes = [shapely.union_all(holes)]
        for hole in holes:
            area = area.difference(hole)
        if area.is_empty:
            raise self.scenario.error(("world", "holes"), "nothing is left of the walkable area; cut out less")
        return area

    def _union(self, parts: list[Polygonal]) -> Polygonal:
        """The shapes of the walkable area as one; those that nearly touch are joined."""
        path = ("world", "walkable")
        try:
            area = shapely.union_all(snap_together(parts, "the shapes"))
        except GeometryError as error:
            raise self.scenario.error(path, str(error)) from error
        for _, _, (x, y) in touching_points(area):
            there = np.flatnonzero(shapely.dwithin(parts, shapely.Point(x, y), SNAP))
            raise self.scenario.error(
                path,
                f"shapes {' and '.join(map(str, there))} meet only in the point ({x:g}, {y:g}), and nobody fits "
                f"through a point; let them overlap by the width of a passage, or move them apart",
            )
        return area

    def _world(self) -> World:
        spec = self.spec.world
        obstacles = {
            name: Obstacle(radius=o.radius, position=o.position, motion=o.motion, type=o.type)
            for name, o in spec.obstacles.items()
        }
        targets = {
            name: Target(position=t.position, motion=t.motion, radius=t.radius, absorbs=t.absorbs)
            for name, t in spec.targets.items()
        }
        hazards = {name: self._hazard(name, h) for name, h in self.spec.hazards.items()}
        if spec.box is not None:
            regions = {n: (r.low, r.high) for n, r in spec.regions.items() if isinstance(r, schema.BoxSpec)}
            return World.box(
                spec.box.low,
                spec.box.high,
                periodic=spec.periodic,
                open=spec.open,
                obstacles=obstacles,
                targets=targets,
                hazards=hazards,
                regions=regions,
            )
        plan = self._map()
        exits = {name: self._polygon(s, ("world", "exits", name)) for name, s in spec.exits.items()}
        return World(
            self._walkable(plan),
            bounds=spec.bounds,
            periodic=spec.periodic,
            walls=spec.walls,
            exits=exits if plan is None else plan.exits_and(exits),
            regions={
                name: self._polygon(s, ("world", "regions", name))
                for name, s in spec.regions.items()
                if isinstance(s, schema.Shape)
            },
            rooms={name: self._polygon(s, ("world", "rooms", name)) for name, s in spec.rooms.items()},
            doors={name: Door(d.line, open=d.open) for name, d in spec.doors.items()},
            obstacles=obstacles,
            targets=targets,
            hazards=hazards,
        )

    def _hazard(self, name: str, spec: schema.HazardSpec) -> Hazard:
        try:
            return spec.made()
        except TropelError as error:
            raise self.scenario.error(("hazards", name), str(error)) from error

    def _columns(self, world: World) -> None:
        for name, spec in self.spec.world.columns.items():
            try:
                add_columns(world, name, radius=spec.radius, places=spec.places)
            except TropelError as error:
                raise self.scenario.error(("world", "columns", name), str(error)) from error

    def _scatter(self, world: World) -> None:
        for name, spec in self.spec.world.scatter.items():
            path = ("world", "scatter", name)
            region = self.region(spec.region, (*path, "region"))
            try:
                scatter(
                    world,
                    name,
                    count=spec.count,
                    radius=spec.radius,
                    region=region,
                    gap=spec.gap,
                    seed=spec.seed,
                    type=spec.type,
                    arcs_of=spec.arcs_of,
                    facing=spec.facing,
                    travel=spec.travel,
                    speed=spec.speed,
                )
            except TropelError as error:
                raise self.scenario.error(path, str(error)) from error
