"""The Parquet trajectory: a directory of closed parts, so that every part has its footer even after a kill.

    NAME.parquet/
      scene.json                 format, version, fps, scene
      parts/part-000000.parquet  frame, id, x, y(, z), heading_x, …, speed, group, radius; whole frames only
      obstacles/part-000000.…    frame, name, x, y(, z), radius of moving obstacles, if there are any
      geometry/<digest>.wkt      walkable areas
      events.jsonl               one event per line
      people.parquet             at the end of the run: id, group, came, gone, fate, through of every agent
      summary.json               at the end of the run

The footer of each part lists its frames (empty ones too), the number of rows of each, and its geometry.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tropel.errors import RecordingError
from tropel.foundation.files import (
    LARGEST_GEOMETRY,
    LARGEST_RECORD,
    LARGEST_TRAJECTORY,
    check_input,
    read_bytes,
    read_text,
)
from tropel.recording.checked import LAST_NUMBER, check_rate, check_wkt, checked_event
from tropel.recording.frames import RecordedEvent
from tropel.recording.scene import Scene

FORMAT = "tropel-trajectory"
VERSION = 1

SCENE = "scene.json"
PARTS = "parts"
OBSTACLES = "obstacles"
GEOMETRY = "geometry"
EVENTS = "events.jsonl"
PEOPLE = "people.parquet"
SUMMARY = "summary.json"
ENTRIES = frozenset({SCENE, PARTS, OBSTACLES, GEOMETRY, EVENTS, PEOPLE, SUMMARY})

_FOOTER_KEY = b"tropel"
#: Most rows in a file and in a row group. tropel closes a part after 1,048,576 rows, at a whole frame, and puts 131,072
#: rows in a row group.
MOST_ROWS = 1 << 24
MOST_ROWS_AT_ONCE = 1 << 20


def part_name(number: int) -> str:
    return f"part-{number:06d}.parquet"


def part_files(directory: Path) -> list[Path]:
    """The parts in a directory, in their order."""
    return sorted(directory.glob("part-*.parquet"))


@dataclass(frozen=True, kw_only=True)
class PartIndex:
    """What the footer of a part records about its frames."""

    frames: list[int]
    rows: list[int]
    #: Name of each frame's geometry.
    geometry: list[str]

    def to_metadata(self) -> dict[bytes, bytes]:
        # Geometry changes rarely, so only the frames at which it does are stored.
        changes = [
            [index, name] for index, name in enumerate(self.geometry) if index == 0 or name != self.geometry[index - 1]
        ]
        text = json.dumps({"frames": self.frames, "rows": self.rows, "geometry": changes}, separators=(",", ":"))
        return {_FOOTER_KEY: text.encode()}

    @classmethod
    def from_metadata(cls, metadata: dict[bytes, bytes] | None, path: Path) -> PartIndex:
        try:
            data = json.loads((metadata or {})[_FOOTER_KEY])
            geometry: list[str] = []
            changes = [*data["geometry"], [len(data["frames"]), ""]]
            for (start, name), (end, _) in itertools.pairwise(changes):
                if not 0 <= start <= end <= len(data["frames"]) or re.fullmatch(r"[0-9a-f]*", name) is None:
                    raise ValueError("its geometries are out of order or have invalid names")
                geometry.extend([name] * (end - start))
            for numbers in (data["frames"], data["rows"]):
                if not numbers or not all(type(number) is int and 0 <= number <= LAST_NUMBER for number in numbers):
                    raise ValueError("its frames are not numbers, or it has none")
            index = cls(frames=data["frames"], rows=data["rows"], geometry=geometry)
        except (KeyError, ValueError, TypeError, RecursionError, MemoryError) as error:
            raise RecordingError(f"{path} is not a part of a tropel trajectory, or damaged: remove it") from error
        if not len(index.frames) == len(index.rows) == len(index.geometry):
            raise RecordingError(f"{path} has a footer that contradicts itself: it is damaged")
        return index


@contextlib.contextmanager
def explaining(path: Path) -> Iterator[None]:
    """Turn Arrow's errors while reading into one that names the file and what to do."""
    import pyarrow

    try:
        yield
    except (pyarrow.ArrowException, OSError, ValueError, KeyError, TypeError, ArithmeticError) as error:
        why = " ".join(str(error).split())  # Arrow's messages may have several lines
        raise RecordingError(
            f"{path} is damaged or cannot be read ({why}): record it again, or remove it and all later parts"
        ) from error


