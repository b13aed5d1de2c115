"""Names in events: what earlier events add is there, what they remove is gone, and functions may do anything."""

from __future__ import annotations

from typing import Any

import pytest
import shapely

from tropel import (
    Direct,
    Disc,
    Group,
    Hazard,
    Obstacle,
    Openness,
    Orbit,
    PathPlans,
    Simulation,
    Target,
    ValueMap,
    World,
    events,
)
from tropel.errors import ParameterError, TropelError
from tropel.events.names import Calendar, Due


def room(*, layers: bool = False) -> Simulation:
    world = World(
        shapely.box(0, 0, 20, 10),
        exits={"east": shapely.box(18, 4, 20, 6)},
        targets={"bar": (5, 5)},
        obstacles={"cart": Obstacle(radius=0.3, position=(12, 8))},
        hazards={"fire": Hazard(inner=0.3, position=(16, 2), until=4.0)},
    )
    planning = PathPlans(value_maps={"edges": ValueMap(Openness())}) if layers else Direct()
    return Simulation(world, Group("people", count=1), planning=planning, dt=0.1, threads=1)


def put(name: str = "rock", **more: Any) -> events.AddObstacle:
    return events.AddObstacle(name=name, **{"radius": 0.5, "position": (15.0, 8.0), **more})


def move(name: str = "rock") -> events.MoveObstacle:
    return events.MoveObstacle(name=name, position=(3.0, 3.0))


def take(name: str = "rock") -> events.RemoveObstacle:
    return events.RemoveObstacle(name=name)


def burn(**more: Any) -> events.AddHazard:
    return events.AddHazard(name="blaze", inner=0.5, position=(3.0, 3.0), **more)


def anything(sim: Simulation) -> None:
    pass


FINE: dict[str, list[tuple[float, Any]]] = {
    "added before": [(1, put()), (2, move()), (3, take())],
    "at the same time, in order": [(1, put()), (1, move()), (1, take())],
    "scheduled in another order": [(3, put()), (1, put("other")), (4, move()), (2, move("other"))],
    "again after it is gone": [(1, put()), (2, take()), (3, put()), (4, move())],
    "by a function before": [(1, anything), (2, move())],
    "taken away by a function perhaps": [(1, anything), (2, put("cart"))],
    "after a function it is added": [(1, anything), (2, put()), (3, move())],
    "put back before it is needed": [(5, move("cart")), (3, put("other")), (4, anything), (2, take("cart"))],
    "a hazard before it is over": [(3.9, events.GrowHazard(name="fire", inner=1.0))],
    "a hazard when the first is over": [(4, events.AddHazard(name="fire", inner=0.5, position=(3.0, 3.0)))],
    "two hazards one after the other": [(3, burn()), (1, burn(until=3.0))],
    "a goal that was added": [(1, events.AddTarget(name="tap", position=(3, 3))), (2, events.SetGoal(goal="tap"))],
    "exits and the like as goals": [(1, events.SetGoal(goal=g)) for g in ("east", "nearest exit", "none")],
    "newcomers for a target that is gone": [
        (1, events.RemoveTarget(name="bar")),
        (2, events.AddAgents(group="people", count=1, goal="bar")),
    ],
    "gone although newcomers would go there": [
        (2, events.AddAgents(group="people", count=1, goal="bar")),
        (1, events.RemoveTarget(name="bar")),
    ],
}

WRONG: dict[str, tuple[list[tuple[float, Any]], str]] = {
    "removed before": ([(1, take("cart")), (2, move("cart"))], "no obstacle 'cart' any more: 'remove obstacle' .* 1 s"),
    "removed twice": ([(1, take("cart")), (2, take("cart"))], "no obstacle 'cart' any more"),
    "added later": ([(3, put()), (2, move())], "no obstacle 'rock' yet at t = 2 s: 'add obstacle' comes at t = 3 s"),
    "later in the same step": ([(1, take("cart")), (1, move("cart"))], "no obstacle 'cart' any more"),
    "added twice": ([(1, put()), (2, put())], "an obstacle 'rock' already, from t = 1 s on; remove it first"),
    "added before another": ([(2, put()), (1, put())], "'rock' is also added by the event at t = 2 s"),
    "removed although needed": (
        [(3, move("cart")), (2, take("cart"))],
        "still needed: 'move obstacle' is scheduled for",
    ),
    "removed although removed": (
        [(3, take("cart")), (2, take("cart"))],
        "still needed: 'remove obstacle' is scheduled",
    ),
    "after a function it is removed": ([(1, anything), (2, take()), (3, move())], "no obstacle 'rock' any more"),
    "a door after a function": ([(1, anything), (2, events.OpenDoor(door="gate"))], "no door 'gate'; none"),
    "a hazard that is over": (
        [(4, events.MoveHazard(name="fire", position=(3, 3)))],
        r"no hazard 'fire' any more at t = 4 s: it lasts until t = 4 s",
    ),
    "an added hazard that is over": (
        [(1, burn(until=2.0)), (3, events.RemoveHazard(name="blaze"))],
        "no hazard 'blaze' any more at t = 3 s: it lasts until t = 2 s",
    ),
    "a hazard larger than its largest": (
        [(1, burn(largest=2.0)), (3, events.GrowHazard(name="blaze", inner=2.5))],
        "stop growing",
    ),
    "a goal that was removed": (
        [(1, events.RemoveTarget(name="bar")), (2, events.SetGoal(goal="bar"))],
        "no goal 'bar' any more: 'remove target'",
    ),
    "an added obstacle moved out of the world": (
        [(1, put()), (2, events.MoveObstacle(name="rock", position=(30, 3)))],
        "outside the world",
    ),
}


