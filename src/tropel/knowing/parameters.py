"""How a group comes to know of changes: how far its agents see and hear, how fast word spreads, and who keeps it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from tropel.agents.state import Column
from tropel.errors import ParameterError, named_parameters, suggest
from tropel.foundation.arguments import CHECKED_ELSEWHERE, LARGEST_LENGTH
from tropel.foundation.quantities import number

#: More intervals than any run has steps; a longer one means never.
_LONGEST = 1e9

#: Per agent; nan for the value of its group's `Knowledge`.
SIGHT = Column(
    name="sight", default=math.nan, low=0.0, high=LARGEST_LENGTH, unit="m",
    about="how far doors, exits, hazards, obstacles, targets and enemies are seen",
)  # fmt: skip
EARSHOT = Column(
    name="earshot", default=math.nan, low=0.0, high=LARGEST_LENGTH, unit="m", about="how far friends are heard"
)  # fmt: skip


@named_parameters
@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """What the agents of a group know of the changing world is limited to what they see and are told.

    At first they know doors, exits, obstacles and hazards as they are at the `start`; or they know the `plan` of the
    building: all doors and exits open, no hazards.
    """

    sight: float = number(20.0, low=0.0, high=LARGEST_LENGTH, unit="m", about="how far changing things are seen")
    earshot: float = number(5.0, low=0.0, high=LARGEST_LENGTH, unit="m", about="how far friends are heard")
    look: float = number(0.5, above=0.0, high=_LONGEST, unit="s", about="time between two looks around")
    hop: float = number(
        1.0, above=0.0, high=_LONGEST, unit="s", about="time after which word has reached the next ones"
    )
    share: bool = True  #: whether friends are told
    through_walls: bool = False  #: whether friends are heard through walls
    held_by: Literal["agent", "group", "world"] = "agent"  #: each knows for itself, or all at once what one has seen
    update: float | None = number(
        None, above=0.0, high=_LONGEST, unit="s", about="a manager brings everything up to date at these intervals"
    )
    at_first: Literal["start", "plan"] = "start"  #: what is known before anything is seen
    friends: Annotated[tuple[str, ...], CHECKED_ELSEWHERE] = ()  #: other groups that tell and are told
    enemies: Annotated[tuple[str, ...], CHECKED_ELSEWHERE] = ()  #: groups whose agents are noted when they are seen
    most_plans: int = number(16, whole=True, low=1, high=1000, about="plans for different beliefs at the same time")

    def __post_init__(self) -> None:
        for name in ("friends", "enemies"):
            told = getattr(self, name)
            if isinstance(told, str) or not isinstance(told, Sequence) or not all(isinstance(n, str) for n in told):
                raise ParameterError(f'Knowledge: {name} is a list of groups, such as ["staff"], not {told!r:.60}')
            object.__setattr__(self, name, tuple(told))
        if both := set(self.friends) & set(self.enemies):
            raise ParameterError(f"Knowledge: '{min(both)}' is among friends and enemies; choose one")


def knowledge_of(groups: Sequence[str], told: Any) -> dict[str, Knowledge]:
    """The knowledge of each group that has limited knowledge, in the order of the groups."""
    if told is None:
        return {}
    if isinstance(told, Knowledge):
        told = dict.fromkeys(groups, told)
    if not isinstance(told, Mapping):
        raise ParameterError(f"knowledge: give Knowledge(…), or one for each group by name, not {told!r:.60}")
    for name, each in told.items():
        if name not in groups:
            raise ParameterError(f"knowledge: there is no group '{name}'; {suggest(str(name), groups)}")
        if each is not None and not isinstance(each, Knowledge):
            raise ParameterError(f"knowledge of group '{name}': use Knowledge(…), not {each!r:.60}")
        for what in ("friends", "enemies"):
            for other in getattr(each, what, ()):
                if other not in groups:
                    raise ParameterError(
                        f"knowledge of group '{name}': {what} names '{other}', which is not a group; "
                        f"{suggest(other, groups)}"
                    )
    return {name: told[name] for name in groups if told.get(name) is not None}
