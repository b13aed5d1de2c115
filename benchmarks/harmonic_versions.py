"""Harmonic fields of two versions of tropel beside each other: the tables of docs/measurements.md.

    PYTHONPATH=src python benchmarks/harmonic_versions.py OTHER/src [case …]

Each case is solved by the other version and by this one in turns, in processes of their own, after a small field for
which kernels are compiled or loaded. Ratios are of CPU time, so that they mean something on a machine that others use.
`first` instead of cases measures the first field ever, with no compiled kernels on disk.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tropel.bench.planning_maps import blocks_map, long_maze, usable_share
from tropel.planning.harmonic.vectors import unit_vectors
from tropel.scenario import load_builtin

THIS = Path(__file__).parents[1] / "src"
ROUNDS = 3
WORKER = """
import json, sys, time
import numpy as np
from tropel.planning.harmonic import solve_harmonic

def status(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024.0

def solve(free, goal):
    open("/proc/self/clear_refs", "w").write("5")
    before = status("VmRSS")
    cpu, wall = time.process_time(), time.perf_counter()
    log_u = solve_harmonic(free, goal)
    took = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    return log_u, {**took, "peak": status("VmHWM") - before}

small = np.ones((300, 300), dtype=bool)
corner = np.zeros_like(small)
corner[2:4, 2:4] = True
first = solve(small, corner)[1]
given = np.load(sys.argv[1])
log_u, told = solve(given["free"], given["goal"])
np.save(sys.argv[2], log_u)
print(json.dumps({**told, "first": first["cpu"]}))
"""


def empty(size: int):
    free = np.pad(np.ones((size - 2, size - 2), bool), 1)
    goal = np.zeros_like(free)
    goal[size // 2 - 2 : size // 2 + 2, size // 2 - 2 : size // 2 + 2] = True
    return free, goal


def building(size: int):
    """Eight by eight rooms, with a door of six cells to each neighbour."""
    free, rng, pitch = np.ones((size, size), bool), np.random.default_rng(3), size // 8
    for k in range(pitch, 8 * pitch, pitch):
        free[k] = free[:, k] = False
    for k in range(pitch, 8 * pitch, pitch):
        for room in range(8):
            for wall in (free[k], free[:, k]):
                door = room * pitch + int(rng.integers(3, pitch - 8))
                wall[door : door + 6] = True
    free[[0, -1]] = free[:, [0, -1]] = False
    goal = np.zeros_like(free)
    goal[2:6, 2:6] = True
    return free, goal


def single_cells(size: int):
    """12 % of single cells blocked, beside the larger blocks of `blocks_map`."""
    free = np.pad(np.random.default_rng(size).random((size - 2, size - 2)) > 0.12, 1)
    goal = empty(size)[1]
    return free | goal, goal


def scene(name: str):
    sim = load_builtin(name).build(threads=1)
    (planner,) = [layer for layer in sim.all_layers() if hasattr(layer, "draw")]
    field = planner.field(planner.goals()[0])
    return field.raster.free, field.goal


CASES = {
    "scene maze_small": lambda: scene("maze_small"),
    **{f"empty {n}": lambda n=n: empty(n) for n in (256, 512, 1024)},
    **{f"blocks {n}": lambda n=n: blocks_map(n) for n in (512, 1024)},
    **{f"single cells {n}": lambda n=n: single_cells(n) for n in (512, 1024)},
    "maze 512": lambda: long_maze(512, 40),
    **{f"building {n}": lambda n=n: building(n) for n in (512, 1024)},
}


def residual(log_u, goal) -> float:
    """The largest difference of log u and the log of the mean of u around it."""
    padded = np.pad(log_u, 1, constant_values=-np.inf)
    asked = np.isfinite(log_u) & ~goal
    beside = np.stack([padded[1:-1, :-2], padded[1:-1, 2:], padded[:-2, 1:-1], padded[2:, 1:-1]])[:, asked]
    top = beside.max(axis=0)
    return float(np.abs(top + np.log(np.exp(beside - top).mean(axis=0)) - log_u[asked]).max())


def run(source: Path, given: Path, found: Path, **extra: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(source), **extra}
    done = subprocess.run(
        [sys.executable, "-c", WORKER, str(given), str(found)], env=environment, check=True, capture_output=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare(name: str, other: Path, folder: Path) -> None:
    free, goal = CASES[name]()
    given = folder / "given.npz"
    np.savez(given, free=free, goal=goal)
    told = {source: [] for source in (other, THIS)}
    fields = {}
    for _ in range(ROUNDS):
        for source in told:
            told[source].append(run(source, given, folder / "found.npy"))
            fields[source] = np.load(folder / "found.npy")
    ratio = np.median([b["cpu"] / a["cpu"] for a, b in zip(told[other], told[THIS], strict=True)])
    row = [name, f"{free.sum():,}"]
    row += [f"{np.median([t['cpu'] for t in told[source]]):.2f}" for source in told] + [f"{ratio:.1f}"]
    row += [f"{np.median([t['peak'] for t in told[source]]):.0f}" for source in told]
    for log_u in fields.values():
        share = usable_share(log_u, unit_vectors(log_u, goal, mirrored=False), free, goal)
        row += [f"{100 * share:.1f} %", f"{residual(log_u, goal):.0e}"]
    both = np.isfinite(fields[other])
    row.append(f"{np.abs(fields[other][both] - fields[THIS][both]).max():.0e}")
    print("| " + " | ".join(row) + " |", flush=True)


def first_fields(other: Path, folder: Path) -> None:
    np.savez(folder / "given.npz", **dict(zip(("free", "goal"), empty(64), strict=True)))
    for number in range(ROUNDS):
        for source in (other, THIS):
            cache = folder / f"cache-{source.parent.name}-{number}"
            cache.mkdir(mode=0o700)
            told = run(
                source, folder / "given.npz", folder / "found.npy", XDG_CACHE_HOME=str(cache), NUMBA_CACHE_DIR=""
            )
            print(f"{source}: {told['first']:.1f} s", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        other_version = Path(sys.argv[1])
        if sys.argv[2:] == ["first"]:
            first_fields(other_version, Path(place))
        for case in sys.argv[2:] or CASES:
            if case != "first":
                compare(case, other_version, Path(place))
