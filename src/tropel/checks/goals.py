"""Groups that want to go somewhere where there is nothing to go to: no exit, no target, or only closed exits.

Also people that are sent to a point behind a wall by a planner that goes to points in a straight line.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.walls import chord_blocked
from tropel.agents.goals import goal_told
from tropel.agents.state import NEAREST_EXIT, NO_GOAL, POINT
from tropel.checks.finding import Finding, named, people
from tropel.checks.later import Later
from tropel.checks.subjects import alive, goal_names, is_flock
from tropel.registry import PLANNERS
from tropel.world.places import point_text

if TYPE_CHECKING:
    from tropel.simulation import Simulation

#: Planners that lead agents to their goals, and nowhere without one.
_LEAD_TO_GOALS = ("direct", "flow_field", "path_plans", "harmonic")


def check_goals(sim: Simulation, later: Later) -> Iterator[Finding]:
    """Groups whose goal does not exist, or is closed and never opened."""
    living = alive(sim)
    for number, group in enumerate(sim.groups):
        rows = np.flatnonzero(living & (sim.agents.group == number))
        if not is_flock(sim, number):
            yield from _missing(sim, number, group, len(rows), later)
        yield from _behind_walls(sim, number, group, rows)
        for goal in np.unique(sim.agents.goal[rows]).tolist():
            count = int((sim.agents.goal[rows] == goal).sum())
            if goal > NO_GOAL and sim.world.exits and not goal_names(sim.world, goal):
                yield from _closed(sim, goal, group, count, later)


def _missing(sim: Simulation, number: int, group: str, count: int, later: Later) -> Iterator[Finding]:
    """A group that is declared to look for an exit or a target in a world that has neither."""
    wanted = goal_told(sim.population.declared_goal(group))
    column = sim.agents.columns.get("leader")
    members = sim.agents.group == number
    follows = column is not None and bool((column[members] >= 0).any())
    # Whoever has a list of stages may wait first; the places in it are known to exist.
    somewhere = count and bool(((sim.agents.goal[members] != NO_GOAL) | (sim.agents.agenda[members] >= 0)).all())
    if sim.world.exits or sim.world.targets or wanted == "none" or follows or somewhere:
        return
    own_planner = PLANNERS.name_of(type(sim.layers.planners[number])) not in _LEAD_TO_GOALS
    soon = later.targets or later.goal_of(group) is not None
    who = people(count) if count else "newcomers"
    yield Finding(
        code="no_goal",
        message=f"{who} of group '{group}' cannot go to the {wanted}: the world has no exit and no target"
        + (" yet" if soon else ""),
        remedy='add an exit or a target, or give them the goal "none"',
        severity="note" if soon or own_planner else "warning",
        group=group,
        agents=count,
    )


def _behind_walls(sim: Simulation, number: int, group: str, rows: NDArray[np.int64]) -> Iterator[Finding]:
    """People that are sent to a point they do not see, by a planner that goes there in a straight line."""
    rows = rows[sim.agents.goal[rows] == POINT]
    planner = sim.layers.planners[number]
    if not len(rows) or sim.world.dim == 3 or PLANNERS.name_of(type(planner)) not in _LEAD_TO_GOALS:
        return
    walls, agents = sim.world.wall_grid(2.0), sim.agents
    hidden = [row for row in rows.tolist() if chord_blocked(*agents.position[row], *agents.goal_point[row], walls)]
    if hidden:
        yield Finding(
            code="point_behind_wall",
            message=f"{people(len(hidden))} of group '{group}' would go straight to a point, such as "
            f"{point_text(agents.goal_point[hidden[0]])}, and walls are in between",
            remedy=f"{type(planner).__name__} plans around walls for named places only: add a target there and send "
            "them to it",
            group=group,
            agents=len(hidden),
            place=tuple(map(float, agents.position[hidden[0]])),
        )


def _closed(sim: Simulation, goal: int, group: str, count: int, later: Later) -> Iterator[Finding]:
    """A group whose exits are all closed."""
    exits = sim.world.exits
    wanted = [n for n in exits if not exits[n].open and goal in (NEAREST_EXIT, sim.world.goal_numbers[n])]
    if not wanted:
        return
    opening = {name: later.exits[name] for name in wanted if name in later.exits}
    changed = later.goal_of(group)
    what = f"all exits are closed ({named('exit', wanted)})" if goal == NEAREST_EXIT else f"the {named('exit', wanted)}"
    message = f"{people(count)} of group '{group}' cannot leave: {what}"
    message += "" if goal == NEAREST_EXIT else " is closed"
    if opening:
        message += f" until {min(opening.values()):g} s"
    elif changed is not None:
        message += f", until they get another goal at {changed:g} s"
    elif later.function is not None:
        message += f", unless a function changes that from {later.function:g} s on"
    yield Finding(
        code="exits_closed",
        message=message,
        remedy="open one, from the start or with an event (open_exit)",
        severity="note" if opening or changed is not None or later.function is not None else "warning",
        group=group,
        agents=count,
    )
