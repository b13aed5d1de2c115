"""Comparing ratios with their targets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tropel.bench import BenchResult
from tropel.bench.check import judge, main, read_targets, verdict_table
from tropel.errors import ParameterError

TARGETS = Path(__file__).parents[2] / "benchmarks" / "targets.toml"


def measured(benchmark: str) -> BenchResult:
    return BenchResult(name=benchmark, ratios={"scipy_over_ours": 4.0, "numpy_over_ours": 9.0})


def test_a_ratio_at_its_target_is_ok_and_one_below_is_not() -> None:
    verdicts = judge({"sorting": {"scipy_over_ours": 4.0, "numpy_over_ours": 9.1}}, measured)
    assert [verdict.ok for verdict in verdicts] == [True, False]
    assert verdict_table(verdicts).row_count == 2


def test_a_ratio_that_was_not_measured_counts_as_not_reached() -> None:
    verdicts = judge(
        {"sorting": {"scipy_over_ours": 4.0}},
        lambda name: BenchResult(name=name, ratios={"scipy_over_ours": float("nan")}),
    )
    assert not verdicts[0].ok


def test_an_unknown_ratio_names_the_nearest_one() -> None:
    with pytest.raises(ParameterError, match="did you mean 'scipy_over_ours'"):
        judge({"sorting": {"scipy_over_us": 4.0}}, measured)


def test_the_projects_own_targets_can_be_read() -> None:
    assert read_targets(TARGETS)["neighbours"] == {"ckdtree_over_ours_100k": 5, "ckdtree_over_ours_1m": 5}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[neighbors]\nx = 1", "did you mean 'neighbours'"),
        ("[neighbours]\nx = 'fast'", "positive number"),
        ("[neighbours]\nx = -1", "positive number"),
        ("[neighbours]\nx = true", "positive number"),
        ("neighbours = 5", "must be a table"),
        ("[neighbours", "cannot be read"),
    ],
)
def test_a_wrong_file_of_targets_is_refused_before_anything_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    path = tmp_path / "targets.toml"
    path.write_text(text)
    assert main([str(path)]) == 1
    assert complaint in " ".join(capsys.readouterr().err.split())


def test_a_missing_file_of_targets_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none.toml")]) == 1
    assert "cannot be read" in " ".join(capsys.readouterr().err.split())
