"""The frame notices whatever a case does, and goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .broken import WAYS
from .campaign import Campaign
from .outcome import ACCEPTED, REFUSED
from .toml_text import toml_text
from .trees import paths
from .watched import Watched


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    worker = Watched(tmp_path_factory.mktemp("workers"), warm=False, memory=1 << 30)
    yield worker
    worker.close()


@pytest.mark.parametrize(
    ("way", "kind"),
    [
        ("works", ""),
        ("refuses", ""),
        ("says nothing", "no file named"),
        ("raises", "traceback"),
        ("aborts", "crash"),
        ("loops", "hang"),
        ("waits", "hang"),
        ("grows", "memory"),
        ("wants too much", "memory"),
    ],
)
def test_every_way_to_go_wrong_is_told_apart_and_the_next_case_is_tried(
    worker: Watched, tmp_path: Path, way: str, kind: str
) -> None:
    def tried(way: str) -> tuple[str, str]:
        number = WAYS.index(way)
        seconds = 1.0 if way in ("loops", "waits") else 60.0
        outcome = worker.make_and_run("broken", 1, number, tmp_path / f"broken_{number}", tmp_path, seconds)
        return outcome.kind, outcome.verdict

    assert tried("works") == ("", ACCEPTED)
    assert tried(way)[0] == kind
    assert tried("refuses") == ("", REFUSED)


def test_findings_of_a_kind_are_counted_together_and_the_case_is_kept(tmp_path: Path) -> None:
    with Campaign(1, tmp_path) as campaign:
        campaign.workers = [Watched(tmp_path / "workers", warm=False)]
        raising = WAYS.index("raises")
        campaign.go("broken", cases=1, first=raising)
        campaign.go("broken", cases=1, first=raising)
    (found,) = campaign.findings()
    assert found.count == 2
    assert (found.folder / "case.json").exists()
    assert f"broken:1:{raising}" in (found.folder / "finding.txt").read_text()


def test_trees_are_written_as_toml_that_says_the_same() -> None:
    import tomllib

    tree = {"a b": [1, 2.5, True, "x\n\x7f'\""], "t": {"u": {}, "ä": [[], [{"v": 10**400}]]}, "n": float("-inf")}
    assert tomllib.loads(toml_text(tree)) == tree
    assert ("t", "ä", 1, 0, "v") in list(paths(tree))
