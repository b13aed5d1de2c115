"""Pictures of recorded runs: a PNG of a whole run, animations, movies, the report of an evacuation, a flock, a sweep.

matplotlib and Pillow are loaded when the first picture is drawn.
"""

from tropel.pictures.animation import animate_run, draw_moment
from tropel.pictures.flock_picture import draw_flock
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
    "draw_flock",
    "draw_moment",
    "draw_report",
    "draw_run",
    "draw_sweep",
    "film_run",
    "sweep_statistics",
]
