"""How long a step takes: our steering models compared with JuPedSim's collision-free speed model.

The same people, one per square metre, walk to the same point through the same place. Whole steps count on both sides:
planning, sensing, steering, moving. Ours do not watch for collisions here, since JuPedSim does not either. JuPedSim
runs on one thread by design. In every round, all crowds of all cases make a few steps, one after another. The best step
of each is shown; ratios are medians over the rounds, so that a temporarily busy machine slows down both sides.
"""

from __future__ import annotations

import importlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
import shapely

from tropel.agents.groups import Group
from tropel.agents.state import AgentState, Floats
from tropel.bench.steering_scenes import BODY, SENSE_RADII, usual_speeds
from tropel.contracts import Model, Planner
from tropel.errors import MissingExtraError, ModelError
from tropel.local.collision_free_speed import CollisionFreeSpeed
from tropel.local.dynamical.model import Dynamical
from tropel.local.orca.model import ORCA
from tropel.local.social_force import SocialForce
from tropel.local.walk.model import Walk
from tropel.planning.direct import Direct
from tropel.planning.flow.model import FlowField
from tropel.simulation import Simulation
from tropel.world import Target, World

# The steering models that are compared, by their names in the tables.
OURS = "dynamical"
PAPERS = "dynamical as in the papers"
#: The collision-free speed model, which JuPedSim has as well.
SAME_MODEL = "CFSM"
RECIPROCAL = "ORCA"
FORCES = "social force"
WALKING = "walk"


def _as_in_the_papers() -> Dynamical:
    """Without the extensions of the papers' equations."""
    return Dynamical(anticipation=0.0, weight_memory=0.0, crowding="all", solid_bodies=False)


#: Each makes a fresh model, with its default parameters.
MODELS: dict[str, Callable[[], Model]] = {
    OURS: Dynamical,
    PAPERS: _as_in_the_papers,
    SAME_MODEL: CollisionFreeSpeed,
    RECIPROCAL: ORCA,
    FORCES: SocialForce,
    WALKING: Walk,
}
#: Those whose steps are timed.
TIMED = (OURS, SAME_MODEL, RECIPROCAL, FORCES, WALKING)


# JuPedSim is an optional extra: `pip install 'tropel[bench]'`.


class JuPedSimCrowd:
    """JuPedSim's collision-free speed model with default parameters, and the agents of a state, all going to one place.

    JuPedSim finds the path around obstacles itself, again in every step.
    """

    def __init__(self, agents: AgentState, *, walkable: shapely.Polygon, goal: tuple[float, float], dt: float) -> None:
        jupedsim = _jupedsim()
        self._sim = jupedsim.Simulation(model=jupedsim.CollisionFreeSpeedModel(), geometry=walkable, dt=dt)
        stage = self._sim.add_direct_steering_stage()
        journey = self._sim.add_journey(jupedsim.JourneyDescription([stage]))
        self._ids = []
        for place, speed, radius in zip(agents.position, agents.desired_speed, agents.radius, strict=True):
            agent = jupedsim.CollisionFreeSpeedModelAgentParameters(
                position=(float(place[0]), float(place[1])),
                desired_speed=float(speed),
                radius=float(radius),
                journey_id=journey,
                stage_id=stage,
            )
            self._ids.append(self._sim.add_agent(agent))
            self._sim.agent(self._ids[-1]).target = goal

    def __len__(self) -> int:
        return len(self._ids)

    def step(self) -> None:
        """Move all agents forward by dt."""
        self._sim.iterate()

    @property
    def position(self) -> Floats:
        """(N, 2), in the order of the state that the agents came from [m]."""
        return np.array([self._sim.agent(number).position for number in self._ids])


def _jupedsim() -> Any:
    try:
        return importlib.import_module("jupedsim")
    except ImportError as error:
        raise MissingExtraError("the comparison with JuPedSim", "bench") from error


