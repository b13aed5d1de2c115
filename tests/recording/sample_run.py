"""A made-up run that every test can repeat: agents come, go, change group and size; a door opens; a cart moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tropel.recording import Scene, TrajectoryWriter

FPS = 10.0
HALL = "POLYGON ((0 0, 20 0, 20 10, 0 10, 0 0))"
HALL_WITH_ROOM = "POLYGON ((0 0, 20 0, 20 10, 25 10, 25 15, 0 15, 0 0))"


def scene(dim: int = 2) -> Scene:
    return Scene(
        dim=dim,
        bounds=[[0.0] * dim, [25.0, 15.0, 9.0][:dim]],
        walkable_wkt=HALL if dim == 2 else "",
        exits={"east": "POLYGON ((19 4, 20 4, 20 6, 19 6, 19 4))"} if dim == 2 else {},
        doors={"side": {"wkt": "LINESTRING (20 10, 20 9)", "open": False}} if dim == 2 else {},
        groups=["visitors", "staff"],
        targets={"stage": {"position": [1.0] * dim}},
        obstacles={"cart": {"radius": 0.5, "position": [2.0] * dim}},
        title="a hall",
        dt=0.05,
        seed=7,
    )


def agents(frame: int, dim: int = 2, count: int = 40) -> dict[str, np.ndarray]:
    """The agents of a frame: about three quarters of `count`, none at all in every thirteenth frame."""
    random = np.random.default_rng([frame, dim])
    present = random.random(count) < (0.0 if frame % 13 == 12 else 0.75)
    ids = np.flatnonzero(present).astype(np.int64) + frame // 5
    heading = random.normal(size=(len(ids), dim))
    heading /= np.linalg.norm(heading, axis=1, keepdims=True)
    return {
        "id": ids,
        "position": random.uniform(0.0, 9.0, (len(ids), dim)),
        "heading": heading,
        # Groups and radii differ from agent to agent, and change in the middle of the run.
        "group": ((ids % 3 == 0) ^ (frame > 17)).astype(np.int32),
        "radius": 0.2 + 0.01 * (ids % 7) + (0.05 if frame > 21 else 0.0),
        "speed": random.uniform(0.0, 2.0, len(ids)),
    }


def geometry(frame: int) -> str:
    return HALL_WITH_ROOM if 8 <= frame < 19 else HALL


def cart(frame: int, dim: int = 2) -> list[float]:
    return [2.0 + 0.1 * frame, 2.0, 1.0][:dim]


def write_frames(writer: TrajectoryWriter, frames: range, dim: int = 2, count: int = 40) -> None:
    """What a simulation would call, with arrays that it overwrites afterwards."""
    for frame in frames:
        if frame in (8, 19):
            writer.event(frame, 2 * frame, json.dumps({"door": "side", "open": frame == 8}))
        columns = agents(frame, dim, count)
        changed = geometry(frame) if frame in (8, 19) and dim == 2 else None
        writer.write(frame, **columns, geometry_wkt=changed)
        if frame % 3:
            writer.obstacles(frame, ["cart"], [cart(frame, dim)], [0.5])
        for column in columns.values():
            column[...] = -1


def rows_of(path: Path) -> dict[str, Any]:
    """Everything that is in a trajectory, in a form that can be compared with ==."""
    from tropel.recording import read_trajectory

    with read_trajectory(path) as run:
        frames = run.frames.tolist()
        return {
            "scene": run.scene,
            "fps": run.fps,
            "frames": frames,
            "table": {name: column.tolist() for name, column in run.table().items()},
            "geometry": [run.geometry(k) for k in frames],
            "geometries": run.geometries(),
            "obstacles": [run.obstacles(k) for k in frames],
            "events": run.events,
            "summary": run.summary,
            "ids": run.ids().tolist(),
        }
