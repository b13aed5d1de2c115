"""The verdict of a case on a model, over several seeds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tropel.verification.candidate import Candidate
from tropel.verification.case import Case, Outcome

if TYPE_CHECKING:
    from rich.table import Table

#: Rounding of shares of seeds must not decide.
_ROUNDING = 1e-9


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one case for one model."""

    name: str
    title: str
    source: str
    model: str
    default: bool  #: whether it is the model that scenes get if they name none
    expected: str  #: in words, with units
    criterion: str
    required: float  #: share of the seeds that must pass
    seeds: tuple[int, ...]
    passes: tuple[bool, ...]  #: seed by seed
    said: str  #: the result, in a sentence
    measured: list[dict[str, Any]] = field(default_factory=list)  #: plain data of each seed, names with units
    picture: Path | None = None
    reason: str = ""  #: why the case cannot be run with this model; empty if it can

    @property
    def applies(self) -> bool:
        return not self.reason

    @property
    def share(self) -> float:
        """Share of the seeds that passed."""
        return sum(self.passes) / len(self.passes) if self.passes else math.nan

    @property
    def passed(self) -> bool:
        return self.applies and self.share >= self.required - _ROUNDING

    @property
    def failed(self) -> bool:
        return self.applies and not self.passed

    @property
    def outcome(self) -> str:
        return "passed" if self.passed else "FAILED" if self.applies else "not applicable"

    def json(self) -> dict[str, Any]:
        """The verdict as plain data."""
        return {
            "name": self.name,
            "title": self.title,
            "source": self.source,
            "model": self.model,
            "default": self.default,
            "outcome": self.outcome,
            "passed": self.passed if self.applies else None,
            "seeds": list(self.seeds),
            "share": _plain(self.share),
            "required": self.required,
            "expected": self.expected,
            "criterion": self.criterion,
            "measured": _plain(self.measured),
            "said": self.said,
            "picture": None if self.picture is None else str(self.picture),
        }


def verdict_of(case: Case, candidate: Candidate, outcomes: Sequence[Outcome]) -> Verdict:
    """The verdict over the seeds 0, 1, 2, … that have been run."""
    failed = [outcome for outcome in outcomes if not outcome.passed]
    said = (failed or outcomes)[0].said
    if len(outcomes) > 1:
        said += f" ({len(outcomes) - len(failed)} of {len(outcomes)} seeds pass)"
    return _verdict(case, candidate, said, outcomes=outcomes)


def not_applicable(case: Case, candidate: Candidate, reason: str) -> Verdict:
    """The verdict for a model that cannot run a case."""
    return _verdict(case, candidate, reason, reason=reason)


def _verdict(
    case: Case,
    candidate: Candidate,
    said: str,
    *,
    outcomes: Sequence[Outcome] = (),
    reason: str = "",
) -> Verdict:
    return Verdict(
        name=case.name,
        title=case.title,
        source=case.source,
        model=candidate.label,
        default=candidate.name is None,
        expected=case.expected,
        criterion=case.criterion,
        required=case.share,
        seeds=tuple(range(len(outcomes))),
        passes=tuple(bool(outcome.passed) for outcome in outcomes),
        measured=[outcome.measured for outcome in outcomes],
        said=said,
        reason=reason,
    )


def _plain(value: Any) -> Any:
    """Data that JSON can hold: numbers that are not finite become null, and those of NumPy plain ones."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def verdict_table(verdicts: Iterable[Verdict]) -> Table:
    """A table of all verdicts for the terminal."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title="verification", title_justify="left", box=box.SIMPLE_HEAD)
    for column in ("case", "model", "outcome", "measured", "expected"):
        table.add_column(column)
    for verdict in verdicts:
        colour = "red" if verdict.failed else "green" if verdict.passed else "dim"
        table.add_row(
            f"[bold]{escape(verdict.name)}[/]\n{escape(verdict.title)}",
            escape(verdict.model),
            f"[{colour}]{verdict.outcome}[/]",
            escape(verdict.said),
            escape(verdict.expected),
        )
    return table