_DT = 0.05
#: Steps before the first round. They compile the kernels and let fast agents catch up with slow ones: when a crowd
#: starts to walk, no agent has another to overtake yet, and the dynamical model is faster than later.
_SETTLE = 30
#: How far the same model may move people apart in two programs, as a share of their path.
_SAME_WAY = 0.01
JUPEDSIM = "JuPedSim CFSM"


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where people walk, and their goal."""

    walkable: shapely.Polygon
    start: shapely.Polygon  #: the part that is filled with people at the start
    goal: tuple[float, float]
    straight: bool  #: whether nothing is in the way


def plaza(agents: int) -> Place:
    """Open space with one agent per square metre."""
    edge = math.sqrt(agents)
    return Place(
        walkable=shapely.box(-10.0, -10.0, edge + 60.0, edge + 10.0),
        start=shapely.box(0.0, 0.0, edge, edge),
        goal=(edge + 50.0, edge / 2.0),
        straight=True,
    )


def pillars(agents: int) -> Place:
    """A corridor 16 m wide with four rows of square pillars, 68 of them for a thousand agents."""
    columns = round(agents / 59.0)
    filled = 4.0 * columns
    posts = [
        shapely.box(x - 0.4, y - 0.4, x + 0.4, y + 0.4)
        for x in 4.0 * np.arange(columns) + 4.0
        for y in (2.0, 6.0, 10.0, 14.0)
    ]
    return Place(
        walkable=shapely.box(0.0, 0.0, filled + 12.0, 16.0).difference(shapely.union_all(posts)),
        start=shapely.box(0.0, 0.0, filled, 16.0),
        goal=(filled + 11.0, 8.0),
        straight=False,
    )


@dataclass(frozen=True, kw_only=True)
class Case:
    """A number of agents in a place; `label` names the ratios."""

    label: str
    place: Callable[[int], Place]
    agents: int
    bursts: int = 2  #: of two steps in a round, on one thread and then possibly on all
    peer: bool = True  #: whether JuPedSim walks too
    all_threads: bool = False  #: whether ours is measured on all threads as well


#: All crowds walk equally far, because people who walk to one point push each other more and more.
CASES = (
    Case(label="open_1k", place=plaza, agents=1_000, bursts=4),
    Case(label="open_10k", place=plaza, agents=10_000, all_threads=True),
    Case(label="open_100k", place=plaza, agents=100_000, peer=False, all_threads=True),
    Case(label="pillars_1k", place=pillars, agents=1_000, bursts=4),
)
ROUNDS = 9
_STEPS = 2  #: timed together


@dataclass(kw_only=True)
class Timed:
    """A crowd, and its shortest step time on a number of threads, in each round [s]."""

    model: str
    threads: int
    crowd: Simulation | JuPedSimCrowd
    rounds: list[float] = field(default_factory=list)

    def round(self, bursts: int) -> None:
        if isinstance(self.crowd, Simulation):
            self.crowd.threads = self.threads
        best = math.inf
        for _ in range(bursts):
            begun = time.perf_counter()
            for _ in range(_STEPS):
                self.crowd.step()
            best = min(best, (time.perf_counter() - begun) / _STEPS)
        self.rounds.append(best)

    def row(self, case: Case) -> dict[str, Any]:
        row: dict[str, Any] = {"scene": case.label, "model": self.model, "agents": case.agents, "threads": self.threads}
        if isinstance(self.crowd, Simulation):
            row["sense_radius_m"] = SENSE_RADII * BODY
            row["neighbours"] = _neighbours(self.crowd)
        row["ns_per_agent_step"] = min(self.rounds) / case.agents * 1e9
        row["agent_steps_per_s"] = round(case.agents / min(self.rounds))
        return row


class Contest:
    """One case: our models, on one thread and possibly on all, and JuPedSim."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.note = ""  #: why JuPedSim is missing, if it is
        place = case.place(case.agents)
        ours = {model: crowd_in(place, model, agents=case.agents) for model in TIMED}
        threads = _threads_of(case)
        self.timed = [Timed(model=model, threads=n, crowd=sim) for model, sim in ours.items() for n in threads]
        same = ours[SAME_MODEL].agents
        start = same.position.copy()
        theirs = self._peer(place, same)
        for sim in ours.values():
            sim.threads = max(threads)
        _settle(*ours.values())
        if theirs is not None:
            self.timed.append(Timed(model=JUPEDSIM, threads=1, crowd=theirs))
            _settle(theirs)
            if place.straight:
                check_same_way(start, same.position, theirs.position, what=case.label)

    def _peer(self, place: Place, agents: AgentState) -> JuPedSimCrowd | None:
        if not self.case.peer:
            return None
        try:
            return JuPedSimCrowd(agents, walkable=place.walkable, goal=place.goal, dt=_DT)
        except MissingExtraError as error:
            self.note = str(error)
            return None

    def round(self) -> None:
        for timed in self.timed:
            timed.round(self.case.bursts)

    def seconds(self, model: str) -> Floats | None:
        """Time of a step on one thread, for each round [s]."""
        of_model = (timed.rounds for timed in self.timed if timed.model == model and timed.threads == 1)
        return next((np.array(rounds) for rounds in of_model), None)

    def rows(self) -> list[dict[str, Any]]:
        """One row per model and number of threads, once all rounds are over."""
        return [timed.row(self.case) for timed in self.timed]

    def ratios(self) -> dict[str, float]:
        """JuPedSim's time over ours, each on one thread."""
        theirs = self.seconds(JUPEDSIM)
        found = {}
        for model, tail in ((OURS, ""), (SAME_MODEL, "_same_model")):
            ours = self.seconds(model)
            if theirs is not None and ours is not None:
                found[f"jupedsim_over_ours_{self.case.label}{tail}"] = float(np.median(theirs / ours))
        return found


