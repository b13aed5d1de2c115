"""What `tropel plot NAME` draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tropel.figures import crowd as crowd_figures
from tropel.figures import measurements as crowd_measurements
from tropel.figures import riding, roadmaps
from tropel.figures.certificates import draw_certificates
from tropel.figures.measurements import Told
from tropel.figures.neighbourhood import draw_near_environment
from tropel.figures.task_sharing import draw_task_sharing

AT_ONCE: dict[str, Callable[[Path], list[Path]]] = {
    "crowd_fig3": crowd_figures.draw_flow_fields,
    "crowd_fig7": crowd_figures.draw_influences,
    "crowd_fig9": crowd_figures.draw_bottleneck_maps,
    "crowd_fig10": crowd_figures.draw_door_use,
}
OF_LAYERS: dict[str, Callable[[Path], list[Path]]] = {
    "layers_fig5": draw_near_environment,
    "kinetic_certificates": draw_certificates,
}
MEASURED: dict[str, Callable[[Path, Told], list[Path]]] = {
    "crowd_fig4": crowd_measurements.draw_plan_times,
    "crowd_fig11": crowd_measurements.draw_frame_rates,
    "crowd_gamma": crowd_measurements.draw_gamma_effect,
    "crowd_density": crowd_measurements.draw_speed_by_density,
    "groups_table41": roadmaps.draw_table_41,
    "groups_table42": roadmaps.draw_table_42,
    "groups_moving": roadmaps.draw_moving_share,
    "task_sharing": draw_task_sharing,
    "riders_fig2": riding.draw_fig2,
    "riders_fig3": riding.draw_fig3,
    "riders_fig5": riding.draw_fig5,
    "riders_fig6": riding.draw_fig6,
    "riders_fig7": riding.draw_fig7,
    "riders_interval": riding.draw_interval,
    "riders_map_size": riding.draw_map_size,
}


def draw_named_plot(name: str, path: Path, told: Told) -> list[Path]:
    """Draw a plot as a PNG (or several numbered ones next to it); returns the written paths."""
    if name in AT_ONCE:
        return AT_ONCE[name](path)
    return MEASURED[name](path, told)
