"""The promises of a planner, and `check_planner`, which checks them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group, Source
from tropel.agents.state import Steered
from tropel.contracts import Environment, Guidance, Model, ModelDeclaration, Moment, Planner, Rows
from tropel.foundation.arguments import checked_arguments
from tropel.simulation import Simulation
from tropel.testing.shared import (
    Subject,
    check_attributes,
    check_finite,
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
from tropel.testing.violation import Case, row_of
from tropel.world import World

_DT = 0.05
_STEPS = 5


@checked_arguments
def check_planner(
    planner: Any,
    *,
    world: World | None = None,
    agents: Iterable[Group | Source] | Group | None = None,
    dims: Sequence[int] = (2, 3),
    ids_matter: bool = False,
    seed: int = 0,
) -> None:
    """Raise `ContractViolation` unless a planner keeps the promises of `tropel.Planner`.

    Directions are finite and no longer than one. Only rows of members are written, and nothing else is changed but
    the attributes that it declares to set (`declares.sets`), through `out.attributes`, to values that are allowed. The
    same call gives the same bits on any number of threads, in parts or at once, and after a resume. The order of agents
    does not matter.

    `planner` is a planner, or a class or function that makes one. `dims` names the dimensions it supports; `world` and
    `agents` replace the built-in scenes. `ids_matter` is for planners that draw random numbers by id or break ties by
    id: renumbering may then change results.
    """
    make = maker(planner, Planner)
    for scene in scenes(world=world, agents=agents, dims=dims):
        _check_in(scene, make, ids_matter=ids_matter, seed=seed)
    for scene in scenes(world=world, agents=agents, dims=dims, crowd=True):
        subject = Subject(case=_case(scene, make), make=make, calling=_direct)
        check_threads(
            subject, next(_moments(subject.case, functools.partial(_simulation, scene, make, seed), steps=(0,)))
        )


def _check_in(scene: CheckScene, make: Maker, *, ids_matter: bool, seed: int) -> None:
    subject = Subject(case=_case(scene, make), make=make, calling=_direct)
    build = functools.partial(_simulation, scene, make, seed)
    for moment in _moments(subject.case, build, steps=(0, _STEPS)):
        at_step = subject.where(f"step {moment.step}")
        at_step.fresh_call(moment, most(moment))
        check_purity(at_step, moment)
        check_halves(at_step, moment)
        check_order(at_step, moment, ids_matter=ids_matter)
    start, no_rows = next(_moments(subject.case, build, steps=(0,))), np.empty(0, dtype=np.int64)
    subject.where("no members").fresh_call(start, no_rows)
    subject.where("no agents").fresh_call(start.taking(no_rows), no_rows)
    check_resumes(subject.case, build, lambda sim: sim.all_layers()[1])


def _case(scene: CheckScene, make: Maker) -> Case:
    return Case(layer=type(make()).__name__, method="direct", scene=scene.name)


def _simulation(scene: CheckScene, make: Maker, seed: int) -> Simulation:
    # The default model does not support periodic space.
    local = {"local": _AsDirected()} if scene.world.is_periodic else {}
    return scene.simulation(seed=seed, dt=_DT, planning=make(), **local)


class _AsDirected(Model):
    """Moves all agents in their planned directions."""

    declares = ModelDeclaration(periodic_space=True)

    def steer(self, moment: Moment, out: Steered) -> None:
        rows = moment.members
        out.velocity[rows] = moment.state.desired_speed[rows, None] * moment.directions[rows]


def _moments(case: Case, build: Callable[[], Simulation], *, steps: Sequence[int]) -> Iterator[Situation]:
    """The given steps of a simulation, which continues only when the next one is requested."""
    with case.runs():
        sim = build()
    for step in steps:
        with case.runs():
            while sim.step_number < step:
                sim.step()
        yield Situation.of(sim, make_environment=maker(sim.environment, Environment))


def _direct(case: Case, layer: Planner, moment: Situation, members: Rows) -> dict[str, NDArray[Any]]:
    """One call of `direct`."""
    out = Guidance(
        directions=np.zeros_like(moment.state.position),
        memory={name: moment.state.columns[name].copy() for name in layer.memory_names},
        attributes={name: moment.state.columns[name].copy() for name in layer.declares.sets},
    )

    def written() -> dict[str, NDArray[Any]]:
        return {"out.directions": out.directions} | named_arrays("memory", out.memory, "attributes", out.attributes)

    def call(rows: Rows) -> Any:
        return layer.direct(replace(moment.moment(rows), given=None, sensed=None), out)

    check_written(case, moment, members, written=written, call=call, main="out.directions")
    check_attributes(case, moment, members, out.attributes)
    directions = out.directions[members]
    check_finite(case, moment, members, "the direction", directions)
    length = np.linalg.norm(directions, axis=1)
    if length.max(initial=0.0) > 1.0 + 1e-9:
        worst = int(np.argmax(length))
        case.broken(
            "a direction is no longer than one",
            f"that of {row_of(moment.state, int(members[worst]))} has length {length[worst]:.12g}",
            "divide by its length; shorter means slower, zero means standing still",
        )
    others = {name: array[members] for name, array in written().items() if name != "out.directions"}
    return {"direction": directions, **others}
