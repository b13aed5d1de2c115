"""A run whose every frame is known in closed form: walkers in two rooms, a door that shuts, a fire, a cart."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import shapely
from numpy.typing import NDArray

from tropel.recording import People, Scene, open_trajectory
from tropel.recording.frames import deaths_note, hazards_note

FPS = 10.0
FRAMES = 60
HALL = shapely.box(0.0, 0.0, 20.0, 10.0)
DOOR = shapely.LineString([(10.0, 3.0), (10.0, 6.0)])
#: A closed door is a slit in the recorded area, a millimetre wide.
SHUT = HALL.difference(DOOR.buffer(0.0005, cap_style="flat"))
DOOR_SHUTS, FIRE_BEGINS, SOMEBODY_DIES = 20, 30, 40
#: Who walks alone in the second group, so that a browser shows one body in that group's colour.
LONE = 9
#: Who leaves, and when [s].
LEAVER, LEAVES_AT = 0, 3.05
DIES = 5


def scene(dim: int = 2) -> Scene:
    return Scene(
        dim=dim,
        bounds=[[0.0] * dim, [20.0, 10.0, 6.0][:dim]],
        walkable_wkt=HALL.wkt if dim == 2 else "",
        exits={"east": "POLYGON ((19 4, 20 4, 20 6, 19 6, 19 4))"} if dim == 2 else {},
        doors={"middle": {"wkt": DOOR.wkt, "open": True}} if dim == 2 else {},
        groups=["people", "guide"],
        targets={"stage": {"position": [18.0, 1.0, 1.0][:dim]}},
        obstacles={"cart": {"radius": 0.5, "position": cart(0, dim)}},
        title="<two> rooms & a door",
        dt=0.05,
        seed=7,
    )


def cart(frame: int, dim: int = 2) -> list[float]:
    return [5.0 + 0.05 * frame, 8.5, 3.0][:dim]


def ids(frame: int) -> NDArray[np.int64]:
    there = [number for number in (0, 1, 2, 3, 4, 5, LONE) if number != LEAVER or frame / FPS < LEAVES_AT]
    return np.array(there, dtype=np.int64)


def place(number: int, frame: int, dim: int = 2) -> list[float]:
    """Everybody walks east at 1 m/s, the lone guide at 2 m/s; the dead lie where they died."""
    walked = min(frame, SOMEBODY_DIES) if number == DIES else frame
    if number == LONE:
        return [2.0 + 0.2 * walked, 7.0, 4.0][:dim]
    return [1.0 + 0.1 * walked, 1.0 + 0.8 * number, 2.0][:dim]


def write_run(path: Path, *, dim: int = 2, frames: int = FRAMES, people: bool = True) -> Path:
    """Record the run; the name of the path says in which format."""
    with open_trajectory(path, scene=scene(dim), fps=FPS) as writer:
        for frame in range(frames):
            step = 2 * frame
            if frame == DOOR_SHUTS and dim == 2:
                writer.event(frame, step, json.dumps({"kind": "close_door", "door": "middle"}))
            if frame == FIRE_BEGINS:
                fire = {"kind": "fire", "position": [15.0, 5.0, 3.0][:dim], "inner": 0.8, "outer": 2.5}
                writer.event(frame, step, hazards_note({"blaze": fire}))
            if frame == SOMEBODY_DIES:
                writer.event(frame, step, deaths_note([DIES]))
            there = ids(frame)
            heading = np.zeros((len(there), dim))
            heading[:, 0] = 1.0
            writer.write(
                frame,
                id=there,
                position=[place(int(number), frame, dim) for number in there],
                heading=heading,
                group=(there == LONE).astype(np.int32),
                radius=np.where(there == LONE, 0.4, 0.25),
                speed=np.where(there == LONE, 2.0, 1.0),
                geometry_wkt=SHUT.wkt if frame == DOOR_SHUTS and dim == 2 else None,
            )
            writer.obstacles(frame, ["cart"], [cart(frame, dim)], [0.5])
        writer.close({"agents": 7}, people=_people() if people else None)
    return path


def _people() -> People:
    numbers = [0, 1, 2, 3, 4, 5, LONE]
    fates = {LEAVER: "left", DIES: "died"}
    gone = {LEAVER: LEAVES_AT, DIES: SOMEBODY_DIES / FPS}
    return People.from_names(
        id=numbers,
        group=[int(number == LONE) for number in numbers],
        came=np.zeros(len(numbers)),
        gone=[gone.get(number, np.nan) for number in numbers],
        fate=[fates.get(number, "there") for number in numbers],
        through=["east" if number == LEAVER else "" for number in numbers],
    )
