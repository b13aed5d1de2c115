"""Checkpoints of a whole simulation: what is stored, how it is restored, and the digests that guard both.

The digests come first. A table with a row per agent has the sum of its rows' digests: the same for the same rows in any
order, and for several processes the sum of theirs. Every number of a row goes through a mixing function (the finaliser
of SplitMix64; Steele, Lea & Flood, "Fast splittable pseudorandom number generators", 2014) together with the digest so
far, starting with a key of the column; two lanes with different keys make 128 bits. Sums of integers do not depend on
their order. The digest tells states apart; it is not cryptographic, so two states with the same digest can be forged.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numpy.typing import NDArray

from tropel._kernels.compile import inlined_kernel, parallel_kernel
from tropel.agents.stored import StoredPeople, read_people
from tropel.encounters.watch import EncounterWatch, stored_distance
from tropel.errors import CheckpointError, TropelError
from tropel.events.queue import Waiting
from tropel.recording.checkpoint import environment_differences, load_checkpoint, save_checkpoint
from tropel.world.stored import WorldState, read_world_state

if TYPE_CHECKING:
    from tropel.simulation import Simulation


_LANES = 2


@inlined_kernel
def _mixed(z):
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@parallel_kernel
def _mix_in(words, key, digest):
    """Mix the words of each row into its digest."""
    for row in numba.prange(words.shape[0]):
        for lane in range(digest.shape[1]):
            z = digest[row, lane] + key[lane]
            for k in range(words.shape[1]):
                z = _mixed(z ^ np.uint64(words[row, k]))
            digest[row, lane] = _mixed(z)


def sum_of_row_digests(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.uint64]:
    """The sum of the digests of all rows of a table: two numbers."""
    count = len(next(iter(columns.values()), ()))
    digest = np.zeros((count, _LANES), dtype=np.uint64)
    for name in sorted(columns):
        column = np.ascontiguousarray(columns[name])
        column = column.reshape(count, column[:1].size if count else 1)
        key = np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8 * _LANES).digest(), dtype=np.uint64)
        _mix_in(column.view(f"u{column.dtype.itemsize}"), key, digest)
    return np.asarray(digest.sum(axis=0, dtype=np.uint64))


#: Far more than a year in steps of a microsecond; step numbers up to this stay exact when they are multiplied.
_LAST_STEP = 1 << 50

#: Prefixes of what layers, cells and the watches of collisions and encounters store; they check it themselves.
_LAYERS = ("layers/", "cells/", "collisions/", "encounters/")

#: Tables with a row per agent, or per agent that has left or died.
_TABLES = ("agents/", "left/", "died/")


def _stored_layers(sim: Simulation) -> dict[str, NDArray[Any]]:
    """The memory of every layer, where the cells lie, and the memory of the watches."""
    stored = {f"cells/{name}": array for name, array in sim.cells.state().items()}
    stored |= {
        f"layers/{number}/{name}": array
        for number, layer in enumerate(sim.all_layers())
        for name, array in layer.state().items()
    }
    if sim.collision_watch is not None:
        stored |= {f"collisions/{name}": array for name, array in sim.collision_watch.state().items()}
    if sim.encounter_watch is not None:
        stored |= {f"encounters/{name}": array for name, array in sim.encounter_watch.state().items()}
    return stored


def _below(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _changing(sim: Simulation) -> dict[str, Any]:
    """The part of the state that is not in arrays."""
    return {
        "step": sim.step_number,
        "world": sim.world.state(),
        "events": sim.events.state(),
        "spared": sorted(sim.spared),
    }


def _digest(meta: Any, arrays: dict[str, NDArray[Any]], owned: int) -> str:
    """Digest of what is the same on all processes, and of tables with a row per agent or event as sums over the rows.

    So processes that share a crowd need not gather the agents to agree on it.
    """
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for table in _TABLES:
        rows = _below(table, arrays)
        arrays = {name: array for name, array in arrays.items() if not name.startswith(table)}
        if table == "agents/":
            arrays["next_id"] = rows.pop("next_id")
            rows = {name: array[:owned] for name, array in rows.items()}
        digest.update(f"{table} {sorted(rows)} {sum_of_row_digests(rows).tolist()}".encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def hash_simulation(sim: Simulation) -> str:
    """Digest of everything that the future depends on, and of the logs of collisions and encounters."""
    return _digest(_changing(sim), sim.population.stored() | _stored_layers(sim), sim.agents.owned)


def digest_of_setup(sim: Simulation) -> str:
    """Digest of how a simulation was built, taken before its first step: a checkpoint belongs to exactly one setup."""
    built = {
        "dt": sim.dt,
        "seed": sim.seed,
        "world": sim.world.digest(),
        "groups": sim.groups,
        "sources": [[repr(source), getattr(source.region, "wkb_hex", "")] for source in sim.population.sources],
        "layers": [layer.describe() for layer in sim.all_layers()],
        "layers of groups": [layer.describe() for layer in (*sim.layers.planners, *sim.layers.models)],
        "start": sim.world.state(),
        "watches collisions": sim.collision_watch is not None,
        "squads": {} if sim.population.squads is None else {n: repr(s) for n, s in sim.population.squads.told.items()},
    }
    return _digest(built, sim.population.stored(), sim.agents.owned)


def save_simulation(sim: Simulation, path: Path) -> None:
    meta = {"setup": sim.setup_digest, "title": sim.title, **_changing(sim)}
    save_checkpoint(path, arrays=sim.population.stored() | _stored_layers(sim), meta=meta)


def restore_simulation(sim: Simulation, path: Path) -> None:
    arrays, meta = load_checkpoint(path)
    if meta.get("setup") != sim.setup_digest:
        raise CheckpointError(
            f"{path} belongs to another simulation ('{meta.get('title', '')}'): its world, agents, layers, dt or seed "
            f"differ; resume with the scenario file or script that wrote it"
        )
    for difference in environment_differences(meta):
        warnings.warn(f"{path}: {difference}; identical bits are only promised on equal machines", stacklevel=3)
    try:
        saved = _read(sim, meta, arrays)
        before = _as_it_is(sim)
    except (TropelError, ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise CheckpointError(f"{path} does not fit this simulation: {error}; use an earlier checkpoint") from error
    try:
        _put_back(sim, saved)
    except Exception as error:
        # A layer, perhaps a user's own, does not accept what the checkpoint has for it.
        _put_back(sim, before)
        what = str(error) if isinstance(error, TropelError) else f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path} does not fit this simulation: {what}; use an earlier checkpoint") from error


@dataclass(frozen=True, kw_only=True)
class _Saved:
    """What is to be restored, read and checked."""

    step: int
    spared: set[str]
    events: Waiting
    world: WorldState
    people: StoredPeople
    layers: dict[str, NDArray[Any]]


def _as_it_is(sim: Simulation) -> _Saved:
    return _Saved(
        step=sim.step_number,
        spared=sim.spared,
        events=sim.events.waiting,
        world=read_world_state(sim.world, sim.world.state()),
        people=sim.population.as_they_are(),
        layers=_stored_layers(sim),
    )


def _read(sim: Simulation, meta: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> _Saved:
    """Everything in a checkpoint except the layers' own arrays, which they check themselves."""
    step, spared = meta.get("step"), meta.get("spared")
    if type(step) is not int or not 0 <= step <= _LAST_STEP:
        raise CheckpointError(f"its step is {step!r:.40}, not a number from 0 to {_LAST_STEP:,}")
    if not isinstance(spared, list) or not all(isinstance(name, str) for name in spared):
        raise CheckpointError(f"its list of behaviours that were left out is {spared!r:.40}, not names")
    world = read_world_state(sim.world, meta.get("world"))
    if world.time > (step + 1) * sim.dt:
        raise CheckpointError(f"its world is at {world.time:g} s, which is after its own step")
    expected = set(sim.population.stored())
    for name in arrays:
        if name not in expected and not name.startswith(_LAYERS):
            raise CheckpointError(f"it holds '{name}', which this simulation does not have")
    _check_encounters(sim, _below("encounters/", dict(arrays)))
    goals = len(world.goal_numbers)
    return _Saved(
        step=step,
        spared=set(spared),
        events=sim.events.read(meta.get("events")),
        world=world,
        people=read_people(sim.population, arrays, goals=goals, time=step * sim.dt),
        layers={name: array for name, array in arrays.items() if name.startswith(_LAYERS)},
    )


