"""Values of wrong types given in Python: a TropelError that names the argument, at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tropel
from tropel import events
from tropel.errors import ParameterError, TropelError

ROOM = [(0, 0), (10, 0), (10, 10), (0, 10)]


def simulation(*groups: tropel.Group | tropel.Source, **options: Any) -> tropel.Simulation:
    world = tropel.World(ROOM, targets={"t": (5, 5)}, regions={"all": ROOM}, exits={"out": [(9, 4), (10, 4), (10, 6)]})
    return tropel.Simulation(world, groups or [tropel.Group("a", count=2)], **options)


@pytest.mark.parametrize("value", [True, np.True_, math.nan, math.inf, "3", b"", None, 1j, [], 10**400, object()])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("dt", lambda value: simulation(dt=value)),
        ("time", lambda value: simulation().at(value, events.OpenExit(exit="out"))),
        ("seconds", lambda value: simulation().every(value, print)),
        ("fps", lambda value: simulation().run(until=1.0, fps=value)),
        ("checkpoint_every", lambda value: simulation().run(until=1.0, checkpoint_every=value)),
        ("time_gap", lambda value: tropel.Seek(time_gap=value)),
        ("d0_base", lambda value: tropel.Dynamical(d0_base=value)),
        ("cohesion", lambda value: tropel.Flocking(cohesion=value)),
        ("steps_per_second", lambda value: tropel.Budget(steps_per_second=value)),
        ("gamma", lambda value: tropel.FlowField(gamma=value)),
        ("decay_length", lambda value: tropel.Harmonic(walls="reflecting", decay_length=value)),
        ("radius", lambda value: tropel.Obstacle(radius=value, position=(1, 1))),
        ("radius", lambda value: tropel.Target(radius=value, position=(1, 1))),
        ("speed", lambda value: tropel.Waypoints(points=((1, 1), (2, 2)), speed=value)),
        ("mean", lambda value: tropel.Normal(value, 1.0)),
        ("radius", lambda value: events.AddObstacle(name="o", radius=value, position=(1, 1))),
        ("rate", lambda value: tropel.Source("a", rate=value, region="all")),
    ],
)
def test_what_is_no_finite_number_is_refused_by_name(name: str, make: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(TropelError, match=name):
        make(value)


@pytest.mark.parametrize("value", [True, 2.5, "3", math.nan, 10**30, [1]])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("seed", lambda value: simulation(seed=value)),
        ("threads", lambda value: simulation(threads=value)),
        ("count", lambda value: tropel.Group("a", count=value)),
        ("total", lambda value: tropel.Source("a", rate=1.0, region="all", total=value)),
        ("window", lambda value: tropel.Budget(window=value)),
        ("every", lambda value: tropel.PathPlans(congestion={"every": value})),
    ],
)
def test_what_is_no_whole_number_is_refused_by_name(name: str, make: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(TropelError, match=name):
        make(value)


@pytest.mark.parametrize("value", [3, None, ["out"], True, object()])
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("goal", lambda value: tropel.Group("a", count=1, goal=value)),
        ("goal", lambda value: simulation().set_goal(value)),
        ("name", lambda value: tropel.Group(value, count=1)),
        ("name", lambda value: simulation().set_parameter(value, 1.0)),
        ("group", lambda value: simulation().add_agents(value, count=1)),
        ("name", lambda value: simulation().world.add_target(value, (1, 1))),
        ("door", lambda value: events.OpenDoor(door=value)),
    ],
)
def test_what_is_no_text_is_refused_by_name(name: str, make: Callable[[Any], Any], value: Any) -> None:
    with pytest.raises(TropelError, match=name):
        make(value)


@pytest.mark.parametrize(
    "run",
    [
        {"until": 1.0, "limit": "1e400"},
        {"until": 1.0, "limit": math.nan},
        {"until": 1.0, "limit": True},
        {"until": True},
        {"until": 1e300},
        {"until": np.array([1.0, 2.0])},
        {"until": 1.0, "budget": 60},
        {"until": 1.0, "record": 3},
        {"until": 1.0, "checkpoint": ""},
    ],
)
def test_runs_that_make_no_sense_are_refused(run: dict[str, Any]) -> None:
    name = list(run)[-1]
    with pytest.raises(ParameterError, match="is not the name of a file" if name == "checkpoint" else name):
        simulation().run(**run)


def test_steps_of_ages_are_refused_and_safety_is_a_number() -> None:
    with pytest.raises(ParameterError, match=r"dt must be a positive number, at most 1000 s, not 1"):
        simulation(dt=1e15)
    with pytest.raises(ParameterError, match="safety must be a finite number, not nan"):
        tropel.Dynamical(safety=math.nan)


def test_numbers_of_numpy_are_numbers_and_become_those_of_python() -> None:
    sim = simulation(tropel.Group("a", count=np.int64(3)), dt=np.float32(0.5), seed=np.int64(4), threads=np.int8(1))
    assert (sim.dt, sim.seed, len(sim.agents)) == (0.5, 4, 3)
    parameters = tropel.Seek(time_gap=np.float32(0.5), press=1).parameters
    # Kernels are compiled for each type of number they are given.
    assert (type(parameters.time_gap), type(parameters.press)) == (float, float)
    assert tropel.Flocking(nearest=np.int64(7)).parameters.nearest == 7
    assert events.AddObstacle(name="o", radius=np.float32(0.5), position=np.array([1.0, 2.0]).tolist()).radius == 0.5
    assert tropel.FlowField(line_of_sight=np.False_).line_of_sight is False


@pytest.mark.parametrize("container", ["targets", "obstacles", "hazards", "doors", "exits", "regions"])
def test_what_a_world_holds_is_changed_by_its_methods_only(container: str) -> None:
    sim = simulation()
    held = getattr(sim.world, container)
    with pytest.raises(ParameterError, match="cannot be set like that; "):
        held["t"] = (3, 3)
    with pytest.raises(ParameterError, match="cannot be deleted like that; "):
        del held["t"]
    with pytest.raises(ParameterError, match=f"there is no {container[:-1]} 'x'"):
        held["x"]
    assert held.get("x") is None
    sim.step()


def test_targets_are_added_moved_and_removed_by_the_world() -> None:
    world = simulation().world
    world.add_target("new", np.array([1, 2]))
    world.move_target("t", [3, 3])
    assert list(world.targets) == ["t", "new"]
    assert world.goals().position[world.goal_numbers["t"]].tolist() == [3, 3]
    world.remove_target("t")
    assert "t" not in world.targets


@pytest.mark.parametrize("place", [(True, 1), ("1", "2"), (1,), 3, None, {"x": 1}, (1e300, 0), ((1, 2), (3,))])
def test_places_that_are_none_are_refused(place: Any) -> None:
    with pytest.raises(TropelError):
        tropel.World(ROOM, targets={"t": place})
    with pytest.raises(TropelError):
        simulation().world.move_target("t", place)


def flock(*follows: tuple[str, str | None]) -> tropel.Simulation:
    groups = [tropel.Group(name, count=2, follow=follow, goal="none") for name, follow in follows]
    return simulation(*groups, local=tropel.Flocking())


def test_groups_that_follow_each_other_in_a_circle_are_refused() -> None:
    assert flock(("a", "a")).population.bonds.own_leader[0] >= 0  # one of its own leads it
    with pytest.raises(ParameterError, match="group 'a', which follows 'b', which follows 'a': one of them must lead"):
        flock(("a", "b"), ("b", "a"))
    with pytest.raises(ParameterError, match="which follows 'c', which follows"):
        flock(("d", "a"), ("a", "b"), ("b", "c"), ("c", "a"))
    chain = flock(("a", "b"), ("b", "c"), ("c", None))
    with pytest.raises(ParameterError, match="one of them must lead"):
        chain.at(1.0, events.AddAgents(group="c", count=1, follow="a"))
    chain.at(1.0, events.AddAgents(group="a", count=1, follow="c"))


def test_a_model_of_ones_own_is_checked_by_its_declaration() -> None:
    from dataclasses import dataclass

    from tropel.errors import named_parameters
    from tropel.foundation.quantities import number

    @named_parameters
    @dataclass(frozen=True, kw_only=True)
    class OwnParameters:
        strength: float = number(1.0, above=0.0)
        quick: bool = False
        names: tuple[str, ...] = ()

    assert OwnParameters(strength=2, quick=np.True_, names=["a"]).quick is True
    for wrong in ({"strength": 0}, {"strength": True}, {"quick": 1}, {"names": "a"}, {"names": [1]}):
        with pytest.raises(ParameterError, match=f"Own: {next(iter(wrong))} must be"):
            OwnParameters(**wrong)
