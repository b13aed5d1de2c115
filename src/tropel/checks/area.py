"""The walkable area in several pieces, and regions that reach out of the building."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import shapely

from tropel.agents.groups import Source
from tropel.agents.room import region_area
from tropel.agents.state import NO_GOAL
from tropel.checks.finding import Finding, at, named, people
from tropel.checks.subjects import alive
from tropel.world.pieces import touching_points

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Pieces, and places where they touch, that are described.
_MOST_PIECES = 4
#: Regions may reach this share out of the building: those drawn around a wall do.
_SMALL_SHARE = 0.02


def check_area(sim: Simulation) -> Iterator[Finding]:
    """The pieces of the walkable area, if there are several: a warning if people and goals are in different ones."""
    world = sim.world
    parts = [] if world.walkable is None else list(shapely.get_parts(world.walkable))
    if len(parts) < 2:
        return
    tree = shapely.STRtree(shapely.points(sim.agents.position))
    members = [tree.query(part, predicate="intersects") for part in parts]
    wanting = alive(sim) & (sim.agents.goal != NO_GOAL)
    exits = [[name for name, e in world.exits.items() if e.polygon.intersects(part)] for part in parts]
    places = {name: shapely.Point(world.goals().position[world.goal_numbers[name]]) for name in world.targets}
    targets = [[name for name, place in places.items() if part.covers(place)] for part in parts]
    regions = [region_area(world, source.region, source.group) for source in sim.population.sources]
    sources = [sum(part.intersects(region) for region in regions) for part in parts]
    split = any(
        (bool(wanting[rows].any()) and not goals) or (bool(goals) and not len(rows) and not coming)
        for rows, goals, coming in zip(members, map(list.__add__, exits, targets), sources, strict=True)
    )
    said = []
    for k in np.argsort([-part.area for part in parts], kind="stable")[:_MOST_PIECES].tolist():
        inside = [people(len(members[k])) if len(members[k]) else "nobody"]
        inside += [named("exit", exits[k])] if exits[k] else []
        inside += [named("target", targets[k])] if targets[k] else []
        inside += [f"{sources[k]} source{'s' * (sources[k] > 1)}"] if sources[k] else []
        centre = shapely.get_coordinates(parts[k].representative_point())[0]
        said.append(f"{parts[k].area:.3g} m² around {at(centre)} with {', '.join(inside)}")
    more = f"; and {len(parts) - _MOST_PIECES} smaller ones" if len(parts) > _MOST_PIECES else ""
    yield Finding(
        code="pieces",
        message=f"the walkable area is in {len(parts)} pieces that are not connected: {'; '.join(said)}{more}",
        remedy="let them overlap where people should get through",
        severity="warning" if split else "note",
    )
    touching = [
        (bool(len(members[a]) or len(members[b])), a, b, place) for a, b, place in touching_points(world.walkable)
    ]
    for used, one, other, place in sorted(touching, key=lambda each: not each[0])[:_MOST_PIECES]:
        yield Finding(
            code="pieces_touch",
            message=f"two pieces of the walkable area, {parts[one].area:.3g} m² and {parts[other].area:.3g} m² large, "
            f"meet only in the point {at(place)}, and nobody fits through a point",
            remedy="let them overlap by the width of a passage, or move them apart",
            severity="warning" if split and used else "note",
            place=place,
        )


def check_regions(sim: Simulation) -> Iterator[Finding]:
    """Regions of groups and sources that lie partly outside the building."""
    for declared in sim.population.declared:
        region = declared.region
        if region is None:
            continue
        who = f"the source of '{declared.group}'" if isinstance(declared, Source) else f"group '{declared.name}'"
        share = _outside(sim, region, who)
        if share > _SMALL_SHARE:
            name = f"region '{region}'" if isinstance(region, str) and len(region) < 40 else "region"
            yield Finding(
                code="region_outside",
                message=f"{share:.0%} of the {name} of {who} lies outside the walkable area; people only appear in the "
                f"rest of it",
                remedy="draw the region inside the building",
            )


def _outside(sim: Simulation, region: Any, who: str) -> float:
    """The share of a region outside the building: beyond its outer walls, not in a column or a wall inside it."""
    world = sim.world
    if world.dim == 3:
        low, high = world.region(region) if isinstance(region, str) else np.asarray(region, dtype=np.float64)
        inner = np.minimum(high, world.bounds[1]) - np.maximum(low, world.bounds[0])
        sides = np.where(world.walled, np.maximum(inner, 0.0) / np.maximum(high - low, 1e-12), 1.0)
        return float(1.0 - np.prod(sides))
    if world.walkable is None:
        return 0.0
    area = region_area(world, region, who)
    building = shapely.union_all([shapely.Polygon(part.exterior) for part in shapely.get_parts(world.walkable)])
    return float(area.difference(building).area / area.area)
