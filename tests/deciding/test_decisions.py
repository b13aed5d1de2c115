"""Decisions: rules and planners that change attributes of their members, checked, stored and resumed."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from tropel import Bolder, Decide, Decision, Declaration, Dynamical, Go, Group, Planner, Simulation, Tired, Wait, World
from tropel.contracts import Decided, Guidance, Moment
from tropel.errors import ModelError, ParameterError
from tropel.testing import ContractViolation, check_decision, check_planner


def lane(**more: Any) -> World:
    return World(shapely.box(0, 0, 200, 4), exits={"out": shapely.box(199, 0, 200, 4)}, **more)


def walker(**more: Any) -> Group:
    return Group("a", positions=[(1.0, 2.0)], **more)


def test_own_decisions_keep_their_promises() -> None:
    check_decision(lambda: Tired(recovery=10.0), dims=(2,))
    check_decision(lambda: Bolder(speed=1.5), local=Dynamical(), dims=(2,))


def test_speed_follows_the_closed_form_of_the_distance() -> None:
    sim = Simulation(lane(), walker(), decisions=[Tired(distance=30.0, speed=0.5)])
    sim.run(until=60.0)
    walked = sim.agents.position[0, 0] - 1.0
    # The last step has not been counted yet: decisions come before it is made.
    walked -= sim.dt * np.linalg.norm(sim.agents.velocity[0])
    tiredness = 1.0 - math.exp(-walked / 30.0)
    assert sim.agents.tiredness[0] == pytest.approx(tiredness, rel=1e-3)
    assert sim.agents.desired_speed[0] == pytest.approx(1.34 * (1.0 - 0.5 * tiredness), rel=1e-3)


def test_the_tired_recover_at_rest_and_have_their_own_speed_again() -> None:
    rested = walker(stages=[Go((20.0, 2.0)), Wait(60.0), Go("out")])
    sim = Simulation(lane(), rested, decisions=[Tired(distance=20.0, recovery=5.0)])
    sim.run(until=lambda sim: sim.agents.stage[0] == 1, limit=60.0)
    tired = float(sim.agents.desired_speed[0])
    assert tired < 1.1
    sim.run(until=sim.time + 50.0)
    assert sim.agents.desired_speed[0] == pytest.approx(1.34, rel=1e-3)


def test_courage_rises_while_a_stage_is_critical_and_falls_afterwards() -> None:
    stages = [Go((6.0, 2.0)), Go((20.0, 2.0), critical=True), Go("out")]
    sim = Simulation(lane(), walker(stages=stages), local=Dynamical(), decisions=[Bolder(courage=0.8, fade=2.0)])
    seen: dict[int, float] = {}
    for _ in range(700):
        sim.step()
        seen[int(sim.agents.stage[0])] = float(sim.agents.courage[0])
    assert seen[0] == 0.5
    assert seen[1] == pytest.approx(0.9, abs=0.01)
    assert seen[2] == pytest.approx(0.5, abs=0.01)


def test_a_function_sets_what_it_declares_and_nothing_else() -> None:
    def late(moment: Moment) -> dict[str, Any]:
        return {"desired_speed": np.where(moment.state.position[moment.members, 0] > 5.0, 0.5, 1.0)}

    sim = Simulation(lane(), walker(), decisions=[Decide(late, sets=["desired_speed"])])
    sim.run(until=20.0)
    assert sim.agents.desired_speed.tolist() == [0.5]
    undeclared = Simulation(
        lane(), walker(), decisions=[Decide(lambda moment: {"radius": 0.1}, sets=["desired_speed"])]
    )
    with pytest.raises(ModelError, match="without having declared"):
        undeclared.run(until=1.0)
    wrong = Simulation(
        lane(), walker(), decisions=[Decide(lambda moment: {"desired_speed": -1.0}, sets=["desired_speed"])]
    )
    with pytest.raises(ModelError, match=r"desired_speed of agent 0 to -1\.0; it must be"):
        wrong.run(until=1.0)


def test_what_cannot_be_set_is_refused_before_the_run() -> None:
    for name in ("position", "velocity", "nothing", "dead"):
        with pytest.raises(ParameterError, match=f"sets '{name}'"):
            Simulation(lane(), walker(), decisions=[Decide(lambda moment: {}, sets=[name])])
    with pytest.raises(ParameterError, match="not a decision"):
        Simulation(lane(), walker(), decisions=["tired"])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="no group 'b'"):
        Simulation(lane(), walker(), decisions={"b": [Tired()]})


class _Turns(Planner):
    """Goes east, and sends agents back as soon as they are far."""

    declares = Declaration(sets=("goal", "desired_speed"))

    def direct(self, moment: Moment, out: Guidance) -> None:
        rows = moment.members
        out.directions[rows] = 0.0
        out.directions[rows, 0] = 1.0
        far = rows[moment.state.position[rows, 0] > 3.0]
        out.attributes["goal"][far] = -3
        out.attributes["desired_speed"][far] = 0.7


class _Meddles(_Turns):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        moment.state.desired_speed[moment.members] = 0.1


class _Strays(_Turns):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.attributes["desired_speed"][:] = 0.1


class _Impossible(_Turns):
    def direct(self, moment: Moment, out: Guidance) -> None:
        super().direct(moment, out)
        out.attributes["goal"][moment.members] = 99


def test_planners_may_set_what_they_declare() -> None:
    check_planner(_Turns)
    sim = Simulation(lane(), walker(), planning=_Turns())
    sim.run(until=6.0)
    assert sim.agents.desired_speed[0] == 0.7
    assert sim.agents.goal[0] == -3


@pytest.mark.parametrize(
    ("planner", "said"),
    [(_Meddles, "inputs are not changed"), (_Strays, "only the rows of its members"), (_Impossible, "are allowed")],
)
def test_planners_that_set_anything_else_break_their_promise(planner: type[Planner], said: str) -> None:
    with pytest.raises(ContractViolation, match=said):
        check_planner(planner, dims=(2,))


class _OnlyByRow(Decision):
    """Breaks its promise: the result depends on the row."""

    declares = Declaration(sets=("desired_speed",), periodic_space=True)

    def decide(self, moment: Moment, out: Decided) -> None:
        out.attributes["desired_speed"][moment.members] = 1.0 + 0.001 * moment.members


def test_a_decision_that_depends_on_rows_breaks_its_promise() -> None:
    with pytest.raises(ContractViolation, match="row number"):
        check_decision(_OnlyByRow, dims=(2,))


def test_decisions_are_resumed_to_the_same_bits(tmp_path: Path) -> None:
    def built(threads: int) -> Simulation:
        group = Group("a", count=20, region=shapely.box(0, 0, 20, 4), stages=[Go((60, 2), within=2.0, critical=True)])
        rules = [Tired(distance=20.0, recovery=9.0), Bolder(speed=1.2)]
        return Simulation(lane(), group, local=Dynamical(), decisions=rules, seed=3, threads=threads)

    whole, half, resumed = built(1), built(2), built(1)
    whole.run(until=12.0)
    half.run(until=6.0)
    half.save(tmp_path / "half.ckpt")
    resumed.restore(tmp_path / "half.ckpt")
    resumed.run(until=12.0)
    half.run(until=12.0)
    assert resumed.state_hash() == whole.state_hash() == half.state_hash()
