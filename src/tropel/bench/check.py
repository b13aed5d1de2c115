"""Run the benchmarks that have targets and compare: `python -m tropel.bench.check benchmarks/targets.toml`.

The file has one table per benchmark, with the smallest accepted value of each of its ratios:

    [neighbours]
    ckdtree_over_ours_100k = 5
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tropel.bench import names, run
from tropel.bench.result import BenchResult
from tropel.errors import ParameterError, TropelError, suggest

Targets = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A ratio, its target and its measured value."""

    benchmark: str
    ratio: str
    target: float
    measured: float

    @property
    def ok(self) -> bool:
        return self.measured >= self.target


def read_targets(path: Path) -> dict[str, dict[str, float]]:
    """The targets in a file, checked: known benchmarks, positive numbers."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ParameterError(f"the targets in {path} cannot be read: {error}") from error
    for benchmark, ratios in content.items():
        if benchmark not in names():
            raise ParameterError(f"{path}: unknown benchmark '{benchmark}'; {suggest(benchmark, names())}")
        if not isinstance(ratios, dict) or not ratios:
            raise ParameterError(f"{path}: [{benchmark}] must be a table of ratios and their targets")
        for ratio, target in ratios.items():
            if isinstance(target, bool) or not isinstance(target, int | float) or not target > 0:
                raise ParameterError(f"{path}: {benchmark}.{ratio} must be a positive number, not {target!r}")
    return content


def judge(targets: Targets, measure: Callable[[str], BenchResult]) -> list[Verdict]:
    """Measure every benchmark that has targets, and compare the ratios with them."""
    verdicts = []
    for benchmark, ratios in targets.items():
        measured = measure(benchmark).ratios
        for ratio, target in ratios.items():
            if ratio not in measured:
                raise ParameterError(f"benchmark '{benchmark}' has no ratio '{ratio}'; {suggest(ratio, measured)}")
            verdicts.append(Verdict(benchmark=benchmark, ratio=ratio, target=target, measured=measured[ratio]))
    return verdicts


def verdict_table(verdicts: Sequence[Verdict]) -> Table:
    table = Table(title="benchmarks and their targets")
    table.add_column("benchmark")
    table.add_column("ratio")
    table.add_column("target", justify="right")
    table.add_column("measured", justify="right")
    table.add_column("ok")
    for verdict in verdicts:
        ok = "[green]yes[/]" if verdict.ok else "[red]no[/]"
        table.add_row(verdict.benchmark, verdict.ratio, f"{verdict.target:g}", f"{verdict.measured:.2f}", ok)
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    """Returns 0 if every target is met, otherwise 1."""
    parser = argparse.ArgumentParser(prog="python -m tropel.bench.check", description=__doc__.splitlines()[0])
    parser.add_argument("targets", type=Path, help="TOML file: benchmark, ratio, smallest accepted value")
    path = parser.parse_args(arguments).targets
    console = Console()

    def measure(benchmark: str) -> BenchResult:
        with console.status(f"{benchmark} …") as status:
            result = run(
                benchmark,
                progress=lambda what, done, total: status.update(f"{benchmark}: {what} ({done} of {total} rounds)"),
            )
        console.print(result.table())
        return result

    try:
        verdicts = judge(read_targets(path), measure)
    except TropelError as error:
        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False)
        return 1
    console.print(verdict_table(verdicts))
    return 0 if all(verdict.ok for verdict in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
