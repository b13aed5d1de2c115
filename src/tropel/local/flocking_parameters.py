"""Parameters of flocks: of a model, of single agents, and how groups stand to each other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Column
from tropel.errors import ParameterError, is_finite, named_parameters, suggest
from tropel.quantities import number

#: Groups are bits of a word; the last bit is for those who are nobody's mates, such as the dead.
MOST_GROUPS = 63
NOBODY = 63

_RELATIONS = ("join", "avoid", "ignore", "chase", "flee")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class FlockingParameters:
    """Parameters of `Flocking`. Those of the first part can be set for a group or an agent, as `parameters` of its
    group or by the event `SetParameter`, and hold here for all others."""

    separation: float = 1.0  #: weight of keeping off mates that are close [m/s²]
    cohesion: float = 0.6  #: weight of going to the middle of the mates in sight [m/s²]
    alignment: float = 1.2  #: weight of flying as they do [m/s²]
    avoidance: float = 2.0  #: weight of keeping off groups that are avoided [m/s²]
    obstacle_repulsion: float = 2.0  #: weight of keeping off obstacles and walls, the more the nearer [m/s²]
    obstacle_steering: float = 4.0  #: weight of turning to the freer side when one is ahead [m/s²]
    goal_pull: float = 0.8  #: weight of the planned direction [m/s²]
    leader_pull: float = 0.8  #: weight of going to one's leader [m/s²]
    flight: float = 4.0  #: weight of getting away from groups that are fled from [m/s²]
    pursuit: float = 2.0  #: weight of going to the nearest of the groups that are chased [m/s²]
    separation_distance: float | None = None  #: mates nearer than this are close [m]; half the sense radius if left out
    flee_radius: float | None = None  #: how near those fled from may come [m]; the sense radius if left out
    blind_angle: float = 0.0  #: opening of the cone behind one's back in which nobody is seen [rad]
    max_force: float = 4.0  #: cap on all rules together [m/s²]
    least_speed: float = 0.5  #: share of the desired speed, which is the top speed, below which nobody flies

    nearest: int | None = number(
        None, whole=True, low=1, high=1000, about="only so many mates, the nearest ones, are heeded; all if left out"
    )
    combine: Literal["sum", "priorities"] = "sum"  #: "priorities": what is urgent goes first, the goal comes last
    look_ahead: float = number(
        1.5, low=0.0, unit="s", about="obstacles that would be hit within this time are steered around"
    )
    join: Sequence[str] | None = None  #: groups flown with besides one's own; those of this model if left out
    avoid: Sequence[str] | None = None  #: groups kept off; all that nothing else is said of if left out
    ignore: Sequence[str] = ()  #: groups that are not there for this model's
    chase: Sequence[str] = ()  #: prey
    flee: Sequence[str] = ()  #: predators

    def __post_init__(self) -> None:
        for trait in TRAITS:
            value = getattr(self, trait.name)
            if not (value is None and trait.optional):
                trait.check(value, "Flocking")
        said: dict[str, str] = {}
        for relation in _RELATIONS:
            names = getattr(self, relation)
            for name in () if names is None else names:
                if name in said:
                    raise ParameterError(f"Flocking: the group '{name}' is named in both {said[name]} and {relation}")
                said[name] = relation


class Trait(NamedTuple):
    """A parameter that may differ from agent to agent, and what it may be."""

    name: str
    unit: str
    about: str
    most: float = math.inf
    above_zero: bool = False
    optional: bool = False  #: whether it may be left open, to follow from the sense radius

    @property
    def column(self) -> Column:
        about = f"{self.about}; nan: as the model says"
        above = 0.0 if self.above_zero else None
        return Column(
            name=self.name, default=math.nan, unit=self.unit, about=about, low=0.0, above=above, high=self.most
        )

    def check(self, value: Any, who: str) -> None:
        if is_finite(value) and 0.0 <= value <= self.most and not (self.above_zero and value == 0.0):
            return
        what = "positive" if self.above_zero else "not negative"
        if math.isfinite(self.most):
            what = f"between 0 and {self.most:.4g}"
        raise ParameterError(f"{who}: {self.name} must be a number that is {what}, got {value!r}")


#: In the order of `Traits`.
TRAITS = (
    Trait("separation", "m/s²", "weight of keeping off close mates"),
    Trait("cohesion", "m/s²", "weight of going to the middle of mates"),
    Trait("alignment", "m/s²", "weight of flying as mates do"),
    Trait("avoidance", "m/s²", "weight of keeping off groups that are avoided"),
    Trait("obstacle_repulsion", "m/s²", "weight of keeping off obstacles and walls"),
    Trait("obstacle_steering", "m/s²", "weight of turning to the freer side before an obstacle"),
    Trait("goal_pull", "m/s²", "weight of the planned direction"),
    Trait("leader_pull", "m/s²", "weight of going to the leader"),
    Trait("flight", "m/s²", "weight of getting away from those fled from"),
    Trait("pursuit", "m/s²", "weight of going to those chased"),
    Trait("separation_distance", "m", "mates nearer than this are close", above_zero=True, optional=True),
    Trait("flee_radius", "m", "how near those fled from may come", optional=True),
    Trait("blind_angle", "rad", "opening of the cone behind in which nobody is seen", most=2.0 * math.pi),
    Trait("max_force", "m/s²", "cap on all rules together"),
    Trait("least_speed", "", "share of the desired speed below which nobody flies", most=1.0),
)


class Traits(NamedTuple):
    """Values of all agents as kernels see them: arrays with one value per agent, or with one for all of them.

    An agent's value is `array[min(row, array.size - 1)]`. Where everybody has the same, which is the rule, nothing is
    fetched from far away in memory. Optional ones that are left open are nan.
    """

    separation: NDArray[np.float64]
    cohesion: NDArray[np.float64]
    alignment: NDArray[np.float64]
    avoidance: NDArray[np.float64]
    obstacle_repulsion: NDArray[np.float64]
    obstacle_steering: NDArray[np.float64]
    goal_pull: NDArray[np.float64]
    leader_pull: NDArray[np.float64]
    flight: NDArray[np.float64]
    pursuit: NDArray[np.float64]
    separation_distance: NDArray[np.float64]
    flee_radius: NDArray[np.float64]
    blind_angle: NDArray[np.float64]
    max_force: NDArray[np.float64]
    least_speed: NDArray[np.float64]
    desired_speed: NDArray[np.float64]


class Relations(NamedTuple):
    """How each group that a model steers stands to all groups: words with a bit per group, by the group's number."""

    joined: NDArray[np.uint64]
    avoided: NDArray[np.uint64]
    chased: NDArray[np.uint64]
    fled: NDArray[np.uint64]

    @property
    def avoids(self) -> bool:
        """Whether anybody is avoided."""
        return bool(np.count_nonzero(self.avoided))

    @property
    def hunts(self) -> bool:
        """Whether anybody is chased or fled from."""
        return bool(np.count_nonzero(self.chased) or np.count_nonzero(self.fled))


