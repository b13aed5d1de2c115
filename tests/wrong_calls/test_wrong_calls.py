"""A short part of the random caller: none of its calls ends in anything but a TropelError or a run that works."""

from __future__ import annotations

import pytest
from random_caller import Outcome, Wrong, draw_calls, outcomes

CALLS, SEED = 300, 7
#: Of whole runs, films and contract checks: each takes seconds, and `random_caller.py` makes them too.
_SLOW = ("film_run", "animate_run", "export_html", "draw_", "check_", "Harmonic")


def findings(calls: list[Wrong]) -> list[str]:
    return [f"{outcome.kind}: {outcome.wrong}: {outcome.said}" for outcome in outcomes(calls) if outcome.is_finding]


def test_random_wrong_calls_are_refused_or_work() -> None:
    calls = [call for call in draw_calls(2 * CALLS, SEED) if not call.call.startswith(_SLOW)][:CALLS]
    assert len(calls) == CALLS
    assert findings(calls) == []


@pytest.mark.parametrize("kind", ["another error", "broke later", "too long", "crash (-11)", "taken for a number"])
def test_what_ends_otherwise_is_a_finding(kind: str) -> None:
    assert Outcome(Wrong("a", "b", "c", None), kind, "").is_finding
    assert not Outcome(Wrong("a", "b", "c", None), "refused", "").is_finding
