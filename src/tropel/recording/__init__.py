"""Trajectory files, reading them back, and checkpoints."""

from tropel.recording.checkpoint import environment_differences, load_checkpoint, save_checkpoint
from tropel.recording.frames import FrameData, RecordedEvent
from tropel.recording.people import People
from tropel.recording.reading import read_trajectory
from tropel.recording.scene import Scene, geometry_key
from tropel.recording.trajectory import Trajectory
from tropel.recording.writing import TrajectoryWriter, open_trajectory

__all__ = [
    "FrameData",
    "People",
    "RecordedEvent",
    "Scene",
    "Trajectory",
    "TrajectoryWriter",
    "environment_differences",
    "geometry_key",
    "load_checkpoint",
    "open_trajectory",
    "read_trajectory",
    "save_checkpoint",
]
