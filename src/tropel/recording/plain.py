"""Plain data: what JSON can hold, made from what simulations hold (NumPy scalars, arrays, tuples)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tropel.errors import TropelError


def plain_data(value: Any, *, where: str, error: type[TropelError], keep_non_finite: bool = False) -> Any:
    """A copy of `value` made of dict, list, str, int, float, bool and None only.

    JSON knows no NaN and no infinity; they become None unless `keep_non_finite`, which only Python reads back.
    Anything else is refused with `error`, naming the place, instead of being stored as something it is not.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, float):
        return value if keep_non_finite or math.isfinite(value) else None
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [
            plain_data(item, where=f"{where}[{index}]", error=error, keep_non_finite=keep_non_finite)
            for index, item in enumerate(value)
        ]
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise error(f"{where} has the key {key!r}: JSON keys are text, use str({key!r})")
        return {
            key: plain_data(item, where=f"{where}.{key}", error=error, keep_non_finite=keep_non_finite)
            for key, item in value.items()
        }
    raise error(
        f"{where} is a {type(value).__name__}, which JSON cannot hold: "
        f"use numbers, text, lists and dictionaries, or store it as an array"
    )
