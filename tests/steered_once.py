"""Steering models in tests: one call for agents described by arrays, the same agents turned, a model from a file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel import Model, World
from tropel.agents.state import AgentState, Steered
from tropel.contracts import Moment
from tropel.environment.grid import Grid
from tropel.scenario.loading import parse_scenario

Floats = NDArray[np.float64]

PLAIN = World(bounds=(-60, -60, 60, 60))


def steered(
    model: Any, position: Any, directions: Any, *, world: World = PLAIN, dt: float = 0.1, **fields: Any
) -> Steered:
    """One look at a crowd: what the model writes."""
    position = np.asarray(position, dtype=np.float64)
    state = AgentState(2, model.all_columns)
    state.add(len(position), {"position": position, **fields})
    moment = Moment.of(state, world, environment=Grid(), directions=np.asarray(directions, dtype=np.float64), dt=dt)
    model.prepare(moment)
    out = Steered.like(state, model.memory_names)
    model.steer(moment, out)
    return out


def turning(angle: float, *, mirror: bool) -> Floats:
    """The matrix that turns vectors, after mirroring them."""
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    return turn @ np.diag([1.0, -1.0]) if mirror else turn


def moved(people: dict[str, Floats], turn: Floats, shift: tuple[float, float]) -> dict[str, Floats]:
    """The same people elsewhere."""
    vectors = {name: people[name] @ turn.T for name in ("position", "directions", "velocity")}
    return people | vectors | {"position": vectors["position"] + shift}


def model_in_a_file(folder: Path, **local: Any) -> Model:
    """The model that a scenario file builds from its table `local`."""
    text = f"""
    name = "few"
    until = 1.0
    local = {{ {", ".join(f"{name} = {value!r}" for name, value in local.items())} }}
    [world]
    walkable = {{ box = [0.0, 0.0, 8.0, 6.0] }}
    [[groups]]
    name = "people"
    count = 3
    goal = "none"
    """
    model = parse_scenario(text, source="few", folder=folder).build(threads=1).all_layers()[-1]
    assert isinstance(model, Model)
    return model