def flatness(contests: Sequence[Contest]) -> dict[str, float]:
    """Smallest over largest cost per agent of our model over the sizes of the plaza: 1 is flat."""
    costs = {
        contest.case.label.removeprefix("open_"): seconds / contest.case.agents
        for contest in contests
        if contest.case.place is plaza and (seconds := contest.seconds(OURS)) is not None
    }
    if len(costs) < 2:
        return {}
    sizes, table = list(costs), np.array(list(costs.values()))
    return {f"flat_{sizes[0]}_to_{sizes[-1]}": float(np.median(table.min(axis=0) / table.max(axis=0)))}


def check_same_way(start: Floats, ours: Floats, theirs: Floats, *, what: str) -> None:
    """In the open, the same model must give the same paths in both programs; otherwise times mean nothing."""
    walked = float(np.linalg.norm(theirs - start, axis=1).mean())
    apart = float(np.linalg.norm(theirs - ours, axis=1).mean())
    if not apart <= _SAME_WAY * walked:
        raise ModelError(
            f"'{what}': people who walked {walked:.3g} m in JuPedSim are {apart:.3g} m away from where the same model "
            f"moved them here; a comparison of different motions means nothing"
        )


def _planner(place: Place, model: str) -> Planner:
    """The shortest paths, which JuPedSim takes too. `Walk` is timed as people get it without choosing."""
    if model == WALKING:
        return FlowField()
    return Direct() if place.straight else FlowField(streams=False)


def crowd_in(place: Place, model: str, *, agents: int, threads: int = 1) -> Simulation:
    """People at random positions, the same for every model, who walk to the goal of the place."""
    world = World(place.walkable, targets={"far end": Target(position=place.goal)})
    crowd = Group(
        "people",
        count=agents,
        region=place.start,
        goal="far end",
        radius=BODY,
        sense_radius=SENSE_RADII * BODY,
        desired_speed=usual_speeds(),
    )
    sim = Simulation(
        world,
        crowd,
        planning=_planner(place, model),
        local=MODELS[model](),
        dt=_DT,
        seed=1,
        threads=threads,
        watch_collisions=False,
        title=model,
    )
    sim.agents.heading[:] = (1.0, 0.0)
    return sim


def _settle(*crowds: Simulation | JuPedSimCrowd) -> None:
    for crowd in crowds:
        for _ in range(_SETTLE):
            crowd.step()


def _threads_of(case: Case) -> list[int]:
    most: int = numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]
    return sorted({1, most}) if case.all_threads else [1]


def _neighbours(sim: Simulation) -> float:
    """Mean number of neighbours within the sense radius."""
    return len(sim.sense().csr().indices) / len(sim.agents)
