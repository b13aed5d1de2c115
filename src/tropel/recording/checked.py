"""What a recording holds, checked as it is read: pictures, reports and the viewer rely on it.

A file may have been damaged since it was written, or made by somebody else. Everything here raises a RecordingError
that says what is wrong; the readers add the name of the file. What is known of worlds is imported when it is needed:
reading frames is a matter of NumPy alone until then.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tropel.errors import GeometryError, RecordingError, is_finite
from tropel.recording.frames import AXES, DEATHS, HAZARDS, KNOWLEDGE, NEWS, STAGES, Ints, RecordedEvent

#: Frames and steps have numbers up to this one, and runs last at most so long [s]: three years.
LAST_NUMBER = 1 << 50
LONGEST_RUN = 1e8
#: Frames per second, and steps, lie between its inverse and this.
MOST_PER_SECOND = 1e9

_DAMAGED = "it is damaged"
#: Kinds of shapes. JuPedSim writes an area as a collection of polygons too.
_AREAS = "Polygon MultiPolygon GeometryCollection"
_LINES = "LineString MultiLineString"
#: What the fields of events are called that pictures look at.
_NAMES = ("name", "door", "exit")
_THINGS = ("_obstacle", "_target", "_hazard")
#: Columns that only some runs have.
_COLUMN = re.compile(r"[a-z][a-z_]{0,30}")
_MOST_COLUMNS = 32
#: Columns of every run, in either format.
KNOWN_COLUMNS = frozenset(
    {"frame", "id", "x", "y", "z", "heading_x", "heading_y", "heading_z", "speed", "group", "radius", "agent_group"}
)


def check_rate(value: Any, what: str) -> float:
    """A positive number that can be divided by: of frames per second, or of seconds per step."""
    if isinstance(value, bool) or not is_finite(value) or not 1.0 / MOST_PER_SECOND <= value <= MOST_PER_SECOND:
        raise RecordingError(
            f"{what} is {value!r:.40}, not between {1.0 / MOST_PER_SECOND:g} and {MOST_PER_SECOND:g}: {_DAMAGED}"
        )
    return float(value)


def check_frames(frames: Ints, fps: float) -> None:
    """Numbers of frames from 0 on, of a run that ends some day."""
    if len(frames) and not 0 <= frames.min() <= frames.max() <= min(LAST_NUMBER, LONGEST_RUN * fps):
        raise RecordingError(
            f"its frames are numbered {frames.min()} to {frames.max()}, at {fps:g} a second; they begin at 0 and end "
            f"before {LONGEST_RUN:g} s: {_DAMAGED}"
        )


def check_rows(columns: Mapping[str, NDArray[Any] | None], *, groups: int) -> None:
    """The columns of agents: finite places, headings and sizes, and groups that there are."""
    from tropel.world.shapes import FARTHEST

    count = len(columns["id"]) if columns["id"] is not None else 0
    for name, column in columns.items():
        if column is None:
            continue
        if len(column) != count:
            raise RecordingError(f"the column '{name}' has {len(column)} rows where there are {count}: {_DAMAGED}")
        if column.dtype.kind != "f":
            continue
        # Written so that nan, which no comparison holds for, is found too.
        good = np.abs(column) <= FARTHEST
        if name == "radius":
            good &= column >= 0.0
        if not good.all():
            row = int(np.flatnonzero(~good)[0])
            raise RecordingError(f"{name} of {_who(columns, row)} is {float(column[row])!r}: {_DAMAGED}")
    ids, frames = columns["id"], columns.get("frame")
    if ids is not None:
        back = np.diff(ids) <= 0
        back &= True if frames is None else np.diff(frames) == 0
        if back.any():
            raise RecordingError(f"{_who(columns, int(np.flatnonzero(back)[0]) + 1)} is there twice: {_DAMAGED}")
    group = columns.get("group")
    if group is not None and len(group) and not 0 <= group.min() <= group.max() < groups:
        row = int(np.flatnonzero((group < 0) | (group >= groups))[0])
        raise RecordingError(
            f"{_who(columns, row)} belongs to group {group[row]}, but there are {groups} groups: {_DAMAGED}"
        )


def _who(columns: Mapping[str, NDArray[Any] | None], row: int) -> str:
    ids, frames = columns["id"], columns.get("frame")
    assert ids is not None
    return f"agent {ids[row]}" + ("" if frames is None else f" in frame {frames[row]}")


@functools.lru_cache(maxsize=256)
def check_wkt(text: str, what: str, kinds: str = _AREAS) -> None:
    """A shape of one of these kinds that can be drawn and measured."""
    import shapely

    from tropel.foundation.arguments import LARGEST_LENGTH
    from tropel.world.shapes import read_wkt

    try:
        geometry = read_wkt(text, what)
    except GeometryError as error:
        raise RecordingError(f"{error}: {_DAMAGED}") from error
    if not (np.abs(shapely.get_coordinates(geometry)) <= LARGEST_LENGTH).all():
        raise RecordingError(f"{what} has coordinates beyond {LARGEST_LENGTH:g} m: {_DAMAGED}")
    if geometry.is_empty or geometry.geom_type not in kinds.split():
        raise RecordingError(f"{what} is {'an empty' if geometry.is_empty else 'a'} {geometry.geom_type}: {_DAMAGED}")
    if not geometry.is_valid:
        raise RecordingError(f"{what} is no valid shape ({shapely.is_valid_reason(geometry)}): {_DAMAGED}")


def check_place(value: Any, what: str, *, dim: int | None, farthest: float | None = None) -> None:
    """A place in as many coordinates as the run has, or in two or three where that is not known."""
    lengths = (2, 3) if dim is None else (dim,)
    good = isinstance(value, list | tuple) and len(value) in lengths
    if not good or not all(_is_length(x) and (farthest is None or abs(x) <= farthest) for x in value):
        raise RecordingError(f"{what} is {value!r:.60}, not a place: {_DAMAGED}")


def check_size(value: Any, what: str) -> None:
    if not _is_length(value) or value < 0.0:
        raise RecordingError(f"{what} is {value!r:.40}, not a length: {_DAMAGED}")


def _is_length(value: Any) -> bool:
    from tropel.world.shapes import FARTHEST

    return not isinstance(value, bool) and is_finite(value) and abs(value) <= FARTHEST


def table_of(value: Any, what: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise RecordingError(f"{what} is {value!r:.40}, not a table of names: {_DAMAGED}")
    return value


def check_scene(told: Mapping[str, Any]) -> None:
    """The entries of a scene, beyond what `Scene` itself checks."""
    from tropel.foundation.arguments import LARGEST_LENGTH

    dim = told.get("dim")
    bounds = told.get("bounds")
    for corner in bounds if isinstance(bounds, list) else [bounds]:
        check_place(corner, "a corner of scene.bounds", dim=dim if dim in (2, 3) else None, farthest=LARGEST_LENGTH)
    for name in ("walkable_wkt", "walls_wkt", "title"):
        if not isinstance(told.get(name, ""), str):
            raise RecordingError(f"scene.{name} is {told[name]!r:.40}, not a text: {_DAMAGED}")
        if told.get(name) and name != "title":
            check_wkt(told[name], f"scene.{name}", _AREAS if name == "walkable_wkt" else _LINES)
    for kind in ("exits", "regions"):
        for name, wkt in table_of(told.get(kind, {}), f"scene.{kind}").items():
            check_text(wkt, f"scene.{kind}.{name}")
            check_wkt(wkt, f"scene.{kind}.{name}")
    for name, entry in table_of(told.get("doors", {}), "scene.doors").items():
        door = table_of(entry, f"scene.doors.{name}")
        check_text(door.get("wkt"), f"scene.doors.{name}")
        check_wkt(door["wkt"], f"scene.doors.{name}", _LINES)
    groups = told.get("groups", ["agents"])
    if not isinstance(groups, list) or not all(isinstance(name, str) for name in groups):
        raise RecordingError(f"scene.groups is {groups!r:.40}, not a list of names: {_DAMAGED}")
    for name, entry in table_of(told.get("targets", {}), "scene.targets").items():
        _check_target(table_of(entry, f"scene.targets.{name}"), f"scene.targets.{name}", dim)
    for name, entry in table_of(told.get("obstacles", {}), "scene.obstacles").items():
        check_obstacle(table_of(entry, f"scene.obstacles.{name}"), f"scene.obstacles.{name}", dim)
    seed = told.get("seed")
    if seed is not None and type(seed) is not int:
        raise RecordingError(f"scene.seed is {seed!r:.40}, not a whole number: {_DAMAGED}")
    _check_extra(table_of(told.get("extra", {}), "scene.extra"))
    check_rate(told.get("dt"), "scene.dt")


def _check_extra(extra: dict[str, Any]) -> None:
    """Columns that only some runs have, and bodies that are more than discs."""
    names = extra.get("columns", [])
    if not isinstance(names, list) or len(names) > _MOST_COLUMNS or len(set(map(str, names))) < len(names):
        raise RecordingError(f"scene.extra.columns is {names!r:.40}, not a list of names: {_DAMAGED}")
    for name in names:
        if not (isinstance(name, str) and _COLUMN.fullmatch(name)) or name in KNOWN_COLUMNS:
            raise RecordingError(f"scene.extra.columns has {name!r:.40}, not the name of a column: {_DAMAGED}")
    for group, body in table_of(extra.get("bodies", {}), "scene.extra.bodies").items():
        told = table_of(body, f"scene.extra.bodies.{group}")
        check_text(told.get("kind"), f"scene.extra.bodies.{group}.kind")
        for name in ("length", "width", "wheel"):
            check_size(told.get(name), f"scene.extra.bodies.{group}.{name}")


def _check_target(entry: dict[str, Any], what: str, dim: Any) -> None:
    from pydantic import ValidationError

    from tropel.world.motion import restored_motion

    if "position" in entry:
        check_place(entry["position"], f"{what}.position", dim=dim)
    if "radius" in entry:
        check_size(entry["radius"], f"{what}.radius")
    if "path" in entry:
        if not isinstance(entry["path"], list):
            raise RecordingError(f"{what}.path is {entry['path']!r:.40}, not a list of places: {_DAMAGED}")
        for place in entry["path"]:
            check_place(place, f"{what}.path", dim=dim)
    if isinstance(entry.get("motion"), dict):
        try:
            restored_motion(entry["motion"])
        except ValidationError as error:
            raise RecordingError(f"{what}.motion cannot be read ({error.errors()[0]['msg']}): {_DAMAGED}") from error


def check_obstacle(entry: Mapping[str, Any], what: str, dim: Any) -> None:
    check_place(entry.get("position"), f"{what}.position", dim=dim)
    check_size(entry.get("radius"), f"{what}.radius")


def check_text(value: Any, what: str) -> None:
    if not isinstance(value, str):
        raise RecordingError(f"{what} is {value!r:.40}, not a text: {_DAMAGED}")


def checked_event(frame: Any, step: Any, event: Any) -> RecordedEvent:
    """An event or a note, with those of its entries that are looked at."""
    for what, number in (("frame", frame), ("step", step)):
        if type(number) is not int or not 0 <= number <= LAST_NUMBER:
            raise RecordingError(f"an event has the {what} {number!r:.40}: {_DAMAGED}")
    if isinstance(event, dict):
        kind = event.get("kind")
        what = f"the event of step {step}"
        if kind == DEATHS:
            _check_ids(event.get("ids"), what)
        elif kind == STAGES:
            for text, ids in table_of(event.get("begun"), what).items():
                check_text(text, what)
                _check_ids(ids, what)
        elif kind == KNOWLEDGE:
            _check_learnt(event.get("news"), what)
        elif kind == NEWS:
            check_text(event.get("of"), what)
            _check_news(event.get("news"), what)
        elif kind == HAZARDS:
            for name, entry in table_of(event.get("hazards"), what).items():
                _check_hazard(table_of(entry, f"{what}: {name}"), f"{what}: {name}")
        else:
            _check_fields(event, str(kind), what)
    return RecordedEvent(frame=frame, step=step, event=event)


def _check_learnt(news: Any, what: str) -> None:
    """Raise unless these are lines with a holder, a thing, a state and a source; holders and sources may be ids."""
    if not isinstance(news, list) or not all(isinstance(line, list) and len(line) == 4 for line in news):
        raise RecordingError(f"{what} has {news!r:.40} for what was learnt: {_DAMAGED}")
    for holder, thing, state, source in news:
        for number in (holder, source):
            if type(number) is int:
                _check_ids([number], what)
            else:
                check_text(number, what)
        check_text(thing, what)
        check_text(state, what)


def _check_ids(ids: Any, what: str) -> None:
    if not isinstance(ids, list) or not all(type(number) is int and 0 <= number <= LAST_NUMBER for number in ids):
        raise RecordingError(f"{what} names agents as {ids!r:.40}, not as ids: {_DAMAGED}")


def _check_news(news: Any, what: str) -> None:
    if not isinstance(news, list) or not all(isinstance(each, list) and len(each) == 3 for each in news):
        raise RecordingError(f"{what} has the news {news!r:.40}, not a list of them: {_DAMAGED}")
    for happened, name, ids in news:
        check_text(happened, what)
        check_text(name, what)
        _check_ids(ids, what)


def _check_hazard(entry: dict[str, Any], what: str) -> None:
    check_text(entry.get("kind"), f"{what}.kind")
    check_place(entry.get("position"), f"{what}.position", dim=None)
    for name in ("inner", "outer"):
        check_size(entry.get(name), f"{what}.{name}")


def _check_fields(event: dict[str, Any], kind: str, what: str) -> None:
    """Those that pictures follow: which door or exit, and what was put where."""
    about_things = kind.endswith(_THINGS)
    for name in _NAMES:
        if kind == "announce" and event.get(name) is None:
            continue  # an announcement names one thing of several kinds
        if name in event or (about_things and name == "name"):
            check_text(event.get(name), f"{what}: {name}")
    if about_things and event.get("position") is not None:
        check_place(event["position"], f"{what}: position", dim=None)
    if kind == "move_obstacle" and event.get("position") is None:
        raise RecordingError(f"{what} moves an obstacle to no place: {_DAMAGED}")
    if kind == "add_obstacle":
        check_size(event.get("radius"), f"{what}: radius")


def axes_of(vector: NDArray[Any], prefix: str) -> dict[str, NDArray[Any]]:
    """The columns of an array of vectors."""
    return {f"{prefix}{axis}": vector[:, k] for k, axis in enumerate(AXES[: vector.shape[1]])}
