"""Compile every kernel once, so that later runs start at once.

Kernels are compiled when they are first called and kept on disk. The work here is to call each of them with the types
it will be called with: small scenes in 2D and 3D that use everything.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from tropel._kernels.cache import cache_directory, kernels_are_kept
from tropel._kernels.compile import compiled_kernels, watch_compiling

#: What most scenes need; a first demo compiles no more than this.
BASICS = ("a crowd in a room",)


def _mark(directory: Path, what: str) -> Path:
    """The file that says that a part has been compiled from these very sources."""
    return directory / what.replace(" ", "-")


def is_warm(parts: Sequence[str] = BASICS) -> bool:
    """Whether these parts have been compiled before."""
    directory = cache_directory()
    return directory is not None and all(_mark(directory, what).exists() for what in parts)


def warm_up(tell: Callable[[int, str], None] | None = None, parts: Sequence[str] | None = None) -> int:
    """Compile what is not compiled yet; returns how many kernels that were. `tell(done, what)` hears how far it is.

    The basics come first, because everything else needs them; the other parts are shared out among processes.
    """
    chosen = list(PARTS) if parts is None else list(parts)
    compiled = done = 0

    def begun(name: str) -> None:
        nonlocal compiled
        compiled += 1
        if tell is not None:
            tell(done, f"compiling {name}")

    def finished(count: int, what: str) -> None:
        nonlocal compiled, done
        compiled += count
        done += 1
        if tell is not None:
            tell(done, what)

    first = [what for what in chosen if what in BASICS] or chosen[:1]
    rest = [what for what in chosen if what not in first]
    with watch_compiling(begun):
        for what in first:
            _compile_part(what)
            finished(0, what)
    if not kernels_are_kept():  # what other processes compile would be lost when they end
        if tell is not None:
            tell(len(chosen), f"{compiled} kernels compiled, none of them kept")
        return compiled
    # What is compiled already takes less time to try than to start processes for.
    cold = [what for what in rest if not is_warm([what])]
    for what in rest:
        if what not in cold:
            finished(_compile_part(what)[0], what)
    if cold:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for at_work in as_completed([pool.submit(_compile_elsewhere, what) for what in cold]):
                finished(*at_work.result())
    if tell is not None:
        tell(len(chosen), f"{compiled} kernels compiled" if compiled else "everything was compiled already")
    return compiled


def _compile_part(what: str) -> tuple[int, str]:
    """Use everything of a part once; returns how many kernels had to be compiled, and the part."""
    names: list[str] = []
    with watch_compiling(names.append):
        PARTS[what]()
    if kernels_are_kept() and (directory := cache_directory()) is not None:
        with contextlib.suppress(OSError):  # then the part is tried again, and its kernels are found one by one
            _mark(directory, what).touch()
    return len(names), what


def _compile_elsewhere(what: str) -> tuple[int, str]:
    """`_compile_part` in a process of its own: the compiler uses one core. What it warns of is said here, once."""
    done = subprocess.run([sys.executable, "-c", _SCRIPT, what], stdout=subprocess.PIPE, text=True, check=True)
    count, warned = json.loads(done.stdout.splitlines()[-1])
    for text in warned:
        warnings.warn(text, stacklevel=2)
    return count, what


_SCRIPT = """
import json, sys, warnings
from tropel.warmup import _compile_part
with warnings.catch_warnings(record=True) as warned:
    count, _ = _compile_part(sys.argv[1])
