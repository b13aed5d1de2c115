"""The simulation: a world full of agents that moves forward one step at a time.

`Simulation.step` is the architecture: events → decide → planning → (environment → local → integrate, once per phase) →
collisions → settled → exits → record. It knows no layer by name; `defaults.py` knows those that are used when none is
given. `run/group_layers.py` knows which group has which layer, `run/phases.py` when they act, `run/stages.py` what they
get, and `contracts` what they promise. What can be asked of a simulation is in `run/current_state.py`, and what can be
changed between steps in `run/changes.py`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tropel._kernels.compile import use_threads
from tropel.agents.groups import Group, Source
from tropel.agents.population import Population
from tropel.agents.tasks.task import Task
from tropel.broad_phase import CellGrid
from tropel.checks import Finding, check_simulation
from tropel.checks.standstill import StandstillWatch
from tropel.contact.collisions import CollisionWatch
from tropel.contracts import Decision, Environment, Habit, Model, Planner
from tropel.contracts.sharing import Sharing
from tropel.defaults import default_environment, with_defaults, with_sharing
from tropel.encounters.watch import ENCOUNTER_DISTANCE, EncounterWatch
from tropel.errors import ModelError, ParameterError, TropelError
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
from tropel.knowing.parameters import Knowledge
from tropel.recording.recorder import FPS, scene_of
from tropel.run.budget import Budget
from tropel.run.changes import Changeable
from tropel.run.group_layers import GroupLayers
from tropel.run.loop import Run, Summary
from tropel.run.observers import Observers
from tropel.run.replay import Replay
from tropel.run.snapshot import digest_of_setup, hash_simulation, restore_simulation, save_simulation
from tropel.run.stages import Stages, Timing
from tropel.world import World

if TYPE_CHECKING:
    from tropel.viewer.live.view import View

Until = Annotated[float | str | Callable[["Simulation"], bool], CHECKED_ELSEWHERE]
Limit = Annotated[float | None, CHECKED_ELSEWHERE]

#: The length of a step; motion on much shorter or longer time scales is not simulated here.
STEP = Quantity(name="dt", above=0.0, high=1000.0, unit="s")


class Simulation(Changeable):
    """Agents in a world, a planner, an environment and a steering model, and a clock that runs in steps of dt [s].

    `planning` and `local` may be one layer for all groups, or a mapping from group names to layers. What is left
    out is chosen by `tropel.defaults`: in a 2D world with walls people find their way (`FlowField`) and walk
    (`Walk`), in open space they go straight to their goal and keep right (`Direct`, `Seek`, `KeepRight`). `habits`,
    one list for all groups or one per group, change the planned directions before the models steer; families stay
    together unless other habits are given. `tasks`, by name, are shared out among the agents in a stage `Work`, by
    `sharing` (default: `Optimal`). `knowledge`, for all groups or by group, limits what agents know of doors, hazards
    and other changes to what they see and are told; without it everybody knows the world as it is.

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
        tasks: Annotated[Mapping[str, Task] | None, CHECKED_ELSEWHERE] = None,
        sharing: Annotated[Sharing | None, CHECKED_ELSEWHERE] = None,
        knowledge: Annotated[Knowledge | Mapping[str, Knowledge] | None, CHECKED_ELSEWHERE] = None,
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
        tasks, sharing = with_sharing(tasks, sharing)
        self.population = Population(world, declared, seed=self.seed, tasks=tasks)
        planning, local, habits = with_defaults(world, self.groups, declared, planning, local, habits)
        self.layers = GroupLayers(
            self.groups,
            planning=planning,
            environment=default_environment() if environment is None else environment,
            local=local,
            habits=habits,
            decisions=decisions,
            sharing=sharing,
            knowledge=knowledge,
            squads=[item.name for item in declared if isinstance(item, Group) and item.squad is not None],
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

    # Planning ahead ---------------------------------------------------------------------------------------------

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