def open_part(path: Path) -> Any:
    """An open Parquet file whose pages are compared with their checksums when they are read."""
    import pyarrow.parquet

    with explaining(path):
        check_input(path, largest=LARGEST_TRAJECTORY)
        opened = pyarrow.parquet.ParquetFile(path, page_checksum_verification=True)
        _check_rows(opened.metadata, path)
        return opened


def read_part(path: Path) -> Any:
    """All of a Parquet file as an Arrow table."""
    opened = open_part(path)
    with explaining(path):
        return opened.read()


def _check_rows(footer: Any, path: Path) -> None:
    """Refuse row counts that no part has: repeated values take no space in a file, but fill the memory."""
    sizes = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
    good = sum(sizes) == footer.num_rows <= MOST_ROWS and all(0 <= size <= MOST_ROWS_AT_ONCE for size in sizes)
    if not good:
        raise RecordingError(f"{path} claims {footer.num_rows} rows in {len(sizes)} row groups: it is damaged")


def read_part_index(path: Path) -> PartIndex:
    import pyarrow.parquet

    with explaining(path):
        check_input(path, largest=LARGEST_TRAJECTORY)
        footer = pyarrow.parquet.read_metadata(path)
        _check_rows(footer, path)
    index = PartIndex.from_metadata(footer.metadata, path)
    if sum(index.rows) != footer.num_rows:
        raise RecordingError(f"{path} has {footer.num_rows} rows, but its frames have {sum(index.rows)}: it is damaged")
    return index


def geometry_name(wkt: str) -> str:
    return hashlib.sha256(wkt.encode()).hexdigest()[:16]


def read_geometry(directory: Path, name: str) -> str:
    path = directory / GEOMETRY / f"{name}.wkt"
    with explaining(path):
        # Read as bytes: line endings are part of the digest.
        wkt = read_bytes(path, largest=LARGEST_GEOMETRY).decode()
    if geometry_name(wkt) != name:
        raise RecordingError(f"{path} does not match its name, which is its digest: it is damaged")
    if wkt:
        check_wkt(wkt, str(path))
    return wkt


def write_header(directory: Path, scene: Scene, fps: float) -> None:
    header = {"format": FORMAT, "version": VERSION, "fps": float(fps), "scene": json.loads(scene.to_json())}
    (directory / SCENE).write_text(json.dumps(header, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def read_header(directory: Path) -> tuple[Scene, float]:
    """Scene and frames per second."""
    path = directory / SCENE
    if not path.is_file():
        raise RecordingError(f"{directory} has no {SCENE}, so it is not a tropel trajectory: give another directory")
    header = read_json(path)
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RecordingError(f"{path} does not describe a tropel trajectory: give another directory")
    if header.get("version") != VERSION:
        raise RecordingError(
            f"{directory} is a trajectory of version {header.get('version')}, but this tropel reads {VERSION}: "
            "read it with the tropel that wrote it"
        )
    try:
        return Scene.from_dict(header.get("scene")), check_rate(header.get("fps"), "fps")
    except RecordingError as error:
        raise RecordingError(f"{path}: {error}") from error


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path, largest=LARGEST_RECORD))
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror or error})") from error
    except (ValueError, RecursionError) as error:
        raise RecordingError(f"{path} is not valid JSON ({error}): it is damaged") from error


def event_line(event: RecordedEvent) -> bytes:
    record = {"frame": event.frame, "step": event.step, "event": event.event}
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def read_events(directory: Path) -> list[RecordedEvent]:
    """All events. A last line without a line end was being written when the process was killed; it is skipped."""
    path = directory / EVENTS
    if not path.exists():
        return []
    try:
        lines = read_bytes(path, largest=LARGEST_RECORD).split(b"\n")[:-1]
    except OSError as error:
        raise RecordingError(f"{path} cannot be read ({error.strerror or error})") from error
    events = []
    for number, line in enumerate(lines, start=1):
        try:
            events.append(checked_event(**json.loads(line)))
        except RecordingError as error:
            raise RecordingError(f"{path}, line {number}: {error}") from error
        except (ValueError, TypeError, RecursionError) as error:
            raise RecordingError(f"{path}, line {number} is not an event ({error}): it is damaged") from error
    return events