@pytest.mark.parametrize("plan", FINE.values(), ids=FINE)
def test_names_that_are_there_when_an_event_is_due(plan: list[tuple[float, Any]]) -> None:
    sim = room()
    for time, event in plan:
        sim.at(time, event)
    assert len(sim.events) == len(plan)


@pytest.mark.parametrize(("plan", "says"), WRONG.values(), ids=WRONG)
def test_names_that_are_not(plan: list[tuple[float, Any]], says: str) -> None:
    sim = room()
    *before, last = plan
    for time, event in before:
        sim.at(time, event)
    waiting = sim.events.state()
    with pytest.raises(TropelError, match=says):
        sim.at(*last)
    assert sim.events.state() == waiting, "what is refused leaves nothing behind"


def test_layers_come_and_go_by_their_names() -> None:
    sim = room(layers=True)
    puddle = events.AddValueMap(name="puddle", values=Disc(outer=2.0), position=(5, 5))
    sim.at(1.0, puddle)
    with pytest.raises(ParameterError, match="a value map 'puddle' already, from t = 1 s on"):
        sim.at(2.0, puddle)
    sim.at(3.0, events.RemoveValueMap(name="puddle"))
    sim.at(4.0, puddle)
    with pytest.raises(ParameterError, match="no value map 'edgs'; did you mean 'edges'"):
        sim.at(5.0, events.RemoveValueMap(name="edgs"))
    with pytest.raises(ParameterError, match="value map 'all' has 1 × 2 values, but the map has"):
        sim.at(5.0, events.AddValueMap(name="all", values=((1.0, 0.5),)))
    in_space = Orbit(center=(5, 5, 5), radius=1, period=3)
    with pytest.raises(TropelError, match="2 finite coordinates"):
        sim.at(5.0, events.AddValueMap(name="cart", values=Disc(outer=2.0), motion=in_space))


def test_the_near_miss_may_be_something_that_an_event_adds() -> None:
    sim = room()
    sim.at(1.0, put("barrier"))
    with pytest.raises(ParameterError, match="did you mean 'barrier'"):
        sim.at(2.0, move("barier"))


def test_what_was_added_by_hand_meanwhile_is_known() -> None:
    sim = room()
    sim.at(1.0, move("cart"))
    sim.world.obstacles.add("rock", Obstacle(radius=0.2, position=(3, 3)))
    sim.world.add_target("tap", Target(position=(4, 4)))
    sim.at(0.5, move("rock"))
    sim.at(0.5, events.SetGoal(goal="tap"))


def test_names_are_known_again_after_a_resume(tmp_path: Any) -> None:
    sim = room()
    sim.at(1.0, put())
    sim.save(tmp_path / "run.ckpt")
    resumed = room()
    resumed.restore(tmp_path / "run.ckpt")
    resumed.at(2.0, move())
    with pytest.raises(ParameterError, match="an obstacle 'rock' already"):
        resumed.at(2.0, put())


def test_many_events_about_one_thing_are_looked_at_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each looks up the last change of its name, however many others name it too."""
    looked = 0
    last = Calendar._last

    def counted(moments: list[Due], before: Due) -> Due | None:
        nonlocal looked
        looked += 1
        return last(moments, before)

    monkeypatch.setattr(Calendar, "_last", staticmethod(counted))
    sim = room()
    for step in range(2000):
        sim.at(0.1 * (step * 7 % 2000), move("cart"))
    assert looked < 2000 * 10