print(json.dumps([count, [str(one.message) for one in warned]]))
"""


def _crowd_in_a_room() -> None:
    from tropel import Seek
    from tropel._kernels.arrays import clear, copy

    _use_in_a_room(Seek())
    # What large crowds do on several threads, small ones do without a kernel.
    large = np.zeros(1 << 18)
    copy(large, large.copy())
    clear(large)


def _collision_free_crowd() -> None:
    from tropel.local.collision_free_speed import CollisionFreeSpeed

    _use_in_a_room(CollisionFreeSpeed())


def _competing_behaviours() -> None:
    from tropel.local.dynamical.model import Dynamical

    _use_in_a_room(Dynamical())
    _use_in_a_box(Dynamical())


def _flocks() -> None:
    from tropel import Flocking, Group, Simulation, World
    from tropel.local.flocking.model import all_same

    _use_in_a_room(Flocking())
    _use_in_a_box(Flocking(blind_angle=1.0, nearest=4))
    # How a column is looked through depends on its length.
    for count in (1 << 13, 1 << 18):
        all_same(np.zeros(count))
    # Two groups that hunt each other, in space without walls and without a seam and with one.
    for periodic in (False, True):
        world = World.box((0.0, 0.0), (9.0, 9.0), periodic=periodic, open=not periodic)
        groups = [Group("prey", count=12), Group("hunters", count=3, follow="prey")]
        models = {"prey": Flocking(flee=["hunters"]), "hunters": Flocking(chase=["prey"])}
        _use(Simulation(world, groups, local=models, dt=0.1))


def _use_in_a_room(model: Any, planner: Any = None) -> None:
    from tropel import (
        Direct,
        Door,
        Grid,
        Group,
        Hazard,
        Normal,
        Obstacle,
        Orbit,
        Simulation,
        Source,
        Target,
        World,
        events,
    )

    world = World(
        shapely.box(0, 0, 10, 10) - shapely.box(4, 4, 5, 5),
        walls=[[(1, 1), (1, 2)]],
        exits={"out": shapely.box(9, 4, 10, 6)},
        doors={"door": Door([(8, 0), (8, 10)], open=True)},
        obstacles={
            "still": Obstacle(radius=0.3, position=(6, 2)),
            "moving": Obstacle(radius=0.3, motion=Orbit(center=(6, 7), radius=1, period=9)),
        },
        targets={"spot": Target(position=(2, 8), absorbs=True)},
        hazards={"fire": Hazard(inner=0.3, position=(3, 5))},
    )
    agents = [
        Group("some", count=20, desired_speed=Normal(1.3, 0.2, low=0.5), region=shapely.box(0, 0, 7, 10)),
        Group("others", count=3, goal="spot", region=shapely.box(0, 0, 7, 10)),
        Source("some", rate=20.0, region=shapely.box(0, 0, 7, 10), arrivals="random"),
    ]
    sim = Simulation(world, agents, planning=planner or Direct(), environment=Grid(), local=model, dt=0.1)
    sim.at(0.2, events.CloseDoor(door="door"))
    _use(sim)


def _swarm_in_a_box() -> None:
    from tropel import Seek

    _use_in_a_box(Seek())


def _use_in_a_box(model: Any, planner: Any = None) -> None:
    from tropel import Direct, Group, Hazard, Obstacle, Simulation, Target, Uniform, World

    world = World.box(
        (0, 0, 0),
        (10, 10, 10),
        obstacles={"ball": Obstacle(radius=1.0, position=(5, 5, 5))},
        targets={"spot": Target(position=(9, 9, 9), absorbs=True)},
        hazards={"fire": Hazard(inner=0.3, position=(3, 5, 5))},
    )
    some = Group("some", count=20, goal="spot", desired_speed=Uniform(1.0, 2.0))
    _use(Simulation(world, some, planning=planner or Direct(), local=model, dt=0.1))


def _crowd_on_a_torus() -> None:
    from tropel import Group, Hazard, Obstacle, Simulation, Target, World
    from tropel.local.collision_free_speed import CollisionFreeSpeed

    world = World.box(
        (0, 0),
        (12, 12),
        periodic=True,
        obstacles={"pillar": Obstacle(radius=0.5, position=(0, 6))},
        targets={"spot": Target(position=(11, 11))},
        hazards={"fire": Hazard(inner=0.3, position=(6, 0))},
    )
    some = Group("some", count=20, goal="spot", sense_radius=2.0)
    _use(Simulation(world, some, local=CollisionFreeSpeed(), dt=0.1))


def _flow_fields() -> None:
    from tropel import FlowField, Seek
    from tropel.planning.flow.path_plan import PathPlan

    planner = FlowField()
    _use_in_a_room(Seek(), planner)
    _ask(planner)
    _use_in_a_room(Seek(), FlowField(line_of_sight=False, terrain=lambda points: 1.0 + (points[:, 0] > 5.0)))
    # In a room so small a repair may be given up for a fresh solve.
    free = np.ones((9, 9), dtype=np.bool_)
    goal = np.zeros_like(free)
    goal[0, 0] = True
    layer = PathPlan(free, goal)
    free[4, 1:] = False
    layer.change(free=free, most_touched=1.0)
    layer.change(terrain=np.full(free.shape, 2.0), most_touched=1.0)
    layer.policy()


def _crowd_on_cells() -> None:
    from tropel import Group, Hazard, Lattice, PathPlans, Seek, Simulation, World

    world = World(
        shapely.box(0, 0, 8, 8) - shapely.box(3.6, 0, 4.4, 3.6) - shapely.box(3.6, 4.4, 4.4, 8),
        exits={"out": shapely.box(7.2, 3.2, 8, 4.8), "slit": shapely.box(7.9, 6.0, 8, 6.1)},
        hazards={"fire": Hazard(position=(6.0, 1.0), inner=0.5)},
    )
    agents = [
        Group("guide", count=1),
        Group("cells", count=40, region=shapely.box(0, 0, 3, 8), families=4, follow="guide"),
        Group("slit", count=2, goal="slit"),
        Group("others", count=4),
    ]
    crowd = Lattice()
    models = {"guide": crowd, "cells": crowd, "slit": crowd, "others": Seek()}
    sim = Simulation(world, agents, planning=PathPlans(congestion=True), local=models)
    for _ in range(40):
        sim.step()
    # Where all are on cells, moving is a loop of its own.
    alone = World(shapely.box(0, 0, 4, 4), exits={"out": shapely.box(3.2, 1.2, 4, 2.8)})
    _use(Simulation(alone, Group("people", count=4), planning=PathPlans(), local=Lattice(), dt=0.2))


def _flocks_one_after_the_other() -> None:
    from tropel import Group, SequentialFlock, Simulation, World
    from tropel.analysis import subflocks

    for dim in (2, 3):
        world = World.box([0.0] * dim, [10.0] * dim, periodic=True)
        birds = Group("birds", count=20, goal="none")
        sim = Simulation(world, birds, local=SequentialFlock(), dt=0.5)
        sim.run(until=1.0)
        subflocks(sim.agents.position, within=1.0, period=world.period)


def _harmonic_fields() -> None:
    from tropel import Harmonic, Seek
    from tropel.planning.harmonic.grid import find_unknowns, first_estimate
    from tropel.planning.harmonic.sweeps import solve_by_sweeps

    for walls in ("fixed", "reflecting"):
        planner = Harmonic(walls=walls, cache=False)
        _use_in_a_room(Seek(), planner)
        _ask(planner)
        _use_in_a_box(Seek(), Harmonic(walls=walls, cell=1.0, cache=False))
    # Sweeps are for boxes of more cells than there is time for here.
    free = np.ones((4, 4, 4), dtype=np.bool_)
    held = np.zeros_like(free)
    held[0, 0, 0] = True
    unknowns = find_unknowns(free, held, np.where(held, 0.0, np.nan), None)
    solve_by_sweeps(unknowns, first_estimate(unknowns, np.ones(unknowns.count)), factor=1.0, most=20)


def _painted_fields() -> None:
    from tropel import ArrayField, Blend, FlowField, Harmonic, Seek, Stroke, VectorField

    lane = Stroke([(0.0, 5.0), (10.0, 5.0)], width=3.0)
    _use_in_a_room(Seek(), VectorField(lane, fallback=FlowField()))
    _use_in_a_room(Seek(), Blend([(0.7, Harmonic(cache=False)), (0.3, VectorField(lane))]))
    upwards = ArrayField(np.full((2, 2, 2, 3), 3**-0.5), origin=(0.0, 0.0, 0.0), cell=5.0)
    _use_in_a_box(Seek(), VectorField(upwards))


def _influence_of_hazards() -> None:
    from tropel import World
    from tropel.world.influence import influence_filter
    from tropel.world.raster import lattice_cells

    influence_filter(lattice_cells(World(shapely.box(0, 0, 4, 4))), (2.0, 2.0), 0.5, 2.0, 1.0)


def _ask(planner: Any) -> None:
    """What pictures and reports ask of a planner that has been used in the room."""
    from tropel import World

    field = planner.field("nearest exit")
    field.directions()
    field.sample(np.array([[2.0, 2.0], [9.0, 9.0]]), World(shapely.box(0, 0, 10, 10)))


def _use(sim: object) -> None:
    from tropel.simulation import Simulation

    assert isinstance(sim, Simulation)
    sim.run(until=0.5)
    near = sim.sense()
    near.csr()
    near.walls_csr()
    near.obstacles_csr()


#: What is compiled, by the name that the progress bar shows.
PARTS: dict[str, Callable[[], None]] = {
    "a crowd in a room": _crowd_in_a_room,
    "a collision-free crowd": _collision_free_crowd,
    "a swarm in a box": _swarm_in_a_box,
    "a crowd on a torus": _crowd_on_a_torus,
    "competing behaviours": _competing_behaviours,
    "flocks": _flocks,
    "flow fields": _flow_fields,
    "a crowd on cells": _crowd_on_cells,
    "flocks one after the other": _flocks_one_after_the_other,
    "harmonic fields": _harmonic_fields,
    "painted fields": _painted_fields,
    "influence of hazards": _influence_of_hazards,
}


def kernels() -> list[str]:
    """Names of all kernels that are compiled in this process."""
    return sorted(k.py_func.__module__ + "." + k.py_func.__name__ for k in compiled_kernels() if k.signatures)
