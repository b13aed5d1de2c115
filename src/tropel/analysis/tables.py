"""A report as tables, for spreadsheets (CSV) and data tools (Parquet)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.analysis.crowd_maps import CrowdMaps
from tropel.analysis.evacuation import EvacuationReport, ExitUse
from tropel.analysis.voronoi import VoronoiMaps
from tropel.errors import ParameterError, suggest
from tropel.foundation.arguments import checked_arguments
from tropel.recording.tables import FORMATS, Columns, write_table

__all__ = ["FORMATS", "Columns", "report_tables", "write_columns", "write_tables"]


@checked_arguments
def report_tables(report: EvacuationReport) -> dict[str, Columns]:
    """The tables of a report by name: people, evacuated, exits, crowding, density, flow, and two of Voronoi densities.

    SI units. In 3D and where space repeats there are no Voronoi densities.
    """
    people, curve, maps = report.people, report.evacuated, report.maps
    return {
        "people": {
            "id": people.id,
            "group": [report.groups[number] for number in people.group.tolist()],
            "came": people.came,
            "gone": people.gone,
            "needed": report.needed,
            "fate": people.fate_names(),
            "through": people.place_names(),
        },
        "evacuated": {
            "time": curve.times,
            "total": curve.total,
            "died": curve.died,
            **{f"through_{name}": count for name, count in curve.by_exit.items()},
        },
        "exits": {
            field.name: _column([getattr(use, field.name) for use in report.exits])
            for field in dataclasses.fields(ExitUse)
        },
        "crowding": {"time": maps.times, "there": maps.there, "crowded_area": maps.crowded_area},
        "density": _grid(maps, maps.peak_density > 0.0, {"mean": maps.mean_density, "max": maps.peak_density}),
        "flow": _grid(
            maps,
            maps.flow_strength > 0.0,
            {"jx": maps.flow[:, :, 0], "jy": maps.flow[:, :, 1], "flow": maps.flow_strength},
        ),
        **_voronoi_tables(report.voronoi),
    }


def _voronoi_tables(found: VoronoiMaps | None) -> dict[str, Columns]:
    """Voronoi densities per cell of the map, and of the people in each frame that was used."""
    if found is None:
        return {}
    return {
        "voronoi": _grid(found, found.peak_density > 0.0, {"mean": found.mean_density, "max": found.peak_density}),
        "voronoi_people": {
            "time": found.times,
            "people": found.people,
            "mean": found.mean_of_people,
            "max": found.highest_of_people,
        },
    }


@checked_arguments
def write_tables(report: EvacuationReport, folder: str | os.PathLike[str], *, format: str = "csv") -> list[Path]:
    """Write every table of a report into an existing folder; each file appears complete or not at all."""
    return write_columns(report_tables(report), folder, format=format)


@checked_arguments
def write_columns(tables: Mapping[str, Columns], folder: str | os.PathLike[str], *, format: str = "csv") -> list[Path]:
    """Write tables by name into an existing folder; each file appears complete or not at all."""
    if format not in FORMATS:
        raise ParameterError(f"unknown table format '{format}'; {suggest(format, FORMATS)}")
    return [write_table(columns, Path(folder) / f"{name}.{format}") for name, columns in tables.items()]


def _grid(maps: CrowdMaps | VoronoiMaps, chosen: NDArray[np.bool_], values: dict[str, NDArray[np.float64]]) -> Columns:
    """One row per chosen cell, with its centre."""
    row, column = np.nonzero(chosen)
    return {"x": maps.x[column], "y": maps.y[row], **{name: grid[row, column] for name, grid in values.items()}}


def _column(values: list[Any]) -> NDArray[Any] | list[str]:
    if all(isinstance(value, str) for value in values):
        return values
    return np.array(values)
