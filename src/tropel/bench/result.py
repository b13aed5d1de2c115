"""What a benchmark returns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.table import Table

#: Told what is being measured, how many parts are done and how many there are.
Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, kw_only=True)
class BenchResult:
    """Rows of measurements, and ratios named `<what>_over_ours`, which are above 1 where ours is faster."""

    name: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)

    def json(self) -> dict[str, Any]:
        """The result as plain data."""
        return {"name": self.name, "rows": self.rows, "ratios": self.ratios}

    def table(self) -> Table:
        """The rows as a table, with the ratios below it."""
        from rich import box
        from rich.table import Table

        caption = "\n".join(f"{name} = {ratio:.2f}" for name, ratio in self.ratios.items())
        table = Table(title=self.name, caption=caption, caption_justify="left", box=box.SIMPLE_HEAD, padding=0)
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        for column in columns:
            table.add_column(column.replace("_", " "), justify="right", min_width=max(map(len, column.split("_"))))
        for row in self.rows:
            table.add_row(*(_cell(row.get(column, "")) for column in columns))
        return table


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 100.0 else f"{value:.0f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
