"""A model that keeps books of its own is told what really happened, after contact and after doors that close."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray

import tropel
from tropel import events
from tropel.agents.state import Steered
from tropel.contracts import ModelDeclaration, Moment, Moves
from tropel.run.stages import Settling

Floats = NDArray[np.float64]

DT = 0.5


class Keeps(tropel.Model):
    """Everybody goes east, and the books say where from, where to and how far they got."""

    def __init__(self, speed: float = 1.0, **declared: Any) -> None:
        self.declares = ModelDeclaration(**declared)
        self.speed = speed
        self.told: list[dict[str, Any]] = []

    def steer(self, moment: Moment, out: Steered) -> None:
        rows = moment.members
        if self.declares.moves is Moves.FREELY:
            out.velocity[rows] = (self.speed, 0.0)
        else:
            out.position[rows] = moment.state.position[rows] + (self.speed * moment.dt, 0.0)

    def settled(self, moment: Moment, before: Floats, wanted: Floats) -> None:
        self.told.append(
            {
                "step": moment.step,
                "members": moment.members.tolist(),
                "groups": moment.groups,
                "before": before.copy(),
                "wanted": wanted.copy(),
                "actual": moment.state.position.copy(),
            }
        )


def room(**more: Any) -> tropel.World:
    return tropel.World(shapely.box(0, 0, 10, 10), **more)


@pytest.mark.parametrize("moves", [Moves.FREELY, Moves.ITSELF])
def test_walls_shorten_what_was_wanted(moves: Moves) -> None:
    model = Keeps(4.0, moves=moves)
    group = tropel.Group("a", positions=[(2.0, 5.0), (9.0, 5.0)], goal="none")
    sim = tropel.Simulation(room(), group, local=model, dt=DT)
    sim.step()
    (told,) = model.told
    np.testing.assert_array_equal(told["before"], [(2.0, 5.0), (9.0, 5.0)])
    np.testing.assert_array_equal(told["wanted"], [(4.0, 5.0), (11.0, 5.0)])
    np.testing.assert_array_equal(told["actual"], sim.agents.position)
    np.testing.assert_allclose(told["actual"][0], (4.0, 5.0))
    assert 9.0 < told["actual"][1, 0] < 10.0


def test_one_is_told_once_after_each_step_with_the_number_of_the_next() -> None:
    model = Keeps()
    sim = tropel.Simulation(room(), tropel.Group("a", positions=[(2.0, 5.0)], goal="none"), local=model, dt=DT)
    for _ in range(4):
        sim.step()
    assert [told["step"] for told in model.told] == [1, 2, 3, 4]
    for told, later in zip(model.told, model.told[1:], strict=False):
        np.testing.assert_array_equal(later["before"], told["actual"])


def test_other_bodies_shorten_what_was_wanted() -> None:
    model = Keeps(1.0, solid_bodies=True)
    group = tropel.Group("a", positions=[(2.0, 5.0), (2.5, 5.0)], radius=0.2, goal="none")

    class Stands(tropel.Model):
        declares = ModelDeclaration(solid_bodies=True)

        def steer(self, moment: Moment, out: Steered) -> None:
            out.velocity[moment.members] = 0.0

    still = tropel.Group("b", positions=[(3.0, 5.0)], radius=0.2, goal="none")
    sim = tropel.Simulation(room(), [group, still], local={"a": model, "b": Stands()}, dt=DT)
    sim.step()
    (told,) = model.told
    np.testing.assert_array_equal(told["wanted"][:2] - told["before"][:2], [(0.5, 0.0)] * 2)
    np.testing.assert_array_equal(told["wanted"][2], (3.0, 5.0))
    assert told["actual"][1, 0] < told["wanted"][1, 0]
    np.testing.assert_array_equal(told["actual"], sim.agents.position)
    assert told["members"] == [0, 1]
    assert told["groups"] == (0,)


def test_each_is_told_of_its_own_members_and_of_where_everybody_is() -> None:
    first, second = Keeps(1.0, phase=0), Keeps(-1.0)
    groups = [tropel.Group(name, positions=[(x, 5.0)], goal="none") for name, x in (("a", 2.0), ("b", 8.0), ("c", 5.0))]
    sim = tropel.Simulation(room(), groups, local={"a": first, "b": second, "c": first}, dt=DT)
    sim.step()
    ((one,), (other,)) = first.told, second.told
    assert (one["members"], one["groups"]) == ([0, 2], (0, 2))
    assert (other["members"], other["groups"]) == ([1], (1,))
    for told in (one, other):
        np.testing.assert_array_equal(told["before"][:, 0], [2.0, 8.0, 5.0])
        np.testing.assert_array_equal(told["wanted"][:, 0], [2.5, 7.5, 5.5])
        np.testing.assert_allclose(told["actual"][:, 0], [2.5, 7.5, 5.5])


def test_one_is_told_of_those_who_leave_before_they_are_gone() -> None:
    model = Keeps(4.0)
    world = room(exits={"out": shapely.box(8, 0, 10, 10)})
    sim = tropel.Simulation(world, tropel.Group("a", positions=[(7.0, 5.0), (1.0, 5.0)]), local=model, dt=DT)
    sim.step()
    assert len(sim.agents) == 1
    assert model.told[0]["members"] == [0, 1]
    sim.step()
    assert model.told[1]["members"] == [0]
    assert model.told[1]["before"].shape == (1, 2)


def test_one_is_told_when_a_door_closes_on_somebody_in_the_doorway() -> None:
    model = Keeps(0.0)
    world = room(doors={"door": tropel.Door([(5, 0), (5, 10)], open=True)})
    sim = tropel.Simulation(world, tropel.Group("a", positions=[(4.0, 5.0), (2.0, 2.0)], goal="none"), local=model)
    sim.step()
    sim.agents.position[0] = (5.0, 5.0)
    sim.at(sim.time, events.CloseDoor(door="door"))
    sim.step()
    _, at_the_door, after = model.told
    np.testing.assert_array_equal(at_the_door["before"], [(5.0, 5.0), (2.0, 2.0)])
    np.testing.assert_array_equal(at_the_door["wanted"], at_the_door["before"])
    assert at_the_door["actual"][0, 0] != 5.0
    np.testing.assert_array_equal(at_the_door["actual"][1], (2.0, 2.0))
    # The step that follows begins where it was put.
    np.testing.assert_array_equal(after["before"], at_the_door["actual"])
    assert at_the_door["step"] == 1
    assert after["step"] == 2


def test_models_that_do_not_ask_are_never_told_and_nothing_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(tropel.Model, "settled", lambda self, moment, before, wanted: asked.append(type(self)))
    assert not tropel.Seek.is_told()
    sim = tropel.Simulation(room(), tropel.Group("a", count=5))
    assert sim.layers.told == []
    for _ in range(3):
        sim.step()
    assert asked == []
    assert len(sim._stages._settling._before) == 0


def test_of_two_models_only_the_one_that_asks_is_told() -> None:
    model = Keeps()
    groups = [tropel.Group("a", count=2, goal="none"), tropel.Group("b", count=2)]
    sim = tropel.Simulation(room(), groups, local={"a": model, "b": tropel.Seek()})
    assert [layer for layer, _ in sim.layers.told] == [model]
    sim.step()
    assert model.told[0]["members"] == [0, 1]


def test_who_does_not_move_in_a_phase_keeps_what_it_wanted_in_its_own() -> None:
    """`note` is called once per phase, and each phase writes only those who move in it."""
    sim = tropel.Simulation(room(), tropel.Group("a", positions=[(1.0, 1.0), (2.0, 2.0)]))
    settling = Settling([(Keeps(), (0,))])
    settling.begin(sim.agents)
    out = Steered.like(sim.agents, ())
    out.velocity[:] = (1.0, 0.0)
    settling.note(sim.agents, out, np.array([Moves.FREELY, Moves.NOT_NOW], dtype=np.uint8), 1.0)
    out.position[:] = (9.0, 9.0)
    settling.note(sim.agents, out, np.array([Moves.NOT_NOW, Moves.EXACTLY], dtype=np.uint8), 1.0)
    np.testing.assert_array_equal(settling._wanted, [(2.0, 1.0), (9.0, 9.0)])
