"""The simulation: a world full of agents that moves forward one step at a time.

`Simulation.step` is the architecture: events → decide → planning → (environment → local → integrate, once per phase) →
collisions → settled → exits → record. It knows no layer by name; `defaults.py` knows those that are used when none is
given. `run/group_layers.py` knows which group has which layer, `run/phases.py` when they act, `run/stages.py` what they
get, and `contracts` what they promise.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import use_threads
from tropel.agents.groups import Group, Personal, Source
from tropel.agents.population import Population
from tropel.agents.sending import give_up, set_goal, set_stages
from tropel.agents.stages.stage import Stage, as_stages
from tropel.broad_phase import CellGrid
from tropel.checks import Finding, check_simulation
from tropel.checks.standstill import StandstillWatch
from tropel.contact.collisions import CollisionWatch
from tropel.contact.walls import step_off
from tropel.contracts import Decision, Environment, Habit, Model, Planner
from tropel.defaults import default_environment, with_defaults
from tropel.encounters.watch import ENCOUNTER_DISTANCE, EncounterWatch
from tropel.errors import ModelError, ParameterError, TropelError
from tropel.events import AddAgents
from tropel.events.queue import (
    EventLike,
    EventQueue,
    apply_event,
    due_step,
    event_json,
    is_news,
    note_event,
    repeated,
    schedule,
)
from tropel.foundation.arguments import CHECKED_ELSEWHERE, PositiveCount, Seconds, checked_arguments
from tropel.foundation.arguments import SimulatedTime as Time
from tropel.foundation.quantities import Quantity
from tropel.foundation.reductions import ONE_PROCESS
from tropel.foundation.renamed import current_behaviour, renamed_method
from tropel.recording.recorder import FPS, scene_of
from tropel.run.budget import Budget
from tropel.run.current_state import CurrentState
from tropel.run.group_layers import GroupLayers
from tropel.run.loop import Run, Summary
from tropel.run.observers import Observers
from tropel.run.replay import Replay
from tropel.run.snapshot import digest_of_setup, hash_simulation, restore_simulation, save_simulation
from tropel.run.stages import Stages, Timing
from tropel.world import World
from tropel.world.places import PlaceLike
from tropel.world.value_maps import ValueMap

if TYPE_CHECKING:
    from tropel.viewer.live.view import View

Until = Annotated[float | str | Callable[["Simulation"], bool], CHECKED_ELSEWHERE]
Limit = Annotated[float | None, CHECKED_ELSEWHERE]

#: The length of a step; motion on much shorter or longer time scales is not simulated here.
STEP = Quantity(name="dt", above=0.0, high=1000.0, unit="s")


class Simulation(CurrentState):
    """Agents in a world, a planner, an environment and a steering model, and a clock that runs in steps of dt [s].

    `planning` and `local` may be one layer for all groups, or a mapping from group names to layers. What is left
    out is chosen by `tropel.defaults`: in a 2D world with walls people find their way (`FlowField`) and walk
    (`Walk`), in open space they go straight to their goal and keep right (`Direct`, `Seek`, `KeepRight`). `habits`,
    one list for all groups or one per group, change the planned directions before the models steer; families stay
    together unless other habits are given.

    The same seed gives the same bits on any number of threads. Collisions of bodies are watched for `collisions`, the
    summary of a run and the column `collided`. Set `watch_collisions` to false to turn that off; by default it is off
    only if all models declare that bodies may overlap.
    """

    @checked_arguments
    def __init__(
        self,
        world: World,
        agents: Iterable[Group | Source] | Group | Source,
        *,
        planning: Annotated[Planner | Mapping[str, Planner | None] | None, CHECKED_ELSEWHERE] = None,
        environment: Annotated[Environment | None, CHECKED_ELSEWHERE] = None,
        local: Annotated[Model | Mapping[str, Model | None] | None, CHECKED_ELSEWHERE] = None,
        habits: Annotated[Sequence[Habit] | Mapping[str, Sequence[Habit]] | None, CHECKED_ELSEWHERE] = None,
        decisions: Annotated[Sequence[Decision] | Mapping[str, Sequence[Decision]], CHECKED_ELSEWHERE] = (),
        dt: Annotated[float, STEP] = 0.05,
        seed: int = 0,
        threads: PositiveCount | None = None,
        title: str = "",
        watch_collisions: bool | None = None,
    ) -> None:
        self.world = world
        self.dt = float(dt)
        self.seed = int(seed)
        self.threads = int(threads or os.cpu_count() or 1)
        self.title = title
        self.step_number = 0
        self.reduce = ONE_PROCESS  #: computes quantities of the whole crowd
        declared = [agents] if isinstance(agents, Group | Source) else list(agents)
        self.population = Population(world, declared, seed=self.seed)
        planning, local, habits = with_defaults(world, self.groups, declared, planning, local, habits)
        self.layers = GroupLayers(
            self.groups,
            planning=planning,
            environment=default_environment() if environment is None else environment,
            local=local,
            habits=habits,
            decisions=decisions,
            world=world,
        )
        for item in declared:
            self.layers.check_newcomers(item, group=item.name if isinstance(item, Group) else item.group)
        self.population.spawn_all(
            self.layers.columns(), self.layers.placing(), on_ground=self.layers.on_ground(), reduce=self.reduce
        )
        self.layers.check_sets(self.agents)
        self.events = EventQueue()
        self.replayed: Replay | None = None
        self.spared: set[str] = set()  #: behaviours that a budget has switched off
        self.timing = Timing()
        self.observers = Observers()  #: notified of what happens, in their order
        self.standstill = StandstillWatch()  #: an observer of every run
        watch_collisions = self.layers.watch_collisions(watch_collisions)
        self.collision_watch = CollisionWatch() if watch_collisions else None
        self.encounter_watch: EncounterWatch | None = None
        self.cells = CellGrid(cell=self.environment.declares.cell, reduce=self.reduce)  #: all agents, by cell
        self.cells.allocate(self.agents, world)
        self._stages = Stages(self)
        self.scene = scene_of(self)  #: the world as declared, for pictures and replays
        self.setup_digest = digest_of_setup(self)  #: a checkpoint can be restored by a simulation with the same one

    def step(self) -> None:
        """Move the world forward by dt. This is the whole architecture."""
        with self.timing("events"):
            self.observers.step_begins(self)
            self._apply_events()
        with self.timing("decide"):
            self._stages.decide()
        with self.timing("planning"):
            moment = self._stages.plan()
        for phase in self.layers.phases:
            with self.timing("environment"):
                moment = self._stages.sense(phase, moment)
            with self.timing("local"):
                self._stages.steer(phase, moment)
            with self.timing("integrate"):
                self._stages.integrate(phase, moment)
        self.step_number += 1
        with self.timing("collisions"):
            self._stages.note_collisions()
            self._stages.note_encounters()
        with self.timing("settled"):
            self._stages.settle()
        with self.timing("exits"):
            self._let_out()
            self._stages.finish_encounters()
        with self.timing("record"):
            self.observers.step_done(self)

    # The stages -------------------------------------------------------------------------------------------------

    def _apply_events(self) -> None:
        use_threads(self.threads, len(self.agents))
        self.world.advance(self.time, self.dt)
        due = self.events.due(self.step_number) if self.replayed is None else self.replayed.due(self)
        for event in due:
            apply_event(event, self)
            note_event(event, self)
            if self.observers and is_news(event):
                self.observers.event(self, event_json(event))
        self.population.let_in(self.step_number, self.dt, reduce=self.reduce)
        self._let_die()

    def _let_die(self) -> None:
        died = self.population.let_die(self.time)
        if len(died):
            self.observers.deaths(self, died)

    def _let_out(self) -> None:
        goals, reached_at = self.layers.leaving(self.agents, self.world, self.time)
        if goals is not None:
            self.population.let_out(goals, reached_at)

    # Watching it -----------------------------------------------------------------------------------------------

    @checked_arguments
    def watch_encounters(self, distance: Annotated[float, ENCOUNTER_DISTANCE] = 1.5) -> EncounterWatch:
        """From now on, watch which agents come within a distance [m] of each other, for `encounters`.

        Checkpoints hold the encounters, and a simulation that is restored from one goes on watching.
        """
        if self.encounter_watch is not None:
            raise ParameterError(
                f"encounters are watched already, within {self.encounter_watch.distance:g} m; call "
                f"watch_encounters only once"
            )
        self.encounter_watch = EncounterWatch(distance, self.world)
        return self.encounter_watch

    def check(self) -> list[Finding]:
        """What looks wrong now: people without a path, exits that never open, absurd numbers; warnings before notes."""
        return check_simulation(self)

    # Changing it ------------------------------------------------------------------------------------------------

    @checked_arguments
    def at(self, time: Time, event: EventLike) -> None:
        """Schedule an event, or a function of the simulation, for a time [s]."""
        schedule(self, due_step(time, self), event)

    @checked_arguments
    def every(self, seconds: Seconds, function: Callable[[Simulation], None], *, begin: Time | None = None) -> None:
        """Call a function of the simulation at `begin` (default: now) and then at intervals of `seconds`.

        A resumed run must schedule it again before `restore`, with the same `begin`. It does not keep a run "until
        empty" going.
        """
        first = self.time if begin is None else float(begin)
        self.at(first, repeated(function, begin=first, seconds=seconds, dt=self.dt))

    @checked_arguments
    def add_agents(self, group: str, **what: Any) -> NDArray[np.int64]:
        """Add agents of a group now (the fields of `Group`); returns their ids."""
        newcomers = Group(group, **what)
        self.check_newcomers(newcomers, group=group)
        return self.population.add(newcomers, time=self.time, step=self.step_number, reduce=self.reduce)

    @checked_arguments
    def remove_agents(
        self, *, group: str | None = None, region: Any = None, ids: Iterable[int] | None = None
    ) -> NDArray[np.int64]:
        """Remove agents that meet all given conditions; returns their ids."""
        return self.population.remove(group=group, region=region, ids=ids)

    @checked_arguments
    def set_goal(
        self,
        goal: PlaceLike,
        *,
        group: str | None = None,
        ids: Annotated[Iterable[int] | None, CHECKED_ELSEWHERE] = None,
        then: Annotated[Sequence[PlaceLike], CHECKED_ELSEWHERE] = (),
        repeat: bool = False,
    ) -> None:
        """Send a group, the agents with these ids, or all agents somewhere.

        A goal is a place (a name, a point such as `(3, 4)` or a `Place`), "nearest exit", "nearest target" or "none".
        Agents that arrive go on to the places in `then`, one after the other, and with `repeat` to the first again.
        """
        ids = None if ids is None else list(ids)
        groups = self.population.groups_of(ids, group)
        for each in (goal, *then):
            self.layers.check_goal(each, groups)
        set_goal(self.population, goal, group=group, ids=ids, then=then, repeat=repeat, time=self.time)

    @checked_arguments
    def set_stages(
        self,
        stages: Annotated[Sequence[Stage | Mapping[str, Any]], CHECKED_ELSEWHERE],
        *,
        group: str | None = None,
        ids: Annotated[Iterable[int] | None, CHECKED_ELSEWHERE] = None,
        repeat: bool = False,
    ) -> None:
        """Give a group, the agents with these ids, or all agents another list of stages, with which they begin now."""
        ids = None if ids is None else list(ids)
        told = as_stages(stages, "set_stages")
        self.layers.check_stages(told, self.population.groups_of(ids, group))
        set_stages(self.population, told, group=group, ids=ids, repeat=repeat, time=self.time)

    def check_stages(self, stages: Sequence[Stage], *, group: str | None, ids: Sequence[int] | None) -> None:
        """Raise when a group could not go through stages; the places that they name are checked elsewhere."""
        # To which groups single agents belong is known when they are given the stages.
        self.layers.check_stages(stages, () if ids is not None else self.groups if group is None else (group,))
        for stage in stages:
            stage.check(self.population.setting, "set_stages")
            if stage.until is not None:
                stage.until.check(self.population.setting, "set_stages")

    @checked_arguments
    def signal(self, name: str) -> None:
        """Give a signal that people may wait for."""
        self.population.happened.note("signal", {"name": name}, step=self.step_number)

    def give_up(self, target: str) -> None:
        """Agents on their way to a removed target begin their next stage, or return to their group's own goal."""
        give_up(self.population, target, self._stages.now())

    @checked_arguments
    def set_leader(
        self,
        group: str,
        leader: Annotated[str | int | None, CHECKED_ELSEWHERE] = None,
        *,
        id: int | None = None,
    ) -> None:
        """Let one agent of a group lead all others: "nearest" to the goal, "central", a number from 0, or by its id.

        It takes over the goal of the leader before, and the followers turn to it within a few seconds.
        """
        self.population.set_leader(group, leader, id=id, reduce=self.reduce)

    @checked_arguments
    def set_parameter(self, name: str, value: Any, *, group: str | None = None) -> None:
        """Give a group, or all agents, a new value of a parameter: a number, a distribution or "default"."""
        self.population.set_parameter(name, value, group=group, step=self.step_number)

    @checked_arguments
    def check_parameter(self, name: str, value: Any = "default") -> None:
        """Raise when agents have no settable parameter of that name, or when the value is not allowed."""
        self.population.check_parameter(name, value)

    def check_newcomers(self, told: Personal | AddAgents, *, group: str) -> None:
        """Raise when a group's planner and steering model do not use the personality or bonds it is given."""
        self.layers.check_newcomers(told, group=group)
        self.population.check_follow(group, told.follow)

    @checked_arguments
    def add_value_map(self, name: str, value_map: ValueMap) -> None:
        """Publish a value map on the ground, for models that follow the ground."""
        self.value_maps().add(name, value_map)

    @checked_arguments
    def remove_value_map(self, name: str) -> None:
        """Remove a value map."""
        self.value_maps().remove(name)

    add_layer = renamed_method("add_layer", "add_value_map")
    remove_layer = renamed_method("remove_layer", "remove_value_map")

    @checked_arguments
    def check_behaviour(self, name: str) -> None:
        """Raise when no layer has a behaviour of that name."""
        self.layers.check_behaviour(current_behaviour(name))

    @checked_arguments
    def set_behaviour(self, name: str, on: bool, *, by_budget: bool = False) -> None:
        """Switch a behaviour on or off; a budget only switches on again what it has switched off itself."""
        name = current_behaviour(name)
        self.layers.set_behaviour(name, on)
        self.spared.discard(name)
        if by_budget and not on:
            self.spared.add(name)

    @checked_arguments
    def clear_doorway(self, door: str) -> None:
        """No agent may stand exactly on the line of a closing door: such agents step back to where they came from."""
        self._stages.begin_to_move()
        step_off(self.agents, self.world, door, dt=self.dt)
        self._stages.settle()

    # Running ----------------------------------------------------------------------------------------------------

    @checked_arguments
    def run(
        self,
        *,
        until: Until | None = None,
        limit: Limit = None,
        record: str | os.PathLike[str] | None = None,
        fps: Annotated[float, FPS] = 10.0,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: Seconds = 60.0,
        progress: bool | Callable[[Simulation], None] = False,
        budget: Budget | None = None,
    ) -> Summary:
        """Step until a time [s], until "empty", or until a predicate of the simulation holds.

        `limit` [s] ends the run in any case. `record` names a trajectory file (`.sqlite` or `.parquet`) with `fps`
        frames per simulated second; `checkpoint` names a file that is rewritten every `checkpoint_every` simulated
        seconds and at the end. Ctrl-C and errors close the files properly before they are raised again. With a
        `budget`, behaviours are left out when the run would not reach the wanted number of steps per second.
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

    @checked_arguments
    def replay(self, record: str | os.PathLike[str]) -> None:
        """Repeat the events of a recorded run: at each step, those that its file holds.

        `record` is a trajectory, or a file with one JSON object per line that has `step` and `event`. Events that this
        simulation has scheduled itself happen once. A run that was recorded with a budget ends in the same state.
        """
        self.replayed = Replay.read(Path(record), self)

    def view(self, **options: Any) -> Summary | View:
        """Run with a page in the browser, to watch and disturb the run, until Ctrl-C; needs the extra `view`.

        A notebook shows the page in the cell's output and continues at once with the return value, a `View`.

        Everything done on the page is an event: `replay` of the record repeats the run. The options are those of
        `tropel.viewer.live.view.view_simulation`: `record`, `until`, `speed`, `port`, …
        """
        from tropel.viewer.live.view import view_simulation

        return view_simulation(self, **options)

    def guarded_step(self) -> None:
        """`step`, with errors in a layer's own code turned into a ModelError that tells when and where."""
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

    @checked_arguments
    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint, atomically."""
        save_simulation(self, Path(path))

    @checked_arguments
    def restore(self, path: str | os.PathLike[str]) -> None:
        """Continue from a checkpoint written by a simulation that was built in the same way."""
        restore_simulation(self, Path(path))

    def state_hash(self) -> str:
        """Digest of everything that the future depends on."""
        return hash_simulation(self)
