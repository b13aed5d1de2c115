"""What a recorded run says: who left when and where, how dense and how fast the crowd was. Knows files, not layers."""

from tropel.analysis.crowd_maps import CrowdMaps
from tropel.analysis.evacuation import EvacuationReport, ExitUse, evacuation_report
from tropel.analysis.tables import report_tables, write_tables

__all__ = ["CrowdMaps", "EvacuationReport", "ExitUse", "evacuation_report", "report_tables", "write_tables"]
