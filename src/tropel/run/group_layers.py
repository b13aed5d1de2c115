"""The layers of a simulation: which planner and which steering model each group has, and what they need.

The simulation calls the layers. This file answers which group has which, what they declare (`contracts`) and whether
they fit together.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.bonds import check_has_bonds
from tropel.agents.groups import Personal, parameter_named
from tropel.agents.leaders import HANDOVER, LEADER
from tropel.agents.leaving import LEAVING, arrived, walked_out
from tropel.agents.personality import check_has_traits
from tropel.agents.placing import Placing
from tropel.agents.seeing import VIEW_ANGLE
from tropel.agents.stages.stage import Stage, as_stages
from tropel.agents.state import AgentState, Column
from tropel.contact.bodies import Bodies
from tropel.contact.wanted import HowTheyMove
from tropel.contracts import (
    Decision,
    Declaration,
    Environment,
    EnvironmentDeclaration,
    Guidance,
    Habit,
    Layer,
    Model,
    ModelDeclaration,
    Moment,
    Moves,
    Planner,
)
from tropel.contracts.declarations import check_declared
from tropel.contracts.layers import ValueMaps
from tropel.contracts.named_states import NamedStates
from tropel.contracts.offers import offered
from tropel.contracts.sharing import Sharing
from tropel.errors import ParameterError, suggest
from tropel.foundation.quantities import is_number
from tropel.knowing.model import SharedKnowledge
from tropel.knowing.parameters import Knowledge, knowledge_of
from tropel.run.deciding import GOAL_COLUMNS, decisions_of
from tropel.run.phases import Phase, follows_ground, in_order_of_preparing, phases_of, plannings
from tropel.world import World
from tropel.world.ground import Ground
from tropel.world.places import PlaceLike, as_place

if TYPE_CHECKING:
    from tropel.events import AddAgents


class GroupLayers:
    """An environment, and a planner and a steering model per group, in the order of the groups."""

    def __init__(
        self,
        groups: list[str],
        *,
        planning: Planner | Mapping[str, Planner],
        environment: Environment,
        local: Model | Mapping[str, Model],
        habits: Mapping[str, Sequence[Habit]],
        decisions: Sequence[Decision] | Mapping[str, Sequence[Decision]] = (),
        sharing: Sharing | None = None,
        knowledge: Knowledge | Mapping[str, Knowledge] | None = None,
        squads: Collection[str] = (),
        world: World,
    ) -> None:
        self.groups = groups
        self._numbers = {name: number for number, name in enumerate(groups)}
        self.environment: Environment = _checked(environment, Environment, "environment")
        self.planners: list[Planner] = _per_group(groups, planning, Planner, "planning")
        self.models: list[Model] = _per_group(groups, local, Model, "local")
        self.habits: list[Sequence[Habit]] = [habits.get(name, ()) for name in groups] or [()]
        self.decisions: list[tuple[Decision, tuple[int, ...]]] = decisions_of(groups, decisions)
        self.sharing: Sharing | None = None if sharing is None else _checked(sharing, Sharing, "sharing")
        self.knowledge = self._shared_knowledge(knowledge, world)
        kinds = (
            ("decisions", [decision for decision, _ in self.decisions], Declaration),
            ("sharing", [] if self.sharing is None else [self.sharing], Declaration),
            ("planning", self.planners, Declaration),
            ("habits", [habit for own in self.habits for habit in own], Declaration),
            ("environment", [environment], EnvironmentDeclaration),
            ("local", self.models, ModelDeclaration),
        )
        for what, used, declaration in kinds:
            for layer in used:
                check_declared(layer, declaration, what)
                _check_space(layer, world, what)
        _check_tracked(self.environment, groups, self.models)
        self.environment.lists_are_read = any(model.declares.reads_lists for model in self.models)
        self.planner_memory, self.model_memory = _memory(self.planners), _memory(self.models)
        self.planner_sets = sorted({name for planner in self.planners for name in planner.declares.sets})
        for name in set(self.planner_memory) & set(self.model_memory):
            raise ParameterError(f"a planner and a model both write the column '{name}'; give one of them another name")
        self.plannings = plannings(self.planners, self.models)
        self.phases = phases_of(self.models, self.habits)
        self.somebody_senses = any(phase.senses for phase in self.phases)
        self.somebody_is_directed = any(not follows_ground(model) for model in self.models)
        self.somebody_moves_itself = any(model.declares.moves is not Moves.FREELY for model in self.models)
        # Agents that move exactly never share a place with others: their model makes sure of that.
        self.somebody_may_collide = any(model.declares.moves is not Moves.EXACTLY for model in self.models)
        self.bodies_may_overlap = all(model.declares.bodies_may_overlap for model in self.models)
        self.told = [each for phase in self.phases for each in phase.models if each[0].is_told()]
        self._walk_on = np.array([model.declares.walk_on for model in self.models])
        #: From how far it is enough to see a place to have arrived there, for each group [m].
        self.seen_within = np.array([_seen_within(model) for model in self.models])
        self.on_cells = np.array([follows_ground(model) for model in self.models])  #: which groups walk on cells
        self.squads = frozenset(squads)  #: the groups that are squads

    def all(self) -> list[Layer]:
        """Every layer once, in a fixed order."""
        habits = [habit for own in self.habits for habit in own]
        decisions = [decision for decision, _ in self.decisions]
        sharing = () if self.sharing is None else (self.sharing,)
        known = () if self.knowledge is None else (self.knowledge,)
        layers = (self.environment, *self.planners, *habits, *self.models, *sharing, *decisions, *known)
        return list({id(layer): layer for layer in layers}.values())

    @property
    def named_states(self) -> dict[str, tuple[str, ...]]:
        """Columns of whole numbers that have names, and the names from 0 on."""
        return {each.column: each.names for each in offered(self.all(), NamedStates)}

    def _shared_knowledge(self, told: Any, world: World) -> SharedKnowledge | None:
        """What groups know, if that is limited for any of them."""
        limited = knowledge_of(self.groups, told)
        for name in limited:
            model = self.models[self._numbers[name]]
            if follows_ground(model):
                raise ParameterError(
                    f"group '{name}' has limited knowledge, but {type(model).__name__} follows the ground, which is "
                    f"the same for everybody; leave knowledge out, or use a model that follows directions, such as Walk"
                )
        return SharedKnowledge(self.groups, limited, world) if limited else None

    def prepare(self, moment: Moment, guidance: Guidance) -> None:
        """Prepare all layers; planners get the agents that they plan for, and models can read the published ground."""
        if self.knowledge is not None:
            self.knowledge.prepare(moment)
            moment = replace(moment, beliefs=self.knowledge.beliefs(moment.state, moment.world))
        first, models = in_order_of_preparing(self.environment, self.planners, self.models)
        for layer in first:
            layer.prepare(self._planned_by(layer, moment))
        guidance.ground = self.ground
        for habit in {id(habit): habit for own in self.habits for habit in own}.values():
            habit.prepare(moment)
        for decision, _ in self.decisions:
            decision.prepare(moment)
        for model in models:
            model.prepare(replace(moment, given=guidance))

    def _planned_by(self, layer: Layer, moment: Moment) -> Moment:
        """The moment as a planner gets it; as it is for any other layer."""
        groups = tuple(number for number, planner in enumerate(self.planners[: len(self.groups)]) if planner is layer)
        if len(groups) == len(self.groups) or not isinstance(layer, Planner):
            return moment
        own = np.isin(moment.state.group[moment.members], groups)
        return replace(moment, members=moment.members[own], groups=groups)

    @property
    def ground(self) -> Ground | None:
        """The ground that a planner has published, for models that follow it."""
        return next((planner.ground for planner in self._publishing_first() if planner.ground is not None), None)

    def _publishing_first(self) -> list[Planner]:
        """The planners; those with a ground that is followed come first."""
        order = sorted(range(len(self.planners)), key=lambda number: not follows_ground(self.models[number]))
        return [self.planners[number] for number in order]

    # What they declare ------------------------------------------------------------------------------------------

    def columns(self) -> list[Column]:
        """Parameters and memory, which only its layer sets, and what the engine needs for agents that walk out."""
        declared = [
            replace(column, kept=True) if column.name in layer.memory_names else column
            for layer in self.all()
            for column in layer.all_columns
        ]
        led = [HANDOVER] if any(column.name == LEADER.name for column in declared) else []
        return [*declared, VIEW_ANGLE, *led, *(LEAVING if self.somebody_walks_on else ())]

    @property
    def somebody_walks_on(self) -> bool:
        """Whether agents of any group walk on in an exit before they are gone."""
        return bool(self._walk_on.any())

    def leaving(
        self, state: AgentState, world: World, time: float
    ) -> tuple[NDArray[np.int32] | None, NDArray[np.float64] | float]:
        """For each agent the goal by which it is gone now, or STAYS, and when it reached it; None if nobody is gone."""
        goals = arrived(state, world)
        if not self.somebody_walks_on:
            return goals, time
        return walked_out(state, world, goals, self._walk_on[state.group], time)

    def watch_collisions(self, wanted: bool | None) -> bool:
        """Whether to watch collisions, if that is wanted or not, or None if it is up to the layers."""
        answering = [type(layer).__name__ for layer in self.all() if layer.declares.answers_collisions]
        if answering and wanted is False:
            raise ParameterError(
                f"{answering[0]} answers collisions, which are not watched here; leave watch_collisions out"
            )
        return (bool(answering) or not self.bodies_may_overlap) if wanted is None else wanted

    def check_sets(self, state: AgentState) -> None:
        """Raise when a planner or decision sets an attribute that agents do not have, or that is not for it to set."""
        for layer in (*self.planners, *(decision for decision, _ in self.decisions)):
            known = [name for name, column in state.declared.items() if column.settable]
            for name in layer.declares.sets:
                if name not in known and name not in GOAL_COLUMNS:
                    raise ParameterError(
                        f"{type(layer).__name__} sets '{name}', which agents here do not have or which cannot be set; "
                        f"{suggest(name, [*known, *GOAL_COLUMNS])} (traits such as courage belong to models that "
                        f"use them, such as Dynamical)"
                    )

    def on_ground(self) -> list[bool]:
        """Which groups follow the ground: for those, plans lead to goals only, and not to leaders."""
        return [follows_ground(model) for model in self.models]

    def placing(self) -> list[Placing]:
        """Where newcomers of each group may stand."""
        return [model.declares.placing for model in self.models]

    def moves(self, phase: Phase, state: AgentState) -> HowTheyMove:
        """How each agent moves in a phase; one value if all move alike."""
        return phase.moves if isinstance(phase.moves, Moves) else phase.moves[state.group]

    def bodies(self, phase: Phase, moment: Moment, key: np.uint64) -> Bodies | None:
        """The solid bodies that never move into each other in this phase; None if no agent can be pushed."""
        if not phase.pushed:
            return None
        solid = np.array([model.declares.solid_bodies for model in self.models])[moment.state.group]
        return Bodies(moment.cells, solid, key, moment.step, reduce=moment.reduce)

    def check_newcomers(self, told: Personal | AddAgents, *, group: str) -> None:
        """Raise when a group's planner and steering model do not use the personality or bonds it is given."""
        if told.follow is not None and told.follow not in self._numbers:
            raise ParameterError(
                f"group '{group}' follows '{told.follow}', which is not a group; {suggest(told.follow, self.groups)}"
            )
        number = self._numbers.get(group)
        if number is None:
            return
        model = self.models[number]
        deciding = [decision for decision, own in self.decisions if number in own]
        sharing = [] if self.sharing is None else [self.sharing]
        used = (self.planners[number], *self.habits[number], *deciding, *sharing, model)
        declared = {column.name: column for layer in used for column in layer.all_columns}
        if model.declares.senses:
            declared[VIEW_ANGLE.name] = VIEW_ANGLE
        if self.knowledge is not None and group in self.knowledge.told:
            declared |= {column.name: column for column in self.knowledge.all_columns}
        for name, value in told.parameters.items():
            column = parameter_named(name, declared, f"group '{group}'")
            if is_number(value):
                column.check(value, f"group '{group}'")
        for goal in (told.goal, *told.then):
            self.check_goal(goal, [group])
        self.check_stages(as_stages(told.stages or (), f"group '{group}'"), [group])
        columns = set(declared)
        check_has_traits(told.personality, group=group, model=type(model).__name__, columns=columns)
        bonds = {name: getattr(told, name, None) for name in ("squad", "families", "follow", "leader")}
        if told.families is not None:
            del bonds["leader"]  # one in each family, which whatever keeps families together knows
        columns = {c.name for c in model.all_columns} | {name for h in self.habits[number] for name in h.binds}
        check_has_bonds(bonds, group=group, model=type(model).__name__, columns=columns)

    def check_goal(self, goal: PlaceLike, groups: Collection[str]) -> None:
        """Raise if one of some groups would be sent to a point that its planner makes no plan for."""
        place = as_place(goal)
        if isinstance(place, str) or place.point is None:
            return
        for number, name in enumerate(self.groups):
            if name in groups and follows_ground(self.models[number]):
                raise ParameterError(
                    f"group '{name}' walks on cells by plans, which lead to named places only, so it cannot go to the "
                    f"point {place}; add a target there and send it to that"
                )

    def check_stages(self, stages: Sequence[Stage], groups: Collection[str]) -> None:
        """Raise if one of some groups would be sent by a stage to a point that its planner makes no plan for."""
        for stage in stages:
            for place in stage.places():
                self.check_goal(place, groups)
            for name in groups if stage.for_squads else ():
                if name in self._numbers and name not in self.squads:
                    raise ParameterError(
                        f"group '{name}' is not a squad, so it cannot '{stage}'; declare it with  squad = …"
                    )
                if name in stage.others():
                    raise ParameterError(f"group '{name}' cannot '{stage}', because it is that group; name another one")

    # What can be changed in them --------------------------------------------------------------------------------

    def value_maps(self) -> ValueMaps:
        """The value maps that a planner publishes."""
        for planner in self._publishing_first():
            if planner.value_maps is not None:
                return planner.value_maps
        raise ParameterError(
            'no planner here publishes value maps; plan with PathPlans (in files: model = "path_plans")'
        )

    @property
    def behaviours(self) -> dict[str, bool]:
        """The behaviours that can be switched off in any layer, and whether each is on in at least one of them."""
        found: dict[str, bool] = {}
        for layer in self.all():
            for name, on in layer.behaviours.items():
                found[name] = found.get(name, False) or on
        return found

    def check_behaviour(self, name: str) -> None:
        """Raise when no layer has such a behaviour."""
        known = self.behaviours
        if name not in known:
            raise ParameterError(f"no layer here has the behaviour '{name}'; {suggest(name, known)}")

    def set_behaviour(self, name: str, on: bool) -> None:
        """Switch a behaviour in every layer that has it."""
        self.check_behaviour(name)
        for layer in self.all():
            if name in layer.behaviours:
                layer.set_behaviour(name, on)


