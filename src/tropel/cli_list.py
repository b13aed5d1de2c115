"""`tropel list`: what is built in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from tropel.cli_options import show

if TYPE_CHECKING:
    from rich.table import Table

#: Pictures that need no run: what `tropel plot NAME` draws, by the numbers of GAME's figures.
PHASE_PLOTS = {
    "game_fig2": "A narrow gap repels an agent, a wide one leads it through",
    "game_fig3": "A target behind a narrow gap: without and with competition of behaviours",
}


def list_scenarios(
    personalities: Annotated[bool, typer.Option("--personalities", help="Show the personalities instead.")] = False,
) -> None:
    """Show the built-in scenarios and phase plots, or the personalities that groups may have."""
    from rich.table import Table

    from tropel.scenario import builtin_names, load_builtin

    if personalities:
        show(_personality_table())
        return
    table = Table("name", "what happens")
    for name in builtin_names():
        spec = load_builtin(name).spec
        table.add_row(name, f"[bold]{escape(spec.title)}[/]\n{escape(spec.about)}")
    show(table)
    plots = Table("name", "phase plot, drawn by  tropel plot NAME")
    for name, title in PHASE_PLOTS.items():
        plots.add_row(name, title)
    show(plots)


def _personality_table() -> Table:
    from rich.table import Table

    from tropel.agents.personality import TRAITS
    from tropel.agents.presets import PRESETS

    table = Table("personality", *TRAITS, "speed", "in a word")
    for name, preset in PRESETS.items():
        means = [f"{getattr(getattr(preset, trait), 'mean', getattr(preset, trait)):g}" for trait in TRAITS]
        table.add_row(name, *means, f"× {preset.speed:g}", preset.about)
    return table
