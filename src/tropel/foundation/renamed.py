"""Names that have changed. Old names work for one more version, with a warning that gives the new name."""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

#: Names at the top of the package.
PUBLIC = {"Layer": "ValueMap"}
EVENTS = {"AddLayer": "AddValueMap", "RemoveLayer": "RemoveValueMap"}
BEHAVIOURS = {"user layers": "value maps"}

#: Modules with names that scripts may have imported from there.
MODULES = {
    "tropel.agents.presets": "tropel.agents.personality",
    "tropel.agents.sources": "tropel.agents.groups",
    "tropel.behaviours": "tropel.contracts.layers",
    "tropel.budget": "tropel.run.budget",
    "tropel.local.dynamical_parameters": "tropel.local.dynamical.parameters",
    "tropel.local.flocking_parameters": "tropel.local.flocking.parameters",
    "tropel.movement": "tropel.contracts.declarations",
    "tropel.observers": "tropel.run.observers",
    "tropel.offers": "tropel.contracts.offers",
    "tropel.planning.field_blend": "tropel.planning.vector_field",
    "tropel.planning.field_planner": "tropel.planning.fields.planner",
    "tropel.planning.flow_field": "tropel.planning.flow",
    "tropel.planning.painted_fields": "tropel.planning.painted",
    "tropel.quantities": "tropel.foundation.quantities",
    "tropel.running": "tropel.run.loop",
    "tropel.world.terrain": "tropel.world.ground",
    "tropel.world.user_layers": "tropel.world.value_maps",
}


def warn(old: str, new: str, *, stacklevel: int = 2) -> None:
    """Warn, once per place in the code, that a name has changed."""
    warnings.warn(f"{old} is now {new}; the old name goes away in the next version", FutureWarning, stacklevel + 1)


def current(name: str, renamed: Mapping[str, str], what: str) -> str:
    """The current name of something."""
    if name not in renamed:
        return name
    warn(f"{what} '{name}'", f"'{renamed[name]}'", stacklevel=3)
    return renamed[name]


def current_behaviour(name: str) -> str:
    return current(name, BEHAVIOURS, "the behaviour")


def renamed_method(old: str, new: str) -> Callable[..., Any]:
    """A method under its old name."""

    def method(self: Any, *args: Any, **named: Any) -> Any:
        warn(f"{type(self).__name__}.{old}", new)
        return getattr(self, new)(*args, **named)

    method.__name__ = old
    method.__doc__ = f"The old name of `{new}`."
    return method


class _MovedModules(MetaPathFinder, Loader):
    """Finds modules under their old names. It comes after all other finders, so it costs nothing otherwise."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname in MODULES else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        new = MODULES[spec.name]
        warn(f"the module {spec.name}", new)
        module = importlib.import_module(new)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has replaced the module's own spec by one with the old name.
        module.__spec__ = self._spec


def find_moved_modules() -> None:
    """Make modules importable under their old names."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(_MovedModules())
