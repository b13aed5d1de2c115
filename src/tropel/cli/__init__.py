"""The command line, one file per command; `commands` combines them and has the short ones."""

from tropel.cli.commands import app, main

__all__ = ["app", "main"]
