"""Groups: named sets of agents that are declared together and may have their own planner and steering model.

In reading order: bonds (families, and agents that follow another group), `Personal` with the properties that may
differ from agent to agent, `Group`, and `Source`, which adds agents while the simulation runs.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from tropel._kernels.philox import normals, random_key, uniforms
from tropel.agents.distributions import draw_quantity
from tropel.agents.goals import aim_of
from tropel.agents.personality import Personality, draw_personality, shares_of
from tropel.agents.state import DESIRED_SPEED, RADIUS, SENSE_RADIUS, Column
from tropel.errors import ParameterError, is_finite, named_parameters, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE, LATEST, numbers_in
from tropel.foundation.quantities import Quantity, is_number
from tropel.registry import HABITS, MODELS, Entry
from tropel.world import World
from tropel.world.places import PlaceLike, as_place
from tropel.world.shapes import ShapeLike

# Bonds: families, and agents that follow an agent of another group. Models that use them declare the columns `family`
# (a number that its members share) and `leader` (an id), -1 for none. The code here fills them in for groups that are
# declared with `families` or `follow`.

#: Families made here are numbered from this on, by the id of a member; lower numbers are free for your own families.
FIRST_NUMBER = 1 << 30
#: The columns that `families` and `follow` fill in.
COLUMN_OF = {"families": "family", "follow": "leader"}


def check_bonds(families: Any, follow: Any, parameters: Any, *, group: str, who: str) -> None:
    """Raise if the declared bonds make no sense; `who` begins the message."""
    if families is not None and (isinstance(families, bool) or not isinstance(families, Integral) or families < 2):
        raise ParameterError(f"{who}: families is the number of people per family, at least 2, not {families!r}")
    if follow is not None and (not isinstance(follow, str) or follow == group):
        raise ParameterError(f"{who}: follow names another group, whose nearest agent is followed, not {follow!r}")
    for told, column in COLUMN_OF.items():
        if (families if told == "families" else follow) is not None and column in parameters:
            raise ParameterError(f"{who}: give either {told} or the parameter {column}, which it sets")


def check_no_circle(follows: Mapping[str, set[str]]) -> None:
    """Raise if a group follows itself through others: none of them would lead."""
    for begin in follows:
        came_from: dict[str, str] = {}
        waiting = [begin]
        while waiting:
            group = waiting.pop()
            for leader in follows.get(group, ()):
                if leader not in came_from:
                    came_from[leader] = group
                    waiting.append(leader)
        if begin in came_from:
            way = [begin, came_from[begin]]
            while way[-1] != begin:
                way.append(came_from[way[-1]])
            circle = "', which follows '".join(reversed(way))
            raise ParameterError(f"group '{circle}': one of them must lead; leave its follow out")


def check_has_bonds(families: Any, follow: Any, *, group: str, model: str, columns: set[str]) -> None:
    """Raise if the model that steers a group does not use families or leaders."""
    for told, given in (("families", families), ("follow", follow)):
        if given is not None and COLUMN_OF[told] not in columns:
            raise ParameterError(
                f"group '{group}': {told} sets the column {COLUMN_OF[told]}, which its steering model {model} does not "
                f"have; {_what_has(COLUMN_OF[told])}, or leave {told} out"
            )


def _what_has(column: str) -> str:
    """Which of tropel's own models and habits have a column, as advice."""
    advice = {"steer it with": MODELS, "give it the habit": HABITS}
    having = {
        say: " or ".join(made.__name__ for made in map(Entry.load, kind.values()) if column in _columns_of(made))
        for say, kind in advice.items()
    }
    return ", ".join(f"{say} {names}" for say, names in having.items() if names)


def _columns_of(layer: type[Any]) -> set[str]:
    return {column.name for column in layer().declares.columns}


def cut_into_families(position: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """For each agent the row of its family's first member. Families are neighbours; the last may be smaller.

    The agents are halved across the longer side of their bounding box, recursively, between whole families.
    """
    first = np.empty(len(position), dtype=np.int64)
    parts = [np.arange(len(position))] if len(position) else []
    while parts:
        rows = parts.pop()
        families = -(-len(rows) // size)
        if families == 1:
            first[rows] = rows.min()
            continue
        axis = int(np.argmax(np.ptp(position[rows], axis=0)))
        ordered = rows[np.argsort(position[rows, axis], kind="stable")]
        middle = families // 2 * size
        parts += [ordered[:middle], ordered[middle:]]
    return first


def nearest_of(
    position: NDArray[np.float64], leaders: NDArray[np.float64], ids: NDArray[np.int64]
) -> NDArray[np.int64]:
    """For each place the id of the nearest leader."""
    from scipy.spatial import cKDTree

    return np.asarray(ids[cKDTree(leaders).query(position)[1]], dtype=np.int64)


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
    repeat: bool = False  #: whether the first goal follows the last
    radius: Any = RADIUS.default  #: of the body [m]
    desired_speed: Any = DESIRED_SPEED.default  #: when nothing is in the way [m/s]
    sense_radius: Any = SENSE_RADIUS.default  #: how far others are noticed, centre to centre [m]
    delay: Any = DELAY.default  #: stands still for this long at first [s]
    personality: Personality | None = None  #: a preset such as "cautious", or shares; `parameters` override it
    parameters: Mapping[str, Any] = field(default_factory=dict)  #: columns that planners or steering models declare
    families: int | None = None  #: people per family: neighbours are grouped into families that stay together
    follow: str | None = None  #: a group, whose nearest agent is followed

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
        drawn["start_time"] = time + drawn.pop("delay")
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


def parameter_named(name: str, columns: Mapping[str, Column], who: str) -> Column:
    """The column that `parameters` of a group name; raises if there is none, or if it is a field of the group."""
    if name in PERSONAL_NAMES:
        raise ParameterError(f"{who}: {name} is not one of the parameters but a field of its own, as in  {name} = …")
    settable = {key: column for key, column in columns.items() if column.settable and key not in PERSONAL_NAMES}
    if name not in settable:
        raise ParameterError(f"{who}: agents have no parameter '{name}'; {suggest(name, settable)}")
    return settable[name]


#: Fields of `Personal` that are columns or become one.
PERSONAL_NAMES = frozenset({"goal", "then", "repeat", *(quantity.name for quantity in _PERSONAL)})


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

    def __post_init__(self) -> None:
        name = self.name
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
        check_bonds(self.families, self.follow, self.parameters, group=name, who=f"group '{name}'")


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
        check_bonds(None, self.follow, self.parameters, group=group, who=f"the source of '{group}'")

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
