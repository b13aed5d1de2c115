"""The verdict of a verification test on a model, and the figure that all tests share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tropel.pictures import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from rich.table import Table


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one test for one model.

    A test that is not `binding` compares with experiments, which scatter: a model outside that range is reported, but
    does not fail.
    """

    name: str
    title: str
    model: str
    passed: bool
    binding: bool
    expected: str  #: in words, with units
    measured: dict[str, Any] = field(default_factory=dict)  #: plain data, names with units
    said: str  #: the result, in a sentence
    picture: Path | None = None

    @property
    def outcome(self) -> str:
        if self.binding:
            return "passed" if self.passed else "FAILED"
        return "within the range" if self.passed else "outside the range"

    @property
    def failed(self) -> bool:
        """Whether a binding criterion does not hold."""
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
    """A table of all verdicts for the terminal."""
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


# The figure of all tests: a title, the verdict, and one panel.

# All lengths in pixels.
_WIDTH = 900
_HEIGHT = 560
_EDGE = 22
_LEFT = 84
_TOP = 128
_BOTTOM = 62


def verdict_figure(
    *, title: str, model: str, said: str, good: bool, x: str, y: str, height: int = _HEIGHT
) -> tuple[Figure, Axes]:
    """A figure with its header written, and the panel to draw into."""
    figure = style.new_figure(_WIDTH, height)
    style.add_text(figure, _EDGE, 16, title, fontsize=style.TITLE_SIZE, weight="bold")
    style.add_text(figure, _EDGE, 44, f"steering model: {model}", color=style.FAINT_INK)
    style.add_text(figure, _EDGE, 64, said, color=style.label_colour(style.EXIT if good else style.CLOSED_DOOR))
    axes = style.add_axes(figure, _LEFT, _TOP, _WIDTH - _LEFT - _EDGE, height - _TOP - _BOTTOM)
    style.open_panel(axes)
    style.label_axes(axes, x=x, y=y)
    return figure, axes


def add_legend(axes: Axes, **properties: Any) -> None:
    """A legend above the panel."""
    style.legend_above(axes, borderpad=0.2, handlelength=1.6, **properties)
