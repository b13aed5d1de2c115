"""What a layer is given: everything in one frozen moment, and a plain word where something is not there yet."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest
import shapely

import tropel
from tropel.agents.state import AgentState, Steered
from tropel.broad_phase import CellGrid
from tropel.contracts import Guidance, ModelDeclaration, Moment, Near
from tropel.errors import ModelError

HALL = tropel.World(shapely.box(0, 0, 10, 10))


def people(*places: tuple[float, float]) -> AgentState:
    state = AgentState(2)
    state.add(len(places), {"position": np.array(places), "sense_radius": 2.0})
    return state


class Notes(tropel.Planner):
    """Keeps the moments that it is given."""

    def __init__(self) -> None:
        self.prepared: list[Moment] = []
        self.asked: list[Moment] = []

    def prepare(self, moment: Moment) -> None:
        self.prepared.append(moment)

    def direct(self, moment: Moment, out: Guidance) -> None:
        self.asked.append(moment)


class NotesModel(tropel.Model):
    def __init__(self, **declared: Any) -> None:
        self.declares = ModelDeclaration(**declared)
        self.prepared: list[Moment] = []
        self.asked: list[Moment] = []

    def prepare(self, moment: Moment) -> None:
        self.prepared.append(moment)

    def steer(self, moment: Moment, out: Steered) -> None:
        self.asked.append(moment)


# What is not there yet ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("near", "nothing has been sensed here: `near` is for steer of models .*, not for planners"),
        ("guidance", "there is no guidance before planning: read it in steer or sense, not in direct"),
        ("directions", "there is no guidance before planning: read it in steer or sense, not in direct"),
    ],
)
def test_a_planner_that_reads_what_comes_later_is_told_so(name: str, said: str) -> None:
    class Hasty(tropel.Planner):
        def direct(self, moment: Moment, out: Guidance) -> None:
            getattr(moment, name)

    sim = tropel.Simulation(HALL, tropel.Group("a", count=3), planning=Hasty())
    with pytest.raises(ModelError, match=said):
        sim.step()
    with pytest.raises(ModelError, match=rf"step 0 \(t = 0 s\), stage 'planning': .*{said}"):
        sim.run(until=1.0)


def test_a_model_that_does_not_sense_has_nobody_near_and_says_so() -> None:
    class Blind(tropel.Model):
        declares = ModelDeclaration(senses=False)

        def steer(self, moment: Moment, out: Steered) -> None:
            moment.near.csr()

    sim = tropel.Simulation(HALL, tropel.Group("a", count=3), planning=Notes(), local=Blind())
    with pytest.raises(ModelError, match=r"nothing has been sensed here: .* declare senses=True"):
        sim.step()


def test_a_model_that_does_not_sense_is_told_where_to_go() -> None:
    class East(tropel.Planner):
        def direct(self, moment: Moment, out: Guidance) -> None:
            out.directions[moment.members, 0] = 1.0

    class Blind(tropel.Model):
        declares = ModelDeclaration(senses=False)

        def steer(self, moment: Moment, out: Steered) -> None:
            out.velocity[moment.members] = moment.directions[moment.members]

    sim = tropel.Simulation(HALL, tropel.Group("a", positions=[(2.0, 5.0)]), planning=East(), local=Blind(), dt=0.5)
    sim.step()
    assert sim.agents.position.tolist() == [[2.5, 5.0]]


@pytest.mark.parametrize("returned", [None, (), "everybody"])
def test_an_environment_that_returns_something_else_is_named(returned: Any) -> None:
    class Odd(tropel.Grid):
        def sense(self, moment: Moment) -> Any:
            return returned

    sim = tropel.Simulation(HALL, tropel.Group("a", count=3), planning=Notes(), environment=Odd())
    with pytest.raises(ModelError, match=r"Odd\.sense .*Near"):
        sim.step()


def test_nobody_is_near_while_layers_are_prepared() -> None:
    planner, model = Notes(), NotesModel()
    tropel.Simulation(HALL, tropel.Group("a", count=3), planning=planner, local=model)
    for (moment,) in (planner.prepared, model.prepared):
        with pytest.raises(ModelError, match="nothing has been sensed"):
            moment.near  # noqa: B018
    with pytest.raises(ModelError, match="no guidance"):
        planner.prepared[0].guidance  # noqa: B018
    assert model.prepared[0].guidance.ground is None


def test_a_model_that_is_prepared_finds_what_its_planner_has_laid() -> None:
    found = []

    class Looks(tropel.Lattice):
        def prepare(self, moment: Moment) -> None:
            found.append(moment.guidance.ground)
            super().prepare(moment)

    world = tropel.World(shapely.box(0, 0, 4, 4), exits={"out": shapely.box(3.6, 0, 4, 4)})
    planner = tropel.PathPlans()
    sim = tropel.Simulation(world, tropel.Group("a", count=3), planning=planner, local=Looks())
    assert found == [planner.ground]
    assert sim.ground is planner.ground is not None


# What is there ------------------------------------------------------------------------------------------------------


def test_a_moment_is_frozen() -> None:
    moment = Moment.of(people((1, 1)), HALL)
    for name in ("state", "members", "step", "dt", "near", "guidance", "anything"):
        with pytest.raises((FrozenInstanceError, AttributeError, TypeError)):
            setattr(moment, name, None)
    assert moment.step == 0


def test_a_step_tells_time_seed_and_whom_it_asks_for() -> None:
    planner, model = Notes(), NotesModel()
    groups = [tropel.Group("a", count=2), tropel.Group("b", count=0), tropel.Group("c", count=3)]
    planners = {"a": planner, "b": planner, "c": tropel.Direct()}
    sim = tropel.Simulation(HALL, groups, planning=planners, local=model, dt=0.2, seed=7)
    for _ in range(3):
        sim.step()
    for asked, groups_asked, rows in ((planner.asked, (0, 1), [0, 1]), (model.asked, (0, 1, 2), [0, 1, 2, 3, 4])):
        assert [moment.step for moment in asked] == [0, 1, 2]
        assert [moment.time for moment in asked] == [0.0, 0.2, 0.4]
        for moment in asked:
            assert (moment.dt, moment.seed, moment.groups) == (0.2, 7, groups_asked)
            assert moment.members.tolist() == rows
            assert moment.members.dtype == np.int64
            assert moment.state is sim.agents
            assert moment.world is sim.world
            assert moment.cells is sim.cells
            assert moment.reduce is sim.reduce


def test_members_are_the_living() -> None:
    planner, model = Notes(), NotesModel()
    sim = tropel.Simulation(HALL, tropel.Group("a", count=4), planning=planner, local=model)
    sim.agents.dead[1] = 1
    sim.population._members.clear()
    sim.step()
    assert planner.asked[0].members.tolist() == model.asked[0].members.tolist() == [0, 2, 3]


def test_who_waits_is_told_and_wants_to_go_nowhere() -> None:
    class East(tropel.Planner):
        def direct(self, moment: Moment, out: Guidance) -> None:
            out.directions[moment.members, 0] = 1.0

    model = NotesModel()
    wanted = []

    class Wants(NotesModel):
        def steer(self, moment: Moment, out: Steered) -> None:
            super().steer(moment, out)
            wanted.append(moment.directions[:, 0].tolist())

    model = Wants()
    group = tropel.Group("a", positions=[(1, 1), (3, 3)], delay=np.array([0.0, 0.15]))
    sim = tropel.Simulation(HALL, group, planning=East(), local=model, dt=0.1)
    for _ in range(3):
        sim.step()
    assert [moment.waiting.tolist() for moment in model.asked] == [[False, True], [False, True], []]
    assert wanted == [[1.0, 0.0], [1.0, 0.0], [1.0, 1.0]]


def test_models_of_one_phase_are_given_the_same_neighbourhood() -> None:
    first, second = NotesModel(), NotesModel()
    groups = [tropel.Group("a", count=2), tropel.Group("b", count=2)]
    sim = tropel.Simulation(HALL, groups, local={"a": first, "b": second})
    sim.step()
    assert first.asked[0].near is second.asked[0].near
    assert first.asked[0].guidance is second.asked[0].guidance


def test_models_of_a_later_phase_see_where_those_of_an_earlier_one_have_gone() -> None:
    class East(NotesModel):
        def steer(self, moment: Moment, out: Steered) -> None:
            super().steer(moment, out)
            out.velocity[moment.members, 0] = 1.0

    class Looks(NotesModel):
        def steer(self, moment: Moment, out: Steered) -> None:
            super().steer(moment, out)
            seen.append((moment.state.position[0, 0], moment.near.cells.cell_list.position[0].max()))

    seen: list[tuple[float, float]] = []
    groups = [tropel.Group("a", positions=[(5, 5)]), tropel.Group("b", positions=[(2, 2)])]
    sim = tropel.Simulation(HALL, groups, local={"a": East(phase=0), "b": Looks(phase=1)}, dt=0.5)
    sim.step()
    assert seen == [(5.5, 5.5)]


# Without a simulation -----------------------------------------------------------------------------------------------


def test_a_moment_for_tests_has_everybody_in_it_and_nothing_else() -> None:
    state = people((1, 1), (2, 1), (9, 9))
    moment = Moment.of(state, HALL)
    assert moment.state is state
    assert moment.world is HALL
    assert moment.members.tolist() == [0, 1, 2]
    assert moment.groups == (0,)
    assert (moment.step, moment.time, moment.dt, moment.seed) == (0, 0.0, 0.05, 0)
    assert moment.directions.tolist() == [[0.0, 0.0]] * 3
    assert len(moment.waiting) == 0
    with pytest.raises(ModelError, match="nothing has been sensed"):
        moment.near  # noqa: B018


def test_a_moment_for_tests_takes_what_it_is_given() -> None:
    state, way = people((1, 1), (2, 1), (9, 9)), np.ones((3, 2))
    state.group[:] = [0, 2, 1]
    moment = Moment.of(
        state, HALL, environment=tropel.Grid(cell=1.0), directions=way, members=np.array([0, 2]), step=4, dt=0.5, seed=9
    )
    assert (moment.step, moment.time, moment.dt, moment.seed) == (4, 2.0, 0.5, 9)
    assert moment.members.tolist() == [0, 2]
    assert moment.groups == (0, 1, 2)
    assert moment.directions is way
    assert isinstance(moment.near, Near)
    assert moment.near.csr().indices.tolist() == [1, 0]
    assert moment.cells.state()["cell"] == pytest.approx(1.0, rel=1e-4)


def test_a_moment_for_tests_may_keep_its_cells() -> None:
    state = people((1, 1), (2, 1))
    cells = CellGrid.of(state, HALL, cell=3.0)
    assert Moment.of(state, HALL, environment=tropel.Grid(), cells=cells).near.cells is cells
    assert cells.state()["cell"] == pytest.approx(3.0, rel=1e-4)


def test_what_a_simulation_would_tell_now_can_be_asked_for() -> None:
    sim = tropel.Simulation(HALL, tropel.Group("a", count=5), seed=3)
    sim.step()
    moment = sim.moment()
    assert (moment.step, moment.time, moment.seed) == (1, sim.time, 3)
    assert moment.directions is sim.directions
    assert replace(moment, sensed=sim.sense()).near.csr().indptr[-1] == len(sim.sense().csr().indices)