def _seen_within(model: Model) -> float:
    declares = model.declares
    if declares.bodies_may_overlap:
        return math.inf
    # On cells: a place that is no free cell itself is reached on the cells around it.
    return 4.5 * declares.placing.body if declares.placing.body is not None else 0.0


def _memory(layers: Sequence[Layer]) -> list[str]:
    """Names of the columns that layers write."""
    return sorted({name for layer in layers for name in layer.memory_names})


def _check_space(layer: Layer, world: World, what: str) -> None:
    """Raise when a layer would be wrong in this world: periodic space, or solid bodies at its seam."""
    if world.is_periodic and not layer.declares.periodic_space:
        raise ParameterError(
            f"{what}: {type(layer).__name__} does not support periodic space, where others and goals are met beyond "
            f"the seam; use another model, or a world that is not periodic (a layer of your own that uses nearest "
            f"images declares periodic_space=True)"
        )
    if world.is_periodic and isinstance(layer, Model) and layer.declares.solid_bodies:
        raise ParameterError(
            f"{what}: solid bodies are not kept apart across the seam of periodic space; give {type(layer).__name__} "
            f"solid_bodies=False, or use a world that is not periodic"
        )


def _check_tracked(environment: Environment, groups: list[str], models: Sequence[Model]) -> None:
    """Raise when a model needs neighbours of agents that have none, or when there is no such group."""
    tracked = environment.declares.tracks
    if tracked is None:
        return
    for name in tracked:
        if name not in groups:
            raise ParameterError(f"environment: track names '{name}', which is not a group; {suggest(name, groups)}")
    for name, model in zip(groups, models, strict=False):
        if name not in tracked and model.declares.senses:
            raise ParameterError(
                f"environment: the agents of group '{name}' have no neighbours, because track leaves the group out, "
                f"and {type(model).__name__} needs them; add '{name}' to track"
            )


