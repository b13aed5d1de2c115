"""Commands of the command line, in this process."""

from __future__ import annotations

import contextlib
from pathlib import Path

import typer

from .outcome import REFUSED, Outcome, accepted, of_error

_NEVER_EMPTY = (".png", ".gif", ".html", ".csv", ".json", ".npz", ".parquet")


def command(*arguments: object, names: tuple[str, ...]) -> Outcome:
    """What becomes of a command. Refusals name one of the given files."""
    from tropel.cli import app

    try:
        app(args=[str(argument) for argument in arguments], standalone_mode=False)
    except (typer.Exit, typer.BadParameter) as error:
        return Outcome(REFUSED, said=str(error))
    except BaseException as error:
        return of_error(error, names)
    return accepted()


def left_overs(folder: Path) -> list[str]:
    """Files under a folder that were not finished: temporary ones, and empty ones of kinds that are never empty."""
    found = []
    with contextlib.suppress(OSError):
        for path in sorted(folder.rglob("*")):
            empty = path.suffix in _NEVER_EMPTY and path.is_file() and path.stat().st_size == 0
            if empty or path.suffix == ".tmp":
                found.append(path.name)
    return found
