"""A run in which nobody moves any more although somebody wants to: it is said once, with the reason as far as known.

The watch looks about once per simulated second and changes nothing. It counts people that walk and have a goal, have
waited out their delay, are not there yet and want to move. It keeps quiet while a scheduled event may free them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import NEAREST_EXIT, NEAREST_TARGET, NO_GOAL, POINT
from tropel.checks.finding import Finding, at, people, tell
from tropel.checks.later import something_may_free_them
from tropel.checks.subjects import alive, goal_names, is_flock
from tropel.contracts.declarations import Follows
from tropel.run.observers import Every, Observer
from tropel.world.goals import distance_to_shape, shape_of_goal

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: For how long nobody moves before it is said [s].
PATIENCE = 30.0
#: Somebody who has come this share of the wanted distance has moved; people that are held still fidget.
_HEADWAY = 0.05
#: People within this distance of each other stand together [m].
_TOGETHER = 1.0


class StandstillWatch(Observer):
    """Looks whether anybody moves. `finding` is what it has said, if anything."""

    trigger = Every(seconds=1.0)

    def __init__(self) -> None:
        self.finding: Finding | None = None
        self._since = 0.0
        self._ids: NDArray[np.int64] | None = None
        self._position = np.empty(0)

    def step_done(self, sim: Simulation) -> None:
        if self.finding is not None or not any(_walkers(sim)):
            return
        agents = sim.agents
        known = self._ids is not None and self._since <= sim.time and np.array_equal(self._ids, agents.id)
        if not known or self._has_moved(sim):
            self._since, self._ids, self._position = sim.time, agents.id.copy(), agents.position.copy()
        elif sim.time - self._since >= PATIENCE:
            rows = wanting(sim, since=sim.time - PATIENCE)
            if len(rows) and not something_may_free_them(sim):
                self.finding = _finding(sim, rows, sim.time - self._since)
                tell([self.finding])

    def event(self, sim: Simulation, text: str) -> None:
        self._ids = None  # people may need a moment to react

    def _has_moved(self, sim: Simulation) -> bool:
        agents = sim.agents
        moved = np.linalg.norm(agents.position - self._position, axis=1)
        headway = _HEADWAY * PATIENCE * agents.desired_speed
        return bool(((moved > np.maximum(headway, 2.0 * agents.radius)) & alive(sim)).any())


def _walkers(sim: Simulation) -> list[bool]:
    """For each group, whether it is people that walk."""
    return [not is_flock(sim, group) for group in range(len(sim.groups))]


def wanting(sim: Simulation, *, since: float) -> NDArray[np.int64]:
    """Rows of the people that have wanted to move since a time [s]: walkers with a goal that they have not reached."""
    agents = sim.agents
    want = np.array(_walkers(sim), dtype=bool)[agents.group] & alive(sim) & (agents.goal != NO_GOAL)
    want &= (agents.stage >= 0) & (agents.stage_since <= since) & (agents.desired_speed > 0.0)
    for goal in np.unique(agents.goal[want]).tolist():
        rows = np.flatnonzero(want & (agents.goal == goal))
        want[rows[_gathered(sim, rows, goal)]] = False
    return np.flatnonzero(want)


def _gathered(sim: Simulation, rows: NDArray[np.int64], goal: int) -> NDArray[np.bool_]:
    """Who is at a place where nobody leaves, or in the crowd around it that cannot all be there."""
    there = np.zeros(len(rows), dtype=bool)
    goals, body = sim.world.goals(), float(sim.agents.radius[rows].max(initial=0.0))
    # A loose crowd of n bodies around a place is about this wide.
    crowd = 2.0 * body * np.sqrt(len(rows)) + 2.0 * body
    if goal == POINT:
        return np.asarray(np.linalg.norm(sim.agents.position[rows] - sim.agents.goal_point[rows], axis=1) <= crowd)
    for name in goal_names(sim.world, goal):
        number = sim.world.goal_numbers[name]
        if name in sim.world.exits or goals.absorbs[number]:
            continue
        if goals.is_target[number]:
            away = np.linalg.norm(sim.agents.position[rows] - goals.position[number], axis=1) - goals.radius[number]
        else:
            away = distance_to_shape(shape_of_goal(sim.world, name), sim.agents.position[rows])
        there |= away <= crowd
    return there


def _finding(sim: Simulation, rows: NDArray[np.int64], lasted: float) -> Finding:
    agents = sim.agents
    goal = agents.goal[rows]
    missing = [each for each in np.unique(goal).tolist() if each != POINT and not goal_names(sim.world, each)]
    nowhere = np.isin(goal, missing)
    lost = _without_direction(sim, rows) & ~nowhere
    held = len(rows) - int(nowhere.sum()) - int(lost.sum())
    kinds = {NEAREST_EXIT: "open exit", NEAREST_TARGET: "target"}
    what = kinds.get(int(goal[nowhere][0]), "open goal") if nowhere.any() else ""
    why = {
        f"without any {what}": int(nowhere.sum()),
        "without a direction from their planner, which knows no path from there": int(lost.sum()),
        "held by others or by walls": held,
    }
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in why.items() if count)
    place, size = _largest_cluster(agents.position[rows])
    return Finding(
        code="standstill",
        message=f"nobody has moved for {lasted:.0f} s (t = {sim.time:g} s), though {people(len(rows))} should: "
        f"{reasons}; the largest cluster, of {size:,}, stands around {at(place)}",
        remedy=_remedy(nowhere=int(nowhere.sum()), lost=int(lost.sum()), held=held),
        agents=len(rows),
        place=tuple(map(float, place)),
    )


def _remedy(*, nowhere: int, lost: int, held: int) -> str:
    """What to do about what concerns most of them."""
    if nowhere >= max(lost, held):
        return "open an exit, from the start or with an event"
    if lost >= held:
        return "`tropel validate` or `sim.check()` tells what blocks their path, if it is not the planner"
    return "plan with walls in mind (flow_field) if they press against one, or widen what they are jammed in"


def _without_direction(sim: Simulation, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Who was given no direction in the last step; crowds that follow values on the ground never are."""
    directed = np.array([model.declares.follows is Follows.DIRECTIONS for model in sim.layers.models])
    lost = directed[sim.agents.group[rows]]
    if lost.any():
        lost &= ~sim.directions[rows].any(axis=1)
    return np.asarray(lost)


def _largest_cluster(position: NDArray[np.float64]) -> tuple[NDArray[np.float64], int]:
    """The middle of the most people that stand together, and how many they are."""
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components
    from scipy.spatial import cKDTree

    pairs = cKDTree(position).query_pairs(_TOGETHER, output_type="ndarray")
    graph = coo_matrix((np.ones(len(pairs)), (pairs[:, 0], pairs[:, 1])), shape=(len(position),) * 2)
    labels = connected_components(graph, directed=False)[1]
    sizes = np.bincount(labels)
    return position[labels == sizes.argmax()].mean(axis=0), int(sizes.max())