def _per_group(groups: list[str], given: Any, kind: type[Layer], what: str) -> list[Any]:
    """One layer per group, in the order of the groups."""
    if isinstance(given, Mapping):
        known = set(groups)
        for name in given:
            if name not in known:
                raise ParameterError(f"{what}: there is no group '{name}'; {suggest(name, groups)}")
        missing = [name for name in groups if name not in given]
        if missing:
            raise ParameterError(f"{what}: nothing is given for the group '{missing[0]}'")
        per_group = [given[name] for name in groups]
    else:
        per_group = [given] * max(len(groups), 1)
    return [_checked(layer, kind, what) for layer in per_group]


def _checked(layer: Any, kind: type[Layer], what: str) -> Any:
    if isinstance(layer, kind):
        return layer
    if isinstance(layer, type) and issubclass(layer, kind):
        raise ParameterError(
            f"{what} needs {_article(kind)}, but {layer.__name__} is the class; make one: {layer.__name__}()"
        )
    raise ParameterError(
        f"{what} needs {_article(kind)}: an object of a class that extends tropel.{kind.__name__} and has the "
        f"method {kind.method}; got {layer!r:.80}"
    )


def _article(kind: type[Layer]) -> str:
    return f"{'an' if kind.__name__[0] in 'AEIO' else 'a'} {kind.__name__}"
