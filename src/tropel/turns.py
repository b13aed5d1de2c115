"""Who plans, and who moves when: the turns of a step.

Where everybody has models of one kind a step has one turn, in which all act on the same frozen state. Where a crowd
that reads the ground shares the world with others it has two:

1. the readers of the ground move, onto cells that no other body reaches or is about to reach;
2. the others sense them where they are now, and move. Solid bodies press on them in vain, slide past or wait.

So bodies of both kinds are kept apart, and no conflict between them is left to settle. If both moved at once, those who
read the ground would have to leave free whatever the others could reach by any turn they might make, and two who want
the same place would both stay out of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tropel.errors import ParameterError
from tropel.layers import Planner, Steering


@dataclass(frozen=True, kw_only=True)
class Turn:
    """Models that act at once, each with the numbers of all groups that use it."""

    models: list[tuple[Steering, tuple[int, ...]]]
    senses: bool  #: whether they want to know who and what is near


def turns_of(models: list[Steering]) -> list[Turn]:
    """The turns of a step with these models of the groups; who senses comes last."""
    in_use = _with_groups(models)
    readers = [each for each in in_use if reads_ground(each[0])]
    if len(readers) > 1:
        # Neither would know of the moves that the other makes in the same turn.
        names = " and ".join(sorted({type(model).__name__ for model, _ in readers}))
        raise ParameterError(f"two {names} models share one world; give the same one to all groups")
    others = [each for each in in_use if not reads_ground(each[0])]
    return [Turn(models=part, senses=senses) for part, senses in ((readers, False), (others, True)) if part]


def ways_to_plan(planners: list[Planner], models: list[Steering]) -> list[tuple[Any, tuple[int, ...]]]:
    """What planners do for which groups: `direct` those who follow directions, `lay` layers for those who read them."""
    ways: list[tuple[Any, tuple[int, ...]]] = []
    laying = None
    for planner, groups in _with_groups(planners):
        readers = tuple(number for number in groups if reads_ground(models[number]))
        others = tuple(number for number in groups if not reads_ground(models[number]))
        if readers:
            if not hasattr(planner, "lay"):
                raise ParameterError(
                    f"{type(models[readers[0]]).__name__} reads layers of the ground, which {type(planner).__name__} "
                    f'does not lay; plan with PathPlans (in files: model = "path_plans")'
                )
            if laying is not None:
                raise ParameterError(
                    f"two planners ({type(laying).__name__} and {type(planner).__name__}) lay layers on one ground; "
                    f"give one and the same to all groups that read them"
                )
            laying = planner
            ways.append((planner.lay, readers))
        if others:
            ways.append((planner.direct, others))
    return ways


def in_order_of_preparing(environment: Any, planners: list[Planner], models: list[Steering]) -> list[Any]:
    """Every layer once. Planners that lay the ground come after those that only direct, and models after both."""
    reading = {id(planner) for planner, model in zip(planners, models, strict=True) if reads_ground(model)}
    directing = [planner for planner in planners if id(planner) not in reading]
    laying = [planner for planner in planners if id(planner) in reading]
    return list({id(layer): layer for layer in (environment, *directing, *laying, *models)}.values())


def reads_ground(model: object) -> bool:
    return bool(getattr(model, "follows_layers", False))


def _with_groups(per_group: list[Any]) -> list[tuple[Any, tuple[int, ...]]]:
    """Each distinct layer with the numbers of all groups that use it."""
    numbers: dict[int, list[int]] = {}
    for number, layer in enumerate(per_group):
        numbers.setdefault(id(layer), []).append(number)
    return [(per_group[groups[0]], tuple(groups)) for groups in numbers.values()]
