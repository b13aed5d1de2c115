"""The public calls of tropel with arguments that are right, and what follows when one is accepted.

Each entry makes what it needs anew, because a call may change it. What follows is three steps with what was made, so
that a wrong argument that is accepted and breaks the run later is found too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import shapely

import tropel
from tropel import analysis, events, pictures, recording, testing
from tropel.agents.placing import ANYWHERE
from tropel.agents.state import Column
from tropel.contracts import Follows, Moves
from tropel.planning.path_plans.congestion import Congestion
from tropel.viewer.live.run import LiveRun
from tropel.viewer.overlays.overlay import Overlay
from tropel.viewer.replay.export import export_html
from tropel.world import maps

_ROOM = [[0.0, 0.0], [10.0, 0.0], [10.0, 10.0], [0.0, 10.0]]
_EXIT = [[9.0, 4.0], [10.0, 4.0], [10.0, 6.0], [9.0, 6.0]]
_LEFT = [[0.5, 0.5], [4.0, 0.5], [4.0, 9.5], [0.5, 9.5]]


def _world() -> tropel.World:
    return tropel.World(
        _ROOM,
        exits={"out": _EXIT},
        regions={"left": _LEFT},
        doors={"door": [[6.0, 1.0], [6.0, 3.0]]},
        obstacles={"pillar": tropel.Obstacle(position=(5.0, 5.0), radius=0.4)},
        targets={"kiosk": tropel.Target(position=(2.0, 2.0))},
        hazards={"fire": tropel.Hazard(inner=0.3, position=(8.0, 8.0))},
    )


def _simulation(world: tropel.World | None = None, *groups: Any, **options: Any) -> tropel.Simulation:
    crowd = groups or (tropel.Group("people", count=4, region="left"), tropel.Group("others", count=2, region="left"))
    return tropel.Simulation(world or _world(), crowd, threads=1, **options)


def _lattice(**options: Any) -> tropel.Simulation:
    layers = {
        "planning": tropel.PathPlans(value_maps={"open": tropel.ValueMap(tropel.Openness())}),
        "local": tropel.Lattice(),
    }
    return _simulation(_world(), **{**layers, **options})


def three_steps(sim: tropel.Simulation) -> None:
    for _ in range(3):
        sim.step()
    sim.state_hash()


class Stands(tropel.Model):
    """A model that does nothing with what it declares."""

    def steer(self, moment: tropel.Moment, out: Any) -> None:
        out.velocity[moment.members] = 0.0


_TIRED = Column(name="tired", default=1.0)


def _declaring(layer: Any, declaration: Any) -> Any:
    layer.declares = declaration
    return layer


class Bench:
    """What calls need, made when it is first asked for; files and recorded runs are made once."""

    folder = Path(tempfile.gettempdir())
    recorded: Path | None = None

    @cached_property
    def world(self) -> tropel.World:
        return _world()

    @cached_property
    def sim(self) -> tropel.Simulation:
        return _simulation(self.world)

    @cached_property
    def lattice(self) -> tropel.Simulation:
        return _lattice()

    @cached_property
    def run(self) -> Path:
        if Bench.recorded is None:
            Bench.recorded = self.folder / "recorded.sqlite"
            sim = _simulation()
            sim.run(until=0.5, record=Bench.recorded)
            sim.save(self.folder / "saved.npz")
            sim.save(self.folder / "saved.ckpt")
        return Bench.recorded

    @cached_property
    def trajectory(self) -> recording.Trajectory:
        return recording.read_trajectory(self.run)

    @cached_property
    def report(self) -> analysis.EvacuationReport:
        return analysis.evacuation_report(self.trajectory)

    def file(self, name: str) -> Path:
        return self.folder / name


@dataclass(frozen=True)
class Call:
    """A call: what is called, with which arguments, and what is done with what it returns."""

    name: str
    function: Callable[[Bench], Callable[..., Any]]
    base: Callable[[Bench], dict[str, Any]]
    then: Callable[[Bench, Any], object] = lambda bench, made: None


def _steps(bench: Bench, _: Any) -> None:
    three_steps(bench.sim)


def _lattice_steps(bench: Bench, _: Any) -> None:
    three_steps(bench.lattice)


def _made(name: str, make: Callable[..., Any], base: dict[str, Any], then: Callable[[Any], object]) -> Call:
    """Something that is built, and used in a simulation then."""
    return Call(name, lambda bench: make, lambda bench: dict(base), lambda bench, made: then(made))


def _of_sim(name: str, /, **base: Any) -> Call:
    return Call(f"Simulation.{name}", lambda bench: getattr(bench.sim, name), lambda bench: dict(base), _steps)


def _of_world(name: str, /, **base: Any) -> Call:
    return Call(f"World.{name}", lambda bench: getattr(bench.world, name), lambda bench: dict(base), _steps)


def _put(container: str, key: str) -> Call:
    """Something laid into one of the containers of a world."""

    def put(bench: Bench) -> Callable[..., Any]:
        def assign(name: Any, value: Any) -> None:
            getattr(bench.world, container)[name] = value

        return assign

    return Call(f"World.{container}['{key}'] =", put, lambda bench: {"name": key, "value": (3.0, 3.0)}, _steps)


def _get(container: str, key: str) -> Call:
    return Call(
        f"World.{container}[…]",
        lambda bench: lambda name: getattr(bench.world, container)[name],
        lambda bench: {"name": key},
        _steps,
    )


def _event(kind: type[Any], /, *, lattice: bool = False, **base: Any) -> Call:
    def happens(bench: Bench, event: Any) -> None:
        sim = bench.lattice if lattice else bench.sim
        sim.at(0.0, event)
        three_steps(sim)

    return Call(f"events.{kind.__name__}", lambda bench: kind, lambda bench: dict(base), happens)


def _model(kind: type[Any], /, **base: Any) -> Call:
    return _made(kind.__name__, kind, base, lambda model: three_steps(_simulation(local=model)))


def _habit(kind: type[Any], /, **base: Any) -> Call:
    return _made(kind.__name__, kind, base, lambda habit: three_steps(_simulation(habits=[habit])))


def _planner(kind: type[Any], /, **base: Any) -> Call:
    return _made(kind.__name__, kind, base, lambda planner: three_steps(_simulation(planning=planner)))


def _drawn(name: str, function: Callable[..., Any], base: Callable[[Bench], dict[str, Any]]) -> Call:
    return Call(name, lambda bench: function, base)


def _lives_in(world: tropel.World) -> None:
    group = tropel.Group("people", positions=[(1.0, 1.0), (2.0, 2.0)] if world.dim == 2 else [(1.0, 1.0, 1.0)])
    three_steps(_simulation(world, group, local=tropel.Flocking() if world.dim == 3 or world.is_periodic else None))


def _painted(field: Any) -> None:
    three_steps(_simulation(planning=tropel.VectorField(field)))


def _lays(layer: Any) -> None:
    sim = _lattice()
    sim.add_value_map("layer", layer)
    three_steps(sim)


_THINGS = [
    _made("Obstacle", tropel.Obstacle, {"radius": 0.4, "position": (5.0, 5.0), "motion": None, "type": "pillar"},
          lambda it: _lives_in(tropel.World(_ROOM, obstacles={"a": it}))),
    _made("Target", tropel.Target, {"position": (5.0, 5.0), "motion": None, "radius": 0.5, "absorbs": False},
          lambda it: _lives_in(tropel.World(_ROOM, targets={"a": it}))),
    _made("Hazard", tropel.Hazard,
          {"inner": 0.5, "outer": 1.0, "position": (5.0, 5.0), "motion": None, "intensity": 1.0, "kind": "fire",
           "growth": 0.1, "largest": 2.0, "until": 9.0, "replan": False, "deadly": True},
          lambda it: _lives_in(tropel.World(_ROOM, hazards={"a": it}))),
    _made("Door", tropel.Door, {"line": [[6.0, 1.0], [6.0, 3.0]], "open": False},
          lambda it: _lives_in(tropel.World(_ROOM, doors={"a": it}))),
    _made("Waypoints", tropel.Waypoints,
          {"points": [(1.0, 5.0), (9.0, 5.0)], "speed": 1.0, "repeat": "once"},
          lambda it: _lives_in(tropel.World(_ROOM, targets={"a": tropel.Target(motion=it)}))),
    _made("Orbit", tropel.Orbit, {"center": (5.0, 5.0), "radius": 2.0, "period": 9.0, "phase": 0.0},
          lambda it: _lives_in(tropel.World(_ROOM, obstacles={"a": tropel.Obstacle(radius=0.3, motion=it)}))),
    _made("World", tropel.World,
          {"walkable": _ROOM, "walls": [[[3.0, 1.0], [3.0, 3.0]]], "exits": {"out": _EXIT}, "regions": {"left": _LEFT},
           "doors": {"door": [[6.0, 1.0], [6.0, 3.0]]},
           "obstacles": {"pillar": tropel.Obstacle(position=(5.0, 5.0), radius=0.4)},
           "targets": {"kiosk": (2.0, 2.0)}, "hazards": {}, "bounds": None, "periodic": False}, _lives_in),
    _made("World(bounds)", tropel.World,
          {"bounds": [0.0, 0.0, 10.0, 10.0], "periodic": "xy", "walls": [[[3.0, 1.0], [3.0, 3.0]]]}, _lives_in),
    _made("World.box", tropel.World.box,
          {"low": [0.0, 0.0, 0.0], "high": [10.0, 10.0, 10.0], "periodic": False, "open": False,
           "obstacles": {"ball": tropel.Obstacle(position=(5.0, 5.0, 5.0), radius=0.4)},
           "targets": {"kiosk": (2.0, 2.0, 2.0)}, "hazards": None,
           "regions": {"corner": ([0.0, 0.0, 0.0], [3.0, 3.0, 3.0])}}, _lives_in),
    _made("ValueMap", tropel.ValueMap,
          {"values": np.full((5, 5), 0.5), "origin": None, "cell": 0.4, "position": (5.0, 5.0), "motion": None,
           "every": None, "group": None, "spares_inside": False}, _lays),
    _made("ValueMap(function)", tropel.ValueMap,
          {"values": lambda points, time: np.full(len(points), 0.5), "every": 1.0, "group": "people"}, _lays),
    _made("Disc", tropel.Disc, {"inner": 0.5, "outer": 2.0, "intensity": 1.0},
          lambda it: _lays(tropel.ValueMap(it, position=(5.0, 5.0)))),
    _made("Openness", tropel.Openness, {"reach": 1.2, "least": 0.3}, lambda it: _lays(tropel.ValueMap(it))),
]  # fmt: skip


def _in_a_stage(stage: Any) -> object:
    """Three steps of people that begin with a stage."""
    people = tropel.Group("people", count=3, region="left", stages=[stage, tropel.Go("out")])
    return three_steps(_simulation(_world(), people))


_PEOPLE = [
    _made("Go", tropel.Go, {"go": (3.0, 3.0), "within": 0.5, "until": {"after": 1.0}, "critical": False}, _in_a_stage),
    _made("Wait", tropel.Wait, {"wait": 1.0, "until": None, "critical": True}, _in_a_stage),
    _made("WaitFor", tropel.WaitFor, {"wait_for": {"come": 2}, "critical": False}, _in_a_stage),
    _made("Until", tropel.Until, {"until": {"any": [{"after": 1.0}, {"signal": "go"}]}}, _in_a_stage),
    _made("Come", tropel.conditions.Come, {"come": 2, "to": "out", "group": "people"},
          lambda it: _in_a_stage(tropel.WaitFor(it))),
    _made("Attribute", tropel.conditions.Attribute, {"attribute": "desired_speed", "above": 1.0, "below": 2.0},
          lambda it: _in_a_stage(tropel.WaitFor(it))),
    _made("Happened", tropel.conditions.Happened.of, {"event": "open_door", "door": "door", "new": False},
          lambda it: _in_a_stage(tropel.WaitFor(it))),
    _made("Tired", tropel.Tired, {"distance": 100.0, "speed": 0.5, "recovery": 3.0},
          lambda it: three_steps(_simulation(_world(), tropel.Group("people", count=3), decisions=[it]))),
    _made("Bolder", tropel.Bolder, {"courage": 0.5, "speed": 1.2, "rise": 1.0, "fade": 2.0},
          lambda it: three_steps(_simulation(_world(), tropel.Group("people", count=3), decisions=[it],
                                             local=tropel.Dynamical()))),
    _made("Decide", tropel.Decide, {"function": lambda moment: {"radius": 0.2}, "sets": ["radius"]},
          lambda it: three_steps(_simulation(_world(), tropel.Group("people", count=3), decisions=[it]))),
    _made("Group", tropel.Group,
          {"name": "people", "count": 3, "density": None, "positions": None, "region": "left", "goal": "out",
           "radius": 0.2, "desired_speed": 1.3, "sense_radius": 3.0, "delay": 0.0, "personality": None,
           "parameters": {}, "families": None, "follow": None},
          lambda it: three_steps(_simulation(_world(), it))),
    _made("Group(positions)", tropel.Group, {"name": "people", "positions": [[1.0, 1.0], [2.0, 2.0]]},
          lambda it: three_steps(_simulation(_world(), it))),
    _made("Group(density)", tropel.Group, {"name": "people", "density": 0.2, "region": _LEFT},
          lambda it: three_steps(_simulation(_world(), it))),
    _made("Group(lattice)", tropel.Group,
          {"name": "people", "count": 3, "region": "left", "families": 2, "follow": None},
          lambda it: three_steps(_simulation(_world(), it, planning=tropel.PathPlans(), local=tropel.Lattice()))),
    _made("Group(personality)", tropel.Group,
          {"name": "people", "count": 3, "region": "left", "personality": {"cautious": 0.5, "hasty": 0.5},
           "parameters": {"courage": 0.5}},
          lambda it: three_steps(_simulation(_world(), it, local=tropel.Dynamical()))),
    _made("Source", tropel.Source,
          {"group": "people", "rate": 20.0, "region": "left", "begin": 0.0, "end": 9.0, "total": 3,
           "arrivals": "random", "goal": "out", "radius": 0.2, "desired_speed": 1.3, "sense_radius": 3.0,
           "delay": 0.0, "personality": None, "parameters": {}, "families": None, "follow": None},
          lambda it: three_steps(_simulation(_world(), it))),
    _made("Normal", tropel.Normal, {"mean": 1.3, "sd": 0.1, "low": 0.5, "high": 2.0},
          lambda it: three_steps(_simulation(_world(), tropel.Group("people", count=3, desired_speed=it)))),
    _made("Uniform", tropel.Uniform, {"low": 0.5, "high": 2.0},
          lambda it: three_steps(_simulation(_world(), tropel.Group("people", count=3, desired_speed=it)))),
]  # fmt: skip

_FIELD = {"cell": 0.4, "clearance": 0.2, "line_of_sight": True, "cache": False}
_LAYERS = [
    _planner(tropel.FlowField, **_FIELD, gamma=0.6, equal_moves=False, corner_cutting=False, terrain=None,
             hazard_cost=4.0, streams=True, choose_exits=True),
    _planner(tropel.Harmonic, **_FIELD, walls="reflecting", decay_length=5.0),
    _made("PathPlans", tropel.PathPlans,
          {"cell": 0.4, "gamma": 0.6, "equal_moves": False, "corner_cutting": False, "terrain": None,
           "congestion": True, "layers": {"open": tropel.ValueMap(tropel.Openness())}},
          lambda it: three_steps(_lattice(planning=it))),
    _made("Congestion", Congestion,
          {"high": 10.0, "low": 5.0, "scaled": True, "area": 4.0, "every": 10, "intensity": 2.0, "reach": 8.0},
          lambda it: three_steps(_lattice(planning=tropel.PathPlans(congestion=it)))),
    _planner(tropel.VectorField, field=lambda points: np.ones_like(points), origin=None, cell=None,
             strokes=[{"points": [(1, 1), (9, 9)]}], image=None, encoding="hue", fallback="direct"),
    _made("VectorField(array)", tropel.VectorField,
          {"field": np.ones((10, 10, 2)), "origin": (0.0, 0.0), "cell": 1.0},
          lambda it: three_steps(_simulation(planning=it))),
    _made("ArrayField", tropel.ArrayField, {"vectors": np.ones((10, 10, 2)), "origin": (0.0, 0.0), "cell": 1.0},
          _painted),
    _made("FunctionField", tropel.FunctionField, {"function": np.ones_like}, _painted),
    _made("Stroke", tropel.Stroke,
          {"points": [(1.0, 1.0), (9.0, 9.0)], "width": 1.0, "strength": 1.0, "falloff": 0.5}, _painted),
    _made("Stroke.masked", lambda region, inside: tropel.Stroke([(1, 1), (9, 9)]).masked(region, inside=inside),
          {"region": shapely.box(0, 0, 5, 5), "inside": True}, _painted),
    _made("Stroke.over", lambda other, region: tropel.Stroke([(1, 1), (9, 9)]).over(other, region=region),
          {"other": tropel.Stroke([(9, 1), (1, 9)]), "region": shapely.box(0, 0, 5, 5)}, _painted),
    _made("Stroke.on_grid", tropel.Stroke([(1, 1), (9, 9)]).on_grid,
          {"low": (0.0, 0.0), "high": (10.0, 10.0), "cell": 0.5}, _painted),
    _planner(tropel.Blend, parts=[(0.5, "direct"), (0.5, tropel.Direct())]),
    _made("Grid", tropel.Grid, {"cell": 1.0}, lambda it: three_steps(_simulation(environment=it))),
    _made("Declaration", tropel.Declaration, {"columns": (_TIRED,), "memory": (), "periodic_space": False},
          lambda it: three_steps(_simulation(planning=_declaring(tropel.Direct(), it)))),
    _made("EnvironmentDeclaration", tropel.EnvironmentDeclaration,
          {"columns": (_TIRED,), "memory": (), "periodic_space": False, "cell": 1.0},
          lambda it: three_steps(_simulation(environment=_declaring(tropel.Grid(), it)))),
    _made("ModelDeclaration", tropel.ModelDeclaration,
          {"columns": (_TIRED,), "memory": (), "periodic_space": False, "moves": Moves.FREELY,
           "follows": Follows.DIRECTIONS, "senses": True, "phase": 1, "alone_in_phase": False, "solid_bodies": False,
           "bodies_may_overlap": False, "placing": ANYWHERE},
          lambda it: three_steps(_simulation(local=_declaring(Stands(), it)))),
    _model(tropel.Seek, time_gap=0.5, side_angles=(0.3, 0.6), margin=0.02, press=0.3),
    _model(tropel.Dynamical, attraction=1.0, d0_base=0.3, agents={"strength": 1.0, "reach": 1.0, "margin": 0.8},
           obstacles={}, walls={}, types={"fire": {"strength": 2.0}}, classes="apart", competition=True,
           crowding="ahead", c1=1.0, c2=2.5, speed_law="time_to_contact", time_to_contact=1.0, front=1.0, safety=0.4,
           speed_factor=1.0, retreat=0.5, time_gap=0.5, push=0.1, keep_right=1.0, walk_on=0.5, noise=0.05,
           anticipation=1.0, weight_memory=0.5, solid_bodies=True, preset="pedestrian"),
    _made("Lattice", tropel.Lattice,
          {"cell": 0.4, "separation": 0.5, "family_reach": 6.0, "family_strength": 9.0, "leader_length": 3.0,
           "leader_width": 5.0, "leader_strength": 8.0}, lambda it: three_steps(_lattice(local=it))),
    _model(tropel.Flocking, separation=1.0, cohesion=0.6, alignment=1.2, avoidance=2.0, obstacle_repulsion=2.0,
           obstacle_steering=4.0, goal_pull=0.8, leader_pull=0.8, flight=4.0, pursuit=2.0, separation_distance=1.0,
           flee_radius=2.0, blind_angle=0.5, max_force=4.0, least_speed=0.5, nearest=7, combine="sum", look_ahead=1.5,
           join=[], avoid=["others"], ignore=[], chase=[], flee=[]),
    _model(tropel.SequentialFlock, cohere=0.03, separate=0.015, match=0.05, separation=1.0, random_start=True),
    _model(tropel.CollisionFreeSpeed, neighbour_strength=8.0, neighbour_range=0.1, wall_strength=5.0, wall_range=0.02,
           time_gap=1.0, solid_bodies=False),
    _model(tropel.ORCA, time_horizon=2.0, time_horizon_obstacles=0.5, max_neighbours=10, speed_limit=1.5,
           solid_bodies=False),
    _model(tropel.SocialForce, relaxation_time=0.5, neighbour_strength=2.1, neighbour_range=0.3, wall_strength=10.0,
           wall_range=0.2, step_ahead=2.0, field_of_view=200.0, weight_behind=0.5, speed_limit=1.3, solid_bodies=False),
    _model(tropel.Walk, time_gap=0.45, keep_right=1.0, look_ahead=2.0, worth=0.1, push=0.1, margin=0.02, walk_on=0.65,
           solid_bodies=True),
    _habit(tropel.KeepRight, angle=1.0),
    _habit(tropel.StayTogether, reach=2.0),
    _habit(tropel.AvoidHazards, strength=3.0),
    _made("Budget", tropel.Budget,
          {"steps_per_second": 60.0, "window": 2, "settle": 0, "room": 0.1, "patience": 1, "order": None},
          lambda it: _lattice().run(until=0.2, budget=it)),
    _made("Overlay", Overlay,
          {"name": "o", "title": "O", "look": lambda sim, k: 1, "draw": lambda canvas, seen: None, "seconds": 0.5,
           "covers_ground": False, "legend": None, "after_step": None, "anew": None}, lambda it: None),
]  # fmt: skip

_SIMULATION = [
    Call("Simulation", lambda bench: tropel.Simulation,
         lambda bench: {"world": bench.world, "agents": [tropel.Group("people", count=3)], "planning": tropel.Direct(),
                        "environment": tropel.Grid(), "local": tropel.Seek(), "dt": 0.05, "seed": 1, "threads": 1,
                        "title": "t", "watch_collisions": True},
         lambda bench, sim: three_steps(sim)),
    Call("Simulation(mappings)", lambda bench: tropel.Simulation,
         lambda bench: {"world": bench.world, "agents": tropel.Group("people", count=3),
                        "planning": {"people": tropel.Direct()}, "local": {"people": tropel.Seek()}},
         lambda bench, sim: three_steps(sim)),
    _of_sim("at", time=0.1, event=events.OpenDoor(door="door")),
    _of_sim("every", seconds=1.0, function=lambda sim: None, begin=0.0),
    _of_sim("add_agents", group="people", count=2, region="left", goal="out", radius=0.2, delay=0.0),
    _of_sim("remove_agents", group="people", region="left", ids=[0, 1]),
    _of_sim("set_goal", goal="out", group="people"),
    _of_sim("set_stages", stages=[{"wait": 1.0}, {"go": "out"}], group="people", repeat=False),
    _of_sim("signal", name="go"),
    _of_sim("set_parameter", name="desired_speed", value=1.0, group="people"),
    _of_sim("check_parameter", name="desired_speed"),
    Call("Simulation.check_behaviour", lambda bench: bench.lattice.check_behaviour,
         lambda bench: {"name": "separation"}, _lattice_steps),
    Call("Simulation.set_behaviour", lambda bench: bench.lattice.set_behaviour,
         lambda bench: {"name": "separation", "on": False, "by_budget": False}, _lattice_steps),
    Call("Simulation.add_value_map", lambda bench: bench.lattice.add_value_map,
         lambda bench: {"name": "new", "value_map": tropel.ValueMap(tropel.Openness())}, _lattice_steps),
    Call("Simulation.remove_value_map", lambda bench: bench.lattice.remove_value_map,
         lambda bench: {"name": "open"}, _lattice_steps),
    _of_sim("clear_doorway", door="door"),
    _of_sim("watch_encounters", distance=1.5),
    Call("Simulation.run", lambda bench: bench.sim.run,
         lambda bench: {"until": 0.2, "limit": 0.3, "record": bench.file("run.sqlite"), "fps": 10.0,
                        "checkpoint": bench.file("run.npz"), "checkpoint_every": 0.1, "progress": False,
                        "budget": None}),
    Call("Simulation.run(empty)", lambda bench: bench.sim.run, lambda bench: {"until": "empty", "limit": 0.2}),
    Call("Simulation.replay", lambda bench: bench.sim.replay, lambda bench: {"record": bench.run}, _steps),
    Call("Simulation.save", lambda bench: bench.sim.save, lambda bench: {"path": bench.file("a.npz")}),
    Call("Simulation.restore", lambda bench: bench.sim.restore,
         lambda bench: {"path": bench.run.with_name("saved.npz")}, _steps),
    Call("LiveRun", lambda bench: partial(LiveRun, bench.sim),
         lambda bench: {"until": 0.2, "limit": 1.0, "files": None, "build": None, "speed": 1.0,
                        "playing": True, "budget": None}),
]  # fmt: skip

_WORLD = [
    _of_world("set_door", name="door", open=True),
    _of_world("door_segments", name="door"),
    _of_world("set_exit", name="out", open=False),
    _of_world("add_target", name="bench", target=(3.0, 3.0)),
    _of_world("move_target", name="kiosk", position=(3.0, 3.0)),
    _of_world("remove_target", name="kiosk"),
    _of_world("region", name="left"),
    _of_world("disc", middle=(3.0, 3.0), radius=1.0),
    Call("World.obstacles.add", lambda bench: bench.world.obstacles.add,
         lambda bench: {"name": "a", "obstacle": tropel.Obstacle(radius=0.3, position=(4.0, 4.0))}, _steps),
    Call("World.obstacles.move", lambda bench: bench.world.obstacles.move,
         lambda bench: {"name": "pillar", "position": (4.0, 4.0)}, _steps),
    Call("World.obstacles.remove", lambda bench: bench.world.obstacles.remove, lambda bench: {"name": "pillar"},
         _steps),
    Call("World.hazards.add", lambda bench: bench.world.hazards.add,
         lambda bench: {"name": "a", "hazard": tropel.Hazard(inner=0.3, position=(4.0, 4.0))}, _steps),
    Call("World.hazards.move", lambda bench: bench.world.hazards.move,
         lambda bench: {"name": "fire", "position": (4.0, 4.0)}, _steps),
    Call("World.hazards.grow", lambda bench: bench.world.hazards.grow,
         lambda bench: {"name": "fire", "inner": 0.5, "outer": 1.0}, _steps),
    Call("World.hazards.remove", lambda bench: bench.world.hazards.remove, lambda bench: {"name": "fire"}, _steps),
    *(_put(container, key) for container, key in (
        ("targets", "kiosk"), ("targets", "new"), ("obstacles", "pillar"), ("hazards", "fire"), ("doors", "door"),
        ("exits", "out"), ("regions", "left"))),
    *(_get(container, key) for container, key in (
        ("targets", "kiosk"), ("obstacles", "pillar"), ("hazards", "fire"), ("doors", "door"), ("exits", "out"),
        ("regions", "left"))),
]  # fmt: skip

_EVENTS = [
    _event(events.OpenDoor, door="door"),
    _event(events.CloseDoor, door="door"),
    _event(events.OpenExit, exit="out"),
    _event(events.CloseExit, exit="out"),
    _event(events.AddObstacle, name="a", radius=0.3, position=(4.0, 4.0), motion=None, type="pillar"),
    _event(events.MoveObstacle, name="pillar", position=(4.0, 4.0)),
    _event(events.RemoveObstacle, name="pillar"),
    _event(events.AddHazard, name="a", inner=0.3, outer=1.0, position=(4.0, 4.0), intensity=1.0, type="fire",
           growth=0.1, largest=1.0, until=9.0, replan=False, deadly=True),
    _event(events.MoveHazard, name="fire", position=(4.0, 4.0)),
    _event(events.GrowHazard, name="fire", inner=0.5, outer=1.0),
    _event(events.RemoveHazard, name="fire"),
    _event(events.AddTarget, name="a", position=(4.0, 4.0), radius=0.5, absorbs=False),
    _event(events.MoveTarget, name="kiosk", position=(4.0, 4.0)),
    _event(events.RemoveTarget, name="kiosk"),
    _event(events.SetGoal, goal="out", group="people"),
    _event(events.SetParameter, name="desired_speed", value=1.0, group="people"),
    _event(events.Drift, name="desired_speed", to=1.0, over=5.0, group="people"),
    _event(events.Surge, name="desired_speed", to=2.0, share=0.5, fade=5.0, group="people"),
    _event(events.SetBehaviour, lattice=True, name="separation", on=False, by="hand"),
    _event(events.AddAgents, group="people", count=2, region="left", goal="out", radius=0.2, desired_speed=1.0,
           sense_radius=3.0, delay=0.0, parameters={}, personality=None, families=None, follow=None),
    _event(events.RemoveAgents, group="people", region="left"),
    _event(events.AddValueMap, lattice=True, name="a", values=[[0.5, 0.5]], origin=(1.0, 1.0), cell=0.4, group="people",
           spares_inside=False),
]  # fmt: skip

_PLACES = np.random.default_rng(0).random((6, 2))
_AFTERWARDS = [
    _drawn("read_trajectory", recording.read_trajectory, lambda bench: {"path": bench.run}),
    _drawn("load_checkpoint", recording.load_checkpoint, lambda bench: {"path": bench.run.with_name("saved.npz")}),
    Call("Trajectory.frame", lambda bench: bench.trajectory.frame, lambda bench: {"k": 0}),
    Call("Trajectory.time", lambda bench: bench.trajectory.time, lambda bench: {"k": 0}),
    Call("Trajectory.obstacles", lambda bench: bench.trajectory.obstacles, lambda bench: {"k": 0}),
    Call("Trajectory.geometry", lambda bench: bench.trajectory.geometry, lambda bench: {"k": 0}),
    Call("Trajectory.hazards", lambda bench: bench.trajectory.hazards, lambda bench: {"k": 0}),
    _drawn("evacuation_report", analysis.evacuation_report,
           lambda bench: {"trajectory": bench.trajectory, "cell": 1.0, "progress": None}),
    _drawn("flock_measures", analysis.flock_measures,
           lambda bench: {"trajectory": bench.trajectory, "within": 2.0, "every": 1, "progress": None}),
    _drawn("polarisation", analysis.polarisation, lambda bench: {"heading": _PLACES}),
    _drawn("milling", analysis.milling, lambda bench: {"position": _PLACES, "heading": _PLACES, "period": None}),
    _drawn("nearest_distances", analysis.nearest_distances, lambda bench: {"position": _PLACES, "period": (2.0, 2.0)}),
    _drawn("subflocks", analysis.subflocks, lambda bench: {"position": _PLACES, "within": 0.3, "period": (2.0, 2.0)}),
    _drawn("report_tables", analysis.report_tables, lambda bench: {"report": bench.report}),
    _drawn("write_tables", analysis.write_tables,
           lambda bench: {"report": bench.report, "folder": bench.folder, "format": "csv"}),
    _drawn("write_columns", analysis.write_columns,
           lambda bench: {"tables": {"t": {"a": np.arange(2)}}, "folder": bench.folder, "format": "csv"}),
    _drawn("draw_run", pictures.draw_run, lambda bench: {"trajectory": bench.trajectory, "path": bench.file("a.png")}),
    _drawn("draw_moment", pictures.draw_moment,
           lambda bench: {"trajectory": bench.trajectory, "path": bench.file("a.png"), "time": 0.1, "width": 200,
                          "colours": None}),
    _drawn("draw_report", pictures.draw_report, lambda bench: {"report": bench.report, "path": bench.file("a.png")}),
    _drawn("draw_crowd_maps", pictures.draw_crowd_maps,
           lambda bench: {"report": bench.report, "trajectory": bench.trajectory, "path": bench.file("a.png")}),
    _drawn("draw_flock", pictures.draw_flock,
           lambda bench: {"measures": analysis.flock_measures(bench.trajectory), "path": bench.file("a.png")}),
    _drawn("draw_sweep", pictures.draw_sweep,
           lambda bench: {"departures": [[1.0, 2.0], [1.5, 2.5]], "path": bench.file("a.png"), "agents": 2,
                          "end": 3.0, "title": "t"}),
    _drawn("sweep_statistics", pictures.sweep_statistics,
           lambda bench: {"departures": [[1.0, 2.0], [1.5, 2.5]], "agents": [2, 2], "end": 3.0, "points": 20}),
    _drawn("animate_run", pictures.animate_run,
           lambda bench: {"trajectory": bench.trajectory, "path": bench.file("a.gif"), "seconds": 0.3, "fps": 5.0,
                          "width": 200, "colours": None, "progress": None}),
    _drawn("film_run", pictures.film_run,
           lambda bench: {"trajectory": bench.trajectory, "path": bench.file("a.mp4"), "seconds": 0.3, "fps": 5.0,
                          "width": 200, "progress": None}),
    _drawn("export_html", export_html,
           lambda bench: {"trajectory": bench.trajectory, "path": bench.file("a.html"), "fps": 5.0, "colour": "group",
                          "progress": None}),
    _drawn("read_plan", maps.read_plan, lambda bench: {"path": bench.file("nowhere.png"), "scale": 0.1}),
    _drawn("outline", maps.outline, lambda bench: {"free": np.ones((3, 3), dtype=bool), "scale": 1.0}),
    _drawn("check_planner", testing.check_planner,
           lambda bench: {"planner": tropel.Direct(), "dims": (2,), "ids_matter": False, "seed": 0}),
    _drawn("check_decision", testing.check_decision,
           lambda bench: {"decision": tropel.Tired(), "dims": (2,), "ids_matter": False, "seed": 0}),
    _drawn("check_neighbours", testing.check_neighbours,
           lambda bench: {"environment": tropel.Grid(), "dims": (2,), "seed": 0}),
    _drawn("check_steering", testing.check_steering,
           lambda bench: {"model": tropel.Seek(), "dims": (2,), "ids_matter": False, "dt": 0.05, "seed": 0}),
]  # fmt: skip

CALLS = {call.name: call for call in (*_THINGS, *_PEOPLE, *_LAYERS, *_SIMULATION, *_WORLD, *_EVENTS, *_AFTERWARDS)}
