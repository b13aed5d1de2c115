"""How large a world may be.

Up to a billion metres a coordinate still tells places a tenth of a micrometre apart, and no sum, product or square of
lengths comes near to where numbers overflow, which the exact predicates of walls rely on.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from tropel.arguments import LARGEST_LENGTH
from tropel.errors import GeometryError, is_finite
from tropel.field_types import Finite

#: How far from the origin agents may be in a file [m]: in open space nobody stops them at the largest length.
FARTHEST = 1e15

#: What is said of a number beyond it.
ALLOWED = f"between -{LARGEST_LENGTH:g} and {LARGEST_LENGTH:g} m"

Coordinate = Annotated[Finite, Field(ge=-LARGEST_LENGTH, le=LARGEST_LENGTH)]
Length = Annotated[Finite, Field(ge=0.0, le=LARGEST_LENGTH)]
PositiveLength = Annotated[Finite, Field(gt=0.0, le=LARGEST_LENGTH)]


def is_length(value: object) -> bool:
    """Whether it is a number of metres, 0 or more, that a world may have."""
    return is_finite(value) and 0.0 <= value <= LARGEST_LENGTH  # type: ignore[operator]


def check_level(level: int) -> None:
    """Raise unless it is the number of a level; agents, cells and look-ups know levels, and worlds have one."""
    if level != 0:
        raise GeometryError(f"there is no level {level}: worlds have one level so far, which is level 0")
