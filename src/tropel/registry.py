"""What files may name: tropel's own planners, environments, steering models, events and distributions.

This table is the only way from a name to a class. It serves scenario files, blends, recorded events, the JSON schema,
`tropel verify`, `tropel warmup` and their tests. Nothing is imported before it is needed.

A file must not run code, so a class that is not in the table is imported only if its package has been allowed from
outside the file (`allow_imports`, `--allow-imports`). It is called only after it has turned out to be a layer.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tropel.errors import ParameterError, TropelError, suggest

_ADDRESS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


@dataclass(frozen=True)
class Entry:
    """One class that files know by a short name."""

    name: str
    where: str  #: package.module:Class
    parameters: str = ""  #: the dataclass of its parameters, if it has one; empty: the constructor's parameters
    presets: tuple[str, ...] = ()  #: sets of parameters that it knows by name, as `preset = "…"`
    warm_up: str = ""  #: the part of `tropel warmup` that compiles its kernels; empty: it has none

    def load(self) -> type[Any]:
        module, _, name = self.where.partition(":")
        loaded: type[Any] = getattr(importlib.import_module(module), name)
        return loaded

    def load_parameters(self) -> type[Any] | None:
        """The dataclass of its parameters, if it has one."""
        module, _, name = self.parameters.partition(":")
        return getattr(importlib.import_module(module), name) if name else None


class Kind(Mapping[str, Entry]):
    """The entries of one kind of thing, by name. A user's own classes extend the class at the address `extends`."""

    def __init__(self, what: str, extends: str, entries: Iterable[Entry]) -> None:
        self.what = what
        self.extends = extends
        self._entries = {entry.name: entry for entry in entries}

    def __getitem__(self, name: str) -> Entry:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def name_of(self, made: type) -> str | None:
        """The short name of a class; None for a user's own class."""
        where = f"{made.__module__}:{made.__qualname__}"
        return next((entry.name for entry in self.values() if entry.where == where), None)

    def entry(self, name: object) -> Entry | None:
        """The entry for a short name or an address; None for a user's own class."""
        return next((entry for entry in self.values() if name in (entry.name, entry.where)), None)

    def find(self, name: object, *, allow_imports: Iterable[str] = ()) -> type[Any]:
        """The class with a short name, or at an address (package.module:Class) in an allowed package."""
        if (entry := self.entry(name)) is not None:
            return entry.load()
        if not isinstance(name, str) or ":" not in name:
            raise ParameterError(f"there is no {self.what} '{name}'; {suggest(str(name), self)}")
        return self._own_class(name, tuple(allow_imports))

    def _own_class(self, address: str, allowed: tuple[str, ...]) -> type[Any]:
        if not _ADDRESS.fullmatch(address):
            raise ParameterError(
                f"'{address}' is not the address of a class; write package.module:Class, or one of {', '.join(self)}"
            )
        module, _, name = address.partition(":")
        if not any(module == package or module.startswith(f"{package}.") for package in allowed):
            package = module.partition(".")[0]
            raise ParameterError(
                f"'{address}' would run the Python code of '{package}'; if you trust it, allow it with "
                f"--allow-imports {package} (in Python: allow_imports=['{package}'])"
            )
        try:
            found = getattr(importlib.import_module(module), name)
        except Exception as error:
            plain = isinstance(error, ImportError | AttributeError)
            reason = str(error) if plain else f"{type(error).__name__}: {error}"
            raise ParameterError(f"cannot import '{address}': {reason}; is it installed or on PYTHONPATH?") from error
        base = Entry("", self.extends).load()
        if not (isinstance(found, type) and issubclass(found, base)):
            raise ParameterError(
                f"'{address}' is not a valid {self.what}: it is not a class that extends "
                f"{self.extends.replace(':', '.')}"
            )
        return found

    def make(self, told: Mapping[str, Any], *, allow_imports: Iterable[str] = ()) -> Any:
        """The layer that a table describes: its name as `model`, and its parameters."""
        if "model" not in told:
            raise ParameterError(f"a table that describes a {self.what} needs its name, as  model = …")
        kind = self.find(told["model"], allow_imports=allow_imports)
        named = {key: value for key, value in told.items() if key != "model"}
        try:
            return kind(**named)
        except TropelError:
            raise
        except Exception as error:
            said = re.sub(r"^[\w.<>]+\(\) ", "", str(error)) if isinstance(error, TypeError) else repr(error)
            raise ParameterError(f"{self.what} '{told['model']}': {said}") from error


