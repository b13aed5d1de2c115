"""The table `knowledge` of scenario files, made from the parameters of `Knowledge`: entries, defaults and limits."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from tropel.foundation.field_types import Finite, WholeNumber
from tropel.foundation.quantities import Quantity, quantity_of
from tropel.knowing.parameters import Knowledge


def _number(quantity: Quantity) -> Any:
    """The type of an entry with the limits of a quantity."""
    limits = {"gt": quantity.above, "lt": quantity.below, "le": quantity.high}
    limits["ge"] = quantity.low if quantity.above is None else None
    given: dict[str, Any] = {name: end for name, end in limits.items() if end is not None and math.isfinite(end)}
    unit = f" [{quantity.unit}]" if quantity.unit else ""
    kind: Any = WholeNumber if quantity.whole else Finite
    kind = Annotated[kind, Field(**given, description=f"{quantity.about}{unit}")]
    return kind | None if quantity.optional else kind


def _entries(parameters: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(parameters)
    quantities = {field.name: quantity_of(field) for field in dataclasses.fields(parameters)}
    return {
        field.name: (hints[field.name] if (own := quantities[field.name]) is None else _number(own), field.default)
        for field in dataclasses.fields(parameters)
    }


class KnowledgeTable(BaseModel):
    """What agents know of changes is limited to what they see and are told."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def knowledge(self) -> Knowledge:
        return Knowledge(**self.model_dump())


# Built at run time, which type checkers do not follow.
KnowledgeSpec: Any = create_model(
    "KnowledgeSpec", __base__=KnowledgeTable, __doc__=KnowledgeTable.__doc__, **_entries(Knowledge)
)
