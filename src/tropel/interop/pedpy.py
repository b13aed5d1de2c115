"""Recorded runs for PedPy, the analysis library for pedestrian dynamics.

PedPy opens SQLite trajectories itself; this module also passes it those stored as Parquet directories.
"""

from __future__ import annotations

from types import ModuleType
from typing import TYPE_CHECKING

from tropel.errors import MissingExtraError, RecordingError
from tropel.foundation.arguments import checked_arguments
from tropel.recording.trajectory import Trajectory

if TYPE_CHECKING:
    import pedpy


@checked_arguments
def to_pedpy(trajectory: Trajectory) -> pedpy.TrajectoryData:
    """All positions of a 2D run as PedPy's `TrajectoryData`."""
    pedpy = _pedpy()
    import pandas

    _check_two_dimensions(trajectory)
    table = trajectory.table()
    if not len(table["frame"]):
        raise RecordingError(f"{trajectory.path} has no agents in any frame, and PedPy accepts no empty trajectory")
    data = pandas.DataFrame({name: table[name] for name in ("id", "frame", "x", "y")})
    return pedpy.TrajectoryData(data=data, frame_rate=trajectory.fps)


@checked_arguments
def walkable_area(trajectory: Trajectory) -> pedpy.WalkableArea:
    """The walkable area of a 2D run. Where doors changed it, the union of all its states, as PedPy expects."""
    pedpy = _pedpy()
    import shapely

    _check_two_dimensions(trajectory)
    areas = trajectory.geometries() or [trajectory.scene.area_wkt()]
    return pedpy.WalkableArea(shapely.union_all([shapely.from_wkt(wkt) for wkt in areas]))


def _pedpy() -> ModuleType:
    try:
        import pedpy
    except ImportError as error:
        raise MissingExtraError("PedPy's analysis", "analysis") from error
    return pedpy


def _check_two_dimensions(trajectory: Trajectory) -> None:
    if trajectory.scene.dim != 2:
        raise RecordingError(f"{trajectory.path} has 3 dimensions, but PedPy analyses only two")
