"""What a simulation gets without choosing: planner, habits and steering model of groups that name none.

In a 2D world with walls people must find their way and walk like people: `FlowField` and `Walk`, measured by the
standard tests of the field (docs/verification.md). In open space, in periodic space and in 3D there is nothing to find
a way around: `Direct` and `Seek`, in open 2D space with `KeepRight`, or people that meet would stand in each other's
way. A model that follows the ground gets a planner that publishes one, `PathPlans`. Everybody avoids hazards,
families stay together, agents that have a leader follow it, and agents that go straight to a target pursue it as far as
they see it (which is always, unless their view or knowledge is limited).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np

from tropel.agents.groups import Group, Source
from tropel.agents.tasks.task import Task
from tropel.contracts import Environment, Follows, Habit, Model, ModelDeclaration, Planner
from tropel.contracts.sharing import Sharing
from tropel.errors import ParameterError, suggest
from tropel.world import World

#: Cells of the default field [m], and how many there are at most; larger worlds get larger cells.
_CELL, _MOST_CELLS = 0.2, 4e6

Planning = Planner | Mapping[str, Planner | None] | None
Local = Model | Mapping[str, Model | None] | None
Habits = Sequence[Habit] | Mapping[str, Sequence[Habit]] | None


def with_defaults(
    world: World,
    groups: Sequence[str],
    declared: Sequence[Group | Source],
    planning: Planning,
    local: Local,
    habits: Habits,
) -> tuple[dict[str, Planner], dict[str, Model], dict[str, Sequence[Habit]]]:
    """The planner, model and habits of each group, with defaults where none are given. Groups share defaults of a kind.

    Names and types of given planners and models are checked later (`run/group_layers.py`).
    """
    models = _per_group(groups, local)
    unchosen = {name for name, model in models.items() if model is None}
    if unchosen:
        walking = default_model(world)
        models |= dict.fromkeys(unchosen, walking)
    planners = _per_group(groups, planning)
    shared: dict[bool, Planner] = {}
    for name, given in planners.items():
        on_ground = _follows(models.get(name)) is Follows.GROUND
        if given is None and on_ground not in shared:
            shared[on_ground] = default_planner(world, on_ground=on_ground)
        planners[name] = shared[on_ground] if given is None else given
    return planners, models, _habits(world, groups, declared, models, unchosen, habits, planners)


def _per_group(groups: Sequence[str], given: Any) -> dict[str, Any]:
    """What is given for each group; None where nothing is."""
    return dict(given) if isinstance(given, Mapping) else dict.fromkeys(groups, given)


def _follows(model: Any) -> Follows | None:
    declared = model.declares if isinstance(model, Model) else None
    return declared.follows if isinstance(declared, ModelDeclaration) else None


def _habits(
    world: World,
    groups: Sequence[str],
    declared: Sequence[Group | Source],
    models: Mapping[str, Model],
    unchosen: AbstractSet[str],
    given: Habits,
    planners: Mapping[str, Planner],
) -> dict[str, Sequence[Habit]]:
    """The habits of each group: those given, else the default ones. Crowds that follow the ground have none.

    `unchosen` are the groups with a default model.
    """
    if isinstance(given, Mapping):
        for name in given:
            if name not in groups:
                raise ParameterError(f"habits: there is no group '{name}'; {suggest(name, groups)}")
    families = any(
        "family" in item.parameters or (isinstance(item, Group) and item.families is not None) for item in declared
    )
    usual = default_habits(families=families)
    # `Walk` keeps right by itself.
    in_the_open = world.dim == 2 and not has_walls(world) and not world.is_periodic
    default = {False: usual, True: (_keep_right(), *usual) if in_the_open and unchosen else usual}
    led = {_group_of(item) for item in declared if item.follow is not None or "leader" in item.parameters}
    led |= {_group_of(item) for item in declared if item.leader is not None and item.families is None}
    squads = {item.name for item in declared if isinstance(item, Group) and item.squad is not None}
    found: dict[str, Sequence[Habit]] = {}
    following: Habit | None = None
    pursuing: Habit | None = None
    in_formation: tuple[Habit, ...] = ()
    for name in groups:
        model = models.get(name)
        own = given.get(name) if isinstance(given, Mapping) else given
        directed = _follows(model) is Follows.DIRECTIONS
        if own and not directed:
            raise ParameterError(
                f"group '{name}' has habits, which change planned directions, but {type(model).__name__} follows the "
                "ground; leave them out"
            )
        for habit in own or ():
            if not isinstance(habit, Habit):
                raise ParameterError(f"habits: {habit!r:.60} is not a habit; use objects such as KeepRight()")
        found[name] = (default[name in unchosen] if own is None else tuple(own)) if directed else ()
        if directed and own is None and name in squads:
            in_formation = in_formation or _keep_formation()
            found[name] = (*in_formation, *found[name])
        elif directed and own is None and name in led and not _has_leaders(model):
            following = following or _follow_leader()
            found[name] = (following, *found[name])
        if directed and own is None and _goes_by_sight(planners.get(name)):
            pursuing = pursuing or _pursue_in_sight()
            found[name] = (pursuing, *found[name])
    return found


def _group_of(item: Group | Source) -> str:
    return item.name if isinstance(item, Group) else item.group


def _has_leaders(model: Any) -> bool:
    """Whether a model has a rule of its own for agents that follow others."""
    return isinstance(model, Model) and "leader" in {column.name for column in model.all_columns}


def _goes_by_sight(planner: Any) -> bool:
    """Whether a planner has no plan of the world, so that agents must see their target."""
    from tropel.planning.direct import Direct

    return isinstance(planner, Direct)


def _pursue_in_sight() -> Habit:
    from tropel.local.habits.pursue_in_sight import PursueInSight

    return PursueInSight()


def _follow_leader() -> Habit:
    from tropel.local.habits.follow_leader import FollowLeader

    return FollowLeader()


def _keep_formation() -> tuple[Habit, ...]:
    from tropel.local.habits.keep_formation import KeepFormation
    from tropel.local.habits.wait_for_followers import WaitForFollowers

    # Those that attack wait for nobody, so orders come last.
    return WaitForFollowers(within=6.0, patience=10.0), KeepFormation()


def default_habits(*, families: bool) -> tuple[Habit, ...]:
    from tropel.local.habits.avoid_hazards import AvoidHazards
    from tropel.local.habits.stay_together import StayTogether

    together = (StayTogether(),) if families else ()
    # Last, so that nobody is drawn into a fire.
    return (*together, AvoidHazards())


def with_sharing(
    tasks: Mapping[str, Task] | None, sharing: Sharing | None
) -> tuple[Mapping[str, Task] | None, Sharing | None]:
    """Tasks, and how they are shared out; both None if nobody works."""
    if tasks is None and sharing is None:
        return None, None
    if tasks is not None and not isinstance(tasks, Mapping):
        raise ParameterError(
            f"tasks are given by name, such as {{'door': Task(place=…, work=30.0)}}, not {tasks!r:.60}"
        )
    for name, task in (tasks or {}).items():
        if not isinstance(name, str) or not isinstance(task, Task):
            raise ParameterError(f"tasks: {name!r:.40} is {task!r:.60}; give names, and a Task(…) for each")
    return tasks or {}, _optimal() if sharing is None else sharing


def _optimal() -> Sharing:
    from tropel.deciding.sharing.optimal import Optimal

    return Optimal()


def _keep_right() -> Habit:
    from tropel.local.habits.keep_right import KeepRight

    return KeepRight()


def has_walls(world: World) -> bool:
    """Whether there is anything to find a way around: walls in a 2D world that does not repeat."""
    return world.dim == 2 and len(world.segments) > 0 and not world.is_periodic


def default_environment() -> Environment:
    from tropel.environment.grid import Grid

    return Grid()


def default_model(world: World) -> Model:
    from tropel.local.seek import Seek
    from tropel.local.walk.model import Walk

    return Walk() if has_walls(world) else Seek()


def default_planner(world: World, *, on_ground: bool = False) -> Planner:
    from tropel.planning.direct import Direct
    from tropel.planning.flow.model import FlowField
    from tropel.planning.path_plans.model import PathPlans

    if on_ground:
        return PathPlans()
    if not has_walls(world):
        return Direct()
    area = float(np.prod(world.bounds[1] - world.bounds[0]))
    return FlowField(cell=max(_CELL, math.sqrt(area / _MOST_CELLS)))
