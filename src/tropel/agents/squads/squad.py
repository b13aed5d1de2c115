"""What a group is told that makes it a squad: `Group(squad=Squad(formation="wedge"))`, in files `squad = { … }`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass

from tropel.errors import ParameterError, readable_errors, suggest
from tropel.foundation.field_types import Finite, NotNegative
from tropel.world.places import PlaceField
from tropel.world.shapes import PositiveLength

Formation = Literal["file", "column", "line", "wedge"]
_CONFIG = ConfigDict(extra="forbid")


@readable_errors
@dataclass(frozen=True, kw_only=True, config=_CONFIG)
class Squad:
    """How a squad moves, what it sees, and how it meets its enemies."""

    formation: Annotated[
        Formation, Field(description="on the way: one behind the other, two abreast, side by side, or a wedge")
    ] = "column"
    spacing: Annotated[PositiveLength, Field(description="between neighbours in the formation [m]")] = 1.0
    sight: Annotated[PositiveLength, Field(description="how far its people see [m]")] = 10.0
    side: Annotated[str, Field(description="squads of one side tell each other what they have searched")] = ""
    enemies: Annotated[tuple[str, ...], Field(description="groups that it watches for, attacks and flees from")] = ()
    assess: Annotated[bool, Field(description="whether it attacks and retreats by itself")] = True
    attack_above: Annotated[
        Finite, Field(gt=0.0, le=1e6, description="it attacks when its strength is so many times that of enemies seen")
    ] = 1.2
    retreat_below: Annotated[
        Finite, Field(ge=0.0, le=1e6, description="it retreats when its strength is less than so many times theirs")
    ] = 0.7
    retreat: Annotated[
        PlaceField | None, Field(description="where it retreats to; where its commander started, if left out")
    ] = None
    rally: Annotated[NotNegative, Field(le=1e6, description="how long it stays there [s]")] = 10.0
    hits: Annotated[
        NotNegative, Field(le=1e3, description="enemies within reach that one of it puts out of action per second")
    ] = 0.0
    reach: Annotated[PositiveLength, Field(description="free distance at which it can do so [m]")] = 0.8

    @model_validator(mode="after")
    def _hysteresis(self) -> Squad:
        if self.retreat_below > self.attack_above:
            raise ValueError(
                f"retreat_below ({self.retreat_below:g}) must not be above attack_above ({self.attack_above:g}), or "
                f"the squad would want to attack and to retreat at once"
            )
        return self


def as_squad(told: Any, who: str) -> Squad | None:
    """The squad that is meant by an object or a table."""
    if told is None or isinstance(told, Squad):
        return told
    if isinstance(told, dict):
        try:
            return Squad(**told)
        except TypeError as error:
            known = Squad.__dataclass_fields__
            unknown = next((name for name in told if name not in known), None)
            said = f"a squad has no '{unknown}'; {suggest(str(unknown), known)}" if unknown else str(error)
            raise ParameterError(f"{who}: {said}") from None
    raise ParameterError(f'{who}: squad is an object such as Squad(formation="wedge"), not {told!r:.60}')
