"""A planner that remembers: its columns are written in each step, stored in checkpoints and put back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import shapely

import tropel
from tropel.agents.state import Column, Steered
from tropel.contracts import Declaration, Guidance, ModelDeclaration, Moment
from tropel.errors import ParameterError
from tropel.recording.checkpoint import load_checkpoint
from tropel.testing import check_planner


class Tires(tropel.Planner):
    """Everybody goes east, the slower the more steps it has been asked for."""

    declares = Declaration(
        columns=(Column(name="stamina", default=10.0),), memory=(Column(name="steps_asked", dtype="int32"),)
    )

    def direct(self, moment: Moment, out: Guidance) -> None:
        rows = moment.members
        asked = moment.state.columns["steps_asked"][rows]
        out.directions[rows, 0] = 1.0 / (1.0 + asked / moment.state.columns["stamina"][rows])
        out.memory["steps_asked"][rows] = asked + 1


def simulation(**more: object) -> tropel.Simulation:
    world = tropel.World(shapely.box(0, 0, 40, 10))
    groups = [
        tropel.Group("a", count=4, region=shapely.box(0, 0, 5, 10), goal="none"),
        tropel.Group("b", count=3, region=shapely.box(0, 0, 5, 10), goal="none"),
    ]
    return tropel.Simulation(world, groups, seed=4, threads=1, **{"planning": Tires(), **more})  # type: ignore[arg-type]


def test_a_planner_that_counts_its_steps_has_counted_them() -> None:
    sim = simulation()
    assert sim.agents.steps_asked.tolist() == [0] * 7
    for done in range(1, 6):
        sim.step()
        assert sim.agents.steps_asked.tolist() == [done] * 7
    assert sim.agents.steps_asked.dtype == np.int32


def test_only_those_it_is_asked_for_are_counted_and_newcomers_begin_at_nothing() -> None:
    sim = simulation(planning={"a": Tires(), "b": tropel.Direct()})
    for _ in range(3):
        sim.step()
    sim.add_agents("a", positions=[(20.0, 5.0)])
    sim.remove_agents(ids=[1])
    sim.step()
    assert dict(zip(sim.agents.id.tolist(), sim.agents.steps_asked.tolist(), strict=True)) == {
        0: 4,
        2: 4,
        3: 4,
        4: 0,
        5: 0,
        6: 0,
        7: 1,
    }


def test_what_a_planner_remembers_is_in_checkpoints_and_a_resumed_run_is_the_same(tmp_path: Path) -> None:
    sim = simulation()
    for _ in range(5):
        sim.step()
    sim.save(tmp_path / "five")
    arrays, _ = load_checkpoint(tmp_path / "five")
    (name,) = [name for name in arrays if name.endswith("steps_asked")]
    assert arrays[name].tolist() == [5] * 7
    resumed = simulation()
    resumed.restore(tmp_path / "five")
    assert resumed.state_hash() == sim.state_hash()
    for _ in range(5):
        sim.step()
        resumed.step()
    assert resumed.agents.steps_asked.tolist() == [10] * 7
    assert resumed.state_hash() == sim.state_hash()


def test_the_memory_of_a_planner_is_part_of_the_hash() -> None:
    sim = simulation()
    before = sim.state_hash()
    sim.agents.steps_asked[0] += 1
    assert sim.state_hash() != before


def test_a_planner_that_remembers_in_columns_keeps_its_promises() -> None:
    check_planner(Tires())


def test_groups_and_events_do_not_set_what_a_planner_remembers() -> None:
    sim = simulation()
    sim.set_parameter("stamina", 5.0)
    with pytest.raises(ParameterError, match="no parameter 'steps_asked' to set"):
        sim.set_parameter("steps_asked", 3.0)
    with pytest.raises(ParameterError, match="steps_asked"):
        tropel.Simulation(
            tropel.World(shapely.box(0, 0, 9, 9)),
            tropel.Group("a", count=1, parameters={"steps_asked": 3}),
            planning=Tires(),
        )


def test_a_planner_and_a_model_do_not_write_the_same_column() -> None:
    class Counts(tropel.Model):
        declares = ModelDeclaration(memory=(Column(name="steps_asked", dtype="int32"),))

        def steer(self, moment: Moment, out: Steered) -> None:
            out.velocity[moment.members] = 0.0

    with pytest.raises(ParameterError, match="a planner and a model both write the column 'steps_asked'"):
        simulation(local=Counts())


@pytest.mark.parametrize("inside", ["blend", "fallback"])
def test_a_planner_that_asks_one_that_remembers_remembers_it(inside: str) -> None:
    nothing = tropel.VectorField(tropel.ArrayField(np.zeros((2, 2, 2)), cell=40.0))
    planner = tropel.Blend([(1.0, Tires()), (1.0, nothing)])
    if inside == "fallback":
        planner = tropel.VectorField(tropel.ArrayField(np.zeros((2, 2, 2)), cell=40.0), fallback=Tires())
    sim = simulation(planning=planner)
    for _ in range(3):
        sim.step()
    assert sim.agents.steps_asked.tolist() == [3] * 7
