"""The promises of a decision, and `check_decision`, which checks them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from tropel.agents.groups import Group, Source
from tropel.contracts import Decided, Decision, Environment, Model, Rows
from tropel.foundation.arguments import checked_arguments
from tropel.simulation import Simulation
from tropel.testing.shared import (
    Subject,
    check_attributes,
    check_halves,
    check_order,
    check_purity,
    check_resumes,
    check_threads,
    check_written,
    most,
    named_arrays,
)
from tropel.testing.situations import CheckScene, Maker, Situation, maker, scenes
from tropel.testing.violation import Case
from tropel.world import World

_DT = 0.05
_STEPS = 5


@checked_arguments
def check_decision(
    decision: Any,
    *,
    local: Any = None,
    world: World | None = None,
    agents: Iterable[Group | Source] | Group | None = None,
    dims: Sequence[int] = (2, 3),
    ids_matter: bool = False,
    seed: int = 0,
) -> None:
    """Raise `ContractViolation` unless a decision keeps the promises of `tropel.Decision`.

    It writes what it declares to set, of its members alone, to values that are allowed, and changes nothing else. The
    same call gives the same bits on any number of threads, in parts or at once, and after a resume. The order of agents
    does not matter.

    `decision` is a decision, or a class or function that makes one. `local` is the steering model of the agents, for
    attributes that only some models have. The other arguments are those of `check_planner`.
    """
    make = maker(decision, Decision)
    for scene in scenes(world=world, agents=agents, dims=dims):
        _check_in(scene, make, local, ids_matter=ids_matter, seed=seed)
    for scene in scenes(world=world, agents=agents, dims=dims, crowd=True):
        subject = Subject(case=_case(scene, make), make=make, calling=_decide)
        with subject.case.runs():
            sim = _simulation(scene, make, local, seed)
        check_threads(subject, _situation(sim))


def _check_in(scene: CheckScene, make: Maker, local: Model | None, *, ids_matter: bool, seed: int) -> None:
    subject = Subject(case=_case(scene, make), make=make, calling=_decide)
    build = functools.partial(_simulation, scene, make, local, seed)
    with subject.case.runs():
        sim = build()
    for step in (0, _STEPS):
        with subject.case.runs():
            while sim.step_number < step:
                sim.step()
        at_step, moment = subject.where(f"step {step}"), _situation(sim)
        at_step.fresh_call(moment, most(moment))
        check_purity(at_step, moment)
        check_halves(at_step, moment)
        check_order(at_step, moment, ids_matter=ids_matter)
    check_resumes(subject.case, build, lambda sim: sim.all_layers()[-1])


def _case(scene: CheckScene, make: Maker) -> Case:
    return Case(layer=type(make()).__name__, method="decide", scene=scene.name)


def _simulation(scene: CheckScene, make: Maker, local: Model | None, seed: int) -> Simulation:
    return scene.simulation(seed=seed, dt=_DT, decisions=[make()], local=local)


def _situation(sim: Simulation) -> Situation:
    return Situation.of(sim, make_environment=maker(sim.environment, Environment))


def _decide(case: Case, layer: Decision, moment: Situation, members: Rows) -> dict[str, NDArray[Any]]:
    """One call of `decide`."""
    columns = moment.state.columns
    out = Decided(
        attributes={name: columns[name].copy() for name in layer.declares.sets},
        memory={name: columns[name].copy() for name in layer.memory_names},
    )

    def written() -> dict[str, NDArray[Any]]:
        return named_arrays("memory", out.memory, "attributes", out.attributes)

    def call(rows: Rows) -> Any:
        return layer.decide(replace(moment.moment(rows), given=None, sensed=None), out)

    check_written(case, moment, members, written=written, call=call, main="out.attributes")
    check_attributes(case, moment, members, out.attributes)
    return {name: array[members] for name, array in written().items()}
