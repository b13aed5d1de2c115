"""The phases of a step: which models move when, and what planners do for them.

If all models have the same phase, a step has one phase, in which all of them act on the same frozen state. If a crowd
that follows the ground shares the world with others, a step has two:

1. the agents of the lower phase move, onto places that no other body occupies or is about to reach;
2. the others sense them at their new places, and move. Solid bodies cannot push them, so they slide past or wait.

So bodies of both kinds are kept apart, and no conflict between them is left to settle. If both moved at the same time,
agents that move exactly would have to leave free whatever the others could reach by any turn they might make, and two
agents that want the same place would both stay out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tropel.contact.wanted import HowTheyMove
from tropel.contracts import Environment, Follows, Guidance, Habit, Layer, Model, Moment, Moves, Planner
from tropel.errors import ParameterError

Groups = tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """Models that act at the same time, each with the numbers of all groups that use it."""

    models: list[tuple[Model, Groups]]
    habits: list[tuple[Habit, Groups]]  #: what their agents do with planned directions, in this order
    senses: bool  #: whether any of them needs to know what is near
    moves: HowTheyMove  #: how the agents of each group move now; one value if all move alike
    pushed: bool  #: whether any of them has solid bodies that others may push


@dataclass(frozen=True, kw_only=True)
class Planning:
    """The planner method to call, and for which groups."""

    plan: Callable[[Moment, Guidance], None]
    groups: Groups


def phases_of(models: Sequence[Model], habits: Sequence[Sequence[Habit]]) -> list[Phase]:
    """The phases of a step, in order, given the models and the habits of the groups."""
    in_use = with_groups(models)
    numbers = sorted({model.declares.phase for model in models})
    return [_phase(number, in_use, models, habits) for number in numbers]


def _phase(
    number: int, in_use: list[tuple[Model, Groups]], of_groups: Sequence[Model], habits: Sequence[Sequence[Habit]]
) -> Phase:
    models = [each for each in in_use if each[0].declares.phase == number]
    if len(models) > 1 and any(model.declares.alone_in_phase for model, _ in models):
        names = " and ".join(sorted({type(model).__name__ for model, _ in models}))
        raise ParameterError(f"two {names} models share one world; give the same one to all groups")
    codes = [model.declares.moves if model.declares.phase == number else Moves.NOT_NOW for model in of_groups]
    return Phase(
        models=models,
        habits=_habits(
            [habits[group] if of_groups[group].declares.phase == number else () for group in range(len(habits))]
        ),
        senses=any(model.declares.senses for model, _ in models),
        moves=codes[0] if len(set(codes)) == 1 else np.array(codes, dtype=np.uint8),
        pushed=any(can_be_pushed(model) for model, _ in models),
    )


def _habits(per_group: Sequence[Sequence[Habit]]) -> list[tuple[Habit, Groups]]:
    """Each habit with the groups that have it, in the order in which the groups list them."""
    found = {id(habit): habit for habits in per_group for habit in habits}
    return [
        (habit, tuple(number for number, habits in enumerate(per_group) if habit in habits)) for habit in found.values()
    ]


def can_be_pushed(model: Model) -> bool:
    """Whether its agents are bodies that others can push; an agent that moves exactly stands like a rock."""
    return model.declares.solid_bodies and model.declares.moves is not Moves.EXACTLY


def plannings(planners: Sequence[Planner], models: Sequence[Model]) -> list[Planning]:
    """What planners do: `direct` groups that follow directions, and `publish` the ground for the others."""
    found: list[Planning] = []
    publishing: Planner | None = None
    for planner, groups in with_groups(planners):
        on_ground = tuple(number for number in groups if follows_ground(models[number]))
        others = tuple(number for number in groups if not follows_ground(models[number]))
        if on_ground:
            if not planner.publishes_ground():
                raise ParameterError(
                    f"{type(models[on_ground[0]]).__name__} follows the ground, but "
                    f"{type(planner).__name__} publishes none; plan with a planner that does, such as PathPlans "
                    f'(in files: model = "path_plans")'
                )
            if publishing is not None:
                raise ParameterError(
                    f"two planners ({type(publishing).__name__} and {type(planner).__name__}) publish one ground; "
                    f"give the same planner to all groups that follow it"
                )
            publishing = planner
            found.append(Planning(plan=planner.publish, groups=on_ground))
        if others:
            found.append(Planning(plan=planner.direct, groups=others))
    return found


def in_order_of_preparing(
    environment: Environment, planners: Sequence[Planner], models: Sequence[Model]
) -> tuple[list[Layer], list[Layer]]:
    """Every layer once: those prepared before the ground is published, and the models, which read it.

    Planners that publish the ground come after those that only direct.
    """
    publishing = {id(planner) for planner, model in zip(planners, models, strict=True) if follows_ground(model)}
    directing = [planner for planner in planners if id(planner) not in publishing]
    publishers = [planner for planner in planners if id(planner) in publishing]
    return _once((environment, *directing, *publishers)), _once(models)


def follows_ground(model: Model) -> bool:
    return model.declares.follows is Follows.GROUND


def _once(layers: Sequence[Layer]) -> list[Layer]:
    return list({id(layer): layer for layer in layers}.values())


def with_groups(per_group: Sequence[Any]) -> list[tuple[Any, Groups]]:
    """Each distinct layer with the numbers of all groups that use it."""
    numbers: dict[int, list[int]] = {}
    for number, layer in enumerate(per_group):
        numbers.setdefault(id(layer), []).append(number)
    return [(per_group[groups[0]], tuple(groups)) for groups in numbers.values()]
