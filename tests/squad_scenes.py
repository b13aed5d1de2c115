"""A small building for tests of squads: rooms on both sides of a corridor, and who has been in which."""

from __future__ import annotations

from typing import Any

import numpy as np
import shapely

from tropel import Door, Group, Search, Seek, Simulation, Squad, World

#: Rooms of 6 m by 5 m, with gaps of 1.4 m in the middle of their walls to a corridor of 3 m.
WIDTH, DEPTH, CORRIDOR, GAP = 6.0, 5.0, 3.0, 0.7


def building(columns: int = 3, *, doors: bool = False, partitions: bool = True) -> World:
    """Two rows of rooms, "south 0" and so on; in each, a partition hides a corner from the door."""
    walls: list[list[tuple[float, float]]] = []
    rooms, made = {}, {}
    length, north = columns * WIDTH, DEPTH + CORRIDOR
    for k in range(columns):
        low, middle, high = k * WIDTH, (k + 0.5) * WIDTH, (k + 1) * WIDTH
        rooms[f"south {k}"] = shapely.box(low, 0.0, high, DEPTH)
        rooms[f"north {k}"] = shapely.box(low, north, high, north + DEPTH)
        for name, y in (("south", DEPTH), ("north", north)):
            walls += [[(low, y), (middle - GAP, y)], [(middle + GAP, y), (high, y)]]
            if doors:
                made[f"door {name} {k}"] = Door([(middle - GAP, y), (middle + GAP, y)], open=True)
        if k:
            walls += [[(low, 0.0), (low, DEPTH)], [(low, north), (low, north + DEPTH)]]
        if partitions:
            walls += [[(low, 2.0), (low + 4.0, 2.0)], [(high - 4.0, north + 3.0), (high, north + 3.0)]]
    return World(shapely.box(0.0, 0.0, length, north + DEPTH), walls=walls, rooms=rooms, doors=made)


def searching(world: World, *, squads: int = 2, share: bool = True, seed: int = 1, **told: Any) -> Simulation:
    """Squads at the ends of the corridor that search all rooms."""
    length = float(world.bounds[1, 0])
    begin = [shapely.box(0.2, DEPTH + 0.3, 3.0, DEPTH + CORRIDOR - 0.3)]
    begin.append(shapely.box(length - 3.0, DEPTH + 0.3, length - 0.2, DEPTH + CORRIDOR - 0.3))
    groups = [
        Group(name, count=3, region=begin[k], stages=[Search(list(world.rooms), share=share)],
              squad=Squad(sight=6.0, spacing=0.7, **told))
        for k, name in enumerate(("alpha", "bravo")[:squads])
    ]  # fmt: skip
    return Simulation(world, groups, local=Seek(), dt=0.1, seed=seed, threads=1)


def entered(sim: Simulation, limit: float) -> dict[str, set[str]]:
    """Run until all rooms are searched; returns which squads have had somebody in each room, by their places alone."""
    found: dict[str, set[str]] = {name: set() for name in sim.world.rooms}
    while sim.time < limit:
        sim.step()
        for name, room in sim.world.rooms.items():
            inside = shapely.contains_xy(room, *sim.agents.position.T)
            found[name] |= {sim.groups[number] for number in np.unique(sim.agents.group[inside])}
        if sim.step_number % 5 == 0 and _is_over(sim):
            break
    return found


def _is_over(sim: Simulation) -> bool:
    """Whether everything has been seen and nobody searches any more."""
    seen = sim.squads.searched()
    if len(seen) < len(sim.world.rooms) or min(seen.values()) < 1.0:
        return False
    return not any(sim.squads[name].room for name in sim.squads)
