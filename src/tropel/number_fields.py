"""Numbers as files and events give them. Booleans and text are no numbers, though pydantic would take them for some."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field


def _only_numbers(value: Any) -> Any:
    if isinstance(value, bool | np.bool_ | str | bytes):
        raise ValueError("should be a number")
    return value.item() if isinstance(value, np.generic) else value


_IsNumber = BeforeValidator(_only_numbers)

Finite = Annotated[float, Field(allow_inf_nan=False), _IsNumber]
Positive = Annotated[float, Field(gt=0.0, allow_inf_nan=False), _IsNumber]
NotNegative = Annotated[float, Field(ge=0.0, allow_inf_nan=False), _IsNumber]
#: A time at which something ends, which may be never.
EndTime = Annotated[float, Field(ge=0.0), _IsNumber]
Whole = Annotated[int, _IsNumber]
PositiveWhole = Annotated[int, Field(gt=0), _IsNumber]
NotNegativeWhole = Annotated[int, Field(ge=0), _IsNumber]
