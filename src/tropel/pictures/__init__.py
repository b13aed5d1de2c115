"""Pictures of recorded runs: a PNG of a whole run, animations, movies, reports, encounters, flocks, sweeps.

matplotlib and Pillow are loaded when the first picture is drawn.
"""

from tropel.pictures.animation import animate_run, draw_moment, film_run
from tropel.pictures.encounters import draw_encounters
from tropel.pictures.flock import draw_flock
from tropel.pictures.report import draw_crowd_maps, draw_report
from tropel.pictures.run import draw_run
from tropel.pictures.sweep import SweepStatistics, draw_sweep, sweep_statistics

__all__ = [
    "SweepStatistics",
    "animate_run",
    "draw_crowd_maps",
    "draw_encounters",
    "draw_flock",
    "draw_moment",
    "draw_report",
    "draw_run",
    "draw_sweep",
    "film_run",
    "sweep_statistics",
]
