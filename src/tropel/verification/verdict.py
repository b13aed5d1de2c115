"""What a verification test says about a model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one test for one model.

    A test that is not `binding` compares with what people show in experiments, which scatters: a model outside that
    range is reported, but nothing has failed.
    """

    name: str
    title: str
    model: str
    passed: bool
    binding: bool
    expected: str  #: in words, with units
    measured: dict[str, Any] = field(default_factory=dict)  #: plain data, names with units
    said: str  #: what was found, in a sentence
    picture: Path | None = None

    @property
    def outcome(self) -> str:
        if self.binding:
            return "passed" if self.passed else "FAILED"
        return "within the range" if self.passed else "outside the range"

    @property
    def failed(self) -> bool:
        """Whether a criterion that must hold does not."""
        return self.binding and not self.passed

    def json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "model": self.model,
            "passed": self.passed,
            "binding": self.binding,
            "outcome": self.outcome,
            "expected": self.expected,
            "measured": self.measured,
            "said": self.said,
            "picture": None if self.picture is None else str(self.picture),
        }


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    """All verdicts for the terminal."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="verification", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("test", "model", "outcome", "measured", "expected"):
        table.add_column(column)
    for verdict in verdicts:
        colour = "red" if verdict.failed else "green" if verdict.passed else "yellow"
        table.add_row(
            f"[bold]{escape(verdict.name)}[/]\n{escape(verdict.title)}",
            escape(verdict.model),
            f"[{colour}]{verdict.outcome}[/]",
            escape(verdict.said),
            escape(verdict.expected),
        )
    return table
