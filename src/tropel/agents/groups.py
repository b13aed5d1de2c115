"""Groups: named sets of agents that are declared together and may have their own planner and steering model.

In reading order: `Personal` with the properties that may differ from agent to agent, `Group`, and `Source`, which adds
agents while the simulation runs.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import normals, random_key, uniforms
from tropel.agents.bonds import check_bonds
from tropel.agents.distributions import draw_quantity
from tropel.agents.goals import aim_of
from tropel.agents.personality import Personality, draw_personality, shares_of
from tropel.agents.squads.squad import Squad, as_squad
from tropel.agents.stages.agendas import NOT_BEGUN
from tropel.agents.stages.stage import Stage, as_stages
from tropel.agents.stages.verbs import Go
from tropel.agents.state import DESIRED_SPEED, RADIUS, SENSE_RADIUS, Column
from tropel.errors import ParameterError, is_finite, named_parameters, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE, LATEST, is_whole_number, numbers_in
from tropel.foundation.quantities import Quantity, is_number
from tropel.world import World
from tropel.world.places import PlaceLike, as_place
from tropel.world.shapes import ShapeLike

#: No sensible group has more; larger ones are refused before any memory is allocated.
MOST_AGENTS = 1_000_000_000
DELAY = Quantity(name="delay", unit="s", low=0.0, high=1e12, about="how long the agent stands still at first")
#: Quantities that are fields of a group, not part of its `parameters`.
_PERSONAL: tuple[Quantity, ...] = (RADIUS, DESIRED_SPEED, SENSE_RADIUS, DELAY)


@dataclass(frozen=True, kw_only=True)
class Personal:
    """Per-agent properties; each is a number, a distribution or an array with one value per agent."""

    goal: PlaceLike = (
        "nearest exit"  #: a place (a name, a point, a `Place`), "nearest exit", "nearest target" or "none"
    )
    then: Annotated[Sequence[PlaceLike], CHECKED_ELSEWHERE] = ()  #: goals after that one: each is next on arrival
    repeat: bool = False  #: whether the first goal, or stage, follows the last
    #: instead of goals: what they do, one after the other, such as [Go("kiosk"), Wait(30.0), Go("exit")]
    stages: Annotated[Sequence[Stage | Mapping[str, Any]] | None, CHECKED_ELSEWHERE] = None
    radius: Any = RADIUS.default  #: of the body [m]
    desired_speed: Any = DESIRED_SPEED.default  #: when nothing is in the way [m/s]
    sense_radius: Any = SENSE_RADIUS.default  #: how far others are noticed, centre to centre [m]
    delay: Any = DELAY.default  #: stands still for this long at first [s]
    personality: Personality | None = None  #: a preset such as "cautious", or shares; `parameters` override it
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: columns that planners or steering models declare
    families: int | None = None  #: people per family: neighbours are grouped into families that stay together
    follow: str | None = None  #: a group, whose nearest agent is followed; the own group has one leader
    #: how one leader is designated, of the group to follow, of the own group or of each family: "nearest" to the goal,
    #: "central", or the number of an agent of that group from 0
    leader: Annotated[str | int | None, CHECKED_ELSEWHERE] = None

    def agenda(self, who: str) -> tuple[Stage, ...]:
        """What they do: the stages, or going to one goal after the other; nothing if there is one goal alone."""
        if self.stages is not None:
            return as_stages(self.stages, who)
        return tuple(Go(place) for place in (self.goal, *self.then)) if self.then else ()

    @property
    def first_goal(self) -> PlaceLike:
        """The goal, or the first place that the stages name."""
        if self.stages is None:
            return self.goal
        return next((place for stage in as_stages(self.stages, "") for place in stage.places()), "none")

    @property
    def leads_itself(self) -> bool:
        """Whether one of the newcomers, or of those of their group, leads the others."""
        own = self.group if isinstance(self, Source) else getattr(self, "name", None)
        return self.families is None and (self.follow == own or (self.follow is None and self.leader is not None))

    def values(
        self,
        *,
        world: World,
        columns: Mapping[str, Column],
        seed: int,
        group: str,
        ids: NDArray[np.int64],
        time: float,
    ) -> dict[str, Any]:
        """Columns for new agents with the given ids, each within the limits that `columns` declare."""
        drawn: dict[str, Any] = {}
        who = f"group '{group}'"

        def one_each(quantity: Quantity, value: Any) -> NDArray[np.float64]:
            return draw_quantity(quantity, value, seed=seed, purpose=f"{group}/{quantity.name}", ids=ids, who=who)

        for quantity in _PERSONAL:
            drawn[quantity.name] = one_each(quantity, getattr(self, quantity.name))
        delay = drawn.pop("delay")
        drawn |= {"stage": np.where(delay > 0.0, NOT_BEGUN, 0), "stage_since": time, "stage_until": time + delay}
        drawn["goal"], drawn["goal_point"] = aim_of(world, self.goal, who)
        if self.personality is not None:
            traits, speed = draw_personality(self.personality, seed=seed, group=group, ids=ids)
            drawn["desired_speed"] = drawn["desired_speed"] * speed
            drawn |= traits
        for name, value in self.parameters.items():
            drawn[name] = one_each(parameter_named(name, columns, who), value)
        return drawn


def check_goals(told: Personal, who: str) -> None:
    """Raise if goals are not given as places; whether the world has them is seen later."""
    as_place(told.goal, f"{who}: goal")
    if isinstance(told.then, str | Mapping) or not isinstance(told.then, Sequence):
        raise ParameterError(f'{who}: then is a list of goals, such as ["statue", [3.0, 4.0]], not {told.then!r:.60}')
    for goal in told.then:
        as_place(goal, f"{who}: then")
    if told.stages is None:
        if told.repeat and not told.then:
            raise ParameterError(f"{who}: repeat is for several goals; give those after the first one in then")
        return
    if told.then or told.goal != Personal.goal:
        raise ParameterError(f'{who}: give either stages or goal and then; a goal is the stage  {{ go = "…" }}')
    if not as_stages(told.stages, who):
        raise ParameterError(f"{who}: the list of stages is empty; leave it out if there is nothing to do")


def parameter_named(name: str, columns: Mapping[str, Column], who: str) -> Column:
    """The column that `parameters` of a group name; raises if there is none, or if it is a field of the group."""
    if name in PERSONAL_NAMES:
        raise ParameterError(f"{who}: {name} is not one of the parameters but a field of its own, as in  {name} = …")
    settable = {key: column for key, column in columns.items() if column.settable and key not in PERSONAL_NAMES}
    if name not in settable:
        raise ParameterError(f"{who}: agents have no parameter '{name}'; {suggest(name, settable)}")
    return settable[name]


#: Fields of `Personal` that are columns or become one.
PERSONAL_NAMES = frozenset({"goal", "then", "repeat", "stages", *(quantity.name for quantity in _PERSONAL)})


@named_parameters
@dataclass(frozen=True)
class Group(Personal):
    """Agents declared together.

    Give their number by `count`, by `density` [1/m², in 3D 1/m³] or by their `positions`, and the place by `region`: a
    name or a shape, in 3D a pair of corners. The default is the whole walkable area.
    """

    name: str
    _: KW_ONLY
    count: Annotated[int | None, CHECKED_ELSEWHERE] = None
    density: Annotated[float | None, CHECKED_ELSEWHERE] = None
    positions: Any = None
    region: str | ShapeLike | tuple[Sequence[float], Sequence[float]] | None = None
    #: makes it a squad, with a commander (its leader) that has the stages as mission
    squad: Annotated[Squad | None, CHECKED_ELSEWHERE] = None

    def __post_init__(self) -> None:
        name = self.name
        self._form_squad()
        given = [key for key in ("count", "density", "positions") if getattr(self, key) is not None]
        if len(given) != 1:
            what = "nothing" if not given else " and ".join(given)
            raise ParameterError(f"group '{name}': give exactly one of count, density or positions, not {what}")
        if self.count is not None and not (
            is_finite(self.count) and 0 <= self.count <= MOST_AGENTS and float(self.count).is_integer()
        ):
            raise ParameterError(
                f"group '{name}': count must be a whole number that is not negative, at most {MOST_AGENTS:,}, "
                f"not {reprlib.repr(self.count)}"
            )
        if self.density is not None and not (is_finite(self.density) and 0 < self.density <= MOST_AGENTS):
            raise ParameterError(
                f"group '{name}': density must be positive, at most {MOST_AGENTS:,} per m² or m³, "
                f"not {reprlib.repr(self.density)}"
            )
        if self.positions is not None and numbers_in(self.positions) is None:
            raise ParameterError(
                f"group '{name}': positions must be numbers, a row of coordinates for each agent, "
                f"not {reprlib.repr(self.positions)}"
            )
        if self.personality is not None:
            shares_of(self.personality, f"group '{name}'")
        check_goals(self, f"group '{name}'")
        check_bonds(self.families, self.follow, self.leader, self.parameters, who=f"group '{name}'")

    def _form_squad(self) -> None:
        """A squad is led by one of its own: the one nearest to the goal, unless something else is said."""
        squad = as_squad(self.squad, f"group '{self.name}'")
        object.__setattr__(self, "squad", squad)
        if squad is None:
            return
        if self.families is not None or self.follow is not None:
            raise ParameterError(f"group '{self.name}': a squad is led by its commander; leave families and follow out")
        if self.leader is None:
            object.__setattr__(self, "leader", "nearest")


# Sources: agents that come in while the simulation runs.
#: [1/s]; above this, arrivals could not be counted.
_HIGHEST_RATE = 1e9
#: Above this mean, Poisson numbers are normal to more digits than matter.
_NORMAL_FROM = 1e6
#: Poisson numbers with a larger mean are sums of smaller ones: exp(-mean) must not underflow.
_LARGEST_MEAN = 500.0


@named_parameters
@dataclass(frozen=True)
class Source(Personal):
    """Adds agents at a rate [1/s], in a region, between two times [s], as long as there is room.

    Agents that find no room wait outside and come in as soon as there is some. `arrivals` is "even" (one every 1/rate
    seconds) or "random" (a Poisson process). `group` names the group that the newcomers join.
    """

    group: str
    _: KW_ONLY
    rate: Annotated[float, CHECKED_ELSEWHERE]
    region: Any
    begin: float = 0.0
    end: Annotated[float, CHECKED_ELSEWHERE] = math.inf
    total: int | None = None
    arrivals: Literal["even", "random"] = "even"

    def __post_init__(self) -> None:
        group = self.group
        if not (is_finite(self.rate) and 0 < self.rate <= _HIGHEST_RATE):
            raise ParameterError(
                f"the source of '{group}': the rate must be positive and at most {_HIGHEST_RATE:g} per second, "
                f"not {self.rate!r}"
            )
        if not (is_number(self.end) and not math.isnan(self.end) and abs(self.begin) <= LATEST):
            raise ParameterError(
                f"the source of '{group}': begin and end are times in seconds, not {self.begin!r} and {self.end!r}"
            )
        if not self.begin <= self.end:
            raise ParameterError(f"the source of '{group}' ends ({self.end:g} s) before it begins ({self.begin:g} s)")
        if self.total is not None and self.total < 0:
            raise ParameterError(f"the source of '{group}': total must not be negative, got {self.total}")
        if self.personality is not None:
            shares_of(self.personality, f"the source of '{group}'")
        if self.families is not None:
            raise ParameterError(
                f"the source of '{group}' lets people in one by one, not in families; add families with AddAgents"
            )
        check_goals(self, f"the source of '{group}'")
        check_bonds(None, self.follow, self.leader, self.parameters, who=f"the source of '{group}'")
        if self.leads_itself and is_whole_number(self.leader):
            raise ParameterError(
                f'the source of \'{group}\': its agents come one after the other, so leader is "nearest" or "central", '
                f"not the number {self.leader}"
            )

    def arriving(self, *, seed: int, number: int, step: int, dt: float) -> int:
        """How many agents arrive during this step; a pure function of the step."""
        begin, end = max(step * dt, self.begin), min((step + 1) * dt, self.end)
        if end <= begin:
            return 0
        if self.arrivals == "even":
            return _whole((end - self.begin) * self.rate) - _whole((begin - self.begin) * self.rate)
        mean = self.rate * (end - begin)
        parts = math.ceil(mean / _LARGEST_MEAN)
        key, numbers = random_key(seed, f"source {number}"), np.array([number])
        if mean > _NORMAL_FROM:
            return max(round(mean + math.sqrt(mean) * float(normals(key, numbers, step=step)[0, 0])), 0)
        return sum(
            _poisson(mean / parts, float(uniforms(key, numbers, step=step, draw=part)[0, 0])) for part in range(parts)
        )


def _poisson(mean: float, u: float) -> int:
    """The Poisson number with the cumulative probability u, by summing probabilities."""
    count, term = 0, math.exp(-mean)
    total = term
    # The terms vanish before a u close to one is reached, because their sum is rounded.
    while u > total and (term > 0.0 or count < mean):
        count += 1
        term *= mean / count
        total += term
    return count


def _whole(value: float) -> int:
    # A rate such as 0.1 per second must not lose an arrival to rounding at t = 10 s.
    return math.floor(value + 1e-9)
