"""The stages of a step, from planning to settling: what each of them gets, and what happens to what it writes.

`Timing` measures the wall-clock time of the stages, `Settling` notifies models that want to know what really happened
(`Model.settled`), and `Stages` calls the layers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.arrays import clear
from tropel._kernels.philox import random_key
from tropel.agents.leaving import STAYS
from tropel.agents.seeing import somebody_is_limited
from tropel.agents.stages.stage import Now
from tropel.agents.state import AgentState, Floats, Steered
from tropel.broad_phase.pair_search import KnownPairs
from tropel.contact.integrate import integrate
from tropel.contracts import Guidance, Model, Moment, Moves, Near, Rows
from tropel.contracts.in_view import NearInView
from tropel.contracts.moment import NOBODY_WAITS
from tropel.errors import ModelError
from tropel.knowing.model import SharedKnowledge
from tropel.run.deciding import let_decide, swap_in
from tropel.run.phases import Phase
from tropel.run.tasks import attend

if TYPE_CHECKING:
    from tropel.simulation import Simulation


#: The stages of `Simulation.step`, in their order.
STAGES = (
    "events",
    "decide",
    "planning",
    "environment",
    "local",
    "integrate",
    "collisions",
    "settled",
    "exits",
    "record",
)


class _Stage:
    """Measures the time of one stage."""

    def __init__(self, timing: Timing, name: str) -> None:
        self._timing, self._name = timing, name
        self._begin = 0.0

    def __enter__(self) -> None:
        self._timing.stage = self._name
        self._begin = perf_counter()

    def __exit__(self, *error: object) -> None:
        self._timing.seconds[self._name] += perf_counter() - self._begin


class Timing:
    """Seconds spent in each stage so far: `with timing("planning"): …`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = dict.fromkeys(STAGES, 0.0)
        self.stage = ""  #: the current or last stage
        self._clocks = {name: _Stage(self, name) for name in STAGES}

    def __call__(self, stage: str) -> _Stage:
        return self._clocks[stage]

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


class Settling:
    """Remembers where agents were and wanted to be, if any model wants to be notified."""

    def __init__(self, told: Sequence[tuple[Model, tuple[int, ...]]]) -> None:
        self.told = told  #: models to notify, each with the numbers of its groups
        self._before: Floats = np.empty((0, 0))
        self._wanted: Floats = np.empty((0, 0))

    def begin(self, state: AgentState) -> None:
        """No agent has moved yet, nor wants to."""
        if self.told:
            self._before, self._wanted = state.position.copy(), state.position.copy()

    def note(self, state: AgentState, out: Steered, moves: Moves | np.ndarray, dt: float) -> None:
        """Record where the agents that move in this phase want to be."""
        if not self.told:
            return
        codes = np.broadcast_to(np.asarray(moves, dtype=np.uint8), len(state))
        freely, placed = codes == Moves.FREELY, (codes == Moves.ITSELF) | (codes == Moves.EXACTLY)
        self._wanted[freely] = state.position[freely] + dt * out.velocity[freely]
        self._wanted[placed] = out.position[placed]

    def tell(self, moment: Moment, members: Callable[[tuple[int, ...]], Rows]) -> None:
        """Notify each model; the moment is the one after the move."""
        for model, groups in self.told:
            model.settled(replace(moment, members=members(groups), groups=groups), self._before, self._wanted)


def in_view(near: Near, moment: Moment) -> Near:
    """What is near as far as agents see it; the same if all see all around."""
    return NearInView(near, moment) if moment.reduce.any(somebody_is_limited(moment.state)) else near


