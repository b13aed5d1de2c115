"""`tropel verify`: the cases of the field, run with the default model or with others."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tropel.cli.options import InterruptedRunError, Out, Quiet, make_folder, show, warm_up_if_cold

if TYPE_CHECKING:
    from tropel.verification import Verdict

_EVERY = "all"


def verify(
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="A steering model by name, with a preset (dynamical:pedestrian), package.module:Class, or all; "
            "by default what scenes get."
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="The default and all models for pedestrians.")] = False,
    test: Annotated[list[str] | None, typer.Option(help="A case such as rimea_9; all by default.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Without the cases that take long.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Seeds per case; by default as many as it needs.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    out: Out = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON array.")] = False,
    quiet: Quiet = False,
) -> None:
    """Run the verification cases of the field and write a page with the verdicts.

    Exit code 1 if the default model fails a case; other models are only shown.
    """
    from tropel import verification
    from tropel.run.progress import counting
    from tropel.verification.page import write_page

    models = _chosen(model or [], every)
    folder = make_folder(out or Path("out") / "verify")
    warm_up_if_cold(quiet)
    chosen: dict[str, Any] = {"tests": test or (), "seeds": seeds, "quick": quick}
    verdicts: list[Verdict] = []
    stopped = False
    with counting("verifying", verification.planned_runs(len(models), **chosen), quiet=quiet) as told:
        try:
            workers = workers or os.cpu_count() or 1
            for verdict in verification.run(models=models, **chosen, out=folder, workers=workers, told=told):
                verdicts.append(verdict)
        except KeyboardInterrupt:
            stopped = True
    page = write_page(verdicts, folder / "index.html", note="The run was interrupted." if stopped else "")
    if as_json:
        sys.stdout.write(json.dumps([verdict.json() for verdict in verdicts], indent=2) + "\n")
    else:
        show(verification.verdict_table(verdicts))
        show(f"wrote {page}")
    if stopped:
        raise InterruptedRunError(f"the cases done so far are in {page}")
    if any(verdict.failed and verdict.default for verdict in verdicts):
        raise typer.Exit(1)


def _chosen(named: list[str], every: bool) -> list[str | None]:
    """The models to run; None is the default, which comes first if all are wanted."""
    from tropel import verification

    if not every and _EVERY not in named:
        return list(dict.fromkeys(named)) or [None]
    default = verification.default_model()
    others = [*verification.pedestrian_models(), *(name for name in named if name != _EVERY)]
    return [None, *dict.fromkeys(name for name in others if name != default)]
