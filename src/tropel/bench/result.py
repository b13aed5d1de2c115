"""What a benchmark returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import JustifyMethod, RenderableType
    from rich.table import Table

Row = dict[str, Any]
#: Called with what is being measured, how many parts are done and how many there are.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """Rows of measurements, and ratios of which more is better; `<what>_over_ours` is how many times faster ours is."""

    name: str
    rows: list[Row] = field(default_factory=list)
    more: dict[str, list[Row]] = field(default_factory=dict)  #: rows of other kinds, by topic
    ratios: dict[str, float] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)  #: what to know about the figures, and why some are missing

    def json(self) -> dict[str, Any]:
        """The result as plain data."""
        plain: dict[str, Any] = {"name": self.name, "rows": self.rows, **self.more, "ratios": self.ratios}
        return {**plain, "notes": self.notes} if self.notes else plain

    def table(self) -> RenderableType:
        """One table per kind of rows, with the ratios and notes below the last."""
        from rich.console import Group
        from rich.text import Text

        tables = [_table(self.name, self.rows)]
        tables += [_table(f"{self.name}: {about}", rows) for about, rows in self.more.items()]
        said = [f"{name} = {ratio:.2f}" for name, ratio in self.ratios.items()]
        tables[-1].caption = Text("\n".join([*said, *self.notes]))
        return Group(*tables) if len(tables) > 1 else tables[0]


def _table(title: str, rows: list[Row]) -> Table:
    from rich import box
    from rich.table import Table

    table = Table(title=title, caption_justify="left", box=box.SIMPLE_HEAD, padding=0)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for column in columns:
        texts = [row[column] for row in rows if isinstance(row.get(column), str)]
        words = [*column.split("_"), *(word for text in texts for word in text.split())]
        justify: JustifyMethod = "left" if texts else "right"
        table.add_column(column.replace("_", " "), justify=justify, min_width=max(map(len, words)))
    for row in rows:
        table.add_row(*(_cell(row.get(column, "")) for column in columns))
    return table


def _cell(value: object) -> str:
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100.0 else f"{value:.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