class Stages:
    """Calls the layers of a simulation, stage by stage, and owns the memory that they write into."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self.guidance = Guidance(directions=np.empty((0, sim.world.dim)))  #: the planners' last output
        self._steered = Steered.like(sim.agents, sim.layers.model_memory)
        self._settling = Settling(sim.layers.told)
        self._yield_key = random_key(sim.seed, "who gives way")
        sim.layers.prepare(self.moment(), self.guidance)

    def moment(self) -> Moment:
        """All agents as they are now, before anything is planned or sensed."""
        sim = self._sim
        waiting = sim.population.agendas.sleeping(sim.agents)
        sim.cells.begin(sim.agents, sim.world)
        groups = tuple(range(len(sim.groups)))
        return Moment(
            state=sim.agents,
            world=sim.world,
            members=sim.population.members(groups),
            groups=groups,
            step=sim.step_number,
            time=sim.time,
            dt=sim.dt,
            seed=sim.seed,
            waiting=waiting if np.count_nonzero(waiting) else NOBODY_WAITS,
            cells=sim.cells,
            reduce=sim.reduce,
            trails=sim.population.bonds.leaders.trails,
        )

    def now(self) -> Now:
        """The crowd as stages of agents see it."""
        sim = self._sim
        living = sim.population.members(range(len(sim.groups)))
        return Now(
            state=sim.agents,
            world=sim.world,
            members=living,
            living=living,
            time=sim.time,
            dt=sim.dt,
            step=sim.step_number,
            seed=sim.seed,
            reduce=sim.reduce,
            seen_within=sim.layers.seen_within,
            on_cells=sim.layers.on_cells,
            happened=sim.population.happened,
            tasks=sim.population.tasks,
            squads=sim.population.squads,  # type: ignore[arg-type]  # for verbs of squads alone
        )

    def decide(self) -> None:
        """Let others succeed leaders that are gone, agents go on, do tasks, and be changed by decisions."""
        sim = self._sim
        now = self.now()
        sim.population.decide(now)
        if now.tasks is not None and sim.layers.sharing is not None:
            attend(sim, now, now.tasks, sim.layers.sharing)
        if sim.observers and len(begun := sim.population.agendas.begun(now)):
            sim.observers.stages_begun(sim, begun)
        if now.tasks is not None:
            if sim.observers and now.tasks.happened:
                sim.observers.news(sim, "tasks", now.tasks.happened)
            now.tasks.happened = []
        if sim.layers.knowledge is not None:
            self._let_learn(sim.layers.knowledge)
        if sim.population.squads is not None:
            self._let_fight(now)
        if sim.layers.decisions:
            named = sim.layers.named_states if sim.observers else {}
            before = {column: sim.agents.columns[column].copy() for column in named}
            let_decide(sim.layers.decisions, self._with_beliefs(self.moment()), sim.population.members)
            for column, names in named.items():
                self._tell_changes(column, names, before[column])

    def _tell_changes(self, column: str, names: Sequence[str], before: NDArray[Any]) -> None:
        """Tell observers whose named state has changed, and into which."""
        sim, after = self._sim, self._sim.agents.columns[column]
        changed = np.flatnonzero(after[: sim.agents.owned] != before[: sim.agents.owned])
        news = [
            (column, names[value], np.sort(sim.agents.id[changed[after[changed] == value]]).tolist())
            for value in np.unique(after[changed]).tolist()
        ]
        if news:
            sim.observers.news(sim, column, news)

    def _let_fight(self, now: Now) -> None:
        """Squads fight; observers are notified of that and of what squads do."""
        sim = self._sim
        if len(died := sim.population.let_fight(now)):
            sim.observers.deaths(sim, died)
        assert sim.population.squads is not None
        if sim.observers and (news := sim.population.squads.log.of(now.step)):
            sim.observers.squads(sim, [sim.population.squads.told_of(each) for each in news])

    def plan(self) -> Moment:
        """Run the planners; the returned moment has their guidance."""
        sim, moment, guidance = self._sim, self._with_beliefs(self.moment()), self.guidance
        if sim.encounter_watch is not None:
            sim.encounter_watch.begin(sim.agents, sim.world, time=sim.time)
        self._settling.begin(sim.agents)
        if sim.layers.somebody_is_directed:
            if guidance.directions.shape != sim.agents.position.shape:
                guidance.directions = np.zeros_like(sim.agents.position)
            clear(guidance.directions)
        guidance.memory = {name: sim.agents.columns[name].copy() for name in sim.layers.planner_memory}
        guidance.attributes = {name: sim.agents.columns[name].copy() for name in sim.layers.planner_sets}
        guidance.courses = []
        for planning in sim.layers.plannings:
            planning.plan(self._for_groups(moment, planning.groups), guidance)
        sim.agents.columns |= guidance.memory
        swap_in(guidance.attributes, "the planner", sim.agents, sim.world, moment.members)
        if sim.layers.somebody_is_directed and len(moment.waiting):
            guidance.directions[moment.waiting] = 0.0
        if sim.layers.somebody_walks_on:
            walking_out = sim.agents.leaves_by != STAYS
            guidance.directions[walking_out] = sim.agents.heading[walking_out]
        return replace(moment, given=guidance)

    def _let_learn(self, knowledge: SharedKnowledge) -> None:
        """Agents look around and tell each other; observers are notified of what they learnt."""
        knowledge.learn(self.moment())
        if self._sim.observers and len(news := knowledge.news):
            self._sim.observers.learnt(self._sim, knowledge.as_table(news))

    def _with_beliefs(self, moment: Moment) -> Moment:
        """The same moment with what agents believe, if anybody's knowledge is limited."""
        knowledge = self._sim.layers.knowledge
        return moment if knowledge is None else replace(moment, beliefs=knowledge.beliefs(moment.state, moment.world))

    def _for_groups(self, moment: Moment, groups: tuple[int, ...]) -> Moment:
        return replace(moment, members=self._sim.population.members(groups), groups=groups)

    def sense(self, phase: Phase, moment: Moment) -> Moment:
        """Run the environment, if any model of the phase needs to know what is near."""
        sim = self._sim
        sim.cells.begin(sim.agents, sim.world)
        if not phase.senses:
            return replace(moment, sensed=None)
        near = sim.environment.sense(moment)
        if not isinstance(near, Near):
            raise ModelError(
                f"{type(sim.environment).__name__}.sense returned {type(near).__name__}; it must return a Near, an "
                f"object of a class that extends tropel.contracts.Near"
            )
        return replace(moment, sensed=in_view(near, moment))

    def steer(self, phase: Phase, moment: Moment) -> None:
        """Run the models of a phase."""
        sim = self._sim
        if len(sim.agents) > len(self._steered):
            self._steered = Steered.like(sim.agents, sim.layers.model_memory)
        else:
            self._steered.shrink(len(sim.agents))
            self._steered.begin(sim.agents, places=sim.layers.somebody_moves_itself)
        moment = self._adjust(phase, moment)
        for model, groups in phase.models:
            model.steer(self._for_groups(moment, groups), self._steered)

    def _adjust(self, phase: Phase, moment: Moment) -> Moment:
        """The same moment with directions as the habits of the agents change them."""
        busy = [(habit, groups) for habit, groups in phase.habits if not habit.is_idle(moment)]
        if not busy:
            return moment
        directions = moment.directions.copy()
        adjusted = replace(moment, given=replace(moment.guidance, directions=directions))
        for habit, groups in busy:
            habit.adjust(self._for_groups(adjusted, groups), directions)
        return adjusted

    def integrate(self, phase: Phase, moment: Moment) -> None:
        """Move all agents of a phase."""
        sim, moves = self._sim, self._sim.layers.moves(phase, self._sim.agents)
        self._settling.note(sim.agents, self._steered, moves, sim.dt)
        if sim.collision_watch is not None and phase is sim.layers.phases[-1] and sim.layers.somebody_may_collide:
            # Collisions are found afterwards, from where agents were before.
            sim.cells.sort_now()
        bodies = sim.layers.bodies(phase, moment, self._yield_key)
        integrate(sim.agents, self._steered, sim.world, sim.dt, moves=moves, bodies=bodies, reduce=sim.reduce)

    def note_collisions(self) -> None:
        """Find the collisions of the step that has just been made."""
        sim = self._sim
        if sim.collision_watch is not None and sim.layers.somebody_may_collide:
            sim.collision_watch.look(
                sim.agents,
                sim.cells.cell_list,
                sim.world,
                step=sim.step_number - 1,
                dt=sim.dt,
                known=self._known_pairs("collisions"),
            )

    def note_encounters(self) -> None:
        """Find who came near whom in the step that has just been made."""
        sim = self._sim
        if sim.encounter_watch is not None:
            sim.encounter_watch.look(
                sim.agents, sim.world, step=sim.step_number - 1, dt=sim.dt, known=self._known_pairs("encounters")
            )

    def _known_pairs(self, purpose: str) -> KnownPairs | None:
        """What the environment knows of pairs that came close, if it knows any."""
        environment = self._sim.environment
        if not environment.knows_pairs():
            return None
        return functools.partial(environment.pairs_within, purpose, self._sim.agents)

    def finish_encounters(self) -> None:
        """End the encounters of agents that have left, and report what happened."""
        sim = self._sim
        if sim.encounter_watch is not None:
            sim.encounter_watch.finish(sim.agents, time=sim.time)

    def settle(self) -> None:
        """Notify the models that want to know how the step turned out."""
        if self._settling.told:
            self._settling.tell(replace(self.moment(), given=self.guidance), self._sim.population.members)

    def begin_to_move(self) -> None:
        """An event is about to move agents; call `settle` afterwards."""
        self._settling.begin(self._sim.agents)