PLANNERS = Kind(
    "planner",
    "tropel.contracts:Planner",
    [
        Entry("direct", "tropel.planning.direct:Direct", warm_up="straight to the goal"),
        Entry("flow_field", "tropel.planning.flow.model:FlowField", warm_up="flow fields"),
        Entry("path_plans", "tropel.planning.path_plans.model:PathPlans", warm_up="a crowd on cells"),
        Entry("harmonic", "tropel.planning.harmonic.model:Harmonic", warm_up="harmonic fields"),
        Entry(
            "roadmap",
            "tropel.planning.roadmap.model:Roadmap",
            parameters="tropel.planning.roadmap.parameters:RoadmapParameters",
            warm_up="roadmaps",
        ),
        Entry(
            "adaptive_roadmap",
            "tropel.planning.roadmap.adaptive:AdaptiveRoadmap",
            parameters="tropel.planning.roadmap.parameters:AdaptiveRoadmapParameters",
            warm_up="roadmaps",
        ),
        Entry(
            "rooms",
            "tropel.planning.rooms.model:Rooms",
            parameters="tropel.planning.rooms.model:RoomsParameters",
            warm_up="roadmaps",
        ),
        Entry("vector_field", "tropel.planning.vector_field:VectorField", warm_up="painted fields"),
        Entry("blend", "tropel.planning.vector_field:Blend", warm_up="painted fields"),
        Entry("path", "tropel.planning.path:FollowPath", warm_up="riders"),
        Entry("herd", "tropel.planning.herd:Herd", warm_up="riders"),
    ],
)

ENVIRONMENTS = Kind(
    "environment",
    "tropel.contracts:Environment",
    [
        Entry("grid", "tropel.environment.grid:Grid", warm_up="a crowd in a room"),
        Entry("kinetic", "tropel.environment.kinetic.model:Kinetic", warm_up="kinetic neighbourhoods"),
        Entry("auto", "tropel.environment.auto:Auto", warm_up="kinetic neighbourhoods"),
    ],
)

MODELS = Kind(
    "steering model",
    "tropel.contracts:Model",
    [
        Entry(
            "walk",
            "tropel.local.walk.model:Walk",
            parameters="tropel.local.walk.model:WalkParameters",
            warm_up="a crowd in a room",
        ),
        Entry(
            "seek",
            "tropel.local.seek:Seek",
            parameters="tropel.local.seek:SeekParameters",
            warm_up="straight to the goal",
        ),
        Entry(
            "dynamical",
            "tropel.local.dynamical.model:Dynamical",
            parameters="tropel.local.dynamical.parameters:DynamicalParameters",
            presets=("pedestrian",),
            warm_up="competing behaviours",
        ),
        Entry(
            "lattice",
            "tropel.local.lattice.model:Lattice",
            parameters="tropel.local.lattice.model:LatticeParameters",
            warm_up="a crowd on cells",
        ),
        Entry(
            "flocking",
            "tropel.local.flocking.model:Flocking",
            parameters="tropel.local.flocking.parameters:FlockingParameters",
            warm_up="flocks",
        ),
        Entry(
            "sequential_flock",
            "tropel.local.sequential_flock.model:SequentialFlock",
            parameters="tropel.local.sequential_flock.model:SequentialFlockParameters",
            warm_up="flocks one after the other",
        ),
        Entry(
            "collision_free_speed",
            "tropel.local.collision_free_speed:CollisionFreeSpeed",
            parameters="tropel.local.collision_free_speed:CollisionFreeSpeedParameters",
            warm_up="a collision-free crowd",
        ),
        Entry(
            "orca",
            "tropel.local.orca.model:ORCA",
            parameters="tropel.local.orca.model:ORCAParameters",
            warm_up="reciprocal avoidance",
        ),
        Entry(
            "social_force",
            "tropel.local.social_force:SocialForce",
            parameters="tropel.local.social_force:SocialForceParameters",
            warm_up="social forces",
        ),
        Entry(
            "mobility_map",
            "tropel.local.mobility_map.model:Riders",
            parameters="tropel.local.mobility_map.parameters:RidersParameters",
            warm_up="riders",
        ),
    ],
)

HABITS = Kind(
    "habit",
    "tropel.contracts:Habit",
    [
        Entry("avoid_hazards", "tropel.local.habits.avoid_hazards:AvoidHazards", warm_up="habits"),
        Entry("keep_right", "tropel.local.habits.keep_right:KeepRight", warm_up="habits"),
        Entry("pursue_in_sight", "tropel.local.habits.pursue_in_sight:PursueInSight", warm_up="habits"),
        Entry("recoil", "tropel.local.habits.recoil:Recoil", warm_up="habits"),
        Entry("stay_together", "tropel.local.habits.stay_together:StayTogether", warm_up="habits"),
        Entry("follow_leader", "tropel.local.habits.follow_leader:FollowLeader", warm_up="habits"),
        Entry("keep_formation", "tropel.local.habits.keep_formation:KeepFormation", warm_up="squads"),
        Entry("wait_for_followers", "tropel.local.habits.wait_for_followers:WaitForFollowers", warm_up="habits"),
    ],
)

DECISIONS = Kind(
    "decision",
    "tropel.contracts:Decision",
    [
        Entry("tired", "tropel.deciding.tired:Tired", parameters="tropel.deciding.tired:TiredParameters"),
        Entry("bolder", "tropel.deciding.bolder:Bolder", parameters="tropel.deciding.bolder:BolderParameters"),
        Entry("jolted", "tropel.deciding.jolted:Jolted", parameters="tropel.deciding.jolted:JoltedParameters"),
        Entry(
            "emotions",
            "tropel.deciding.emotions.model:Emotions",
            parameters="tropel.deciding.emotions.parameters:EmotionsParameters",
            warm_up="emotions",
        ),
    ],
)

