"""`tropel validate`: whether a scenario file can be run, and whether it will do what its author wants."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from tropel.cli.options import AllowImports, show


def validate(
    file: Annotated[Path, typer.Argument(help="A scenario file (TOML).")],
    allow_imports: AllowImports = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a scenario file: geometry, room for all agents, paths to their goals, absurd numbers.

    What makes a run impossible is an error. What makes it pointless is a warning: people without a path, exits that
    never open, an area in pieces.
    """
    from tropel.run.progress import planning
    from tropel.scenario import load_scenario

    with planning(quiet=as_json):
        sim = load_scenario(file, allow_imports=allow_imports or ()).build(threads=1)
    findings = sim.check()
    size = {"agents": len(sim.agents), "sources": len(sim.population.sources), "events": len(sim.events)}
    if as_json:
        found = [asdict(finding) for finding in findings]
        sys.stdout.write(json.dumps({"file": str(file), **size, "findings": found}, indent=2) + "\n")
        return
    said = Console(stderr=True)
    for finding in findings:
        style = "bold yellow" if finding.severity == "warning" else "yellow"
        said.print(f"[{style}]{finding.severity}:[/] {escape(str(finding))}", soft_wrap=True, highlight=False)
    many = sum(finding.severity == "warning" for finding in findings)
    text = f"{size['agents']:,} agents at the start, {size['sources']} sources, {size['events']} events"
    text += f"; {many} warning{'s' * (many > 1)}" if many else ""
    show(f"[green]{escape(str(file))} is valid[/]: {text}")
