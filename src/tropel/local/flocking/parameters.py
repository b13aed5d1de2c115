"""Parameters of flocks: of a model and of single agents, and the relations between groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tropel.agents.state import Column
from tropel.errors import ParameterError, named_parameters, suggest
from tropel.foundation.quantities import Quantity, number, quantity_of

#: Groups are bits of a word; the last bit is for agents that are mates of no group, such as the dead.
MOST_GROUPS = 63
NOBODY = 63

_RELATIONS = ("join", "avoid", "ignore", "chase", "flee")


#: Larger weights and lengths would overflow when they are multiplied.
_LARGEST = 1e9


def _weight(default: float, of: str) -> Any:
    return number(default, low=0.0, high=_LARGEST, unit="m/s²", about=f"weight of {of}")


@named_parameters
@dataclass(frozen=True, kw_only=True)
class FlockingParameters:
    """Parameters of `Flocking`. Those of the first part can also be set for a group or an agent, in the `parameters` of
    the group or with the event `SetParameter`. The values here apply to all others."""

    separation: float = _weight(1.0, "separation from mates that are close")
    cohesion: float = _weight(0.6, "cohesion towards the centre of the mates in sight")
    alignment: float = _weight(1.2, "alignment with the velocity of mates")
    avoidance: float = _weight(2.0, "avoidance of groups to avoid")
    obstacle_repulsion: float = _weight(2.0, "repulsion from obstacles and walls, which grows with nearness")
    obstacle_steering: float = _weight(4.0, "turning to the freer side when an obstacle is ahead")
    goal_pull: float = _weight(0.8, "the planned direction")
    leader_pull: float = _weight(0.8, "the pull towards the leader")
    flight: float = _weight(4.0, "flight from groups to flee from")
    pursuit: float = _weight(2.0, "pursuit of the nearest agent of the groups to chase")
    separation_distance: float | None = number(
        None,
        above=0.0,
        high=_LARGEST,
        unit="m",
        about="mates nearer than this are close; half the sense radius if left out",
    )
    flee_radius: float | None = number(
        None, low=0.0, high=_LARGEST, unit="m", about="boids flee within this distance; the sense radius if left out"
    )
    blind_angle: float = number(
        0.0, low=0.0, high=2.0 * math.pi, unit="rad", about="opening of the blind cone behind the boid"
    )
    max_force: float = number(4.0, low=0.0, high=_LARGEST, unit="m/s²", about="cap on all rules together")
    least_speed: float = number(
        0.5, low=0.0, high=1.0, about="lowest speed, as a share of the desired speed, which is the top speed"
    )

    nearest: int | None = number(
        None, whole=True, low=1, high=1000, about="only this many mates count, the nearest ones; all if left out"
    )
    combine: Literal["sum", "priorities"] = "sum"  #: "priorities": urgent rules go first, the goal comes last
    look_ahead: float = number(
        1.5, low=0.0, unit="s", about="boids steer around obstacles that they would hit within this time"
    )
    join: Sequence[str] | None = None  #: groups to fly with besides its own; all groups of this model if left out
    avoid: Sequence[str] | None = None  #: groups to avoid; all without another relation if left out
    ignore: Sequence[str] = ()  #: groups that boids of this model do not see
    chase: Sequence[str] = ()  #: prey
    flee: Sequence[str] = ()  #: predators

    def __post_init__(self) -> None:
        said: dict[str, str] = {}
        for relation in _RELATIONS:
            names = getattr(self, relation)
            for name in () if names is None else names:
                if name in said:
                    raise ParameterError(f"Flocking: the group '{name}' is named in both {said[name]} and {relation}")
                said[name] = relation


class Traits(NamedTuple):
    """Values of all agents as kernels read them: arrays with one value per agent, or one value for all of them.

    An agent's value is `array[min(row, array.size - 1)]`. Usually all agents have the same value, and nothing is
    fetched from distant memory. Optional values that are not given are nan.
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


def _traits() -> tuple[Quantity, ...]:
    declared = {field.name: quantity_of(field) for field in fields(FlockingParameters)}
    return tuple(trait for name in Traits._fields if (trait := declared.get(name)) is not None)


#: The parameters that may differ between agents, in the order of `Traits`.
TRAITS = _traits()


def column_of(trait: Quantity) -> Column:
    """The column with the agents' own values of a trait; nan, which users cannot set, means that there is none."""
    told = {name: getattr(trait, name) for name in ("name", "unit", "low", "high", "above")}
    return Column(default=math.nan, about=f"{trait.about}; nan: the model's value", **told)


class Relations(NamedTuple):
    """The relation of each group that a model steers to all groups: words with a bit per group, by group number."""

    joined: NDArray[np.uint64]
    avoided: NDArray[np.uint64]
    chased: NDArray[np.uint64]
    fled: NDArray[np.uint64]

    @property
    def avoids(self) -> bool:
        """Whether any group is avoided."""
        return bool(np.count_nonzero(self.avoided))

    @property
    def hunts(self) -> bool:
        """Whether any group is chased or fled from."""
        return bool(np.count_nonzero(self.chased) or np.count_nonzero(self.fled))


def check_groups(parameters: FlockingParameters, groups: Sequence[str]) -> None:
    """Raise if a relation names a group that does not exist."""
    if len(groups) > MOST_GROUPS:
        raise ParameterError(f"Flocking supports at most {MOST_GROUPS} groups, and this world has {len(groups)}")
    for relation in _RELATIONS:
        names = getattr(parameters, relation)
        for name in () if names is None else names:
            if name not in groups:
                raise ParameterError(f"Flocking: {relation} names the group '{name}'; {suggest(name, groups)}")


def relations_of(parameters: FlockingParameters, groups: Sequence[str], own: Sequence[int]) -> Relations:
    """The relations of all groups, for a model that steers those with the numbers `own`."""
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
