"""tropel: crowds, flocks and riders moving through complex, changing worlds.

The public names are loaded when they are first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import Any

from tropel.foundation.renamed import PUBLIC, find_moved_modules, warn

__version__ = "0.1.0"

_WHERE = {
    "World": "tropel.world",
    "Obstacle": "tropel.world",
    "Hazard": "tropel.world",
    "Door": "tropel.world",
    "Target": "tropel.world",
    "Place": "tropel.world",
    "Waypoints": "tropel.world",
    "Orbit": "tropel.world",
    "ValueMap": "tropel.world.value_maps",
    "Disc": "tropel.world.value_maps",
    "Openness": "tropel.world.value_maps",
    "Group": "tropel.agents.groups",
    "Source": "tropel.agents.groups",
    "Tired": "tropel.deciding.tired",
    "Bolder": "tropel.deciding.bolder",
    "Jolted": "tropel.deciding.jolted",
    "Emotions": "tropel.deciding.emotions.model",
    "Decide": "tropel.deciding.own",
    "Task": "tropel.agents.tasks.task",
    "sharing": "tropel.deciding.sharing",
    "Knowledge": "tropel.knowing.parameters",
    "Go": "tropel.agents.stages.verbs",
    "Wait": "tropel.agents.stages.verbs",
    "WaitFor": "tropel.agents.stages.verbs",
    "Until": "tropel.agents.stages.verbs",
    "Work": "tropel.agents.stages.work",
    "Squad": "tropel.agents.squads.squad",
    "Hold": "tropel.agents.squads.verbs",
    "Search": "tropel.agents.squads.verbs",
    "Escort": "tropel.agents.squads.verbs",
    "Cover": "tropel.agents.squads.verbs",
    "RetreatTo": "tropel.agents.squads.verbs",
    "Resume": "tropel.agents.squads.verbs",
    "Stage": "tropel.agents.stages.stage",
    "Condition": "tropel.agents.stages.stage",
    "conditions": "tropel.agents.stages.conditions",
    "Normal": "tropel.agents.distributions",
    "Uniform": "tropel.agents.distributions",
    "Planner": "tropel.contracts",
    "Environment": "tropel.contracts",
    "Model": "tropel.contracts",
    "Habit": "tropel.contracts",
    "Decision": "tropel.contracts",
    "Moment": "tropel.contracts",
    "Declaration": "tropel.contracts",
    "ModelDeclaration": "tropel.contracts",
    "EnvironmentDeclaration": "tropel.contracts",
    "Direct": "tropel.planning.direct",
    "FlowField": "tropel.planning.flow.model",
    "PathPlans": "tropel.planning.path_plans.model",
    "Harmonic": "tropel.planning.harmonic",
    "Roadmap": "tropel.planning.roadmap.model",
    "AdaptiveRoadmap": "tropel.planning.roadmap.adaptive",
    "Rooms": "tropel.planning.rooms.model",
    "VectorField": "tropel.planning.vector_field",
    "ArrayField": "tropel.planning.painted",
    "FunctionField": "tropel.planning.painted",
    "Stroke": "tropel.planning.painted",
    "Blend": "tropel.planning.vector_field",
    "FollowPath": "tropel.planning.path",
    "Herd": "tropel.planning.herd",
    "Auto": "tropel.environment.auto",
    "Grid": "tropel.environment.grid",
    "Kinetic": "tropel.environment.kinetic.model",
    "Seek": "tropel.local.seek",
    "AvoidHazards": "tropel.local.habits.avoid_hazards",
    "KeepRight": "tropel.local.habits.keep_right",
    "PursueInSight": "tropel.local.habits.pursue_in_sight",
    "Recoil": "tropel.local.habits.recoil",
    "StayTogether": "tropel.local.habits.stay_together",
    "FollowLeader": "tropel.local.habits.follow_leader",
    "KeepFormation": "tropel.local.habits.keep_formation",
    "WaitForFollowers": "tropel.local.habits.wait_for_followers",
    "Walk": "tropel.local.walk.model",
    "Dynamical": "tropel.local.dynamical.model",
    "Lattice": "tropel.local.lattice.model",
    "Flocking": "tropel.local.flocking.model",
    "SequentialFlock": "tropel.local.sequential_flock.model",
    "CollisionFreeSpeed": "tropel.local.collision_free_speed",
    "ORCA": "tropel.local.orca.model",
    "SocialForce": "tropel.local.social_force",
    "Riders": "tropel.local.mobility_map.model",
    "Simulation": "tropel.simulation",
    "Budget": "tropel.run.budget",
    "events": "tropel.events",
    "load_scenario": "tropel.scenario",
    "read_trajectory": "tropel.recording",
    "TropelError": "tropel.errors",
}

__all__ = ["__version__", *_WHERE]


find_moved_modules()


def __getattr__(name: str) -> Any:
    if name in PUBLIC:
        warn(f"tropel.{name}", f"tropel.{PUBLIC[name]}")
        name = PUBLIC[name]
    if name not in _WHERE:
        raise AttributeError(f"module 'tropel' has no attribute '{name}'")
    module = importlib.import_module(_WHERE[name])
    value = module if name in ("conditions", "events", "sharing") else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
