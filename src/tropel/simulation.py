"""The simulation: a world full of agents that moves forward one step at a time.

`Simulation.step` is the architecture: events → planning → environment → local → integrate → collisions → exits →
record. This is the only module that knows all layers. Where a crowd on cells shares the world with others, the part
from environment to integrate is done in two turns (`turns.py`).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel import layers
from tropel._kernels.cells import CellList
from tropel._kernels.compile import use_threads
from tropel._kernels.philox import random_key
from tropel.agents.bonds import check_has_bonds
from tropel.agents.departures import arrived
from tropel.agents.doorway import step_off
from tropel.agents.groups import Group, Personal
from tropel.agents.population import Population
from tropel.agents.presets import check_has_traits
from tropel.agents.sources import Source
from tropel.agents.state import AgentState, Steered
from tropel.bodies import Bodies
from tropel.budget import Budget
from tropel.environment.collisions import CollisionLog, CollisionWatch
from tropel.errors import ModelError, ParameterError, TropelError, suggest
from tropel.event_queue import EventLike, EventQueue, Repeated, apply_event, event_json, is_news, step_at
from tropel.events import AddAgents
from tropel.integrate import integrate
from tropel.layers import Environment, Planner, Steering
from tropel.planning.laid_layers import LaidLayers
from tropel.recording.recorder import Recorder, scene_of
from tropel.replay import Replay
from tropel.running import Run, Summary
from tropel.snapshot import digest_of_setup, hash_simulation, restore_simulation, save_simulation
from tropel.timing import Timing
from tropel.turns import Turn, in_order_of_preparing, reads_ground, turns_of, ways_to_plan
from tropel.world import World
from tropel.world.user_layers import Layer

Until = float | str | Callable[["Simulation"], bool]


class Simulation:
    """Agents in a world, a planner, an environment and a steering model, and a clock that runs in steps of dt [s].

    `planning` and `local` may be one layer for all, or a mapping from group names to layers. The same seed gives the
    same bits on any number of threads. Collisions of bodies are watched, for `collisions`, the summary of a run and the
    column `collided`, unless `watch_collisions` is false.
    """

    def __init__(
        self,
        world: World,
        agents: Iterable[Group | Source] | Group,
        *,
        planning: Planner | Mapping[str, Planner] | None = None,
        environment: Environment | None = None,
        local: Steering | Mapping[str, Steering] | None = None,
        dt: float = 0.05,
        seed: int = 0,
        threads: int | None = None,
        title: str = "",
        watch_collisions: bool = True,
    ) -> None:
        from tropel.environment.grid import Grid
        from tropel.local.seek import Seek
        from tropel.planning.direct import Direct

        is_number: bool = isinstance(dt, Real)
        if not (is_number and math.isfinite(dt) and dt > 0):
            raise ParameterError(f"dt must be a positive number of seconds, not {dt!r}")
        if threads is not None and threads < 1:
            raise ParameterError(f"threads must be at least 1, not {threads}")
        self.world = world
        self.dt = float(dt)
        self.seed = int(seed)
        self.threads = threads or os.cpu_count() or 1
        self.title = title
        self.step_number = 0
        self._yield_key = random_key(self.seed, "who gives way")
        declared = [agents] if isinstance(agents, Group | Source) else list(agents)
        self.population = Population(world, declared, seed=self.seed)
        self.environment = Grid() if environment is None else environment
        self._planners = self._per_group(Direct() if planning is None else planning, Planner, "planning")
        self._models = self._per_group(Seek() if local is None else local, Steering, "local")
        self._ways_to_plan = ways_to_plan(self._planners, self._models)
        self._turns = turns_of(self._models)
        self._sensing = not all(reads_ground(model) for model in self._models)
        if isinstance(self.environment, type) or not isinstance(self.environment, Environment):
            raise ParameterError(f"environment needs a method sense(state, world); got {self.environment!r}")
        for what, used in (("planning", self._planners), ("environment", [self.environment]), ("local", self._models)):
            for layer in used:
                layers.check_space(layer, world, what)
        for item in declared:
            self.check_newcomers(item, group=item.name if isinstance(item, Group) else item.group)
        self.population.spawn_all(self._columns(), [getattr(model, "cell", None) for model in self._models])
        self.events = EventQueue()
        self.replayed: Replay | None = None
        self.spared: set[str] = set()  #: behaviours that a budget has switched off
        self.timing = Timing()
        self.recorder: Recorder | None = None
        self.collision_watch = CollisionWatch() if watch_collisions else None
        self._steered = Steered.like(self.agents, self._memory())
        self._directions: NDArray[np.float64] = np.empty((0, world.dim))
        for layer in in_order_of_preparing(self.environment, self._planners, self._models):
            layers.prepare(layer, self.agents, world, self.seed)
        self.scene = scene_of(self)  #: the world as declared, for pictures and replays
        self.setup_digest = digest_of_setup(self)  #: a checkpoint can be restored by a simulation with the same one

    def step(self) -> None:
        """Move the world forward by dt. This is the whole architecture."""
        with self.timing("events"):
            self._apply_events()
        with self.timing("planning"):
            directions = self._plan()
        for turn in self._turns:
            with self.timing("environment"):
                near = self.environment.sense(self.agents, self.world) if turn.senses else None
            with self.timing("local"):
                self._steer(turn, near, directions)
            with self.timing("integrate"):
                self._integrate(turn, near)
        self.step_number += 1
        with self.timing("collisions"):
            self._note_collisions(near)
        with self.timing("exits"):
            self._let_out()
        with self.timing("record"):
            self._record()

    # The stages -------------------------------------------------------------------------------------------------

    def _apply_events(self) -> None:
        use_threads(self.threads, len(self.agents))
        self.world.advance(self.time, self.dt)
        due = self.events.due(self.step_number) if self.replayed is None else self.replayed.due(self)
        for event in due:
            apply_event(event, self)
            if self.recorder is not None and is_news(event):
                self.recorder.event(self.step_number, event_json(event))
        self.population.let_in(self.step_number, self.dt)
        self._let_die()

    def _let_die(self) -> None:
        died = self.population.let_die(self.time)
        if self.recorder is not None and len(died):
            self.recorder.deaths(self.step_number, died)

    def _plan(self) -> NDArray[np.float64]:
        directions = self._directions
        if self._sensing:
            if directions.shape != self.agents.position.shape:
                directions = self._directions = np.zeros_like(self.agents.position)
            directions.fill(0.0)
        for plan, groups in self._ways_to_plan:
            plan(self.agents, self.population.members(groups), directions)
        if self._sensing:
            waiting = self.agents.start_time > self.time + 1e-9 * self.dt
            if waiting.any():
                directions[waiting] = 0.0
        return directions

    def _steer(self, turn: Turn, near: Any, directions: NDArray[np.float64]) -> None:
        if len(self.agents) > len(self._steered):
            self._steered = Steered.like(self.agents, self._memory())
        else:
            self._steered.shrink(len(self.agents))
            self._steered.begin(self.agents)
        for model, groups in turn.models:
            members = self.population.members(groups)
            model.steer(self.agents, near, directions, members, self.dt, self.step_number, self._steered)

    def _integrate(self, turn: Turn, near: Any) -> None:
        integrate(
            self.agents,
            self._steered,
            self.world,
            self.dt,
            movers=self._movers(turn),
            moves_itself=self._rows_with("moves_itself"),
            on_cells=self._rows_with("cell"),
            bodies=self._bodies(near) if turn.senses else None,
        )

    def _note_collisions(self, near: Any) -> None:
        if self.collision_watch is not None and self._sensing:
            cells = near.cells if hasattr(near, "cells") else self._cells_at_start()
            self.collision_watch.look(self.agents, cells, self.world, step=self.step_number - 1, dt=self.dt)

    def _cells_at_start(self) -> CellList:
        """For an environment that has no cell list: one of the positions before the step, which `integrate` left."""
        from tropel.environment.grid import Grid

        before = AgentState(self.world.dim)
        before.columns = {**self.agents.columns, "position": self._steered.position}
        return Grid().sense(before, self.world).cells

    def _let_out(self) -> None:
        goals = arrived(self.agents, self.world)
        if goals is not None:
            self.population.let_out(goals, self.time)

    def _record(self) -> None:
        if self.recorder is not None:
            self.recorder.step_done(self)

    # What is there ----------------------------------------------------------------------------------------------

    @property
    def agents(self) -> AgentState:
        """The agents as a struct of arrays."""
        return self.population.state

    @property
    def groups(self) -> list[str]:
        return self.population.groups

    @property
    def planners(self) -> dict[str, Planner]:
        """Which planner each group follows."""
        return {group: self._planners[number] for number, group in enumerate(self.groups)}

    @property
    def time(self) -> float:
        """Simulated time [s]: the number of steps times dt, never accumulated."""
        return self.step_number * self.dt

    @property
    def collisions(self) -> CollisionLog:
        """Every collision of bodies so far: who, when, how deep."""
        if self.collision_watch is None:
            raise ParameterError("collisions are not watched here; build the simulation with watch_collisions=True")
        return self.collision_watch.log

    def _per_group(self, given: Any, protocol: Any, what: str) -> list[Any]:
        """One layer per group, in the order of the groups."""
        if isinstance(given, Mapping):
            for name in given:
                if name not in self.groups:
                    raise ParameterError(f"{what}: there is no group '{name}'; {suggest(name, self.groups)}")
            missing = [name for name in self.groups if name not in given]
            if missing:
                raise ParameterError(f"{what}: nothing is given for the group '{missing[0]}'")
            per_group = [given[name] for name in self.groups]
        else:
            per_group = [given] * max(len(self.groups), 1)
        for layer in per_group:
            if isinstance(layer, type) or not isinstance(layer, protocol):
                method = "direct" if protocol is Planner else "steer"
                raise ParameterError(f"{what} needs an object with a method {method}(…); got {layer!r}")
        return per_group

    def all_layers(self) -> list[Any]:
        """Every layer once, in a fixed order."""
        unique: list[Any] = []
        for layer in (self.environment, *self._planners, *self._models):
            if not any(layer is known for known in unique):
                unique.append(layer)
        return unique

    def _columns(self) -> list[Any]:
        return [column for layer in self.all_layers() for column in layers.columns_of(layer)]

    def _memory(self) -> list[str]:
        return sorted({name for layer in self.all_layers() for name in layers.memory_of(layer)})

    def _rows_with(self, quality: str) -> NDArray[np.bool_] | None:
        """Which agents have a model that declares a quality, such as `moves_itself`; None when no model does."""
        by_group = [bool(getattr(model, quality, False)) for model in self._models]
        if all(by_group):
            return np.ones(len(self.agents), dtype=np.bool_)
        return np.array(by_group)[self.agents.group] if any(by_group) else None

    def _movers(self, turn: Turn) -> NDArray[np.bool_] | None:
        """Which agents move in a turn; None when all do."""
        if len(self._turns) == 1:
            return None
        by_group = [reads_ground(model) != turn.senses for model in self._models]
        return np.array(by_group)[self.agents.group]

    def _bodies(self, near: Any) -> Bodies | None:
        solid = self._rows_with("solid_bodies")
        if solid is None:
            return None
        moved_before = self._rows_with("follows_layers")
        if moved_before is None:
            return Bodies(near, solid, self._yield_key, self.step_number)
        return Bodies(near, solid | moved_before, self._yield_key, self.step_number, moved_before=moved_before)

    # What can be changed ----------------------------------------------------------------------------------------

    def at(self, time: float, event: EventLike) -> None:
        """Schedule an event, or a function of the simulation, for a time [s]."""
        if not math.isfinite(time):
            raise ParameterError(f"an event needs a finite time, not {time!r}")
        step = step_at(time, self.dt)
        if step < self.step_number:
            raise ParameterError(f"t = {time:g} s is over already (it is {self.time:g} s now)")
        if hasattr(event, "check") and not isinstance(event, type):
            event.check(self)
        elif not callable(event) or isinstance(event, type):
            raise ParameterError(f"an event is one of tropel.events or a function of the simulation, not {event!r}")
        self.events.add(step, event)

    def every(self, seconds: float, function: Callable[[Simulation], None], *, begin: float | None = None) -> None:
        """Call a function of the simulation at `begin` (now when left out) and every so many seconds after.

        A resumed run must schedule it again before `restore`, with the same `begin`. It does not keep a run going that
        lasts "until empty".
        """
        if not (math.isfinite(seconds) and seconds > self.dt * (1.0 - 1e-9)):
            raise ParameterError(
                f"every: the time between two calls must be at least dt = {self.dt:g} s, not {seconds!r}"
            )
        if not callable(function) or isinstance(function, type):
            raise ParameterError(f"every: expected a function of the simulation, not {function!r}")
        first = self.time if begin is None else float(begin)
        self.at(first, Repeated(function, begin=first, seconds=float(seconds)))

    def add_agents(self, group: str, **what: Any) -> NDArray[np.int64]:
        """Add agents of a group now (the fields of `Group`); returns their ids."""
        newcomers = Group(group, **what)
        self.check_newcomers(newcomers, group=group)
        return self.population.add(newcomers, time=self.time, step=self.step_number)

    def remove_agents(
        self, *, group: str | None = None, region: Any = None, ids: Iterable[int] | None = None
    ) -> NDArray[np.int64]:
        """Take out agents that meet all given conditions; returns their ids."""
        return self.population.remove(group=group, region=region, ids=ids)

    def set_goal(self, goal: str, *, group: str | None = None) -> None:
        """Send a group, or everybody, to an exit or target by name, "nearest exit", "nearest target" or "none"."""
        self.population.set_goal(goal, group=group)

    def set_parameter(self, name: str, value: Any, *, group: str | None = None) -> None:
        """Give a group, or everybody, a new value of a parameter: a number or a distribution."""
        self.population.set_parameter(name, value, group=group, step=self.step_number)

    def check_parameter(self, name: str) -> None:
        """Raise when agents have no settable parameter of that name."""
        self.population.check_parameter(name)

    def check_newcomers(self, told: Personal | AddAgents, *, group: str) -> None:
        """Raise when a group's planner and steering model have no use for the personality or bonds it is given."""
        if told.follow is not None and told.follow not in self.groups:
            raise ParameterError(
                f"group '{group}' follows '{told.follow}', which is no group; {suggest(told.follow, self.groups)}"
            )
        if group not in self.groups:
            return
        number = self.groups.index(group)
        model = self._models[number]
        columns = {c.name for layer in (self._planners[number], model) for c in layers.columns_of(layer)}
        check_has_traits(told.personality, group=group, model=type(model).__name__, columns=columns)
        check_has_bonds(told.families, told.follow, group=group, model=type(model).__name__, columns=columns)

    def add_layer(self, name: str, layer: Layer) -> None:
        """Lay down a layer of one's own for a lattice crowd."""
        self.layers_on_the_ground().add(name, layer)

    def remove_layer(self, name: str) -> None:
        """Take a layer of one's own away."""
        self.layers_on_the_ground().remove(name)

    def layers_on_the_ground(self) -> LaidLayers:
        """The layers of one's own that the planner lays."""
        for planner in self._planners:
            if isinstance(laid := getattr(planner, "layers", None), LaidLayers):
                return laid
        raise ParameterError('nobody lays layers here; plan with PathPlans (in files: model = "path_plans")')

    @property
    def behaviours(self) -> dict[str, bool]:
        """What layers do that can be switched off, and whether it is on."""
        return layers.behaviours_of(self.all_layers())

    def check_behaviour(self, name: str) -> None:
        """Raise when no layer has a behaviour of that name."""
        layers.check_behaviour(self.all_layers(), name)

    def set_behaviour(self, name: str, on: bool, *, by_budget: bool = False) -> None:
        """Switch a behaviour on or off; a budget switches on again only what it has switched off itself."""
        self.check_behaviour(name)
        layers.set_behaviour(self.all_layers(), name, on)
        self.spared.discard(name)
        if by_budget and not on:
            self.spared.add(name)

    def clear_doorway(self, door: str) -> None:
        """Nobody may stand exactly on the line of a door that closes: such agents step back to where they came from."""
        step_off(self.agents, self.world, door, dt=self.dt)

    # Running ----------------------------------------------------------------------------------------------------

    def run(
        self,
        *,
        until: Until | None = None,
        limit: float | None = None,
        record: str | os.PathLike[str] | None = None,
        fps: float = 10.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        progress: bool | Callable[[Simulation], None] = False,
        budget: Budget | None = None,
    ) -> Summary:
        """Step until a time [s], until "empty", or until a predicate of the simulation holds.

        `limit` [s] ends the run in any case. `record` names a trajectory file (`.sqlite` or `.parquet`) with `fps`
        frames per simulated second; `checkpoint` a file that is rewritten every `checkpoint_every` simulated seconds
        and at the end. Ctrl-C and errors close the files properly before they are raised again. With a `budget`
        behaviours are left out where the wanted number of steps per second would not be held.
        """
        return Run(
            self,
            until=until,
            limit=limit,
            record=record,
            fps=fps,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            progress=progress,
            budget=budget,
        ).go()

    def replay(self, record: str | os.PathLike[str]) -> None:
        """Let what happened in a recorded run happen again: at each step, the events that its file holds.

        `record` is a trajectory, or a file with a JSON object per line that has `step` and `event`. Events that this
        simulation has scheduled itself happen once. A run that was recorded with a budget ends in the same state.
        """
        self.replayed = Replay.read(Path(record), self)

    def guarded_step(self) -> None:
        """`step`, with errors of a layer's own code turned into a ModelError that says when and where."""
        try:
            self.step()
        except ModelError as error:
            raise ModelError(f"{self._when()}: {error}") from error
        except TropelError:
            raise
        except Exception as error:
            raise ModelError(f"{self._when()}: {type(error).__name__}: {error}") from error

    def _when(self) -> str:
        return f"step {self.step_number} (t = {self.time:g} s), stage '{self.timing.stage}'"

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, atomically."""
        save_simulation(self, Path(path))

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue from a checkpoint that a simulation built in the same way has written."""
        restore_simulation(self, Path(path))

    def state_hash(self) -> str:
        """Digest of everything the future depends on."""
        return hash_simulation(self)
