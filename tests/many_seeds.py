"""Cases of which some run with every change, and the others with `make long`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def fast_first(cases: Iterable[Any], *, fast: int) -> list[Any]:
    """The cases of a parametrised test; those after the first few are long.

    Each case proves the same for another seed or layout, so the first ones still fail when the mechanism is broken.
    """
    return [
        case if number < fast else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
        for number, case in enumerate(cases)
    ]