def check_groups(parameters: FlockingParameters, groups: Sequence[str]) -> None:
    """Raise when a relation names a group that is not there."""
    if len(groups) > MOST_GROUPS:
        raise ParameterError(f"Flocking knows at most {MOST_GROUPS} groups, and there are {len(groups)}")
    for relation in _RELATIONS:
        names = getattr(parameters, relation)
        for name in () if names is None else names:
            if name not in groups:
                raise ParameterError(f"Flocking: {relation} names the group '{name}'; {suggest(name, groups)}")


def relations_of(parameters: FlockingParameters, groups: Sequence[str], own: Sequence[int]) -> Relations:
    """The relations of all groups, of which a model steers those with the numbers `own`."""
    p = parameters
    count = max(len(groups), 1)
    words = Relations(*(np.zeros(count, dtype=np.uint64) for _ in Relations._fields))
    for member in own:
        for other, name in enumerate(groups):
            bit = np.uint64(1) << np.uint64(other)
            words.chased[member] |= bit * np.uint64(name in p.chase)
            words.fled[member] |= bit * np.uint64(name in p.flee)
            if name in p.chase or name in p.flee or name in p.ignore:
                continue
            if p.avoid is not None and name in p.avoid:
                words.avoided[member] |= bit
            elif other == member or (other in own if p.join is None else name in p.join):
                words.joined[member] |= bit
            elif p.avoid is None:
                words.avoided[member] |= bit
    return words
