"""The command line, a file per command; `commands` puts them together and has the short ones."""

from tropel.cli.commands import app, main

__all__ = ["app", "main"]
