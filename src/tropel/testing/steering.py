"""The promises of a steering model, and `check_steering`, which checks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.groups import Group, Source
from tropel.agents.state import Steered
from tropel.contracts import Environment, Model, Moves, Planner, Rows
from tropel.foundation.arguments import checked_arguments
from tropel.run.phases import follows_ground
from tropel.simulation import STEP, Simulation
from tropel.testing.shared import (
    Subject,
    check_finite,
    check_halves,
    check_inputs,
    check_members,
    check_order,
    check_purity,
    check_resumes,
    check_returns_nothing,
    check_strangers,
    check_threads,
    foreign_marks,
    most,
    strangers,
)
from tropel.testing.situations import CheckScene, Maker, Situation, maker, scenes, with_columns
from tropel.testing.violation import Case, copied, row_of
from tropel.world import World

_STEPS = 5
#: An agent that is alone and has no goal may drift, but not faster than this multiple of its desired or current speed.
_EXPLOSION = 10.0


@checked_arguments
def check_steering(
    model: Any,
    *,
    planner: Any = None,
    environment: Any = None,
    world: World | None = None,
    agents: Iterable[Group | Source] | Group | None = None,
    dims: Sequence[int] = (2, 3),
    ids_matter: bool = False,
    dt: Annotated[float, STEP] = 0.05,
    seed: int = 0,
) -> None:
    """Raise `ContractViolation` unless a steering model keeps the promises of `tropel.Model`.

    Velocities (positions of a model that moves agents itself) are finite, even where agents stand on top of each other,
    and headings are unit vectors. Only rows of members are written, and nothing else is changed. The same call gives
    the same bits on any number of threads, in parts or at once, and after a resume. The order of agents does not
    matter.

    `model` is a steering model, or a class or function that makes one. `planner` and `environment` provide its inputs
    (by default straight lines to goals and a grid; a model that follows the ground needs a planner that publishes it).
    All members of such a model take part in one decision about who gets a cell, so it is not called for parts. `dims`
    names the dimensions it supports; `world` and `agents` replace the built-in scenes. `ids_matter` is for models that
    draw random numbers by id or break ties by id: renumbering may then change results.
    """
    make = maker(model, Model)
    given: dict[str, Maker] = {"local": make}
    if planner is not None:
        given["planning"] = maker(planner, Planner)
    if environment is not None:
        given["environment"] = maker(environment, Environment)

    def builder(scene: CheckScene) -> Callable[[], Simulation]:
        return lambda: scene.simulation(seed=seed, dt=dt, **{name: new() for name, new in given.items()})

    for scene in scenes(world=world, agents=agents, dims=dims):
        _check_in(scene, make, builder(scene), ids_matter=ids_matter)
    for scene in scenes(world=world, agents=agents, dims=dims, crowd=True):
        subject = Subject(case=_case(scene, make), make=make, calling=_steer)
        check_threads(subject, next(_moments(subject.case, builder(scene), steps=(0,))))


def _check_in(scene: CheckScene, make: Maker, build: Callable[[], Simulation], *, ids_matter: bool) -> None:
    subject = Subject(case=_case(scene, make), make=make, calling=_steer)
    for moment in _moments(subject.case, build, steps=(0, _STEPS)):
        at_step = subject.where(f"step {moment.step}")
        at_step.fresh_call(moment, most(moment))
        check_purity(at_step, moment)
        if not follows_ground(make()):
            check_halves(at_step, moment)
        check_order(at_step, moment, ids_matter=ids_matter)
    _check_corners(subject, next(_moments(subject.case, build, steps=(0,))))
    check_resumes(subject.case, build, lambda sim: sim.all_layers()[-1])


def _case(scene: CheckScene, make: Maker) -> Case:
    return Case(layer=type(make()).__name__, method="steer", scene=scene.name)


def _moments(case: Case, build: Callable[[], Simulation], *, steps: Sequence[int]) -> Iterator[Situation]:
    """The given steps of a simulation, which continues only when the next one is requested."""
    with case.runs():
        sim = build()
    for step in steps:
        with case.runs():
            while sim.step_number < step:
                sim.step()
        moment = Situation.of(sim, make_environment=maker(sim.environment, Environment))
        yield moment.planned(moment.prepared(maker(sim.layers.planners[0], Planner)))


def _check_corners(subject: Subject, moment: Situation) -> None:
    """No agents, several at the same point, and one alone without a direction."""
    no_rows = np.empty(0, dtype=np.int64)
    subject.where("no members").fresh_call(moment, no_rows)
    subject.where("no agents").fresh_call(moment.taking(no_rows), no_rows)
    everybody = np.arange(len(moment.state), dtype=np.int64)
    if len(everybody) == 0:
        return
    in_fives = moment.at(moment.state.position[everybody // 5 * 5])
    subject.where("groups of five at one point each").fresh_call(in_fives, everybody)
    alone = subject.where("one agent alone without a direction")
    for speed in (0.0, 1.0):
        one = moment.taking(everybody[:1])
        columns = one.state.columns | {"velocity": speed * one.state.heading}
        one = replace(one, state=with_columns(one.state, columns), directions=np.zeros((1, one.state.dim)), near=None)
        one = one.sensed()
        _check_calm(alone.case, one, alone.fresh_call(one, everybody[:1]))


def _check_calm(case: Case, moment: Situation, result: dict[str, NDArray[Any]]) -> None:
    if "velocity" not in result:
        return
    usual = max(float(moment.state.desired_speed[0]), float(np.linalg.norm(moment.state.velocity[0])), 1.0)
    speed = float(np.linalg.norm(result["velocity"][0]))
    if speed > _EXPLOSION * usual:
        case.broken(
            "an agent that is alone and has no direction stays calm",
            f"it moves at {speed:.3g} m/s, {speed / usual:.0f} times its usual speed",
            "look for a force that grows without bound near zero distance or zero speed",
        )


def _steer(case: Case, layer: Model, moment: Situation, members: Rows) -> dict[str, NDArray[Any]]:
    """One call of `steer`."""
    state = moment.state
    out = Steered.like(state, layer.memory_names)
    out.begin(state)
    buffers = _buffers(out)
    others = strangers(members, len(state))
    marks = {name: foreign_marks(array) for name, array in buffers.items()}
    for name, array in buffers.items():
        array[others] = marks[name][others]
    given = copied(moment.inputs())
    rows = members.copy()
    with case.runs():
        returned = layer.steer(moment.moment(rows), out)
    check_returns_nothing(case, returned, "out.velocity")
    check_inputs(case, moment, given)
    check_members(case, members, rows)
    _check_not_replaced(case, buffers, _buffers(out))
    check_strangers(case, moment, others, marks=marks, now=buffers)
    moved = "velocity" if layer.declares.moves is Moves.FREELY else "position"
    wanted = {moved, "heading"} | {name for name in buffers if name.startswith("memory")}
    result = {name: array[members] for name, array in buffers.items() if name in wanted}
    check_finite(case, moment, members, f"the {moved}", result[moved])
    check_finite(case, moment, members, "the heading", result["heading"])
    _check_heading(case, moment, members, result["heading"])
    return result


def _buffers(out: Steered) -> dict[str, NDArray[Any]]:
    memory = {f"memory['{name}']": array for name, array in out.memory.items()}
    return {"velocity": out.velocity, "heading": out.heading, "position": out.position, **memory}


def _check_not_replaced(case: Case, before: dict[str, NDArray[Any]], after: dict[str, NDArray[Any]]) -> None:
    for name in before:
        if after.get(name) is not before[name]:
            case.broken(
                "results are written into the arrays of out",
                f"out.{name} is a different array than before",
                f"write out.{name}[members] = …, do not replace the array",
            )


def _check_heading(case: Case, moment: Situation, members: Rows, heading: NDArray[np.float64]) -> None:
    length = np.linalg.norm(heading, axis=1)
    odd = np.flatnonzero(np.abs(length - 1.0) > 1e-6)
    if len(odd):
        case.broken(
            "a heading is a unit vector",
            f"that of {row_of(moment.state, int(members[odd[0]]))} has length {length[odd[0]]:.9g}",
            "divide by the length, and leave the heading unchanged where the speed is zero",
        )
