"""How many agents a group has, and whether so many can be there: asked before anything of that number is made."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np

from tropel.agents.distributions import Normal, Uniform
from tropel.agents.groups import Group
from tropel.agents.room import Region
from tropel.agents.sources import Source
from tropel.agents.state import AgentState
from tropel.errors import SpawnError
from tropel.memory import require_memory
from tropel.world import World

#: How often an agent's columns are there at a time: drawn, stored, steered, sorted by cell and recorded.
_COPIES = 5.0
_MANY = 100_000
_MANY_WAITING = 10_000


def size_of(group: Group, world: World, state: AgentState, *, body: float | None) -> int:
    """The number of agents that a group's `count` or `density` means; raises when there is no room or no memory.

    `body` is the radius that they have whatever they were to have, if their model says so [m].
    """
    count = int(group.count or 0)
    if group.density is not None:
        count = Region(world, group.region, group.name).count_for(group.density)
    least = _least(group.parameters.get("radius", group.radius))
    # Of fewer it is found out exactly how many fit, when places are looked for.
    if count > _MANY and least > 0.0 and body is None:
        Region(world, group.region, group.name).check_count(count, least, group.name)
    require_memory_for(count, state, group.name)
    return count


def most_at_once(waiting: int, source: Source, world: World, *, body: float | None) -> int:
    """How many of those who wait at a source are worth trying to place in one step: no more than its region can hold.

    Asked only where many wait: to try all of a million in every step, for a place that holds ten, has no end.
    """
    if waiting <= _MANY_WAITING:
        return waiting
    least = _least(source.parameters.get("radius", source.radius)) if body is None else body
    fit = Region(world, source.region, source.group).most(least) if least > 0.0 else 0.0
    return int(min(waiting, max(fit, _MANY_WAITING)))


def require_memory_for(count: int, state: AgentState, who: str) -> None:
    """Raise when so many more agents would not fit into the memory."""
    columns = [column.filled(1, state.dim).nbytes for column in state.declared.values()]
    require_memory(
        _COPIES * sum(columns) * min(float(count), 1e300),
        f"group '{who}': {count:,} agents",
        "use fewer agents",
        error=SpawnError,
    )


def _least(radius: Any) -> float:
    """A length that no radius drawn from this is below; 0 when nothing is known."""
    if isinstance(radius, Normal | Uniform):
        return max(radius.low or 0.0, 0.0)
    if isinstance(radius, Real):
        return max(float(radius), 0.0)
    return max(float(radius.min(initial=np.inf)), 0.0) if isinstance(radius, np.ndarray) else 0.0
