"""Values that somebody may hand to any argument by mistake, by a text that names them in reports."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np


class _Odd:
    """An object that is nothing in particular."""

    def __repr__(self) -> str:
        return "an object"


def _returns_none(*_: Any) -> None:
    return None


#: Made anew for each call, since some of them can be changed.
VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "False": lambda: False,
    "np.True_": lambda: np.True_,
    "'x'": lambda: "x",
    "''": lambda: "",
    "'1e400'": lambda: "1e400",
    "'nan'": lambda: "nan",
    "'3'": lambda: "3",
    "b''": lambda: b"",
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "-inf": lambda: -math.inf,
    "np.nan32": lambda: np.float32("nan"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "0.5": lambda: 0.5,
    "-0.0": lambda: -0.0,
    "1e308": lambda: 1e308,
    "-1e308": lambda: -1e308,
    "1e15": lambda: 1e15,
    "1e-300": lambda: 1e-300,
    "10**30": lambda: 10**30,
    "10**400": lambda: 10**400,
    "2**63": lambda: 2**63,
    "1j": lambda: 1j,
    "[]": list,
    "{}": dict,
    "()": tuple,
    "set()": set,
    "(1, 2)": lambda: (1, 2),
    "[1, 2, 3]": lambda: [1, 2, 3],
    "[None]": lambda: [None],
    "['x']": lambda: ["x"],
    "{'x': 1}": lambda: {"x": 1},
    "{1: 2}": lambda: {1: 2},
    "[[1, 2], [3]]": lambda: [[1, 2], [3]],
    "an object": _Odd,
    "a class": lambda: _Odd,
    "a function": lambda: _returns_none,
    "a path": lambda: Path("nowhere/at/all"),
    "zeros(0)": lambda: np.zeros(0),
    "zeros((3, 3))": lambda: np.zeros((3, 3)),
    "array of texts": lambda: np.array(["a", "b"]),
    "array of objects": lambda: np.array([None, {}], dtype=object),
    "array of nan": lambda: np.full((2, 2), np.nan),
    "array of complex": lambda: np.ones(2, dtype=complex),
    "np.int64(7)": lambda: np.int64(7),
    "np.float32(.5)": lambda: np.float32(0.5),
    "np.str_": lambda: np.str_("x"),
    "datetime64": lambda: np.datetime64("2020-01-01"),
}

#: Those that are no number, whatever argument asks for one.
NO_NUMBERS = ("True", "False", "np.True_", "nan", "np.nan32", "'3'", "'nan'", "'1e400'", "b''", "1j")


def spoiled(base: Mapping[str, Any], name: str, value: Any, draw: random.Random | None) -> dict[str, Any]:
    """The arguments with one replaced by a value, or with `draw` one item of it, if it has any."""
    if draw is None:
        return {**base, name: value}
    return {**base, name: _inside(base[name], value, draw)}


def has_items(given: Any) -> bool:
    return isinstance(given, list | tuple | dict) and len(given) > 0


def _inside(given: Any, value: Any, draw: random.Random) -> Any:
    """A copy with one item replaced, at any depth."""
    if not has_items(given):
        return value
    if isinstance(given, dict):
        chosen = draw.choice(list(given))
        return {**given, chosen: _inside(given[chosen], value, draw)}
    items = list(given)
    chosen = draw.randrange(len(items))
    items[chosen] = _inside(items[chosen], value, draw) if draw.random() < 0.7 else value
    return type(given)(items)
