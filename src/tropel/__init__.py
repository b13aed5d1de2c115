"""tropel: crowds, flocks and riders moving through complex, changing worlds.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "World": "tropel.world",
    "Obstacle": "tropel.world",
    "Hazard": "tropel.world",
    "Door": "tropel.world",
    "Target": "tropel.world",
    "Waypoints": "tropel.world",
    "Orbit": "tropel.world",
    "Layer": "tropel.world.user_layers",
    "Disc": "tropel.world.user_layers",
    "Openness": "tropel.world.user_layers",
    "Group": "tropel.agents.groups",
    "Source": "tropel.agents.sources",
    "Normal": "tropel.agents.distributions",
    "Uniform": "tropel.agents.distributions",
    "Planner": "tropel.contracts",
    "Environment": "tropel.contracts",
    "Model": "tropel.contracts",
    "Moment": "tropel.contracts",
    "Declaration": "tropel.contracts",
    "ModelDeclaration": "tropel.contracts",
    "EnvironmentDeclaration": "tropel.contracts",
    "Direct": "tropel.planning.direct",
    "FlowField": "tropel.planning.flow_field",
    "PathPlans": "tropel.planning.path_plans",
    "Harmonic": "tropel.planning.harmonic",
    "VectorField": "tropel.planning.vector_field",
    "ArrayField": "tropel.planning.painted_fields",
    "FunctionField": "tropel.planning.painted_fields",
    "Stroke": "tropel.planning.painted_fields",
    "Blend": "tropel.planning.field_blend",
    "Grid": "tropel.environment.grid",
    "Seek": "tropel.local.seek",
    "Dynamical": "tropel.local.dynamical",
    "Lattice": "tropel.local.lattice",
    "Flocking": "tropel.local.flocking",
    "SequentialFlock": "tropel.local.sequential_flock",
    "CollisionFreeSpeed": "tropel.local.collision_free_speed",
    "Simulation": "tropel.simulation",
    "Budget": "tropel.budget",
    "events": "tropel.events",
    "load_scenario": "tropel.scenario",
    "read_trajectory": "tropel.recording",
    "TropelError": "tropel.errors",
}

__all__ = ["__version__", *_WHERE]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'tropel' has no attribute '{name}'")
    module = importlib.import_module(_WHERE[name])
    value = module if name == "events" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
