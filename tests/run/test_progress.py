"""Bars over plans: nothing of what is over soon, a word and an estimate of what is not."""

from __future__ import annotations

import pytest

from tropel.foundation.long_work import report
from tropel.run import progress
from tropel.run.progress import planning


def _work() -> None:
    for done in range(5):
        report("a long plan", done, 4)


def test_where_no_terminal_shows_bars_a_line_says_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SOON", -1.0)
    with planning():
        _work()
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "a long plan: about 0 s left\n"


@pytest.mark.parametrize(("soon", "quiet"), [(1e9, False), (-1.0, True)])
def test_nothing_is_shown_of_what_is_over_soon_or_when_quiet(
    soon: float, quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "_SOON", soon)
    with planning(quiet=quiet):
        _work()
    assert capsys.readouterr().err == ""


def test_a_terminal_shows_a_bar(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "_SOON", -1.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    with planning():
        _work()
    assert "a long plan" in capsys.readouterr().err


def test_nobody_listens_afterwards() -> None:
    with planning():
        pass
    from tropel.foundation import long_work

    assert long_work._listeners == []
