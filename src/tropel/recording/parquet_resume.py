"""Cutting a Parquet trajectory back to a frame, so that a resumed run can go on after it.

Every state between two operations is a readable trajectory: the last part goes first.
"""

from __future__ import annotations

from pathlib import Path

from tropel.errors import RecordingError
from tropel.recording import parquet_format as layout
from tropel.recording.atomic import replacing
from tropel.recording.parquet_format import PartIndex
from tropel.recording.parquet_writer import write_table
from tropel.recording.scene import Scene


def cut_back(directory: Path, *, scene: Scene, fps: float, after: int, resume_step: int | None) -> tuple[int, str]:
    """Remove everything later than frame `after`. The number of the next part and the name of the last geometry."""
    _check_same_run(directory, scene, fps)
    _remove_leftovers(directory)
    parts = layout.part_files(directory / layout.PARTS)
    indices = [layout.read_part_index(path) for path in parts]
    last = max((index.frames[-1] for index in indices if index.frames), default=None)
    if after >= 0 and (last is None or last < after):
        held = "no frames" if last is None else f"frames up to {last}"
        raise RecordingError(
            f"{directory} holds {held} and cannot be continued after frame {after}: "
            "resume from an earlier checkpoint, or record to a new directory"
        )
    for name in (layout.SUMMARY, layout.PEOPLE):
        (directory / name).unlink(missing_ok=True)
    _cut_events(directory, after, resume_step)
    while parts and indices[-1].frames[0] > after:
        parts.pop().unlink()
        indices.pop()
    if parts and indices[-1].frames[-1] > after:
        indices[-1] = _cut_part(parts[-1], indices[-1], after)
    _cut_obstacles(directory, len(parts), after)
    used = {name for index in indices for name in index.geometry}
    for path in (directory / layout.GEOMETRY).glob("*.wkt"):
        if path.stem not in used:
            path.unlink()
    return len(parts), indices[-1].geometry[-1] if indices else ""


def _check_same_run(directory: Path, scene: Scene, fps: float) -> None:
    stored, stored_fps = layout.read_header(directory)
    differences = scene.differences(stored)
    if stored_fps != float(fps):
        differences.append("fps")
    if differences:
        raise RecordingError(
            f"{directory} belongs to another run (different: {', '.join(differences)}): "
            "continue with the scene it was recorded with, or record to a new directory"
        )


def _remove_leftovers(directory: Path) -> None:
    """Files that a killed process was still writing."""
    for leftover in directory.rglob(".*.tmp"):
        leftover.unlink()


def _cut_events(directory: Path, after: int, resume_step: int | None) -> None:
    path = directory / layout.EVENTS
    if not path.exists():
        return
    kept = [
        layout.event_line(event)
        for event in layout.read_events(directory)
        if event.frame <= after and (resume_step is None or event.step < resume_step)
    ]
    if kept:
        with replacing(path) as file:
            file.writelines(kept)
    else:
        path.unlink()


def _cut_part(path: Path, index: PartIndex, after: int) -> PartIndex:
    keep = sum(frame <= after for frame in index.frames)
    kept = PartIndex(frames=index.frames[:keep], rows=index.rows[:keep], geometry=index.geometry[:keep])
    table = layout.read_part(path).slice(0, sum(kept.rows))
    write_table(path, {name: table.column(name) for name in table.column_names}, kept)
    return kept


def _cut_obstacles(directory: Path, parts: int, after: int) -> None:
    import pyarrow.compute

    for path in reversed(layout.part_files(directory / layout.OBSTACLES)):
        number = int(path.stem.removeprefix("part-"))
        if number >= parts:
            path.unlink()
        elif number == parts - 1:
            table = layout.read_part(path)
            table = table.filter(pyarrow.compute.less_equal(table.column("frame"), after))
            if table.num_rows:
                write_table(path, {name: table.column(name) for name in table.column_names}, None)
            else:
                path.unlink()
