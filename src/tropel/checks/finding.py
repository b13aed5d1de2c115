"""What a check finds, as data: for the terminal, for JSON, for pages and for Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that looks wrong. A note may well be intended; a warning hardly ever is."""

    code: str  #: which check found it; stable, for programs
    message: str  #: what is wrong, and where
    remedy: str  #: what to do about it
    severity: Literal["warning", "note"] = "warning"
    group: str | None = None  #: the group it concerns, if it is one
    agents: int = 0  #: how many agents of that group
    place: tuple[float, ...] | None = None  #: where one of them stands [m]

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}"


class FindingWarning(UserWarning):
    """The category of the Python warnings that findings become; filter it to silence them."""


def tell(findings: Iterable[Finding]) -> None:
    """Issue a Python warning for each finding that is more than a note."""
    for finding in findings:
        if finding.severity == "warning":
            warnings.warn(str(finding), FindingWarning, stacklevel=2)


def at(place: Iterable[float] | NDArray[np.float64]) -> str:
    """A place as messages show it."""
    return f"({', '.join(f'{float(c):.4g}' for c in place)})"


def people(count: int) -> str:
    return "1 person" if count == 1 else f"{count:,} people"


def named(kind: str, names: Iterable[str]) -> str:
    """Things by name, such as: doors 'a' and 'b'. Of many, only the first are listed."""
    given = [f"'{name}'" for name in names]
    some = given if len(given) <= 4 else [*given[:3], f"{len(given) - 3} more"]
    return f"{kind}{'s' * (len(given) > 1)} {' and '.join([', '.join(some[:-1]), some[-1]] if len(some) > 1 else some)}"
