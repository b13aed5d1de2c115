"""`tropel list`: the built-in scenarios, plots and personalities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from tropel.cli.options import show

if TYPE_CHECKING:
    from rich.table import Table

#: Phase plots, named after the figures of GAME, which need no run. `tropel plot NAME` draws them.
PHASE_PLOTS = {
    "game_fig2": "A narrow gap repels an agent, a wide one leads it through",
    "game_fig3": "A target behind a narrow gap: without and with competition of behaviours",
}
#: Plots of lattice crowds: the figures of CROWD and further measurements.
CROWD_PLOTS = {
    "crowd_fig3": "Flow fields of a lattice crowd, without and with the √2 of diagonal moves",
    "crowd_fig4": "Planning time by map size, compared with value iteration (measured, takes a minute or so)",
    "crowd_fig7": "Influence of two hazards, through walls and clipped by them",
    "crowd_fig9": "Bottlenecks of two maps",
    "crowd_fig10": "People at a narrow and a wide door over time, with the thresholds of congestion",
    "crowd_fig11": "Frame rate by size of the crowd (measured, takes a minute or so)",
    "crowd_gamma": "The effect of the discount gamma",
    "crowd_density": "Speed and flow of a lattice crowd by density",
}
#: Plots of the layers between planning and steering.
LAYER_PLOTS = {
    "layers_fig5": "The near environment of an agent in a triangulation, without and with walls",
    "kinetic_certificates": "Certificates of a triangulation over time, in a crowd that walks and comes to rest",
}
#: Tables and plots of groups and their roadmaps.
GROUP_PLOTS = {
    "groups_table41": "Self-adaptive and basic roadmaps among moving obstacles (measured, takes a minute or so)",
    "groups_table42": "Planning with and without rooms when doors change (measured, takes a minute or so)",
    "groups_moving": "How many leaders arrive by the share of obstacles that move (takes some minutes)",
    "task_sharing": "Optimal, auctioned, greedy and random sharing of tasks, compared (takes a minute or so)",
}
#: Plots of riders with full physics (extra 'riders').
RIDER_PLOTS = {
    "riders_fig2": "Where the trials of mobility maps begin: states along a slalom",
    "riders_fig3": "What bicyclists can do within five seconds",
    "riders_fig5": "Seven curves, ridden with and without the mobility map (takes a minute or so)",
    "riders_fig6": "Errors on seven curves, human bicyclist (takes a minute or so)",
    "riders_fig7": "Errors on seven curves, alien bicyclist (takes a minute or so)",
    "riders_interval": "Error by the time between decisions (takes some minutes)",
    "riders_map_size": "Error by the number of states in the map (takes some minutes)",
}
PLOTS = {**PHASE_PLOTS, **LAYER_PLOTS, **GROUP_PLOTS, **CROWD_PLOTS, **RIDER_PLOTS}


def list_scenarios(
    personalities: Annotated[bool, typer.Option("--personalities", help="Show the personalities instead.")] = False,
) -> None:
    """Show the built-in scenarios and plots, or the personalities for groups."""
    from rich.table import Table

    from tropel.scenario import builtin_names, load_builtin, verification_names

    if personalities:
        show(_personality_table())
        return
    table = Table("name", "what happens")
    for name in builtin_names():
        spec = load_builtin(name).spec
        table.add_row(name, f"[bold]{escape(spec.title)}[/]\n{escape(spec.about)}")
    show(table)
    cases = Table("name", "verification case, measured by  tropel verify --test NAME")
    for name in verification_names():
        spec = load_builtin(name).spec
        cases.add_row(name, f"[bold]{escape(spec.title)}[/]\n{escape(spec.about)}\n[dim]{escape(spec.source)}[/]")
    show(cases)
    plots = Table("name", "plot, drawn by  tropel plot NAME")
    for name, title in PLOTS.items():
        plots.add_row(name, title)
    show(plots)


def _personality_table() -> Table:
    from rich.table import Table

    from tropel.agents.personality import PRESETS, TRAITS

    table = Table("personality", *TRAITS, "speed", "description")
    for name, preset in PRESETS.items():
        means = [f"{getattr(getattr(preset, trait), 'mean', getattr(preset, trait)):g}" for trait in TRAITS]
        table.add_row(name, *means, f"× {preset.speed:g}", preset.about)
    return table
