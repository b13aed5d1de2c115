"""Hazards that should be planned around where no planner does so."""

from __future__ import annotations

import shapely

from tropel import Direct, FlowField, Group, Harmonic, Hazard, Planner, Simulation, World, events

FIRE = Hazard(inner=0.5, position=(5.0, 5.0), replan=True)


def told(planner: Planner, **hazards: Hazard) -> list[str]:
    world = World(shapely.box(0, 0, 10, 10), exits={"out": shapely.box(9, 4, 10, 6)}, hazards=hazards)
    sim = Simulation(world, Group("people", positions=[(1.0, 1.0)]), planning=planner)
    return [found.message for found in sim.check() if found.code == "hazard_not_planned"]


def test_a_hazard_that_nobody_plans_around_is_a_note() -> None:
    (message,) = told(Direct(), fire=FIRE)
    assert message == "hazard 'fire' has replan = true, but no planner here plans around hazards (Direct)"
    (message,) = told(Direct(), fire=FIRE, rubble=Hazard(inner=0.2, position=(2.0, 7.0), replan=True))
    assert "hazards 'fire' and 'rubble' have replan = true" in message


def test_nothing_is_said_where_it_has_an_effect_or_is_not_wanted() -> None:
    assert told(FlowField(), fire=FIRE) == []
    assert told(Harmonic(cache=False), fire=FIRE) == []
    assert told(Direct(), fire=Hazard(inner=0.5, position=(5.0, 5.0))) == []


def test_hazards_of_events_count() -> None:
    world = World(shapely.box(0, 0, 10, 10), exits={"out": shapely.box(9, 4, 10, 6)})
    sim = Simulation(world, Group("people", positions=[(1.0, 1.0)]), planning=Direct())
    sim.at(2.0, events.AddHazard(name="blaze", inner=0.5, position=(5.0, 5.0), replan=True))
    assert [found.code for found in sim.check()] == ["hazard_not_planned"]
