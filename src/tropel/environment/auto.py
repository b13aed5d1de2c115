"""The environment that is expected to be faster: the grid or the triangulation, chosen once, before the first step.

Steering kernels walk cells in both environments, and cells cost the same in both. So a triangulation only pays if a
model reads the lists of `near.lists` (`ModelDeclaration(reads_lists=True)`), and if keeping these takes less time than
finding them anew. The rule estimates both from radii, speeds, the time step and the density of the crowd. Its numbers
are fitted to `tropel bench kinetic`, which tells in how many of its cases the rule is right (`auto_is_right`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import AgentState, Floats
from tropel.contracts import Environment, EnvironmentDeclaration, Moment, Near
from tropel.environment.grid import Grid
from tropel.environment.kinetic.lists import best_leash
from tropel.environment.kinetic.model import Kinetic
from tropel.environment.kinetic.quiet import MOST_MOVING
from tropel.errors import CheckpointError
from tropel.world import World


@dataclass(frozen=True, kw_only=True)
class Crowd:
    """What the rule looks at."""

    agents: int
    dim: int
    density: float  #: agents per m² or m³
    radius: float  #: median sense radius [m]
    move: float  #: mean move of those that move, in a step [m]
    moving: float  #: share of the agents that move


#: What keeping the structure takes in the plane and in space [ns per agent and step]: at rest; for each agent that
#: moves; and for each that moves by the mean distance between agents.
_STRUCTURE = {2: (40.0, 85.0, 1650.0), 3: (60.0, 700.0, 35_000.0)}
#: What its lists take: always; for each that moves in a quiet crowd; for each entry that is filled, and tested.
_LISTS, _QUIET_LISTS, _FILL, _TEST = 70.0, 2500.0, 11.0, 3.0
#: What the grid's lists take: sorting and looking around; for each entry.
_SORT, _ENTRY = 110.0, 3.5
#: What the calls of a step take [ns], in either; the triangulation has more of them.
_GRID_CALLS, _KINETIC_CALLS = 0.1e6, 0.45e6


def _within(crowd: Crowd, radius: float) -> float:
    """How many agents are within a radius, on average."""
    volume = math.pi * radius**2 if crowd.dim == 2 else 4.0 / 3.0 * math.pi * radius**3
    return min(crowd.density * volume, float(crowd.agents))


def grid_lists_take(crowd: Crowd) -> float:
    """What it takes to find all lists anew [ns per agent and step]."""
    return _SORT + _ENTRY * _within(crowd, crowd.radius) + _GRID_CALLS / crowd.agents


def kinetic_lists_take(crowd: Crowd) -> float:
    """What it takes to keep a triangulation and lists [ns per agent and step]."""
    at_rest, each, across = _STRUCTURE[crowd.dim]
    spacing = crowd.density ** (-1.0 / crowd.dim)
    structure = at_rest + crowd.moving * (each + across * crowd.move / spacing)
    calls = _KINETIC_CALLS / crowd.agents
    if crowd.moving < MOST_MOVING:
        return structure + _QUIET_LISTS * crowd.moving + calls
    wide = 2.0 * best_leash(crowd.radius, crowd.move)
    listed, certain = _within(crowd, crowd.radius + wide), _within(crowd, max(crowd.radius - wide, 0.0))
    filled = _FILL * listed * min(2.0 * crowd.move / wide, 1.0)
    return structure + _LISTS + filled + _TEST * (listed - certain) + calls


class Auto(Environment):
    """Takes `Grid` or `Kinetic`, whichever is expected to be faster; `chosen` and `why` tell which and why."""

    def __init__(self) -> None:
        self.declares = EnvironmentDeclaration(periodic_space=True)
        self.chosen: Environment = Grid()
        self.why = "nothing is known of the crowd yet"

    def prepare(self, moment: Moment) -> None:
        kind, self.why = self._choose(moment)
        self._take(kind)
        self.chosen.prepare(moment)

    def _choose(self, moment: Moment) -> tuple[type[Environment], str]:
        if any(moment.world.period):
            return Grid, "the world is periodic"
        if not self.lists_are_read:
            return Grid, "no model reads lists, and cells are the same in both"
        if len(moment.state) < 2:
            return Grid, "there is no crowd yet"
        crowd = _crowd_of(moment)
        anew, kept = grid_lists_take(crowd), kinetic_lists_take(crowd)
        why = f"lists should take {anew:.0f} ns per agent and step on the grid, and {kept:.0f} ns in a triangulation"
        return (Grid if anew <= kept else Kinetic), why

    def _take(self, kind: type[Environment]) -> None:
        self.chosen = kind()
        self.chosen.lists_are_read = self.lists_are_read

    @property
    def _name(self) -> str:
        return "kinetic" if isinstance(self.chosen, Kinetic) else "grid"

    def sense(self, moment: Moment) -> Near:
        return self.chosen.sense(moment)

    def tally(self) -> dict[str, int | str]:
        return {"environment": f"{self._name}: {self.why}", **self.chosen.tally()}

    def offers(self) -> tuple[object, ...]:
        return self.chosen.offers()

    def pairs_within(
        self, purpose: str, state: AgentState, before: Floats, extent: Floats
    ) -> NDArray[np.uint32] | None:
        return self.chosen.pairs_within(purpose, state, before, extent)

    def known_to(self, row: int, state: AgentState, world: World) -> NDArray[np.int64]:
        return self.chosen.known_to(row, state, world)

    # The crowd of a checkpoint is not the one that the choice was made for, and lists come in another order from the
    # other environment. So a checkpoint has the choice.

    def state(self) -> dict[str, NDArray[Any]]:
        return {"chosen": np.array(self._name), "why": np.array(self.why)}

    def restore(self, stored: Mapping[str, NDArray[Any]]) -> None:
        kinds: dict[str, type[Environment]] = {"grid": Grid, "kinetic": Kinetic}
        name = str(stored.get("chosen", "grid"))
        if name not in kinds:
            raise CheckpointError(f"'chosen' must be 'grid' or 'kinetic', not {name!r:.40}")
        self._take(kinds[name])
        self.why = str(stored.get("why", "a checkpoint says so"))[:200]


def _crowd_of(moment: Moment) -> Crowd:
    state = moment.state
    dim, position, speed = state.dim, state.position, state.desired_speed
    wide = np.maximum(np.ptp(position, axis=0), 1.0)
    moves = speed[speed > 0.0]
    return Crowd(
        agents=len(state),
        dim=dim,
        density=len(state) / float(wide.prod()),
        radius=float(np.median(state.sense_radius)),
        move=moment.dt * float(moves.mean()) if len(moves) else 0.0,
        moving=len(moves) / len(state),
    )