SHARINGS = Kind(
    "sharing of tasks",
    "tropel.contracts.sharing:Sharing",
    [
        Entry("optimal", "tropel.deciding.sharing.optimal:Optimal"),
        Entry(
            "auction",
            "tropel.deciding.sharing.auction:Auction",
            parameters="tropel.deciding.sharing.auction:AuctionParameters",
        ),
        Entry("greedy", "tropel.deciding.sharing.greedy:Greedy"),
        Entry("random", "tropel.deciding.sharing.at_random:AtRandom"),
    ],
)

STAGES = Kind(
    "stage",
    "tropel.agents.stages.stage:Stage",
    [
        Entry("go", "tropel.agents.stages.verbs:Go"),
        Entry("wait", "tropel.agents.stages.verbs:Wait"),
        Entry("wait_for", "tropel.agents.stages.verbs:WaitFor"),
        Entry("work", "tropel.agents.stages.work:Work"),
        Entry("until", "tropel.agents.stages.verbs:Until"),
        Entry("hold", "tropel.agents.squads.verbs:Hold"),
        Entry("search", "tropel.agents.squads.verbs:Search"),
        Entry("escort", "tropel.agents.squads.verbs:Escort"),
        Entry("cover", "tropel.agents.squads.verbs:Cover"),
        Entry("retreat_to", "tropel.agents.squads.verbs:RetreatTo"),
        Entry("resume", "tropel.agents.squads.verbs:Resume"),
    ],
)

CONDITIONS = Kind(
    "condition",
    "tropel.agents.stages.stage:Condition",
    [
        Entry("come", "tropel.agents.stages.conditions:Come"),
        Entry("signal", "tropel.agents.stages.conditions:Signal"),
        Entry("event", "tropel.agents.stages.conditions:Happened"),
        Entry("open", "tropel.agents.stages.conditions:Open"),
        Entry("after", "tropel.agents.stages.conditions:After"),
        Entry("attribute", "tropel.agents.stages.conditions:Attribute"),
        Entry("done", "tropel.agents.stages.work:Done"),
        Entry("any", "tropel.agents.stages.conditions:AnyOf"),
        Entry("all", "tropel.agents.stages.conditions:AllOf"),
    ],
)

DISTRIBUTIONS = Kind(
    "distribution",
    "tropel.agents.distributions:Distribution",
    [
        Entry("normal", "tropel.agents.distributions:Normal"),
        Entry("uniform", "tropel.agents.distributions:Uniform"),
    ],
)

EVENTS = Kind(
    "event",
    "tropel.events.base:Event",
    [
        Entry("open_door", "tropel.events.kinds:OpenDoor"),
        Entry("close_door", "tropel.events.kinds:CloseDoor"),
        Entry("open_exit", "tropel.events.kinds:OpenExit"),
        Entry("close_exit", "tropel.events.kinds:CloseExit"),
        Entry("add_obstacle", "tropel.events.kinds:AddObstacle"),
        Entry("move_obstacle", "tropel.events.kinds:MoveObstacle"),
        Entry("remove_obstacle", "tropel.events.kinds:RemoveObstacle"),
        Entry("add_hazard", "tropel.events.ground:AddHazard"),
        Entry("move_hazard", "tropel.events.ground:MoveHazard"),
        Entry("grow_hazard", "tropel.events.ground:GrowHazard"),
        Entry("remove_hazard", "tropel.events.ground:RemoveHazard"),
        Entry("add_target", "tropel.events.kinds:AddTarget"),
        Entry("move_target", "tropel.events.kinds:MoveTarget"),
        Entry("remove_target", "tropel.events.kinds:RemoveTarget"),
        Entry("set_goal", "tropel.events.kinds:SetGoal"),
        Entry("set_stages", "tropel.events.stages:SetStages"),
        Entry("signal", "tropel.events.stages:Signal"),
        Entry("add_task", "tropel.events.tasks:AddTask"),
        Entry("remove_task", "tropel.events.tasks:RemoveTask"),
        Entry("announce", "tropel.events.knowledge:Announce"),
        Entry("order", "tropel.events.stages:Order"),
        Entry("set_leader", "tropel.events.kinds:SetLeader"),
        Entry("set_parameter", "tropel.events.kinds:SetParameter"),
        Entry("drift", "tropel.events.gradual:Drift"),
        Entry("surge", "tropel.events.gradual:Surge"),
        Entry("tire", "tropel.events.gradual:Tire"),
        Entry("alarm", "tropel.events.gradual:Alarm"),
        Entry("set_behaviour", "tropel.events.kinds:SetBehaviour"),
        Entry("add_agents", "tropel.events.kinds:AddAgents"),
        Entry("remove_agents", "tropel.events.kinds:RemoveAgents"),
        Entry("add_value_map", "tropel.events.ground:AddValueMap"),
        Entry("remove_value_map", "tropel.events.ground:RemoveValueMap"),
    ],
)
