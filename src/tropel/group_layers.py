"""The layers of a simulation: which planner and which steering model each group has, and what they ask for.

The simulation calls them; who has which, what they declare (`layers.py` lists that) and whether they go together is
answered here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel import layers
from tropel.agents.bonds import check_has_bonds
from tropel.agents.groups import Personal, parameter_named
from tropel.agents.presets import check_has_traits
from tropel.agents.state import AgentState, Column
from tropel.contact.bodies import Bodies
from tropel.contact.moves import HowTheyMove
from tropel.errors import ParameterError, suggest
from tropel.layers import Environment, Planner, Steering
from tropel.movement import Moves
from tropel.planning.laid_layers import LaidLayers
from tropel.quantities import is_number
from tropel.turns import Turn, in_order_of_preparing, reads_ground, turns_of, ways_to_plan
from tropel.world import World

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
        local: Steering | Mapping[str, Steering],
        world: World,
    ) -> None:
        if isinstance(environment, type) or not isinstance(environment, Environment):
            raise ParameterError(f"environment needs a method sense(state, world); got {environment!r}")
        self.groups = groups
        self._numbers = {name: number for number, name in enumerate(groups)}
        self.environment = environment
        self.planners: list[Planner] = _per_group(groups, planning, Planner, "planning", "direct")
        self.models: list[Steering] = _per_group(groups, local, Steering, "local", "steer")
        for what, used in (("planning", self.planners), ("environment", [environment]), ("local", self.models)):
            for layer in used:
                layers.check_space(layer, world, what)
        self.ways_to_plan = ways_to_plan(self.planners, self.models)
        self.turns = turns_of(self.models)
        self._everybody = np.ones(0, dtype=np.bool_)
        self.somebody_senses = not all(reads_ground(model) for model in self.models)
        self.somebody_moves_itself = any(_declared_moves(model) != Moves.FREELY for model in self.models)
        self.bodies_may_overlap = all(getattr(model, "bodies_may_overlap", False) for model in self.models)

    def all(self) -> list[Any]:
        """Every layer once, in a fixed order."""
        return list({id(layer): layer for layer in (self.environment, *self.planners, *self.models)}.values())

    def prepare(self, state: AgentState, world: World, seed: int) -> None:
        for layer in in_order_of_preparing(self.environment, self.planners, self.models):
            layers.prepare(layer, state, world, seed)

    # What they declare ------------------------------------------------------------------------------------------

    def columns(self) -> list[Column]:
        """Parameters and memory; nobody but its layer sets what is memory."""
        return [
            replace(column, kept=True) if column.name in layers.memory_of(layer) else column
            for layer in self.all()
            for column in layers.columns_of(layer)
        ]

    def memory(self) -> list[str]:
        return sorted({name for layer in self.all() for name in layers.memory_of(layer)})

    def cells(self) -> list[float | None]:
        """The size of the cells that each group's agents stand on [m]; None for those that stand anywhere."""
        return [getattr(model, "cell", None) for model in self.models]

    def rows_with(self, quality: str, state: AgentState) -> NDArray[np.bool_] | None:
        """Which agents have a model that declares a quality, such as `solid_bodies`; None when no model does."""
        by_group = [bool(getattr(model, quality, False)) for model in self.models]
        if all(by_group):
            if len(self._everybody) < len(state):
                self._everybody = np.ones(len(state), dtype=np.bool_)
            return self._everybody[: len(state)]
        return np.array(by_group)[state.group] if any(by_group) else None

    def solid_bodies(self, near: Any, state: AgentState, key: np.uint64, step: int) -> Bodies | None:
        """Those who never push into each other in this step; None when no model has such bodies."""
        solid = self.rows_with("solid_bodies", state)
        if solid is None:
            return None
        moved_before = self.rows_with("follows_layers", state)
        if moved_before is None:
            return Bodies(near, solid, key, step)
        return Bodies(near, solid | moved_before, key, step)

    def moves_of(self, turn: Turn, state: AgentState) -> HowTheyMove:
        """How agents move in a turn: a code for each row, or one value when all groups are alike."""
        by_group = [Moves.NOT_NOW] * len(self.models)
        for model, numbers in turn.models:
            for number in numbers:
                by_group[number] = _declared_moves(model)
        return by_group[0] if len(set(by_group)) == 1 else np.array(by_group, dtype=np.uint8)[state.group]

    def check_newcomers(self, told: Personal | AddAgents, *, group: str) -> None:
        """Raise when a group's planner and steering model have no use for the personality or bonds it is given."""
        if told.follow is not None and told.follow not in self._numbers:
            raise ParameterError(
                f"group '{group}' follows '{told.follow}', which is no group; {suggest(told.follow, self.groups)}"
            )
        number = self._numbers.get(group)
        if number is None:
            return
        model = self.models[number]
        declared = {c.name: c for layer in (self.planners[number], model) for c in layers.columns_of(layer)}
        for name, value in told.parameters.items():
            column = parameter_named(name, declared, f"group '{group}'")
            if is_number(value):
                column.check(value, f"group '{group}'")
        columns = set(declared)
        check_has_traits(told.personality, group=group, model=type(model).__name__, columns=columns)
        check_has_bonds(told.families, told.follow, group=group, model=type(model).__name__, columns=columns)

    # What can be changed in them --------------------------------------------------------------------------------

    def on_the_ground(self) -> LaidLayers:
        """The layers of the user's own that the planner lays."""
        for planner in self.planners:
            if isinstance(laid := getattr(planner, "layers", None), LaidLayers):
                return laid
        raise ParameterError('nobody lays layers here; plan with PathPlans (in files: model = "path_plans")')

    @property
    def behaviours(self) -> dict[str, bool]:
        """What can be switched off in any layer, and whether it is on in one of them."""
        found: dict[str, bool] = {}
        for layer in self.all():
            for name, on in getattr(layer, "behaviours", {}).items():
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
            if name in getattr(layer, "behaviours", {}):
                layer.set_behaviour(name, on)


def _declared_moves(model: object) -> Moves:
    if getattr(model, "cell", None):
        return Moves.EXACTLY
    return Moves.ITSELF if getattr(model, "moves_itself", False) else Moves.FREELY


def _per_group(groups: list[str], given: Any, protocol: Any, what: str, method: str) -> list[Any]:
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
    for layer in per_group:
        if isinstance(layer, type) or not isinstance(layer, protocol):
            raise ParameterError(f"{what} needs an object with a method {method}(…); got {layer!r}")
    return per_group
