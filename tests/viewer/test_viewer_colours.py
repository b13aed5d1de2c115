"""What colours, pictures on the ground and the state of an agent say, compared with plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from live_scenes import box, two_rooms

from tropel import Emotions, Flocking, Go, Group, Hold, Seek, Simulation, Squad, Target, Task, Wait, Work, World
from tropel.errors import ParameterError
from tropel.pictures import style
from tropel.viewer import colours
from tropel.viewer.agents_drawing import turned_to
from tropel.viewer.colours import colour_bar, group_legend
from tropel.viewer.frame import frame_of
from tropel.viewer.live.agent_tab import described, planned_direction, portrait
from tropel.viewer.overlays.overlay import Overlay, overlays, register_overlay


def test_the_density_counts_who_is_in_the_squares_around() -> None:
    place = np.random.default_rng(5).uniform(0.0, 6.0, (80, 2))
    edge = 2.0 / 3.0
    low = place.min(axis=0)
    cell = np.floor((place - low) / edge)
    wanted = [(np.abs(cell - own).max(axis=1) <= 1).sum() / (3 * edge) ** 2 for own in cell]
    np.testing.assert_allclose(colours.density_around(place), wanted)
    assert colours.density_around(np.empty((0, 2))).shape == (0,)


def test_the_time_to_the_exit_is_the_way_around_the_walls_at_the_desired_speed() -> None:
    sim = two_rooms()
    seconds = colours.time_to_exit(sim)
    straight = np.linalg.norm(sim.agents.position - [19.0, 5.0], axis=1)
    # The exit is as wide as the door, so nobody has less than the way straight to its near corners.
    assert (seconds * 1.3 > 0.8 * straight - 2.0).all()
    assert (seconds * 1.3 < 1.3 * straight + 2.0).all()
    order = np.argsort(sim.agents.position[:, 0])
    assert seconds[order[0]] > seconds[order[-1]]


def test_the_time_to_a_target_is_over_the_seam_where_that_is_nearer() -> None:
    world = World.box((0.0, 0.0), (20.0, 10.0), periodic="x", targets={"t": Target(position=(1.0, 5.0))})
    places = [(18.0, 5.0), (6.0, 5.0)]
    group = Group("a", positions=places, goal="t", desired_speed=2.0, sense_radius=2.0)
    sim = Simulation(world, group, local=Flocking())
    np.testing.assert_allclose(colours.time_to_exit(sim), (np.array([3.0, 5.0]) - world.targets["t"].radius) / 2.0)


def test_groups_have_the_colours_of_all_pictures() -> None:
    frame = frame_of(two_rooms())
    shown, scale = colours.colours_of(frame, groups=1)
    assert scale is None
    assert "#{:02x}{:02x}{:02x}".format(*shown[0]) == style.GROUPS[0]


def test_numbers_go_from_one_end_of_the_scale_to_the_other() -> None:
    sim = two_rooms()
    value = np.arange(len(sim.agents), dtype=float)
    value[3] = np.nan
    shown, scale = colours.colours_of(frame_of(sim, value=value), groups=1, unit="s")
    assert scale is not None
    assert (scale.low, scale.high, scale.unit) == (0.0, len(sim.agents) - 1.0, "s")
    low, high = (np.array(style.time_colours()(end)[:3]) * 255 for end in (0.0, 1.0))
    assert np.abs(shown[0] - low).max() <= 1
    assert np.abs(shown[-1] - high).max() <= 1
    assert "#{:02x}{:02x}{:02x}".format(*shown[3]) == style.OBSTACLE
    assert "39" in colour_bar(scale)


def hex_colours(shown: np.ndarray) -> list[str]:
    return ["#{:02x}{:02x}{:02x}".format(*colour) for colour in shown]


def test_states_have_names_and_colours_that_do_not_depend_on_who_is_there() -> None:
    people = Group("people", positions=[(2.0, 2.0), (4.0, 2.0), (6.0, 2.0)], goal="none")
    sim = Simulation(World(shapely.box(0, 0, 20, 10)), people, decisions=[Emotions()], seed=1)
    names = colours.names_of("mood", sim)
    assert names == ("calm", "alert", "afraid", "confident")
    assert colours.names_of("fear", sim) == colours.names_of("speed", sim) == ()
    for moods in ([0.0, 2.0, 2.0], [2.0, 3.0, 0.0]):
        shown, scale = colours.colours_of(frame_of(sim, value=np.array(moods)), groups=1, names=names)
        assert hex_colours(shown) == [style.GROUPS[int(mood)] for mood in moods]
        assert scale is not None
        assert [line.split()[-1] for line in colour_bar(scale).split("\n")] == list(names)


def test_the_task_of_each_is_named_and_those_without_one_are_grey() -> None:
    world = World(shapely.box(0, 0, 20, 10), targets={"pump": (3.0, 5.0), "valve": (15.0, 5.0)})
    crew = Group("crew", positions=[(2.0, 5.0), (14.0, 5.0), (9.0, 5.0)], stages=[Work("any", stay=True)])
    tasks = {"pump": Task(place="pump", work=9.0), "*valve*": Task(place="valve", work=9.0)}
    sim = Simulation(world, crew, tasks=tasks, seed=1)
    sim.run(until=0.5)
    value = colours.values_of("task", sim)
    names = colours.names_of("task", sim)
    assert names == ("pump", "*valve*")
    assert value is not None
    shown, scale = colours.colours_of(frame_of(sim, value=value), groups=1, names=names)
    wanted = [style.OBSTACLE if task < 0 else style.GROUPS[int(task)] for task in value]
    assert hex_colours(shown) == wanted
    assert style.OBSTACLE in wanted
    assert scale is not None
    assert colour_bar(scale).endswith("none")
    assert "\\*valve\\*" in colour_bar(scale)


def test_the_portrait_of_somebody_at_work_says_who_else_is_there() -> None:
    world = World(shapely.box(0, 0, 20, 10), targets={"pump": (3.0, 5.0)})
    crew = Group("crew", positions=[(2.6, 5.0), (15.0, 5.0)], stages=[Work("any")])
    sim = Simulation(world, crew, tasks={"pump": Task(place="pump", work=9.0, agents=2, within=1.0)}, seed=1)
    sim.run(until=0.5)
    seen = portrait(sim, 0)
    assert seen is not None
    assert ("team", "1 of 2 there, 1 on the way") in seen.doing
    sim.run(until=14.0)
    seen = portrait(sim, 0)
    assert seen is not None
    assert ("team", "2 of 2 there, 0 on the way") in seen.doing


def test_roles_and_orders_have_names_where_there_are_squads() -> None:
    world = World(shapely.box(0, 0, 20, 10), rooms={"vault": shapely.box(10, 0, 20, 10)})
    squad = Group("alpha", positions=[(2.0, 2.0), (4.0, 2.0)], squad=Squad(), stages=[Hold("vault")])
    sim = Simulation(world, squad, seed=1)
    assert colours.names_of("role", sim) == ("none", "member", "commander")
    assert colours.names_of("order", sim)[1] == "hold a post"


def test_every_choice_gives_a_number_for_each() -> None:
    for sim in (two_rooms(), box()):
        for choice in colours.choices(sim):
            values = colours.values_of(choice, sim)
            assert values is None or values.shape == (len(sim.agents),)


def test_turns_bring_the_x_axis_to_the_heading() -> None:
    heading = np.random.default_rng(2).normal(size=(50, 3))
    heading = np.vstack([heading / np.linalg.norm(heading, axis=1, keepdims=True), [[-1, 0, 0], [1, 0, 0]]])
    w, x, y, z = turned_to(heading).astype(float).T
    turned = np.stack([1 - 2 * (y**2 + z**2), 2 * (x * y + w * z), 2 * (x * z - w * y)], axis=1)
    np.testing.assert_allclose(turned, heading, atol=1e-5)


def test_names_are_not_taken_for_markup() -> None:
    assert "\\*bold\\*" in group_legend(["*bold*"])
    assert "and 3 more" in group_legend([f"group {k}" for k in range(15)])


def test_a_portrait_says_where_an_agent_goes_next_and_who_leads_whom() -> None:
    world = World(shapely.box(0, 0, 20, 10), rooms={"kitchen": shapely.box(0, 6, 5, 10)})
    party = Group("party", positions=[(2, 2), (3, 2), (4, 2)], goal=(6.0, 4.0), then=["kitchen"], leader="nearest")
    sim = Simulation(world, party, local=Seek())
    leads, follows = portrait(sim, 2), portrait(sim, 0)
    assert leads is not None
    assert follows is not None
    assert (leads.goal, leads.leads, leads.follows) == ("(6, 4)", 2, None)
    assert leads.doing[0] == ("stage", "go to (6, 4) (stage 1 of 2)")
    assert "| next | go to kitchen |" in described(leads)
    assert (follows.goal, follows.leads, follows.follows) == ("none", 0, 2)
    assert "| leads | 2 agents |" in described(leads)
    assert "| follows | agent 2 |" in described(follows)
    sim.set_goal((6, 4), then=["kitchen"], group="party")
    sim.run(until=20.0)
    assert portrait(sim, 2).goal == "room kitchen"  # type: ignore[union-attr]
    assert "| next | nothing |" in described(portrait(sim, 2))  # type: ignore[arg-type]


def test_a_portrait_says_how_long_an_agent_still_waits() -> None:
    world = World(shapely.box(0, 0, 20, 10))
    waiting = Group("a", positions=[(2, 2), (8, 8)], delay=np.array([0.0, 3.0]), stages=[Wait(5.0), Go((6.0, 4.0))])
    sim = Simulation(world, waiting, local=Seek())
    sim.run(until=2.0)
    seen, asleep = portrait(sim, 0), portrait(sim, 1)
    assert seen is not None
    assert asleep is not None
    assert seen.doing[:2] == (("stage", "wait 5 s (stage 1 of 2), 3.0 s left"), ("in it for", "2.0 s"))
    assert asleep.doing[0] == ("stage", "not started yet, 1.0 s left")


def test_a_portrait_names_neighbours_nearest_first() -> None:
    sim = two_rooms()
    seen = portrait(sim, 4)
    assert seen is not None
    away = np.linalg.norm(sim.agents.position - sim.agents.position[4], axis=1)
    wanted = [k for k in np.argsort(away) if k != 4 and away[k] <= sim.agents.sense_radius[4]]
    assert seen.neighbours.tolist() == wanted
    assert f"{len(wanted)}: " in described(seen)
    assert portrait(sim, 4000) is None


def test_the_planned_direction_stays_with_its_agent_when_others_leave() -> None:
    sim = two_rooms()
    gone = 0
    while gone < 3:
        before = dict(zip(sim.agents.id.tolist(), range(len(sim.agents)), strict=True))
        sim.step()
        gone = sim.population.departed
        for row, agent in enumerate(sim.agents.id.tolist()):
            np.testing.assert_array_equal(planned_direction(sim, row), sim.directions[before[agent]])


def test_overlays_have_names_of_their_own() -> None:
    known = overlays()
    assert {"planning field", "density"} <= {overlay.name for overlay in known}
    other = Overlay(name="density", title="another", look=lambda sim, selected: None, draw=lambda canvas, seen: None)
    with pytest.raises(ParameterError, match="'density' exists already"):
        register_overlay(other)


def test_the_density_picture_counts_everybody_once() -> None:
    sim = two_rooms()
    overlay = next(o for o in overlays() if o.name == "density")
    picture = overlay.look(sim, None)
    assert np.nansum(picture.values) * picture.cell**2 == pytest.approx(len(sim.agents))
