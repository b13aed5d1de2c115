"""Small scenes in 2D and 3D that call every kernel with the types that real runs use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shapely


def _crowd_in_a_room() -> None:
    from tropel import FlowField, Walk

    _use_in_a_room(Walk(), FlowField())


def _bodies_in_a_room() -> None:
    from tropel._kernels.arrays import clear, copy
    from tropel.agents.state import AgentState, Steered
    from tropel.contracts import Model, Moment
    from tropel.contracts.declarations import ModelDeclaration
    from tropel.run.snapshot import sum_of_row_digests

    class StraightOn(Model):
        """Walks as planned and ignores neighbours, so that contact is the first thing to be compiled."""

        declares = ModelDeclaration(solid_bodies=True, senses=False)

        def steer(self, moment: Moment, out: Steered) -> None:
            out.velocity[moment.members] = moment.directions[moment.members]

    # What large crowds do on several threads, small ones do without a kernel.
    large = np.zeros(1 << 18)
    copy(large, large.copy())
    clear(large)
    sum_of_row_digests(AgentState(2).columns)
    _use_in_a_room(StraightOn())


def _collision_free_crowd() -> None:
    from tropel.local.collision_free_speed import CollisionFreeSpeed

    _use_in_a_room(CollisionFreeSpeed())


def _reciprocal_avoidance() -> None:
    from tropel import ORCA

    _use_in_a_room(ORCA())


def _social_forces() -> None:
    from tropel import SocialForce

    _use_in_a_room(SocialForce())


def _riders() -> None:
    from tropel import FollowPath, Group, Herd, Riders, Simulation, World

    world = World(shapely.box(0, 0, 60, 20))
    groups = [Group("on a road", count=2, goal="none"), Group("in a herd", count=2, goal="none")]
    planners = {"on a road": FollowPath([(0.0, 5.0), (60.0, 5.0)]), "in a herd": Herd()}
    _use(Simulation(world, groups, planning=planners, local=Riders(character="car"), dt=0.1))


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


def _straight_to_the_goal() -> None:
    from tropel import Seek

    _use_in_a_room(Seek())
    _use_in_a_box(Seek())


def _kinetic_neighbourhoods() -> None:
    from tropel import Group, Kinetic, Seek, Simulation, Source, World
    from tropel.environment.kinetic.tetra import Tetrahedralisation

    for visibility in ("near", "approachable", "visible"):
        world = World(
            shapely.box(0, 0, 10, 4),
            walls=[[(5, 0), (5, 1)]],
            doors={"door": [(5, 1), (5, 2)]},
            exits={"out": shapely.box(9, 1, 10, 3)},
        )
        people = [
            Group("people", count=12, region=shapely.box(0, 0, 8, 4)),
            Source("people", rate=20.0, region=shapely.box(0, 0, 4, 4)),
        ]
        sim = Simulation(world, people, local=Seek(), environment=Kinetic(visibility=visibility), dt=0.1)
        _use(sim)
        sim.world.set_door("door", open=True)
        sim.step()
        sim.sense().csr()
        sim.environment.known_to(0, sim.agents, sim.world)
    birds = Group("birds", count=12)
    sim = Simulation(World.box((0, 0, 0), (10, 10, 10)), birds, local=Seek(), environment=Kinetic(), dt=0.1)
    for change in (
        lambda: None,
        lambda: sim.remove_agents(ids=[0]),
        lambda: sim.add_agents("birds", count=30),
        # Whoever comes to a crowd announces itself.
        lambda: sim.add_agents("birds", count=1),
    ):
        change()
        sim.step()
        sim.sense().csr()
    # What only happens to tetrahedra when many move, and when somebody jumps.
    points = 4.0 * np.random.default_rng(0).random((64, 3))
    structure = Tetrahedralisation(points)
    for _ in range(3):
        points = points + 0.1 * np.sin(7.0 * points[:, ::-1])
        points[0] = 4.0 - points[0]
        structure.advance(points)


def _emotions() -> None:
    from tropel import Emotions, Group, Hazard, Simulation, World

    fire = {"fire": Hazard(inner=0.3, position=(8.5, 0.5))}
    world = World(shapely.box(0, 0, 10, 4), exits={"out": shapely.box(9, 1, 10, 3)}, hazards=fire)
    _use(Simulation(world, Group("people", count=12), decisions=[Emotions()], dt=0.1))
    space = World.box((0, 0, 0), (9, 9, 9), hazards={"fire": Hazard(inner=0.3, position=(5, 5, 5))})
    _use(Simulation(space, Group("birds", count=9, goal=(8.0, 8.0, 8.0)), decisions=[Emotions()], dt=0.1))


def _habits() -> None:
    from tropel import (
        AvoidHazards,
        FlowField,
        FollowLeader,
        Group,
        Hazard,
        KeepRight,
        Place,
        Seek,
        Simulation,
        StayTogether,
        WaitForFollowers,
        Walk,
        World,
    )

    fire = {"fire": Hazard(inner=0.3, position=(8.5, 0.5))}
    world = World(shapely.box(0, 0, 10, 4), exits={"out": shapely.box(9, 1, 10, 3)}, hazards=fire)
    people = Group("people", count=12, region=shapely.box(0, 0, 8, 4), families=3)
    _use(Simulation(world, people, local=Walk(), habits=[KeepRight(), StayTogether(), AvoidHazards()], dt=0.1))
    bent = World(shapely.box(0, 0, 10, 4), walls=[[(5, 0), (5, 3)]], doors={"door": [(8, 0), (8, 4)]})
    party = Group("party", count=5, region=shapely.box(0, 0, 4, 3), goal=(4.0, 2.0), then=[Place(door="door")],
                  leader="nearest")  # fmt: skip
    habits = [FollowLeader(), WaitForFollowers()]
    for planner in (None, FlowField()):
        sim = Simulation(bent, party, planning=planner, local=Seek(), habits=habits, dt=0.1)
        sim.run(until=1.0)
        sim.set_goal(Place(door="door"))
        sim.step()
    space = World.box((0, 0, 0), (9, 9, 9))
    _use(Simulation(space, Group("party", count=4, goal=(8.0, 8.0, 8.0), then=[(1.0, 1.0, 1.0)], leader="nearest"),
                    local=Seek(), habits=habits, dt=0.1))  # fmt: skip


def _squads() -> None:
    from tropel import Group, Search, Simulation, Squad, World

    rooms = {"near": shapely.box(0, 0, 5, 4), "far": shapely.box(5, 0, 10, 4)}
    world = World(shapely.box(0, 0, 10, 4), walls=[[(5, 0), (5, 3)]], rooms=rooms)
    seekers = Group("seekers", count=3, region="near", stages=[Search(["near", "far"])],
                    squad=Squad(enemies=["others"], hits=0.1))  # fmt: skip
    others = Group("others", count=3, region="near", goal="none")
    Simulation(world, [seekers, others], dt=0.1).run(until=2.0)


def _knowledge() -> None:
    from tropel import Group, Knowledge, Simulation, Target, World
    from tropel.events import CloseDoor

    world = World(
        shapely.box(0, 0, 10, 4), exits={"out": shapely.box(9, 1, 10, 3)}, doors={"door": [(6, 0), (6, 1)]},
        targets={"flag": Target(position=(5.0, 1.0))},
    )  # fmt: skip
    people = Group("people", count=6, region=shapely.box(0, 0, 4, 4), parameters={"view_angle": 2.0})
    hunters = Group("hunters", count=3, region=shapely.box(0, 0, 4, 4), goal="flag")
    told = {"people": Knowledge(enemies=["hunters"], hop=0.2), "hunters": Knowledge(held_by="group", hop=0.2)}
    sim = Simulation(world, [people, hunters], knowledge=told, dt=0.1)
    sim.at(0.2, CloseDoor(door="door"))
    _use(sim)
    space = World.box((0, 0, 0), (9, 9, 9), targets={"flag": (8.0, 8.0, 8.0)})
    own = {"view_angle": 2.0}
    _use(Simulation(space, Group("a", count=4, goal="flag", parameters=own), knowledge=Knowledge(hop=0.2), dt=0.1))
    _use(Simulation(space, Group("a", count=4, goal="flag", parameters=own), dt=0.1))


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


def _encounters() -> None:
    from tropel import Group, Seek, Simulation, World

    for dim in (2, 3):
        world = World.box([0.0] * dim, [12.0] * dim)
        sim = Simulation(world, Group("some", count=20, goal="none"), local=Seek(), dt=0.1)
        sim.watch_encounters(distance=1.5)
        sim.run(until=0.2)


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


def _roadmaps() -> None:
    from tropel import (
        AdaptiveRoadmap,
        Door,
        Group,
        Obstacle,
        Roadmap,
        Rooms,
        Seek,
        Simulation,
        Target,
        Waypoints,
        World,
    )
    from tropel.planning.roadmap.moving import gap_between2

    for dim in (2, 3):
        at = [(2.0,), (5.0,), (8.0,)]
        one, middle, other = (place * dim for place in at)
        things = {
            "obstacles": {
                "stone": Obstacle(radius=1.0, position=middle),
                "cart": Obstacle(radius=0.8, motion=Waypoints(points=(other, one), speed=2.0)),
            },
            "targets": {"goal": Target(position=other)},
        }
        box = shapely.box(0, 0, 10, 10)
        door = {"door": Door([(7, 0), (7, 10)], open=True)}
        for planner in (Roadmap, AdaptiveRoadmap, *([Rooms] if dim == 2 else [])):
            world = World(box, doors=door, **things) if dim == 2 else World.box((0.0,) * 3, (10.0,) * 3, **things)
            leader = Group("leader", positions=[one], goal="goal")
            _use(Simulation(world, leader, planning=planner(samples=60), local=Seek()))
    gap_between2(*[0.0] * 12)


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


def _stages() -> None:
    from tropel import Go, Group, Simulation, Wait, World

    world = World(shapely.box(0, 0, 10, 10), regions={"lounge": shapely.box(1, 1, 6, 6)}, targets={"stall": (8, 8)})
    told = [Go("lounge"), Wait(0.1), Go("stall")]
    _use(Simulation(world, Group("a", count=4, region=shapely.box(2, 2, 5, 5), stages=told)))
    box = World.box((0.0,) * 3, (9.0,) * 3, regions={"lounge": ((1.0,) * 3, (8.0,) * 3)})
    _use(Simulation(box, Group("a", count=4, region=((2.0,) * 3, (6.0,) * 3), stages=told[:2])))


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


#: What is compiled, by the name that the progress bar shows. After the basics the longest come first, so that all cores
#: have something to do to the end.
PARTS: dict[str, Callable[[], None]] = {
    "a crowd in a room": _crowd_in_a_room,
    "bodies in a room": _bodies_in_a_room,
    "flocks": _flocks,
    "competing behaviours": _competing_behaviours,
    "harmonic fields": _harmonic_fields,
    "flow fields": _flow_fields,
    "a crowd on cells": _crowd_on_cells,
    "flocks one after the other": _flocks_one_after_the_other,
    "a collision-free crowd": _collision_free_crowd,
    "reciprocal avoidance": _reciprocal_avoidance,
    "social forces": _social_forces,
    "riders": _riders,
    "roadmaps": _roadmaps,
    "painted fields": _painted_fields,
    "a crowd on a torus": _crowd_on_a_torus,
    "straight to the goal": _straight_to_the_goal,
    "habits": _habits,
    "emotions": _emotions,
    "knowledge": _knowledge,
    "stages": _stages,
    "squads": _squads,
    "kinetic neighbourhoods": _kinetic_neighbourhoods,
    "encounters": _encounters,
    "influence of hazards": _influence_of_hazards,
}
