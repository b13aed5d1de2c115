"""A short part of every fuzzer, always the same cases; `make fuzz` goes on with others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .campaign import Campaign

_SEED = 15


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Campaign]:
    with Campaign(_SEED, Path(tmp_path_factory.mktemp("fuzz"))) as campaign:
        yield campaign


@pytest.mark.parametrize(("name", "cases"), [("scenario", 60), ("damaged", 20), ("api", 60), ("kills", 1)])
def test_nothing_is_found_in_the_first_cases(campaign: Campaign, name: str, cases: int) -> None:
    campaign.go(name, cases=cases)
    found = [each for each in campaign.findings() if each.fuzzer == name]
    assert campaign.tallies[name].cases == cases
    assert not found, "\n".join(f"{each.outcome.label}: python -m tests.fuzz --case {each.case}" for each in found)