def _check_encounters(sim: Simulation, stored: Mapping[str, NDArray[Any]]) -> None:
    """Raise if a simulation that watches encounters would continue with the table of another watch, or with none."""
    if sim.encounter_watch is None:
        return
    own = sim.encounter_watch.distance
    if not stored:
        raise CheckpointError(
            "encounters were not watched when it was written; call watch_encounters after restore to begin then"
        )
    if stored_distance(stored) != own:
        raise CheckpointError(
            f"its encounters were watched within {stored_distance(stored):g} m, but here it is {own:g} m; use the same"
        )


def _restore_encounters(sim: Simulation, stored: Mapping[str, NDArray[Any]]) -> None:
    """A simulation watches encounters from here on if the one that was saved did."""
    if not stored:
        sim.encounter_watch = None
        return
    if sim.encounter_watch is None:
        sim.encounter_watch = EncounterWatch(stored_distance(stored), sim.world)
    sim.encounter_watch.restore(stored)


def _put_back(sim: Simulation, saved: _Saved) -> None:
    sim.events.put_back(saved.events)
    sim.step_number = saved.step
    sim.spared = set(saved.spared)
    sim.world.put_back(saved.world, dt=sim.dt)
    sim.population.put_back(saved.people)
    for number, layer in enumerate(sim.all_layers()):
        layer.restore(_below(f"layers/{number}/", saved.layers))
    sim.cells.restore(_below("cells/", saved.layers))
    if sim.collision_watch is not None:
        sim.collision_watch.restore(_below("collisions/", saved.layers))
    _restore_encounters(sim, _below("encounters/", saved.layers))
