"""Pictures of recorded runs: one PNG of a whole run, a short animation, a movie, the report of an evacuation, a sweep.

matplotlib and Pillow are loaded when the first picture is drawn.
"""

from tropel.pictures.animation import animate_run
from tropel.pictures.maps_picture import draw_crowd_maps
from tropel.pictures.movie import film_run
from tropel.pictures.report_picture import draw_report
from tropel.pictures.run_picture import draw_run
from tropel.pictures.sweep_picture import draw_sweep
from tropel.pictures.sweep_statistics import SweepStatistics, sweep_statistics

__all__ = [
    "SweepStatistics",
    "animate_run",
    "draw_crowd_maps",
    "draw_report",
    "draw_run",
    "draw_sweep",
    "film_run",
    "sweep_statistics",
]
