"""Every command explains itself."""

from __future__ import annotations

import pytest
import typer.main
from typer.testing import CliRunner

from tropel.cli import app

COMMANDS = sorted(typer.main.get_command(app).commands)  # type: ignore[attr-defined]


def test_the_commands_are_listed() -> None:
    told = CliRunner().invoke(app, ["--help"], catch_exceptions=False)
    assert told.exit_code == 0
    assert [name for name in COMMANDS if name not in told.output] == []


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_shows_its_options(name: str) -> None:
    told = CliRunner().invoke(app, [name, "--help"], catch_exceptions=False)
    assert told.exit_code == 0
    assert f"Usage: tropel {name}" in told.output
