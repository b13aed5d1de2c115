"""Numbers as fields of pydantic models: NumPy's numbers are accepted, booleans and strings are not."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from tropel.foundation.arguments import LATEST, plain

Finite = Annotated[float, BeforeValidator(plain), Field(strict=True, allow_inf_nan=False)]
PositiveFinite = Annotated[Finite, Field(gt=0.0)]
NotNegative = Annotated[Finite, Field(ge=0.0)]
WholeNumber = Annotated[int, BeforeValidator(plain), Field(strict=True)]
PositiveWhole = Annotated[WholeNumber, Field(gt=0)]
NotNegativeWhole = Annotated[WholeNumber, Field(ge=0)]
#: A simulated time [s].
Time = Annotated[NotNegative, Field(le=LATEST)]
#: A time at which something ends; infinity means never.
EndTime = Annotated[float, BeforeValidator(plain), Field(strict=True, ge=0.0)]
