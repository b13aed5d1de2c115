"""The simulation: what it is built from, what a step does in which order, and walls that hold through whole runs."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tropel import Direct, Door, Grid, Group, Seek, Simulation, Source, Target, World, events
from tropel.agents.state import Column, Steered
from tropel.contracts import Guidance, Model, ModelDeclaration, Moment, Moves, Near, Planner
from tropel.errors import GeometryError, ModelError, ParameterError, SpawnError
from wall_crossings import closed_lines, crossing_rows

Floats = NDArray[np.float64]

HALL = shapely.box(0, 0, 20, 10)


class Wanderer(Model):
    """Jumps about at random: each step another direction, and a length from a hair to a thousand rooms."""

    def __init__(self, *, seed: int, longest: float = 1e4) -> None:
        self.generator = np.random.default_rng(seed)
        self.longest = longest

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        length = 10.0 ** self.generator.uniform(-6, math.log10(self.longest), (len(members), 1))
        angle = self.generator.uniform(0, 2 * math.pi, len(members))
        move = length * np.column_stack([np.cos(angle), np.sin(angle)])
        if self.declares.moves is Moves.ITSELF:
            out.position[members] = moment.state.position[members] + move
        else:
            out.velocity[members] = move / moment.dt


class Jumper(Wanderer):
    declares = ModelDeclaration(moves=Moves.ITSELF)


def crossings(before: dict[int, Floats], after: dict[int, Floats], world: World) -> list[int]:
    """Ids of agents that moved and whose chord shares a point with a wall or a closed door."""
    ids = [agent for agent in after if agent in before and (before[agent] != after[agent]).any()]
    ends = [np.array([places[agent] for agent in ids]) for places in (before, after)]
    return [ids[row] for row in crossing_rows(*ends, closed_lines(world))]


def places(sim: Simulation) -> dict[int, Floats]:
    return dict(zip(sim.agents.id.tolist(), sim.agents.position.copy(), strict=True))


def exact_sides(position: Floats, line: Floats) -> NDArray[np.int64]:
    """On which side of a line each point is: 1 left of it, -1 right of it, 0 exactly on it."""
    (ax, ay), (bx, by) = [[Fraction(c) for c in end] for end in line.tolist()]
    turns = [(bx - ax) * (Fraction(y) - ay) - (by - ay) * (Fraction(x) - ax) for x, y in position.tolist()]
    return np.array([(turn > 0) - (turn < 0) for turn in turns])


# Walls through whole runs -------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 10**6),
    model=st.sampled_from([Wanderer, Jumper, Seek]),
    dt=st.sampled_from([0.02, 0.1, 1.0, 5.0]),
)
@settings(max_examples=20, deadline=None)
def test_no_chord_of_a_run_touches_a_wall_or_closed_door_while_doors_open_and_close(
    seed: int, model: Any, dt: float
) -> None:
    generator = np.random.default_rng(seed)
    world = World(
        shapely.box(0, 0, 20, 10).difference(shapely.Polygon([(12, 4), (16, 4.01), (12, 4.02)])),
        walls=[[(6, 0), (6, 4)], [(6, 6), (6, 10)], [(6.000001, 6), (6.000001, 10)]],
        doors={"middle": Door([(6, 4), (6, 6)], open=True), "far": Door([(10, 0), (10, 10)], open=True),
               "bent": Door([(14, 6), (17, 8), (14, 8.2)], open=True)},
        exits={"out": shapely.box(19, 4, 20, 6)},
        targets={"t": (18, 8)},
    )  # fmt: skip
    sim = Simulation(
        world,
        [Group("a", count=40, goal="t"), Source("b", rate=5.0, region=shapely.box(1, 1, 5, 9))],
        local=Seek() if model is Seek else model(seed=seed),
        dt=dt,
        seed=seed,
    )
    for step in range(0, 30, 2):
        for name in world.doors:
            kind = events.OpenDoor if generator.random() < 0.5 else events.CloseDoor
            sim.at(step * dt, kind(door=name))
    for _ in range(30):
        before = places(sim)
        sim.step()
        assert crossings(before, places(sim), world) == []


@pytest.mark.parametrize("model", [Wanderer, Jumper])
def test_the_doors_in_that_test_are_in_the_way(model: Any) -> None:
    # The same walk through open doors does cross their lines, so that closing them is what stops people.
    world = World(HALL, doors={"d": Door([(10, 0), (10, 10)], open=True)})
    sim = Simulation(world, Group("a", count=60), local=model(seed=1, longest=100.0))
    shut = World(HALL, doors={"d": Door([(10, 0), (10, 10)])})
    found = 0
    for _ in range(10):
        before = places(sim)
        sim.step()
        found += len(crossings(before, places(sim), shut))
        assert crossings(before, places(sim), world) == []
    assert found > 10


@pytest.mark.parametrize("angle", [0.0, 0.3, -1.2])
@pytest.mark.parametrize("closing", [1.0, 1.25])
def test_a_door_that_closes_on_people_leaves_everybody_on_the_side_they_came_from(angle: float, closing: float) -> None:
    # Walkers of 1 m/s from both sides reach the line in steps of a quarter of a metre, some of them exactly.
    rotation = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    rows = np.arange(1.0, 9.0, 1.0)
    from_left = np.column_stack([np.linspace(8.5, 9.2, len(rows)), rows])
    from_left[::2, 0] = 9.0
    from_right = np.column_stack([np.full(len(rows), 11.0), rows + 0.5])
    start = np.concatenate([from_left, from_right]) @ rotation.T
    door = np.array([(10.0, 0.0), (10.0, 10.0)]) @ rotation.T
    hall = np.array([(0, 0), (20, 0), (20, 10), (0, 10)]) @ rotation.T
    world = World(shapely.Polygon(hall), doors={"d": Door(door, open=True)})

    class Straight(Model):
        def steer(self, moment: Moment, out: Steered) -> None:
            members = moment.members
            half = len(members) // 2
            out.velocity[members[:half]] = rotation @ (1.0, 0.0)
            out.velocity[members[half:]] = rotation @ (-1.0, 0.0)

    sim = Simulation(world, Group("a", positions=start), local=Straight(), dt=0.25)
    sim.at(closing, events.CloseDoor(door="d"))
    for _ in range(round(closing / 0.25)):
        sim.step()
    side = exact_sides(sim.agents.position, door)
    on_line = side == 0
    if closing == 1.0 and angle == 0.0:
        assert on_line.sum() >= 8
    side = np.where(on_line, np.repeat([1, -1], len(rows)), side)
    for step in range(20):
        before = places(sim)
        sim.step()
        # Who was exactly on the line when it closed has its one common point with the door at the beginning.
        touching = set(crossings(before, places(sim), world))
        assert touching <= (set(np.flatnonzero(on_line).tolist()) if step == 0 else set())
        assert (exact_sides(sim.agents.position, door) == side).all()


def test_who_was_caught_on_the_line_of_a_door_can_walk_on_afterwards() -> None:
    world = World(HALL, doors={"d": Door([(10, 0), (10, 10)], open=True)}, targets={"t": (2, 5), "u": (18, 5)})
    sim = Simulation(world, Group("a", positions=[(9.0, 5.0)], goal="u", desired_speed=1.0), dt=0.25)
    sim.at(1.0, events.CloseDoor(door="d"))
    sim.at(2.0, events.SetGoal(goal="t"))
    for _ in range(4):
        sim.step()
    assert sim.agents.position[0, 0] == 10.0
    for _ in range(24):
        sim.step()
    assert sim.agents.position[0, 0] < 6.0


# What a step does ---------------------------------------------------------------------------------------------------


def test_a_step_is_events_planning_environment_local_in_this_order() -> None:
    calls: list[str] = []

    class Planning(Direct):
        def direct(self, moment: Moment, out: Guidance) -> None:
            calls.append("planning")

    class Surroundings(Grid):
        def sense(self, moment: Moment) -> Near:
            calls.append("environment")
            return super().sense(moment)

    class Walking(Seek):
        def steer(self, moment: Moment, out: Steered) -> None:
            calls.append("local")

    layers = {"planning": Planning(), "environment": Surroundings(), "local": Walking()}
    sim = Simulation(World(HALL), Group("a", count=2), **layers)
    sim.at(0.0, lambda s: calls.append("event"))
    sim.step()
    assert calls == ["event", "planning", "environment", "local"]
    stages = "events decide planning environment local integrate collisions settled exits record"
    assert list(sim.timing.seconds) == stages.split()


class Remembering(Model):
    """A steering model that writes down whom it was asked for, and counts its calls in a memory column."""

    declares = ModelDeclaration(
        memory=(Column(name="calls", default=0.0),), columns=(Column(name="pace", default=0.5),)
    )

    def __init__(self) -> None:
        self.asked: list[list[int]] = []

    def steer(self, moment: Moment, out: Steered) -> None:
        members = moment.members
        self.asked.append(members.tolist())
        out.memory["calls"][members] = moment.state.calls[members] + 1
        out.velocity[members, 0] = moment.state.pace[members]


def test_each_group_may_have_its_own_layers_and_a_shared_one_is_asked_once() -> None:
    first, second = Remembering(), Remembering()
    places_of = [(float(x), 5.0) for x in range(2, 8)]
    groups = [Group(name, positions=places_of[2 * k : 2 * k + 2]) for k, name in enumerate("abc")]
    sim = Simulation(World(HALL), groups, local={"a": first, "b": second, "c": first})
    sim.step()
    assert first.asked == [[0, 1, 4, 5]]
    assert second.asked == [[2, 3]]
    assert sim.agents.calls.tolist() == [1.0] * 6
    sim.remove_agents(ids=[1, 2])
    sim.step()
    assert first.asked[1] == [0, 2, 3]
    assert second.asked[1] == [1]
    assert sim.agents.calls.tolist() == [2.0] * 4
    sim.add_agents("b", positions=[(10, 5)], parameters={"pace": 2.0})
    sim.step()
    assert sim.agents.calls.tolist() == [3.0] * 4 + [1.0]
    np.testing.assert_allclose(sim.agents.velocity[:, 0], [0.5] * 4 + [2.0])
    assert sim.agents.id.tolist() == [0, 3, 4, 5, 6]


def test_some_groups_may_move_themselves_while_others_are_moved() -> None:
    class Elevator(Model):
        declares = ModelDeclaration(moves=Moves.ITSELF)

        def steer(self, moment: Moment, out: Steered) -> None:
            out.position[moment.members] = moment.state.position[moment.members] + (0.0, 0.5)

    world = World(HALL, targets={"t": (18, 5)})
    sim = Simulation(
        world,
        [Group("lift", positions=[(3, 3)], goal="t"), Group("walk", positions=[(10, 5)], goal="t", desired_speed=1.0)],
        local={"lift": Elevator(), "walk": Seek()},
        dt=0.1,
    )
    sim.step()
    np.testing.assert_allclose(sim.agents.position, [(3, 3.5), (10.1, 5)])
    np.testing.assert_allclose(sim.agents.velocity, [(0, 5), (1, 0)])


def test_time_is_the_number_of_steps_times_dt() -> None:
    sim = Simulation(World(HALL), Group("a", count=1), dt=0.1)
    for _ in range(1000):
        sim.step()
    assert sim.time == 1000 * 0.1


def test_who_has_a_delay_stands_until_it_is_over() -> None:
    world = World(HALL, targets={"t": (18, 5)})
    sim = Simulation(world, Group("a", positions=[(2, 3), (2, 5), (2, 7)], delay=[0.0, 0.3, 0.35], goal="t"), dt=0.1)
    began: dict[int, int] = {}
    for step in range(6):
        sim.step()
        for row in np.flatnonzero(np.linalg.norm(sim.agents.velocity, axis=1) > 0):
            began.setdefault(int(row), step)
    assert began == {0: 0, 1: 3, 2: 4}


def test_people_leave_through_exits_and_are_counted_once() -> None:
    world = World(HALL, exits={"east": shapely.box(18, 0, 20, 10), "west": shapely.box(0, 0, 2, 10)})
    sim = Simulation(world, Group("a", count=30, region=shapely.box(4, 1, 16, 9)), dt=0.1)
    summary = sim.run(until="empty", limit=60.0)
    left = sim.population.departures()
    assert sorted(left["id"].tolist()) == list(range(30))
    assert sum(summary.exits.values()) == summary.evacuated == 30
    assert set(summary.exits) == {"east", "west"}
    assert summary.evacuation_time == left["time"].max()
    assert (np.diff(left["time"]) >= 0).all()


def test_a_moving_target_is_followed() -> None:
    world = World(
        HALL, targets={"dog": Target(motion=lambda t: (10 + 6 * math.cos(0.2 * t), 5 + 3 * math.sin(0.2 * t)))}
    )
    sim = Simulation(world, Group("owner", positions=[(2, 5)], goal="dog", desired_speed=3.0))
    for _ in range(400):
        sim.step()
    dog = world.goals().position[0]
    assert np.linalg.norm(sim.agents.position[0] - dog) < 1.0


def test_the_same_seed_gives_the_same_bits_and_another_seed_others() -> None:
    def run(seed: int) -> str:
        world = World(HALL, exits={"east": shapely.box(18, 4, 20, 6)})
        sim = Simulation(world, [Group("a", count=40), Source("b", rate=5, region=HALL, arrivals="random")], seed=seed)
        for _ in range(60):
            sim.step()
        return sim.state_hash()

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_a_world_without_agents_can_be_stepped() -> None:
    nobody: list[list[Group]] = [[], [Group("none", count=0)]]
    for agents in nobody:
        sim = Simulation(World(HALL), agents)
        for _ in range(3):
            sim.step()
        assert len(sim.agents) == 0
        assert sim.time == pytest.approx(0.15)


def test_the_last_one_may_leave_and_others_come() -> None:
    sim = Simulation(World(HALL), Group("a", positions=[(5, 5)]))
    assert sim.remove_agents().tolist() == [0]
    sim.step()
    assert sim.add_agents("a", count=2).tolist() == [1, 2]
    sim.step()
    assert len(sim.agents) == 2


def test_agents_can_be_removed_by_id_by_group_and_by_region_together() -> None:
    world = World(HALL, regions={"left": shapely.box(0, 0, 10, 10)})
    sim = Simulation(world, [Group("a", positions=[(2, 2), (12, 2)]), Group("b", positions=[(2, 5), (12, 5)])])
    assert sim.remove_agents(group="a", region="left").tolist() == [0]
    assert sim.remove_agents(ids=[2, 77], region=shapely.box(0, 0, 5, 9)).tolist() == [2]
    assert sim.agents.id.tolist() == [1, 3]
    with pytest.raises(ParameterError, match="no group 'c'"):
        sim.remove_agents(group="c")


def test_in_a_box_agents_fly_and_stay_inside() -> None:
    world = World.box((0, 0, 0), (10, 10, 10), targets={"t": (9, 9, 9)}, regions={"low": ((0, 0, 0), (10, 10, 2))})
    sim = Simulation(world, Group("birds", count=50, region="low", goal="t"), dt=0.1)
    for _ in range(150):
        sim.step()
        assert (sim.agents.position >= 0.2 - 1e-12).all()
        assert (sim.agents.position <= 9.8 + 1e-12).all()
    assert np.linalg.norm(sim.agents.position - 9, axis=1).min() < 1.0
    assert sim.remove_agents(region="low").size + len(sim.agents) == 50


# What it refuses ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [0.0, -0.1, math.nan, math.inf, "0.1", None])
def test_a_step_that_is_no_positive_time_is_refused(dt: Any) -> None:
    with pytest.raises(ParameterError, match="dt must be a positive number"):
        Simulation(World(HALL), Group("a", count=1), dt=dt)


@pytest.mark.parametrize("dt", [np.float32(0.25), np.float64(0.25), np.int64(1), 1])
def test_a_step_may_be_any_kind_of_number(dt: Any) -> None:
    sim = Simulation(World(HALL), Group("a", count=1), dt=dt)
    assert isinstance(sim.dt, float)
    assert sim.dt == float(dt)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"threads": 0}, "threads must be a whole number of at least 1"),
        ({"local": {"a": Seek(), "x": Seek()}}, "local: there is no group 'x'"),
        ({"local": {"a": Seek()}}, "local: nothing is given for the group 'b'"),
    ],
)
def test_layers_that_are_missing_are_refused(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        Simulation(World(HALL), [Group("a", count=1), Group("b", count=1)], **fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"planning": Direct},
        {"planning": Seek()},
        {"local": Direct()},
        {"local": "seek"},
        {"environment": Seek()},
        {"environment": Grid},
        {"planning": {"a": Direct(), "b": Seek()}},
    ],
)
def test_what_is_no_layer_is_refused_by_its_name(fields: dict[str, Any]) -> None:
    """What to do instead is in tests/contracts/test_declarations.py."""
    (stage,) = fields
    with pytest.raises(ParameterError, match=rf"{stage} (must be|needs an?) "):
        Simulation(World(HALL), [Group("a", count=1), Group("b", count=1)], **fields)


def test_agents_outside_the_area_are_refused() -> None:
    with pytest.raises(SpawnError, match=r"group 'a': position 0 at \[25.0, 5.0\] is outside the walkable area"):
        Simulation(World(HALL), Group("a", positions=[(25, 5)]))
    sim = Simulation(World(HALL, walls=[[(5, 0), (5, 9)]]), Group("a", count=1))
    with pytest.raises(SpawnError, match="exactly on a wall"):
        sim.add_agents("a", positions=[(5, 3)])


@pytest.mark.parametrize("name", ["velocity", "goal", "stage_until", "group", "id", "held", "collided", "nothing"])
def test_columns_of_the_engine_cannot_be_set(name: str) -> None:
    sim = Simulation(World(HALL), Group("a", count=1))
    with pytest.raises(ParameterError, match=f"no parameter '{name}' to set"):
        sim.set_parameter(name, 1.0)


def test_a_model_that_writes_nonsense_is_named_with_step_and_agent() -> None:
    class Broken(Model):
        def steer(self, moment: Moment, out: Steered) -> None:
            out.velocity[moment.members[-1]] = math.nan if moment.step == 3 else 0.0

    sim = Simulation(World(HALL), Group("a", count=4), local=Broken(), dt=0.1)
    with pytest.raises(ModelError, match=r"step 3 \(t = 0\.3 s\).*agent 3 .*not finite"):
        sim.run(until=1.0)
    assert np.isfinite(sim.agents.position).all()


@pytest.mark.parametrize("stage", ["planning", "environment", "local"])
def test_a_layer_that_raises_is_named_with_step_stage_and_error(stage: str) -> None:
    class Fails:
        calls = 0

        def fail(self) -> None:
            self.calls += 1
            if self.calls == 6:
                raise IndexError("out of ideas")

    class FailingPlanner(Fails, Planner):
        def direct(self, moment: Moment, out: Guidance) -> None:
            self.fail()

    class FailingEnvironment(Fails, Grid):
        def sense(self, moment: Moment) -> Near:
            self.fail()
            return super().sense(moment)

    class FailingModel(Fails, Model):
        def steer(self, moment: Moment, out: Steered) -> None:
            self.fail()

    fails = {"planning": FailingPlanner(), "environment": FailingEnvironment(), "local": FailingModel()}
    layer: dict[str, Any] = {"planning": Direct(), "environment": Grid(), "local": Seek()}
    layer[stage] = fails[stage]
    sim = Simulation(World(HALL), Group("a", count=2), dt=0.1, **layer)
    with pytest.raises(
        ModelError, match=rf"step 5 \(t = 0\.5 s\), stage '{stage}': IndexError: out of ideas"
    ) as caught:
        sim.run(until=2.0)
    assert isinstance(caught.value.__cause__, IndexError)


def test_a_motion_that_fails_on_the_way_is_named() -> None:
    world = World(HALL, targets={"t": Target(motion=lambda t: (5.0, 5.0) if t < 0.25 else (math.nan, 5.0))})
    sim = Simulation(world, Group("a", count=1), dt=0.1)
    with pytest.raises(GeometryError, match=r"target 't': its motion gives .* at t = 0\.3 s"):
        sim.run(until=1.0)
