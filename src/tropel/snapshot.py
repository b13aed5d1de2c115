"""Checkpoints of a whole simulation: what is stored, how it is put back, and the digests that guard both."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tropel import layers
from tropel.errors import CheckpointError, TropelError
from tropel.recording.checkpoint import environment_differences, load_checkpoint, save_checkpoint

if TYPE_CHECKING:
    from tropel.simulation import Simulation


def _stored_layers(sim: Simulation) -> dict[str, NDArray[Any]]:
    """The memory of every layer, and of the watch over collisions."""
    stored = {
        f"layers/{number}/{name}": array
        for number, layer in enumerate(sim.all_layers())
        for name, array in layers.stored(layer).items()
    }
    if sim.collision_watch is not None:
        stored |= {f"collisions/{name}": array for name, array in sim.collision_watch.state().items()}
    return stored


def _below(prefix: str, arrays: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _changing(sim: Simulation) -> dict[str, Any]:
    """The part of the state that is not arrays."""
    return {
        "step": sim.step_number,
        "world": sim.world.state(),
        "events": sim.events.state(),
        "spared": sorted(sim.spared),
    }


def _digest(meta: Any, arrays: dict[str, NDArray[Any]]) -> str:
    digest = hashlib.sha256(json.dumps(meta, sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def hash_simulation(sim: Simulation) -> str:
    """Digest of everything the future depends on, and of the log of collisions."""
    return _digest(_changing(sim), sim.population.stored() | _stored_layers(sim))


def digest_of_setup(sim: Simulation) -> str:
    """Digest of how a simulation was built, taken before its first step: a checkpoint belongs to one such setup."""
    built = {
        "dt": sim.dt,
        "seed": sim.seed,
        "world": sim.world.digest(),
        "groups": sim.groups,
        "sources": [[repr(source), getattr(source.region, "wkb_hex", "")] for source in sim.population.sources],
        "layers": [layers.describe(layer) for layer in sim.all_layers()],
        "layers of groups": [layers.describe(layer) for layer in (*sim.layers.planners, *sim.layers.models)],
        "start": sim.world.state(),
        "watches collisions": sim.collision_watch is not None,
    }
    return _digest(built, sim.population.stored())


def save_simulation(sim: Simulation, path: Path) -> None:
    meta = {"setup": sim.setup_digest, "title": sim.title, **_changing(sim)}
    save_checkpoint(path, arrays=sim.population.stored() | _stored_layers(sim), meta=meta)


def restore_simulation(sim: Simulation, path: Path) -> None:
    arrays, meta = load_checkpoint(path)
    if meta.get("setup") != sim.setup_digest:
        raise CheckpointError(
            f"{path} belongs to another simulation ('{meta.get('title', '')}'): its world, agents, layers, dt or seed "
            f"differ; resume with the same scenario file or script it was written by"
        )
    for difference in environment_differences(meta):
        warnings.warn(f"{path}: {difference}; the same bits are promised only on equal machines", stacklevel=3)
    try:
        # Events first: they may be refused, and then nothing has been changed yet.
        sim.events.restore(meta["events"])
        sim.step_number = int(meta["step"])
        sim.spared = set(meta["spared"])
        sim.world.restore(meta["world"], dt=sim.dt)
        sim.population.restore(arrays)
        for number, layer in enumerate(sim.all_layers()):
            layers.restore(layer, _below(f"layers/{number}/", arrays))
        if sim.collision_watch is not None:
            sim.collision_watch.restore(_below("collisions/", arrays))
    except (KeyError, TropelError) as error:
        raise CheckpointError(f"{path} does not fit this simulation: {error}") from error
