"""What a recorded run shows: who left when and where, how dense and how fast the crowd was, how a flock held together.

This package knows files, not layers.
"""

from tropel.analysis.crowd_maps import CrowdMaps
from tropel.analysis.evacuation import EvacuationReport, ExitUse, evacuation_report
from tropel.analysis.flock_measures import FlockCurve, FlockMeasures, flock_measures
from tropel.analysis.flock_order import milling, nearest_distances, polarisation, subflocks
from tropel.analysis.tables import report_tables, write_columns, write_tables
from tropel.analysis.voronoi import VoronoiCells, VoronoiMaps, voronoi_cells

__all__ = [
    "CrowdMaps",
    "EvacuationReport",
    "ExitUse",
    "FlockCurve",
    "FlockMeasures",
    "VoronoiCells",
    "VoronoiMaps",
    "evacuation_report",
    "flock_measures",
    "milling",
    "nearest_distances",
    "polarisation",
    "report_tables",
    "subflocks",
    "voronoi_cells",
    "write_columns",
    "write_tables",
]
