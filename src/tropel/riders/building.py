"""Building mobility maps: in parts that survive being interrupted, with the range of actions found by trial.

Trials of a part run at once, on all cores. Each part that is done is written to a folder beside the map, so that
building goes on where it stopped; the folder disappears when the map is complete.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tropel import __version__
from tropel.errors import CheckpointError, ParameterError
from tropel.foundation.files import make_private, open_input, replacing, user_cache
from tropel.foundation.long_work import report
from tropel.foundation.stored_arrays import archive_fault, read_arrays, taken, write_archive
from tropel.riders.character import Character, Floats, Trials
from tropel.riders.maps import LARGEST_MAP, MobilityMap

_MARK = b"tropel part of a mobility map 1 "
_BEGINNING = "beginning.npz"


def build_in_parts(
    character: Character,
    path: Path,
    *,
    states: int = 100,
    actions: int = 10,
    duration: float = 5.0,
    interval: float = 0.1,
    parts: int = 10,
) -> MobilityMap:
    """Build a map and write it to `path`; goes on with what an interrupted call with the same arguments has done."""
    if states < 1 or actions < 2 or parts < 1 or not 0.0 < interval <= duration:
        raise ParameterError("a map needs at least one state, two actions, and a duration of at least one interval")
    plan = {"digest": character.digest(), "states": states, "actions": actions, "duration": duration}
    key = hashlib.sha256(json.dumps({**plan, "interval": interval, "parts": parts}).encode()).hexdigest()
    folder = path.with_name(f"{path.name}.parts-{key[:12]}")
    path.parent.mkdir(parents=True, exist_ok=True)
    what = f"mobility map of '{character.name}'"
    times: Floats = np.arange(round(duration / interval) + 1, dtype=np.float64) * interval
    begun = _read_part(folder / _BEGINNING, key)
    if begun is None:
        begin = character.initial_states(states)
        turns: Floats = np.linspace(-character.action_limit, character.action_limit, actions)
        folder.mkdir(exist_ok=True)
        _write_part(folder / _BEGINNING, key, {"begin": begin, "turns": turns})
    else:
        begin = taken(begun, "begin", dtype="float64", shape=(states, None))
        turns = taken(begun, "turns", dtype="float64", shape=(actions,))
    done: list[Trials] = []
    pieces = np.array_split(np.arange(states), min(parts, states))
    for number, rows in enumerate(pieces):
        report(what, number, len(pieces))
        file = folder / f"part_{number:03}.npz"
        kept = _read_part(file, key)
        if kept is None:
            trials = character.trials(np.repeat(begin[rows], actions, axis=0), np.tile(turns, len(rows)), times)
            _write_part(file, key, {name: getattr(trials, name) for name in Trials.__dataclass_fields__})
        else:
            trials = Trials(**{name: kept[name] for name in Trials.__dataclass_fields__})
        done.append(trials)
    report(what, len(pieces), len(pieces))
    made = _put_together(character, begin, turns, times, done)
    made.save(path)
    shutil.rmtree(folder)
    return MobilityMap.load(path, digest=character.digest())


def _put_together(character: Character, begin: Floats, turns: Floats, times: Floats, done: list[Trials]) -> MobilityMap:
    shape = (len(begin), len(turns))
    columns = {
        name: np.concatenate([getattr(trials, name) for trials in done]).reshape(
            *shape, *getattr(done[0], name).shape[1:]
        )
        for name in Trials.__dataclass_fields__
    }
    provenance: dict[str, str | float] = {"tropel": __version__, "trials": len(begin) * len(turns)}
    try:
        provenance["mujoco"] = importlib.metadata.version("mujoco")
    except importlib.metadata.PackageNotFoundError:
        provenance["mujoco"] = "none"
    return MobilityMap(
        character=character.name,
        digest=character.digest(),
        speed=character.speed,
        state_names=character.state_names,
        states=character.reduced(begin),
        actions=turns,
        times=times,
        full_states=begin,
        provenance=provenance,
        **columns,
    )


def _write_part(path: Path, key: str, arrays: dict[str, Any]) -> None:
    with replacing(path, lasting=False) as file:
        write_archive(file, arrays, mark=_MARK, key=key)


def _read_part(path: Path, key: str) -> dict[str, Any] | None:
    """What was kept; None if there is nothing, or nothing that can be used."""
    try:
        with open_input(path, largest=LARGEST_MAP) as file:
            if archive_fault(file, mark=_MARK, key=key):
                return None
            size = file.seek(0, 2)
            file.seek(0)
            with zipfile.ZipFile(file) as archive:
                return read_arrays(archive, size=size)
    except (OSError, CheckpointError, zipfile.BadZipFile):
        return None


def kept_path(character: Character) -> Path | None:
    """Where the map of a character that does not come with tropel is kept for the user; None without a place for it."""
    cache = user_cache()
    if cache is None or make_private(cache / "riders"):
        return None
    return cache / "riders" / f"{character.digest()[:24]}.npz"


def kept_map(character: Character) -> MobilityMap:
    """The map of a character: built when it is first needed, which takes a minute or so, and then kept."""
    path = kept_path(character)
    if path is None:
        raise ParameterError(
            f"there is no map of '{character.name}' and no private cache directory to keep one in; "
            "set XDG_CACHE_HOME to a directory that only you can write to"
        )
    if path.exists():
        return MobilityMap.load(path, digest=character.digest())
    return build_in_parts(character, path)
