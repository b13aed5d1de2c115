"""The steering model that a case is run with, and simulations of a case's scene with that model.

A scene names neither planner nor model unless its case requires it, so a case shows what a user gets. Here the model of
a scene is replaced by the one under test, and single values of it by those of a variant (a door width, a head count).
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tropel.contracts import Follows, Model
from tropel.defaults import default_habits
from tropel.registry import MODELS, PLANNERS
from tropel.scenario import Scenario, load_builtin
from tropel.scenario.schema import ScenarioSpec
from tropel.simulation import Simulation


@dataclass(frozen=True)
class Candidate:
    """A steering model to judge: its name in files, "dynamical:pedestrian" with a preset, or "package.module:Class".

    None is what scenes get.
    """

    name: str | None = None

    def __post_init__(self) -> None:
        if self.name is not None:
            self._made()

    @property
    def model(self) -> str:
        """The name of the model, also if it is the default."""
        return default_model() if self.name is None else self.name

    @property
    def label(self) -> str:
        """How tables and files call it."""
        table = _table(self.model)
        return "-".join(table.values()) if "preset" in table else self.model.rpartition(":")[2]

    def build(self, scene: str, *, seed: int, changes: Mapping[str, Any] | None = None) -> Simulation:
        """A simulation of a built-in scene with this model.

        `changes` gives other values by their keys in the file, such as {"groups.0.count": 50}; None removes a key.
        """
        return self.scenario(scene, changes).build(seed=seed, threads=1)

    def scenario(self, scene: str, changes: Mapping[str, Any] | None = None) -> Scenario:
        """The scene with this model; if the scene names no planner, the one that the model gets without choosing."""
        given = load_builtin(scene)
        told = tomllib.loads(given.text)
        for key, value in (changes or {}).items():
            _change(told, key, value)
        if self.name is None:
            told.pop("local", None)
        else:
            told["local"] = _table(self.name)
        return Scenario(
            spec=ScenarioSpec.model_validate(told),
            source=given.source,
            text=given.text,
            folder=given.folder,
            allow_imports=() if self.name is None else (self.name.partition(":")[0],),
        )

    def why_not(self, scene: str) -> str:
        """Why this model cannot run a scene; empty if it can."""
        told = tomllib.loads(load_builtin(scene).text)
        planner = told.get("planning", {}).get("model")
        if self._follows_ground and planner is not None and not PLANNERS.find(planner).publishes_ground():
            return f"it follows a ground, which the planner of the scene ({planner}) does not publish"
        habits = () if self._follows_ground else default_habits(families=True)
        known = {column.name for layer in (self._made(), *habits) for column in layer.declares.columns}
        missing = sorted({name for group in told["groups"] for name in group.get("parameters", {})} - known)
        return f"its agents have no parameter {' or '.join(missing)}" if missing else ""

    @property
    def _follows_ground(self) -> bool:
        return self._made().declares.follows is Follows.GROUND

    def _made(self) -> Model:
        # The caller names the class, not a file, so its package is allowed.
        made: Model = MODELS.make(_table(self.model), allow_imports=[self.model.partition(":")[0]])
        return made


@functools.cache
def default_model() -> str:
    """The model that a scene with walls gets if it names none."""
    (model,) = load_builtin("rimea_1").build(threads=1).layers.models
    return MODELS.name_of(type(model)) or type(model).__name__


def _table(name: str) -> dict[str, str]:
    """The table of a scenario file for the model with this name."""
    model, _, preset = name.partition(":")
    return {"model": model, "preset": preset} if preset and model in MODELS else {"model": name}


def pedestrian_models() -> list[str]:
    """The models that scenario files know by a short name and whose bodies have room of their own: no flocks.

    Presets of a model follow it.
    """
    return [
        name
        for model, entry in MODELS.items()
        if not entry.load()().declares.bodies_may_overlap
        for name in (model, *(f"{model}:{preset}" for preset in entry.presets))
    ]


def _change(told: Any, key: str, value: Any) -> None:
    *inner, last = key.split(".")
    here = told
    for part in inner:
        here = here[int(part)] if isinstance(here, list) else here[part]
    if value is None:
        del here[last]
    elif isinstance(here, list):
        here[int(last)] = value
    else:
        here[last] = value
